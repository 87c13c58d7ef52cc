"""A quota that nobody has told of: learned, kept to, and used up; in simulated time."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.quota.quotas import (
    Amount,
    FixedWindows,
    Quota,
    SlidingWindow,
    TokenBucket,
    least_seconds,
)
from eddyline.asking.governor import GovernedCall, Governor

Told = Callable[[float], float | None]
"""What a service says of the seconds until it admits a call."""

SAYS: dict[str, Told] = {
    "says nothing": lambda _: None,
    "whole seconds": lambda seconds: float(math.ceil(seconds)),
    "exactly": lambda seconds: seconds,
}


class Run(NamedTuple):
    """What became of calls: the seconds that they took in all, and how many were refused."""

    seconds: float
    refusals: int


def latency(chance: Random) -> float:
    """Return the seconds of a call."""
    return chance.uniform(0.02, 0.03)


def run(quota: Quota, calls: int, *, width: int, told: Told, seed: int = 0) -> Run:
    """Make calls, so many at a time, until all are answered; a refused one is made again."""
    chance = Random(seed)
    governor = Governor()
    numbers = itertools.count()
    events: list[tuple[float, int, GovernedCall, float | None]] = []
    left, under_way, refusals, now = calls, 0, 0, 0.0
    answered = 0
    while answered < calls:
        wait = governor.wait(now) if left and under_way < width else math.inf
        if wait == 0:
            call = governor.begin(now)
            left, under_way = left - 1, under_way + 1
            seconds = latency(chance)
            heapq.heappush(events, (now + seconds / 2, next(numbers), call, seconds / 2))
            continue
        if not events or now + wait < events[0][0]:
            assert wait < math.inf, "nobody is let through, and nothing is under way"
            now += max(wait, 1e-9)
            continue
        now, number, call, back = heapq.heappop(events)
        if back is not None:  # it arrives
            outcome[number] = quota.ask(now)
            heapq.heappush(events, (now + back, number, call, None))
            continue
        under_way -= 1
        refused = outcome.pop(number)
        if refused is None:
            governor.accepted(call, now)
            answered += 1
        else:
            governor.refused(call, now, told(refused))
            left, refusals = left + 1, refusals + 1
    return Run(now, refusals)


outcome: dict[int, float | None] = {}
"""By number of a call what the service says to it."""

QUOTAS: dict[str, Callable[[], Quota]] = {
    "500 a 15 s, windows": lambda: FixedWindows(Amount(500), 15.0),
    "500 a 15 s, windows by the clock": lambda: FixedWindows(Amount(500), 15.0, aligned=6.3),
    "500 a 15 s, sliding": lambda: SlidingWindow(Amount(500), 15.0),
    "200 a second, windows": lambda: FixedWindows(Amount(200), 1.0),
    "200 a second, sliding": lambda: SlidingWindow(Amount(200), 1.0),
}


@pytest.mark.parametrize("said", SAYS)
@pytest.mark.parametrize("name", QUOTAS)
@pytest.mark.parametrize("calls", [2_000, 5_000])
def test_an_unknown_quota_is_used_up_and_seldom_overdrawn(name: str, said: str, calls: int) -> None:
    for seed, width in itertools.product(range(3), (8, 16)):
        least = least_seconds(QUOTAS[name](), calls, width, latency, Random(seed))
        seconds, refusals = run(QUOTAS[name](), calls, width=width, told=SAYS[said], seed=seed)
        assert seconds <= 1.07 * least
        assert refusals <= 0.02 * (calls + refusals)


@pytest.mark.parametrize("said", SAYS)
@pytest.mark.parametrize(
    ("make", "calls"),
    [
        (lambda: FixedWindows(Amount(500, [(30.0, 250), (75.0, 500)]), 15.0), 3_000),
        (lambda: FixedWindows(Amount(200, [(8.0, 100), (20.0, 200)]), 1.0), 5_000),
    ],
    ids=["500 a 15 s", "200 a second"],
)
def test_a_quota_that_halves_and_recovers(make: Callable[[], Quota], calls: int, said: str) -> None:
    for seed, width in itertools.product(range(3), (8, 16)):
        least = least_seconds(make(), calls, width, latency, Random(seed))
        seconds, _ = run(make(), calls, width=width, told=SAYS[said], seed=seed)
        assert seconds <= 1.20 * least


quotas = st.builds(
    lambda kind, calls, seconds, most: {
        "windows": FixedWindows(Amount(calls), seconds),
        "clock": FixedWindows(Amount(calls), seconds, aligned=seconds / 3),
        "sliding": SlidingWindow(Amount(calls), seconds),
        "bucket": TokenBucket(Amount(calls), seconds, most),
    }[kind],
    st.sampled_from(["windows", "clock", "sliding", "bucket"]),
    st.integers(1, 400),
    st.floats(0.05, 60.0),
    st.integers(1, 50),
)


@settings(max_examples=60, deadline=None)
@given(quotas, st.integers(1, 40), st.integers(0, 600), st.sampled_from(sorted(SAYS)))
def test_all_calls_are_answered_whatever_the_quota(
    quota: Quota, width: int, calls: int, said: str
) -> None:
    seconds, refusals = run(quota, calls, width=width, told=SAYS[said])
    assert seconds < math.inf
    assert refusals <= 8 * calls + 8 * width


def test_the_same_calls_are_let_through_at_the_same_times() -> None:
    one, two = (
        run(SlidingWindow(Amount(200), 1.0), 1_000, width=8, told=SAYS["exactly"], seed=3)
        for _ in range(2)
    )
    assert one == two


@pytest.mark.parametrize("after", [math.inf, math.nan, -1.0, 0.0, 1e300])
def test_what_a_service_says_may_be_no_time(after: float) -> None:
    governor = Governor()
    calls = [governor.begin(0.0) for _ in range(4)]
    governor.accepted(calls[0], 0.1)
    for call in calls[1:]:
        governor.refused(call, 0.1, after)
    assert governor.opens is not None
    assert 0.1 <= governor.opens <= 1e9 + 1


def test_a_number_of_whole_seconds_is_halved_until_it_is_known_well() -> None:
    """What is told as one second is up to one: half of it is waited, then half of the rest."""
    governor = Governor()
    call = governor.begin(0.0)
    governor.accepted(call, 0.02)
    governor.refused(governor.begin(0.1), 0.12, 1.0)
    waits = []
    now = 0.12
    for _ in range(3):
        wait = governor.wait(now)
        waits.append(round(wait, 2))
        now += wait
        governor.refused(governor.begin(now), now + 0.02, 1.0)
        now += 0.02
    assert waits == pytest.approx([0.5, 0.25, 0.125], abs=0.02)
