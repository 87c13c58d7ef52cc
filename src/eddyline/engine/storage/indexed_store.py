"""A row store with join keys and indexes, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa

from eddyline.engine.storage.hash_index import HashIndex
from eddyline.engine.storage.key_words import KeyColumn
from eddyline.engine.storage.ordered_index import OrderColumn, OrderedIndex
from eddyline.engine.storage.row_store import RowStore

_Derived = TypeVar("_Derived", KeyColumn, OrderColumn)


class IndexedStore(RowStore):
    """Rows, the words of their keys, and indexes over these.

    What is derived from a column is made on first use and kept up from then on. Indexes
    are brought up to date when they are asked for: a relation that nobody probes has none.
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[int, KeyColumn] = {}
        self._orders: dict[int, OrderColumn] = {}
        self._hash_indexes: dict[tuple[int, ...], HashIndex] = {}
        self._ordered_indexes: dict[int, OrderedIndex] = {}

    def __getstate__(self) -> dict[str, object]:
        """Leave out what can be derived again."""
        derived = ("_keys", "_orders", "_hash_indexes", "_ordered_indexes")
        return self.__dict__ | {name: {} for name in derived}

    @property
    def nbytes(self) -> int:
        """Bytes held by columns, keys and indexes."""
        return super().nbytes + sum(
            part.nbytes
            for parts in (self._keys, self._orders, self._hash_indexes, self._ordered_indexes)
            for part in parts.values()
        )

    def append(self, columns: Sequence[pa.Array], rows: int) -> range:
        """Add rows at the back and return their numbers."""
        numbers = super().append(columns, rows)
        for index, key in self._keys.items():
            key.append(columns[index])
        for index, order in self._orders.items():
            order.append(columns[index])
        return numbers

    def evict_before(self, row: int) -> None:
        """Forget the rows whose number is below ``row``."""
        count = min(row, self.stop) - self.first
        if count <= 0:
            return
        super().evict_before(row)
        for key in self._keys.values():
            key.drop_first(count)
        for order in self._orders.values():
            order.drop_first(count)
        for index in self._hash_indexes.values():
            index.rebuild()
        for ordered in self._ordered_indexes.values():
            ordered.rebuild()

    def key(self, column: int, a_type: pa.DataType) -> KeyColumn:
        """Return the words of a column's values as keys."""
        return self._derived(self._keys, column, lambda: KeyColumn(a_type))

    def order(self, column: int) -> OrderColumn:
        """Return the words of a column's values in their order."""
        return self._derived(self._orders, column, OrderColumn)

    def hash_index(self, columns: tuple[int, ...], types: Sequence[pa.DataType]) -> HashIndex:
        """Return the hash index over columns, with all rows in it."""
        index = self._hash_indexes.get(columns)
        if index is None:
            keys = [self.key(c, a_type) for c, a_type in zip(columns, types, strict=True)]
            index = self._hash_indexes[columns] = HashIndex(keys)
        index.catch_up(len(self))
        return index

    def ordered_index(self, column: int) -> OrderedIndex:
        """Return the ordered index over a column, with all rows in it."""
        index = self._ordered_indexes.get(column)
        if index is None:
            index = self._ordered_indexes[column] = OrderedIndex(self.order(column))
        index.catch_up(len(self))
        return index

    def index_names(self) -> tuple[str, ...]:
        """Return what indexes there are, for reports: kind and column numbers."""
        hashes = [
            ("list" if index.is_list else "hash") + str(list(columns))
            for columns, index in self._hash_indexes.items()
        ]
        return (*hashes, *(f"ordered[{column}]" for column in self._ordered_indexes))

    def _derived(
        self, kept: dict[int, _Derived], column: int, make: Callable[[], _Derived]
    ) -> _Derived:
        held = kept.get(column)
        if held is None:
            held = kept[column] = make()
            if len(self):
                held.append(self.take(column, range(self.first, self.stop)))
        return held
