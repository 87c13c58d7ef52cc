"""Lineage: for which queries a tuple is still alive, as the number of a set of queries.

Krishnamurthy et al. (2004, Section 4.2) let every tuple carry a completion vector, "particularly
profligate in memory consumption: a bit per tuple per query". Here each distinct set is kept
once, and a tuple carries its number: see ``docs/decisions/0028-lineage-is-a-number.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from eddyline.standing.engine import lineage_kernels as kernels


@dataclass(frozen=True, slots=True)
class Satisfied:
    """The queries whose predicate a tuple satisfies, tuple by tuple, ascending.

    Those of tuple i are ``queries[begins[i] : ends[i]]``; those of different tuples do not
    overlap, and stand in no set order.
    """

    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    queries: npt.NDArray[np.int32]

    @classmethod
    def of_sizes(cls, sizes: npt.NDArray[np.int64], queries: npt.NDArray[np.int32]) -> Satisfied:
        """Return it for queries of tuples that stand end to end, so many a tuple."""
        ends = np.cumsum(sizes, dtype=np.int64)
        return cls(ends - sizes, ends, queries)


Lineages: TypeAlias = npt.NDArray[np.int32]
"""Numbers of sets, one a tuple."""

DEAD: Final = 0
"""The number of the empty set: no query wants the tuple any more."""

_Kind = TypeVar("_Kind", bound=np.generic)

FIRST_SETS: Final = 1 << 10
"""Sets that have room at first."""

BYTES_A_SET: Final = 8 + 1 + 8 + 24 + 8
"""Where it begins, its form, hash and span, and two slots."""

FIRST_PAIRS: Final = 1 << 12
"""Pairs whose intersection is remembered at first; of those that meet in a slot the last one is."""

MOST_PAIRS: Final = 1 << 20
"""Pairs that are remembered at the most: 12 MB."""


@dataclass(frozen=True, slots=True)
class LineageStatistics:
    """How many distinct sets are kept, their members in all, and the bytes that all takes."""

    sets: int
    members: int
    bytes: int


class LineageSets:
    """Sets of queries, each kept once under a number that stands for it; number 0 is empty.

    Two tuples have the same lineage exactly if they have the same number. Intersections are
    remembered by pair. Sets that no tuple has any more stay until :meth:`keep_only`.
    """

    def __init__(self) -> None:
        self.generation = 0
        """Counts how often sets have got other numbers."""
        self._clear()

    def _clear(self) -> None:
        self._starts = np.zeros(FIRST_SETS + 1, np.int64)
        self._bitmaps = np.zeros(FIRST_SETS, np.bool_)
        self._hashes = np.zeros(FIRST_SETS, np.uint64)
        self._words = np.empty(4 * FIRST_SETS, np.uint32)
        self._spans = np.zeros((FIRST_SETS, 3), np.int64)
        self._slots = np.full(4 * FIRST_SETS, -1, np.int32)
        self._counts = np.array([1, 0], np.int64)
        self._known = [_Pairs(), _Pairs(), _Pairs()]

    def __len__(self) -> int:
        """Return the number of sets, the empty one included."""
        return int(self._counts[0])

    def statistics(self) -> LineageStatistics:
        """Return what is kept."""
        every = np.arange(len(self), dtype=np.int32)
        nothing = np.empty(0, np.int64)
        members = int(self._spread(every, nothing, nothing))
        kept = self._kept()
        pairs = sum(known.pairs.nbytes + known.results.nbytes for known in self._known)
        return LineageStatistics(len(self), members, sum(part.nbytes for part in kept) + pairs)

    @property
    def nbytes(self) -> int:
        """Bytes that the sets themselves take: words, and what is known of each."""
        return int(self._starts[len(self)]) * 4 + BYTES_A_SET * len(self)

    @property
    def spans(self) -> npt.NDArray[np.int64]:
        """What tells, for most pairs of sets with nothing in common, that this is so."""
        return self._spans

    def number(self, queries: Iterable[int]) -> int:
        """Return the number of a set."""
        members = np.array(sorted(set(queries)), np.int32)
        return int(self.numbers(Satisfied.of_sizes(np.array([len(members)]), members))[0])

    def numbers(self, satisfied: Satisfied) -> Lineages:
        """Return the numbers of the sets of queries that tuples satisfy."""
        begins, ends = satisfied.begins, satisfied.ends
        numbers = np.empty(len(ends), np.int32)
        row = 0
        while True:
            row = kernels.number_sets(begins, ends, satisfied.queries, row, *self._kept(), numbers)
            if row == len(numbers):
                return numbers
            self._grow(int(ends[row] - begins[row]) + 2)

    def numbers_alone(self, queries: npt.NDArray[np.int64]) -> Lineages:
        """Return for each query the number of the set that has it alone."""
        alone = np.ones(len(queries), np.int64)
        return self.numbers(Satisfied.of_sizes(alone, queries.astype(np.int32)))

    def numbers_of_bits(self, bits: npt.NDArray[np.uint32]) -> Lineages:
        """Return the numbers of sets that are given as bitmaps, shape (sets, words)."""
        numbers = np.empty(len(bits), np.int32)
        row = 0
        while True:
            row = kernels.number_bits(bits, row, *self._kept(), numbers)
            if row == len(bits):
                return numbers
            self._grow(2 * bits.shape[1] + 2)

    def common(self, ones: Lineages, others: Lineages) -> Lineages:
        """Return what sets have in common, pair by pair."""
        return self._combined(kernels.COMMON, ones, others)

    def either(self, ones: Lineages, others: Lineages) -> Lineages:
        """Return what is in one set or the other, pair by pair."""
        return self._combined(kernels.EITHER, ones, others)

    def without(self, ones: Lineages, others: Lineages) -> Lineages:
        """Return what is in one set and not in the other, pair by pair."""
        return self._combined(kernels.WITHOUT, ones, others)

    def within(self, lineages: Lineages, queries: int) -> Lineages:
        """Return what sets have in common with one set of that number."""
        return self.common(lineages, alike(queries, len(lineages)))

    def members(self, number: int) -> npt.NDArray[np.int64]:
        """Return the queries of a set, ascending."""
        return self.spread(np.array([number], np.int32))[1]

    def spread(self, lineages: Lineages) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return pairs of a position and a query, ascending, for all members of sets."""
        nothing = np.empty(0, np.int64)
        room = self._spread(lineages, nothing, nothing)
        positions, members = np.empty(room, np.int64), np.empty(room, np.int64)
        if room:
            self._spread(lineages, positions, members)
        return positions, members

    def sizes(self, lineages: Lineages) -> npt.NDArray[np.int64]:
        """Return how many queries are in sets."""
        distinct, back = np.unique(lineages, return_inverse=True)
        positions, _ = self.spread(distinct.astype(np.int32))
        sizes: npt.NDArray[np.int64] = np.bincount(positions, minlength=len(distinct))[back]
        return sizes

    def keep_only(
        self, lineages: Iterable[Lineages], without: Collection[int] = ()
    ) -> npt.NDArray[np.int32]:
        """Forget all sets but these, and some queries in them; return the new number of each.

        Indexed by the number so far, :data:`DEAD` for a set that is forgotten or has no query
        left.
        """
        used = np.zeros(len(self), np.bool_)
        for numbers in lineages:
            used[numbers] = True
        kept = np.flatnonzero(used).astype(np.int32)
        positions, members = self.spread(kept)
        if without:
            stay = ~np.isin(members, np.array(sorted(without), np.int64))
            positions, members = positions[stay], members[stay]
        sizes = np.bincount(positions, minlength=len(kept))
        new = np.full(len(self), DEAD, np.int32)
        self._clear()
        self.generation += 1
        new[kept] = self.numbers(Satisfied.of_sizes(sizes, members.astype(np.int32)))
        return new

    def _combined(self, operation: int, ones: Lineages, others: Lineages) -> Lineages:
        numbers = np.empty(len(ones), np.int32)
        known, missed = self._known[operation], int(self._counts[1])
        row = 0
        while True:
            row, words = kernels.combine(
                operation, ones, others, row, *self._kept(), known.pairs, known.results, numbers
            )
            if row == len(ones):
                known.missed(int(self._counts[1]) - missed)
                return numbers
            self._grow(words)

    def _kept(self) -> tuple[npt.NDArray[Any], ...]:
        return (
            self._words,
            self._starts,
            self._bitmaps,
            self._hashes,
            self._spans,
            self._slots,
            self._counts,
        )

    def _spread(
        self,
        lineages: Lineages,
        positions: npt.NDArray[np.int64],
        members: npt.NDArray[np.int64],
    ) -> int:
        count: int = kernels.spread_members(
            lineages, self._starts, self._bitmaps, self._words, positions, members
        )
        return count

    def _grow(self, words: int) -> None:
        """Make room for some more sets, and so many words at least."""
        count = len(self)
        if count + 2 > len(self._bitmaps):
            self._starts = _doubled(self._starts)
            self._bitmaps = _doubled(self._bitmaps)
            self._hashes = _doubled(self._hashes)
            self._spans = _doubled(self._spans)
        if 2 * count + 2 > len(self._slots):
            self._slots = np.full(2 * len(self._slots), -1, np.int32)
            kernels.put_back(self._hashes, count, self._slots)
        while int(self._starts[count]) + words > len(self._words):
            self._words = _doubled(self._words)


class _Pairs:
    """The pairs of an operation that are remembered, and what became of them."""

    def __init__(self, slots: int = FIRST_PAIRS) -> None:
        self._make_room(slots)

    def missed(self, pairs: int) -> None:
        """Take note of pairs that were not remembered; make more room where they are many."""
        self._missed += pairs
        if self._missed > 2 * len(self.pairs) and len(self.pairs) < MOST_PAIRS:
            self._make_room(4 * len(self.pairs))

    def _make_room(self, slots: int) -> None:
        self.pairs = np.zeros(slots, np.uint64)
        self.results = np.zeros(slots, np.int32)
        self._missed = 0


class AskedBy:
    """The queries that ask for something, with the number of their set."""

    def __init__(self) -> None:
        self.queries: set[int] = set()
        self._known: tuple[int, int] | None = None

    def add(self, queries: Iterable[int]) -> None:
        """Take further queries."""
        self.queries.update(queries)
        self._known = None

    def remove(self, queries: Collection[int]) -> None:
        """Forget queries."""
        self.queries.difference_update(queries)
        self._known = None

    def number(self, sets: LineageSets) -> int:
        """Return the number of the set of queries."""
        known = self._known
        if known is None or known[0] != sets.generation:
            known = self._known = sets.generation, sets.number(self.queries)
        return known[1]

    def positions(self, lineages: Lineages, sets: LineageSets) -> npt.NDArray[np.int64]:
        """Return the positions of tuples that are alive for a query that asks."""
        return np.flatnonzero(sets.within(lineages, self.number(sets)) != DEAD)


def alike(number: int, tuples: int) -> Lineages:
    """Return the same lineage for so many tuples, in no memory of its own."""
    return np.broadcast_to(np.int32(number), (tuples,))


def _doubled(array: npt.NDArray[_Kind]) -> npt.NDArray[_Kind]:
    return np.concatenate([array, np.zeros_like(array)])
