"""The hypercube shuffle: one shuffle in which all inputs of a join block meet.

Cells are the points of a grid with one dimension for each class of columns that the query sets
equal, and one for each input by itself (Afrati and Ullman, EDBT 2010). A row goes to every
cell whose coordinates agree with the hashes of its own columns, so that rows that join meet
in exactly one cell. Plain co-partitioning is a grid with a single dimension, a broadcast join one
whose only dimension is the largest input's own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.storage.key_words import KeyColumn
from eddyline.exchange.heavy_keys import HeavyKeys, Words

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio; other bits of the product than those that an index uses."""


class Dimension(NamedTuple):
    """One dimension of the grid: ``columns[i]`` is the column of input i that is hashed, or None.

    ``own`` is the input whose rows are dealt out along it one by one; None for a class.
    """

    columns: tuple[int | None, ...]
    own: int | None = None


class Span(NamedTuple):
    """Where rows go along one dimension: from coordinate ``start`` on to so many, round the end."""

    start: Words | int
    copies: npt.NDArray[np.int64] | int


class Placed(NamedTuple):
    """Some rows, None for all, and the cells that they go to: shape (rows, copies)."""

    rows: npt.NDArray[np.int64] | None
    cells: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Hypercube:
    """The grid of a query: ``shares[a]`` coordinates along ``dimensions[a]``."""

    dimensions: tuple[Dimension, ...]
    shares: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(self.shares)

    def copies(self, relation: int) -> int:
        """Return to how many cells a row of an input goes."""
        return math.prod(
            share
            for dimension, share in zip(self.dimensions, self.shares, strict=True)
            if not _splits(dimension, relation)
        )

    def cells_of(
        self, relation: int, words: Sequence[Words | None], rows: int, first: int
    ) -> npt.NDArray[np.int64]:
        """Return the cells of rows where no key is heavy: shape (rows, copies).

        ``words`` has for each dimension the hashed words of the rows' column, None where there is
        none. ``first`` is a number that tells these rows from others of their input.
        """
        ((_, cells),) = self.placed(relation, words, np.arange(first, first + rows))
        return cells

    def placed(
        self,
        relation: int,
        words: Sequence[Words | None],
        numbers: Words,
        heavy: Sequence[HeavyKeys | None] = (),
    ) -> list[Placed]:
        """Return the cells of rows, in groups of rows that go to equally many cells.

        ``words`` as for :meth:`cells_of`; ``numbers`` are numbers of the rows, by which they are
        dealt out. ``heavy`` has the heavy keys of each dimension.
        """
        rows = len(numbers)
        spans = [
            self._span(
                dimension, relation, words[dimension], numbers, heavy[dimension] if heavy else None
            )
            for dimension in range(len(self.dimensions))
        ]
        kinds = np.zeros(rows, np.int64)  # a number for each combination of copies
        for share, span in zip(self.shares, spans, strict=True):
            kinds = kinds * (share + 1) + span.copies
        if not rows or (kinds == kinds[0]).all():
            return [Placed(None, self._cells(spans, rows))]
        groups = []
        for kind in np.unique(kinds):
            own = np.flatnonzero(kinds == kind)
            parts = [Span(_of(span.start, own), _of(span.copies, own)) for span in spans]
            groups.append(Placed(own, self._cells(parts, len(own))))
        return groups

    def copied(
        self, relation: int, words: Sequence[Words | None], heavy: Sequence[HeavyKeys | None]
    ) -> npt.NDArray[np.bool_] | None:
        """Return which rows are copied since their keys are heavy; None where none are."""
        mask: npt.NDArray[np.bool_] | None = None
        for hashed, keys in zip(words, heavy, strict=True):
            if hashed is None or keys is None:
                continue
            at = keys.find(hashed)
            own = (at >= 0) & (keys.dealt[at] != relation)
            mask = own if mask is None else mask | own
        return mask if mask is not None and mask.any() else None

    def _span(
        self,
        number: int,
        relation: int,
        hashed: Words | None,
        numbers: Words,
        heavy: HeavyKeys | None,
    ) -> Span:
        dimension, share = self.dimensions[number], self.shares[number]
        if dimension.own == relation:
            return Span(numbers % share, 1)
        if hashed is None:
            return Span(0, share)
        start = coordinates(hashed, share)
        if heavy is None:
            return Span(start, 1)
        at = heavy.find(hashed)
        is_heavy = at >= 0
        mine = is_heavy & (heavy.dealt[at] == relation)
        # Mixed, or a key in every fourth row that is dealt to four places would go to one.
        dealt = _mixed(numbers) % heavy.spread[at]
        copies = np.where(is_heavy & ~mine, heavy.spread[at], 1)
        return Span(start + np.where(mine, dealt, 0), copies)

    def _cells(self, spans: Sequence[Span], rows: int) -> npt.NDArray[np.int64]:
        """Return the cells of rows that all go to as many: shape (rows, copies)."""
        cells = np.zeros((rows, 1), np.int64)
        for span, share in zip(spans, self.shares, strict=True):
            start = np.broadcast_to(span.start, (rows,))
            count = span.copies if isinstance(span.copies, int) else int(span.copies.max(initial=1))
            along = (start[:, None] + np.arange(count)[None, :]) % share
            copies = cells.shape[1] * along.shape[1]
            cells = (cells[:, :, None] * share + along[:, None, :]).reshape(rows, copies)
        return cells


def _of(values: Words | int, rows: npt.NDArray[np.int64]) -> Words | int:
    return values if isinstance(values, int) else values[rows]


def coordinates(words: npt.NDArray[np.int64], share: int) -> npt.NDArray[np.int64]:
    """Return the coordinate, from 0 to below ``share``, of each word."""
    return _mixed(words) % share


def _mixed(words: Words) -> npt.NDArray[np.int64]:
    """Return for each word a number from 0 to below 2^31 that looks random."""
    mixed = words.view(np.uint64) * GOLDEN
    mixed ^= mixed >> np.uint64(29)
    mixed *= GOLDEN
    return (mixed >> np.uint64(33)).astype(np.int64)


def plan_hypercube(graph: JoinGraph, sizes: Sequence[int], cells: int) -> Hypercube:
    """Return the grid of ``cells`` cells with the least data sent.

    ``sizes`` are those of the inputs, in any unit; where rows are looked up no size matters, and
    nothing of them is sent. Among grids that send the same the one
    with the fewest copies of the smallest inputs' rows in a cell is as good as any, so the
    first in a fixed order is taken.
    """
    count = len(sizes)
    scanned = [r for r, relation in enumerate(graph.query.relations) if relation.scan]
    dimensions = [
        Dimension(
            tuple(
                next((p.column for p in places if p.relation == r), None) if r in scanned else None
                for r in range(count)
            )
        )
        for places in graph.classes
        if any(place.relation in scanned for place in places)
    ]
    dimensions += [Dimension((None,) * count, own=r) for r in scanned]
    best = min(
        _splittings(cells, len(dimensions)),
        key=lambda shares: (
            _sent(dimensions, shares, sizes, scanned),
            sum(share > 1 for share in shares),
        ),
    )
    used = [
        (dimension, share) for dimension, share in zip(dimensions, best, strict=True) if share > 1
    ]
    return Hypercube(tuple(dimension for dimension, _ in used), tuple(share for _, share in used))


def _splits(dimension: Dimension, relation: int) -> bool:
    return dimension.own == relation or dimension.columns[relation] is not None


def _sent(
    dimensions: Sequence[Dimension],
    shares: Sequence[int],
    sizes: Sequence[int],
    scanned: Sequence[int],
) -> float:
    total = 0.0
    for relation in scanned:
        copies = 1
        for dimension, share in zip(dimensions, shares, strict=True):
            if share > 1 and not _splits(dimension, relation):
                copies *= share
        total += sizes[relation] * copies
    return total


def _splittings(cells: int, dimensions: int) -> list[tuple[int, ...]]:
    """Return all ways to write a number as a product along so many dimensions, two above 1 at most.

    Three dimensions with a share of 2 and more pay from 8 cells on only, and then seldom.
    """
    if cells == 1:
        return [(1,) * dimensions]
    splittings = []
    for dimension in range(dimensions):
        shares = [1] * dimensions
        shares[dimension] = cells
        splittings.append(tuple(shares))
    divisors = [d for d in range(2, cells) if cells % d == 0]
    for one, other in itertools.combinations(range(dimensions), 2):
        for share in divisors:
            shares = [1] * dimensions
            shares[one], shares[other] = share, cells // share
            splittings.append(tuple(shares))
    return splittings


def key_words(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return one word for each key; equal keys have equal words, on every side of a join."""
    column = KeyColumn(values.type)
    column.append(values)
    first, *others = column.words
    mixed = first.view(np.uint64)
    for word in others:
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        mixed = mixed + word.view(np.uint64)
    return mixed.view(np.int64)
