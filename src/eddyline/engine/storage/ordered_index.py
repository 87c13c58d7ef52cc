"""An ordered index over one column of a row store, for ranges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.storage.growing import GrowingArray, raw_values, validity
from eddyline.engine.storage.on_first_use import OnFirstUse
from eddyline.engine.storage.slots import Bound, Matches, flags

kernels = OnFirstUse("eddyline.engine.storage.kernels")

LEAST_WORD = np.iinfo(np.int64).min
GREATEST_WORD = np.iinfo(np.int64).max


class OrderColumn:
    """Words of a column that stand in the order of its values: NaN last, NULLs nowhere."""

    def __init__(self) -> None:
        self._words = GrowingArray(np.int64)
        self._valid = GrowingArray(np.bool_)

    @property
    def words(self) -> npt.NDArray[np.int64]:
        """One word a row."""
        return self._words.values

    @property
    def valid(self) -> npt.NDArray[np.bool_]:
        """Which rows have a value."""
        return self._valid.values

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._words.nbytes + self._valid.nbytes

    def append(self, values: pa.Array) -> None:
        """Add the words of further rows."""
        self._words.append(order_words(values))
        self._valid.append(validity(values))

    def drop_first(self, count: int) -> None:
        """Forget the oldest rows."""
        self._words.drop_first(count)
        self._valid.drop_first(count)


class KeyRange(NamedTuple):
    """For each probing tuple, the words that match: from ``least`` to ``greatest``, both included.

    Where ``greatest`` is below ``least`` nothing matches.
    """

    least: npt.NDArray[np.int64]
    greatest: npt.NDArray[np.int64]


class OrderedIndex:
    """Finds the rows whose word lies in a range.

    It keeps sorted runs and merges those of like size, so that rows may come in small
    batches: n rows cost n log n in all, and a probe looks into log n runs at the most.
    """

    def __init__(self, column: OrderColumn) -> None:
        self._column = column
        self._rows = 0
        self._runs: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []  # words, places

    @property
    def nbytes(self) -> int:
        """Bytes held, the column not counted."""
        return sum(words.nbytes + places.nbytes for words, places in self._runs)

    def catch_up(self, rows: int) -> None:
        """Take in the rows up to ``rows``."""
        if rows == self._rows:
            return
        places = np.flatnonzero(self._column.valid[self._rows : rows]) + self._rows
        self._rows = rows
        self._add(self._column.words[places], places)
        while len(self._runs) > 1 and len(self._runs[-2][0]) <= 2 * len(self._runs[-1][0]):
            last, before = self._runs.pop(), self._runs.pop()
            self._add(np.concatenate([before[0], last[0]]), np.concatenate([before[1], last[1]]))

    def rebuild(self) -> None:
        """Take in all rows anew: places have changed."""
        self._rows = 0
        self._runs = []

    def probe(
        self,
        ranges: KeyRange,
        low: Bound,
        high: Bound,
        dead: npt.NDArray[np.bool_] | None,
        most: int,
    ) -> tuple[Matches, int]:
        """Return the matches of tuples, and how many of them were probed.

        As :meth:`eddyline.engine.storage.hash_index.HashIndex.probe`, but that ``most`` is
        kept to unless the first tuple alone has more.
        """
        bounds = []
        sizes = np.zeros(len(ranges.least), np.int64)
        for words, _ in self._runs:
            starts = np.searchsorted(words, ranges.least, side="left")
            stops = np.searchsorted(words, ranges.greatest, side="right")
            stops = np.maximum(starts, stops)
            bounds.append((starts, stops))
            sizes += stops - starts
        probed = max(1, int(np.searchsorted(np.cumsum(sizes), most, side="right")))
        probed = min(probed, len(sizes))
        parts = [
            self._expand(starts[:probed], stops[:probed], places, low, high, dead)
            for (starts, stops), (_, places) in zip(bounds, self._runs, strict=True)
        ]
        if not parts:
            empty = np.empty(0, np.int64)
            return Matches(empty, empty), len(sizes)
        return (
            Matches(
                np.concatenate([part.positions for part in parts]),
                np.concatenate([part.places for part in parts]),
            ),
            probed,
        )

    def _add(self, words: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> None:
        order = np.argsort(words, kind="stable")
        self._runs.append((words[order], places[order]))

    @staticmethod
    def _expand(
        starts: npt.NDArray[np.int64],
        stops: npt.NDArray[np.int64],
        places: npt.NDArray[np.int64],
        low: Bound,
        high: Bound,
        dead: npt.NDArray[np.bool_] | None,
    ) -> Matches:
        room = int((stops - starts).sum())
        positions = np.empty(room, np.int64)
        matches = np.empty(room, np.int64)
        n = kernels.expand_ranges(
            starts,
            stops,
            places,
            low,
            high,
            *flags(dead),
            positions,
            matches,
        )
        return Matches(positions[:n], matches[:n])


def order_words(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return fixed-width values as whole numbers in the same order; what NULL becomes is open."""
    raw: npt.NDArray[Any] = raw_values(values)
    if pa.types.is_floating(values.type):
        floats = raw.view(f"f{raw.dtype.itemsize}").astype(np.float64)
        floats[np.isnan(floats)] = np.nan
        bits = (floats + 0.0).view(np.int64)
        return bits ^ ((bits >> np.int64(63)) & np.int64(GREATEST_WORD))
    if raw.ndim > 1:
        return np.ascontiguousarray(raw[:, 0])
    return raw.astype(np.int64)
