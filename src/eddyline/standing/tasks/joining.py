"""The engine of one cell: rows of all streams in, results of the queries out.

Over 500 lines: what is stored, which queries came when and what they have looked back at are one
state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.exchange.hypercube import coordinates, key_words
from eddyline.expressions.value_types import relabelled
from eddyline.standing.engine.failing_event import FailingEvent
from eddyline.standing.engine.shared_eddy import SharedEddy
from eddyline.standing.engine.shared_query import NEVER, Stream
from eddyline.standing.engine.shared_results import SharedResults
from eddyline.standing.log.engine_inputs import (
    EngineInputs,
    columns_needed,
    columns_put_out,
)
from eddyline.standing.log.joined_streams import JoinedStreams
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.query_template import QueryTemplate, argument_number, place_of
from eddyline.standing.tasks.aggregating import AggregatedResults
from eddyline.standing.tasks.called_values import CalledValues, without_failed
from eddyline.standing.tasks.counts import Counts
from eddyline.standing.tasks.failed_queries import QueryFailure, error_text, shown_event
from eddyline.standing.tasks.kept_up import KeptUpQueries, compiled
from eddyline.standing.tasks.result_limit import ResultLimit
from eddyline.standing.tasks.rule_functions import EngineFunctions
from eddyline.standing.tasks.sampled_rows import SAMPLE, SHARE, sample_of_rows, shares_of
from eddyline.standing.tasks.selecting import LAYOUT, QUERY
from eddyline.wall_clock import WorkClock

Key = tuple[int, int]
"""The batch that an entry came with, and its number in it."""

PLACES: Final = "places"
"""The column, in a blob that has lost rows, that says where the others were. No column of the
stream is called so: their names are numbers."""

INPUTS: Final = "inputs"
"""The column of such a blob that says in which of the stream's inputs some query wanted each row, a
bit for each. What no query wants in an input none will want there: one that looks back sees what
others want."""

_SHARE: Final = pa.float64()
"""The type of the column of a stream, after all others, that has the shares of its rows."""

PLENTY: Final = 8
"""Stored rows are forgotten when one in so many can be: their indexes are made anew then."""


@dataclass(slots=True)
class Entry:
    """Rows of a stream that are stored together.

    ``before`` is the number of the first query that had not come when they came.
    ``latest`` is the time of the latest, in microseconds; ``arrivals`` are for each input of the
    engine that has them the numbers by which they came in. ``places`` are those that the rows had
    in the blob as it came, if some have gone since. ``columns`` are those of the stream that some
    query needed when they came: they do not have the others.
    """

    stream: int
    before: int
    latest: int
    rows: int
    arrivals: dict[int, range] = field(default_factory=dict)
    places: npt.NDArray[np.int64] | None = None
    columns: frozenset[int] = frozenset()

    def wanted(self, stored: Mapping[int, npt.NDArray[np.int64]]) -> WantedPlaces:
        """Return which rows are among those stored, by input of the engine."""
        inputs = np.zeros(self.rows, np.int64)
        for bit, (number, came) in enumerate(self.arrivals.items()):
            low, high = np.searchsorted(stored[number], [came.start, came.stop])
            inputs[stored[number][low:high] - came.start] |= 1 << bit
        offsets = np.flatnonzero(inputs)
        places = offsets if self.places is None else self.places[offsets]
        return WantedPlaces(places, inputs[offsets])


class WantedPlaces(NamedTuple):
    """The places in a blob of the rows that some query wants, and in which inputs: bits."""

    places: npt.NDArray[np.int64]
    inputs: npt.NDArray[np.int64]


class JoiningQueries:
    """The queries of a job and the rows of one cell, in an eddy."""

    def __init__(self, streams: JoinedStreams, cell: int, times: int = 1) -> None:
        """Start at version 0, with tables only; a query can read a stream so many ``times``."""
        self._streams = streams
        self._cell = cell
        self.bounds: dict[int, int] = {}
        """The time from which on queries have looked back, by the first number of their group."""
        self._looking: list[StandingQuery] = []  # those that have yet to look back
        self._looked = False  # back, since rows that no query wants were looked for
        self._live = KeptUpQueries(streams.log, streams.job)
        self.inputs = EngineInputs(streams.job.inputs, times)
        self._some_went = False  # since rows that no query wants were looked for
        self._since: (
            tuple[tuple[int, int], tuple[list[int] | None, dict[int, list[int]]]] | None
        ) = None
        self._eddy = self._new_eddy()
        self._functions = EngineFunctions(
            self._eddy, remember=streams.remember, seconds=streams.limits.function_seconds
        )
        self._called = CalledValues(self._live, self._functions)
        self._limit = ResultLimit(streams.limits.max_results)
        self._alone: tuple[int, list[int]] | None = None  # queries of one stream, at a version
        self.entries: dict[Key, Entry] = {}
        self._results: list[pa.RecordBatch] = []
        self._counts = Counts()
        self.aggregated = AggregatedResults(streams.job.inputs, self._failed)

    @property
    def types(self) -> tuple[tuple[pa.DataType | None, ...], ...]:
        """The types of all columns that the rows of each stream may have."""
        return self._streams.types

    @property
    def next_number(self) -> int:
        """The number of the first query that has not come yet."""
        return self._live.next_number

    def go_to(self, version: int, told: int) -> bool:
        """Take on the changes up to a version; what looks back does so in :meth:`look_back`.

        Queries numbered below ``told`` have done so before. False where this engine is of no use
        any more, and one is to be made anew: where a query reads a stream more often than it can,
        or has looked back at its rows when others wanted them.
        """
        difference = self._live.go_to(version)
        # Where nothing is joined nothing is stored: queries look back at a history then.
        looks_back = self._streams.job.joins
        back = [q for q in difference.came if looks_back and q.look_back is not None]
        if self.entries and any(query.number < told for query in back):
            return False
        templates = self._live.templates
        if EngineInputs.of(self._streams.job.inputs, templates).times > self.inputs.times:
            return False
        if difference.went:
            self._eddy.remove(difference.went)
            self.aggregated.remove(difference.went)
            self._some_went = True
        self._eddy.add(compiled(difference.came, self.inputs.numbers, self._functions.numbers))
        if difference.went:
            self._functions.keep_only(templates)
        self.aggregated.add(difference.came)
        self._looking = [query for query in back if query.number >= told]
        return True

    def begin(self) -> None:
        """Begin with a task."""
        self._limit.begin()
        self._functions.begin()

    def look_back(self) -> None:
        """Let queries that have come look back at what is stored; what they find are results."""
        looking: dict[int, list[StandingQuery]] = {}
        for query in self._looking:
            looking.setdefault(query.group.first, []).append(query)
        self._looking = []
        for first, queries in looking.items():
            latest = self._eddy.latest()
            if latest is not None:
                self.bounds[first] = latest - (queries[0].look_back or 0)
                needed = self._needed(queries[0].template)
                lacking = {
                    number: [
                        entry.arrivals[number]
                        for entry in self.entries.values()
                        if number in entry.arrivals and not needed[entry.stream] <= entry.columns
                    ]
                    for number in range(len(self.inputs))
                }
                numbers = [query.number for query in queries]
                self._eddy.look_back(numbers, self.bounds[first], without=lacking)
                self._looked = True

    def _needed(self, template: QueryTemplate) -> Sequence[frozenset[int]]:
        return _columns_needed(self._streams.job.inputs, template)

    def judge(self, since: int | None, until: int) -> None:
        """Find what queries waited for, known by a watermark: see :meth:`SharedEddy.judge`."""
        self._eddy.judge(since, until)

    def next_known(self, watermark: int) -> int | None:
        """Return the watermark by which more of that is known; None for none."""
        return self._eddy.next_known(watermark)

    @property
    def waiting(self) -> int:
        """How many queries wait for an absence."""
        return self._eddy.waiting

    def keeps(self, stream: int) -> bool:
        """Tell whether rows of a stream are stored: not where they meet tables only."""
        return not all(map(self._eddy.passes_by, self.inputs.of_stream(stream)))

    def take(
        self, key: Key, stream: int, rows: pa.RecordBatch, *, before: int | None = None
    ) -> Entry:
        """Take rows of a stream.

        Those that are stored already give no results again; they came before the query of the
        number ``before``, and a query of that or a later number sees them only if it has looked
        back at them.
        """
        place = {name: position for position, name in enumerate(rows.schema.names)}
        columns = self._columns(stream, rows)
        time = self._streams.times[stream]
        latest = NEVER if time is None else latest_of(rows.column(place[str(time)]))
        came = self.next_number if before is None else before
        stored = frozenset(int(name) for name in rows.schema.names if name.isdigit())
        entry = Entry(stream, came, latest, rows.num_rows, columns=stored)
        self.entries[key] = entry
        if before is not None:
            self._some_went = True  # perhaps, since they came
        if PLACES in place:
            entry.places = rows.column(place[PLACES]).to_numpy()
        for bit, number in enumerate(self.inputs.of_stream(stream)):
            if before is not None:
                seen_by = self._seen_by(entry, rows, time, bit)
                self._eddy.restore(number, columns, rows.num_rows, seen_by)
                self._counts.errors.clear()  # they were told when the rows came first
            else:
                self._eddy.push(number, columns, rows.num_rows)
            first = self._eddy.first_passing(number)
            entry.arrivals[number] = range(first, first + rows.num_rows)
        return entry

    def take_late(self, stream: int, rows: pa.RecordBatch) -> bool:
        """Take rows of a stream that are behind the watermark; tell whether some query wants none.

        Only queries of a single stream take them: what they may meet of other streams has gone.
        What they meet of tables is there, and of windows those tell which are late.
        """
        alone = self._of_one_stream()
        if alone:
            columns = self._columns(stream, rows)
            for number in self.inputs.of_stream(stream):
                self._eddy.push(number, columns, rows.num_rows, alone)
        return len(alone) < len(self._live.queries)

    def _of_one_stream(self) -> list[int]:
        """Return the queries that join one stream with tables only."""
        if self._alone is None or self._alone[0] != self._live.version:
            tables = set(self._streams.job.tables)
            streams = {
                id(template): sum(name not in tables for name in template.inputs)
                for template in self._live.templates
            }
            queries = self._live.queries.items()
            alone = [number for number, query in queries if streams[id(query.template)] == 1]
            self._alone = self._live.version, alone
        return self._alone[1]

    def _columns(self, stream: int, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return all columns that rows of a stream may have; NULL those that these have not."""
        types = self._streams.types[stream]
        place = {name: position for position, name in enumerate(rows.schema.names)}
        # Rows may be stored with derived columns that nobody asks about any more.
        columns = [
            pa.nulls(rows.num_rows, pa.null() if kind is None else kind)
            if kind is None or str(number) not in place
            else rows.column(place[str(number)])
            for number, kind in enumerate(types)
        ]
        if self._streams.samples:
            shares = (
                rows.column(place[SHARE]) if SHARE in place else pa.nulls(rows.num_rows, _SHARE)
            )
            columns.append(shares)
        return columns

    def _seen_by(
        self, entry: Entry, rows: pa.RecordBatch, time: int | None, bit: int
    ) -> list[tuple[npt.NDArray[np.bool_], list[int]]] | None:
        """Return for stored rows which queries have seen them in an input; None for all.

        Those that came before the rows, and for rows that were wanted those that looked back so
        far, if the rows have what they need. The time it takes grows with the queries that
        came after the rows, and once between two changes with all of them.
        """
        saw, every = self._queries_since(entry.before)
        if saw is None:
            return None
        enough = {  # by identity, as many queries have one template, which is long to compare
            id(template): self._needed(template)[entry.stream] <= entry.columns
            for template in (self._live.templates if every else ())
        }
        queries = self._live.queries
        looked = {
            start: [number for number in numbers if enough[id(queries[number].template)]]
            for start, numbers in every.items()
        }
        starts = sorted(looked)
        back = np.full(rows.num_rows, len(starts))
        if time is not None:
            times = rows.column(str(time)).cast(pa.int64()).fill_null(-NEVER).to_numpy()
            back = np.searchsorted(np.array(starts, np.int64), times, side="right")
        if INPUTS in rows.schema.names:
            back = np.where(rows.column(INPUTS).to_numpy() >> bit & 1, back, 0)
        return [
            (back == count, [*saw, *(n for start in starts[:count] for n in looked[start])])
            for count in np.unique(back).tolist()
        ]

    def _queries_since(self, before: int) -> tuple[list[int] | None, dict[int, list[int]]]:
        """Return the queries that came before a number, and by how far those that looked back.

        None where all came before.
        """
        key = before, self._live.version
        if self._since is None or self._since[0] != key:
            queries = self._live.queries
            later = [query for query in queries.values() if query.number >= before]
            looked: dict[int, list[int]] = {}
            for query in later:
                if query.look_back is not None and query.group.first in self.bounds:
                    looked.setdefault(self.bounds[query.group.first], []).append(query.number)
            saw = [number for number in queries if number < before] if later else None
            self._since = key, (saw, looked)
        return self._since[1]

    def summarize(self, grouping: str, rows: pa.RecordBatch) -> None:
        """Take how many events of each group were dropped, for the grouping with this label."""
        self.aggregated.summarize(grouping, rows, self._eddy, self._streams.types[0])

    def results(self, counts: Counts) -> list[pa.RecordBatch]:
        """Return the results since the last time: all columns put out, queries and layouts."""
        results, self._results = self._results, []
        counts.add(self._counts)
        self._counts = Counts()
        return results

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

    def unwanted(self) -> dict[Key, WantedPlaces]:
        """Return what is left of entries that have lost most of their rows since queries went.

        For each the places in the blob as it came of the rows that some query wants. Entries
        without any are forgotten here. After queries have looked back it is what is left of all
        that have lost any, so that the blobs say what there was to see.
        """
        if not self._some_went and not self._looked:
            return {}
        exactly, self._some_went, self._looked = self._looked, False, False
        arrivals = {n: self._eddy.stored_arrivals(n) for n in range(len(self.inputs))}
        left = {}
        for key, entry in self.entries.items():
            wanted = entry.wanted(arrivals)
            everywhere = (1 << len(entry.arrivals)) - 1
            some_lost = len(wanted.places) < entry.rows or (wanted.inputs != everywhere).any()
            if 2 * len(wanted.places) <= entry.rows or (exactly and some_lost):
                left[key] = wanted
        self._forget([key for key, wanted in left.items() if not len(wanted.places)])
        return left

    def stored(self) -> Counter[str]:
        """Return how many rows that some query wants are stored, by stream."""
        counts: Counter[str] = Counter()
        for stream, name in enumerate(self._streams.job.streams):
            for number in self.inputs.of_stream(stream):
                counts[name] += len(self._eddy.stored_arrivals(number))
        return counts

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
            bound = min(kept, default=int(arrivals.max()) + 1 if len(arrivals) else 0)
            can_go = int(np.searchsorted(arrivals, bound))
            if can_go * PLENTY >= max(len(arrivals), 1):
                self._eddy.evict_arrived_before(number, bound)

    def _new_eddy(self) -> SharedEddy:
        job = self._streams.job
        share = (_SHARE,) if self._streams.samples else ()
        streams = [
            Stream(
                f"{name} {time}" if time else name,
                (
                    *(pa.null() if kind is None else kind for kind in self._streams.types[number]),
                    *(() if name in job.tables else share),
                ),
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
            on_error=self._failed,
            delays=True,
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

    def _take_results(self, results: SharedResults) -> None:
        shares = shares_of(results, self._streams)
        lineages, late = self.aggregated.take(results, self._eddy.sets, shares)
        inputs = self._streams.job.inputs
        for number, rows_late in late.items():
            self._counts.late[inputs[number % len(inputs)]] += rows_late
        positions, queries = self._eddy.sets.spread(lineages)
        passing = self._limit.passing(queries, self._counts)
        if passing is not None:
            positions, queries = positions[passing], queries[passing]
        if not len(positions):
            return
        called, failed = self._called.of(queries, partial(self._argument, results, positions))
        if failed:
            kept = without_failed(failed, len(queries), self._counts)
            positions, queries = positions[kept], queries[kept]
            called = {name: values.take(pa.array(kept)) for name, values in called.items()}
            for call in failed:
                template = self._live.queries[call.query].template
                numbers = self.inputs.numbers(template)
                self._failed(call.query, call.error, partial(_of_engine, call.event, numbers))
        rows = pa.array(positions)
        put_out = columns_put_out(self._streams.job.inputs, self._live.templates)
        columns = {}
        for number, column in put_out:
            if number in results.streams:
                columns[f"{number}_{column}"] = results.column(number, column).take(rows)
        names, layouts = self._live.described()
        members = pa.array(queries)
        columns[QUERY], columns[LAYOUT] = names.take(members), layouts.take(members)
        columns |= self._live.shown(members) | called
        if self._streams.samples:
            own = None if shares is None else shares[positions]
            columns[SAMPLE] = sample_of_rows(own, len(positions))
        self._results.append(pa.record_batch(columns))

    def _argument(
        self,
        results: SharedResults,
        positions: npt.NDArray[np.int64],
        template: QueryTemplate,
        index: int,
    ) -> pa.Array:
        """Return the values of a template's argument for results at positions."""
        place = place_of(index)
        number = self.inputs.numbers(template)[place.relation]
        return results.column(number, place.column).take(pa.array(positions))

    def _failed(self, query: int, error: Exception, event: FailingEvent) -> None:
        if query not in self._counts.errors:
            shown = shown_event(self._streams.named(event()))
            self._counts.errors[query] = QueryFailure(error_text(error), shown)


def _of_engine(event: FailingEvent, numbers: Sequence[int]) -> dict[int, object]:
    """Return the values of a template's arguments by the numbers that the engine's have."""
    places = {place_of(index): value for index, value in event().items()}
    return {
        argument_number(place._replace(relation=numbers[place.relation])): value
        for place, value in places.items()
    }


@lru_cache(maxsize=1 << 12)
def _columns_needed(inputs: tuple[str, ...], template: QueryTemplate) -> tuple[frozenset[int], ...]:
    """Return for each stream the columns that a query needs of the rows that it sees."""
    needed = columns_needed(inputs, [None] * len(inputs), [template])
    return tuple(map(frozenset, needed))


@cache
def _read_table(path: str) -> pa.Table:
    with pa.memory_map(path) as file:
        return pa.ipc.open_file(file).read_all()


def latest_of(times: pa.Array) -> int:
    """Return the latest of some times, in microseconds; the least number where there is none."""
    latest = pc.max(times.cast(pa.int64())).as_py()
    return -NEVER if latest is None else int(latest)
