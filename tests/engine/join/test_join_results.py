"""Partial results: every tuple once, and only what is part of the join of its relations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.join_results import Partial
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.concurrent_index_access import ConcurrentSource
from eddyline.engine.modules.scan_access import HeldScan
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.expressions import Comparison, ComparisonOperator
from eddyline.simulation.virtual_clock import VirtualClock
from tests.joins import Row, TableSource, equal, held, looked_up, make_eddy, query_of, relation
from tests.unruly import UnrulyAgenda, UnrulyCaller

R, S, T = range(3)


def query(*, scan_of_t: bool = False) -> JoinQuery:
    """R(id, b) joins S(id, b, c) scanned and T(id, c) looked up; R.id < S.id."""
    return query_of(
        [relation("R"), relation("S", 3), looked_up("T", (1,), scan=scan_of_t)],
        equal((R, 1), (S, 1)),
        equal((S, 2), (T, 1)),
        predicates=lambda q: (Comparison(ComparisonOperator.LESS, q.column(R, 0), q.column(S, 0)),),
    )


def expected(tables: Sequence[Sequence[Row]], spanned: int) -> set[tuple[Any, ...]]:
    """Return the ids of the tuples of some relations that meet the conditions among these."""
    missing: list[Row | None] = [None]
    of = [table if spanned >> n & 1 else missing for n, table in enumerate(tables)]
    return {
        tuple(None if row is None else row[0] for row in (r, s, t))
        for r, s, t in product(*of)
        if (r is None or s is None or (r[1] == s[1] and r[0] < s[0]))
        and (s is None or t is None or s[2] == t[1])
    }


def ids(partials: Sequence[Partial]) -> Counter[tuple[int, tuple[Any, ...]]]:
    """Return how often each tuple was noted, by the relations that it spans."""
    seen: Counter[tuple[int, tuple[Any, ...]]] = Counter()
    for partial in partials:
        columns = [
            [None] * partial.rows if values is None else values.to_pylist()
            for values in (partial.outputs[0], partial.outputs[2], partial.outputs[5])
        ]
        seen.update((partial.spanned, row) for row in zip(*columns, strict=True))
    return seen


VALUES = st.lists(st.integers(0, 3), max_size=8)


@given(
    rs=VALUES,
    ss=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8),
    ts=VALUES,
    policy=st.sampled_from(list(PolicyName)),
    seed=st.integers(0, 1000),
    scan=st.booleans(),
)
def test_every_tuple_is_noted_once_and_belongs_to_the_join_of_its_relations(
    *,
    rs: list[int],
    ss: list[tuple[int, int]],
    ts: list[int],
    policy: PolicyName,
    seed: int,
    scan: bool,
) -> None:
    tables: list[list[Row]] = [
        list(enumerate(rs)),
        [(n, b, c) for n, (b, c) in enumerate(ss)],
        list(enumerate(ts)),
    ]
    asked = query(scan_of_t=scan)
    generator = np.random.default_rng(seed)
    agenda = UnrulyAgenda(generator)
    source = ConcurrentSource(
        UnrulyCaller(TableSource(tables[T], asked.relations[T], (1,)), agenda)
    )
    eddy = JoinEddy(
        asked,
        (),
        lambda: make_policy(policy),
        VirtualClock(),
        generator,
        lookups={(T, 0): source},
    )
    noted = eddy.note_partial_results()
    batch = 1 + seed % 4
    inputs = [held(table, each, batch) for table, each in zip(tables, asked.relations, strict=True)]
    full = sum(joined.rows for joined in eddy.run(inputs))
    assert full == len(expected(tables, 0b111))
    seen = ids(noted.take())
    assert set(seen.values()) <= {1}
    for spanned, row in seen:
        assert spanned != 0b111
        assert row in expected(tables, spanned)
    assert noted.take() == []


def test_what_waits_for_a_stalled_source_is_there_already() -> None:
    """Raman, Deshpande and Hellerstein (2003), Section 4.5: RU tuples while T is stalled."""
    tables: list[list[Row]] = [
        [(n, n % 3) for n in range(9)],
        [(n, n % 3, n % 2) for n in range(9)],
        [(0, 0), (1, 1)],
    ]
    asked = query()
    agenda = UnrulyAgenda(np.random.default_rng(0), patience=1.0)
    source = ConcurrentSource(
        UnrulyCaller(TableSource(tables[T], asked.relations[T], (1,)), agenda)
    )
    eddy = make_eddy(asked, policy="adaptive", lookups={(T, 0): source})
    noted = eddy.note_partial_results()
    for r in (R, S):
        (arrival,) = [held(tables[r], asked.relations[r]).poll()]
        assert arrival is not None
        assert list(eddy.push(r, arrival)) == []
        assert list(eddy.end(r)) == []
    waiting = {row for spanned, row in ids(noted.take()) if spanned == 0b011}
    assert waiting == expected(tables, 0b011)
    assert sum(joined.rows for joined in eddy.finish()) == len(expected(tables, 0b111))


def test_nothing_is_noted_where_nobody_asks() -> None:
    asked = query_of([relation("R"), relation("S")], equal((R, 1), (S, 1)))
    eddy = make_eddy(asked, policy="adaptive")
    assert eddy.eddy.witness is None
    assert list(eddy.run([HeldScan(()), HeldScan(())])) == []


def test_outputs_of_missing_relations_are_none() -> None:
    asked = query()
    source = TableSource([(0, 0)], asked.relations[T], (1,))
    eddy = make_eddy(asked, policy="adaptive", lookups={(T, 0): source})
    noted = eddy.note_partial_results()
    tables: list[list[Row]] = [[(0, 0)], [(1, 0, 5)], []]
    inputs = [held(table, each) for table, each in zip(tables, asked.relations, strict=True)]
    assert list(eddy.run(inputs)) == []
    partials = noted.take()
    assert {partial.spanned for partial in partials} >= {0b001, 0b011}
    for partial in partials:
        of = [R] * 2 + [S] * 3 + [T] * 2
        known = [bool(partial.spanned >> r & 1) for r in of]
        assert [values is not None for values in partial.outputs] == known
