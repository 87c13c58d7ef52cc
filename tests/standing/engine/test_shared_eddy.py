"""Shared eddies: the answers are those of each query alone, whatever the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.standing.engine import stems
from eddyline.standing.engine.shared_query import JoinShape, SharedQuery, edge
from eddyline.standing.engine.sharing_plans import PLANS
from tests.standing.engine.shared import (
    BY_KEY,
    PAPER,
    Push,
    Run,
    answer_of,
    between,
    joins,
    of_plan,
    pushes,
    queries,
    query_sets,
    selects,
)

EVERY_PLAN = pytest.mark.parametrize("plan", PLANS)
PRECISE = pytest.mark.parametrize("plan", ["tulip", "car"])


@EVERY_PLAN
def test_answers_are_those_of_each_query(plan: str) -> None:
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
    run = Run("car", make_policy=lambda: make_policy(policy), seed=seed)
    run.eddy.add(set_)
    assert run.push(came).answer == answer_of(set_, came)


@given(query_sets, pushes)
def test_probes_that_stop_and_go_on(set_: dict[int, SharedQuery], came: list[Push]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stems, "MOST_MATCHES", 1)
        run = Run("car")
        run.eddy.add(set_)
        assert run.push(came).answer == answer_of(set_, came)


def zombies(run: Run, set_: Mapping[int, SharedQuery], came: Sequence[Push]) -> int:
    """Return how many joined tuples were made that no query can make anything of."""
    arrived = [[row for push in came if push.stream == s for row in push.rows] for s in range(3)]

    def is_wanted(spanned: int, arrivals: Sequence[int]) -> bool:
        streams = [s for s in range(3) if spanned >> s & 1]
        components = {s: arrived[s][at] for s, at in zip(streams, arrivals, strict=True)}
        return any(
            query.shape.streams & spanned == spanned
            and query.shape.connects(spanned)
            and joins(query, components)
            and all(selects(query, s, row) for s, row in components.items())
            for query in set_.values()
        )

    return sum(not is_wanted(*made) for made in run.audit.tuples)


@PRECISE
def test_no_operation_is_repeated_and_no_zombie_is_made(plan: str) -> None:
    """PS1 and PS2 (Krishnamurthy et al., 2004, Section 3), for TULIP and CAR."""

    @of_plan(plan)
    @given(
        st.dictionaries(st.integers(0, 300), queries(PAPER), min_size=1, max_size=6),
        pushes.map(lambda each: each[:8]),
    )
    def check(set_: dict[int, SharedQuery], came: list[Push]) -> None:
        run = Run(plan)
        run.eddy.add(set_)
        run.push(came)
        assert run.audit.precision().repeated == {}
        assert zombies(run, set_, came) == 0
        assert run.eddy.statistics().zombies == 0

    check()


ALIKE = [Push(s, [(1, 1, value, 0) for value in range(10)]) for s in (0, 1, 0, 1)]
"""Rows that all join: which results are wanted is up to selections alone."""


def apart(*bounds: tuple[int, int]) -> dict[int, SharedQuery]:
    """Return queries over two streams that select the same values of both."""
    edges = frozenset({BY_KEY[0, 1]})
    return {
        number: SharedQuery({0: between(*pair), 1: between(*pair)}, edges)
        for number, pair in enumerate(bounds)
    }


@pytest.mark.parametrize(
    ("plan", "repeated", "has_zombies"),
    [
        # Section 3.2: "zombie tuples that have to be eliminated later"; predicates on a row
        # are asked for every joined tuple that it is part of.
        ("selection_pull_up", {"select", "output"}, True),
        ("filtered_pull_up", {"select", "output"}, True),
        # Section 4.1, problem 1: "the build and probe operations on the tuples are duplicated".
        ("selection_push_down", {"build", "probe", "output"}, False),
        ("tulip", set(), False),
        # Section 6.2: built "along with" the scan, rows in SteMs know nothing of selections.
        ("cacq", {"select"}, True),
        ("car", set(), False),
    ],
)
def test_each_plan_violates_what_the_paper_says(
    plan: str,
    repeated: set[str],
    has_zombies: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    set_ = apart((0, 4), (3, 8))
    run = Run(plan)
    run.eddy.add(set_)
    run.push(ALIKE)
    assert set(run.audit.precision().repeated) == repeated
    assert (zombies(run, set_, ALIKE) > 0) is has_zombies
    assert (run.eddy.statistics().zombies > 0) is has_zombies


def test_zombies_are_counted_where_they_are_found() -> None:
    set_ = apart((0, 1), (5, 6))
    for plan in PLANS:
        run = Run(plan)
        run.eddy.add(set_)
        run.push(ALIKE)
        assert run.eddy.statistics().zombies == zombies(run, set_, ALIKE)
        assert run.eddy.statistics().made == len(run.audit.tuples)


@EVERY_PLAN
def test_queries_come_and_go(plan: str) -> None:
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
def test_nothing_is_left_of_queries_that_have_gone(plan: str) -> None:
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
        run = Run("car", make_policy=lambda: make_policy("lottery"), seed=7)
        run.eddy.add(set_)
        orders.append(list(run.push(came).answer.items()))
    assert orders[0] == orders[1]


def test_what_is_refused() -> None:
    run = Run("car")
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
