"""Join queries for tests, the parts that the engine runs them with, and plain answers."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from eddyline.engine.batch import TupleBatch
from eddyline.engine.components import ComponentStores
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.join_results import Joined
from eddyline.engine.join.join_state import JoinState
from eddyline.engine.join.reading_order import Goal
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery, JoinRelation, Lookup
from eddyline.engine.join_routes import JoinRoutes
from eddyline.engine.modules.scan_access import Arrival, HeldScan, ScanAccess
from eddyline.engine.modules.stem import SteM
from eddyline.engine.policies.catalogue import make_policy
from eddyline.engine.quantum import Quantum
from eddyline.engine.relation import Relation
from eddyline.engine.signature import Signature
from eddyline.expressions import Comparison, ComparisonOperator, Expression
from eddyline.expressions.vector import CollectiveFailure, Function, Vector
from eddyline.simulation.fixed_quantum import FixedQuantum
from eddyline.simulation.virtual_clock import VirtualClock
from tests.oracle.plain_values import plain

INT, BOOL = pa.int64(), pa.bool_()
EQUAL, LESS = ComparisonOperator.EQUAL, ComparisonOperator.LESS

Row = tuple[Any, ...]
Table = Sequence[Row]
Where = tuple[int, int]
"""A relation and a column of it."""


def relation(name: str, columns: int = 2, **details: Any) -> JoinRelation:  # noqa: ANN401 - fields of the relation
    """Describe a relation of whole numbers."""
    return JoinRelation(name, (INT,) * columns, **details)


def looked_up(
    name: str, *binds: tuple[int, ...], columns: int = 2, scan: bool = False
) -> JoinRelation:
    """Describe a relation with lookups; column 0 is its key where it needs one."""
    key = (0,) if scan + len(binds) > 1 else ()
    return relation(name, columns, scan=scan, lookups=tuple(map(Lookup, binds)), key=key)


def query_of(
    relations: Sequence[JoinRelation],
    *conditions: tuple[Where, ComparisonOperator, Where],
    predicates: Callable[[JoinQuery], Sequence[Expression]] = lambda query: (),  # noqa: ARG005
    outputs: Callable[[JoinQuery], Sequence[Expression]] | None = None,
) -> JoinQuery:
    """Describe a query by comparisons of columns; its outputs are all columns."""
    query = JoinQuery(tuple(relations))
    compared = [
        Comparison(operator, query.column(*left), query.column(*right))
        for left, operator, right in conditions
    ]
    every = [
        query.column(r, c)
        for r, described in enumerate(relations)
        for c in range(len(described.types))
    ]
    return replace(
        query,
        predicates=(*compared, *predicates(query)),
        outputs=tuple(every if outputs is None else outputs(query)),
    )


def equal(left: Where, right: Where) -> tuple[Where, ComparisonOperator, Where]:
    """Return an equality, for :func:`query_of`."""
    return left, EQUAL, right


def arrival(rows: Table, types: Sequence[pa.DataType]) -> Arrival:
    """Return rows as they come in."""
    columns = [pa.array([row[c] for row in rows], a_type) for c, a_type in enumerate(types)]
    return Arrival(tuple(columns), len(rows))


def held(rows: Table, described: JoinRelation, batch: int | None = None) -> HeldScan:
    """Return an input that gives rows some at a time, all of them at once by default."""
    step = batch or max(len(rows), 1)
    return HeldScan(
        [arrival(rows[at : at + step], described.types) for at in range(0, len(rows), step)]
    )


class TableSource:
    """The source of a lookup: answers from a table, and writes down what it was asked."""

    def __init__(self, rows: Table, described: JoinRelation, bind: Sequence[int]) -> None:
        self._rows = rows
        self._types = described.types
        self._bind = tuple(bind)
        self.asked: list[Row] = []
        self.calls = 0

    def __call__(self, bindings: Sequence[pa.Array]) -> Sequence[pa.Array]:
        asked = list(zip(*(column.to_pylist() for column in bindings), strict=True))
        self.asked += asked
        self.calls += 1
        wanted = {tuple(map(plain, values)) for values in asked}
        answer = [row for row in self._rows if tuple(plain(row[c]) for c in self._bind) in wanted]
        return arrival(answer, self._types).columns


def sources_of(query: JoinQuery, tables: Sequence[Table]) -> dict[tuple[int, int], TableSource]:
    """Return a source for each lookup of a query."""
    return {
        (r, number): TableSource(tables[r], described, lookup.bind)
        for r, described in enumerate(query.relations)
        for number, lookup in enumerate(described.lookups)
    }


@dataclass
class Visits:
    """An instrument that writes every visit down."""

    seen: list[tuple[Signature, int, int, int]] = field(default_factory=list)

    def visited(
        self,
        signature: Signature,
        module: int,
        tuples_in: int,
        tuples_out: int,
        seconds: float,  # noqa: ARG002 - times are the clock's
    ) -> None:
        self.seen.append((signature, module, tuples_in, tuples_out))


def make_eddy(
    query: JoinQuery,
    functions: Sequence[Function] = (),
    *,
    policy: str = "static",
    seed: int = 0,
    quantum: Quantum | None = None,
    clock: VirtualClock | None = None,
    goal: Goal = Goal.THROUGHPUT,
    **options: Any,  # noqa: ANN401 - of the eddy
) -> JoinEddy:
    """Make a join eddy on a virtual clock."""
    eddy = JoinEddy(
        query,
        functions,
        lambda: make_policy(policy),
        clock or VirtualClock(),
        np.random.default_rng(seed),
        quantum=quantum or FixedQuantum(1000),
        **options,
    )
    eddy.reading.goal = goal
    return eddy


def joined(
    query: JoinQuery,
    tables: Sequence[Table],
    functions: Sequence[Function] = (),
    *,
    batch: int | None = None,
    inputs: Sequence[ScanAccess] | None = None,
    moves: int | None = None,
    **options: Any,  # noqa: ANN401 - of the eddy
) -> Counter[Row]:
    """Run a query over tables and return the bag of its rows.

    With ``moves`` another eddy goes on, from a pickle, after every so many arrivals.
    """
    options.setdefault("lookups", sources_of(query, tables))
    options.setdefault("goal", Goal.INTERACTIVE)
    eddy = make_eddy(query, functions, **options)
    if inputs is None:
        inputs = [
            held(table if described.scan else [], described, batch)
            for table, described in zip(tables, query.relations, strict=True)
        ]
    if moves is None:
        return bag(eddy.run(inputs))
    return bag(
        _moving(
            eddy, inputs, moves, lambda state: make_eddy(query, functions, state=state, **options)
        )
    )


def _moving(
    eddy: JoinEddy,
    inputs: Sequence[ScanAccess],
    moves: int,
    make: Callable[[JoinState], JoinEddy],
) -> Iterator[Joined]:
    query = eddy.query
    scanned = [r for r, described in enumerate(query.relations) if described.scan]
    own = [r for r in scanned if query.store_of(r) == r]
    arrivals = 0
    ended: set[int] = set()
    while len(ended) < len(own):
        for r in own:
            if r in ended:
                continue
            found = inputs[r].poll()
            if found is not None and found.rows:
                yield from eddy.push(r, found)
                arrivals += 1
            if inputs[r].ended:
                yield from eddy.end(r)
                ended.add(r)
            if arrivals % moves == 0:
                eddy = make(_pickled(eddy.state))


def bag(results: Iterable[Any]) -> Counter[Row]:
    """Return results of an eddy as a multiset of rows."""
    rows: Counter[Row] = Counter()
    for result in results:
        columns = [column.to_pylist() for column in result.outputs]
        assert all(len(column) == result.rows for column in columns)
        rows.update(tuple(map(plain, row)) for row in zip(*columns, strict=True))
    return rows


def expected(tables: Sequence[Table], keep: Callable[..., bool | None]) -> Counter[Row]:
    """Return what a nested loop finds: ``keep`` takes a row of each table."""
    return Counter(
        tuple(plain(value) for row in rows for value in row)
        for rows in product(*tables)
        if keep(*rows) is True
    )


class Refused(Exception):  # noqa: N818 - it stands for whatever a user raises
    """What the user functions of tests raise."""


class UserFunction:
    """A user function that counts its calls by their arguments; it may raise Refused."""

    def __init__(
        self,
        result: Callable[..., object],
        a_type: pa.DataType = BOOL,
        *,
        vectorized: bool = False,
    ) -> None:
        self._result = result
        self._type = a_type
        self.vectorized = vectorized
        self.calls: Counter[Row] = Counter()

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        values: list[object] = []
        errors: dict[int, Exception] = {}
        rows_of = zip(*(column.to_pylist() for column in columns), strict=True)
        for position, arguments in enumerate(rows_of if columns else [()] * rows):
            self.calls[arguments] += 1
            try:
                values.append(self._result(*arguments))
            except Refused as error:
                errors[position] = error
                values.append(None)
        if self.vectorized and errors:
            failure = CollectiveFailure(next(iter(errors.values())))
            return Vector(pa.nulls(rows, self._type), dict.fromkeys(range(rows), failure))
        return Vector(pa.array(values, self._type), errors)


@dataclass
class Parts:
    """The modules of a query without their eddy, and what they look at."""

    query: JoinQuery
    routes: JoinRoutes
    components: ComponentStores
    stems: tuple[SteM, ...]
    state: JoinState

    def singleton(self, relation: int, rows: Table) -> TupleBatch:
        """Let rows of a relation come in; return them as tuples that are not built."""
        came = arrival(rows, self.query.relations[relation].types)
        numbers = self.components.passing[relation].append(came.columns, came.rows)
        components: list[Any] = [None] * len(self.query.relations)
        components[relation] = numbers
        return TupleBatch(Signature(1 << relation), tuple(components))

    def build(self, relation: int, rows: Table) -> TupleBatch:
        """Build rows of a relation into its SteM; return what bounces back."""
        (built,) = self.stems[relation].process(self.singleton(relation, rows))
        return built

    def rows(self, batch: TupleBatch) -> list[Row]:
        """Return the values of tuples, relation by relation."""
        columns = [
            self.components.of(batch.signature, r).column(c, rows).to_pylist()
            for r, rows in enumerate(batch.rows)
            if rows is not None
            for c in range(len(self.query.relations[r].types))
        ]
        return sorted(zip(*columns, strict=True), key=repr)


def parts_of(query: JoinQuery, early: Iterable[int] = (), state: JoinState | None = None) -> Parts:
    """Make the SteMs of a query."""
    clock = VirtualClock()
    graph = JoinGraph(query)
    if state is None:
        state = JoinState.of(graph)
    components = ComponentStores(
        query,
        [Relation((), (), clock, part) for part in state.built],
        [Relation((), (), clock, part) for part in state.passing],
    )
    routes = JoinRoutes(graph, early)
    stems = tuple(
        SteM(r, routes, components, state.ticks, state=state.stems[r])
        for r in range(len(query.relations))
    )
    return Parts(query, routes, components, stems, state)


def moved(parts: Parts) -> Parts:
    """Return other SteMs that go on from a pickle of the state."""
    return parts_of(parts.query, state=_pickled(parts.state))


def _pickled(state: JoinState) -> JoinState:
    copy = pickle.loads(pickle.dumps(state))  # noqa: S301 - our own
    assert isinstance(copy, JoinState)
    return copy
