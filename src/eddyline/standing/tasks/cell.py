"""One cell of a job that joins streams, as Spark runs it: its rows are in Spark's state store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator

from eddyline.exchange.blobs import decoded, encoded
from eddyline.exchange.hypercube import coordinates, key_words
from eddyline.expressions.value_types import is_joinable
from eddyline.standing.engine.aggregation.aggregate_parts import START
from eddyline.standing.log.joined_streams import JoinedStreams
from eddyline.standing.tasks.aggregating import GROUPING, SIZE
from eddyline.standing.tasks.cell_state import (
    NO_TIMER,
    CellContents,
    CellProgress,
    CellState,
    Place,
)
from eddyline.standing.tasks.counts import Counts, CountsByBatch
from eddyline.standing.tasks.dropped_groups import SUMMARY
from eddyline.standing.tasks.joining import (
    INPUTS,
    PLACES,
    Entry,
    JoiningQueries,
    WantedPlaces,
)
from eddyline.standing.tasks.micro_batch import MicroBatch, micro_batch
from eddyline.standing.tasks.putting_out import ROWS, TALLIES, WINDOWS

RESULT_ROWS: Final = 1 << 13
"""Results that travel together: the JVM holds as many such blobs as Spark has rows in a batch."""

RESULTS: Final = "part int, kind int, results binary"
"""What a cell puts out: results as Arrow streams, for one of so many parts as there are cells."""


AGGREGATES: Final = "aggregates"
"""The name, among those of streams, of what is kept beside their rows."""


class Cell:
    """Joins the rows of one cell for all queries, and aggregates what they find.

    The rows are kept in memory from task to task, and in the state store blob by blob, as they
    came. A worker that has them not, or not all, gets the rest from the store.
    """

    def __init__(
        self, streams: JoinedStreams, counts: Accumulator[CountsByBatch], *, watermark: bool
    ) -> None:
        """Take the job; ``watermark`` says whether its streams have one."""
        self._streams = streams
        self._counts = counts
        self._has_watermark = watermark

    def begin(self, state: CellState) -> None:
        """Take the state of a task."""
        self._state = state

    def run(
        self,
        label: int,
        rows: Iterator[Any],
        timer_values: Any,  # noqa: ANN401 - Spark's
    ) -> Iterator[pd.DataFrame]:
        """Take the blobs of a batch, and close windows; yield results.

        A batch may have no rows for the cell, where only a timer has expired.
        """
        now = micro_batch()
        batch, version = now.number, now.version
        watermark = timer_values.getCurrentWatermarkInMs() * 1000 if self._has_watermark else None
        job = self._streams.job
        name = self._streams.log, job.name, label
        counts = Counts()
        started = time.perf_counter()
        cell = self._streams.cells.index(label)
        progress = self._state.progress()
        engine = self._caught_up(_LIVE.pop(name, None), progress, version, cell)
        engine.queries.begin()
        again = engine.batch == batch  # a timer, after this batch's rows
        counts.seconds["keep up"] += time.perf_counter() - started
        if watermark is not None:
            # Before this batch's rows, so that no row counts in a window that other cells close.
            started = time.perf_counter()
            closed = engine.queries.aggregated.close(watermark)
            for table in closed.aggregates:
                yield from self._windows(table)
            if closed.tallies is not None:
                yield from self._told(closed.tallies, counts)
            counts.seconds["close"] += time.perf_counter() - started
            self._judge(engine, progress.closed, watermark, counts)
        yield from _packed(engine.queries.results(counts), cell)  # of queries that looked back
        for _ in self._work(engine, now, rows, watermark, counts):
            yield from _packed(engine.queries.results(counts), cell)
        self._forget(engine, watermark)
        progress = self._save(engine, progress, watermark)
        if not again:
            for stream, number in engine.queries.stored().items():
                counts.stored[label, stream] += number
            for entry in engine.queries.entries.values():
                counts.entries[label, job.streams[entry.stream]] += 1
            if len(engine.queries.aggregated):
                kept = counts.stored, counts.entries
                for counted, number in zip(kept, engine.queries.aggregated.stored(), strict=True):
                    counted[label, AGGREGATES] += number
        self._counts.add({(job.name, batch): counts})
        self._state.set_progress(progress._replace(batch=batch, told=engine.queries.next_number))
        engine.batch = batch
        _LIVE[name] = engine

    def _work(
        self,
        engine: LiveCell,
        now: MicroBatch,
        rows: Iterator[pd.DataFrame],
        watermark: int | None,
        counts: Counts,
    ) -> Iterator[None]:
        """Take the rows of a batch, and yield after each blob."""
        number = 0
        for frame in rows:
            for stream, blob in zip(frame["relation"], frame["batch"], strict=True):
                for part in decoded(pa.py_buffer(blob)):
                    if stream < 0:
                        self._tally(engine, part, now.kept)
                        continue
                    kept, late = self._by_time(part, int(stream), watermark)
                    if late.num_rows and engine.queries.take_late(int(stream), late):
                        counts.late[self._streams.job.streams[int(stream)]] += late.num_rows
                    if kept.num_rows:
                        place = now.number, number
                        started = time.perf_counter()
                        entry = engine.queries.take(place, int(stream), kept)
                        counts.seconds["join"] += time.perf_counter() - started
                        if engine.queries.keeps(int(stream)):
                            self._keep(place, entry, kept)
                        else:
                            engine.queries.keep_only(engine.queries.entries.keys() - {place})
                        number += 1
                    yield

    def _tally(self, engine: LiveCell, counted: pa.RecordBatch, share: float) -> None:
        """Take how many events windows had, or in which groups the dropped ones were."""
        grouping = (counted.schema.metadata or {}).get(SUMMARY)
        if grouping is None:
            engine.queries.aggregated.tally(counted, share)
        else:
            engine.queries.summarize(grouping.decode(), counted)

    def _forget(self, engine: LiveCell, watermark: int | None) -> None:
        """Let rows that no query can want any more go, here and in the store."""
        gone = [] if watermark is None else engine.queries.passed(watermark)
        for place, left in engine.queries.unwanted().items():
            if len(left.places):
                self._thin(place, left)
            else:
                gone.append(place)
        for place in gone:
            self._state.drop_rows(place)

    def _thin(self, place: Place, left: WantedPlaces) -> None:
        """Keep only some of the rows of a blob."""
        stored = self._state.rows(place)
        if stored is None:  # let go by another worker, to which it had no late rows any more
            return
        stream, before, blob = stored
        (rows,) = decoded(pa.py_buffer(blob))
        if PLACES in rows.schema.names:
            places = rows.column(PLACES).to_numpy()
            rows = rows.drop_columns([PLACES, INPUTS])
        else:
            places = np.arange(rows.num_rows)
        # Another worker may have seen to it already, which this one has not heard of.
        stays = np.isin(places, left.places)
        kept = rows.filter(pa.array(stays)).append_column(PLACES, pa.array(places[stays]))
        inputs = left.inputs[np.searchsorted(left.places, places[stays])]
        kept = kept.append_column(INPUTS, pa.array(inputs))
        self._state.keep_rows(place, stream, before, encoded([kept]).to_pybytes())

    def _judge(self, engine: LiveCell, closed: int | None, watermark: int, counts: Counts) -> None:
        """Find what has not been followed since the watermark by which cells last looked."""
        if engine.queries.waiting:
            started = time.perf_counter()
            engine.queries.judge(closed, watermark)
            counts.seconds["judge"] += time.perf_counter() - started

    def _windows(self, table: pa.Table) -> Iterator[pd.DataFrame]:
        """Yield closed windows, dealt out by their first keys that have words, or else by time."""
        cells = len(self._streams.cells)
        parts = np.zeros(len(table), np.int64)
        keys = [name for name in table.column_names if name[0] == "k" and name[1:].isdigit()]
        if cells > 1 and keys:
            dealt = [name for name in keys if is_joinable(table.column(name).type)]
            key = table.column(dealt[0] if dealt else START).combine_chunks()
            parts = coordinates(key_words(key), cells)
            parts[key.is_null().to_numpy(zero_copy_only=False)] = 0
        for part in np.unique(parts).tolist():
            rows = table.filter(pa.array(parts == part)).combine_chunks()
            yield _blob(part, WINDOWS, rows.to_batches()[0])

    def _told(self, tallies: pa.Table, counts: Counts) -> Iterator[pd.DataFrame]:
        """Yield how many events windows had, for all that put results out."""
        dropped = pc.subtract(tallies["events"], tallies["taken"])
        named = [tallies[GROUPING], tallies[START], tallies[SIZE], tallies["events"], dropped]
        for label, start, size, *numbers in zip(*(c.to_pylist() for c in named), strict=True):
            window = label, start, start + size
            counts.window_events[window] += numbers[0]
            counts.window_dropped[window] += numbers[1]
        rows = tallies.combine_chunks().to_batches()[0]
        for part in range(len(self._streams.cells)):
            yield _blob(part, TALLIES, rows)

    def _save(
        self, engine: LiveCell, progress: CellProgress, watermark: int | None
    ) -> CellProgress:
        """Save what has been aggregated, and ask to be called when there is more to put out."""
        if watermark is None:
            return progress
        came, went = engine.queries.aggregated.changes()
        for key in went:
            self._state.drop_part(key)
        for key, table in came.items():
            blob = encoded(table.combine_chunks().to_batches()).to_pybytes()
            self._state.keep_part(key, blob)
        working = len(engine.queries.aggregated) or engine.queries.waiting
        if progress.closed is None and not working:
            return progress
        dues = (engine.queries.aggregated.due(), engine.queries.next_known(watermark))
        due = min((one for one in dues if one is not None), default=None)
        timer = NO_TIMER if due is None else -(-due // 1000)
        if timer not in (NO_TIMER, progress.timer):
            self._state.call_at(timer)
        return progress._replace(closed=watermark, timer=timer)

    def _load(self, engine: LiveCell, contents: CellContents, closed: int | None) -> None:
        """Take what has been aggregated, as it was saved."""
        parts = {}
        for key in contents.parts:
            (rows,) = decoded(pa.py_buffer(self._state.part(key)))
            parts[key] = pa.Table.from_batches([rows])
        engine.queries.aggregated.load(parts, closed)

    def _keep(self, place: Place, entry: Entry, rows: pa.RecordBatch) -> None:
        blob = encoded([rows]).to_pybytes()
        self._state.keep_rows(place, entry.stream, entry.before, blob)

    def _by_time(
        self, rows: pa.RecordBatch, stream: int, watermark: int | None
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return the rows that are at or after the watermark, and those that are behind it."""
        time = self._streams.times[stream]
        if watermark is None or time is None or self._streams.job.aggregates:
            return rows, rows.slice(0, 0)  # the windows of a row that is aggregated decide
        times = rows.column(str(time)).cast(pa.int64())
        in_time = pc.fill_null(pc.greater_equal(times, pa.scalar(watermark, pa.int64())), True)  # noqa: FBT003 - a value
        if pc.all(in_time).as_py():
            return rows, rows.slice(0, 0)
        return rows.filter(in_time), rows.filter(pc.invert(in_time))

    def _caught_up(
        self, engine: LiveCell | None, progress: CellProgress, version: int, cell: int
    ) -> LiveCell:
        """Return the engine with all rows that are in the store, at a version."""
        if engine is not None and engine.queries.types != self._streams.types:
            engine = None  # of a plan with other derived columns
        if (
            engine is not None
            and engine.batch == progress.batch
            and self._taken(engine, CellContents(), [], progress, version)
        ):
            return engine
        contents = self._state.contents()
        stored = contents.places
        times = 1 if engine is None else engine.queries.inputs.times
        missing = [] if engine is None else [place for place in stored if place[0] > engine.batch]
        usable = engine is not None and engine.batch < progress.batch
        if (
            engine is None
            or not usable
            or not self._taken(engine, contents, missing, progress, version)
        ):
            engine = LiveCell(JoiningQueries(self._streams, cell, times))
            while not self._taken(engine, contents, stored, progress, version):
                times += 1
                engine = LiveCell(JoiningQueries(self._streams, cell, times))
        engine.queries.keep_only(set(stored))
        return engine

    def _taken(
        self,
        engine: LiveCell,
        contents: CellContents,
        places: list[Place],
        progress: CellProgress,
        version: int,
    ) -> bool:
        """Go to a version and take what is stored; False where the engine is of no use for it."""
        engine.queries.bounds |= contents.bounds
        if not engine.queries.go_to(version, progress.told):
            return False
        for place in places:
            stored = self._state.rows(place)
            if stored is not None:
                for rows in decoded(pa.py_buffer(stored.blob)):
                    engine.queries.take(place, stored.stream, rows, before=stored.before)
        if engine.batch != progress.batch:
            self._load(engine, contents, progress.closed)
        known = engine.queries.bounds.keys() | set()
        engine.queries.look_back()
        for number in engine.queries.bounds.keys() - known:
            self._state.keep_bound(number, engine.queries.bounds[number])
        return True


@dataclass(slots=True)
class LiveCell:
    """The engine of a cell in this worker, and the batch after which it stands."""

    queries: JoiningQueries
    batch: int = -1


_LIVE: dict[tuple[str, str, int], LiveCell] = {}
"""The cells in this worker process, by log, job and number."""


def _blob(part: int, kind: int, rows: pa.RecordBatch) -> pd.DataFrame:
    blob = encoded([rows]).to_pybytes()
    return pd.DataFrame(
        {
            "part": np.array([part], np.int32),
            "kind": np.array([kind], np.int32),
            "results": [blob],
        }
    )


def _packed(results: list[pa.RecordBatch], part: int) -> Iterator[pd.DataFrame]:
    """Yield results as Arrow streams."""
    if results:
        tables = [pa.Table.from_batches([batch]) for batch in results]
        table = pa.concat_tables(tables, promote_options="default").combine_chunks()
        for rows in table.to_batches(max_chunksize=RESULT_ROWS):
            yield _blob(part, ROWS, rows)
