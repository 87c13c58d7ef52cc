"""A paid service that is not there: it counts what it is asked for, and what that costs."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import eddyline


def chance(*values: object) -> float:
    """Return a number from 0 to 1 that looks random, and is the same for equal values."""
    digest = hashlib.blake2b(repr(values).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


@dataclass
class PaidService:
    """A function that is paid for: ``of_arguments`` is its value, ``cost`` what it takes."""

    name: str
    of_arguments: Callable[..., float]
    cost: float | Callable[..., float] = 0.002
    seconds: float = 0.0005
    calls: int = 0
    spent: float = 0.0
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def function(self, **declared: Any) -> Callable[..., Any]:  # noqa: ANN401 - as concurrent takes them
        """Return it as Eddyline's function."""

        def called(*arguments: object) -> float:
            with self._counting:
                self.calls += 1
                self.spent += self.cost(*arguments) if callable(self.cost) else self.cost
            time.sleep(self.seconds)
            return self.of_arguments(*arguments)

        called.__name__ = self.name
        cost = self.cost
        return eddyline.concurrent(
            called, returns="double", cost=cost, unit="USD", max_in_flight=16, **declared
        )

    def begin(self) -> None:
        """Count from 0 again."""
        self.calls, self.spent = 0, 0.0
