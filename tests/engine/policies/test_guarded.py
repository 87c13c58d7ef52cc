"""A policy of a user's that fails: the rows are the same, and the failure is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulation.known_costs import Known
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.guarded import LONGEST, GuardedPolicy, unguarded
from eddyline.engine.policies.policy import Allotment, Policy, begin_with
from eddyline.engine.policies.rank import RankPolicy
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.prior import Prior
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature
from eddyline.expressions import And, Argument, Call
from eddyline.simulation.virtual_clock import VirtualClock
from tests.properties import examples

ROWS = 300


class Backwards(StaticPolicy):
    """Routes in the reverse of the written order until something is to go wrong."""

    name = "backwards"

    def __init__(self, fails: Callable[[], object] | None = None, after: int = 0) -> None:
        super().__init__()
        self.fails = fails
        self.left = after

    def route(
        self,
        signature: Signature,  # noqa: ARG002 - the same for all
        candidates: tuple[int, ...],
        open_: tuple[int, ...],  # noqa: ARG002 - likewise
        tuples: int,
    ) -> Allotment | None:
        self.left -= 1
        if self.fails is not None and self.left < 0:
            return self.fails()  # type: ignore[return-value]  # that is what is wrong
        return Allotment(candidates[-1], tuples)


def broken() -> object:
    raise ZeroDivisionError("by\nnothing")


def exits() -> object:
    raise SystemExit(3)


FAILURES: Mapping[str, tuple[Callable[[], object], str]] = {
    "raises": (
        broken,
        r"^ZeroDivisionError: by nothing \(in route, line \d+ of test_guarded.py\)$",
    ),
    "ends the process": (exits, r"^SystemExit: 3 \(in route, line \d+ of test_guarded.py\)$"),
    "an illegal module": (lambda: Allotment(7, 1), r"^ValueError: module 7 is none of the cand"),
    "a module that is done": (lambda: Allotment(-1, 1), "module -1 is none"),
    "no tuples": (lambda: Allotment(0, 0), "module 0 is to get 0 tuples"),
    "negative tuples": (lambda: Allotment(0, -5), "module 0 is to get -5 tuples"),
    "half a tuple": (lambda: (0, 0.5), "^TypeError"),
    "no allotment": (lambda: 0, "^TypeError"),
    "waits for ever": (lambda: None, "it waits although no tuple is with a module"),
}


def filtered(make: Callable[[], Policy], passes: np.ndarray) -> tuple[list[int], FilterEddy, float]:
    """Return the rows that are kept, the eddy, and the virtual seconds."""
    clock, column = VirtualClock(), Argument(0, pa.int64())
    predicates, rows = passes.shape
    eddy = FilterEddy(
        FilterPlan(And(tuple(Call(i, (column,), pa.bool_()) for i in range(predicates)))),
        [Known(clock, np.full(rows, 1e-5), passes[i]) for i in range(predicates)],
        make,
        clock,
        np.random.default_rng(0),
    )
    kept = []
    for start in range(0, rows, 100):
        part = np.arange(start, min(start + 100, rows))
        kept += (eddy.filter([pa.array(part)], len(part)).kept + start).tolist()
    return kept, eddy, clock.now()


@examples(40)
@given(kind=st.sampled_from(sorted(FAILURES)), after=st.integers(0, 30), seed=st.integers(0, 9))
def test_whatever_a_policy_does_the_rows_are_the_same(kind: str, after: int, seed: int) -> None:
    fails, told = FAILURES[kind]
    passes = np.random.default_rng(seed).random((3, ROWS)) < np.array([[0.3], [0.6], [0.9]])
    kept, eddy, _ = filtered(lambda: GuardedPolicy("mine", lambda: Backwards(fails, after)), passes)
    assert kept == np.flatnonzero(passes.all(axis=0)).tolist()
    policy = eddy.eddy.policy
    assert isinstance(policy, GuardedPolicy)
    if policy.failure is not None:
        assert re.search(told, policy.failure)
    asked = unguarded(policy)
    assert isinstance(asked, Backwards)
    assert (asked.left < 0) == (policy.failure is not None)


@pytest.mark.parametrize("kind", sorted(FAILURES))
def test_from_its_failure_on_the_written_order_is_kept(kind: str) -> None:
    fails, told = FAILURES[kind]
    policy = GuardedPolicy("mine", lambda: Backwards(fails, after=2))
    policy.start(Routes(3), np.random.default_rng(0))
    chosen = [policy.route(ENTERING, (0, 1, 2), (0, 1, 2), 5) for _ in range(4)]
    assert chosen == [(2, 5), (2, 5), (0, 5), (0, 5)]
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(policy.failure)


def test_what_a_person_interrupts_ends() -> None:
    def interrupted() -> object:
        raise KeyboardInterrupt

    policy = GuardedPolicy("mine", lambda: Backwards(interrupted, after=0))
    policy.start(Routes(2), np.random.default_rng(0))
    with pytest.raises(KeyboardInterrupt):
        policy.route(ENTERING, (0, 1), (0, 1), 5)


class Failing(RankPolicy):
    """Fails in one of its methods."""

    def __init__(self, method: str) -> None:
        super().__init__()
        setattr(self, method, self._fail)

    def _fail(self, *_: object, **__: object) -> None:
        raise LookupError("lost")


@pytest.mark.parametrize("method", ["start", "sent", "returned", "order"])
def test_every_method_may_fail(method: str) -> None:
    passes = np.random.default_rng(3).random((3, ROWS)) < 0.5
    kept, eddy, _ = filtered(lambda: GuardedPolicy("mine", lambda: Failing(method)), passes)
    assert kept == np.flatnonzero(passes.all(axis=0)).tolist()
    policy = eddy.eddy.policy
    assert isinstance(policy, GuardedPolicy)
    assert policy.order(ENTERING) == (0, 1, 2)
    assert policy.failure is not None
    assert policy.failure.startswith(f"LookupError: lost (in {method}, line ")


@pytest.mark.parametrize("order", [(), (0, 0, 1), (0, 1, 9), (0.5,)])
def test_an_order_of_something_else_is_a_failure(order: tuple[int, ...]) -> None:
    class Odd(StaticPolicy):
        def order(self, signature: Signature) -> tuple[int, ...]:  # noqa: ARG002 - the same for all
            return order

    policy = GuardedPolicy("mine", Odd)
    policy.start(Routes(3), np.random.default_rng(0))
    assert policy.order(ENTERING) == (0, 1, 2)
    assert policy.failure is not None


def test_a_policy_that_cannot_be_made_is_one_that_fails() -> None:
    def gone() -> Policy:
        raise ModuleNotFoundError("No module named 'mine'")

    policy = GuardedPolicy("mine", gone)
    policy.start(Routes(2), np.random.default_rng(0))
    assert policy.route(ENTERING, (0, 1), (0, 1), 3) == (0, 3)
    assert policy.failure is not None
    assert "No module named 'mine' (in start" in policy.failure


def test_it_may_wait_while_tuples_are_away() -> None:
    policy = GuardedPolicy("mine", lambda: Backwards(lambda: None))
    policy.start(Routes(2), np.random.default_rng(0))
    policy.sent(ENTERING, 1, 4)
    assert policy.route(ENTERING, (0, 1), (0,), 3) is None
    policy.returned(ENTERING, 1, 4, 2, 1.0)
    assert policy.failure is None
    assert policy.route(ENTERING, (0, 1), (0, 1), 3) == (0, 3)
    assert policy.failure is not None


def test_tuples_of_an_eddy_that_broke_off_are_away_no_more() -> None:
    policy = GuardedPolicy("mine", lambda: Backwards(lambda: None))
    policy.start(Routes(2), np.random.default_rng(0))
    policy.sent(ENTERING, 1, 4)
    policy.start(Routes(2), np.random.default_rng(0))
    assert policy.route(ENTERING, (0, 1), (0, 1), 3) == (0, 3)


def test_the_next_eddy_goes_on_with_what_was_learned() -> None:
    policy = GuardedPolicy("mine", RankPolicy)
    policy.start(Routes(2), np.random.default_rng(0))
    first = policy.policy
    policy.start(Routes(2), np.random.default_rng(0))
    assert policy.policy is first


def test_the_next_eddy_has_a_new_copy_of_one_that_failed() -> None:
    policy = GuardedPolicy("mine", lambda: Backwards(broken))
    routes = Routes(2)
    policy.start(routes, np.random.default_rng(0))
    policy.route(ENTERING, (0, 1), (0, 1), 3)
    first = policy.policy
    routes.add()
    policy.start(routes, np.random.default_rng(0))
    assert policy.failure, "the same eddy, with one module more"
    assert policy.route(ENTERING, (0, 1, 2), (0, 1, 2), 3) == (0, 3)
    policy.start(Routes(2), np.random.default_rng(0))
    assert policy.policy is not first
    assert not policy.failure


def test_what_is_known_beforehand_goes_to_policies_that_take_it() -> None:
    adaptive, rank = GuardedPolicy("a", AdaptivePolicy), GuardedPolicy("r", RankPolicy)
    priors = {0: Prior(1000, 900, 1e-3), 1: Prior(1000, 100, 1e-3)}
    for policy in (adaptive, rank):
        policy.start(Routes(2), np.random.default_rng(0))
        begin_with(policy, priors)
    assert adaptive.order(ENTERING) == (1, 0)
    assert rank.order(ENTERING) == (0, 1)
    assert rank.failure is None


def test_a_policy_that_fails_to_say_whether_it_routes_by_content() -> None:
    class Odd(StaticPolicy):
        shifts = 0

        @property
        def by_content(self) -> bool:
            raise ZeroDivisionError

        def tell_apart(self, classes: object) -> None: ...

    policy = GuardedPolicy("odd", Odd)
    policy.start(Routes(2), np.random.default_rng(0))
    assert (policy.by_content, policy.shifts) == (False, 0)
    assert policy.failure is not None
    assert "by_content" in policy.failure


def test_a_guard_changes_no_decision() -> None:
    passes = np.random.default_rng(3).random((3, 3000)) < np.array([[0.9], [0.6], [0.3]])
    guarded = filtered(lambda: GuardedPolicy("a", AdaptivePolicy), passes)
    assert guarded[::2] == filtered(AdaptivePolicy, passes)[::2]


def test_what_is_told_is_short() -> None:
    def long() -> object:
        raise ValueError("x" * 10_000)

    policy = GuardedPolicy("mine", lambda: Backwards(long))
    policy.start(Routes(2), np.random.default_rng(0))
    policy.route(ENTERING, (0, 1), (0, 1), 3)
    assert policy.failure is not None
    assert len(policy.failure) < LONGEST + 100
