"""Cyclic queries over sources that stall, compete and answer in any order, under any routing.

Raman, Deshpande and Hellerstein (2003, Section 3.4 and Table 2): whatever the routing, the answer
is that of a nested loop, each row once; and every step of every tuple keeps to the constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.access_methods.competing_scans import CompetingScans
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.reading_order import Goal
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery, JoinRelation, Lookup
from eddyline.engine.join_routes import JoinRoutes
from eddyline.engine.modules.concurrent_index_access import ConcurrentSource
from eddyline.engine.modules.scan_access import Arrival, HeldScan, ScanAccess
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.policies.policy import Allotment, Policy
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.signature import Signature
from eddyline.errors import NotExecutableError
from eddyline.expressions import Call, Comparison, ComparisonOperator, Literal
from eddyline.simulation.fixed_quantum import FixedQuantum
from eddyline.simulation.virtual_clock import VirtualClock
from tests.joins import (
    BOOL,
    INT,
    Row,
    Table,
    TableSource,
    UserFunction,
    Visits,
    bag,
    equal,
    expected,
    held,
    make_eddy,
    query_of,
    relation,
    sources_of,
)
from tests.properties import examples
from tests.unruly import Delayed, Late, UnrulyAgenda, UnrulyCaller

R, S, T = range(3)
ANYWHERE = "anywhere"
"""A policy that sends any number of tuples to any candidate, or waits where it may."""


class Anywhere(StaticPolicy):
    """Chooses by chance alone."""

    name = ANYWHERE

    def __init__(self, generator: np.random.Generator) -> None:
        super().__init__()
        self._generator = generator

    def route(
        self,
        signature: Signature,
        candidates: tuple[int, ...],
        open_: tuple[int, ...],
        tuples: int,
    ) -> Allotment | None:
        del signature
        chosen = int(self._generator.choice(candidates))
        if chosen not in open_ and self._generator.random() < 0.5:
            return None
        return Allotment(chosen, int(self._generator.integers(1, tuples + 1)))


class Stalling(Delayed):
    """An input that has nothing to give now and then, however often it is asked."""

    def __init__(self, source: ScanAccess, generator: np.random.Generator) -> None:
        super().__init__(source)
        self._generator = generator
        self._stalled = 0

    def poll(self) -> Arrival | None:
        if self._stalled:
            self._stalled -= 1
            return None
        self._stalled = int(self._generator.choice([0, 0, 1, 5, 30]))
        return self._source.poll()


def require_table_2(routes: JoinRoutes, seen: Sequence[tuple[Signature, int, int, int]]) -> None:
    """Check every visit against the constraints that bind the one who routes."""
    for signature, module, _, _ in seen:
        spanned, built, done, probed, _ = signature
        stem = module - routes.first_stem
        if module < routes.first_stem:
            assert not done >> module & 1  # BoundedRepetition
        elif module >= routes.first_lookup:
            looked_up, _ = routes.lookups[module - routes.first_lookup]
            assert probed == 1 << looked_up  # only a prior prober comes, of this table
            assert not done >> routes.first_lookup  # and once
        elif probed:
            assert probed == 1 << stem  # ProbeCompletion
        elif spanned >> stem & 1:
            assert spanned == 1 << stem  # a build
            assert not built
        else:
            for r in range(len(routes.tables)):
                if spanned >> r & 1 and routes.must_build_first(r):
                    assert built >> r & 1  # BuildFirst


CIRCLE = [equal((R, 1), (S, 1)), equal((S, 2), (T, 1)), equal((T, 2), (R, 2))]
TRIANGLE = [equal((R, 1), (S, 1)), equal((S, 1), (T, 1)), equal((R, 1), (T, 1))]
PATH = CIRCLE[:2]
SMALL = st.integers(0, 2)
ROWS = st.lists(st.tuples(SMALL, SMALL), max_size=8)
METHODS = st.sampled_from(
    [  # scan, mirrors, lookups
        (True, 0, ()),
        (True, 1, ()),
        (True, 0, ((1,),)),
        (True, 1, ((2,), (1,))),
        (False, 0, ((1,),)),
        (False, 0, ((1,), (2,))),
        (False, 0, ((1, 2), (1,))),
        (False, 0, ((0,), (1,))),
    ]
)
Methods = tuple[bool, int, tuple[tuple[int, ...], ...]]


def described(name: str, methods: Methods) -> JoinRelation:
    scan, mirrors, lookups = methods
    key = (0,) if scan + mirrors + len(lookups) > 1 else ()
    return relation(
        name, 3, scan=scan, mirrors=mirrors, lookups=tuple(map(Lookup, lookups)), key=key
    )


def asked(query: JoinQuery) -> list[Call]:
    """Return predicates that call functions, over R, over R and S, and over T."""
    return [
        Call(0, (query.column(R, 0),), BOOL),
        Call(1, (query.column(R, 0), query.column(S, 0)), BOOL),
        Call(2, (query.column(T, 0),), BOOL),
    ]


FUNCTIONS: list[Callable[..., bool]] = [
    lambda r: r % 5 != 0,
    lambda r, s: (r + s) % 3 != 0,
    lambda t: t % 4 != 1,
]


def executable(
    methods: Sequence[Methods], edges: Sequence[Any], *, with_calls: bool
) -> JoinQuery | None:
    try:
        query = query_of(
            list(map(described, "RST", methods)),
            *edges,
            predicates=asked if with_calls else lambda _: [],
        )
        JoinGraph(query)
    except NotExecutableError:
        return None
    return query


@examples(400)
@given(
    rows=st.tuples(ROWS, ROWS, ROWS),
    methods=st.tuples(METHODS, METHODS, METHODS),
    edges=st.sampled_from([CIRCLE, TRIANGLE, PATH]),
    policy=st.sampled_from([ANYWHERE, *PolicyName]),
    goal=st.sampled_from(list(Goal)),
    seed=st.integers(0, 1000),
    later=st.sampled_from([None, 0.0, 0.7, 1.0]),
    either=st.tuples(st.booleans(), st.booleans()),
    wishes=st.lists(st.one_of(st.none(), SMALL), max_size=4),
)
def test_whatever_the_routing_each_row_arises_once(
    *,
    rows: tuple[Table, Table, Table],
    methods: tuple[Methods, Methods, Methods],
    edges: list[Any],
    policy: str,
    goal: Goal,
    seed: int,
    later: float | None,
    either: tuple[bool, bool],
    wishes: list[int | None],
) -> None:
    """Lookups answer at once, or later in any order; scans stall; what is preferred changes."""
    partial, with_calls = either
    query = executable(methods, edges, with_calls=with_calls)
    if query is None:
        return
    tables: list[Table] = [[(at, *row) for at, row in enumerate(table)] for table in rows]
    generator = np.random.default_rng(seed)
    quantum, batch = generator.integers(1, 5, 2).tolist()
    sources = sources_of(query, tables)
    visits = Visits()
    eddy = JoinEddy(
        query,
        [UserFunction(function) for function in FUNCTIONS],
        lambda: Anywhere(generator) if policy == ANYWHERE else make_policy(policy),
        VirtualClock(),
        generator,
        lookups=sources if later is None else behind(sources, generator, later),
        quantum=FixedQuantum(quantum),
        instrument=visits,
    )
    if partial:
        eddy.want_partial_rows()
    eddy.reading.goal = goal
    inputs = [scans(r, query, tables, generator, batch) for r in range(3)]
    found = []
    for result in eddy.run(inputs, lambda: None):
        found.append(result)
        if wishes:
            wish(eddy, wishes.pop())
    columns = [(left, right) for left, _, right in edges]

    def wanted(*three: Row) -> bool:
        keys = [row[0] for row in three]
        pairs = all(three[a][c] == three[b][d] for (a, c), (b, d) in columns)
        calls = FUNCTIONS[0](keys[R]), FUNCTIONS[1](keys[R], keys[S]), FUNCTIONS[2](keys[T])
        return pairs and (all(calls) or not with_calls)

    assert bag(found) == expected(tables, wanted)
    for source in sources.values():
        assert len(source.asked) == len(set(source.asked))
    require_table_2(eddy.routes, visits.seen)


def behind(
    sources: dict[tuple[int, int], TableSource], generator: np.random.Generator, patience: float
) -> dict[tuple[int, int], ConcurrentSource]:
    """Return sources that answer when it comes to their mind, all through one agenda."""
    agenda = UnrulyAgenda(generator, patience)
    width = int(generator.integers(1, 3))
    return {
        place: ConcurrentSource(
            UnrulyCaller(source, agenda, width), bindings=int(generator.integers(1, 3))
        )
        for place, source in sources.items()
    }


def scans(
    r: int, query: JoinQuery, tables: Sequence[Table], generator: np.random.Generator, batch: int
) -> ScanAccess:
    """Return what scans a relation, each scan in an order of its own and with stalls."""
    each = query.relations[r]
    if not each.scan:
        return HeldScan(())
    several = [
        Stalling(
            held([tables[r][at] for at in generator.permutation(len(tables[r]))], each, batch),
            generator,
        )
        for _ in range(1 + each.mirrors)
    ]
    return CompetingScans(several) if each.mirrors else several[0]


def wish(eddy: JoinEddy, value: int | None) -> None:
    """Prefer rows of T with a value, or no more."""
    if value is None:
        eddy.prefer(None)
    else:
        column = eddy.query.column(T, 1)
        eddy.prefer(Comparison(ComparisonOperator.EQUAL, column, Literal(value, INT)), 3.0)


# --- The spanning tree

SCANNED = [relation(name, 3) for name in "RST"]


@pytest.mark.parametrize("policy", list(PolicyName))
@pytest.mark.parametrize("stalled", [R, S, T])
@pytest.mark.parametrize("partial", [True, False])
def test_whatever_source_stalls_the_other_two_are_joined(
    stalled: int, policy: str, *, partial: bool
) -> None:
    """No spanning tree is chosen: of a triangle each edge alone makes rows of two relations."""
    query = query_of(SCANNED, *TRIANGLE)
    tables: list[Table] = [[(n, n % 4, 0) for n in range(12)] for _ in range(3)]
    visits = Visits()
    eddy = make_eddy(
        query,
        policy=policy,
        goal=Goal.INTERACTIVE,
        quantum=FixedQuantum(3),
        instrument=visits,
    )
    if partial:
        eddy.want_partial_rows()
    inputs: list[Any] = [held(t, d, 2) for t, d in zip(tables, SCANNED, strict=True)]
    late = inputs[stalled] = Late(inputs[stalled])
    others = 0b111 & ~(1 << stalled)
    meanwhile: list[int] = []

    def wait() -> None:
        meanwhile.append(sum(n for s, _, n, _ in visits.seen if s.spanned == others))
        late.open = True

    assert bag(eddy.run(inputs, wait)) == expected(tables, lambda r, s, t: r[1] == s[1] == t[1])
    assert meanwhile == [12 * 3 if partial else 0]


def test_every_policy_is_a_policy() -> None:
    policy: Policy = Anywhere(np.random.default_rng(0))
    assert policy.name == ANYWHERE
