"""What rows did at modules, by the bucket that they are in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import TupleBatch, as_array
from eddyline.engine.eddy import LearnedCosts
from eddyline.engine.filter.class_costs import BucketCosts

Floats: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.intp]
Values = TypeVar("Values", pa.Array, npt.NDArray[np.intp])

BORROWED: Final = 16.0
"""Weight, in tuples, of what a module does to all rows beside what it does to those of a bucket."""

LEAST_OF_A_VISIT: Final = 0.1
"""Part of a visit's cost that its tuples have cost, at least, whatever a visit costs by itself."""


@dataclass(slots=True)
class BucketCounts:
    """What rows did by bucket: so many ``entered``, were ``asked`` by modules, and ``passed`` them.

    The shapes are (buckets,) and twice (buckets, modules). ``costs`` is what their visits took.
    """

    entered: Floats
    asked: Floats
    passed: Floats
    costs: BucketCosts

    @classmethod
    def none(cls, buckets: int, modules: int) -> BucketCounts:
        """Return counts of no rows."""
        asked, passed = np.zeros((2, buckets, modules))
        return cls(np.zeros(buckets), asked, passed, BucketCosts.none(buckets, modules))

    @property
    def rows(self) -> float:
        """Rows that have entered."""
        return float(self.entered.sum())

    def add(self, other: BucketCounts) -> None:
        """Add the counts of other rows."""
        self.entered += other.entered
        self.asked += other.asked
        self.passed += other.passed
        self.costs.add(other.costs)

    def fade(self, part: float) -> None:
        """Let only a part of the rows count."""
        self.entered *= part
        self.asked *= part
        self.passed *= part
        self.costs.fade(part)

    def together(self, groups: npt.NDArray[np.intp], size: int) -> BucketCounts:
        """Return the counts of groups of buckets; ``groups`` has the group of each bucket."""
        joined = BucketCounts.none(size, self.asked.shape[1])
        np.add.at(joined.entered, groups, self.entered)
        np.add.at(joined.asked, groups, self.asked)
        np.add.at(joined.passed, groups, self.passed)
        joined.costs = self.costs.together(groups, size)
        return joined

    def selectivities(self, before: BucketCounts | None = None) -> Floats:
        """Return by bucket and module the share that passes.

        Where few were asked it is as ``before``, or else as in other buckets.
        """
        if before is None:
            asked, passed = self.asked.sum(axis=0), self.passed.sum(axis=0)
            typical = (passed + 0.5) / (asked + 1.0)
        else:
            typical = before.selectivities()
        shares: Floats = (self.passed + BORROWED * typical) / (self.asked + BORROWED)
        return shares


class NotedVisit(NamedTuple):
    """A visit to a module: the tuples that it was given, those that it returned, and its cost.

    The cost is in the clock's unit.
    """

    module: int
    taken: TupleBatch
    results: Sequence[TupleBatch]
    cost: float


class Tally:
    """Visits added up, but for the buckets of their rows: these are of one column or another."""

    def __init__(
        self, visits: Sequence[NotedVisit], modules: int, start: int, costs: LearnedCosts
    ) -> None:
        """``start`` is the number of the first of the rows at hand."""
        taken: list[Places] = []
        entered: list[Places] = []
        passed: list[Places] = []
        modules_of: list[int] = []  # of those passed
        for visit in visits:
            rows = visit.taken.rows[0]
            if rows is None:
                raise ValueError(f"{visit.taken.signature} does not span the relation")
            taken.append(as_array(rows))
            if not visit.taken.signature.done:
                entered.append(taken[-1])
            for batch in visit.results:
                if (rows := batch.rows[0]) is not None:
                    passed.append(as_array(rows))
                    modules_of.append(visit.module)
        self._modules = modules
        self._of = np.array([visit.module for visit in visits], np.intp)
        self._sizes = np.array(list(map(len, taken)), np.intp)
        self._taken, self._entered, self._passed = map(_joined, (taken, entered, passed))
        self._passed_of = np.repeat(np.array(modules_of, np.intp), list(map(len, passed)))
        self._by_tuple = self._costs_by_tuple(visits, costs)
        # Rows come in their order, so the visits are to a stretch of them.
        first = int(self._taken.min()) if len(self._taken) else start
        self._stretch = slice(first - start, int(self._taken.max(initial=first)) + 1 - start)
        self._taken -= first
        self._entered -= first
        self._passed -= first

    def of(self, values: Values) -> Values:
        """Return those of the values of all rows at hand that :meth:`add_to` is to be told of."""
        return values[self._stretch]

    def add_to(self, counts: BucketCounts, buckets: Places) -> None:
        """Add the visits to counts by the bucket of each row of the stretch."""
        size, modules = len(counts.entered), self._modules
        counts.entered += np.bincount(buckets[self._entered], minlength=size)
        taken = buckets[self._taken]
        asked = taken * modules + np.repeat(self._of, self._sizes)
        passed = buckets[self._passed] * modules + self._passed_of
        counts.asked += np.bincount(asked, minlength=size * modules).reshape(size, modules)
        counts.passed += np.bincount(passed, minlength=size * modules).reshape(size, modules)
        if self._by_tuple is None:
            return
        visits = len(self._sizes)
        visit_of = np.repeat(np.arange(visits), self._sizes)
        cells = np.bincount(visit_of * size + taken, minlength=visits * size)
        tuples = cells.reshape(visits, size).astype(np.float64)
        for module in range(modules):
            own = np.flatnonzero(self._of == module)
            if len(own):
                counts.costs.learn(module, tuples[own], self._by_tuple[own])

    def _costs_by_tuple(self, visits: Sequence[NotedVisit], costs: LearnedCosts) -> Floats | None:
        """Return a tuple's cost in each visit, as a multiple of what is usual at the module."""
        usual = usual_costs(costs, self._modules)
        if usual is None:
            return None
        took = np.array([visit.cost for visit in visits])
        by_itself = np.array([costs.models[module].per_visit for module in range(self._modules)])
        of_tuples = np.maximum(took - by_itself[self._of], LEAST_OF_A_VISIT * took)
        by_tuple: Floats = of_tuples / self._sizes / usual[self._of]
        return by_tuple


def usual_costs(costs: LearnedCosts, modules: int) -> Floats | None:
    """Return what a tuple costs at each module; None as long as that is not known of all."""
    known = [costs.models[module].per_tuple for module in range(modules)]
    if any(cost is None for cost in known):
        return None
    return np.maximum(np.array(known, np.float64), 1e-12)


def _joined(parts: list[Places]) -> Places:
    """Return row numbers end to end, as an array of their own."""
    return np.concatenate(parts) if parts else np.zeros(0, np.intp)
