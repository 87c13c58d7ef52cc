"""A shared eddy by any of the six plans, with an audit of what its operators do.

What a plan does otherwise than CAR is here, part by part; what all of them have in common is the
engine's. So all plans run on one engine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.sharing.audit import Audit
from bench.sharing.sharing_plans import SelectionPlacement, SharingPlan
from eddyline.engine.batch import TupleBatch, as_array, spread
from eddyline.engine.clock import Clock
from eddyline.engine.join_graph import Key
from eddyline.engine.modules.module import Module
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.rank import RankPolicy
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.signature import Signature
from eddyline.engine.storage.hash_index import HashIndex
from eddyline.engine.storage.key_words import KeyColumn
from eddyline.engine.storage.slots import Matches, Probing
from eddyline.expressions import Expression
from eddyline.expressions.vector import Scope, Vector
from eddyline.standing.engine.asked_conditions import AskedConditions
from eddyline.standing.engine.condition_check import ConditionCheck
from eddyline.standing.engine.delayed_calls import DelayedCalls
from eddyline.standing.engine.evaluated_selection import EvaluatedSelection
from eddyline.standing.engine.joined_scope import JoinedScope
from eddyline.standing.engine.lineage import Lineages, LineageSets
from eddyline.standing.engine.operators import (
    Build,
    Deliver,
    OnError,
    Output,
    Probe,
    Queries,
    SharedOperator,
    alive,
    lineage_of,
)
from eddyline.standing.engine.precedence import Kind, PrecedenceGraph
from eddyline.standing.engine.selections import Selections
from eddyline.standing.engine.shared_conditions import Undecided
from eddyline.standing.engine.shared_eddy import SharedEddy
from eddyline.standing.engine.shared_query import JoinShape, Stream
from eddyline.standing.engine.shared_results import SharedResults
from eddyline.standing.engine.stems import Finder, StreamRows, probing_by

Numbers = npt.NDArray[np.int64]


@dataclass(slots=True)
class Zombies:
    """How many joined tuples were found to be no query's."""

    count: int = 0


class PlanGraph(PrecedenceGraph):
    """The precedence graph of a plan: where selections stand."""

    def __init__(
        self, plan: SharingPlan, shapes: Sequence[JoinShape], selections: Sequence[int]
    ) -> None:
        self._placement = plan.selections
        self.builds_first = plan.selections is SelectionPlacement.AFTER_BUILD
        above = plan.selections is SelectionPlacement.ABOVE
        super().__init__(shapes, [0] * len(selections) if above else selections)

    def _selects(self, signature: Signature) -> bool:
        if self._placement is SelectionPlacement.AFTER_BUILD:
            return bool(signature.built) or not signature.spanned & self.joined
        return self._placement is not SelectionPlacement.ABOVE and super()._selects(signature)


class PlannedOperator(SharedOperator):
    """What the operators of a plan have in common."""

    def __init__(
        self,
        plan: SharingPlan,
        graph: PrecedenceGraph,
        streams: tuple[StreamRows, ...],
        queries: Queries,
        audit: Audit | None,
        zombies: Zombies,
        on_error: OnError,
    ) -> None:
        super().__init__(graph, streams, queries, on_error)
        self.plan = plan
        self.audit = audit
        self.zombies = zombies

    def select(
        self, batch: TupleBatch, stream: int, filter_: Selections, lineages: Lineages
    ) -> Lineages:
        """Return the queries, among these, whose selection on a stream a tuple satisfies."""
        if self.audit is not None:
            self.audit.selected(stream, self.arrivals(batch, stream))
        return super().select(batch, stream, filter_, lineages)

    def evaluated(
        self, batch: TupleBatch, stream: int, expression: Expression, positions: Numbers
    ) -> Vector:
        """Return an expression's values for the components of the tuples at ``positions``."""
        if self.audit is not None:
            self.audit.evaluated(stream, expression, self.arrivals(batch, stream)[positions])
        return super().evaluated(batch, stream, expression, positions)

    def selected(self, batch: TupleBatch, lineages: Lineages, number: int) -> Sequence[TupleBatch]:
        """Return the tuples that go on; below as a disjunction they forget what was found."""
        if self.plan.selections is SelectionPlacement.BELOW_AS_DISJUNCTION:
            after = self.graph.visited(batch.signature, number)
            return alive(batch, lineages, after, lineage_of(batch))
        self.note_zombies(batch, len(batch) - int(np.count_nonzero(lineages)))
        return super().selected(batch, lineages, number)

    def to_build(self, batch: TupleBatch) -> Lineages:
        """Return for each tuple the queries that its row is stored for."""
        if self.plan.selections is SelectionPlacement.AFTER_BUILD:
            return lineage_of(batch)
        return super().to_build(batch)

    def note_zombies(self, batch: TupleBatch, tuples: int) -> None:
        """Count tuples of a batch that are no query's, where they are joined ones."""
        if batch.signature.spanned & (batch.signature.spanned - 1):
            self.zombies.count += tuples

    def arrivals(self, batch: TupleBatch, stream: int) -> Numbers:
        """Return the numbers by which the components of tuples came in."""
        rows = batch.rows[stream]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span stream {stream}")
        if not batch.signature.built:
            return as_array(rows)
        held = self.streams[stream]
        return held.arrivals[as_array(rows) - held.built.store.first]

    def all_arrivals(self, batch: TupleBatch) -> list[Numbers]:
        """Return those of all components, by number of the stream."""
        return [self.arrivals(batch, s) for s, rows in enumerate(batch.rows) if rows is not None]


class PlannedRows(StreamRows):
    """The rows of a stream; in a plan with joins apart each is stored once for each query."""

    def __init__(
        self, plan: SharingPlan, stream: Stream, number: int, clock: Clock, audit: Audit | None
    ) -> None:
        super().__init__(stream, clock)
        self._apart = plan.joins_apart
        self._number = number
        self._audit = audit
        self.width += self._apart

    def build(
        self, rows: Numbers, lineages: Lineages, tick: int, further: Sequence[pa.Array] = ()
    ) -> range:
        """Store passing rows, with their lineage; return their numbers."""
        if self._audit is not None:
            self._audit.built(self._number, rows)
        return super().build(rows, lineages, tick, further)

    def index(self, keys: tuple[Key, ...]) -> tuple[HashIndex, list[KeyColumn]]:
        """Return the index over key columns, and these; over copies, by query as well."""
        if not self._apart:
            return super().index(keys)
        columns = tuple(key.stored for key in keys)
        types = [self.stream.types[column] for column in columns]
        return self.index_over((*columns, len(self.stream.types)), [*types, pa.int64()])


class CopyingBuild(Build):
    """Stores a row once for each query."""

    def _stored(self, lineages: Lineages) -> tuple[Numbers, Lineages, Sequence[pa.Array]]:
        sets = self._shared.sets
        positions, queries = sets.spread(lineages)
        return positions, sets.numbers_alone(queries), (pa.array(queries),)


class PlannedFinder(Finder):
    """Finds stored rows; copies by their query as well."""

    def __init__(self, shared: PlannedOperator, stream: int, keys: tuple[Key, ...]) -> None:
        super().__init__(shared.streams, stream, keys)
        self._shared = shared
        self._join = stream, keys

    def matches(
        self, batch: TupleBatch, lineages: Lineages, sets: LineageSets
    ) -> tuple[Matches, int]:
        """Return the matches of tuples with a lesser timestamp, and how many were probed."""
        matches, probed = super().matches(batch, lineages, sets)
        if self._shared.audit is not None:
            arrivals = self._shared.all_arrivals(batch.cut(probed)[0])
            self._shared.audit.probed(self._join, batch.signature.spanned, arrivals)
        return matches, probed

    def _probing(
        self, columns: list[KeyColumn], places: list[Numbers], lineages: Lineages, sets: LineageSets
    ) -> Probing:
        if self._shared.plan.joins_apart:
            return probing_by(columns, places, [sets.spread(lineages)[1]])
        return super()._probing(columns, places, lineages, sets)


class AuditedProbe(Probe):
    """A probe whose results are noted."""

    def _joined(self, batch: TupleBatch, matches: Matches) -> Sequence[TupleBatch]:
        made = super()._joined(batch, matches)
        shared = self._shared
        if isinstance(shared, PlannedOperator) and shared.audit is not None:
            for part in made:
                shared.audit.made(part.signature.spanned, shared.all_arrivals(part))
        return made


class PlannedCheck(ConditionCheck):
    """Asks for what may fail in the output, where the plan selects after probes."""

    def __init__(
        self, shared: PlannedOperator, asked: AskedConditions, delayed: DelayedCalls, clock: Clock
    ) -> None:
        super().__init__(shared, asked, delayed, clock)
        self._planned = shared
        self._early = shared.plan.selections is SelectionPlacement.BELOW

    def by_probe(self, batch: TupleBatch, newest: int) -> Lineages:
        """Return the lineage of tuples that have got a component of a stream just now."""
        if self._early:
            return super().by_probe(batch, newest)
        due = self._asked.due(batch.signature.spanned, newest)
        return self._among(batch, lineage_of(batch), due)

    def by_output(self, batch: TupleBatch, lineages: Lineages) -> Lineages:
        """Return the queries, among these, that tuples are results of."""
        if self._early:
            return lineages
        return self._among(batch, lineages, self._asked.at_last(batch.signature.spanned))

    def _deciding(self, batch: TupleBatch, scope: JoinedScope) -> Undecided:
        return _Noting(super()._deciding(batch, scope), self._planned, batch)


@dataclass(frozen=True, slots=True)
class _Noting:
    """Notes what is evaluated for joined tuples."""

    deciding: Undecided
    shared: PlannedOperator
    batch: TupleBatch

    def evaluated(
        self,
        expression: Expression,
        scope: Scope,
        positions: Numbers,
        constants: Numbers | None = None,
    ) -> Vector:
        if self.shared.audit is not None:
            numbers = np.zeros(len(positions), np.int64) if constants is None else constants
            arrivals = [part[positions] for part in self.shared.all_arrivals(self.batch)]
            spanned = self.batch.signature.spanned
            self.shared.audit.compared(spanned, expression, arrivals, numbers)
        return self.deciding.evaluated(expression, scope, positions, constants)

    def wants(self, query: int, position: int, error: Exception) -> bool:
        return self.deciding.wants(query, position, error)


class PlannedOutput(Output):
    """An output that finds out whose results tuples are, and copies them, where the plan does."""

    def __init__(
        self,
        shared: PlannedOperator,
        number: int,
        filters: Sequence[Selections],
        evaluated: Sequence[Sequence[EvaluatedSelection]],
        check: PlannedCheck,
        deliver: Deliver,
    ) -> None:
        super().__init__(shared, number, deliver)
        self._planned = shared
        self._filters = filters
        self._evaluated = evaluated
        self._check = check

    def _wanted(self, batch: TupleBatch, lineages: Lineages) -> Lineages:
        shared = self._planned
        if shared.plan.selects_at_output:
            for stream, rows in enumerate(batch.rows):
                if rows is not None:
                    lineages = shared.select(batch, stream, self._filters[stream], lineages)
                    for selection in self._evaluated[stream]:
                        lineages = selection.among(batch, lineages)
            shared.note_zombies(batch, len(batch) - int(np.count_nonzero(lineages)))
        wanted = self._check.by_output(batch, lineages)
        shared.note_zombies(batch, int(np.count_nonzero(lineages) - np.count_nonzero(wanted)))
        return wanted

    def _put_out(self, results: TupleBatch) -> None:
        shared = self._planned
        if shared.plan.outputs_apart:
            positions, queries = shared.sets.spread(lineage_of(results))
            results = TupleBatch(
                results.signature,
                tuple(None if rows is None else spread(rows, positions) for rows in results.rows),
                None,
                None,
                shared.sets.numbers_alone(queries),
            )
        if shared.audit is not None:
            shared.audit.put_out(results.signature.spanned, shared.all_arrivals(results))
        super()._put_out(results)


class PlannedEddy(SharedEddy):
    """A shared eddy that follows a plan. ``audit`` notes what precision sharing is about.

    The answers do not depend on the plan.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        deliver: Callable[[SharedResults], None],
        clock: Clock,
        generator: np.random.Generator,
        *,
        plan: SharingPlan,
        make_policy: Callable[[], Policy] = RankPolicy,
        audit: Audit | None = None,
        on_error: OnError | None = None,
    ) -> None:
        self._plan = plan
        self._audit = audit
        self._zombies = Zombies()
        super().__init__(
            streams,
            deliver,
            clock,
            generator,
            make_policy=make_policy if plan.adaptive else StaticPolicy,
            on_error=on_error,
        )

    @property
    def zombies(self) -> int:
        """Tuples that joins have made and that were found to be no query's, till now."""
        return self._zombies.count

    def hold(self, stream: int, columns: Sequence[pa.Array], rows: int) -> None:
        """Take all rows of a static stream; ValueError in a plan with joins apart, too."""
        if self._plan.joins_apart:
            raise ValueError(f"in {self._plan.name} rows are stored for single queries")
        super().hold(stream, columns, rows)

    def look_back(
        self,
        queries: Collection[int],
        since: int | None = None,
        *,
        without: Mapping[int, Sequence[range]] = MappingProxyType({}),
    ) -> None:
        """Let queries see stored rows, too; ValueError in a plan with joins apart, too."""
        if self._plan.joins_apart:
            raise ValueError(f"in {self._plan.name} rows are stored for single queries")
        super().look_back(queries, since, without=without)

    def _rows_of(self, stream: Stream, number: int) -> StreamRows:
        return PlannedRows(self._plan, stream, number, self._clock, self._audit)

    def _graph(self, shapes: Sequence[JoinShape], selections: Sequence[int]) -> PrecedenceGraph:
        return PlanGraph(self._plan, shapes, selections)

    def _shared_operator(self, graph: PrecedenceGraph) -> SharedOperator:
        return PlannedOperator(
            self._plan, graph, self._streams, self, self._audit, self._zombies, self._on_error
        )

    def _check(self, shared: SharedOperator) -> ConditionCheck:
        return PlannedCheck(planned(shared), self._conditions, self.delayed, self._clock)

    def _operator(
        self,
        shared: SharedOperator,
        number: int,
        evaluated: Sequence[Sequence[Expression]],
        check: ConditionCheck,
    ) -> Module:
        operator, by_plan = shared.graph.operators[number], planned(shared)
        stream = operator.stream
        if operator.kind is Kind.BUILD and self._plan.joins_apart:
            return CopyingBuild(shared, stream, number, self._ticks)
        if operator.kind is Kind.PROBE:
            finder = PlannedFinder(by_plan, stream, operator.keys)
            return AuditedProbe(shared, operator, number, finder, self._windows, check, self._clock)
        if operator.kind is Kind.OUTPUT and isinstance(check, PlannedCheck):
            here = [
                [self._evaluated(shared, s, number, expression) for expression in expressions]
                for s, expressions in enumerate(evaluated)
            ]
            return PlannedOutput(by_plan, number, self._filters, here, check, self._put_out)
        return super()._operator(shared, number, evaluated, check)


def planned(shared: SharedOperator) -> PlannedOperator:
    """Return the shared part of a plan's operators as what it is."""
    if not isinstance(shared, PlannedOperator):
        raise TypeError(f"{shared} is of no plan")
    return shared
