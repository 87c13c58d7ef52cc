"""Grouped filters: one index over the predicates of all queries, a vector of tuples at a time.

Madden, Shah, Hellerstein and Raman (2002, Section 3.2.1); Krishnamurthy et al. (2004,
Section 4.3): "when it receives a new tuple, it efficiently probes the index to identify all
registered clauses that it fails".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from eddyline.distinct_values import distinct
from eddyline.expressions import Expression
from eddyline.expressions.vector import Scope
from eddyline.standing.engine import filter_kernels as kernels
from eddyline.standing.engine.boxes import Boxes, Constraints, Integers, axis_of
from eddyline.standing.engine.grids import Grids, grids_over
from eddyline.standing.engine.key_space import LEAST
from eddyline.standing.engine.lineage import Lineages, LineageSets, Satisfied, alike
from eddyline.standing.engine.ranges import Box

MOST_COMBINATIONS: Final = 1 << 18
"""Combinations of stretches up to which intersections are found in memory: a quarter of a million.

A thousand queries with a range in one attribute have 2,001 stretches; tuples are looked up in
0.03 microseconds whatever they match. With ranges in two attributes there are 4 million
combinations, nearly every one of them new, at a microsecond each.
"""

MOST_BITS: Final = 1 << 29
"""Stretches times queries: each takes a bit while the sets are made, 64 MB in all."""


class Stretches:
    """Stretches of attributes between the bounds of all predicates, each with its set of queries.

    The index of CACQ's grouped filters (Madden, Shah, Hellerstein and Raman, 2002, Section 3.2.1),
    where what a tuple satisfies follows from the stretches that its values lie in: looked up once
    an attribute, and intersected from memory. It pays where there are few combinations of
    stretches; for the others see :mod:`eddyline.standing.engine.grids`.
    """

    def __init__(self, boxes: Constraints, attributes: int, sets: LineageSets) -> None:
        """Of ``boxes`` no query has several: see :meth:`pay`."""
        self._queries = sets.number(boxes.queries.tolist())
        self._cuts: list[Integers] = []
        self._axes: list[tuple[Integers, npt.NDArray[np.int32]]] = []
        self._sets: list[Lineages] = []
        for attribute in range(attributes):
            self._add(boxes, attribute, sets)
        self.generation = sets.generation

    @staticmethod
    def pay(boxes: Constraints, attributes: int) -> bool:
        """Tell whether boxes are worth such an index; some query may have several of them."""
        if (np.diff(boxes.queries) == 0).any():
            return False
        combinations, bits = 1, 0
        highest = int(boxes.queries[-1]) + 1 if len(boxes.queries) else 0
        for attribute in range(attributes):
            cuts = _cuts(boxes, np.flatnonzero(boxes.attributes == attribute))
            combinations *= len(cuts) + 1
            bits += (len(cuts) + 1) * highest
        return combinations <= MOST_COMBINATIONS and bits <= MOST_BITS

    def lineages(self, words: Integers, sets: LineageSets) -> Lineages:
        """Return the numbers of the sets of queries that tuples satisfy, by their words."""
        if not len(words):
            return np.empty(0, np.int32)
        lineages = None
        for attribute, (cuts, (axis, buckets), numbers) in enumerate(
            zip(self._cuts, self._axes, self._sets, strict=True)
        ):
            attribute_sets = np.empty(len(words), np.int32)
            kernels.look_up(words, attribute, axis, cuts, buckets, numbers, attribute_sets)
            lineages = attribute_sets if lineages is None else sets.common(lineages, attribute_sets)
        return alike(self._queries, len(words)) if lineages is None else lineages

    def _add(self, boxes: Constraints, attribute: int, sets: LineageSets) -> None:
        its = np.flatnonzero(boxes.attributes == attribute)
        cuts = _cuts(boxes, its)
        queries = boxes.queries[boxes.box_of[its]]
        first = np.searchsorted(cuts, boxes.least[its], "right")
        last = np.searchsorted(cuts, boxes.greatest[its], "right")
        others = np.setdiff1d(boxes.queries, queries)  # that ask nothing of this attribute
        some = last >= first
        toggles = np.concatenate([first[some], last[some] + 1, np.zeros(len(others), np.int64)])
        members = np.concatenate([queries[some], queries[some], others]).astype(np.int64)
        width = (int(boxes.queries[-1]) >> 5) + 1 if len(boxes.queries) else 1
        bits = np.zeros((len(cuts) + 2, width), np.uint32)
        np.bitwise_xor.at(
            bits, (toggles, members >> 5), np.uint32(1) << (members & 31).astype(np.uint32)
        )
        np.bitwise_xor.accumulate(bits, axis=0, out=bits)
        self._sets.append(sets.numbers_of_bits(bits[:-1]))
        self._cuts.append(cuts)
        self._axes.append(axis_of(attribute, cuts))


def _cuts(boxes: Constraints, its: Integers) -> Integers:
    """Return the words at which a stretch begins; NULL is a stretch of its own."""
    greatest = boxes.greatest[its]
    after = greatest[greatest < np.iinfo(np.int64).max] + 1
    return distinct(np.concatenate([[LEAST], boxes.least[its], after]).astype(np.int64))


MATCHES_A_TUPLE = 4
"""Matches of a tuple for which there is room at first; the room doubles until all have some."""

MANY_ENTRIES = 1 << 19
"""Entries of all lists, 2 MB, from which on tuples are worked off in the order of their cells."""

MANY_TUPLES = 1 << 10
"""Tuples from which on that pays: it takes one pass over all cells."""

MORE = 1.25
"""Room for matches, over what the vector before had: fresh memory costs as much as a match."""


@dataclass(frozen=True, slots=True)
class _Index:
    grids: Grids
    several: bool

    @property
    def first_grid(self) -> tuple[int, int]:
        """The first cell of the first grid, and how many it has."""
        first = self.grids.grids[:2, kernels.FIRST_LIST].tolist()
        return first[0], (first[1] if len(first) > 1 else len(self.grids.starts) - 1) - first[0]


class GroupedFilter:
    """The predicates of queries over the rows of one relation.

    Queries are known by number and may come and go between vectors; the index is made anew at
    the next one. Each predicate is evaluated once a tuple at the most, and only where the cell
    that the tuple lies in does not decide it. Time grows with the matches of a tuple, not with
    the queries.
    """

    def __init__(self, boxes: Mapping[int, Sequence[Box]] | None = None) -> None:
        self._boxes = Boxes()
        self._index: _Index | None = None
        self._stretches: Stretches | None = None
        self._uses_stretches: bool | None = None
        self._usual: float = MATCHES_A_TUPLE
        if boxes:
            self.add(boxes)

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self._boxes)

    def __contains__(self, query: object) -> bool:
        """Tell whether a query is here."""
        return query in self._boxes

    @property
    def attributes(self) -> tuple[Expression, ...]:
        """What is computed of a tuple, once for all queries."""
        return tuple(attribute.expression for attribute in self._boxes.attributes)

    @property
    def nbytes(self) -> int:
        """Bytes held by the index."""
        return self._indexed().grids.nbytes

    def add(self, boxes: Mapping[int, Sequence[Box]]) -> None:
        """Take further queries; ValueError for one that is here already."""
        self._boxes.add(boxes)
        self._changed()

    def remove(self, queries: Collection[int]) -> None:
        """Forget queries; ValueError for one that is not here."""
        self._boxes.remove(queries)
        self._changed()

    def prepare(self) -> None:
        """Make the index now, if queries came or went since it was made."""
        self._indexed()

    def satisfied(self, scope: Scope) -> Satisfied:
        """Return the queries whose predicate is TRUE for the rows of a scope."""
        return self.satisfied_by(self.words(scope))

    def lineages(self, scope: Scope, sets: LineageSets) -> Lineages:
        """Return the numbers of the sets of queries whose predicate is TRUE for rows."""
        return self.lineages_of(self.words(scope), sets)

    def lineages_of(self, words: Integers, sets: LineageSets) -> Lineages:
        """Return the numbers of the sets of queries whose predicate is TRUE for these words."""
        stretches = self._stretches
        if self._uses_stretches is None:
            boxes = self._boxes.constraints()
            self._uses_stretches = Stretches.pay(boxes, len(self._boxes.attributes))
        if not self._uses_stretches:
            return sets.numbers(self.satisfied_by(words))
        if stretches is None or stretches.generation != sets.generation:
            boxes = self._boxes.constraints()
            stretches = Stretches(boxes, len(self._boxes.attributes), sets)
            self._stretches = stretches
        return stretches.lineages(words, sets)

    def words(self, scope: Scope) -> Integers:
        """Return the attributes of rows as words, shape (rows, attributes)."""
        return self._boxes.words(scope)

    def satisfied_by(self, words: Integers) -> Satisfied:
        """Return the queries whose predicate is TRUE for rows with these words."""
        index = self._indexed()
        grids = index.grids
        cells = np.empty((len(words), len(grids.grids)), np.int64)
        kernels.find_cells(words, grids.grids, grids.axes, grids.cuts, grids.buckets, cells)
        order = np.arange(len(words), dtype=np.int32)
        if len(grids.entries) > MANY_ENTRIES and len(words) > MANY_TUPLES:
            kernels.sort_by_cell(cells, *index.first_grid, order)
        begins, ends = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
        matches = np.empty(int(self._usual * len(words)) + len(grids.queries), np.int32)
        done = count = 0
        while True:
            done, count = kernels.match(
                words,
                order,
                done,
                cells,
                grids.grids,
                grids.axes,
                grids.starts,
                grids.entries,
                grids.bounds,
                grids.queries,
                grids.rest_starts,
                grids.rest_attributes,
                grids.rest_bounds,
                index.several,
                begins,
                ends,
                count,
                matches,
            )
            if done == len(words):
                self._usual = MORE * count / max(done, 1) + 1
                return Satisfied(begins, ends, matches[:count])
            matches = np.concatenate([matches[:count], np.empty(len(matches), np.int32)])

    def _changed(self) -> None:
        self._index = self._stretches = self._uses_stretches = None

    def _indexed(self) -> _Index:
        if self._index is None:
            boxes = self._boxes.constraints()
            grids = grids_over(boxes, len(self._boxes.attributes))
            doubles = bool((np.diff(boxes.queries) == 0).any())
            self._index = _Index(grids, doubles or len(grids.grids) > 1)
        return self._index
