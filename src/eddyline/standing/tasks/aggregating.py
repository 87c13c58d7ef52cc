"""The aggregates of a cell: what its queries aggregate of the rows that the cell's eddy finds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions import Argument, Expression, evaluate
from eddyline.expressions.vector import Columns
from eddyline.standing.engine.aggregation.aggregate_functions import Aggregate
from eddyline.standing.engine.aggregation.aggregate_parts import GONE, AggregateParts
from eddyline.standing.engine.aggregation.estimates import Weights
from eddyline.standing.engine.aggregation.fragments import queries_in
from eddyline.standing.engine.aggregation.grouping import Grouping
from eddyline.standing.engine.aggregation.shared_aggregate import PANE, SharedAggregate
from eddyline.standing.engine.aggregation.shared_sessions import SharedSessions
from eddyline.standing.engine.aggregation.tallies import WindowTallies
from eddyline.standing.engine.aggregation.time_window import SessionWindow, TimeWindow
from eddyline.standing.engine.failing_event import failing_event
from eddyline.standing.engine.lineage import DEAD, Lineages, LineageSets, alike
from eddyline.standing.engine.operators import OnError
from eddyline.standing.engine.shared_eddy import SharedEddy
from eddyline.standing.engine.shared_results import SharedResults
from eddyline.standing.engine.windows import earliest
from eddyline.standing.log.engine_inputs import aggregation_of
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.query_template import QueryTemplate, argument_number, place_of, streams_of
from eddyline.standing.tasks.dropped_groups import is_countable

PartKey = tuple[str, int]
"""The label of a grouping, and the number of a part of what it keeps."""

GROUPING: Final = "grouping"
"""The column with the label of a grouping."""

SIZE: Final = "size"
"""The column with the size of a window that events are counted in."""

_TALLIES: Final = -1
"""The number of the part that has how many events windows have had."""


class ClosedWindows(NamedTuple):
    """Windows that have closed, grouping by grouping, and what is told of their events.

    That has the columns of :data:`~eddyline.standing.engine.aggregation.tallies.CLOSED`,
    :data:`GROUPING` and :data:`SIZE`.
    """

    aggregates: list[pa.Table]
    tallies: pa.Table | None


class AggregatedResults:
    """Aggregates by grouping, and the queries that share each.

    What has been aggregated is state: it is saved part by part, as parts come and go.
    """

    def __init__(self, streams: tuple[str, ...], on_error: OnError) -> None:
        self._streams = streams
        self._on_error = on_error
        self._groupings: dict[Grouping, _Shared] = {}
        self._of_query: dict[int, Grouping] = {}
        self._closed: int | None = None
        self._aggregating: tuple[int, int] | None = None
        self._orphans: list[PartKey] = []
        self._countable: set[int] = set()
        self._summary: _Summary | None = None  # while one is taken

    def __len__(self) -> int:
        """Return how many queries aggregate."""
        return len(self._of_query)

    def add(self, queries: Iterable[StandingQuery]) -> None:
        """Take those of further queries that aggregate."""
        for query in queries:
            aggregation = aggregation_of(self._streams, query.template)
            if aggregation is None:
                continue
            grouping = aggregation.grouping
            shared = self._groupings.get(grouping)
            if shared is None:
                shared = self._groupings[grouping] = _Shared(grouping)
                if self._closed is not None:
                    shared.aggregate.close(self._closed)
            shared.queries[query.number] = aggregation.aggregates
            if shared.tallies is not None:
                shared.tallies.early = max(shared.tallies.early, _earliest(query.template))
            shared.changed()
            self._of_query[query.number] = grouping
            if is_countable(query.template):
                self._countable.add(query.number)
        self._aggregating = None

    def remove(self, queries: Collection[int]) -> None:
        """Forget those of some queries that aggregate, and what is kept for them alone."""
        by_grouping: dict[Grouping, list[int]] = {}
        for query in queries:
            self._countable.discard(query)
            grouping = self._of_query.pop(query, None)
            if grouping is not None:
                by_grouping.setdefault(grouping, []).append(query)
        for grouping, gone in by_grouping.items():
            shared = self._groupings[grouping]
            shared.aggregate.remove(gone)
            for query in gone:
                del shared.queries[query]
            shared.changed()
        self._aggregating = None

    def take(
        self,
        results: SharedResults,
        sets: LineageSets,
        shares: npt.NDArray[np.float64] | None = None,
    ) -> tuple[Lineages, dict[int, int]]:
        """Aggregate results; return for which queries they are results as they are, and late rows.

        ``shares`` are those with which they were taken, None where that is all. Late rows are
        those that have come when all their windows had closed: their number, by the input whose
        time says in which windows a row is.
        """
        if self._summary is not None:
            self._take_summary(self._summary, results, sets)
            return np.full(len(results), DEAD, np.int32), {}
        if not self._of_query:
            return results.lineages, {}
        late: dict[int, npt.NDArray[np.bool_]] = {}
        for grouping, shared in self._groupings.items():
            if not shared.queries or grouping.time.relation not in results.streams:
                continue
            lineages = sets.within(results.lineages, shared.set_number(sets))
            rows = np.flatnonzero(lineages != DEAD)
            if len(rows):
                of_input = late.setdefault(grouping.time.relation, np.zeros(len(results), np.bool_))
                of_input[rows] |= self._aggregate(
                    shared, results, rows, lineages[rows], sets, shares
                )
        every = alike(self._every(sets), len(results))
        counts = {number: int(np.count_nonzero(rows)) for number, rows in late.items()}
        return sets.without(results.lineages, every), counts

    def tally(self, counted: pa.RecordBatch, share: float) -> None:
        """Take how many events windows have had, where such a share of them was taken."""
        by_window: dict[TimeWindow, list[WindowTallies]] = {}
        for shared in self._groupings.values():
            if shared.tallies is not None:
                by_window.setdefault(shared.tallies.window, []).append(shared.tallies)
        for window, tallies in by_window.items():
            own = pa.Table.from_batches([counted])
            for name in ("size", "slide", "start"):
                own = own.filter(pc.equal(own[name], getattr(window, name)))
            if len(own):
                panes, *numbers = (own[n].combine_chunks() for n in ("pane", "events", "taken"))
                for each in tallies:
                    each.take(panes, numbers[0], numbers[1], share)

    def summarize(
        self,
        label: str,
        rows: pa.RecordBatch,
        eddy: SharedEddy,
        types: Sequence[pa.DataType | None],
    ) -> None:
        """Take how many events of each group were dropped, for the grouping with this label.

        For queries to which the columns that are grouped by say all; ``types`` are those of
        the stream's columns.
        """
        shared = next((s for g, s in self._groupings.items() if g.label == label), None)
        queries = [] if shared is None else sorted(self._countable & shared.queries.keys())
        if shared is None or shared.tallies is None or not queries:
            return
        panes, gone = rows.column(PANE), rows.column(GONE)
        shared.tallies.take_summed(panes, gone)
        columns = [
            rows.column(str(number))
            if str(number) in rows.schema.names
            else pa.nulls(rows.num_rows, pa.null() if kind is None else kind)
            for number, kind in enumerate(types)
        ]
        time = shared.grouping.time.column
        columns[time] = panes.cast(types[time] or pa.null())
        columns.append(pa.nulls(rows.num_rows, pa.float64()))  # their shares
        self._summary = _Summary(shared, gone.to_numpy(), eddy)
        try:
            eddy.push(0, columns, rows.num_rows, queries)
        finally:
            self._summary = None

    def _take_summary(self, summary: _Summary, results: SharedResults, sets: LineageSets) -> None:
        rows = np.flatnonzero(results.lineages != DEAD)
        if len(rows):
            places = results.arrivals(0)[rows] - summary.eddy.first_passing(0)
            lineages = results.lineages[rows]
            gone = summary.gone[places]
            self._aggregate(summary.shared, results, rows, lineages, sets, None, gone)

    def close(self, watermark: int) -> ClosedWindows:
        """Close the windows that end by a watermark."""
        self._closed = watermark
        tables, tallies = [], []
        for shared in self._groupings.values():
            told = None
            if shared.tallies is not None:
                told = shared.tallies.close(shared.aggregate.closed, watermark)
            if shared.tallies is not None and told is not None:
                label = pa.array([shared.grouping.label] * len(told))
                size = pa.array([shared.tallies.window.size] * len(told), pa.int64())
                told = told.append_column(GROUPING, label).append_column(SIZE, size)
                tallies.append(told)
            table = shared.aggregate.close(watermark)
            tables += [] if table is None else [table]
        return ClosedWindows(tables, pa.concat_tables(tallies) if tallies else None)

    def due(self) -> int | None:
        """Return the watermark by which the next window closes."""
        watermarks = [shared.aggregate.due() for shared in self._groupings.values()]
        watermarks += [
            shared.tallies.due(shared.aggregate.closed)
            for shared in self._groupings.values()
            if shared.tallies is not None
        ]
        return min((watermark for watermark in watermarks if watermark is not None), default=None)

    def stored(self) -> tuple[int, int]:
        """Return how many rows of aggregates are kept, and in how many parts."""
        kept = [shared.aggregate.stored() for shared in self._groupings.values()]
        return sum(rows for rows, _ in kept), sum(parts for _, parts in kept)

    def load(self, parts: Mapping[PartKey, pa.Table], closed: int | None) -> None:
        """Take what was saved, in the place of all that is here.

        What no query wants any more, as all that did have gone meanwhile, is to be forgotten.
        """
        self._closed = closed
        known_labels = {grouping.label for grouping in self._groupings}
        self._orphans = [key for key in parts if key[0] not in known_labels]
        for grouping, shared in self._groupings.items():
            label = grouping.label
            if shared.tallies is not None:
                shared.tallies.load(parts.get((label, _TALLIES)))
            own = {
                number: table
                for (of, number), table in parts.items()
                if of == label and number != _TALLIES
            }
            if closed is not None:
                shared.aggregate.load(own.items(), closed)
            known = {query for table in own.values() for query in queries_in(table).tolist()}
            shared.aggregate.remove(known - shared.queries.keys())

    def changes(self) -> tuple[dict[PartKey, pa.Table], list[PartKey]]:
        """Return the parts to be saved since the last time, and those to be forgotten."""
        came: dict[PartKey, pa.Table] = {}
        went, self._orphans = self._orphans, []
        for grouping, shared in list(self._groupings.items()):
            new, old = shared.aggregate.changes()
            label = grouping.label
            came |= {(label, number): table for number, table in new.items()}
            went += [(label, number) for number in old]
            if shared.tallies is not None:
                if not shared.queries:
                    shared.tallies.forget()
                tallies, gone = shared.tallies.changes()
                came |= {} if tallies is None else {(label, _TALLIES): tallies}
                went += [(label, _TALLIES)] if gone else []
            if not shared.queries:
                del self._groupings[grouping]
        return came, went

    def _aggregate(
        self,
        shared: _Shared,
        results: SharedResults,
        rows: npt.NDArray[np.int64],
        lineages: Lineages,
        sets: LineageSets,
        shares: npt.NDArray[np.float64] | None,
        gone: npt.NDArray[np.int64] | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Aggregate some rows of results; return which of them have come too late."""
        grouping = shared.grouping
        wanted = shared.aggregates if gone is None else []
        distinct, of_rows = np.unique(lineages, return_inverse=True)
        fragments = [sets.members(int(number)) for number in distinct]
        values = [function.argument for function in wanted if function.argument is not None]
        scope = _scope(results, rows, [*grouping.keys, *values], argument_number(grouping.time))
        times = scope.argument(argument_number(grouping.time))
        failed: set[int] = set()
        keys = []
        for key in grouping.keys:
            vector = evaluate(key, scope)
            keys.append(vector.values)
            for row, error in vector.errors.items():
                failed.add(row)
                event = failing_event([key], scope, row)
                for query in fragments[of_rows[row]].tolist():
                    self._on_error(query, error, event)
        aggregated: dict[Aggregate, pa.Array | None] = {}
        for aggregate in wanted:
            if aggregate.argument is None:
                aggregated[aggregate] = None
                continue
            vector = evaluate(aggregate.argument, scope)
            aggregated[aggregate] = vector.values
            for row, error in vector.errors.items():
                event = failing_event([aggregate.argument], scope, row)
                for query in fragments[of_rows[row]].tolist():
                    if aggregate in shared.queries[query]:
                        self._on_error(query, error, event)
        if failed:  # in no group: there will be no more of the queries that they are of
            mask = np.zeros(len(rows), np.bool_)
            mask[list(failed)] = True
            times = pc.if_else(pa.array(mask), pa.scalar(None, times.type), times)
        numbers = of_rows.astype(np.int32)
        weights = _weights(results, rows, shares)
        return shared.aggregate.take(times, keys, aggregated, fragments, numbers, weights, gone)

    def _every(self, sets: LineageSets) -> int:
        if self._aggregating is None or self._aggregating[0] != sets.generation:
            self._aggregating = sets.generation, sets.number(self._of_query)
        return self._aggregating[1]


class _Summary(NamedTuple):
    """A summary while it is taken: its grouping, how many events each row is of, and the eddy."""

    shared: _Shared
    gone: npt.NDArray[np.int64]
    eddy: SharedEddy


class _Shared:
    """A grouping, the aggregate that its queries share, and what each asks for."""

    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping
        window, keys, delay = grouping.window, len(grouping.keys), grouping.delay
        self.aggregate: AggregateParts
        self.tallies: WindowTallies | None = None  # of sessions there are none
        if isinstance(window, SessionWindow):
            self.aggregate = SharedSessions(window, keys, delay)
        else:
            self.aggregate = SharedAggregate(window, keys, delay)
            self.tallies = WindowTallies(window, delay)
        self.queries: dict[int, tuple[Aggregate, ...]] = {}
        self.number: tuple[int, int] | None = None
        self._asked_for: list[Aggregate] | None = None

    @property
    def aggregates(self) -> list[Aggregate]:
        """All that is asked for, each once."""
        if self._asked_for is None:
            distinct = dict.fromkeys(self.queries.values())
            self._asked_for = list(
                dict.fromkeys(aggregate for some in distinct for aggregate in some)
            )
        return self._asked_for

    def changed(self) -> None:
        """Take note that queries have come or gone."""
        self.number = self._asked_for = None

    def set_number(self, sets: LineageSets) -> int:
        """Return the number of the set of its queries."""
        known = self.number
        if known is None or known[0] != sets.generation:
            number = sets.number(self.queries)
            known = self.number = sets.generation, number
        return known[1]


def _earliest(template: QueryTemplate) -> int:
    """Return how much earlier than a row those that it is joined with may be."""
    if template.aggregated is None:
        return 0
    streams = streams_of(template)
    if len(streams) == 1:
        return 0
    relation = template.aggregated.aggregation.grouping.time.relation
    return max(earliest(template.query.bounds, streams)[relation], 0)


def _weights(
    results: SharedResults, rows: npt.NDArray[np.int64], shares: npt.NDArray[np.float64] | None
) -> Weights | None:
    """Return what some rows stand for; joined ones are not drawn one by one."""
    if shares is None:
        return None
    return Weights.of(shares[rows], one_by_one=len(results.streams) == 1)


def _scope(
    results: SharedResults,
    rows: npt.NDArray[np.int64],
    expressions: Sequence[Expression],
    time: int,
) -> Columns:
    """Return some rows of results with the columns that expressions are about."""
    used = {time} | {
        node.index
        for expression in expressions
        for node in expression.walk()
        if isinstance(node, Argument)
    }
    chosen = None if len(rows) == len(results) else pa.array(rows)
    columns = {}
    for number in sorted(used):
        column = results.column(*place_of(number))
        columns[number] = column if chosen is None else column.take(chosen)
    return Columns(columns, len(rows))
