"""The hypercube shuffle: one shuffle in which all inputs of a join block meet.

Cells are the points of a grid with one axis for each class of columns that the query sets
equal, and one for each input by itself (Afrati and Ullman, EDBT 2010). A row goes to every
cell whose coordinates agree with the hashes of its own columns, so that rows that join meet
in exactly one cell. Plain co-partitioning is a grid with a single axis, a broadcast join one
whose only axis is the largest input's own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eddyline.query.join_graph import JoinGraph

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio; other bits of the product than those that an index uses."""


class Axis(NamedTuple):
    """One axis of the grid: ``columns[i]`` is the column of input i that is hashed, or None.

    ``own`` is the input whose rows are dealt out along it one by one; None for a class.
    """

    columns: tuple[int | None, ...]
    own: int | None = None


@dataclass(frozen=True)
class Hypercube:
    """The grid of a query: ``shares[a]`` coordinates along ``axes[a]``."""

    axes: tuple[Axis, ...]
    shares: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(self.shares)

    def copies(self, relation: int) -> int:
        """Return to how many cells a row of an input goes."""
        return math.prod(
            share
            for axis, share in zip(self.axes, self.shares, strict=True)
            if not _splits(axis, relation)
        )

    def cells_of(
        self, relation: int, words: Sequence[npt.NDArray[np.int64] | None], rows: int, first: int
    ) -> npt.NDArray[np.int64]:
        """Return the cells of rows: shape (rows, copies).

        ``words`` has for each axis the hashed words of the rows' column, None where there is
        none. ``first`` is a number that tells these rows from others of their input.
        """
        cells = np.zeros((rows, 1), np.int64)
        for axis, share, hashed in zip(self.axes, self.shares, words, strict=True):
            if share == 1:
                continue
            if axis.own == relation:
                along = ((np.arange(rows) + first) % share)[:, None]
            elif hashed is not None:
                along = coordinates(hashed, share)[:, None]
            else:
                along = np.arange(share)[None, :]
            copies = cells.shape[1] * along.shape[1]
            cells = (cells[:, :, None] * share + along[:, None, :]).reshape(rows, copies)
        return cells


def coordinates(words: npt.NDArray[np.int64], share: int) -> npt.NDArray[np.int64]:
    """Return the coordinate, from 0 to below ``share``, of each word."""
    mixed = words.view(np.uint64) * GOLDEN
    mixed ^= mixed >> np.uint64(29)
    mixed *= GOLDEN
    return ((mixed >> np.uint64(33)) % np.uint64(share)).astype(np.int64)


def plan_hypercube(graph: JoinGraph, sizes: Sequence[int], cells: int) -> Hypercube:
    """Return the grid of ``cells`` cells with the least data sent.

    ``sizes`` are those of the inputs, in any unit. Among grids that send the same the one
    with the fewest copies of the smallest inputs' rows in a cell is as good as any, so the
    first in a fixed order is taken.
    """
    count = len(sizes)
    axes = [
        Axis(
            tuple(
                next((place.column for place in places if place.relation == r), None)
                for r in range(count)
            )
        )
        for places in graph.classes
    ]
    axes += [Axis((None,) * count, own=r) for r in range(count)]
    best = min(
        _splittings(cells, len(axes)),
        key=lambda shares: (_sent(axes, shares, sizes), sum(share > 1 for share in shares)),
    )
    used = [(axis, share) for axis, share in zip(axes, best, strict=True) if share > 1]
    return Hypercube(tuple(axis for axis, _ in used), tuple(share for _, share in used))


def _splits(axis: Axis, relation: int) -> bool:
    return axis.own == relation or axis.columns[relation] is not None


def _sent(axes: Sequence[Axis], shares: Sequence[int], sizes: Sequence[int]) -> float:
    total = 0.0
    for relation, size in enumerate(sizes):
        copies = 1
        for axis, share in zip(axes, shares, strict=True):
            if share > 1 and not _splits(axis, relation):
                copies *= share
        total += size * copies
    return total


def _splittings(cells: int, axes: int) -> list[tuple[int, ...]]:
    """Return all ways to write a number as a product along so many axes, two above 1 at most.

    Three axes with a share of 2 and more pay from 8 cells on only, and then seldom.
    """
    if cells == 1:
        return [(1,) * axes]
    found = []
    for axis in range(axes):
        shares = [1] * axes
        shares[axis] = cells
        found.append(tuple(shares))
    divisors = [d for d in range(2, cells) if cells % d == 0]
    for one, other in itertools.combinations(range(axes), 2):
        for share in divisors:
            shares = [1] * axes
            shares[one], shares[other] = share, cells // share
            found.append(tuple(shares))
    return found
