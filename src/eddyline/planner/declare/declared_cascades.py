"""The cascades of this process, for as long as somebody may call them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakValueDictionary

from eddyline.asking.declared_functions import LATEST
from eddyline.cascades.targets import Targets
from eddyline.errors import FunctionForgottenError
from eddyline.latest import Latest


@dataclass(frozen=True, eq=False)
class Cascade:
    """A cascade as it was declared.

    ``oracle`` and ``proxy`` are UDFs. The proxy's function is ``called`` by the function that
    decides about a row; where that is None, its values are a column of their own, as those of a
    function over vectors or a concurrent one. At most so many ``labels`` are asked for; without a
    ``seed`` other rows are drawn each time.
    """

    name: str
    oracle: Any
    proxy: Any
    called: Callable[..., Any] | None
    targets: Targets
    labels: int
    seed: int | None


class DeclaredCascades:
    """Cascades by number, known as concurrent functions are."""

    def __init__(self) -> None:
        """Know of none yet."""
        self._numbers = itertools.count(1)
        self._held: WeakValueDictionary[int, Cascade] = WeakValueDictionary()
        self._latest = Latest[int, Cascade](LATEST)
        self._lock = threading.Lock()
        self.any = False
        """Whether there has ever been one."""

    def add(self, cascade: Cascade) -> int:
        """Take note of a cascade; return its number in this process."""
        with self._lock:
            self.any = True
            number = next(self._numbers)
            self._held[number] = cascade
            self._latest.put(number, cascade)
        return number

    def of(self, number: int, name: str) -> Cascade:
        """Return a cascade that is about to be used; FunctionForgottenError if it is gone."""
        with self._lock:
            cascade = self._held.get(number)
            if cascade is not None:
                self._latest.put(number, cascade)
                return cascade
        raise FunctionForgottenError(
            f"{name} is a cascade that is not known any more: {LATEST:,} others were declared or "
            f"used since, and nobody has kept what eddyline.cascade returned. Keep it in a "
            f"variable for as long as queries call it."
        )


CASCADES: Final = DeclaredCascades()
