"""Shared eddies: the answers are those of each query alone, whatever the plan."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.sharing.sharing_plans import PLANS
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.standing.engine import stems
from eddyline.standing.engine.shared_query import JoinShape, SharedQuery, edge
from tests.standing.engine.shared import (
    ALIKE,
    BY_KEY,
    Push,
    Run,
    answer_of,
    apart,
    between,
    of_plan,
    pushes,
    queries,
    query_sets,
)

EVERY_PLAN = pytest.mark.parametrize("plan", [None, *PLANS])
PRECISE = pytest.mark.parametrize("plan", [None, "tulip"])


@EVERY_PLAN
def test_answers_are_those_of_each_query(plan: str | None) -> None:
    @of_plan(plan)
    @given(query_sets, pushes)
    def check(set_: dict[int, SharedQuery], came: list[Push]) -> None:
        run = Run(plan)
        run.eddy.add(set_)
        assert run.push(came).answer == answer_of(set_, came)

    check()


@given(query_sets, pushes, st.sampled_from(list(PolicyName)), st.integers(0, 9))
def test_no_policy_changes_answers(
    set_: dict[int, SharedQuery], came: list[Push], policy: PolicyName, seed: int
) -> None:
    run = Run(None, make_policy=lambda: make_policy(policy), seed=seed)
    run.eddy.add(set_)
    assert run.push(came).answer == answer_of(set_, came)


@given(query_sets, pushes)
def test_probes_that_stop_and_go_on(set_: dict[int, SharedQuery], came: list[Push]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stems, "MOST_MATCHES", 1)
        run = Run(None)
        run.eddy.add(set_)
        assert run.push(came).answer == answer_of(set_, came)


@EVERY_PLAN
def test_queries_come_and_go(plan: str | None) -> None:
    @of_plan(plan, 50)  # an example takes 50 ms
    @given(st.lists(st.tuples(st.dictionaries(st.integers(0, 8), queries()), pushes), max_size=4))
    def check(steps: list[tuple[dict[int, SharedQuery], list[Push]]]) -> None:
        run = Run(plan)
        expected: Counter[object] = Counter()
        since: dict[int, list[Push]] = {}
        here: dict[int, SharedQuery] = {}
        for change, came in steps:
            gone = [number for number in change if number in here]
            run.eddy.remove(gone)
            for number in gone:
                expected.update(answer_of({number: here.pop(number)}, since.pop(number)))
            new = {number: query for number, query in change.items() if number not in gone}
            run.eddy.add(new)
            here |= new
            since |= {number: [] for number in new}
            run.push(came)
            for number in since:
                since[number] += came
        for number, query in here.items():
            expected.update(answer_of({number: query}, since[number]))
        assert run.answer == expected

    check()


@PRECISE
def test_nothing_is_left_of_queries_that_have_gone(plan: str | None) -> None:
    run = Run(plan)
    run.eddy.add(apart((0, 4), (3, 8), (0, 9)))
    run.push(ALIKE)
    run.eddy.remove([0, 1, 2])
    statistics = run.eddy.statistics()
    assert statistics.stored == {"R": 0, "S": 0, "T": 0}
    assert statistics.lineage.sets == 1
    assert run.eddy.queries == {}


def test_the_same_seed_gives_the_same_results_in_the_same_order() -> None:
    came = [Push(s, [(k % 3, k % 2, k % 10, k) for k in range(40)]) for s in (0, 1, 2, 0, 1, 2)]
    edges = frozenset({BY_KEY[0, 1], BY_KEY[0, 2]})
    set_ = {n: SharedQuery({s: between(n, n + 3) for s in range(3)}, edges) for n in range(5)}
    orders = []
    for _ in range(2):
        run = Run(None, make_policy=lambda: make_policy("lottery"), seed=7)
        run.eddy.add(set_)
        orders.append(list(run.push(came).answer.items()))
    assert orders[0] == orders[1]


def test_what_is_refused() -> None:
    run = Run(None)
    run.eddy.add(apart((0, 4)))
    with pytest.raises(ValueError, match=r"queries \[0\] are here already"):
        run.eddy.add(apart((0, 4)))
    with pytest.raises(ValueError, match=r"there are no queries \[7\]"):
        run.eddy.remove([7])
    assert list(run.eddy.queries) == [0]


def test_shapes_are_connected() -> None:
    with pytest.raises(ValueError, match="not connected"):
        JoinShape(0b11)
    with pytest.raises(ValueError, match="leaves the streams"):
        JoinShape(0b01, frozenset({edge((0, 0), (1, 0))}))
    with pytest.raises(ValueError, match="between two streams"):
        JoinShape(0b01, frozenset({edge((0, 0), (0, 1))}))
    with pytest.raises(ValueError, match="two columns of one stream"):
        JoinShape(0b11, frozenset({edge((0, 0), (1, 0)), edge((0, 1), (1, 0))}))
