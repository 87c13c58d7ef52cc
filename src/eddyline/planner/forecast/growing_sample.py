"""How large the sample of a free survey is: as large as some seconds allow."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from eddyline.planner.forecast.surveys import CountedArguments, SampleSlice, slice_with

LEAST_ARGUMENTS: Final = 200
"""Arguments of the first sample, by which is measured what a larger one takes."""

MOST_ARGUMENTS: Final = 5_000
"""Arguments that are sampled where free predicates are cheap.

Of which a quarter is needed: an interval of 5 % to each side.
"""

SECONDS: Final = 8.0
"""Seconds that the last sample of a function may take, going by those before it."""

_BEGINNING: Final = 30.0
"""Seconds of the first sample up to which there is a second one."""

_STEPS: Final = 3
"""Samples that are taken at the most, each larger than the one before."""

_STEP: Final = 5
"""How much larger the second one is."""

Taken = TypeVar("Taken")


def as_large_as_pays(
    counted: CountedArguments,
    least: int,
    take: Callable[[SampleSlice], Taken],
    size: Callable[[Taken], int],
) -> tuple[SampleSlice, Taken]:
    """Return the largest sample that some seconds allow, and the slice that it is of.

    The first has ``least`` arguments at the least, ``size`` tells how many one has. What one takes
    in Spark is mostly the beginning, of workers and models; so the second tells what a further
    argument takes.
    """
    sizes, seconds = list[int](), list[float]()
    wanted = max(least, LEAST_ARGUMENTS)
    while True:
        part = slice_with(counted, wanted)
        began = time.perf_counter()
        sample = take(part)
        sizes.append(size(sample))
        seconds.append(time.perf_counter() - began)
        if part.is_all or wanted >= MOST_ARGUMENTS or len(sizes) == _STEPS:
            return part, sample
        if len(sizes) == 1:
            larger = wanted * _STEP if seconds[0] < _BEGINNING else wanted
        else:
            each = (seconds[1] - seconds[0]) / max(1, sizes[1] - sizes[0])
            larger = int(SECONDS / each) if each > 0 else MOST_ARGUMENTS
        if larger < 2 * wanted:
            return part, sample
        wanted = min(larger, MOST_ARGUMENTS)
