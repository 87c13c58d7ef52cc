"""One value for each row of a store, kept outside of it."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from eddyline.engine.storage.growing import GrowingArray
from eddyline.engine.storage.row_store import RowStore


class RowAttribute:
    """An array that runs beside a row store, place by place.

    It follows when it is looked at: rows that are new to it have the default, and those
    that the store has evicted are gone from here too.
    """

    def __init__(self, store: RowStore, dtype: npt.DTypeLike, default: object) -> None:
        """Start with the default for all rows."""
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
