"""Rank order per signature, kept for so many tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eddyline.engine.policies.policy import Allotment
from eddyline.engine.policies.rank import RankPolicy
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature


def started(every: int, modules: int = 2) -> RankPolicy:
    policy = RankPolicy(every)
    policy.start(Routes(modules), np.random.default_rng(0))
    return policy


def visit(
    policy: RankPolicy, module: int, given: int, back: int, cost: float, at: Signature = ENTERING
) -> None:
    policy.sent(at, module, given)
    policy.returned(at, module, given, back, cost)


def test_the_order_is_that_of_selectivity_minus_one_over_cost() -> None:
    policy = started(every=1, modules=3)
    visit(policy, 0, 100, 50, 100.0)  # (0.5 - 1) / 1.0 = -0.5
    visit(policy, 1, 100, 90, 10.0)  # (0.9 - 1) / 0.1 = -1.0
    visit(policy, 2, 100, 10, 450.0)  # (0.1 - 1) / 4.5 = -0.2
    assert policy.route(ENTERING, (0, 1, 2), (0, 1, 2), 9) == Allotment(1, 9)


def test_what_was_never_visited_comes_first() -> None:
    policy = started(every=1, modules=3)
    visit(policy, 0, 100, 0, 1.0)
    visit(policy, 2, 100, 0, 1.0)
    assert policy.route(ENTERING, (0, 1, 2), (0, 1, 2), 1) == Allotment(1, 1)


def test_a_decision_stands_for_its_number_of_tuples() -> None:
    policy = started(every=10)
    visit(policy, 0, 1, 0, 2.0)
    visit(policy, 1, 1, 0, 1.0)
    chosen = policy.route(ENTERING, (0, 1), (0, 1), 1)
    assert chosen == Allotment(1, 1)
    visit(policy, 1, 4, 4, 1e6)  # it turns out to be bad, and stays chosen
    assert policy.route(ENTERING, (0, 1), (0, 1), 1) == Allotment(1, 1)
    visit(policy, 1, 6, 6, 1e6)
    assert policy.route(ENTERING, (0, 1), (0, 1), 1) == Allotment(0, 1)


def test_every_signature_has_statistics_and_decisions_of_its_own() -> None:
    policy = started(every=1, modules=3)
    other = ENTERING.after(2)
    for module, back in ((0, 0), (1, 9)):
        visit(policy, module, 10, back, 1.0)
        visit(policy, module, 10, 9 - back, 1.0, at=other)
    visit(policy, 2, 10, 10, 1.0)
    assert policy.route(ENTERING, (0, 1, 2), (0, 1, 2), 1) == Allotment(0, 1)
    assert policy.route(other, (0, 1), (0, 1), 1) == Allotment(1, 1)


def test_an_early_record_keeps_its_weight() -> None:
    """No forgetting: this is what `adaptive` does better."""
    policy = started(every=1)
    visit(policy, 0, 1000, 0, 1000.0)
    visit(policy, 1, 1000, 1000, 1000.0)
    visit(policy, 0, 500, 500, 500.0)  # module 0 has become useless
    assert policy.route(ENTERING, (0, 1), (0, 1), 1) == Allotment(0, 1)


@pytest.mark.parametrize("every", [0, -1, 1.5, float("nan")])
def test_a_frequency_is_a_number_of_tuples(every: Any) -> None:  # noqa: ANN401 - what is no number of tuples
    with pytest.raises(ValueError, match="from 1 on"):
        RankPolicy(every)
