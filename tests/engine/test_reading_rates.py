"""The rates of a ripple join: what narrows the interval most a second is read most."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.join.reading_rates import ROUND, Rates, even_rates, narrowing_rates

NUMBERS = st.floats(0.0, 1e12)
INPUTS = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40), NUMBERS, NUMBERS), min_size=1)


@given(INPUTS, st.sampled_from([narrowing_rates, even_rates]))
def test_a_round_is_full_and_leaves_nobody_out(
    inputs: list[tuple[int, int, float, float]],
    rates: Rates,
) -> None:
    units = [of for of, _, _, _ in inputs]
    read = [min(n, of) for of, n, _, _ in inputs]
    given_units = rates(units, read, [s for _, _, s, _ in inputs], [c for _, _, _, c in inputs])
    left = [of - n for of, n in zip(units, read, strict=True)]
    open_ = sum(n > 0 for n in left)
    assert sum(given_units) == min(sum(left), max(ROUND, open_))
    assert all(min(n, 1) <= g <= n for g, n in zip(given_units, left, strict=True))


@pytest.mark.parametrize("spread", [1.0, 9.0, 36.0])
@pytest.mark.parametrize("cost", [1.0, 4.0])
def test_rates_come_to_the_root_of_spread_over_cost(spread: float, cost: float) -> None:
    read = [0, 0]
    for _ in range(100):
        given_units = narrowing_rates((10_000, 10_000), read, (spread, 1.0), (cost, 1.0))
        read = [n + g for n, g in zip(read, given_units, strict=True)]
    assert read[0] / read[1] == pytest.approx(math.sqrt(spread / cost), rel=0.05)


def test_other_spreads_are_followed() -> None:
    assert narrowing_rates((100, 100), (20, 20), (16.0, 1.0), (1.0, 1.0)) == (9, 1)
    assert narrowing_rates((100, 100), (29, 21), (1.0, 16.0), (1.0, 1.0)) == (1, 9)


def test_a_slow_input_is_read_less() -> None:
    assert narrowing_rates((100, 100), (20, 20), (1.0, 1.0), (9.0, 1.0)) == (1, 9)


def test_nothing_is_known_at_first() -> None:
    assert narrowing_rates((100, 100), (0, 0), (0.0, 0.0), (5.0, 1.0)) == (5, 5)
    assert narrowing_rates((10, 100), (0, 0), (0.0, 0.0), (1.0, 1.0)) == (1, 9)
