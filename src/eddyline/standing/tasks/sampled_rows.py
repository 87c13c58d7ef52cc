"""Samples of rows under overload, and what results say of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext

from eddyline.exchange.hypercube import coordinates
from eddyline.standing.engine.aggregation.tallies import SOME_TIME
from eddyline.standing.engine.aggregation.time_window import TimeWindow
from eddyline.standing.engine.shared_results import SharedResults
from eddyline.standing.log.joined_streams import JoinedStreams

_BITS = 31
"""Bits of the number that decides about a row."""

SHARE: Final = "share"
"""The column of rows that have been sampled with the share with which each was taken."""

SAMPLE: Final = "eddyline_sample"
"""The column of results that says what sample they are of."""

_INTERVAL: Final = pa.struct({"low": pa.float64(), "high": pa.float64()})

SAMPLE_TYPE: Final = pa.struct(
    {
        "exact": pa.bool_(),
        "kept": pa.float64(),
        "seen": pa.int64(),
        "events": pa.int64(),
        "intervals": pa.map_(pa.string(), _INTERVAL),
    }
)

TALLIES: Final = pa.schema(
    {
        "size": pa.int64(),
        "slide": pa.int64(),
        "start": pa.int64(),
        "pane": pa.int64(),
        "events": pa.int64(),
        "taken": pa.int64(),
    }
)
"""What a task tells of the events of windows: numbers by window and pane."""


class SampledRows:
    """Which rows of a task are taken, ``kept`` being the part of all."""

    def __init__(self, kept: float, batch: int) -> None:
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        self._kept = kept
        # A file's rows are in the same order each time, and a partition's of a log.
        self._next = (batch << 40) + (partition << 32)

    def taken(self, rows: int) -> npt.NDArray[np.bool_] | None:
        """Return which of the next rows are taken; None for all."""
        first, self._next = self._next, self._next + rows
        if self._kept >= 1:
            return None
        numbers = np.arange(first, first + rows, dtype=np.int64)
        taken: npt.NDArray[np.bool_] = coordinates(numbers, 1 << _BITS) < self._kept * (1 << _BITS)
        return taken

    def with_shares(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows that were taken, with the share if that is not all."""
        if self._kept >= 1:
            return rows
        return rows.append_column(SHARE, pa.array(np.full(rows.num_rows, self._kept)))


class EventTally:
    """Counts the events of a task by the windows that queries aggregate in, pane by pane."""

    def __init__(self, windows: Sequence[TimeWindow]) -> None:
        self._windows = windows
        self._stretch = math.gcd(*(n for window in windows for n in (window.pane, window.start)))
        self._found: list[pa.RecordBatch] = []

    def add(self, times: pa.Array | None, rows: int, taken: npt.NDArray[np.bool_] | None) -> None:
        """Count rows that came at such times; None where the stream has none."""
        if not self._windows:
            return
        chosen = np.ones(rows, np.bool_) if taken is None else taken
        words = np.full(rows, SOME_TIME)
        if times is not None:
            chosen = chosen[times.is_valid().to_numpy(zero_copy_only=False)]
            words = times.drop_null().cast(pa.int64()).to_numpy()
            # Once for all windows: in a stretch that none of their panes begins or ends in.
            words = words - words % self._stretch
        distinct, numbers = np.unique(words, return_inverse=True)
        events = np.bincount(numbers, minlength=len(distinct))
        of_taken = np.bincount(numbers[chosen], minlength=len(distinct))
        for window in self._windows:
            panes = distinct if times is None else window.panes(distinct)
            own, places = np.unique(panes, return_inverse=True)
            sums = [np.zeros(len(own), np.int64) for _ in range(2)]
            for total, counted in zip(sums, (events, of_taken), strict=True):
                np.add.at(total, places, counted)
            which = [np.full(len(own), n) for n in (window.size, window.slide, window.start)]
            columns = list(map(pa.array, [*which, own, *sums]))
            self._found.append(pa.record_batch(columns, schema=TALLIES))

    def batches(self) -> list[pa.RecordBatch]:
        """Return what was counted."""
        return [batch for batch in self._found if batch.num_rows]


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval for each of some rows, under the ``names`` of what it is of; NaN for no bound."""

    names: tuple[str, ...]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


def shares_of(results: SharedResults, streams: JoinedStreams) -> npt.NDArray[np.float64] | None:
    """Return the shares with which results were taken; None where that is all of them.

    A joined row is there where all that it is made of were taken, each by its own chance.
    """
    if not streams.samples:
        return None
    inputs, shares = len(streams.job.inputs), np.ones(len(results))
    for number in results.streams:
        if number % inputs < len(streams.job.streams):
            column = results.column(number, len(streams.types[number % inputs]))
            if column.null_count < len(column):
                shares *= column.fill_null(1.0).to_numpy(zero_copy_only=False)
    return None if (shares >= 1).all() else shares


def sample_of_rows(shares: npt.NDArray[np.float64] | None, rows: int) -> pa.Array:
    """Return what results other than aggregates say: the share of such rows that was taken."""
    kept = np.ones(rows) if shares is None else shares
    nothing = [
        pa.nulls(rows, SAMPLE_TYPE.field(name).type) for name in ("seen", "events", "intervals")
    ]
    return _sample(pa.array(kept >= 1), pa.array(kept), *nothing)


def sample_of_windows(
    exact: npt.NDArray[np.bool_],
    events: npt.NDArray[np.int64],
    seen: npt.NDArray[np.int64],
    intervals: Sequence[Interval],
) -> pa.Array:
    """Return what aggregates say: how many of how many events they saw, and their intervals."""
    none = events == 0  # where it is not known how many there were
    kept = np.divide(seen, events, out=np.ones(len(events)), where=~none)
    entries: list[list[tuple[str, dict[str, float | None]]] | None] = []
    for row, whole in enumerate(exact.tolist()):
        own = [(i, _known(i.low[row]), _known(i.high[row])) for i in ([] if whole else intervals)]
        bounds = [
            (name, {"low": low, "high": high})
            for interval, low, high in own
            if low is not None or high is not None
            for name in interval.names
        ]
        entries.append(bounds or None)
    return _sample(
        pa.array(exact),
        pa.array(kept),
        pa.array(seen, mask=none),
        pa.array(events, mask=none),
        pa.array(entries, SAMPLE_TYPE.field("intervals").type),
    )


def _known(bound: float) -> float | None:
    return None if np.isnan(bound) else float(bound)


def _sample(*columns: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays(list(columns), fields=list(SAMPLE_TYPE))
