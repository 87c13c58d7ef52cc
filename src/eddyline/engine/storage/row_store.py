"""Where the values of a relation's tuples are kept: Arrow columns, by row number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Rows


class RowStore:
    """The columns of one relation; row numbers go on rising as rows are appended.

    Append-only at the back, evictable at the front. A filter block appends one
    batch, drains its eddy and evicts it, so that a store mostly holds one batch.
    """

    def __init__(self) -> None:
        """Make an empty store."""
        self._columns: list[pa.Array] = []
        self._first = 0
        self._stop = 0

    def __len__(self) -> int:
        """Return the number of rows held."""
        return self._stop - self._first

    def append(self, columns: Sequence[pa.Array], rows: int) -> range:
        """Add rows at the back and return their numbers."""
        if len(self):
            self._columns = [
                pa.concat_arrays([held, added])
                for held, added in zip(self._columns, columns, strict=True)
            ]
        else:
            self._columns = list(columns)
        start = self._stop
        self._stop += rows
        return range(start, self._stop)

    def evict_before(self, row: int) -> None:
        """Forget the rows whose number is below ``row``."""
        row = min(row, self._stop)
        if row <= self._first:
            return
        keep = row - self._first
        self._columns = [] if row == self._stop else [c.slice(keep) for c in self._columns]
        self._first = row

    def take(self, column: int, rows: Rows) -> pa.Array:
        """Return a column's values at the given rows: a slice where they are contiguous."""
        held = self._columns[column]
        if isinstance(rows, range):
            return held.slice(rows.start - self._first, len(rows))
        return held.take(pa.array(rows - self._first if self._first else rows))

    def offsets(self, rows: Rows) -> slice | npt.NDArray[np.int64]:
        """Return the places of rows in arrays that run beside the store."""
        if isinstance(rows, range):
            return slice(rows.start - self._first, rows.stop - self._first)
        return rows - self._first
