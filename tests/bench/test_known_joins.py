"""The simulated joins give the right rows, whatever the route, at the cost that was said."""

from __future__ import annotations

import functools

import pytest

from bench.binary_joins import BinaryRoutes
from bench.known_joins import UNIT, JoinRun, R, S, T, over_binary_joins, over_stems, tables
from eddyline.engine.join.reading_order import Goal
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.signature import Signature

DATA = tables(rs=1.0, st=0.2, seed=3, part=0.02)
RS_FIRST, ST_FIRST = ((R, S, T), (0, 1)), ((T, S, R), (1, 0))


@pytest.mark.parametrize("late", [{}, {R: 0.2}, {T: 0.1, S: 0.3}])
@pytest.mark.parametrize("goal", Goal)
@pytest.mark.parametrize("policy", PolicyName)
def test_both_kinds_of_joins_give_the_right_number_of_rows(
    policy: PolicyName, goal: Goal, late: dict[int, float]
) -> None:
    make = functools.partial(make_policy, policy)
    assert over_stems(DATA, make, goal=goal, late=late).rows == DATA.answer()
    assert over_binary_joins(DATA, make, goal=goal, late=late).rows == DATA.answer()


def test_a_run_repeats_itself() -> None:
    lottery = functools.partial(make_policy, PolicyName.LOTTERY)
    assert over_stems(DATA, lottery, seed=5) == over_stems(DATA, lottery, seed=5)
    assert over_stems(DATA, lottery, seed=5) != over_stems(DATA, lottery, seed=6)


def test_binary_joins_cost_what_was_said() -> None:
    def units(order: tuple[int, int], matches_of_s: tuple[int, int]) -> int:
        run = over_binary_joins(DATA, functools.partial(StaticPolicy, order))
        assert run.first_share((R, T)[order[0]]) == 1.0
        rows = len(DATA.r_a) + len(DATA.s_a) + len(DATA.t_b)
        intermediate = matches_of_s[order[0]]
        expected = 2 * rows + 3 * intermediate + DATA.answer()
        assert run.seconds == pytest.approx(UNIT * expected)
        return expected

    of_s = tuple(
        int((one[:, None] == other).sum())
        for one, other in ((DATA.s_a, DATA.r_a), (DATA.s_b, DATA.t_b))
    )
    assert units((1, 0), (of_s[0], of_s[1])) < units((0, 1), (of_s[0], of_s[1]))


def test_over_stems_the_better_order_costs_less() -> None:
    worse, better = (
        over_stems(DATA, functools.partial(StaticPolicy, order))
        for order in (RS_FIRST[0], ST_FIRST[0])
    )
    assert better.seconds < worse.seconds
    # A few rows are asked about elsewhere before they are built.
    assert better.first_share(T) > 0.95
    assert worse.first_share(R) > 0.95


def test_past_loaded_relations_only_s_costs_anything() -> None:
    run = over_stems(DATA, functools.partial(StaticPolicy, ST_FIRST[0]), loaded=[R, T])
    of_t = int((DATA.s_b[:, None] == DATA.t_b).sum())
    assert run.rows == DATA.answer()
    assert run.first_share(T) == 1.0
    assert run.pairs == of_t
    assert run.seconds == pytest.approx(UNIT * (len(DATA.s_a) + 2 * of_t + DATA.answer()))


def test_to_be_asked_for_a_match_costs_time() -> None:
    late = {R: 100.0}
    run = over_stems(DATA, functools.partial(StaticPolicy, ST_FIRST[0]), late=late)
    asked = sum(passage.tuples for passage in run.passages if passage.time < late[R])
    last = max(passage.time for passage in run.passages if passage.time < late[R])
    assert asked > len(DATA.s_a) / 2
    assert last >= UNIT * (len(DATA.t_b) + asked)


def test_a_late_relation_gives_no_results_before_it_comes() -> None:
    run = over_binary_joins(DATA, functools.partial(StaticPolicy, RS_FIRST[1]), late={R: 0.2})
    assert run.results_by(0.2) == 0
    assert run.results[0][0] > 0.2


def test_a_binary_join_swallows_what_it_has_no_match_for() -> None:
    def before_r_comes(order: tuple[int, int]) -> JoinRun:
        return over_binary_joins(DATA, functools.partial(StaticPolicy, order), late={R: 100.0})

    stuck, through = before_r_comes(RS_FIRST[1]), before_r_comes(ST_FIRST[1])
    # All of S waited in the RS join, and goes through ST only after R has come.
    assert stuck.seconds - 100.0 > 2 * (through.seconds - 100.0)


def test_done_bits_say_which_joins_are_left() -> None:
    routes = BinaryRoutes([(R, S), (S, T)])
    assert routes.candidates(Signature(1 << S)) == (0, 1)
    assert routes.candidates(Signature(1 << R)) == (0,)
    after = routes.after(Signature(1 << S), 0)
    assert after == Signature(1 << R | 1 << S, 0, 1)
    assert routes.candidates(after) == (1,)
    assert routes.candidates(routes.after(after, 1)) == ()
