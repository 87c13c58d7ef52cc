"""How fast to read each of the inputs of a ripple join whose result is estimated on the way.

Haas and Hellerstein (Ripple Joins for Online Aggregation, 1999, Section 5.3) choose the aspect
ratio of a ripple join so that the interval is as narrow as it can be for what reading has cost.
An input that was read in ``n`` random units adds ``spread / n`` to the variance; with ``seconds``
for a unit the least variance for the time has ``n`` in proportion to ``sqrt(spread / seconds)``.
Units given one by one to the input that narrows the most a second come to the same, and go on
from whatever was read before the spreads were known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

ROUND: Final = 10
"""Units that are read between two decisions.

Each input that goes on has one of them at the least, since what is known of its spread is an
estimate itself: with two inputs the rates lie between 1 to 9 and 9 to 1.
"""

Rates: TypeAlias = Callable[
    [Sequence[int], Sequence[int], Sequence[float], Sequence[float]], tuple[int, ...]
]
"""From all units of each input, those that were read or are on their way, spreads and seconds of a
unit: the units of each in the next round."""


def narrowing_rates(
    units: Sequence[int], read: Sequence[int], spreads: Sequence[float], seconds: Sequence[float]
) -> tuple[int, ...]:
    """Return how many units of each input to read in the next round.

    ``spreads`` are those of one unit, in any unit of measure that all have in common; all zero
    where nothing is known yet, and then all inputs are read alike. So are their ``seconds``.

    >>> narrowing_rates((100, 100), (10, 10), (9.0, 1.0), (1.0, 1.0))
    (9, 1)
    >>> narrowing_rates((100, 100), (30, 10), (9.0, 1.0), (1.0, 1.0))  # sqrt(9) to 1
    (7, 3)
    """
    known = any(spreads)
    return _dealt(
        units,
        read,
        lambda r, n: (
            spreads[r] / (n * (n + 1)) / max(seconds[r], _NO_TIME) if known and n else -n / units[r]
        ),
    )


def even_rates(
    units: Sequence[int], read: Sequence[int], spreads: Sequence[float], seconds: Sequence[float]
) -> tuple[int, ...]:
    """Return the next round where all inputs are read alike: the same part of each.

    >>> even_rates((100, 50), (0, 0), (9.0, 1.0), (1.0, 1.0))
    (7, 3)
    """
    del spreads, seconds
    return _dealt(units, read, lambda r, n: -n / units[r])


_NO_TIME: Final = 1e-9
"""Seconds of a unit that took none, by a clock that did not move."""


def _dealt(
    units: Sequence[int], read: Sequence[int], worth: Callable[[int, int], float]
) -> tuple[int, ...]:
    """Give the units of a round, first one to each, then each to the input where it is worth most.

    ``worth`` is that of one more unit of an input of which so many were read.
    """
    given = [int(n < of) for n, of in zip(read, units, strict=True)]
    for _ in range(ROUND - sum(given)):
        open_ = [r for r, n in enumerate(given) if read[r] + n < units[r]]
        if not open_:
            break
        best = max(open_, key=lambda r: (worth(r, read[r] + given[r]), -r))
        given[best] += 1
    return tuple(given)
