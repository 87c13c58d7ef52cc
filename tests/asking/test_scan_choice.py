"""Ski rental with a forecast: what asking or scanning costs, whichever of them is chosen."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.asking.scan_choice import AskingProgress, ScanChoice, WayAsked

SCAN = 60.0
LOOK = 0.02


def asked_alone(keys: int, width: int, seconds: Callable[[float], float]) -> float:
    """Return when all keys have answers, one a call, which takes what it does as it begins."""
    return asked(keys, width, seconds, None)[0]


def asked(
    keys: int,
    width: int,
    seconds: Callable[[float], float],
    choice_of: float | None,
    money: float = 0.0,
    scan_money: float = 0.0,
) -> tuple[float, bool]:
    """Return what that, or the scan that is chosen instead, costs, and whether one was.

    In seconds; money counts as those that it is worth, for a call and for the scan.
    """
    now = looked = 0.0
    scan = SCAN if choice_of is None else choice_of
    choice = ScanChoice(scan, lambda: now, (money,), scan_money)
    choice.announce(0, 0, 0, keys)
    calls = [(seconds(0.0), seconds(0.0))] * min(width, keys)  # when each ends, what it takes
    begun, done, usual = len(calls), 0, 0.0
    while done < keys:
        if choice_of is not None and looked <= calls[0][0]:
            now = looked
            known = min(keys, begun + 4 * width)
            if choice.look(AskingProgress(done, known, done, width, usual / width, 1, begun)):
                return now + choice_of + begun * money + scan_money, True
            looked += max(LOOK, choice.spent / 100)
            continue
        now, took = heapq.heappop(calls)
        usual = usual + 0.2 * (took - usual) if usual else took
        done += 1
        if begun < keys:
            begun += 1
            heapq.heappush(calls, (now + seconds(now), seconds(now)))
    return now + keys * money, False


@given(
    st.one_of(st.integers(1, 200), st.integers(1, 5_000)),
    st.sampled_from([1, 4, 16]),
    st.floats(0.005, 0.5),
)
def test_a_steady_pace_tells(keys: int, width: int, seconds: float) -> None:
    alone = asked_alone(keys, width, lambda _: seconds)
    took, _ = asked(keys, width, lambda _: seconds, SCAN)
    assert took <= 1.15 * min(alone, SCAN) + LOOK


@given(
    st.integers(1, 3_000),
    st.sampled_from([1, 4, 16]),
    st.floats(0.005, 0.5),
    st.floats(0.0, 80.0),
    st.floats(1.0, 1_000.0),
)
def test_a_source_that_becomes_slow_costs_no_more_than_twice(
    keys: int, width: int, seconds: float, when: float, slower: float
) -> None:
    def pace(now: float) -> float:
        return seconds if now < when else seconds * slower

    alone = asked_alone(keys, width, pace)
    took, _ = asked(keys, width, pace, SCAN)
    assert took <= 2.0 * min(alone, SCAN) + SCAN / 100 + LOOK


@given(
    st.one_of(st.integers(1, 200), st.integers(1, 5_000)),
    st.sampled_from([1, 4, 16]),
    st.floats(0.005, 0.5),
    st.floats(0.0, 2.0),
    st.floats(0.0, 500.0),
)
def test_a_steady_pace_tells_with_money_too(
    keys: int, width: int, seconds: float, money: float, scan_money: float
) -> None:
    """Calls that are under way when the scan begins are paid for in vain."""
    alone = asked_alone(keys, width, lambda _: seconds) + keys * money
    cost, _ = asked(keys, width, lambda _: seconds, SCAN, money, scan_money)
    in_vain = LOOK + 2 * width * money
    assert cost <= 1.15 * min(alone, SCAN + scan_money) + in_vain


def test_what_calls_cost_is_known_before_the_first() -> None:
    """Of 1,000 calls for 0.1 s each the cost alone is more than that of the scan.

    One has begun before anybody looks, here.
    """
    assert asked(1_000, 1, lambda _: 0.001, SCAN, 0.1) == (SCAN + 0.1, True)
    assert asked(1_000, 1, lambda _: 0.001, SCAN, 0.1, 60.0)[1] is False
    assert asked(1_000, 1, lambda _: 0.001, SCAN, 0.01)[1] is False


@pytest.mark.parametrize(("keys", "scanned"), [(1, False), (10_000, False), (2_000_000, True)])
def test_the_cases_of_a_large_source(keys: int, scanned: bool) -> None:  # noqa: FBT001 - a case
    """20 ms a call, 16 at a time: 10,000 keys take 12.5 s, 2 million 40 minutes."""
    took, was_scanned = asked(keys, 16, lambda _: 0.02, SCAN)
    assert was_scanned is scanned
    assert took <= 1.15 * (SCAN if scanned else keys / 16 * 0.02 + 0.02)


@pytest.mark.parametrize("keys", range(2_700, 3_300, 20))
def test_where_both_take_about_as_long_it_does_not_pay_for_both(keys: int) -> None:
    took, _ = asked(keys, 1, lambda _: 0.02, SCAN)
    assert took <= 1.15 * min(keys * 0.02, SCAN)


def test_a_source_that_becomes_a_little_slower_does_not_change_a_mind() -> None:
    took, _ = asked(2_880, 1, lambda now: 0.02 if now < 12.0 else 0.0212, SCAN)
    assert took <= 1.15 * SCAN


def test_the_first_calls_do_not_tell_the_pace() -> None:
    """They open connections."""
    took, scanned = asked(10_000, 16, lambda now: 1.0 if now < 0.5 else 0.02, SCAN)
    assert not scanned
    assert took == pytest.approx(13.5, abs=0.2)


def test_a_source_that_never_answers_is_left_after_as_long_as_a_scan_takes() -> None:
    now = 0.0
    choice = ScanChoice(SCAN, lambda: now)
    waiting = AskingProgress(0, 16, 0, 16)
    assert not choice.look(waiting)
    now = SCAN - 1.0
    assert not choice.look(waiting)
    now = SCAN
    assert choice.look(waiting)
    said = "scanned: 16 keys were left after as long as a scan takes; a scan takes 60 s"
    assert choice.text == said
    assert choice.look(AskingProgress(16, 16, 16, 16)), "what was chosen stays so"


def test_keys_of_a_stage_that_runs_again_are_the_same_and_those_of_another_use_are_more() -> None:
    way = WayAsked()
    for stage in (3, 7):
        way.announce(0, stage, 0, 100)
        way.announce(0, stage, 1, 50)
    assert way.announced == 150
    way.announce(1, 9, 0, 5)
    assert way.announced == 155


def test_a_scan_is_compared_with_the_way_that_leads() -> None:
    now = 0.0
    choice = ScanChoice(SCAN, lambda: now, money=(0.0, 0.0))
    choice.announce(0, 0, 0, 10_000, 40_000)
    assert not choice.look(AskingProgress(0, 16, 0, 1), AskingProgress(0, 0, 0, 1))
    assert choice.race.leader == 0
    now = 2.0  # by the first way they would take longer than a scan; the other is not known yet
    slow = AskingProgress(20, 40, 20, 1, 0.1)
    assert not choice.look(slow, AskingProgress(0, 0, 0, 1))
    assert choice.race.asked == {0, 1}
    now = 2.2
    assert not choice.look(slow, AskingProgress(200, 300, 200, 1, 0.001))
    assert choice.race.asked == {1}
    now = 3.0
    assert choice.look(slow, AskingProgress(900, 999, 900, 1, 0.01))
    assert choice.why.startswith("the keys would take ")
