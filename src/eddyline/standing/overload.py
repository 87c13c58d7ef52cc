"""What is done when events come faster than they can be worked."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

POLICIES: Final = ("block", "sample")
"""Events wait, or only a sample of them is taken."""

LEAST: Final = 0.001
"""The part of the events that is taken at the least."""

CONFIRMED: Final = 2
"""Micro-batches in a row that have to be too large before any event is dropped.

One alone may have been slow because a garbage collection or a neighbour was.
"""

PROBE: Final = 0.5
"""The part that is taken twice where all micro-batches have been of one size.

From these nobody can tell whether it is the events that take long.
"""

TOLERANCE: Final = 1.2
"""By how much events may take longer than there is room for before any is dropped.

A window that lost one event in twenty is an estimate, and no batch is seen to be shorter for it.
"""

ENOUGH: Final = 4
"""Micro-batches from which the cost can be told: two of one size and two of another, say."""

SIZES_APART: Final = 1.5
"""The least ratio of two sizes whose times tell what an event costs."""

REMEMBERED: Final = 9
"""Micro-batches of a size that are remembered, the latest: their median counts."""

MOST_COLD: Final = 3
"""Micro-batches in a row that may count as cold where queries come and go all the time."""

_TIE: Final = 1e-3
"""Relative weight by which time goes to events that are taken, where nothing tells it apart."""


class _Measured(NamedTuple):
    """A micro-batch: events that it had, those of them that were taken, and what it took."""

    events: int
    taken: int
    seconds: float


@dataclass(frozen=True, slots=True)
class BatchCost:
    """What micro-batches cost, in seconds.

    ``fixed`` is what each takes, ``reading`` what an event takes whether it is taken or dropped,
    and ``working`` what one that is taken takes besides.
    """

    fixed: float
    reading: float
    working: float

    def seconds(self, events: int, taken: int) -> float:
        """Return what a batch takes."""
        return self.fixed + self.reading * events + self.working * taken


@dataclass(frozen=True, slots=True)
class OverloadStatistics:
    """What has been learned: the cost, None where it is not known yet, and that of a cold start.

    ``cold`` are the seconds that the last cold batch took longer than a warm one would have;
    None before there was one, or where that is not known.
    """

    kept: float
    cost: BatchCost | None
    cold: float | None


class Overload:
    """How much of the next micro-batch is taken, by what the last ones cost.

    A batch takes a fixed time, some for each event, and some more for each that is worked on; the
    three are told apart by the sizes that batches have had. Only what events cost can be won by
    dropping some. So from a batch that is too large as many events are taken as there is room for
    beside the fixed time, or, where that is more than half of the target, as many as take as long
    as the fixed time: to drop more would lose most events and win less than half of the time.

    Times are handed in. A batch costs this a few microseconds, whatever came before.
    """

    def __init__(self, policy: str, target: float) -> None:
        """``target`` are the seconds that a batch may take."""
        self._samples = policy == "sample"
        self._target = target
        self.kept = 1.0
        """The part of the rows that is taken."""
        self._measured: dict[tuple[int, int], deque[_Measured]] = {}
        self._too_large = 0  # batches in a row that would have been with all their events
        self._cold_in_a_row = 0
        self._cold: _Measured | None = None

    def took(self, events: int, taken: int, seconds: float, *, cold: bool = False) -> None:
        """Take in a batch: its events, how many were taken, and how long that took.

        A ``cold`` one is the first of a process, or the first with other queries.
        """
        if not self._samples:
            return
        batch = _Measured(events, taken, seconds)
        self._cold_in_a_row = self._cold_in_a_row + 1 if cold else 0
        if cold and self._cold_in_a_row <= MOST_COLD:
            self._cold = batch
            return
        size = _class_of(events), _class_of(taken)
        self._measured.setdefault(size, deque(maxlen=REMEMBERED)).append(batch)
        if events:  # one without any, in which windows close, says nothing of the next
            self.kept = self._next(batch)

    def statistics(self) -> OverloadStatistics:
        """Return what has been learned."""
        cost, cold = self._cost(), None
        if cost is not None and self._cold is not None:
            warm = cost.seconds(self._cold.events, self._cold.taken)
            cold = max(self._cold.seconds - warm, 0.0)
        return OverloadStatistics(self.kept, cost, cold)

    def _next(self, last: _Measured) -> float:
        """Return what part of the next batch is taken, if it has as many events as the last."""
        cost = self._cost()
        dropped = last.events - last.taken
        whole = last.seconds + (0.0 if cost is None else cost.working * dropped)
        self._too_large = self._too_large + 1 if whole > self._target else 0
        if self._too_large < CONFIRMED:
            return 1.0
        if cost is None:
            return PROBE
        fixed = cost.seconds(last.events, 0)
        room, work = max(self._target - fixed, fixed), cost.working * last.events
        return 1.0 if work <= room * TOLERANCE else max(room / work, LEAST)

    def _cost(self) -> BatchCost | None:
        """Return what batches cost; None where they are too few, or have all been of one size.

        The costs are at least 0, and fit the medians of each size best, relative to these: so
        neither a slow batch nor a large one counts for more than others.
        """
        known = list(self._measured.values())
        if sum(map(len, known)) < ENOUGH:
            return None
        medians = np.array([np.median(batches, axis=0) for batches in known])
        if medians[:, 1].max() < SIZES_APART * max(medians[:, 1].min(), 1):
            return None
        events, taken, seconds = medians.T
        seconds = np.maximum(seconds, 1e-9)
        rows = np.column_stack([np.ones(len(events)), events, taken])
        # A row that says that events cost nothing to read, as far as nothing else does.
        tie = [0.0, _TIE * events.max() / seconds.max(), 0.0]
        weights = np.sqrt([len(batches) for batches in known])
        relative = np.vstack([rows * (weights / seconds)[:, None], tie])
        wanted = np.append(weights, 0.0)
        fixed, reading, working = _least_squares_from_zero(relative, wanted)
        return BatchCost(fixed, reading, working)


def _class_of(events: int) -> int:
    """Return a number common to sizes none of which is half as large again as another."""
    return round(2 * math.log2(events)) if events else -1


def _least_squares_from_zero(
    rows: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]
) -> tuple[float, ...]:
    """Return factors of columns, none of them below 0, that come nearest to what is wanted.

    Of so few columns each subset can be tried: the time doubles with each.
    """
    columns = rows.shape[1]
    scale = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    best, least = np.zeros(columns), float(wanted @ wanted)
    for count in range(1, columns + 1):
        for chosen in map(list, combinations(range(columns), count)):
            factors = np.linalg.lstsq(rows[:, chosen] / scale[chosen], wanted, rcond=None)[0]
            rest = rows[:, chosen] / scale[chosen] @ factors - wanted
            if (factors >= 0).all() and float(rest @ rest) < least:
                best, least = np.zeros(columns), float(rest @ rest)
                best[chosen] = factors / scale[chosen]
    return tuple(best.tolist())
