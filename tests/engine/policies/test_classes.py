"""Classes of tuples: what a policy knows of them begins with what is given, and is theirs alone."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.benefit import BenefitPolicy
from eddyline.engine.policies.policy import RoutesByContent
from eddyline.engine.prior import Prior
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature

FIRST, SECOND = (ENTERING._replace(mark=mark) for mark in (1, 2))


def visit(policy: AdaptivePolicy, at: Signature, module: int, tuples: int, back: int) -> None:
    policy.sent(at, module, tuples)
    policy.returned(at, module, tuples, back, float(tuples))


def told_apart(selectivities: tuple[tuple[float, float], ...]) -> AdaptivePolicy:
    """Return a policy that prefers the first module, for the classes of these selectivities."""
    policy = AdaptivePolicy()
    policy.start(Routes(2), np.random.default_rng(0))
    for _ in range(3):
        visit(policy, ENTERING, 0, 100, 40)
        visit(policy, ENTERING, 1, 100, 60)
    policy.tell_apart(
        [
            {module: Prior(200.0, 200.0 * share, 1.0) for module, share in enumerate(shares)}
            for shares in selectivities
        ]
    )
    return policy


def test_each_class_begins_in_the_order_of_what_was_seen_of_it() -> None:
    policy = told_apart(((0.1, 0.9), (0.9, 0.1)))
    assert policy.order(ENTERING) == (0, 1)
    assert policy.order(FIRST) == (0, 1)
    assert policy.order(SECOND) == (1, 0)


def test_what_is_seen_of_a_class_says_nothing_of_another() -> None:
    policy = told_apart(((0.1, 0.9), (0.1, 0.9)))
    for _ in range(6):
        visit(policy, SECOND, 0, 100, 95)
        visit(policy, SECOND, 1, 100, 5)
    assert policy.order(FIRST) == (0, 1)
    assert policy.order(SECOND) == (1, 0)


@pytest.mark.parametrize("cost", [1.0, 0.01])
def test_a_class_begins_with_its_costs(cost: float) -> None:
    policy = told_apart(((0.5, 0.5),))
    policy.tell_apart([{0: Prior(200.0, 100.0, 0.1), 1: Prior(200.0, 100.0, cost)}])
    assert policy.order(FIRST)[0] == (0 if cost > 0.1 else 1)


def test_other_classes_begin_anew() -> None:
    policy = told_apart(((0.1, 0.9), (0.9, 0.1)))
    for _ in range(6):
        visit(policy, FIRST, 0, 100, 5)
    policy.tell_apart([{0: Prior(200.0, 180.0, 1.0), 1: Prior(200.0, 20.0, 1.0)}])
    assert policy.order(FIRST) == (1, 0)
    policy.tell_apart(())
    assert policy.order(ENTERING) == (0, 1)
    assert not any(signature.mark for signature in policy._knowledge.signatures)


def test_what_was_seen_before_is_void_when_a_selectivity_has_changed() -> None:
    policy = told_apart(((0.1, 0.9), (0.1, 0.9)))
    assert policy.shifts == 0
    for back in (10, 10, 10, 10, 95, 95, 95, 95):
        visit(policy, FIRST, 0, 100, back)
    assert policy.shifts == 1
    assert not policy._knowledge._seen_before


def test_only_the_adaptive_policy_has_rows_told_apart() -> None:
    assert isinstance(AdaptivePolicy(), RoutesByContent)
    assert not isinstance(BenefitPolicy(), RoutesByContent)
