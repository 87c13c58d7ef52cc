"""Many standing queries over streams in one eddy.

The plan CAR of Krishnamurthy, Franklin, Jacobson and Hellerstein (2004, Section 6.3). Methods with
an underscore are where the paper's other plans differ (``bench/sharing/planned_eddy.py``).

Over 500 lines: rows that come, queries that come, and queries that look back are one state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Rows, TupleBatch
from eddyline.engine.clock import Clock
from eddyline.engine.eddy import Eddy
from eddyline.engine.modules.module import Module
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.rank import RankPolicy
from eddyline.engine.signature import Signature
from eddyline.engine.timestamps import Ticks
from eddyline.expressions import Expression
from eddyline.expressions.vector import Function
from eddyline.standing.engine.absences import Judgement, WaitingQueries, anchored
from eddyline.standing.engine.asked_conditions import AskedConditions
from eddyline.standing.engine.condition_check import ConditionCheck
from eddyline.standing.engine.delayed_calls import DelayedCalls
from eddyline.standing.engine.evaluated_selection import EvaluatedSelection
from eddyline.standing.engine.failing_event import FailingEvent
from eddyline.standing.engine.lineage import DEAD, Lineages, LineageSets, alike
from eddyline.standing.engine.operators import (
    Build,
    OnError,
    Output,
    Probe,
    SharedOperator,
    SharedSelection,
    alive,
    lineage_of,
)
from eddyline.standing.engine.precedence import Kind, PrecedenceGraph, Shapes
from eddyline.standing.engine.selections import Selection as Selected
from eddyline.standing.engine.selections import Selections
from eddyline.standing.engine.shared_query import JoinShape, SharedQuery, Stream
from eddyline.standing.engine.shared_results import SharedResults, SharingStatistics
from eddyline.standing.engine.stems import Finder, StreamRows
from eddyline.standing.engine.windows import Windows


class SharedEddy:
    """Standing queries, known by number, that share all that they have in common.

    Rows are pushed stream by stream; results come to ``deliver`` while they are. Queries come
    and go between pushes: a query that comes sees rows that come after it.

    The answers do not depend on the policy: each result of each query comes once.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        deliver: Callable[[SharedResults], None],
        clock: Clock,
        generator: np.random.Generator,
        *,
        make_policy: Callable[[], Policy] = RankPolicy,
        on_error: OnError | None = None,
        delays: bool = False,
    ) -> None:
        """Begin without queries.

        With ``delays`` functions in selections of joined streams are called for rows that are
        joined only, where that costs less.

        ``on_error`` is told of a query that cannot be answered for a row, and why; the query goes
        on with other rows. Without it the error is raised.
        """
        self._functions: tuple[Function, ...] = ()
        self._on_error = _raise if on_error is None else on_error
        self._clock = clock
        self._generator = generator
        self._deliver = deliver
        self._make_policy = make_policy
        self._streams = tuple(self._rows_of(stream, n) for n, stream in enumerate(streams))
        self._ticks = Ticks()
        self._queries: dict[int, SharedQuery] = {}
        self._filters = tuple(Selections() for _ in streams)
        self._windows = Windows([n for n, stream in enumerate(streams) if stream.static])
        self._conditions = AskedConditions()
        self._delays = delays
        self.delayed = DelayedCalls(clock)
        """Which selections are asked of joined tuples."""
        self._shapes: dict[JoinShape, set[int]] = {}
        self.sets = LineageSets()
        """The sets of queries that tuples are alive for."""
        self._waiting = WaitingQueries(self.sets)
        self._judgement: Judgement | None = None  # while absences are judged
        self._made = 0
        self._routed_for: object = None
        self._eddy: Eddy | None = None
        self._shared: SharedOperator | None = None
        self._operators: list[Module] = []
        self._of_shapes: dict[tuple[Shapes, int], int] = {}

    @property
    def queries(self) -> Mapping[int, SharedQuery]:
        """The queries that are here, by number."""
        return dict(self._queries)

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self._queries)

    def __contains__(self, query: object) -> bool:
        """Tell whether a query is here."""
        return query in self._queries

    def first_passing(self, stream: int) -> int:
        """Return the number by which the first row of the latest push of a stream came in."""
        return self._streams[stream].passing.store.first

    def take_functions(self, functions: Sequence[Function]) -> range:
        """Take further functions that selections call; return the numbers that they have here."""
        first = len(self._functions)
        if self._delays:
            functions = self.delayed.metered(functions)
        self._functions = (*self._functions, *functions)
        self._routed_for = None
        return range(first, len(self._functions))

    def add(self, queries: Mapping[int, SharedQuery]) -> None:
        """Take further queries; ValueError for a number that is given already.

        And for a query with conditions on streams that it does not read.
        """
        if both := queries.keys() & self._queries.keys():
            raise ValueError(f"queries {sorted(both)} are here already")
        if self._delays:
            tables = [n for n, held in enumerate(self._streams) if held.stream.static]
            queries = self.delayed.added(queries, tables)
        self._conditions.add(queries)
        selections: list[dict[int, Selected]] = [{} for _ in self._streams]
        for number, query in queries.items():
            for stream, predicate in query.selections.items():
                selections[stream][number] = predicate
        for filter_, of_stream in zip(self._filters, selections, strict=True):
            filter_.add(of_stream)
        self._windows.add(queries)
        self._queries |= queries
        self._waiting.add(queries)
        self._take_shapes(queries)
        for number, held in enumerate(self._streams):
            if held.stream.static and len(held.built.store):
                self._see(number, queries.keys(), None)

    def _take_shapes(self, queries: Mapping[int, SharedQuery]) -> None:
        of_shapes: dict[tuple[int, int], tuple[SharedQuery, list[int]]] = {}
        for number, query in queries.items():  # those of a template share their shapes
            shapes = id(query.shape), id(query.present)
            of_shapes.setdefault(shapes, (query, []))[1].append(number)
        for query, numbers in of_shapes.values():
            for shape in {query.shape, query.present}:
                self._shapes.setdefault(shape, set()).update(numbers)
        self._of_shapes.clear()

    def hold(self, stream: int, columns: Sequence[pa.Array], rows: int) -> None:
        """Take all rows of a static stream, which stay; only before there are queries.

        ValueError where the stream is none, and where there are queries.
        """
        held = self._streams[stream]
        if not held.stream.static or self._queries:
            raise ValueError(f"{held.stream.name} cannot hold rows for all queries to come")
        held.hold(columns, rows, self._ticks.next())

    def look_back(
        self,
        queries: Collection[int],
        since: int | None = None,
        *,
        without: Mapping[int, Sequence[range]] = MappingProxyType({}),
    ) -> None:
        """Let queries see stored rows, too: those that some query wants, of a time from ``since``.

        In microseconds since 1970; None for all. They do not see rows ``without`` what they need:
        those of a stream that came in by numbers in some ranges. What the rows join to among
        themselves is handed over. ValueError for a query that is not here,
        and for one that waits for an absence: what it would have to see may be gone.
        """
        if unknown := set(queries) - self._queries.keys():
            raise ValueError(f"there are no queries {sorted(unknown)}")
        if waiting := [query for query in queries if query in self._waiting]:
            raise ValueError(f"queries {waiting} wait for an absence")
        eddy = self._routed()
        seen = {}
        for stream, held in enumerate(self._streams):
            asking = [n for n in queries if stream in self._queries[n].selections]
            if asking and not held.stream.static and len(held.built.store):
                seen[stream] = self._see(stream, asking, since, without.get(stream, ()))
        for stream, (rows, lineages) in seen.items():
            # Each result has one component of the first stream of its query: it is found once.
            first = self.sets.number([n for n in queries if self._first_stream(n) == stream])
            components: list[Rows | None] = [None] * len(self._streams)
            components[stream] = rows
            signature = Signature(1 << stream, 1 << stream)
            batch = TupleBatch(signature, tuple(components), self._ticks.next(), None, None)
            for probing in alive(batch, self.sets.within(lineages, first), signature):
                eddy.run(probing)

    def remove(self, queries: Collection[int]) -> None:
        """Let queries go, and all that is kept for them alone.

        ValueError for a number that is not here.
        """
        if unknown := set(queries) - self._queries.keys():
            raise ValueError(f"there are no queries {sorted(unknown)}")
        for stream, filter_ in enumerate(self._filters):
            filter_.remove([n for n in queries if stream in self._queries[n].selections])
        self._windows.remove(queries)
        self._conditions.remove(queries)
        self.delayed.remove(queries)
        self._waiting.remove(queries)
        for number in queries:
            query = self._queries.pop(number)
            for shape in {query.shape, query.present}:
                self._shapes[shape].discard(number)
                if not self._shapes[shape]:
                    del self._shapes[shape]
        self._renumber(queries)

    def judge(self, since: int | None, until: int) -> None:
        """Hand over what queries have waited for: tuples that nothing follows which must not.

        Those of which that is known by the watermark ``until``, and was not by ``since``, both in
        microseconds since 1970: every row is pushed by then whose time is before it.
        """
        eddy, shared = self._routed(), self._shared_now()
        for waiting in self._waiting.known(self._streams, since, until):
            batch = anchored(waiting.stream, len(self._streams), waiting, self._ticks.next())
            judgement = self._judgement = Judgement(self._waiting, self.sets)
            shared.on_undecided = judgement.undecided
            try:
                for probing in alive(batch, waiting.lineages, batch.signature):
                    eddy.run(probing)
            finally:
                self._judgement = shared.on_undecided = None
            judgement.deliver(self._put_out_now)

    def next_known(self, watermark: int) -> int | None:
        """Return the watermark by which :meth:`judge` finds more than by this; None for none."""
        return self._waiting.next_known(self._streams, watermark)

    @property
    def waiting(self) -> int:
        """How many queries wait for an absence."""
        return len(self._waiting)

    def at_once(self, lineages: Lineages) -> Lineages:
        """Return the queries, among these, that do not wait with what is stored."""
        if not len(self._waiting):
            return lineages
        return self.sets.without(lineages, alike(self._waiting.every(), len(lineages)))

    def push(
        self,
        stream: int,
        columns: Sequence[pa.Array],
        rows: int,
        queries: Collection[int] | None = None,
    ) -> None:
        """Take rows of a stream, and hand over what they join to with those that came before.

        They are seen by ``queries``; by all where that is None.
        """
        every = self.of_shapes((1 << len(self._shapes)) - 1)
        if queries is not None:
            every = self.sets.number(queries)
        self._push(stream, columns, alike(every, rows))

    def restore(
        self,
        stream: int,
        columns: Sequence[pa.Array],
        rows: int,
        seen_by: Sequence[tuple[npt.NDArray[np.bool_], Collection[int]]] | None = None,
    ) -> None:
        """Take rows that were here before: they are stored, and what they join to is known.

        ``seen_by`` has for some of the rows the queries that saw them come, or looked back at
        them; no other query will. By default all queries that are here did.
        """
        lineages = alike(self.of_shapes((1 << len(self._shapes)) - 1), rows)
        if seen_by is not None:
            lineages = np.full(rows, DEAD, np.int32)
            for some, queries in seen_by:
                lineages[some] = self.sets.number(queries)
        self._shared_now().restoring = True
        try:
            self._push(stream, columns, lineages)
        finally:
            self._shared_now().restoring = False

    def _push(self, stream: int, columns: Sequence[pa.Array], lineages: Lineages) -> None:
        eddy = self._routed()
        held = self._streams[stream]
        numbers = held.passing.load(columns, len(lineages))
        restoring = self._shared_now().restoring
        for part in self.delayed.parts(stream, numbers, only_stored=restoring):
            own = lineages[part.start - numbers.start : part.stop - numbers.start]
            components: list[range | npt.NDArray[np.int64] | None] = [None] * len(self._streams)
            components[stream] = part
            eddy.run(TupleBatch(Signature(1 << stream), tuple(components), None, None, own))
        held.settle()
        if self.passes_by(stream):
            held.built.store.evict_before(held.built.store.stop)
        if len(self.sets) > self._enough_sets:
            self._renumber(())

    def widest(self, stream: int) -> int:
        """Return for how long after its own time a row of a stream may be wanted, at the most.

        In microseconds; :data:`~eddyline.standing.engine.shared_query.NEVER` where some query has
        no bound.
        """
        return self._windows.widest(stream)

    def evict_arrived_before(self, stream: int, arrival: int) -> None:
        """Forget the stored rows of a stream that came in by a number below this."""
        held = self._streams[stream]
        store = held.built.store
        store.evict_before(store.first + int(np.searchsorted(held.arrivals, arrival)))
        self.delayed.forget_before(stream, arrival)

    def forget_arrived(self, stream: int, came: range) -> None:
        """Let no query want the rows of a stream that came in by these numbers."""
        held = self._streams[stream]
        low, high = np.searchsorted(held.arrivals, [came.start, came.stop])
        held.lineages[low:high] = DEAD

    def latest(self) -> int | None:
        """Return the latest time of a stored row that some query wants, in microseconds."""
        times = []
        for held in self._streams:
            if held.stream.time is not None and not held.stream.static and len(held.built.store):
                order = held.built.store.order(held.stream.time)
                words = order.words[order.valid & (held.lineages != DEAD)]
                times += [int(words.max())] if len(words) else []
        return max(times, default=None)

    def passes_by(self, stream: int) -> bool:
        """Tell whether nothing that comes later meets the rows of a stream: they are not kept."""
        return all(
            self._streams[other].stream.static
            for shape in self._shapes
            if shape.streams >> stream & 1
            for other in range(shape.streams.bit_length())
            if shape.streams >> other & 1 and other != stream
        )

    def stored_arrivals(self, stream: int) -> npt.NDArray[np.int64]:
        """Return the numbers by which the stored rows that some query wants came in.

        Those of a push stand before those of the next, and among themselves in any order.
        """
        held = self._streams[stream]
        wanted: npt.NDArray[np.int64] = held.arrivals[held.lineages != DEAD]
        return wanted

    def of_shapes(self, shapes: Shapes) -> int:
        """Return the number of the set of queries that join in one of these ways."""
        known = self._of_shapes.get((shapes, self.sets.generation))
        if known is None:
            members = [
                query
                for number, queries in enumerate(self._shapes.values())
                if shapes >> number & 1
                for query in queries
            ]
            known = self._of_shapes[shapes, self.sets.generation] = self.sets.number(members)
        return known

    def statistics(self) -> SharingStatistics:
        """Return what was done, and what is held."""
        probes = [operator.made for operator in self._operators if isinstance(operator, Probe)]
        return SharingStatistics(
            {held.stream.name: len(held.built.store) for held in self._streams},
            self._made + sum(probes),
            self.sets.statistics(),
        )

    def _routed(self) -> Eddy:
        """Return the eddy, made anew where queries join in other ways than before."""
        shapes = tuple(self._shapes)
        evaluated = tuple(tuple(filter_.evaluated) for filter_ in self._filters)
        calling = self._conditions.calling
        if self._eddy is not None and (shapes, evaluated, calling) == self._routed_for:
            return self._eddy
        self._made = self.statistics().made
        for held, uses in zip(self._streams, evaluated, strict=True):
            # Twice: a row of a stream meets many others, and its calls are remembered so.
            held.evaluate_with(self._functions, (*uses, *calling, *calling))
        graph = self._graph(shapes, [1 + len(uses) for uses in evaluated])
        shared = self._shared = self._shared_operator(graph)
        check = self._check(shared)
        self._operators = [
            self._operator(shared, number, evaluated, check) for number in graph.numbers
        ]
        self._routed_for = shapes, evaluated, calling
        self._eddy = Eddy(
            self._operators, self._make_policy(), self._clock, self._generator, routes=graph
        )
        return self._eddy

    def _first_stream(self, query: int) -> int:
        """Return the first stream, not a table, that a query reads; -1 where it reads none."""
        streams = self._queries[query].selections
        return min((s for s in streams if not self._streams[s].stream.static), default=-1)

    def _see(
        self,
        stream: int,
        queries: Collection[int],
        since: int | None,
        without: Sequence[range] = (),
    ) -> tuple[npt.NDArray[np.int64], Lineages]:
        """Let queries see stored rows; return their numbers, and the queries that want each."""
        shared, held = self._shared_now(), self._streams[stream]
        seen = (
            np.ones(len(held.built.store), np.bool_)
            if held.stream.static
            else (held.lineages != DEAD)
        )
        if since is not None and held.stream.time is not None:
            order = held.built.store.order(held.stream.time)
            seen &= order.valid & (order.words >= since)
        for came in without:
            low, high = np.searchsorted(held.arrivals, [came.start, came.stop])
            seen[low:high] = False
        places = np.flatnonzero(seen)
        rows = places + held.built.store.first
        components: list[Rows | None] = [None] * len(self._streams)
        components[stream] = rows
        batch = TupleBatch(Signature(1 << stream, 1 << stream), tuple(components), None, None, None)
        asking = alike(self.sets.number(queries), len(rows))
        lineages = shared.select(batch, stream, self._filters[stream], asking)
        number = shared.graph.output
        for expression in self._filters[stream].evaluated:
            evaluated = self._evaluated(shared, stream, number, expression)
            lineages = evaluated.among(batch, lineages)
        held.lineages[places] = self.sets.either(held.lineages[places], lineages)
        return rows, lineages

    def _shared_now(self) -> SharedOperator:
        self._routed()
        if self._shared is None:
            raise RuntimeError("an eddy is routed by now")
        return self._shared

    def _rows_of(self, stream: Stream, number: int) -> StreamRows:  # noqa: ARG002 - for who counts by it
        return StreamRows(stream, self._clock)

    def _graph(self, shapes: Sequence[JoinShape], selections: Sequence[int]) -> PrecedenceGraph:
        return PrecedenceGraph(shapes, selections)

    def _shared_operator(self, graph: PrecedenceGraph) -> SharedOperator:
        return SharedOperator(graph, self._streams, self, self._on_error)

    def _check(self, shared: SharedOperator) -> ConditionCheck:
        return ConditionCheck(shared, self._conditions, self.delayed, self._clock)

    def _operator(
        self,
        shared: SharedOperator,
        number: int,
        evaluated: Sequence[Sequence[Expression]],
        check: ConditionCheck,
    ) -> Module:
        operator = shared.graph.operators[number]
        stream = operator.stream
        match operator.kind:
            case Kind.SELECT if operator.rank:
                expression = evaluated[stream][operator.rank - 1]
                return self._evaluated(shared, stream, number, expression)
            case Kind.SELECT:
                return SharedSelection(shared, stream, number, self._filters[stream])
            case Kind.BUILD:
                return Build(shared, stream, number, self._ticks)
            case Kind.PROBE:
                finder = Finder(self._streams, stream, operator.keys)
                return Probe(shared, operator, number, finder, self._windows, check, self._clock)
            case Kind.OUTPUT:
                return Output(shared, number, self._put_out)

    def _evaluated(
        self, shared: SharedOperator, stream: int, number: int, expression: Expression
    ) -> EvaluatedSelection:
        selections = self._filters[stream]
        return EvaluatedSelection(shared, stream, number, expression, selections, self.delayed)

    def _put_out(self, batch: TupleBatch, lineages: Lineages) -> None:
        if self._judgement is not None:
            self._judgement.take(batch, lineages)
        elif not len(self._waiting):
            self._put_out_now(batch, lineages)
        else:
            for some in alive(batch, self.at_once(lineages), batch.signature):
                self._put_out_now(some, lineage_of(some))

    def _put_out_now(self, batch: TupleBatch, lineages: Lineages) -> None:
        self._deliver(SharedResults(batch, lineages, self._streams))

    def _renumber(self, without: Collection[int]) -> None:
        """Forget the sets that no stored row has, and some queries in the others."""
        held = [stream.lineages for stream in self._streams]
        new = self.sets.keep_only(held, without)
        for stream, lineages in zip(self._streams, held, strict=True):
            lineages[:] = new[lineages]
            stream.compact()
        self._of_shapes.clear()
        self._enough_sets = max(2 * len(self.sets), ENOUGH_SETS)

    _enough_sets = 1 << 16


ENOUGH_SETS = 1 << 16
"""Sets, at least, before those that no stored row has are looked for."""


def _raise(query: int, error: Exception, event: FailingEvent) -> None:  # noqa: ARG001 - as on_error is told
    raise error
