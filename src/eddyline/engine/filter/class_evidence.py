"""Columns that rows may be told apart by, and what rows did by what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.engine.filter.buckets import Buckets, buckets_for, can_tell_apart
from eddyline.engine.filter.class_counts import BucketCounts, Floats, Places, Tally

MOST_COLUMNS: Final = 8
"""Columns that are looked at."""

MOST_ROWS: Final = 8192
"""Older rows that count, about: of more, each counts half."""

MOVED: Final = 0.25
"""Part of the rows that must be in other buckets than before for buckets to be made anew."""

TELLS_MOVED: Final = 256
"""Rows that tell this."""

MOST_RESTS: Final = 7
"""Looks that go by, at the most, before a column is looked at again that has shown nothing."""


@dataclass(slots=True)
class Evidence:
    """What rows did by bucket: before the last look, and since."""

    older: BucketCounts
    newer: BucketCounts

    @classmethod
    def none(cls, buckets: int, modules: int) -> Evidence:
        """Return evidence of no rows."""
        return cls(BucketCounts.none(buckets, modules), BucketCounts.none(buckets, modules))

    def forget(self) -> None:
        """Forget all rows."""
        self.older.fade(0.0)
        self.newer.fade(0.0)

    def grow_older(self) -> None:
        """Put the newer rows to the older ones."""
        self.older.add(self.newer)
        self.newer.fade(0.0)
        if self.older.rows > MOST_ROWS:
            self.older.fade(0.5)

    def together(self, groups: Places, size: int) -> Evidence:
        """Return the evidence by groups of buckets; ``groups`` has the group of each bucket."""
        return Evidence(self.older.together(groups, size), self.newer.together(groups, size))

    def all(self) -> BucketCounts:
        """Return what all rows did."""
        whole = BucketCounts.none(*self.older.asked.shape)
        whole.add(self.older)
        whole.add(self.newer)
        return whole


@dataclass(slots=True)
class Candidate:
    """A column in buckets; ``shares`` of the rows were in each when these were made.

    It ``rests`` for so many looks, which are ``left``, the longer the less it has shown.
    """

    column: int
    buckets: Buckets
    shares: Floats
    evidence: Evidence
    rests: int = 0
    left: int = 0

    def rest(self) -> None:
        """Stay out of some of the next looks, of more than the last time."""
        self.rests = self.left = min(2 * self.rests + 1, MOST_RESTS)

    def wake(self) -> None:
        """Take part in all looks again."""
        self.rests = self.left = 0

    @property
    def has_moved(self) -> bool:
        """Whether many of the newer rows are in other buckets than those of before."""
        newer = self.evidence.newer
        if newer.rows < TELLS_MOVED:
            return False
        moved = np.abs(newer.entered / newer.rows - self.shares).sum() / 2.0
        return bool(moved > MOVED)


class Candidates:
    """The columns of rows that can be told apart, each with its buckets, where it has any.

    Buckets are made from a batch of values, and anew where values have moved away from them: what
    was known by the old ones is forgotten.
    """

    def __init__(self, modules: int) -> None:
        self._modules = modules
        self._by_column: dict[int, Candidate | None] = {}
        self._looks = 0

    def __bool__(self) -> bool:
        """Whether there are any columns."""
        return bool(self._by_column)

    def take(self, columns: Sequence[pa.Array]) -> None:
        """Take columns by their types, once."""
        if not self._by_column:
            told = [c for c, values in enumerate(columns) if can_tell_apart(values.type)]
            self._by_column = dict.fromkeys(told[:MOST_COLUMNS])

    def awake(self) -> int:
        """Return how many columns take part in the next look."""
        return sum(c is None or not c.left for c in self._by_column.values())

    def looked_at(self) -> Iterator[Candidate]:
        """Yield the columns that take part in this look."""
        for candidate in self._by_column.values():
            if candidate is not None and not candidate.left:
                yield candidate

    def prepare(self, columns: Sequence[pa.Array]) -> None:
        """Make buckets for columns that have none, and for those whose values have moved."""
        for column, candidate in self._by_column.items():
            if candidate is not None and not (not candidate.left and candidate.has_moved):
                continue
            if candidate is None and self._looks & (self._looks - 1):  # less and less often
                continue
            made = buckets_for(columns[column])
            self._by_column[column] = None if made is None else self._made(column, *made)
        self._looks += 1

    def count(self, columns: Sequence[pa.Array], older: Tally | None, newer: Tally) -> None:
        """Count visits by bucket; those before, if any, for columns of which nothing is known."""
        for candidate in self.looked_at():
            evidence, values = candidate.evidence, columns[candidate.column]
            if older is not None and not evidence.older.rows:
                older.add_to(evidence.older, candidate.buckets.of(older.of(values)))
            newer.add_to(evidence.newer, candidate.buckets.of(newer.of(values)))

    def grow_older(self) -> None:
        """End a look."""
        for candidate in self._by_column.values():
            if candidate is not None:
                candidate.evidence.grow_older()
                candidate.left = max(candidate.left - 1, 0)

    def forget(self) -> None:
        """Forget what rows did."""
        for candidate in self._by_column.values():
            if candidate is not None:
                candidate.evidence.forget()
                candidate.wake()

    def _made(self, column: int, buckets: Buckets, shares: Floats) -> Candidate:
        evidence = Evidence.none(buckets.size, self._modules)
        return Candidate(column, buckets, shares, evidence)


@dataclass(slots=True)
class Active:
    """What rows are told apart by: the class, from 0 on, of each bucket of a column.

    The evidence is by class.
    """

    column: int
    buckets: Buckets
    groups: Places
    classes: int
    evidence: Evidence
