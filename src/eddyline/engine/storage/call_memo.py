"""The results of a call, kept per row so that no row is computed twice."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.storage.row_store import RowAttribute, RowStore
from eddyline.expressions.vector import NO_ERRORS, CollectiveFailure, Vector

Places: TypeAlias = "slice | npt.NDArray[np.int64]"


class CallMemo:
    """Results of one call for the rows of a store, in the order in which they were computed."""

    def __init__(self, store: RowStore) -> None:
        self._where = RowAttribute(store, np.int64, -1)  # place among the results, -1: none
        self._chunks: list[pa.Array] = []
        self._starts: list[int] = []  # of the chunks among the results
        self._computed = 0
        self._errors: dict[int, Exception] = {}

    @property
    def _position(self) -> npt.NDArray[np.int64]:
        return self._where.values

    def get(
        self, places: Places, compute: Callable[[npt.NDArray[np.int64] | None], Vector]
    ) -> Vector:
        """Return the results at ``places``; ``compute`` is asked for those that are missing.

        ``compute`` takes the positions among ``places`` that it is to compute,
        None for all of them, and must return one result for each.
        """
        position = self._position[places]
        missing = np.flatnonzero(position < 0)
        if len(missing) == len(position):
            fresh = compute(None)
            self._remember(places, fresh)
            return fresh
        if len(missing):
            fresh = compute(missing)
            rows = np.arange(places.start, places.stop) if isinstance(places, slice) else places
            self._remember(rows[missing], fresh)
            position = self._position[places]
        values = self._at(position) if self._chunks else fresh.values
        errors = NO_ERRORS
        if self._errors:
            errors = {
                at: self._errors[where]
                for at, where in enumerate(position.tolist())
                if where in self._errors
            }
        return Vector(values, errors)

    def _at(self, position: npt.NDArray[np.int64]) -> pa.Array:
        """Return results by their positions.

        Results that come one by one are mostly asked for as they come: then what came before is
        not copied. Putting all of it together each time took O(n * n) bytes for n results.
        """
        last = bisect_right(self._starts, int(position.min())) - 1 if len(position) else 0
        if last and last * 2 > len(self._chunks):
            values = pa.concat_arrays(self._chunks[last:])
            return values.take(pa.array(position - self._starts[last]))
        if len(self._chunks) > 1:
            self._chunks, self._starts = [pa.concat_arrays(self._chunks)], [0]
        return self._chunks[0].take(pa.array(position))

    def known(self, places: Places) -> npt.NDArray[np.bool_]:
        """Return at which of ``places`` there are results."""
        known: npt.NDArray[np.bool_] = self._position[places] >= 0
        return known

    def put(self, places: Places, results: Vector) -> None:
        """Take results that were computed elsewhere, one for each of ``places``."""
        self._remember(places, results)

    def forget_collective_failures(self, places: npt.NDArray[np.int64]) -> None:
        """Make rows whose whole vector failed uncomputed again, so that they are tried alone."""
        for place, where in zip(places.tolist(), self._position[places].tolist(), strict=True):
            if isinstance(self._errors.get(where), CollectiveFailure):
                self._position[place] = -1

    def _remember(self, places: Places, fresh: Vector) -> None:
        start = self._computed
        self._position[places] = np.arange(start, start + len(fresh), dtype=np.int64)
        for at, error in fresh.errors.items():
            self._errors[start + at] = error
        # A copy: a function over vectors may return a view of a buffer that its next
        # call fills anew. Spark has written the result out by then.
        self._chunks.append(pa.concat_arrays([fresh.values]))
        self._starts.append(start)
        self._computed += len(fresh)
