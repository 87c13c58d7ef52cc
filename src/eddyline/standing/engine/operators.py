"""The operators that queries share, as modules of an eddy.

Krishnamurthy, Franklin, Jacobson and Hellerstein (2004): the plan CAR of Section 6.3. Methods
with an underscore are where the paper's other plans differ (``bench/sharing/planned_eddy.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Marks, Rows, TupleBatch, pick, spread
from eddyline.engine.clock import Clock
from eddyline.engine.signature import Signature
from eddyline.engine.storage.slots import Matches
from eddyline.engine.timestamps import Ticks
from eddyline.expressions import Expression, evaluate
from eddyline.expressions.vector import Vector
from eddyline.standing.engine.failing_event import FailingEvent
from eddyline.standing.engine.lineage import DEAD, Lineages, LineageSets
from eddyline.standing.engine.precedence import Operator, PrecedenceGraph, Shapes
from eddyline.standing.engine.selections import Selections
from eddyline.standing.engine.stems import Finder, StreamRows
from eddyline.standing.engine.windows import Windows

OnError: TypeAlias = "Callable[[int, Exception, FailingEvent], object]"
"""Told of the query that cannot be answered for a tuple, why, and what the tuple has."""


OnUndecided: TypeAlias = "Callable[[int, TupleBatch, int], object]"
"""Told of a query, a batch, and the position of the tuple on which the query raises an error."""


class Conditions(Protocol):
    """What queries ask of joined tuples, beside keys and windows."""

    def by_probe(self, batch: TupleBatch, newest: int) -> Lineages:
        """Return the lineage of tuples that have got a component of a stream just now."""
        ...

    def made(self, tuples: int, seconds: float) -> None:
        """Take how long it has taken to find and make so many tuples, and to ask them."""
        ...


class Queries(Protocol):
    """What operators ask about the queries that share them."""

    @property
    def sets(self) -> LineageSets:
        """The sets of queries."""
        ...

    def of_shapes(self, shapes: Shapes) -> int:
        """Return the number of the set of queries that join in one of these ways."""
        ...

    def at_once(self, lineages: Lineages) -> Lineages:
        """Return the queries, among these, that do not wait with what is stored."""
        ...


class SharedOperator:
    """What all operators have in common."""

    def __init__(
        self,
        graph: PrecedenceGraph,
        streams: tuple[StreamRows, ...],
        queries: Queries,
        on_error: OnError,
    ) -> None:
        """Take the precedence graph, the rows of all streams and their queries.

        ``on_error`` is told of a query that cannot be answered for a tuple.
        """
        self.on_error = on_error
        self.graph = graph
        self.streams = streams
        self.queries = queries
        self.sets = queries.sets
        self.restoring = False
        """Whether rows are stored that were here before, and go no further."""
        self.on_undecided: OnUndecided | None = None
        """While absences are judged: told of the tuples on which a query raises an error."""

    def alive_for(self, batch: TupleBatch, shapes: Shapes) -> Lineages:
        """Return for each tuple the queries of some shapes among those that it is alive for."""
        return self.sets.within(lineage_of(batch), self.queries.of_shapes(shapes))

    def select(
        self, batch: TupleBatch, stream: int, filter_: Selections, lineages: Lineages
    ) -> Lineages:
        """Return the queries, among these, whose selection on a stream a tuple satisfies."""
        rows = batch.rows[stream]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span stream {stream}")
        scope = self.streams[stream].of(batch).scope(rows)
        return self.sets.common(lineages, filter_.lineages(scope, self.sets))

    def evaluated(
        self,
        batch: TupleBatch,
        stream: int,
        expression: Expression,
        positions: npt.NDArray[np.int64],
    ) -> Vector:
        """Return an expression's values for the components of the tuples at ``positions``."""
        rows = batch.rows[stream]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span stream {stream}")
        return evaluate(expression, self.streams[stream].of(batch).scope(pick(rows, positions)))

    def selected(self, batch: TupleBatch, lineages: Lineages, number: int) -> Sequence[TupleBatch]:
        """Return the tuples that are alive by ``lineages``, after selection ``number``."""
        return alive(batch, lineages, self.graph.visited(batch.signature, number))

    def to_build(self, batch: TupleBatch) -> Lineages:
        """Return for each tuple the queries that its row is stored for."""
        return self.alive_for(batch, self.graph.open(batch.signature))


class SharedSelection:
    """A grouped filter: the disjunction of the selections of all queries on a stream."""

    def __init__(
        self, shared: SharedOperator, stream: int, number: int, filter_: Selections
    ) -> None:
        self._shared = shared
        self._stream = stream
        self._number = number
        self._filter = filter_

    @property
    def name(self) -> str:
        """The stream that it filters."""
        return f"select {self._shared.streams[self._stream].stream.name}"

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Drop tuples that no query wants; the others remember which do."""
        shared = self._shared
        lineages = shared.select(batch, self._stream, self._filter, lineage_of(batch))
        return shared.selected(batch, lineages, self._number)


class Build:
    """The half of a SteM that stores rows."""

    def __init__(self, shared: SharedOperator, stream: int, number: int, ticks: Ticks) -> None:
        self._shared = shared
        self._stream = stream
        self._number = number
        self._ticks = ticks

    @property
    def name(self) -> str:
        """The stream whose rows are stored."""
        return f"build {self._shared.streams[self._stream].stream.name}"

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Store the tuples that some join wants."""
        shared, stream = self._shared, self._shared.streams[self._stream]
        rows = batch.rows[self._stream]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span stream {self._stream}")
        positions, lineages, further = self._stored(shared.to_build(batch))
        if not len(positions):
            return ()
        kept = spread(rows, positions)
        tick = self._ticks.next()
        components: list[Rows | None] = [None] * len(batch.rows)
        components[self._stream] = stream.build(kept, lineages, tick, further)
        if shared.restoring:
            return ()
        signature = shared.graph.after(batch.signature, self._number)
        stored = TupleBatch(signature, tuple(components), tick, None, lineages)
        going_on = shared.queries.at_once(lineages)
        return (stored,) if going_on is lineages else alive(stored, going_on, signature)

    def _stored(
        self, lineages: Lineages
    ) -> tuple[npt.NDArray[np.int64], Lineages, Sequence[pa.Array]]:
        """Return the positions of tuples to be stored, with lineages and further columns."""
        positions = np.flatnonzero(lineages != DEAD)
        return positions, lineages[positions], ()


class Probe:
    """The half of a SteM that finds stored rows: a zombie-killing join.

    "When an outer tuple probes the index and finds a matching inner tuple, we compute the union
    of the completion vectors": here the intersection of the queries that both are alive for
    (Krishnamurthy et al., 2004, Section 4.3). What no query wants is never made, as far as
    stored rows know: where they were built before they were selected, they know only which
    queries there were.
    """

    def __init__(
        self,
        shared: SharedOperator,
        operator: Operator,
        number: int,
        finder: Finder,
        windows: Windows,
        conditions: Conditions,
        clock: Clock,
    ) -> None:
        """Find the rows of the operator's stream by ``finder``.

        What is made is within the ``windows`` of queries, and meets their ``conditions``.
        """
        self._conditions = conditions
        self._shared = shared
        self._operator = operator
        self._number = number
        self._windows = windows
        self._finder = finder
        self._clock = clock
        self.made = 0
        """Tuples that it made."""

    @property
    def name(self) -> str:
        """The stream that is probed, and by which of its columns."""
        columns = ", ".join(str(key.stored) for key in self._operator.keys)
        return f"probe {self._shared.streams[self._operator.stream].stream.name}[{columns}]"

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Join tuples with their matches, and return those that go on for other shapes, too."""
        shared, signature = self._shared, batch.signature
        shapes = shared.graph.taken_on(signature, self._number)
        results: list[TupleBatch] = []
        lineages = shared.alive_for(batch, shapes)
        visited = shared.graph.visited(signature, self._number)
        left = shared.graph.open(visited)
        if left:
            results += alive(batch, shared.alive_for(batch, left), visited)
        started, found = self._clock.now(), 0
        for probing in alive(batch, lineages, signature):
            matches, probed = self._finder.matches(probing, lineage_of(probing), shared.sets)
            if probed < len(probing):
                probing, rest = probing.cut(probed)  # noqa: PLW2901 - the part that was probed
                results.append(rest)
            if len(matches.places):
                found += len(matches.places)
                results += self._joined(probing, matches)
        if found:
            self._conditions.made(found, self._clock.now() - started)
        return results

    def _joined(self, batch: TupleBatch, matches: Matches) -> Sequence[TupleBatch]:
        shared, stream = self._shared, self._operator.stream
        held = shared.streams[stream]
        lineages = shared.sets.common(
            lineage_of(batch)[matches.positions], held.lineages[matches.places]
        )
        components = [
            None if rows is None else spread(rows, matches.positions) for rows in batch.rows
        ]
        first = held.built.store.first
        components[stream] = matches.places + first
        signature = shared.graph.after(batch.signature, self._number)
        joined = TupleBatch(
            signature,
            tuple(components),
            _spread_marks(batch.timestamps, matches.positions),
            None,
            lineages,
        )
        within = self._windows.lineages(joined, stream, shared.streams, shared.sets)
        made = [
            wanted
            for tuples in alive(joined, lineages if within is None else within, signature)
            for wanted in alive(tuples, self._conditions.by_probe(tuples, stream), signature)
        ]
        self.made += sum(map(len, made))
        return made


class Deliver(Protocol):
    """Takes results: tuples, and the queries that each is a result of."""

    def __call__(self, batch: TupleBatch, lineages: Lineages) -> None:
        """Take tuples of one signature, none of which is dead."""
        ...


class Output:
    """Puts out tuples to the queries that they are results of."""

    def __init__(self, shared: SharedOperator, number: int, deliver: Deliver) -> None:
        self._shared = shared
        self._number = number
        self._deliver = deliver

    @property
    def name(self) -> str:
        """The module as people know it: there is one output."""
        return "output"

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Put out; return the tuples that go on for other shapes."""
        shared, signature = self._shared, batch.signature
        lineages = shared.alive_for(batch, shared.graph.taken_on(signature, self._number))
        visited = shared.graph.visited(signature, self._number)
        left = shared.graph.open(visited)
        going_on = alive(batch, shared.alive_for(batch, left), visited) if left else ()
        for results in alive(batch, self._wanted(batch, lineages), signature):
            self._put_out(results)
        return going_on

    def _wanted(self, batch: TupleBatch, lineages: Lineages) -> Lineages:  # noqa: ARG002 - for plans that select here
        """Return the queries, among these, that tuples are results of."""
        return lineages

    def _put_out(self, results: TupleBatch) -> None:
        self._deliver(results, lineage_of(results))


def lineage_of(batch: TupleBatch) -> Lineages:
    """Return the lineage of tuples; ValueError where they carry none."""
    if batch.lineage is None:
        raise ValueError(f"tuples of {batch.signature} carry no lineage")
    return batch.lineage


def alive(
    batch: TupleBatch, lineages: Lineages, signature: Signature, kept: Lineages | None = None
) -> list[TupleBatch]:
    """Return the tuples that are not dead by ``lineages``, and carry these or what is ``kept``."""
    positions = np.flatnonzero(lineages != DEAD)
    if not len(positions):
        return []
    left = batch.at(positions, signature)
    left.lineage = (lineages if kept is None else kept)[positions]
    return [left]


def _spread_marks(marks: Marks, positions: npt.NDArray[np.int64]) -> Marks:
    return marks[positions] if isinstance(marks, np.ndarray) else marks
