"""What is known beforehand: where the adaptive policy begins, and what overrules it."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

import numpy as np
import pytest

from bench.learned import CHANGES, Gain, gain, kind_of, risk, run
from eddyline.engine.policies.adaptive import AdaptivePolicy, Explored
from eddyline.engine.policies.adaptive_knowledge import OVERRULED_COST
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.policies.policy import Allotment, TakesPriors, begin_with
from eddyline.engine.prior import Prior, by_number, nested_priors
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature

SIZES = ((4, 2_000), (4, 10_000))
SEEDS = range(8)

GOOD, BAD = Prior(1000.0, 100.0, 1.0), Prior(1000.0, 900.0, 10.0)


def started(priors: Mapping[int, Prior], modules: int = 2) -> AdaptivePolicy:
    policy = AdaptivePolicy()
    policy.start(Routes(modules), np.random.default_rng(0), lambda _: 1.0)
    begin_with(policy, priors)
    return policy


def visit(
    policy: AdaptivePolicy,
    module: int,
    given: int,
    back: float,
    cost: float,
    at: Signature = ENTERING,
) -> None:
    policy.sent(at, module, given)
    policy.returned(at, module, given, round(back * given), cost * given)


@functools.cache
def gains() -> list[Gain]:
    return [gain(*size, SEEDS) for size in (*SIZES, (8, 2_000))]


def test_the_second_query_explores_a_tenth_at_the_most() -> None:
    first = sum(of.settled[0] + of.refreshed[0] for of in gains())
    second = sum(of.settled[1] + of.refreshed[1] for of in gains())
    assert second <= 0.1 * first


def test_the_second_query_takes_no_longer() -> None:
    assert all(of.time < 1.0 for of in gains())


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_distribution_costs_two_percent_at_the_most(change: str) -> None:
    ratios = [ratio for size in SIZES for ratio in risk(change, *size, SEEDS)]
    assert np.mean(ratios) <= 1.02


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_costs_that_are_wrong_a_thousandfold_are_overruled(factor: float) -> None:
    """A query of 10,000 rows takes a twentieth longer at the most."""
    ratios = []
    for seed in SEEDS:
        kind = kind_of(seed, 4)
        wrong = tuple(
            None
            if prior is None
            else Prior(prior.tuples, prior.returned, prior.cost * (factor if number % 2 else 1.0))
            for number, prior in enumerate(run(kind, 2_000, seed).learned)
        )
        without = run(kind, 10_000, seed).seconds
        ratios.append(run(kind, 10_000, seed, wrong).seconds / without)
    assert np.mean(ratios) <= 1.05


def test_a_run_with_priors_repeats_to_the_last_decision() -> None:
    kind = kind_of(3, 4)
    learned = run(kind, 2_000, 0).learned
    assert run(kind, 2_000, 1, learned) == run(kind, 2_000, 1, learned)


def test_what_is_known_needs_no_first_look() -> None:
    policy = started({0: BAD, 1: GOOD})
    assert policy.order() == (1, 0)
    # As of a first look, one tuple alone waits for what there is to load; then it goes on at once.
    assert policy.route(ENTERING, (0, 1), (0, 1), 5000) == Allotment(1, 1)
    visit(policy, 1, 1, 0.0, 1.0)
    chosen = policy.route(ENTERING, (0, 1), (0, 1), 5000)
    assert chosen is not None
    assert chosen.module == 1
    assert policy.explored == Explored()


def test_only_what_is_not_known_is_looked_at() -> None:
    policy = started({1: GOOD})
    assert policy.route(ENTERING, (0, 1), (0, 1), 5000) == Allotment(0, 1)
    visit(policy, 0, 1, 1.0, 1.0)
    assert policy.route(ENTERING, (0, 1), (0, 1), 5000) == Allotment(0, 8)
    visit(policy, 0, 8, 1.0, 10.0)
    assert policy.explored == Explored(first=9)
    chosen = policy.route(ENTERING, (0, 1), (0, 1), 5000)
    assert chosen is not None
    assert chosen.module == 1


@pytest.mark.parametrize(
    ("back", "cost"),
    [
        pytest.param(0.9, 1.0, id="another selectivity"),
        pytest.param(0.1, 1.1 * OVERRULED_COST, id="another cost"),
    ],
)
def test_what_is_seen_overrules_what_was_known(back: float, cost: float) -> None:
    """And of the other modules nothing is believed any longer: they get their first looks."""
    policy = started({0: BAD, 1: GOOD})
    for tuples in (1, 16, 32, 64):
        visit(policy, 1, tuples, back, cost)
    assert policy.changes == []  # nothing has changed while this eddy ran
    assert policy.route(ENTERING, (0, 1), (0, 1), 5000) == Allotment(0, 1)


def test_what_is_seen_confirms_what_was_known() -> None:
    policy = started({0: BAD, 1: GOOD})
    for tuples in (1, 16, 32, 64, 128):
        visit(policy, 1, tuples, 0.12, 1.2)
    assert policy.order() == (1, 0)
    chosen = policy.route(ENTERING, (0, 1), (0, 1), 5000)
    assert chosen is not None
    assert chosen.module == 1


@pytest.mark.parametrize("name", list(PolicyName))
def test_only_the_adaptive_policy_takes_priors(name: PolicyName) -> None:
    policy = make_policy(name)
    takes = isinstance(policy, TakesPriors)
    assert takes == isinstance(policy, AdaptivePolicy)
    policy.start(Routes(2), np.random.default_rng(0))
    begin_with(policy, {0: GOOD, 5: BAD})  # there is no module 5
    assert policy.route(ENTERING, (0, 1), (0, 1), 10) is not None


@pytest.mark.parametrize(
    ("tuples", "returned", "cost"),
    [
        (math.nan, 0.0, 1.0),
        (math.inf, 0.0, 1.0),
        (0.0, 0.0, 1.0),
        (-1.0, -1.0, 1.0),
        (1.0, math.nan, 1.0),
        (1.0, 2.0, 1.0),
        (1.0, -0.1, 1.0),
        (1.0, 0.5, math.nan),
        (1.0, 0.5, math.inf),
        (1.0, 0.5, -1e-9),
    ],
)
def test_what_cannot_have_been_is_refused(tuples: float, returned: float, cost: float) -> None:
    with pytest.raises(ValueError, match=r"a prior rests|cannot have passed|a tuple costs"):
        Prior(tuples, returned, cost)


def test_terms_of_an_or_leave_where_they_accept() -> None:
    nested = Prior(10.0, 2.0, 1.0, (GOOD, None))
    assert by_number(nested.nested, inverted=True) == {0: Prior(1000.0, 900.0, 1.0)}
    assert nested_priors(nested, 2) == (GOOD, None)
    assert nested_priors(nested, 3) == nested_priors(None, 3) == (None,) * 3
