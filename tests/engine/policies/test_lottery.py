"""Tickets: credited for tuples given, debited for tuples returned, banked by window."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.engine.policies.lottery import LotteryPolicy
from eddyline.engine.policies.policy import Allotment
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING


def started(policy: LotteryPolicy, *, modules: int = 2, queued: bool = True) -> LotteryPolicy:
    policy.start(Routes(modules), np.random.default_rng(0), queued=queued)
    return policy


def visit(policy: LotteryPolicy, module: int, given: int, back: int, cost: float = 1.0) -> None:
    policy.sent(ENTERING, module, given)
    policy.returned(ENTERING, module, given, back, cost)


def winners(policy: LotteryPolicy, draws: int, modules: int = 2) -> list[float]:
    """Return the share of lotteries that each module wins, room everywhere."""
    candidates = tuple(range(modules))
    counts = [0] * modules
    for _ in range(draws):
        allotment = policy.route(ENTERING, candidates, candidates, 1)
        assert allotment is not None
        counts[allotment.module] += 1
    return [count / draws for count in counts]


def test_a_ticket_for_each_tuple_given_and_back_for_each_returned() -> None:
    policy = started(LotteryPolicy())
    policy.sent(ENTERING, 0, 5)
    assert policy.accounts() == {0: 5.0, 1: 0.0}
    policy.returned(ENTERING, 0, 5, 2, 1.0)
    assert policy.accounts() == {0: 3.0, 1: 0.0}


def test_the_chance_is_in_proportion_to_the_account() -> None:
    policy = started(LotteryPolicy())
    visit(policy, 0, 30, 0)
    visit(policy, 1, 10, 0)
    assert winners(policy, 4000) == pytest.approx([0.75, 0.25], abs=0.03)


def test_an_account_that_is_overdrawn_still_has_one_ticket() -> None:
    policy = started(LotteryPolicy())
    visit(policy, 0, 3, 0)
    policy.returned(ENTERING, 1, 1, 50, 1.0)  # a join returns more than it takes
    assert winners(policy, 4000) == pytest.approx([0.75, 0.25], abs=0.03)


def test_a_winner_without_room_forfeits_and_the_tuple_waits() -> None:
    policy = started(LotteryPolicy())
    visit(policy, 0, 10**9, 0)
    assert policy.route(ENTERING, (0, 1), (1,), 1) is None
    assert policy.route(ENTERING, (0, 1), (0, 1), 7) == Allotment(0, 7)


def test_without_queues_the_measured_rate_stands_in_for_back_pressure() -> None:
    policy = started(LotteryPolicy(), queued=False)
    visit(policy, 0, 10, 0, cost=90.0)
    visit(policy, 1, 10, 0, cost=10.0)
    assert winners(policy, 4000) == pytest.approx([0.1, 0.9], abs=0.03)
    with_queues = started(LotteryPolicy(), queued=True)
    visit(with_queues, 0, 10, 0, cost=90.0)
    visit(with_queues, 1, 10, 0, cost=10.0)
    assert winners(with_queues, 4000) == pytest.approx([0.5, 0.5], abs=0.03)


def test_escrow_replaces_the_bank_when_a_window_is_over() -> None:
    policy = started(LotteryPolicy(window=3))
    visit(policy, 0, 5, 1)
    assert policy.accounts() == {0: 4.0, 1: 0.0}, (
        "in the first window there is nothing else to play with"
    )
    visit(policy, 1, 2, 0)
    policy.sent(ENTERING, 0, 1)  # the third decision: escrow becomes the bank
    assert policy.accounts() == {0: 5.0, 1: 2.0}
    visit(policy, 1, 9, 0)
    policy.sent(ENTERING, 1, 1)
    assert policy.accounts() == {0: 5.0, 1: 2.0}, "what is earned now does not count yet"
    policy.sent(ENTERING, 1, 1)
    assert policy.accounts() == {0: 0.0, 1: 11.0}, "and what was banked before is gone"


def test_a_window_forgets_rates_too() -> None:
    policy = started(LotteryPolicy(window=2), queued=False)
    for cost in (100.0, 1.0, 1.0):  # the first window was slow, the second is not
        visit(policy, 0, 1, 0, cost=cost)
        visit(policy, 1, 1, 0, cost=cost)
    rates = policy.rates()
    assert rates is not None
    assert rates.of(0) == pytest.approx(1.0)


@pytest.mark.parametrize("window", [0, -5, 1.5, float("nan")])
def test_a_window_is_a_number_of_decisions(window: int) -> None:
    with pytest.raises(ValueError, match="from 1 on"):
        LotteryPolicy(window)


def test_an_eddy_over_other_modules_starts_with_empty_accounts() -> None:
    policy = started(LotteryPolicy(window=1))
    visit(policy, 0, 5, 1)
    assert policy.accounts() == {0: 5.0, 1: 0.0}
    started(policy)
    assert policy.accounts() == {0: 5.0, 1: 0.0}, "other routes, the same modules"
    started(policy, modules=3)
    assert policy.accounts() == {0: 0.0, 1: 0.0, 2: 0.0}
