"""What samples say of a whole: intervals that hold what they are about."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.reports.expected import (
    Expected,
    exactly,
    mean,
    product,
    roughly,
    share,
    total,
    unseen,
)
from tests.properties import examples


@pytest.mark.parametrize("part", [0.02, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("sampled", [50, 200, 900])
def test_nineteen_of_twenty_intervals_of_a_share_hold_it(part: float, sampled: int) -> None:
    chance, whole = np.random.default_rng(7), 1_000
    marked = round(part * whole)
    held = 0
    for _ in range(2_000):
        hits = int(chance.hypergeometric(marked, whole - marked, sampled))
        held += share(hits, sampled, whole).holds(marked / whole)
    assert held >= 0.92 * 2_000


def test_nineteen_of_twenty_intervals_of_a_mean_hold_it() -> None:
    chance = np.random.default_rng(8)
    costs = chance.lognormal(0.0, 0.7, 5_000)
    held = sum(
        mean(chance.choice(costs, 300, replace=False).tolist(), len(costs)).holds(costs.mean())
        for _ in range(1_000)
    )
    assert held >= 0.93 * 1_000


def test_nineteen_of_twenty_intervals_of_a_product_hold_it() -> None:
    chance, held = np.random.default_rng(9), 0
    for _ in range(2_000):
        first = share(int(chance.binomial(400, 0.4)), 400)
        second = share(int(chance.binomial(150, 0.3)), 150)
        whole = roughly(10_000 * (1 + 0.01 * chance.standard_normal()), 0.01)
        held += product(whole, first, second).holds(10_000 * 0.4 * 0.3)
    assert held >= 0.93 * 2_000


def test_a_sample_of_everything_is_exact() -> None:
    assert share(3, 12, 12) == exactly(0.25)
    assert mean([1.0, 3.0], 2) == exactly(2.0)


def test_nothing_sampled_may_be_anything() -> None:
    assert share(0, 0, 100) == Expected(0.0, 0.5, 1.0)
    assert share(0, 0, 0) == exactly(0.0)
    assert mean([]) == exactly(0.0)


def test_no_hit_leaves_room_above_and_no_miss_below() -> None:
    none, every = share(0, 100), share(100, 100)
    assert (none.low, none.likely) == (0.0, 0.0)
    assert 0.01 < none.high < 0.06
    assert (every.likely, every.high) == (1.0, 1.0)
    assert 0.94 < every.low < 0.99


def test_a_product_with_nothing_may_still_be_something() -> None:
    assert product(exactly(100), share(0, 100)).high == pytest.approx(100 * share(0, 100).high)


@examples(100)
@given(st.integers(0, 400), st.integers(1, 400), st.integers(1, 1_000))
def test_shares_are_intervals_within_nothing_and_all(hits: int, sampled: int, more: int) -> None:
    hits = min(hits, sampled)
    for whole in (math.inf, float(sampled + more), float(sampled)):
        part = share(hits, sampled, whole)
        assert 0.0 <= part.low <= part.likely == hits / sampled <= part.high <= 1.0


parts = st.tuples(*[st.just(0.0) | st.floats(1e-3, 1e6)] * 3).map(
    lambda ends: Expected(*sorted(ends))
)


@examples(100)
@given(st.lists(parts, min_size=1, max_size=4))
def test_sums_and_products_hold_what_is_likely(several: list[Expected]) -> None:
    both, every = total(several), product(*several)
    assert both.likely == pytest.approx(sum(each.likely for each in several))
    assert both.high <= sum(each.high for each in several) * (1 + 1e-9)
    assert every.low <= every.likely <= every.high
    assert every.likely == pytest.approx(math.prod(each.likely for each in several))


def test_what_is_no_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="no interval"):
        Expected(2.0, 1.0, 3.0)


@pytest.mark.parametrize("each", [0.3, 2.0, 20.0])
def test_kinds_seen_once_tell_of_kinds_that_were_not_seen(each: float) -> None:
    chance, part, held = np.random.default_rng(10), 0.1, 0
    for _ in range(200):
        there = chance.poisson(each, 300)
        seen = chance.binomial(there, part)
        none = seen == 0
        more = unseen(int((seen == 1).sum()), int(none.sum()), part)
        held += more.holds(float((there[none] > 0).sum()))
    assert held >= 0.95 * 200


def test_kinds_that_are_all_or_nothing_are_all_seen() -> None:
    assert unseen(0, 150, 0.1) == exactly(0.0)
