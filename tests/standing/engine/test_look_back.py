"""Queries that see rows from before they came, and tables whose rows all come first."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.sharing.sharing_plans import PLANS
from eddyline.standing.engine.shared_eddy import SharedEddy
from eddyline.standing.engine.shared_query import SharedQuery, Stream
from eddyline.wall_clock import WallClock
from tests.properties import examples
from tests.standing.engine.shared import (
    ANY,
    BY_KEY,
    STREAMS,
    TIME,
    TYPES,
    Answer,
    Push,
    Run,
    answer_of,
    between,
    pushes,
    queries,
    query_sets,
    rows,
    selects,
)

SHARED = [name for name, plan in PLANS.items() if not plan.joins_apart]
INDEXED = ["tulip", "car"]
"""Plans that store only what some query wants."""


@pytest.mark.parametrize("plan", INDEXED)
@examples(80)
@given(query_sets, query_sets, pushes, pushes, st.none() | st.integers(0, 50))
def test_looking_back(
    plan: str,
    first: dict[int, SharedQuery],
    second: dict[int, SharedQuery],
    before: list[Push],
    after: list[Push],
    since: int | None,
) -> None:
    joining = {n: q for n, q in first.items() if q.edges}
    looking = {1000 + n: q for n, q in second.items() if q.edges}
    run = Run(plan)
    run.eddy.add(joining)
    run.push(before)
    run.eddy.add(looking)
    run.eddy.look_back(looking, since)
    run.push(after)
    stored = [
        Push(
            push.stream,
            [
                row
                for row in push.rows
                if any(
                    push.stream in q.selections and selects(q, push.stream, row)
                    for q in joining.values()
                )
                and (since is None or ((time := row[TIME]) is not None and time >= since))
            ],
        )
        for push in before
    ]
    wanted = answer_of(joining, [*before, *after]) + answer_of(looking, [*stored, *after])
    assert run.answer == wanted


@pytest.mark.parametrize("plan", SHARED)
@examples(80)
@given(
    st.lists(rows, max_size=8),
    st.dictionaries(st.integers(0, 300), queries(ANY), min_size=1, max_size=5),
    st.dictionaries(st.integers(301, 600), queries(ANY), max_size=3),
    pushes,
    pushes,
)
def test_tables(
    plan: str,
    table: list[tuple[int | None, ...]],
    first: dict[int, SharedQuery],
    second: dict[int, SharedQuery],
    before: list[Push],
    after: list[Push],
) -> None:
    streams = (*STREAMS[:2], Stream("T", TYPES, TIME, static=True))
    run = Run(plan, streams=streams)
    columns = [
        pa.array([row[c] for row in table], pa.int64()).cast(a_type)
        for c, a_type in enumerate(TYPES)
    ]
    run.eddy.hold(2, columns, len(table))
    of_table = [Push(2, table)]  # type: ignore[arg-type]  # of the length of a row
    first = {n: q for n, q in first.items() if q.selections.keys() != {2}}
    second = {n: q for n, q in second.items() if q.selections.keys() != {2}}
    before, after = ([p for p in some if p.stream < 2] for some in (before, after))
    run.eddy.add(first)
    run.push(before)
    run.eddy.add(second)
    run.push(after)
    wanted: Answer = answer_of(first, [*of_table, *before, *after])
    wanted += answer_of(second, [*of_table, *after])
    assert run.answer == wanted


def test_rows_that_meet_tables_only_are_not_kept() -> None:
    streams = (*STREAMS[:2], Stream("T", TYPES, TIME, static=True))
    run = Run("car", streams=streams)
    run.eddy.hold(2, [pa.array([1, 2], pa.int64()).cast(t) for t in TYPES], 2)
    run.eddy.add({1: SharedQuery({0: None, 2: between(0, 1)}, frozenset({BY_KEY[0, 2]}))})
    run.push([Push(0, [(1, 1, 1, 1), (2, 1, 1, 1)])])
    assert run.eddy.statistics().stored == {"R": 0, "S": 0, "T": 2}
    assert run.answer == Counter({(1, ((1, 1, 1, 1), (1, 1, 1, 1))): 1})


def test_what_is_refused() -> None:
    query = SharedQuery({0: None, 1: None}, frozenset({BY_KEY[0, 1]}))
    run = Run("selection_push_down")
    run.eddy.add({1: query})
    with pytest.raises(ValueError, match="single queries"):
        run.eddy.look_back([1])
    run = Run("car")
    with pytest.raises(ValueError, match=r"no queries \[1\]"):
        run.eddy.look_back([1])
    with pytest.raises(ValueError, match="R cannot hold"):
        run.eddy.hold(0, [pa.nulls(0, t) for t in TYPES], 0)
    table = Stream("T", TYPES, static=True)
    eddy = SharedEddy((table,), lambda _: None, WallClock(), np.random.default_rng(0))
    eddy.add({1: SharedQuery({0: None})})
    with pytest.raises(ValueError, match="T cannot hold"):
        eddy.hold(0, [pa.nulls(0, t) for t in TYPES], 0)
