"""What a user says of a function's quota: what a refusal is, and what counts beside calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from eddyline.asking.lookup_source import described_error
from eddyline.asking.refusals import IsQuota
from eddyline.checked_values import positive_number
from eddyline.errors import CostError

OfAnswer: TypeAlias = "Callable[[tuple[Any, ...], Any], float]"
"""Tells a number by the arguments, a tuple, and the answer to them."""


@dataclass(frozen=True, slots=True)
class QuotaRules:
    """How a refusal is recognized, and how many ``tokens`` a value takes.

    There are at most ``token_rate`` of them a second. An exception for which ``too_large`` is true
    says that a call had too many values.
    """

    is_quota: IsQuota | None = None
    tokens: OfAnswer | None = None
    token_rate: float | None = None
    too_large: Callable[[Exception], bool] | None = None

    def __post_init__(self) -> None:
        """Check what was given; TypeError, ValueError."""
        for name in ("is_quota", "tokens", "too_large"):
            given = getattr(self, name)
            if given is not None and not callable(given):
                raise TypeError(f"{name} is a function, not {given!r}")
        if self.token_rate is not None:
            positive_number(self.token_rate, "token_rate", "of tokens a second")
            if self.tokens is None:
                raise ValueError("a token_rate needs tokens=, which says how many a value takes")


def number_of(tell: OfAnswer, name: str, arguments: tuple[object, ...], answer: object) -> float:
    """Return the number that a user's function tells of an answer; CostError where it tells none.

    >>> number_of(lambda args, answer: len(args[0]) + len(answer), "tokens", ("ab",), "c")
    3.0
    """
    try:
        number = tell(arguments, answer)
        amount = float(number) if hasattr(number, "__float__") else math.nan
    except BaseException as error:  # noqa: BLE001 - a SystemExit would end the event loop
        raise CostError(f"{name} raised {described_error(error)}") from None
    if isinstance(number, bool) or not math.isfinite(amount) or amount < 0:
        raise CostError(f"{name} is a number from 0 on, not {number!r}")
    return amount


AT_ONCE: Final = 1.0
"""Seconds of tokens that may be taken at once, after a pause."""


class TokenPace:
    """Has tokens taken evenly, so many a second, though what a call takes is known afterwards only.

    Before, a call counts as much as calls took so far.

    >>> pace = TokenPace(rate=100.0)
    >>> pace.wait(now=0.0), pace.begin(now=0.0)
    (0.0, 0.0)
    >>> pace.took(300.0, expected=0.0)
    >>> pace.wait(now=0.0)
    2.0
    >>> pace.begin(now=2.0)
    300.0
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._due = -math.inf
        self._calls = 0
        self._tokens = 0.0

    def wait(self, now: float) -> float:
        """Return the seconds until a call may begin."""
        return max(0.0, self._due - now)

    def begin(self, now: float) -> float:
        """Take note of a call; return how many tokens it is expected to take."""
        expected = self._tokens / self._calls if self._calls else 0.0
        self._due = max(self._due, now - AT_ONCE) + expected / self._rate
        return expected

    def took(self, tokens: float, expected: float) -> None:
        """Take note of what a call took in fact."""
        self._calls += 1
        self._tokens += tokens
        self._due += (tokens - expected) / self._rate
