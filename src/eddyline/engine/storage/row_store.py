"""Where the values of a relation's tuples are kept: Arrow columns, by row number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Rows
from eddyline.engine.storage.growing import AnyColumn, GrowingArray, GrowingColumn, growing_column


class RowStore:
    """The columns of one relation; row numbers go on rising as rows are appended.

    Append-only at the back, evictable at the front. A filter block appends one
    batch, drains its eddy and evicts it, so that such a store holds the batch as it
    came; only when a second one is appended do its columns become growing ones.
    """

    def __init__(self) -> None:
        self._columns: list[GrowingColumn] = []
        self._grows = False
        self._first = 0
        self._stop = 0

    def __len__(self) -> int:
        """Return the number of rows held."""
        return self._stop - self._first

    @property
    def first(self) -> int:
        """The number of the oldest row held."""
        return self._first

    @property
    def stop(self) -> int:
        """The number that the next row will get."""
        return self._stop

    @property
    def nbytes(self) -> int:
        """Bytes held by the columns."""
        return sum(column.nbytes for column in self._columns)

    def append(self, columns: Sequence[pa.Array], rows: int) -> range:
        """Add rows at the back and return their numbers."""
        if not len(self):
            self._columns = [_kept(values) for values in columns]
            self._grows = False
        else:
            if not self._grows:
                self._columns = [
                    _growing(held, len(self), values)
                    for held, values in zip(self._columns, columns, strict=True)
                ]
                self._grows = True
            for held, values in zip(self._columns, columns, strict=True):
                held.append(values)
        start = self._stop
        self._stop += rows
        return range(start, self._stop)

    def evict_before(self, row: int) -> None:
        """Forget the rows whose number is below ``row``."""
        row = min(row, self._stop)
        if row <= self._first:
            return
        if row == self._stop:
            self._columns = []
        else:
            for column in self._columns:
                column.drop_first(row - self._first)
        self._first = row

    def take(self, column: int, rows: Rows) -> pa.Array:
        """Return a column's values at the given rows: a slice where they are contiguous."""
        first = self._first
        if isinstance(rows, range):
            return self._columns[column].take(range(rows.start - first, rows.stop - first))
        return self._columns[column].take(rows - first if first else rows)

    def offsets(self, rows: Rows) -> slice | npt.NDArray[np.int64]:
        """Return the places of rows in arrays that run beside the store."""
        if isinstance(rows, range):
            return slice(rows.start - self._first, rows.stop - self._first)
        return rows - self._first


def _kept(values: pa.Array) -> GrowingColumn:
    column = AnyColumn(values.type)
    column.append(values)
    return column


def _growing(held: GrowingColumn, rows: int, like: pa.Array) -> GrowingColumn:
    column = growing_column(like.type)
    column.append(held.take(range(rows)))
    return column


class RowAttribute:
    """An array that runs beside a row store, place by place.

    It follows when it is looked at: rows that are new to it have the default, and those
    that the store has evicted are gone from here too.
    """

    def __init__(self, store: RowStore, dtype: npt.DTypeLike, default: object) -> None:
        self._store = store
        self._default = default
        self._values = GrowingArray(dtype)
        self._first = store.first

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values of all rows held, to be read and written until the store changes."""
        store = self._store
        if store.first > self._first:
            self._values.drop_first(min(store.first - self._first, len(self._values)))
            self._first = store.first
        self._values.extend(len(store) - len(self._values), self._default)
        return self._values.values
