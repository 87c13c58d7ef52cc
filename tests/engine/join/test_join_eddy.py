"""The join eddy gives the bag of rows that SQL says, however it routes and whatever fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.access_methods.competing_scans import CompetingScans
from bench.simulation.virtual_agenda import VirtualAgenda
from bench.simulation.virtual_calls import VirtualCaller
from bench.waiting_calls import ConcurrentFunction
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.reading_order import Goal, StalledError
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.modules.scan_access import Arrival, HeldScan, ScanAccess
from eddyline.engine.policies.catalogue import PolicyName
from eddyline.engine.prior import Prior
from eddyline.engine.quantum import MeasuredQuantum, Quantum
from eddyline.engine.signature import Signature
from eddyline.errors import NotExecutableError
from eddyline.expressions import (
    And,
    Argument,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Comparison,
    Expression,
    Literal,
    Not,
    Or,
)
from eddyline.expressions.vector import Vector
from eddyline.simulation.fixed_quantum import FixedQuantum
from eddyline.simulation.virtual_clock import VirtualClock
from tests.joins import (
    BOOL,
    EQUAL,
    INT,
    LESS,
    Refused,
    Row,
    Table,
    UserFunction,
    Visits,
    Where,
    arrival,
    bag,
    equal,
    expected,
    held,
    joined,
    looked_up,
    make_eddy,
    query_of,
    relation,
    sources_of,
)
from tests.predicates import (
    ERROR,
    FUNCTIONS,
    PRIORS,
    RAISE,
    TABLES,
    TRUE,
    accepted,
    predicates,
    result_of,
)
from tests.properties import examples
from tests.unruly import Late

R, S, T = range(3)
EVERY_POLICY = pytest.mark.parametrize("policy", list(PolicyName))
QUANTA = st.one_of(
    st.builds(FixedQuantum, st.integers(1, 7)), st.builds(MeasuredQuantum, first=st.just(3))
)
POLICIES = st.sampled_from(list(PolicyName))

CHAIN = query_of(
    [relation("R"), relation("S"), relation("T")], equal((R, 1), (S, 0)), equal((S, 1), (T, 0))
)
CHAIN_TABLES: list[Table] = [
    [(n, n % 5) for n in range(20)],
    [(n % 5, n % 3) for n in range(15)],
    [(n % 4, n) for n in range(8)],
]
CHAIN_ROWS = expected(CHAIN_TABLES, lambda r, s, t: r[1] == s[0] and s[1] == t[0])


def call(function: int, query: JoinQuery, *places: tuple[int, int]) -> Call:
    return Call(function, tuple(query.column(*place) for place in places), BOOL)


@EVERY_POLICY
def test_a_build_is_no_decision(policy: PolicyName, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a SteM does to rows that it stores says nothing of its probes."""
    eddy = make_eddy(CHAIN, policy=policy, goal=Goal.INTERACTIVE, quantum=FixedQuantum(3))
    asked = eddy.eddy.policy
    visits: list[tuple[int, int]] = []

    def sent(signature: Signature, module: int, tuples: int) -> None:
        visits.append((signature.spanned, module))
        told(signature, module, tuples)

    told = asked.sent
    monkeypatch.setattr(asked, "sent", sent)
    inputs = [held(t, r, 4) for t, r in zip(CHAIN_TABLES, CHAIN.relations, strict=True)]
    assert bag(eddy.run(inputs)) == CHAIN_ROWS
    built = {(1 << r, eddy.routes.stem(r)) for r in range(3)}
    assert visits
    assert not built & set(visits)
    recorded = eddy.statistics().eddy.visits
    for r in (S, T):  # what is left of R when both have ended is not built
        builds = recorded[Signature(1 << r), eddy.routes.stem(r)]
        assert builds.visits == -(-builds.rows_in // 4)  # a batch each, whatever the quantum


# --- Answers, three-valued logic, errors


@examples(150)
@given(
    conjuncts=st.lists(predicates(), min_size=1, max_size=3),
    tables=TABLES,
    vectorized=st.lists(st.booleans(), min_size=FUNCTIONS, max_size=FUNCTIONS),
    rows=st.lists(
        st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=6), min_size=3, max_size=3
    ),
    shape=st.sampled_from(["product", "equal", "third", "lookup"]),
    options=st.fixed_dictionaries(
        {
            "policy": POLICIES,
            "quantum": QUANTA,
            "goal": st.sampled_from(list(Goal)),
            "batch": st.integers(1, 7),
            "seed": st.integers(0, 100),
            "moves": st.one_of(st.none(), st.integers(1, 3)),
        }
    ),
    priors=PRIORS,
)
def test_the_answer_is_that_of_evaluating_everything(
    *,
    conjuncts: list[Expression],
    tables: list[list[object]],
    vectorized: list[bool],
    rows: list[list[int | None]],
    shape: str,
    options: dict[str, Any],
    priors: list[Prior | None],
) -> None:
    """Kleene's logic, with errors that count where nothing else rejects the joined tuple."""
    conditions = [] if shape == "product" else [equal((0, 0), (1, 0))]
    described = [
        relation("R", 1),
        looked_up("S", (0,), columns=1) if shape == "lookup" else relation("S", 1),
    ]
    if shape == "third":
        described.append(relation("T", 1))
        conditions.append(equal((1, 0), (2, 0)))
    functions = [
        UserFunction(lambda value, table=table: _from_table(table, value), vectorized=flag)
        for table, flag in zip(tables, vectorized, strict=True)
    ]
    query = query_of(described, *conditions, predicates=lambda _: conjuncts)
    query = replace(query, priors=tuple(priors))
    data: list[Table] = [[(value,) for value in column] for column in rows[: len(described)]]
    wanted, fails = Counter[Row](), False
    for row in expected(data, lambda *_: True).elements():
        if conditions and (None in row or len(set(row)) > 1):
            continue
        outcome = min(accepted(term, row, tables, wanted=True) for term in conjuncts)
        fails |= outcome == ERROR
        if outcome == TRUE:
            wanted[row] += 1
    if fails:
        with pytest.raises(Refused):
            joined(query, data, functions, **options)
        return
    assert joined(query, data, functions, **options) == wanted
    if not any(vectorized):
        _check_calls(query, data, functions)


def _from_table(table: Sequence[object], value: int | None) -> object:
    result = result_of(table, value)
    if result == RAISE:
        raise Refused
    return result


def _check_calls(query: JoinQuery, data: Sequence[Table], functions: list[UserFunction]) -> None:
    """At most one call for each row and distinct (function, arguments)."""
    calls = {
        node
        for predicate in query.predicates
        for node in predicate.walk()
        if isinstance(node, Call)
    }
    for number, function in enumerate(functions):
        possible: Counter[Row] = Counter()
        for made in calls:
            (argument,) = made.arguments
            assert isinstance(argument, Argument)
            if made.function == number:
                possible.update(data[query.place_of(argument.index)[0]])
        assert not function.calls - possible


@EVERY_POLICY
@pytest.mark.parametrize("joins_anything", [True, False])
def test_an_error_counts_only_for_a_row_that_is_joined(
    policy: str, *, joins_anything: bool
) -> None:
    def refuse(number: int) -> bool:
        if number == 3:
            raise Refused(number)
        return True

    query = query_of(
        [relation("R"), relation("S")],
        equal((R, 1), (S, 0)),
        predicates=lambda q: [call(0, q, (R, 0)), call(1, q, (S, 1))],
    )
    r = [(n, n) for n in range(10)]
    s = [(n, int(n == 3 and not joins_anything)) for n in range(10)]
    functions = [UserFunction(refuse), UserFunction(lambda flag: flag == 0)]
    if joins_anything:
        with pytest.raises(Refused, match="3"):
            joined(query, [r, s], functions, policy=policy, batch=3)
    else:
        rows = joined(query, [r, s], functions, policy=policy, batch=3)
        assert sorted(row[0] for row in rows) == [n for n in range(10) if n != 3]


@EVERY_POLICY
@pytest.mark.parametrize("divisor", [0, 1])
def test_errors_of_arithmetic_are_held_too(policy: str, divisor: int) -> None:
    """A predicate without a function comes before the build, but only if it cannot fail."""

    def half(q: JoinQuery) -> Expression:
        quotient = Arithmetic(
            ArithmeticOperator.REMAINDER, (q.column(R, 0), q.column(R, 1)), INT, ansi=True
        )
        return Comparison(LESS, quotient, Literal(5, INT))

    query = query_of(
        [relation("R"), relation("S")], equal((R, 0), (S, 0)), predicates=lambda q: [half(q)]
    )
    tables: list[Table] = [[(1, 1), (2, divisor), (3, 1)], [(2, 0), (3, 0)]]
    if divisor:
        assert len(joined(query, tables, policy=policy)) == 2
    else:
        with pytest.raises(ArithmeticError, match="BY_ZERO"):
            joined(query, tables, policy=policy)
        assert joined(query, [tables[0], [(1, 0), (3, 0)]], policy=policy) == {
            (1, 1, 1, 0): 1,
            (3, 1, 3, 0): 1,
        }


class Vectors(UserFunction):
    """A function over whole vectors that notes how many rows each has."""

    def __init__(self, result: Callable[..., object]) -> None:
        super().__init__(result, vectorized=True)
        self.sizes: list[int] = []

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        self.sizes.append(rows)
        return super().__call__(columns, rows)


def refuse_even(value: int) -> bool:
    if value % 2 == 0:
        raise Refused(value)
    return value % 3 != 0


@pytest.mark.parametrize("quantum", [1, 2, 100])
def test_a_vector_that_failed_is_tried_again_row_by_row(quantum: int) -> None:
    """Even values fail and take others with them, but no even one is joined in the end."""
    query = query_of(
        [relation("R"), relation("S")],
        equal((R, 1), (S, 0)),
        predicates=lambda q: [call(0, q, (R, 0)), call(1, q, (R, 0), (S, 1))],
    )
    function = Vectors(refuse_even)
    r, s = [(n, n % 4) for n in range(24)], [(n % 4, n) for n in range(12)]
    rows = joined(
        query,
        [r, s],
        [function, UserFunction(lambda n, _: n % 2 == 1)],
        quantum=FixedQuantum(quantum),
    )
    assert rows == expected([r, s], lambda x, y: x[1] == y[0] and bool(x[0] % 2 and x[0] % 3))
    alone = [size for size in function.sizes if size == 1]
    assert len(alone) <= len(r) + (len(r) if quantum == 1 else 0)
    with pytest.raises(Refused):
        joined(query, [r, s], [Vectors(refuse_even), UserFunction(lambda *_: True)])


@pytest.mark.parametrize("quantum", [1, 3, 5, 1000])
@pytest.mark.parametrize("places", [[(R, 0)], [(R, 0), (S, 0)]])
def test_a_row_that_is_rejected_late_is_rejected_for_all_its_tuples(
    places: list[Where], quantum: int
) -> None:
    """Its tuples may stand at the end in several batches when it turns out what it is."""
    query = query_of(
        [relation("R", 1), relation("S", 1), relation("T", 1)],
        predicates=lambda q: [
            call(0, q, *places),
            call(1, q, (S, 0), (T, 0)),
            call(2, q, (R, 0)),
        ],
    )
    tables: list[Table] = [[(3,), (2,), (1,)], [(0,), (1,)], [(n,) for n in range(8)]]
    functions = [
        Vectors(lambda value, *_: refuse_even(value)),  # fails for 2, is FALSE for 3
        UserFunction(lambda *_: True),
        UserFunction(lambda value: value != 2),
    ]
    rows = joined(query, tables, functions, quantum=FixedQuantum(quantum))
    assert rows == {(1, s, t): 1 for s in (0, 1) for t in range(8)}


@pytest.mark.parametrize("wanted", [True, False])
def test_outputs_that_failed_as_a_vector_are_tried_again_without_the_others(
    *, wanted: bool
) -> None:
    """The function is called for rows 1 and 2 together; only tuples with row 1 are wanted."""
    query = query_of(
        [relation("R"), relation("S")],
        equal((R, 1), (S, 0)),
        predicates=lambda q: [
            Or((call(1, q, (S, 1)), call(0, q, (R, 0)))),
            call(2, q, (S, 1), (R, 0)),
        ],
        outputs=lambda q: [q.column(R, 0), call(0, q, (R, 0))],
    )
    tables: list[Table] = [[(1, 10), (2, 20)], [(10, 0), (10, 1), (20, 1)]]
    functions = [
        Vectors(refuse_even),
        UserFunction(lambda flag: flag == 0),
        UserFunction(lambda flag, _: wanted or flag == 0),
    ]
    if wanted:
        with pytest.raises(Refused):
            joined(query, tables, functions)
    else:
        assert joined(query, tables, functions) == {(1, True): 1}


@EVERY_POLICY
def test_a_function_is_called_once_a_row_however_often_that_is_joined(policy: str) -> None:
    query = query_of(
        [relation("R"), relation("S"), relation("T")],
        equal((R, 1), (S, 0)),
        equal((S, 1), (T, 0)),
        predicates=lambda q: [
            call(0, q, (R, 0)),
            Or((call(1, q, (S, 1)), call(2, q, (T, 1), (R, 0)))),
        ],
        outputs=lambda q: [
            q.column(T, 1),
            call(3, q, (S, 1)),
            call(0, q, (R, 0)),
            call(4, q, (T, 1)),
        ],
    )
    tables: list[Table] = [
        [(n, n % 2) for n in range(12)],
        [(n % 2, 100 + n) for n in range(10)],
        [(100 + n % 10, 200 + n) for n in range(30)],
    ]
    functions = [
        UserFunction(lambda value: value % 3 == 0),
        UserFunction(lambda value: value % 2 == 0),
        UserFunction(lambda left, right: (left + right) % 2 == 0),
        UserFunction(lambda value: value > 104),
        UserFunction(lambda value: value > 210),
    ]
    rows = joined(query, tables, functions, policy=policy, batch=4, quantum=FixedQuantum(3))
    wanted: Counter[Row] = Counter()
    for (a, b), (c, d), (e, f) in (
        (r, s, t) for r in tables[R] for s in tables[S] for t in tables[T]
    ):
        if b == c and d == e and a % 3 == 0 and (d % 2 == 0 or (f + a) % 2 == 0):
            wanted[f, d > 104, True, f > 210] += 1
    assert rows == wanted
    for number in (0, 1, 3, 4):
        assert functions[number].calls
        assert set(functions[number].calls.values()) == {1}
    assert set(functions[2].calls.values()) == {1}


# --- Lookups

RIVALS = query_of(
    [looked_up("S", (1,), (2,), columns=3), relation("R"), relation("Q")],
    equal((1, 1), (0, 1)),
    equal((2, 0), (0, 2)),
    equal((1, 0), (2, 1)),
)
"""S by either of two columns, one bound by R and one by Q, which are joined with each other."""


def rivals(s: Row, r: Row, q: Row) -> bool:
    return bool(r[1] == s[1] and q[0] == s[2] and r[0] == q[1])


@pytest.mark.parametrize("goal", list(Goal))
@pytest.mark.parametrize("batch", [1, 3, None])
@pytest.mark.parametrize("policy", ["static", "rank", "lottery", "naive"])
def test_rows_that_several_lookups_bring_are_joined_once(
    goal: Goal, batch: int | None, policy: str
) -> None:
    tables: list[Table] = [
        [(100 + n, n % 4, n % 3) for n in range(12)],
        [(n % 2, n % 4) for n in range(9)],
        [(n % 3, n % 2) for n in range(4)],
    ]
    sources = sources_of(RIVALS, tables)
    rows = joined(RIVALS, tables, goal=goal, batch=batch, policy=policy, lookups=sources)
    assert rows == expected(tables, rivals)
    for source in sources.values():
        assert len(source.asked) == len(set(source.asked))


CIRCLE = [equal((R, 0), (S, 1)), equal((S, 2), (T, 0)), equal((T, 1), (R, 1))]
SMALL = st.integers(0, 2)
PAIRS = st.lists(st.tuples(SMALL, SMALL), min_size=3, max_size=12)


@examples(150)
@given(
    rows=st.tuples(PAIRS, PAIRS, PAIRS),
    binds=st.sampled_from([[(1,)], [(2,)], [(1, 2)], [(1,), (2,)], [(2,), (1, 2)]]),
    scan=st.booleans(),
    edges=st.sampled_from([CIRCLE, CIRCLE[:2], [CIRCLE[0], CIRCLE[2]]]),
    policy=st.sampled_from(["static", "naive", "lottery", "rank"]),
    quantum=QUANTA,
    goal=st.sampled_from(list(Goal)),
    batch=st.integers(1, 7),
    seed=st.integers(0, 100),
    moves=st.one_of(st.none(), st.integers(1, 3)),
)
def test_by_whatever_route_a_row_arises_once(
    *,
    rows: tuple[Table, Table, Table],
    binds: list[tuple[int, ...]],
    scan: bool,
    edges: list[Any],
    policy: str,
    quantum: Quantum,
    goal: Goal,
    batch: int,
    seed: int,
    moves: int | None,
) -> None:
    """Rows of S come late, by R, T or a scan, while others are on their way to find them."""
    described = [relation("R"), looked_up("S", *binds, columns=3, scan=scan), relation("T")]
    try:
        query = query_of(described, *edges)
        JoinGraph(query)
    except NotExecutableError:
        return
    tables = [rows[R], [(100 + at, *row) for at, row in enumerate(rows[S])], rows[T]]
    sources = sources_of(query, tables)
    found = joined(
        query,
        tables,
        policy=policy,
        quantum=quantum,
        goal=goal,
        batch=batch,
        seed=seed,
        moves=moves,
        lookups=sources,
    )
    columns = [(left, right) for left, _, right in edges]
    assert found == expected(
        tables,
        lambda *three: all(three[a][c] == three[b][d] for (a, c), (b, d) in columns),
    )
    for source in sources.values():
        assert len(source.asked) == len(set(source.asked))


def test_a_lookup_may_need_a_cross_product() -> None:
    """Nobody but R and T together can bind S, and nothing else joins these two."""
    query = query_of(
        [relation("R"), looked_up("S", (0, 1)), relation("T")],
        equal((R, 0), (S, 0)),
        equal((T, 0), (S, 1)),
    )
    tables: list[Table] = [
        [(n % 3, n) for n in range(5)],
        [(n % 3, n % 2) for n in range(6)],
        [(n % 2, n) for n in range(4)],
    ]
    for goal in Goal:
        assert joined(query, tables, goal=goal, batch=2) == expected(
            tables, lambda r, s, t: r[0] == s[0] and s[1] == t[0]
        )


def test_a_tuple_that_is_not_built_finds_cached_and_fetched_rows_once_each() -> None:
    """LastMatchTimeStamp: R streams past S, of which Q has brought a part."""
    s = [(100, 1, 7), (101, 1, 8), (102, 2, 7)]
    r, q = [(0, 9), (1, 1), (2, 2), (1, 3)], [(7, 1), (7, 2)]
    tables: list[Table] = [s, r, q]
    eddy = make_eddy(RIVALS, lookups=sources_of(RIVALS, tables))
    types = RIVALS.relations[1].types
    results = [
        *eddy.push(1, arrival(r[:1], types)),  # is built: Q may still come
        *eddy.push(2, arrival(q, types)),
        *eddy.end(2),
        *eddy.push(1, arrival(r[1:], types)),
        *eddy.end(1),
    ]
    assert bag(results) == expected(tables, rivals)
    of_s, of_r, _ = eddy.statistics().stems
    assert of_r.builds == 1
    assert of_s.duplicates == 2  # R has them fetched that Q had fetched
    assert of_s.bounced == 5
    assert eddy.statistics().read == (5, 4, 2)


SUPPLIED = query_of(
    [relation("R"), looked_up("S", (0,)), relation("T")],
    equal((R, 1), (S, 0)),
    equal((S, 1), (T, 0)),
)
"""A chain in which T cannot bind the lookup of S, but R brings in all its rows."""


@pytest.mark.parametrize("late", [R, T])
@pytest.mark.parametrize("goal", list(Goal))
def test_where_a_relation_is_supplied_there_is_no_cross_product(goal: Goal, late: int) -> None:
    tables: list[Table] = [
        [(n, n % 20) for n in range(100)],
        [(n % 25, n % 10) for n in range(50)],
        [(n % 12, n) for n in range(60)],
    ]
    inputs: list[Any] = [
        held(table if described.scan else [], described, batch=7)
        for table, described in zip(tables, SUPPLIED.relations, strict=True)
    ]
    waiting = inputs[late] = Late(inputs[late])
    eddy = make_eddy(SUPPLIED, goal=goal, lookups=sources_of(SUPPLIED, tables))

    def wait() -> None:
        waiting.open = True

    wanted = expected(tables, lambda r, s, t: r[1] == s[0] and s[1] == t[0])
    assert bag(eddy.run(inputs, wait)) == wanted
    statistics = eddy.statistics()
    # R and T have no predicate in common, and never meet but in a row of S.
    assert sum(stem.matches for stem in statistics.stems) <= 2 * wanted.total() + 100
    assert statistics.stems[S].complete


def test_a_supplier_is_looked_up_for_whoever_may_come() -> None:
    """Rows of T that are not there yet will rely on it: they find what is in the SteM."""
    tables: list[Table] = [[(0, 1)], [(1, 5)], [(5, 7)]]
    eddy = make_eddy(SUPPLIED, lookups=sources_of(SUPPLIED, tables))
    r, t = SUPPLIED.relations[R].types, SUPPLIED.relations[T].types
    assert not bag([*eddy.push(R, arrival(tables[R], r)), *eddy.end(R)])
    assert eddy.statistics().stems[S].rows == 1
    assert bag([*eddy.push(T, arrival(tables[T], t)), *eddy.end(T)]) == {(0, 1, 1, 5, 5, 7): 1}
    assert eddy.statistics().stems[T].builds == 0


def test_each_distinct_value_is_looked_up_once_in_the_whole_run() -> None:
    """R and S of Figure 5: 1000 rows with 250 values, an index on S, which is its cache."""
    query = query_of([relation("R"), looked_up("S", (0,))], equal((R, 1), (S, 0)))
    generator = np.random.default_rng(0)
    r = [(n, int(generator.integers(250))) for n in range(1000)]
    s = [(n, -n) for n in range(250)]
    sources = sources_of(query, [r, s])
    rows = joined(query, [r, s], lookups=sources, batch=50)
    assert rows == expected([r, s], lambda x, y: x[1] == y[0])
    assert sorted(sources[S, 0].asked) == sorted({(value,) for _, value in r})


def test_a_chain_of_lookups_is_followed() -> None:
    described = [relation("R"), *(looked_up(f"S{n}", (0,)) for n in range(4))]
    query = query_of(described, *(equal((n, 1), (n + 1, 0)) for n in range(4)))
    tables: list[Table] = [[(n, n % 7) for n in range(20)]]
    tables += [[(n % 7, (n * n + k) % 7) for n in range(9)] for k in range(4)]
    rows = joined(query, tables, batch=6)
    assert rows == expected(tables, lambda *t: all(t[n][1] == t[n + 1][0] for n in range(4)))


def test_a_lookup_answers_while_the_scan_stalls() -> None:
    query = query_of([relation("R"), looked_up("S", (0,), scan=True)], equal((R, 1), (S, 0)))
    r, s = [(n, n) for n in range(10)], [(n, -n) for n in range(10)]
    waits: list[int] = []
    eddy = make_eddy(
        query, policy="naive", lookups=sources_of(query, [r, s]), quantum=FixedQuantum(1)
    )
    late = Late(held(s, query.relations[S]))

    def wait() -> None:
        waits.append(eddy.statistics().rows_out)
        late.open = True

    # Some tuples are left to the scan, and some are sent to the index.
    inputs: list[ScanAccess] = [held(r, query.relations[R], batch=2), late]
    assert bag(eddy.run(inputs, wait)) == expected([r, s], lambda x, y: x[1] == y[0])
    assert 0 < waits[0] < 10


def test_lookups_and_sources_must_fit() -> None:
    query = query_of([relation("R"), looked_up("S", (0,))], equal((R, 1), (S, 0)))
    source = sources_of(query, [[], []])[S, 0]
    with pytest.raises(ValueError, match="need a source each"):
        make_eddy(query)
    with pytest.raises(ValueError, match="need a source each"):
        make_eddy(query, lookups={(S, 0): source, (R, 0): source})


def test_copies_from_a_mirror_are_absorbed_and_a_scan_that_stalls_is_no_matter() -> None:
    query = query_of([relation("R"), relation("S", mirrors=1, key=(0, 1))], equal((R, 1), (S, 0)))
    r, s = [(n, n % 3) for n in range(9)], [(n % 3, n) for n in range(9)]
    firsts: list[ScanAccess] = [held(s, query.relations[S], 2), Late(held(s, query.relations[S]))]
    for first in firsts:
        scans = CompetingScans([first, held(s[::-1], query.relations[S], batch=2)])
        inputs: list[ScanAccess] = [held(r, query.relations[R], batch=2), scans]
        rows = joined(query, [r, s], inputs=inputs)
        assert rows == expected([r, s], lambda x, y: x[1] == y[0])


# --- Inputs and goals


@pytest.mark.parametrize("goal", list(Goal))
@pytest.mark.parametrize("stalled", [R, S, T])
def test_an_input_that_stalls_stops_no_work_on_others(goal: Goal, stalled: int) -> None:
    inputs: list[Any] = [
        held(table, described, batch=4)
        for table, described in zip(CHAIN_TABLES, CHAIN.relations, strict=True)
    ]
    late = inputs[stalled] = Late(inputs[stalled])
    eddy = make_eddy(CHAIN, goal=goal)
    read_before: list[tuple[int, ...]] = []

    def wait() -> None:
        read_before.append(eddy.statistics().read)
        late.open = True

    assert bag(eddy.run(inputs, wait)) == CHAIN_ROWS
    whole = tuple(map(len, CHAIN_TABLES))
    assert read_before == [(*whole[:stalled], 0, *whole[stalled + 1 :])]


def test_what_can_be_joined_is_joined_before_the_wait() -> None:
    """R and S make their results while nobody knows whether T will ever come."""
    query = query_of(
        CHAIN.relations, equal((R, 1), (S, 0)), predicates=lambda q: [call(0, q, (R, 0), (S, 1))]
    )
    inputs: list[Any] = [
        held(table, described, batch=4)
        for table, described in zip(CHAIN_TABLES, CHAIN.relations, strict=True)
    ]
    late = inputs[T] = Late(inputs[T])
    both = UserFunction(lambda *_: False)
    eddy = make_eddy(query, [both], goal=Goal.INTERACTIVE, policy="static")
    seen: list[int] = []

    def wait() -> None:
        seen.append(eddy.statistics().stems[S].rows)
        late.open = True

    assert not bag(eddy.run(inputs, wait))
    assert seen == [len(CHAIN_TABLES[S])]


def test_without_anything_to_wait_for_a_stall_is_an_error() -> None:
    late = Late(held([(1, 1)], CHAIN.relations[S]))
    inputs: list[ScanAccess] = [held(CHAIN_TABLES[R], CHAIN.relations[R]), late, late]
    with pytest.raises(StalledError, match="no input has rows to give"):
        bag(make_eddy(CHAIN).run(inputs))


@pytest.mark.parametrize("start", list(Goal))
def test_the_goal_may_change_while_rows_are_read(start: Goal) -> None:
    eddy = make_eddy(CHAIN, goal=start, quantum=FixedQuantum(3))
    inputs = [
        held(table, described, batch=1)
        for table, described in zip(CHAIN_TABLES, CHAIN.relations, strict=True)
    ]
    rows: Counter[Row] = Counter()
    for number, result in enumerate(eddy.run(inputs)):
        rows += bag([result])
        if number % 2 == 0:
            others = [goal for goal in Goal if goal is not eddy.reading.goal]
            eddy.reading.goal = others[0]
    assert rows == CHAIN_ROWS


def test_the_goal_decides_what_is_read_and_built() -> None:
    read: dict[Goal, list[tuple[int, ...]]] = {}
    builds: dict[Goal, list[int]] = {}
    for goal in Goal:
        eddy = make_eddy(CHAIN, goal=goal)
        inputs = [
            held(table, described, batch=2)
            for table, described in zip(CHAIN_TABLES, CHAIN.relations, strict=True)
        ]
        read[goal] = [eddy.statistics().read for _ in eddy.run(inputs)]
        builds[goal] = [stem.builds for stem in eddy.statistics().stems]
    # The smallest first; the largest streams past the others and is never built.
    assert read[Goal.THROUGHPUT][0][T] == len(CHAIN_TABLES[T])
    assert builds[Goal.THROUGHPUT] == [0, 15, 8]
    # All at one rate; the first result is there long before the end.
    assert max(read[Goal.INTERACTIVE][0]) - min(read[Goal.INTERACTIVE][0]) <= 2
    assert builds[Goal.INTERACTIVE][S] == 15


def test_relations_that_are_the_same_share_their_rows() -> None:
    query = query_of(
        [relation("R"), relation("again", same_rows_as=0), relation("S")],
        equal((0, 1), (1, 0)),
        equal((1, 1), (2, 0)),
    )
    r, s = [(n % 4, n % 3) for n in range(10)], [(n % 3, n) for n in range(5)]
    wanted = expected([r, r, s], lambda x, y, z: x[1] == y[0] and y[1] == z[0])
    for batch in (1, 3, None):
        assert joined(query, [r, r, s], batch=batch) == wanted
    eddy = make_eddy(query)
    inputs = [held(r, query.relations[0]), HeldScan(()), held(s, query.relations[2])]
    assert bag(eddy.run(inputs)) == wanted
    assert eddy.stems[0].rows.store is eddy.stems[1].rows.store


@pytest.mark.parametrize("empty", [R, S, T])
def test_with_an_empty_relation_there_is_nothing(empty: int) -> None:
    tables = [[] if r == empty else table for r, table in enumerate(CHAIN_TABLES)]
    assert not joined(CHAIN, tables, batch=3)


def test_tuples_that_can_match_nothing_are_not_routed() -> None:
    eddy = make_eddy(CHAIN, goal=Goal.INTERACTIVE)
    inputs = [
        held(table, described)
        for table, described in zip(CHAIN_TABLES, CHAIN.relations, strict=True)
    ]
    assert bag(eddy.run(inputs)) == CHAIN_ROWS
    # R, then S, then T: as long as one SteM is empty nothing can come of a tuple.
    assert [stem.pruned for stem in eddy.statistics().stems[:2]] == [20, 15]
    assert eddy.statistics().stems[T].probes == 0


# --- Twenty relations


def twenty(shape: str) -> JoinQuery:
    edges = {
        "chain": [(n, n + 1) for n in range(19)],
        "star": [(0, n) for n in range(1, 20)],
        "cycle": [(n, (n + 1) % 20) for n in range(20)],
    }[shape]
    # In a star every arm has a column of its own in the middle, so that it is no clique.
    described = [relation(f"R{n}", 20 if n == 0 and shape == "star" else 2) for n in range(20)]
    return query_of(
        described,
        *(equal((a, b if shape == "star" else 1), (b, 0)) for a, b in edges),
        predicates=lambda q: [call(0, q, (a, 0)) for a in range(0, 20, 4)],
        outputs=lambda q: [q.column(n, 0) for n in range(20)],
    )


@pytest.mark.parametrize("shape", ["chain", "star", "cycle"])
@EVERY_POLICY
def test_twenty_relations_are_not_enumerated(shape: str, policy: str) -> None:
    query = twenty(shape)
    visits = Visits()
    eddy = make_eddy(query, [UserFunction(lambda _: True)], policy=policy, instrument=visits)
    assert eddy.routes._known == {}
    inputs = [held([(1,) * len(d.types)], d) for d in query.relations]
    assert bag(eddy.run(inputs)) == {(1,) * 20: 1}
    # There are 2^20 sets of relations, and more signatures; a tuple takes at most 25 steps.
    assert len(visits.seen) <= 60
    assert len(eddy.routes._known) <= 600


# --- Repeatable runs


class Slow(UserFunction):
    """A function that takes some virtual time a row."""

    def __init__(self, clock: VirtualClock, cost: float, result: Callable[..., object]) -> None:
        super().__init__(result)
        self._clock, self._cost = clock, cost

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        self._clock.advance(self._cost * rows)
        return super().__call__(columns, rows)


@pytest.mark.parametrize("relations", [(R, R), (R, S)], ids=["one relation", "two relations"])
def test_the_terms_of_an_or_are_routed_by_what_they_cost(relations: tuple[int, int]) -> None:
    first, second = relations
    query = query_of(
        [relation("R"), relation("S")],
        equal((R, 1), (S, 0)),
        predicates=lambda q: [
            Or((call(0, q, (first, 0), (second, 1)), call(1, q, (second, 1), (first, 0))))
        ],
    )
    tables: list[Table] = [[(n, n) for n in range(2000)], [(n, n) for n in range(2000)]]
    clock = VirtualClock()
    expensive = Slow(clock, 1e-3, lambda n, _: n % 7 == 0)
    cheap = Slow(clock, 1e-5, lambda n, _: n % 10 != 0)
    eddy = make_eddy(query, [expensive, cheap], policy="adaptive", clock=clock)
    inputs = [held(table, each, 500) for table, each in zip(tables, query.relations, strict=True)]
    wanted = expected(tables, lambda r, s: r[1] == s[0] and (r[0] % 7 == 0 or r[0] % 10 != 0))
    assert bag(eddy.run(inputs)) == wanted
    asked = {each.call.function: each.calls for each in eddy.statistics().calls}
    assert asked[0] < 500, "the cheap one accepts nine rows of ten, and stands second"
    (terms,) = (use.nested for use in eddy.statistics().predicates if use.nested)
    assert [use.rows_in for use in terms] == [asked[0], asked[1]]


@EVERY_POLICY
@pytest.mark.parametrize("goal", list(Goal))
def test_one_seed_is_one_sequence_of_decisions(policy: str, goal: Goal) -> None:
    query = query_of(
        [*CHAIN.relations[:2], looked_up("T", (0,))],
        equal((R, 1), (S, 0)),
        equal((S, 1), (T, 0)),
        predicates=lambda q: [call(0, q, (R, 0)), call(1, q, (S, 1)), call(2, q, (R, 0), (T, 1))],
    )

    def run(seed: int) -> tuple[list[Any], list[Any], float]:
        clock, visits = VirtualClock(), Visits()
        functions = [
            Slow(clock, 3e-4, lambda n: n % 3 != 0),
            Slow(clock, 1e-4, lambda n: n < 2),
            Slow(clock, 5e-4, lambda n, m: (n + m) % 2 == 0),
        ]
        eddy = make_eddy(
            query,
            functions,
            policy=policy,
            seed=seed,
            clock=clock,
            goal=goal,
            quantum=MeasuredQuantum(first=4),
            instrument=visits,
            lookups=sources_of(query, CHAIN_TABLES),
        )
        inputs = [
            held(table if described.scan else [], described, batch=4)
            for table, described in zip(CHAIN_TABLES, query.relations, strict=True)
        ]
        results = [column.to_pylist() for part in eddy.run(inputs) for column in part.outputs]
        return visits.seen, results, clock.now()

    first, second = run(7), run(7)
    assert first == second
    assert len(first[0]) > 30


class Inspector(Visits):
    """An instrument that checks each visit against the routes as they are then."""

    def __init__(self) -> None:
        super().__init__()
        self.eddy: JoinEddy | None = None

    def visited(
        self,
        signature: Signature,
        module: int,
        tuples_in: int,
        tuples_out: int,
        seconds: float,
    ) -> None:
        assert self.eddy is not None
        assert module in self.eddy.routes.candidates(signature)
        super().visited(signature, module, tuples_in, tuples_out, seconds)


@EVERY_POLICY
@pytest.mark.parametrize("goal", list(Goal))
def test_tuples_go_where_they_may_and_see_each_predicate_once(policy: str, goal: Goal) -> None:
    query = query_of(
        [*CHAIN.relations[:2], looked_up("T", (0,))],
        equal((R, 1), (S, 0)),
        equal((S, 1), (T, 0)),
        predicates=lambda q: [
            Comparison(LESS, q.column(R, 0), Literal(17, INT)),
            call(0, q, (R, 0)),
            call(1, q, (R, 0), (T, 1)),
        ],
    )
    inspector = Inspector()
    functions = [UserFunction(lambda n: n % 3 != 0), UserFunction(lambda n, m: (n + m) % 2 == 0)]
    eddy = inspector.eddy = make_eddy(
        query,
        functions,
        policy=policy,
        goal=goal,
        quantum=FixedQuantum(4),
        instrument=inspector,
        lookups=sources_of(query, CHAIN_TABLES),
    )
    inputs = [
        held(table if described.scan else [], described, batch=4)
        for table, described in zip(CHAIN_TABLES, query.relations, strict=True)
    ]
    assert bag(eddy.run(inputs)) == expected(
        CHAIN_TABLES,
        lambda r, s, t: r[1] == s[0] and s[1] == t[0] and r[0] < 17 and r[0] % 3
        and (r[0] + t[1]) % 2 == 0,
    )  # fmt: skip
    assert {len(function.calls) for function in functions} != {0}
    assert all(set(function.calls.values()) == {1} for function in functions)


# --- What an eddy tells and hands on


def test_statistics_say_what_was_done() -> None:
    query = query_of(
        [relation("R"), looked_up("S", (0,))],
        equal((R, 1), (S, 0)),
        predicates=lambda q: [call(0, q, (R, 0))],
    )
    r, s = [(n, n % 3) for n in range(6)], [(n, n) for n in range(9)]
    eddy = make_eddy(query, [UserFunction(lambda n: n < 4)], lookups=sources_of(query, [r, s]))
    rows = bag(eddy.run([held(r, query.relations[R]), HeldScan(())]))
    statistics = eddy.statistics()
    assert statistics.rows_out == rows.total() == 4
    assert statistics.read == (6, 3)
    (lookup,) = statistics.lookups
    assert (lookup.bindings, lookup.rows, lookup.relation) == (3, 3, "S")
    (predicate,) = statistics.predicates
    assert (predicate.text, predicate.rows_in, predicate.passed) == ("predicate 0", 6, 4)
    (calls,) = statistics.calls
    assert (calls.calls, calls.possible) == (6, 6)
    assert [stem.relation for stem in statistics.stems] == ["R", "S"]


def test_a_row_that_a_selection_rejects_is_killed_in_its_stem() -> None:
    query = query_of(
        [relation("R"), relation("S")],
        equal((R, 1), (S, 0)),
        predicates=lambda q: [call(0, q, (R, 0))],
    )
    function = UserFunction(lambda n: n == 0)
    eddy = make_eddy(query, [function], goal=Goal.INTERACTIVE)
    r, s = [(n, 1) for n in range(5)], [(1, n) for n in range(4)]
    inputs = [held(r, query.relations[R]), held(s, query.relations[S], batch=1)]
    assert bag(eddy.run(inputs)) == {(0, 1, 1, n): 1 for n in range(4)}
    assert eddy.statistics().stems[R].killed == 4
    assert sum(function.calls.values()) == 5


@EVERY_POLICY
def test_what_was_learned_serves_the_next_eddy(policy: str) -> None:
    learned = None
    for _ in range(3):
        eddy: JoinEddy = make_eddy(CHAIN, policy=policy, learned=learned)
        inputs = [
            held(table, described, batch=5)
            for table, described in zip(CHAIN_TABLES, CHAIN.relations, strict=True)
        ]
        assert bag(eddy.run(inputs)) == CHAIN_ROWS
        learned = eddy.learned()


def test_a_relation_alone_is_a_filter() -> None:
    query = query_of(
        [JoinRelation("R", (INT, pa.string()))],
        predicates=lambda q: [
            And((Comparison(LESS, q.column(0, 0), Literal(3, INT)), Not(call(0, q, (0, 1))))),
            Comparison(EQUAL, q.column(0, 1), q.column(0, 1)),
        ],
    )
    rows = [(1, "a"), (2, None), (2, "b"), (3, "a"), (None, "a"), (1, "a")]
    found = joined(query, [rows], [UserFunction(lambda text: text == "b")], batch=2)
    assert found == {(1, "a"): 2}


def test_an_eddy_that_goes_on_calls_no_function_again() -> None:
    """A row's results are part of the state, though another eddy joins the row again."""
    query = query_of(
        [relation("R", 1), relation("S", 1)],
        predicates=lambda query: [
            Comparison(LESS, Call(0, (query.column(R, 0),), INT), query.column(S, 0))
        ],
    )
    function = UserFunction(lambda value: value, INT)
    rows = joined(query, [[(1,)], [(n,) for n in range(6)]], [function], batch=1, moves=1)
    assert rows == Counter((1, n) for n in range(2, 6))
    assert function.calls == Counter({(1,): 1})


def test_a_state_of_another_query_is_refused() -> None:
    two = make_eddy(query_of([relation("R"), relation("S")], equal((R, 0), (S, 0))))
    predicate = make_eddy(query_of([relation("R"), relation("S")], equal((R, 0), (S, 1))))
    assert make_eddy(two.query, state=two.state).state is two.state
    assert (
        make_eddy(predicate.query, state=two.state).state is two.state
    )  # nothing tells them apart
    others = [
        query_of([relation("R"), relation("S"), relation("T")], equal((R, 0), (S, 0))),
        query_of([relation("R"), looked_up("S", (0,))], equal((R, 0), (S, 0))),
        query_of([relation("R"), relation("S")], ((R, 0), LESS, (S, 0)), ((R, 1), LESS, (S, 1))),
    ]
    for query in others:
        lookups = sources_of(query, [[]] * len(query.relations))
        with pytest.raises(ValueError, match="another query"):
            make_eddy(query, state=two.state, lookups=lookups)


@pytest.mark.parametrize("number", [-1, 1, 2, 3])
def test_only_relations_with_a_scan_of_their_own_are_pushed(number: int) -> None:
    """Relation 1 is fed by relation 0, relation 2 is only looked up."""
    query = query_of(
        [relation("R"), relation("R2", same_rows_as=0), looked_up("S", (0,))],
        equal((0, 1), (1, 0)),
        equal((1, 1), (2, 0)),
    )
    eddy = make_eddy(query, lookups=sources_of(query, [[]] * 3))
    with pytest.raises(ValueError, match=f"relation {number} has no scan of its own"):
        eddy.push(number, arrival([(1, 1)], [INT] * 2))


@pytest.mark.parametrize(
    "wrong",
    [
        Arrival((), 1),
        Arrival((pa.array([1]),), 1),
        Arrival((pa.array([1]),) * 3, 1),
        Arrival((pa.array([1]), pa.array([1, 2])), 1),
        Arrival((pa.array([1]), pa.array([1])), 2),
    ],
)
def test_rows_of_something_else_are_refused(wrong: Arrival) -> None:
    eddy = make_eddy(CHAIN)
    with pytest.raises(ValueError, match=r"R has 2 columns, not|rows cannot have columns"):
        eddy.push(R, wrong)
    inputs = [held(table, CHAIN.relations[r]) for r, table in enumerate(CHAIN_TABLES)]
    assert bag(eddy.run(inputs)) == CHAIN_ROWS


@pytest.mark.parametrize("inputs", [0, 2, 4])
def test_there_is_an_input_for_each_relation(inputs: int) -> None:
    with pytest.raises(ValueError, match=f"3 relations cannot have {inputs} inputs"):
        make_eddy(CHAIN).run([HeldScan([])] * inputs)


@pytest.mark.parametrize("number", [-1, 1])
def test_a_call_names_a_function(number: int) -> None:
    relations = [relation("R"), relation("S")]
    for options in (
        {"predicates": lambda q: [call(number, q, (R, 0), (S, 0))]},
        {"outputs": lambda q: [call(number, q, (R, 0))]},
    ):
        with pytest.raises(ValueError, match=f"calls function {number}, and there are 1"):
            make_eddy(query_of(relations, **options), [UserFunction(bool)])


def test_what_was_learned_of_another_query_is_refused() -> None:
    def routed(q: JoinQuery) -> list[Expression]:
        return [Or((call(0, q, (R, 0)), call(0, q, (S, 0))))]

    plain_query = query_of([relation("R"), relation("S")], equal((R, 0), (S, 0)))
    queries = [plain_query, query_of(plain_query.relations, predicates=routed)]
    eddies = [make_eddy(query, [UserFunction(bool)]) for query in queries]
    for query, other in zip(queries, reversed(eddies), strict=True):
        with pytest.raises(ValueError, match=r"what was learned is of|costs are those of"):
            make_eddy(query, [UserFunction(bool)], learned=other.learned())


def test_functions_that_answer_later_are_refused() -> None:
    query = query_of([relation("R"), relation("S")], equal((R, 0), (S, 0)))
    agenda = VirtualAgenda(VirtualClock())
    caller = VirtualCaller(lambda _: True, agenda, lambda _: 1.0)
    with pytest.raises(ValueError, match=r"functions \[1\] answer later"):
        make_eddy(query, [UserFunction(bool), ConcurrentFunction(caller)])
