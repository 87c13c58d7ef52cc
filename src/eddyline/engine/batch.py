"""Tuple batches: vectors of tuples that share one signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from eddyline.engine.signature import Signature

Rows: TypeAlias = "range | npt.NDArray[np.int64]"
"""Row numbers of a relation: a range where they are contiguous, else an int64 array.

A range costs nothing to make or to cut, and lets a module slice a column
instead of gathering it; new input always is one.
"""


Marks: TypeAlias = "int | npt.NDArray[np.int64] | None"
"""One number for all tuples of a batch, or one a tuple; None stands for no limit."""


@dataclass(slots=True, eq=False)  # not frozen: that makes 0.3 microseconds of making one 1.0
class TupleBatch:
    """Tuples of one signature, as row numbers into the row store of each relation.

    This is the array of pointers of Deshpande (2004, Section 2.2), turned into
    columns: ``rows[r]`` has one entry a tuple, the number of its component in
    relation ``r``; None where the signature does not span ``r``. Values stay in
    the stores until a module needs them.

    ``timestamps`` say when the last component of a tuple was built into its SteM, None
    where one was not: that is the timestamp infinity. ``last_match`` is the number of the
    first row of the probe completion table that a prior prober has not seen (TimeStamp
    and LastMatchTimeStamp of Raman, Deshpande and Hellerstein, 2003, Section 3.5, as
    row numbers). ``lineage`` has for each tuple the number of the set of queries for which it is
    still alive, where many queries share an eddy (Krishnamurthy et al., 2004, Section 4.2).
    """

    signature: Signature
    rows: tuple[Rows | None, ...]
    timestamps: Marks = None
    last_match: Marks = None
    lineage: npt.NDArray[np.int32] | None = None

    def __len__(self) -> int:
        """Return the number of tuples."""
        for rows in self.rows:
            if rows is not None:
                return len(rows)
        return 0

    def cut(self, count: int) -> tuple[TupleBatch, TupleBatch]:
        """Return the first ``count`` tuples and the others."""
        return self._part(slice(None, count)), self._part(slice(count, None))

    def keep(self, mask: npt.NDArray[np.bool_], signature: Signature) -> TupleBatch:
        """Return the tuples where ``mask`` is set, under another signature."""
        return self.at(np.flatnonzero(mask), signature)

    def at(self, positions: npt.NDArray[np.int64], signature: Signature) -> TupleBatch:
        """Return the tuples at ``positions``, which ascend and do not repeat."""
        return TupleBatch(
            signature,
            tuple([None if rows is None else pick(rows, positions) for rows in self.rows]),
            _marks(self.timestamps, positions),
            _marks(self.last_match, positions),
            None if self.lineage is None else self.lineage[positions],
        )

    def under(self, signature: Signature) -> TupleBatch:
        """Return the same tuples under another signature."""
        return TupleBatch(signature, self.rows, self.timestamps, self.last_match, self.lineage)

    def _part(self, part: slice) -> TupleBatch:
        return TupleBatch(
            self.signature,
            tuple([None if rows is None else rows[part] for rows in self.rows]),
            _marks(self.timestamps, part),
            _marks(self.last_match, part),
            None if self.lineage is None else self.lineage[part],
        )


def _marks(marks: Marks, part: slice | npt.NDArray[np.int64]) -> Marks:
    return marks[part] if isinstance(marks, np.ndarray) else marks


def pick(rows: Rows, positions: npt.NDArray[np.int64]) -> Rows:
    """Return the row numbers at ``positions``, which ascend and do not repeat.

    The same object where that is all of them.
    """
    if len(positions) == len(rows):
        return rows
    if isinstance(rows, range):
        return positions + rows.start if rows.start else positions
    return rows[positions]


def spread(rows: Rows, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the row numbers at ``positions``, any number of times each."""
    if isinstance(rows, range):
        return positions + rows.start if rows.start else positions
    return rows[positions]


def as_array(rows: Rows) -> npt.NDArray[np.int64]:
    """Return row numbers as an int64 array."""
    if isinstance(rows, range):
        return np.arange(rows.start, rows.stop, dtype=np.int64)
    return rows


def concatenate(batches: list[TupleBatch]) -> TupleBatch:
    """Return batches of one signature as one batch, in the order given."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    return TupleBatch(
        first.signature,
        tuple(
            None if rows is None else _joined([batch.rows[r] for batch in batches])
            for r, rows in enumerate(first.rows)
        ),
        _joined_marks(batches, [batch.timestamps for batch in batches]),
        _joined_marks(batches, [batch.last_match for batch in batches]),
        _joined_lineages([batch.lineage for batch in batches]),
    )


def _joined_marks(batches: list[TupleBatch], marks: list[Marks]) -> Marks:
    """Return the marks of batches end to end.

    Batches of one signature all have a mark or all have none: whether a component is
    built and whether a tuple is a prior prober is part of the signature.
    """
    first = marks[0]
    if not isinstance(first, np.ndarray) and all(
        not isinstance(mark, np.ndarray) and mark == first for mark in marks
    ):
        return first
    return np.concatenate(
        [
            mark if isinstance(mark, np.ndarray) else np.full(len(batch), mark, np.int64)
            for batch, mark in zip(batches, marks, strict=True)
        ]
    )


def _joined_lineages(
    lineages: list[npt.NDArray[np.int32] | None],
) -> npt.NDArray[np.int32] | None:
    """Return the lineages of batches end to end; all of them have one, or none."""
    present = [lineage for lineage in lineages if lineage is not None]
    return np.concatenate(present) if present else None


def _joined(parts: list[Rows | None]) -> Rows:
    present = [part for part in parts if part is not None]
    start = present[0]
    if isinstance(start, range):
        stop = start.stop
        for part in present[1:]:
            if not isinstance(part, range) or part.start != stop:
                break
            stop = part.stop
        else:
            return range(start.start, stop)
    return np.concatenate([as_array(part) for part in present])
