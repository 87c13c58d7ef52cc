"""Grids over one or two attributes that list, cell by cell, the boxes with a part of it.

A query index for queries that ask for little: a tuple's cell names a few candidates, and what
the cell leaves open is checked. A list of all queries, or a bitmap of them for each stretch of
each attribute, grows with the queries; candidates grow with the matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from eddyline.distinct_values import distinct
from eddyline.standing.engine import filter_kernels as kernels
from eddyline.standing.engine.boxes import Constraints, Integers, axis_of

MOST_GRIDS: Final = 32
"""Grids that every tuple is looked up in, 40 nanoseconds each. Rare pairs share one by force."""

CELLS_A_BOX: Final = 8
"""Cells that a box of the usual width has along an axis: four fifths of them it fills whole."""

MOST_CELLS: Final = 1 << 17
"""Cells of a grid: the starts of their lists take half a megabyte."""

MOST_ENTRIES: Final = 1 << 24
"""Entries of all lists of a grid: 64 MB."""

NO_AXIS: Final = -1


@dataclass(frozen=True, slots=True)
class Grids:
    """What the kernel ``filter_kernels.match`` looks up, one array of each for all."""

    grids: Integers
    axes: Integers
    cuts: Integers
    buckets: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]
    entries: npt.NDArray[np.int32]
    bounds: Integers
    queries: npt.NDArray[np.int32]
    rest_starts: Integers
    rest_attributes: npt.NDArray[np.int32]
    rest_bounds: Integers

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis of a grid, and where its boxes lie on it."""

    attribute: int
    cuts: Integers
    low: Integers  # of each box, the first cell
    high: Integers  # and the last
    whole_low: npt.NDArray[np.bool_]
    whole_high: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Extent:
    """The ranges of some boxes in one attribute: from ``least`` to before ``after``."""

    attribute: int
    least: Integers
    greatest: Integers
    ends: Integers  # the words at which a range begins, or has just ended; distinct, ascending

    @classmethod
    def of(cls, attribute: int, least: Integers, greatest: Integers) -> _Extent:
        after = greatest[greatest < np.iinfo(np.int64).max] + 1
        return cls(attribute, least, greatest, distinct(np.concatenate([least, after])))

    def widths(self) -> npt.NDArray[np.float64]:
        """Return the share of all stretches between ends that each range covers."""
        first = np.searchsorted(self.ends, self.least, "right")
        last = np.searchsorted(self.ends, self.greatest, "right")
        widths: npt.NDArray[np.float64] = np.maximum(last - first + 1, 0) / (len(self.ends) + 1)
        return widths

    def cut(self, cells: int) -> _Axis:
        """Return an axis of so many cells at the most."""
        wanted = min(cells - 1, len(self.ends))
        at = np.linspace(0, len(self.ends) - 1, wanted).round().astype(np.int64)
        cuts = self.ends[at] if wanted > 1 else self.ends[len(self.ends) // 2 :][:wanted]
        low = np.searchsorted(cuts, self.least, "right")
        high = np.searchsorted(cuts, self.greatest, "right")
        begins = np.concatenate([[np.iinfo(np.int64).min], cuts])
        ends = np.concatenate([cuts - 1, [np.iinfo(np.int64).max]])
        return _Axis(
            self.attribute,
            cuts,
            low,
            high,
            self.least <= begins[low],
            self.greatest >= ends[high],
        )


def grids_over(boxes: Constraints, attributes: int) -> Grids:
    """Return grids that have every box in exactly one of them.

    Building takes time in proportion to the entries; a box has up to a hundred of them.
    """
    built = _Building(boxes)
    for chosen, pair in _groups(boxes, attributes):
        built.add(chosen, [attribute for attribute in pair if attribute != NO_AXIS])
    return built.grids()


def _groups(boxes: Constraints, attributes: int) -> Iterator[tuple[Integers, tuple[int, int]]]:
    """Yield the boxes that are looked up by the same pair of attributes, with that pair."""
    pairs = _most_selective(boxes, attributes)
    for keep in (2, 1, 0):  # axes of a box in a rare company
        codes = (pairs[:, 0] - NO_AXIS) * (attributes + 1) + pairs[:, 1] - NO_AXIS
        keys, group, sizes = np.unique(codes, return_inverse=True, return_counts=True)
        if len(keys) <= MOST_GRIDS:
            break
        rare = np.argsort(-sizes, kind="stable")[MOST_GRIDS // 2 :]
        pairs[np.isin(group, rare), max(keep - 1, 0) :] = NO_AXIS
    for number, code in enumerate(keys.tolist()):
        one, other = divmod(code, attributes + 1)
        yield np.flatnonzero(group == number), (one + NO_AXIS, other + NO_AXIS)


def _most_selective(boxes: Constraints, attributes: int) -> Integers:
    """Return for each box the attributes of its two narrowest ranges, the narrowest first.

    Shape (boxes, 2); a pair comes in one order only where both are as narrow as usual.
    """
    box_of = boxes.box_of
    narrow = np.ones(len(box_of))
    usual = np.ones(attributes + 1)
    for attribute in range(attributes):
        its = np.flatnonzero(boxes.attributes == attribute)
        if len(its):
            narrow[its] = _Extent.of(attribute, boxes.least[its], boxes.greatest[its]).widths()
            usual[attribute] = np.median(narrow[its])
    order = np.lexsort((boxes.attributes, narrow, box_of))
    place = np.arange(len(order)) - boxes.starts[box_of[order]]
    pairs = np.full((len(boxes.queries), 2), NO_AXIS, np.int64)
    for rank in range(2):
        at = order[place == rank]
        pairs[box_of[at], rank] = boxes.attributes[at]
    both = pairs[:, 1] != NO_AXIS
    swap = both & (
        (usual[pairs[:, 1]] < usual[pairs[:, 0]])
        | ((usual[pairs[:, 1]] == usual[pairs[:, 0]]) & (pairs[:, 1] < pairs[:, 0]))
    )
    pairs[swap] = pairs[swap][:, ::-1]
    return pairs


class _Building:
    """Grids so far."""

    def __init__(self, boxes: Constraints) -> None:
        self._boxes = boxes
        self._box_of = boxes.box_of
        self._bounds = np.empty((len(boxes.queries), 4), np.int64)
        self._bounds[:, 0::2] = np.iinfo(np.int64).min
        self._bounds[:, 1::2] = np.iinfo(np.int64).max
        self._on_axis = np.zeros(len(self._box_of), np.bool_)  # constraints that bounds say
        self._grids: list[tuple[int, int, int, int]] = []
        self._axes: list[Integers] = []
        self._cuts: list[Integers] = []
        self._buckets: list[npt.NDArray[np.int32]] = []
        self._starts: list[npt.NDArray[np.int32]] = []
        self._entries: list[npt.NDArray[np.int32]] = []
        self._cells = 0
        self._listed = 0
        self._made_cuts = 0

    def grids(self) -> Grids:
        """Return all of them."""
        boxes, rest = self._boxes, np.flatnonzero(~self._on_axis)
        sizes = np.bincount(self._box_of[rest], minlength=len(boxes.queries))
        return Grids(
            np.array(self._grids, np.int64).reshape(-1, 4),
            np.array(self._axes, np.int64).reshape(-1, 5),
            np.concatenate([np.empty(0, np.int64), *self._cuts]),
            np.concatenate([np.empty(0, np.int32), *self._buckets]),
            np.concatenate([*self._starts, np.array([self._listed], np.int32)]),
            np.concatenate([np.empty(0, np.int32), *self._entries]),
            self._bounds,
            boxes.queries,
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            boxes.attributes[rest],
            np.stack([boxes.least[rest], boxes.greatest[rest]], axis=1),
        )

    def add(self, chosen: Integers, attributes: list[int]) -> None:
        """Add a grid of the chosen boxes over attributes, two at the most."""
        boxes = self._boxes
        mine = np.zeros(len(boxes.queries), np.bool_)
        mine[chosen] = True
        extents = []
        for place, attribute in enumerate(attributes):
            its = np.flatnonzero((boxes.attributes == attribute) & mine[self._box_of])
            self._on_axis[its] = True
            least, greatest = boxes.least[its], boxes.greatest[its]
            self._bounds[chosen, 2 * place] = least
            self._bounds[chosen, 2 * place + 1] = greatest
            extents.append(_Extent.of(attribute, least, greatest))
        axes = [extent.cut(cells) for extent, cells in zip(extents, _cells(extents), strict=True)]
        while len(axes) < 2:  # noqa: PLR2004 - axes of a grid
            axes.append(_one_cell(len(chosen)))
        checked = np.diff(boxes.starts)[chosen] > len(attributes)
        self._list(chosen, axes, checked)

    def _list(self, boxes: Integers, axes: list[_Axis], checked: npt.NDArray[np.bool_]) -> None:
        one, other = map(self._axis, axes)
        width = len(axes[1].cuts) + 1
        cells = (len(axes[0].cuts) + 1) * width
        given = (
            boxes,
            np.stack([axis.low for axis in axes], axis=1),
            np.stack([axis.high for axis in axes], axis=1),
            np.stack([axis.whole_low for axis in axes], axis=1),
            np.stack([axis.whole_high for axis in axes], axis=1),
            checked,
            width,
        )
        sizes = np.zeros(cells, np.int32)
        nothing = np.empty(0, np.int32)
        kernels.list_boxes(*given, sizes, 0, nothing, False)  # noqa: FBT003 - a kernel
        ends = np.cumsum(sizes, dtype=np.int32)
        starts = ends - sizes
        entries = np.empty(int(ends[-1]), np.int32)
        kernels.list_boxes(*given, starts.copy(), 0, entries, True)  # noqa: FBT003 - a kernel
        self._grids.append((one, other, self._cells, int(checked.any())))
        self._starts.append(starts + np.int32(self._listed))
        self._entries.append(entries)
        self._cells += cells
        self._listed += len(entries)

    def _axis(self, axis: _Axis) -> int:
        """Add an axis, and return its number."""
        cuts = axis.cuts
        number = len(self._axes)
        row, buckets = axis_of(axis.attribute, cuts)
        row[kernels.FIRST_CUT] = self._made_cuts
        row[kernels.FIRST_BUCKET] = number * len(buckets)
        self._axes.append(row)
        self._cuts.append(cuts)
        self._buckets.append(buckets)
        self._made_cuts += len(cuts)
        return number


def _one_cell(boxes: int) -> _Axis:
    """Return an axis along which boxes are not told apart."""
    cell, whole = np.zeros(boxes, np.int64), np.ones(boxes, np.bool_)
    return _Axis(0, np.empty(0, np.int64), cell, cell, whole, whole)


def _cells(extents: list[_Extent]) -> list[int]:
    """Return how many cells each axis of a grid gets."""
    widths = [extent.widths() for extent in extents]
    cells = [
        min(int(CELLS_A_BOX / max(float(np.median(width)), 1e-9)) + 1, len(extent.ends) + 1)
        for extent, width in zip(extents, widths, strict=True)
    ]

    def entries() -> float:
        parts = np.ones(len(widths[0])) if widths else np.zeros(0)
        for width, count in zip(widths, cells, strict=True):
            parts = parts * (width * count + 1)
        return float(parts.sum())

    while cells and max(cells) > 1 and (np.prod(cells) > MOST_CELLS or entries() > MOST_ENTRIES):
        largest = cells.index(max(cells))
        cells[largest] = max(cells[largest] * 3 // 4, 1)
    return cells
