"""What a sample says of a whole: numbers with the interval in which they are 19 times of 20.

Pure arithmetic over what was counted; who samples is no matter here. All intervals are of 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

DEVIATIONS: Final = 1.959964
"""Standard deviations to each side in which a normal value lies 19 times of 20."""


ROUNDING: Final = 1e-9
"""Part of a number that sums in another order may differ by."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A number that is not known yet: what is ``likely``, and the interval around it."""

    low: float
    likely: float
    high: float

    def __post_init__(self) -> None:
        """Check the order; ValueError."""
        if not self.low <= self.likely <= self.high:
            raise ValueError(f"{self.low} to {self.high} is no interval around {self.likely}")

    def times(self, factor: float) -> Expected:
        """Return so many times as much; ``factor`` is from 0 on."""
        return Expected(self.low * factor, self.likely * factor, self.high * factor)

    def holds(self, value: float) -> bool:
        """Whether a value lies in the interval; sums of floats may miss its ends by a trifle."""
        trifle = ROUNDING * abs(self.likely)
        return self.low - trifle <= value <= self.high + trifle

    def between(self, least: float, most: float) -> Expected:
        """Return it with nothing below ``least`` or above ``most``."""
        low, likely, high = (
            min(max(value, least), most) for value in (self.low, self.likely, self.high)
        )
        return Expected(low, likely, high)

    def with_margin(self, part: float) -> Expected:
        """Return it with an interval that is wider by a part of what is likely, to each side."""
        margin = part * self.likely
        return Expected(max(0.0, self.low - margin), self.likely, self.high + margin)

    def to_dict(self) -> dict[str, float]:
        """Return it as plain data."""
        return {"low": self.low, "likely": self.likely, "high": self.high}


NONE_AT_ALL: Final = Expected(0.0, 0.0, 0.0)


def exactly(value: float) -> Expected:
    """Return a number that is known."""
    return Expected(value, value, value)


def roughly(value: float, error: float) -> Expected:
    """Return a number that was measured with a relative standard ``error``.

    >>> roughly(1000, 0.01)
    Expected(low=980.40036, likely=1000, high=1019.59964)
    """
    margin = value * error * DEVIATIONS
    return Expected(max(0.0, value - margin), value, value + margin)


def share(hits: int, sampled: int, whole: float = math.inf) -> Expected:
    """Return what part of a ``whole`` has a property that so many of ``sampled`` ones have.

    Wilson's interval (1927), which is right for shares near 0 and 1, too; a sample that is a large
    part of the whole counts for more, and one that is all of it is exact.

    >>> share(30, 100).likely, round(share(30, 100).low, 3), round(share(30, 100).high, 3)
    (0.3, 0.219, 0.396)
    >>> share(3, 10, whole=10)
    Expected(low=0.3, likely=0.3, high=0.3)
    """
    if sampled <= 0:
        return Expected(0.0, 0.0, 0.0) if whole <= 0 else Expected(0.0, 0.5, 1.0)
    part = hits / sampled
    if whole <= sampled:
        return exactly(part)
    weight = sampled * (whole - 1) / (whole - sampled) if whole < math.inf else float(sampled)
    square = DEVIATIONS**2
    middle = (part + square / (2 * weight)) / (1 + square / weight)
    spread = math.sqrt(part * (1 - part) / weight + square / (4 * weight**2))
    margin = DEVIATIONS * spread / (1 + square / weight)
    return Expected(
        max(0.0, min(middle - margin, part)), part, min(1.0, max(middle + margin, part))
    )


def mean(values: Sequence[float], whole: float = math.inf) -> Expected:
    """Return the mean of a whole of which some ``values`` were sampled, none of them below 0.

    >>> mean([2.0, 2.0, 2.0])
    Expected(low=2.0, likely=2.0, high=2.0)
    """
    if not len(values):
        return NONE_AT_ALL
    given = np.asarray(values, dtype=np.float64)
    likely = float(given.mean())
    count = len(given)
    if count == 1 or whole <= count:
        return exactly(likely)
    unseen = 1.0 if whole == math.inf else (whole - count) / (whole - 1)
    margin = DEVIATIONS * float(given.std(ddof=1)) * math.sqrt(unseen / count)
    return Expected(min(likely, max(0.0, likely - margin)), likely, likely + margin)


def product(*factors: Expected) -> Expected:
    """Return the product of numbers that are unknown independently of each other.

    The relative distances to either end are added as independent errors are: by their squares, on
    the scale of logarithms. An end at 0 stays there.

    >>> product(exactly(100), share(50, 200)) == share(50, 200).times(100)
    True
    """
    likely = math.prod(factor.likely for factor in factors)
    if likely <= 0:
        return Expected(0.0, 0.0, math.prod(factor.high for factor in factors))
    if len([factor for factor in factors if factor.low < factor.high]) <= 1:
        low = math.prod(factor.low for factor in factors)
        return Expected(min(low, likely), likely, max(likely, _high(factors)))
    up = math.sqrt(sum(math.log(factor.high / factor.likely) ** 2 for factor in factors))
    if any(factor.low <= 0 for factor in factors):
        return Expected(0.0, likely, likely * math.exp(up))
    down = math.sqrt(sum(math.log(factor.likely / factor.low) ** 2 for factor in factors))
    return Expected(likely * math.exp(-down), likely, likely * math.exp(up))


def _high(factors: Iterable[Expected]) -> float:
    return math.prod(factor.high for factor in factors)


def total(parts: Iterable[Expected]) -> Expected:
    """Return the sum of numbers that are unknown independently of each other.

    >>> total([exactly(1), exactly(2)])
    Expected(low=3.0, likely=3.0, high=3.0)
    """
    several = list(parts)
    likely = float(sum(part.likely for part in several))
    down = math.sqrt(sum((part.likely - part.low) ** 2 for part in several))
    up = math.sqrt(sum((part.high - part.likely) ** 2 for part in several))
    return Expected(max(0.0, likely - down), likely, likely + up)


def unseen(once: int, none: int, part: float) -> Expected:
    """Return how many kinds of which nothing was seen have something in what was not looked at.

    A ``part`` of everything was looked at, and had one thing of so many kinds, and of ``none``
    nothing. If these are alike, each has more at the rate at which it was seen; if not, fewer of
    them do. They are at most as many as would turn up if each further part had as many new kinds as
    this one had of which there was one (Good, 1953).

    >>> unseen(0, 40, 0.1), unseen(4, 40, 1.0)
    (Expected(low=0.0, likely=0.0, high=0.0), Expected(low=0.0, likely=0.0, high=0.0))
    """
    further = 1 / part - 1
    if not once or not none or further <= 0:
        return NONE_AT_ALL
    likely = none * -math.expm1(-once / (once + none) * further)
    most = min(float(none), (once + DEVIATIONS * math.sqrt(once) + 1) * further)
    return Expected(0.0, min(likely, most), most)
