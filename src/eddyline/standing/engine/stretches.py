"""Stretches of an attribute between the bounds of all predicates, each with its set of queries.

The index of CACQ's grouped filters, where what a tuple satisfies follows from the stretches that
its values lie in: looked up once an attribute, and intersected from memory. It pays where there
are few combinations of stretches; for the others see :mod:`eddyline.standing.engine.grids`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from eddyline.standing.engine import filter_kernels as kernels
from eddyline.standing.engine.axis import axis_of
from eddyline.standing.engine.boxes import Constraints, Integers
from eddyline.standing.engine.key_space import LEAST
from eddyline.standing.engine.lineage import Lineages, LineageSets, alike

MOST_COMBINATIONS: Final = 1 << 18
"""Combinations of stretches up to which intersections are found in memory: a quarter of a million.

A thousand queries with a range in one attribute have 2,001 stretches; tuples are looked up in
0.03 microseconds whatever they match. With ranges in two attributes there are 4 million
combinations, of which nearly every one is new, at a microsecond each.
"""

MOST_BITS: Final = 1 << 29
"""Stretches times queries, for which there is a bit each while the sets are made: 64 MB."""


class Stretches:
    """The queries of every stretch of every attribute, as numbers of sets."""

    def __init__(self, boxes: Constraints, attributes: int, sets: LineageSets) -> None:
        """Make the sets of boxes that are one a query."""
        self._queries = sets.number(boxes.queries.tolist())
        self._cuts: list[Integers] = []
        self._axes: list[tuple[Integers, npt.NDArray[np.int32]]] = []
        self._sets: list[Lineages] = []
        for attribute in range(attributes):
            self._add(boxes, attribute, sets)
        self.generation = sets.generation

    @staticmethod
    def pay(boxes: Constraints, attributes: int) -> bool:
        """Tell whether boxes, of which some query may have several, are worth such an index."""
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
            found = np.empty(len(words), np.int32)
            kernels.look_up(words, attribute, axis, cuts, buckets, numbers, found)
            lineages = found if lineages is None else sets.common(lineages, found)
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
    return np.unique(np.concatenate([[LEAST], boxes.least[its], after])).astype(np.int64)
