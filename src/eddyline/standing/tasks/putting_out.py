"""What a cell put out becomes rows: joined rows as they are, closed windows query by query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator

from eddyline.blocks.column_types import arrow_type
from eddyline.exchange.blobs import decoded
from eddyline.expressions.terms import decide, terms_of
from eddyline.expressions.value_types import relabelled
from eddyline.expressions.vector import Columns
from eddyline.standing.engine.aggregation.aggregate_functions import value_of
from eddyline.standing.engine.aggregation.aggregate_parts import (
    END,
    GONE,
    GROUP_MORE,
    GROUP_SPREAD,
    START,
)
from eddyline.standing.engine.aggregation.estimates import Lost, estimated
from eddyline.standing.engine.aggregation.fragments import FRAGMENT, queries_in
from eddyline.standing.engine.aggregation.grouping import Aggregation, Grouping
from eddyline.standing.engine.aggregation.shared_aggregate import by_query
from eddyline.standing.engine.aggregation.tallies import together
from eddyline.standing.engine.aggregation.time_window import SessionWindow
from eddyline.standing.engine.shared_query import NEVER
from eddyline.standing.log.engine_inputs import (
    aggregated_column,
    aggregation_of,
    aggregations_in,
)
from eddyline.standing.log.joined_streams import JoinedStreams
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.query_template import QueryTemplate, streams_of
from eddyline.standing.tasks.aggregating import GROUPING
from eddyline.standing.tasks.counts import Counts, CountsByBatch
from eddyline.standing.tasks.dropped_groups import is_countable
from eddyline.standing.tasks.failed_queries import QueryFailure, error_text, shown_event
from eddyline.standing.tasks.kept_up import KeptUpQueries
from eddyline.standing.tasks.micro_batch import micro_batch
from eddyline.standing.tasks.result_limit import ResultLimit
from eddyline.standing.tasks.row_constants import RowConstants
from eddyline.standing.tasks.sampled_rows import SAMPLE, Interval, sample_of_windows
from eddyline.standing.tasks.selecting import LAYOUT, QUERY

ROWS: Final = 0
"""The kind of a blob of rows that are results."""

WINDOWS: Final = 1
"""The kind of a blob of aggregates of windows that have closed."""

TALLIES: Final = 2
"""The kind of a blob that says how many events such windows have had, and lost."""


@dataclass(frozen=True, slots=True)
class PuttingOut:
    """What Spark runs over the blobs of cells; gives batches of ``schema``.

    Windows that begin before the time that ``begins`` has for a query are no results of it.
    """

    streams: JoinedStreams
    schema: pa.Schema
    counts: Accumulator[CountsByBatch]
    begins: Mapping[int, int] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are results, with their queries."""
        closed: list[pa.Table] = []
        tallies: list[pa.Table] = []
        for batch in batches:
            kinds, blobs = batch.column("kind"), batch.column("results")
            for kind, blob in zip(kinds.to_pylist(), blobs, strict=True):
                for rows in decoded(blob.as_buffer()):
                    if kind == ROWS:
                        yield in_schema(rows, self.schema)
                    else:
                        tables = closed if kind == WINDOWS else tallies
                        tables.append(pa.Table.from_batches([rows]))
        if closed:
            yield from self._of_windows(closed, tallies)

    def _of_windows(
        self, closed: Sequence[pa.Table], tallies: Sequence[pa.Table]
    ) -> Iterator[pa.RecordBatch]:
        now = micro_batch()
        live = _live_in(self.streams, now.version)
        live.begin()
        counts = Counts()
        by_grouping: dict[Grouping, list[pa.Table]] = {}
        for table in closed:
            grouping = live.grouping(table)
            if grouping is not None:
                by_grouping.setdefault(grouping, []).append(table)
        told = together(tallies, GROUPING) if tallies else None
        for grouping, tables in by_grouping.items():
            rows = self._begun(by_query(tables, len(grouping.keys)))
            lost = None
            if self.streams.samples:
                lost = _tallied(rows, grouping, told)
            for results in live.results(grouping, rows, lost, counts):
                yield in_schema(results, self.schema)
        self.counts.add({(self.streams.job.name, now.number): counts})

    def _begun(self, rows: pa.Table) -> pa.Table:
        """Return the rows of windows that their queries see here."""
        if not self.begins:
            return rows
        numbers, places = np.unique(rows.column(FRAGMENT).to_numpy(), return_inverse=True)
        begins = np.array([self.begins.get(number, -NEVER) for number in numbers.tolist()])
        return rows.filter(pa.array(rows.column(START).to_numpy() >= begins[places]))


class Tallied(NamedTuple):
    """What is known of the events of the windows of some rows, each a number a row.

    How many they had, ``seen`` those that were taken, with the sums of their weights; ``near`` are
    those dropped that might have been joined with theirs, ``summed`` those that
    were counted in their groups. 0 where nothing was counted.
    """

    events: npt.NDArray[np.int64]
    seen: npt.NDArray[np.int64]
    more: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]
    near: npt.NDArray[np.int64]
    summed: npt.NDArray[np.int64]

    @property
    def dropped(self) -> npt.NDArray[np.int64]:
        """The events that were dropped."""
        return self.events - self.seen

    def of(self, rows: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Tallied:
        """Return what is known of some of the rows."""
        return Tallied(
            self.events[rows],
            self.seen[rows],
            self.more[rows],
            self.spread[rows],
            self.near[rows],
            self.summed[rows],
        )

    def lost(self, joined: bool, one_by_one: bool) -> Lost:  # noqa: FBT001 - as told apart
        """Return what rows have lost that may be ``joined`` ones, each drawn by itself or not."""
        if not joined:
            dropped = self.dropped.astype(np.float64)
        else:  # it is not known how many joined rows are missing, only whether any can be
            dropped = np.where(self.near > 0, np.nan, 0.0)
        return Lost(dropped, self.seen.astype(np.float64), self.more, self.spread, one_by_one)


def _with_rows(rows: pa.Table, tallied: Tallied, template: QueryTemplate) -> npt.NDArray[np.bool_]:
    """Tell which groups are results: those with an event taken, or all dropped ones counted."""
    if GONE not in rows.column_names:
        return np.ones(len(rows), np.bool_)
    counted = tallied.summed == tallied.dropped
    own = [n for n in rows.column_names if n.endswith(" rows")]
    if not own or not is_countable(template):
        return np.ones(len(rows), np.bool_)
    taken = [rows[n].combine_chunks().is_valid().to_numpy(zero_copy_only=False) for n in own]
    some: npt.NDArray[np.bool_] = counted | np.any(taken, axis=0)
    return some


def _bounds(rows: pa.Table, grouping: Grouping) -> list[pa.Array]:
    """Return when windows begin and end: a session says so, others are as long as all are."""
    starts = rows.column(START).combine_chunks()
    if isinstance(grouping.window, SessionWindow):
        return [starts, rows.column(END).combine_chunks()]
    return [starts, pa.array(starts.to_numpy() + grouping.window.size)]


def _floats(rows: pa.Table, name: str) -> npt.NDArray[np.float64]:
    """Return a column of numbers, 0 where there is none."""
    if name not in rows.column_names:
        return np.zeros(len(rows))
    column = rows.column(name).combine_chunks().cast(pa.float64()).fill_null(0.0)
    numbers: npt.NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
    return numbers


def _tallied(rows: pa.Table, grouping: Grouping, told: pa.Table | None) -> Tallied:
    starts = rows.column(START).to_numpy()
    distinct, places = np.unique(starts, return_inverse=True)
    events, seen, near, summed = (np.zeros(len(distinct), np.int64) for _ in range(4))
    more, spread = np.zeros(len(distinct)), np.zeros(len(distinct))
    every = Tallied(events, seen, more, spread, near, summed)
    if told is not None:
        own = told.filter(pc.equal(told[GROUPING], grouping.label))
        own = own.filter(pc.is_in(own[START], value_set=pa.array(distinct)))
        at = np.searchsorted(distinct, own[START].to_numpy())
        for column, source in zip(every, _TOLD, strict=True):
            column[at] = own[source].to_numpy()
    return every.of(places)


_TOLD: Final = ("events", "taken", "more", "spread", "near", "summed")
"""The columns that say it, in the order of :class:`Tallied`."""


class AggregatingQueries:
    """The queries of a job that aggregate, with what makes results of closed windows."""

    def __init__(self, streams: JoinedStreams) -> None:
        self._streams = streams
        self._live = KeptUpQueries(streams.log, streams.job)
        self._numbers: Mapping[Aggregation, int] = {}
        self._constants = RowConstants()
        self._limit = ResultLimit(streams.limits.max_results)

    def begin(self) -> None:
        """Begin with a task."""
        self._limit.begin()

    @property
    def version(self) -> int:
        """The version of the queries that are here."""
        return self._live.version

    def go_to(self, version: int) -> None:
        """Take on the changes up to a version."""
        if version == self.version:
            return
        self._live.go_to(version)
        queries = self._live.queries.values()
        self._numbers = aggregations_in(self._streams.job.inputs, queries)
        self._constants.keep_only(queries)

    def grouping(self, table: pa.Table) -> Grouping | None:
        """Return by what the rows of a table are grouped; None where no query wants them."""
        for number in queries_in(table).tolist():
            query = self._live.queries.get(number)
            if query is not None:
                aggregation = self._aggregation(query.template)
                return None if aggregation is None else aggregation.grouping
        return None

    def results(
        self, grouping: Grouping, rows: pa.Table, tallied: Tallied | None, counts: Counts
    ) -> Iterator[pa.RecordBatch]:
        """Yield the results among rows of windows, groups and queries, template by template.

        ``tallied`` is what is known of the events of their windows; None where none is dropped.
        """
        numbers = rows.column(FRAGMENT).to_numpy()
        by_template: dict[int, list[StandingQuery]] = {}
        for number in np.unique(numbers).tolist():
            query = self._live.queries.get(number)
            if query is not None:
                by_template.setdefault(id(query.template), []).append(query)
        for queries in by_template.values():
            own = np.isin(numbers, np.array([query.number for query in queries]))
            lost = None if tallied is None else tallied.of(own)
            yield self._of_template(grouping, queries, rows.filter(pa.array(own)), lost, counts)

    def _of_template(
        self,
        grouping: Grouping,
        queries: Sequence[StandingQuery],
        rows: pa.Table,
        tallied: Tallied | None,
        counts: Counts,
    ) -> pa.RecordBatch:
        template = queries[0].template
        if tallied is not None:
            seen = _with_rows(rows, tallied, template)
            rows, tallied = rows.filter(pa.array(seen)), tallied.of(seen)
        aggregation, aggregated = self._aggregation(template), template.aggregated
        if aggregation is None or aggregated is None:
            raise ValueError(f"{template.sql} aggregates nothing")
        numbers = rows.column(FRAGMENT).to_numpy()
        window = arrow_type(aggregated.types[0], template.settings.time_zone)
        columns = [each.cast(window.field("start").type) for each in _bounds(rows, grouping)]
        columns += [rows.column(f"k{n}").combine_chunks() for n in range(len(grouping.keys))]
        errors: dict[int, Exception] = {}
        joined = len(streams_of(template)) > 1
        lost = None if tallied is None else tallied.lost(joined, len(template.inputs) == 1)
        if tallied is not None and lost is not None and is_countable(template):
            where = tallied.summed == tallied.dropped
            gone, more, spread = (_floats(rows, n) for n in (GONE, GROUP_MORE, GROUP_SPREAD))
            lost = lost.in_groups(where, gone, more, spread)
        intervals: list[Interval] = []
        names = aggregated.names or ((),) * len(aggregation.aggregates)
        for aggregate, named in zip(aggregation.aggregates, names, strict=True):
            prefix = f"{aggregate.label} "
            own = {n.removeprefix(prefix): n for n in rows.column_names if n.startswith(prefix)}
            parts = rows.select(list(own.values())).rename_columns(list(own))
            if lost is None:
                vector = value_of(aggregate, parts)
            else:
                vector, low, high = estimated(aggregate, parts, lost)
                intervals.append(Interval(named, low, high))
            columns.append(vector.values)
            errors |= {row: error for row, error in vector.errors.items() if row not in errors}
        kept = np.ones(len(rows), np.bool_)
        if aggregated.having is not None:
            scope = Columns(
                dict(enumerate(columns)) | self._constants.of(queries, numbers), len(numbers)
            )
            kept, failed = decide(terms_of(aggregated.having), scope)
            errors = failed | errors
        kept = kept.copy()
        for row, error in errors.items():
            if int(numbers[row]) not in counts.errors:
                values = [column[row].as_py() for column in columns]
                labels = ["start", "end", *(f"key {n}" for n in range(len(grouping.keys)))]
                labels += [of[0] if of else "aggregate" for of in names]
                shown = shown_event(dict(zip(labels, values, strict=True)))
                counts.errors[int(numbers[row])] = QueryFailure(error_text(error), shown)
            kept[row] = False
        sample = None
        if tallied is not None and lost is not None:
            exact = lost.dropped == 0
            sample = sample_of_windows(exact, tallied.events, tallied.seen, intervals)
        chosen = self._passing(template, numbers, np.flatnonzero(kept), counts)
        return self._as_results(aggregation, columns, numbers, chosen, sample)

    def _passing(
        self,
        template: QueryTemplate,
        numbers: npt.NDArray[np.int32],
        rows: npt.NDArray[np.int64],
        counts: Counts,
    ) -> npt.NDArray[np.int64]:
        """Return the rows within the limit; all of those that are no results yet."""
        if template.further:
            return rows
        passing = self._limit.passing(numbers[rows].astype(np.int64), counts)
        return rows if passing is None else rows[passing]

    def _as_results(
        self,
        aggregation: Aggregation,
        columns: Sequence[pa.Array],
        numbers: npt.NDArray[np.int32],
        kept: npt.NDArray[np.int64],
        sample: pa.Array | None,
    ) -> pa.RecordBatch:
        chosen = pa.array(kept)
        start, end, *others = [column.take(chosen) for column in columns]
        number = self._numbers[aggregation]
        window = pa.StructArray.from_arrays([start, end], ["start", "end"])
        results = {aggregated_column(number, 0): window}
        results |= {aggregated_column(number, n): values for n, values in enumerate(others, 1)}
        names, layouts = self._live.described()
        members = pa.array(numbers[kept])
        results[QUERY], results[LAYOUT] = names.take(members), layouts.take(members)
        results |= self._live.shown(members)
        results |= {} if sample is None else {SAMPLE: sample.take(chosen)}
        return pa.record_batch(results)

    def _aggregation(self, template: QueryTemplate) -> Aggregation | None:
        return aggregation_of(self._streams.job.inputs, template)


def in_schema(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as a batch of a schema; NULL where a column is missing."""
    columns = [
        relabelled(rows.column(field.name), field.type)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.record_batch(columns, schema=schema)


_LIVE: dict[tuple[str, str], AggregatingQueries] = {}
"""The queries of jobs in this worker process, by log and name of the job."""


def _live_in(streams: JoinedStreams, version: int) -> AggregatingQueries:
    key = streams.log, streams.job.name
    live = _LIVE.pop(key, None)  # what fails half-way is not to be used again
    if live is None or live.version > version:
        live = AggregatingQueries(streams)
    live.go_to(version)
    _LIVE[key] = live
    return live
