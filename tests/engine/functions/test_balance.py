"""What remembering may lose is bounded, whatever the arguments do; what it gains is not missed."""

from __future__ import annotations

from itertools import cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.functions.balance import ALLOWANCE, SHARE, Balance

LOOKUP = 0.2e-6
VISIT = 40e-6


def run(balance: Balance, rows: int, hits: float, cost: float) -> tuple[float, float, int]:
    """Visit once; return seconds of calls and of looks, and the rows that were looked up."""
    looked = balance.rows_worth(rows)
    found = int(looked * hits)
    looks = VISIT + looked * LOOKUP if looked else 0.0
    if looked:
        balance.looked_up(looked, found, looks)
    calls = (rows - found) * cost
    if found < rows:
        balance.called(rows - found, calls)
    return calls, looks, looked


@given(
    st.lists(
        st.tuples(st.integers(1, 20_000), st.sampled_from([0.0, 0.001])), min_size=1, max_size=8
    ),
    st.sampled_from([0.1e-6, 1e-6, 20e-6, 1e-3]),
)
def test_where_nothing_repeats_the_loss_is_bounded(
    visits: list[tuple[int, float]], cost: float
) -> None:
    balance = Balance()
    calls = looks = 0.0
    for rows, hits in islice(cycle(visits), 300):
        called, looked, _ = run(balance, rows, hits, cost)
        calls, looks = calls + called, looks + looked
        most = 20_000 * LOOKUP + VISIT  # the visit whose cost showed that it was too much
        assert looks <= ALLOWANCE + 2 * SHARE * calls + most


@pytest.mark.parametrize("cost", [2e-6, 20e-6, 1e-3])
@pytest.mark.parametrize("rows", [200, 10_000])
def test_where_most_repeats_all_is_looked_up(rows: int, cost: float) -> None:
    balance = Balance()
    looked = [run(balance, rows, 0.9, cost)[2] for _ in range(300)]
    assert sum(looked[20:]) == rows * 280


def test_repeats_that_begin_late_are_noticed() -> None:
    balance = Balance()
    for _ in range(500):
        run(balance, 10_000, 0.0, 5e-6)
    late = [run(balance, 10_000, 0.95, 5e-6)[2] for _ in range(100)]
    assert sum(late[50:]) == 10_000 * 50


def test_repeats_that_end_are_given_up() -> None:
    balance = Balance()
    for _ in range(100):
        run(balance, 10_000, 0.99, 1e-6)
    late = [run(balance, 10_000, 0.0, 1e-6)[2] for _ in range(500)]
    assert sum(late) < 0.1 * 10_000 * 500


def test_a_cheap_function_is_not_looked_up_row_by_row() -> None:
    balance = Balance()
    looked = sum(run(balance, 10_000, 1.0, 0.05e-6)[2] for _ in range(500))
    assert looked < 0.1 * 10_000 * 500  # to look costs four times the call


def test_a_first_look_is_at_a_part_of_a_large_visit() -> None:
    assert 0 < Balance().rows_worth(1_000_000) < 1_000_000


def test_a_cheap_function_whose_arguments_do_not_repeat_loses_next_to_nothing() -> None:
    balance = Balance()
    looks = 0.0
    for _ in range(10):
        if balance.wants_some(10_000):
            balance.picked(256, 0, 30e-6)
        looks += run(balance, 10_000, 0.0, 0.1e-6)[1]
    assert looks < 0.02 * 100_000 * 0.1e-6 + VISIT + 64 * LOOKUP


def test_a_cheap_function_whose_arguments_repeat_is_looked_up_at_once() -> None:
    balance = Balance()
    assert balance.wants_some(10_000)
    balance.picked(256, 30, 30e-6)
    assert balance.rows_worth(10_000) == 10_000


def test_some_are_picked_again_as_calls_take_long_enough() -> None:
    balance = Balance()
    balance.picked(256, 0, 30e-6)
    balance.called(10_000, 1e-3)
    assert not balance.wants_some(10_000)
    balance.called(10_000, 3e-3)
    assert balance.wants_some(10_000)
    assert not balance.wants_some(20)  # too few to tell
