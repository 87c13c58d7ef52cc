"""The engine of one cell: rows of all streams in, results of the queries out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.evaluation.labels import relabelled
from eddyline.exchange.hypercube import coordinates, key_words
from eddyline.sharing.shared_eddy import Results, SharedEddy
from eddyline.sharing.shared_query import NEVER, Stream
from eddyline.spark.query_log.engine_inputs import (
    EngineInputs,
    columns_put_out,
)
from eddyline.spark.query_log.joined_streams import JoinedStreams
from eddyline.spark.query_log.live_queries import LiveQuery
from eddyline.spark.worker.standing.counts import Counts, error_text
from eddyline.spark.worker.standing.kept_up import EngineFunctions, KeptUpQueries, compiled
from eddyline.spark.worker.standing.selecting import LAYOUT, QUERY
from eddyline.wall_clock import WorkClock

Key = tuple[int, int]
"""The batch that an entry came with, and its number in it."""

PLACES: Final = "places"
"""The column of a blob of which rows have gone that says where the others were; as numbers are
the names of the stream's columns."""

PLENTY: Final = 8
"""Stored rows are forgotten when one in so many can be: their indexes are made anew then."""


@dataclass(slots=True)
class Entry:
    """Rows of a stream that are stored together.

    ``latest`` is the time of the latest, in microseconds; ``arrivals`` are for each input of the
    engine that has them the numbers by which they came in. ``places`` are those that the rows had
    in the blob as it came, if some have gone since.
    """

    stream: int
    version: int
    latest: int
    rows: int
    arrivals: dict[int, range] = field(default_factory=dict)
    places: npt.NDArray[np.int64] | None = None

    def wanted(self, stored: Mapping[int, npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Return the places of the rows that are among those stored, by input of the engine."""
        found = []
        for number, came in self.arrivals.items():
            low, high = np.searchsorted(stored[number], [came.start, came.stop])
            found.append(stored[number][low:high] - came.start)
        offsets = np.unique(np.concatenate(found))
        return offsets if self.places is None else self.places[offsets]


class JoiningQueries:
    """The queries of a job and the rows of one cell, in an eddy."""

    def __init__(self, streams: JoinedStreams, cell: int, times: int = 1) -> None:
        """Start at version 0, with tables only; a query can read a stream so many ``times``."""
        self._streams = streams
        self._cell = cell
        self.bounds: dict[int, int] = {}
        """By the first number of queries that looked back together: the time from which on."""
        self._live = KeptUpQueries(streams.log, streams.job)
        self.inputs = EngineInputs(streams.job.inputs, times)
        self._some_went = False  # since rows were looked for that no query wants
        self._eddy = self._new_eddy()
        self._functions = EngineFunctions(self._eddy)
        self.entries: dict[Key, Entry] = {}
        self._results: list[pa.RecordBatch] = []
        self._counts = Counts()

    @property
    def version(self) -> int:
        """The version of the queries that are here."""
        return self._live.version

    def go_to(self, version: int, *, tell: bool = False) -> bool:
        """Take on the changes up to a version.

        Queries that look back see what is stored; what they find in it are results if ``tell``.
        False where a query reads a stream more often than this engine can: then it is of no use
        any more, and one is to be made that can.
        """
        difference = self._live.go_to(version)
        templates = self._live.templates
        if EngineInputs.of(self._streams.job.inputs, templates).times > self.inputs.times:
            return False
        if difference.went:
            self._eddy.remove(difference.went)
            self._some_went = True
        self._eddy.add(compiled(difference.came, self.inputs.numbers, self._functions.numbers))
        looking: dict[int, list[LiveQuery]] = {}
        for query in difference.came:
            if query.look_back is not None:
                looking.setdefault(id(query.group), []).append(query)
        for queries in looking.values():
            self._look_back(queries, tell=tell)
        return True

    def _look_back(self, queries: Sequence[LiveQuery], *, tell: bool) -> None:
        numbers = [query.number for query in queries]
        first = min(numbers)
        if first not in self.bounds:
            latest = self._eddy.latest()
            if latest is None:
                return
            self.bounds[first] = latest - (queries[0].look_back or 0)
        self._eddy.look_back(numbers, self.bounds[first], tell=tell)

    def keeps(self, stream: int) -> bool:
        """Tell whether rows of a stream are stored: not where they meet tables only."""
        return not all(map(self._eddy.passes_by, self.inputs.of_stream(stream)))

    def take(self, key: Key, stream: int, rows: pa.RecordBatch, *, known: bool = False) -> Entry:
        """Take rows of a stream; ``known`` ones were here before, and give no results again."""
        types = self._streams.types[stream]
        place = {name: position for position, name in enumerate(rows.schema.names)}
        columns = [
            rows.column(place[str(number)])
            if str(number) in place
            else pa.nulls(rows.num_rows, pa.null() if kind is None else kind)
            for number, kind in enumerate(types)
        ]
        time = self._streams.times[stream]
        latest = NEVER if time is None else latest_of(rows.column(place[str(time)]))
        entry = self.entries[key] = Entry(stream, self.version, latest, rows.num_rows)
        if PLACES in place:
            entry.places = rows.column(place[PLACES]).to_numpy()
        for number in self.inputs.of_stream(stream):
            if known:
                self._eddy.restore(number, columns, rows.num_rows)
                self._counts.errors.clear()  # they were told when the rows came first
            else:
                self._eddy.push(number, columns, rows.num_rows)
            first = self._eddy.first_passing(number)
            entry.arrivals[number] = range(first, first + rows.num_rows)
        return entry

    def results(self, counts: Counts) -> list[pa.RecordBatch]:
        """Return the results since the last time: all columns put out, queries and layouts."""
        found, self._results = self._results, []
        counts.add(self._counts)
        self._counts = Counts()
        return found

    def passed(self, watermark: int) -> list[Key]:
        """Forget rows that nothing after a watermark can meet; return the entries that are gone.

        In microseconds since 1970.
        """
        widest = [
            max(self._eddy.widest(n) for n in self.inputs.of_stream(stream))
            for stream in range(len(self._streams.job.streams))
        ]
        gone = [
            key
            for key, entry in self.entries.items()
            if max(entry.latest, widest[entry.stream]) < NEVER
            and entry.latest + widest[entry.stream] < watermark
        ]
        self._forget(gone)
        return gone

    def unwanted(self) -> dict[Key, npt.NDArray[np.int64]]:
        """Return what is left of entries that have lost most of their rows since queries went.

        For each the places in the blob as it came of the rows that some query wants. Entries
        without any are forgotten here.
        """
        if not self._some_went:
            return {}
        self._some_went = False
        arrivals = {n: self._eddy.stored_arrivals(n) for n in range(len(self.inputs))}
        found = {}
        for key, entry in self.entries.items():
            wanted = entry.wanted(arrivals)
            if 2 * len(wanted) <= entry.rows:
                found[key], entry.rows = wanted, len(wanted)
        self._forget([key for key, places in found.items() if not len(places)])
        return found

    def stored(self) -> Counter[str]:
        """Return how many rows are stored that some query wants, by stream."""
        found: Counter[str] = Counter()
        for stream, name in enumerate(self._streams.job.streams):
            for number in self.inputs.of_stream(stream):
                found[name] += len(self._eddy.stored_arrivals(number))
        return found

    def keep_only(self, keys: Collection[Key]) -> None:
        """Forget the entries that are not among these."""
        self._forget([key for key in self.entries if key not in keys])

    def _forget(self, gone: Sequence[Key]) -> None:
        for key in gone:
            for number, came in self.entries.pop(key).arrivals.items():
                self._eddy.forget_arrived(number, came)
        streams = range(len(self._streams.job.streams))
        for number in (n for stream in streams for n in self.inputs.of_stream(stream)):
            kept = [e.arrivals[number].start for e in self.entries.values() if number in e.arrivals]
            arrivals = self._eddy.stored_arrivals(number)
            bound = min(kept, default=int(arrivals[-1]) + 1 if len(arrivals) else 0)
            can_go = int(np.searchsorted(arrivals, bound))
            if can_go * PLENTY >= max(len(arrivals), 1):
                self._eddy.evict_arrived_before(number, bound)

    def _new_eddy(self) -> SharedEddy:
        job = self._streams.job
        streams = [
            Stream(
                f"{name} {time}" if time else name,
                tuple(pa.null() if kind is None else kind for kind in self._streams.types[number]),
                self._streams.times[number],
                static=name in job.tables,
            )
            for time in range(self.inputs.times)
            for number, name in enumerate(job.inputs)
        ]
        eddy = SharedEddy(
            streams,
            self._take_results,
            WorkClock(),
            np.random.default_rng(0),
            on_error=lambda query, error: self._counts.errors.setdefault(query, error_text(error)),
        )
        for number in range(len(job.streams), len(job.inputs)):
            columns, rows = self._table(number)
            for held in self.inputs.of_stream(number):
                eddy.hold(held, columns, rows)
        return eddy

    def _table(self, number: int) -> tuple[list[pa.Array], int]:
        """Return the columns of a table with the rows that belong to this cell."""
        job, types = self._streams.job, self._streams.types[number]
        place = number - len(job.streams)
        rows = _read_table(self._streams.tables[place])
        column = job.table_columns[place]
        if column is not None:
            keys = rows.column(column).combine_chunks()
            own = coordinates(key_words(keys), len(self._streams.cells)) == self._cell
            rows = rows.filter(pa.array(own & keys.is_valid().to_numpy(zero_copy_only=False)))
        columns = [
            pa.nulls(len(rows))
            if kind is None
            else relabelled(rows.column(n).combine_chunks(), kind)
            for n, kind in enumerate(types)
        ]
        return columns, len(rows)

    def _take_results(self, results: Results) -> None:
        positions, queries = self._eddy.sets.spread(results.lineages)
        rows = pa.array(positions)
        put_out = columns_put_out(self._streams.job.inputs, self._live.templates)
        columns = {}
        for number, column in put_out:
            if number in results.streams:
                columns[f"{number}_{column}"] = results.column(number, column).take(rows)
        names, layouts = self._live.described()
        members = pa.array(queries)
        self._counts.add_results(queries)
        columns[QUERY], columns[LAYOUT] = names.take(members), layouts.take(members)
        columns |= self._live.shown(members)
        self._results.append(pa.record_batch(columns))


@cache
def _read_table(path: str) -> pa.Table:
    with pa.memory_map(path) as file:
        return pa.ipc.open_file(file).read_all()


def latest_of(times: pa.Array) -> int:
    """Return the latest of some times, in microseconds; the least number where there is none."""
    latest = pc.max(times.cast(pa.int64())).as_py()
    return -NEVER if latest is None else int(latest)
