"""The window that forgets: sums that add up, no false alarms, changes found soon."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.policies.adaptive_window import (
    BUCKETS_A_LEVEL,
    AdaptiveWindow,
    ChangedQuantity,
    DetectedShift,
)


def fill(
    window: AdaptiveWindow,
    generator: np.random.Generator,
    visits: int,
    selectivity: float,
    cost: float,
    *,
    start: int = 0,
    noise: float = 0.1,
    tuples: int = 30,
) -> list[DetectedShift]:
    """Add visits; return the changes that came to light."""
    found = []
    for number in range(visits):
        changed = window.add(
            (start + number + 1) * tuples,
            tuples,
            int(generator.binomial(tuples, selectivity)),
            tuples * cost * float(generator.lognormal(0.0, noise)),
        )
        if changed is not None:
            found.append(changed)
    return found


@given(
    visits=st.lists(
        st.tuples(
            st.integers(1, 1000), st.floats(0.0, 1.0), st.floats(0.0, 1e3, allow_subnormal=False)
        ),
        max_size=200,
    )
)
def test_the_sums_are_those_of_the_visits_that_are_kept(
    visits: list[tuple[int, float, float]],
) -> None:
    window, now = AdaptiveWindow(), 0
    selectivities: list[tuple[int, int, int]] = []
    costs: list[tuple[int, int, float]] = []
    for tuples, share, cost in visits:
        now += tuples
        returned = round(tuples * share)
        found = window.add(now, tuples, returned, cost)
        selectivities.append((now, tuples, returned))
        costs.append((now, tuples, cost))
        if found is not None and found.quantity is ChangedQuantity.SELECTIVITY:
            selectivities = [visit for visit in selectivities if visit[0] > found.when]
        elif found is not None:
            costs = [visit for visit in costs if visit[0] > found.when]
        assert window.whole.tuples == sum(visit[1] for visit in selectivities)
        assert window.whole.returned == sum(visit[2] for visit in selectivities)
        assert window.whole.cost_visits == len(costs)
        assert window.whole.cost_tuples == sum(visit[1] for visit in costs)
        # A sum of floats in another order, of up to 200,000.
        assert window.whole.cost == pytest.approx(sum(visit[2] for visit in costs), abs=1e-6)


@given(
    events=st.lists(
        st.one_of(
            st.tuples(st.integers(1, 1000), st.floats(0.0, 3.0), st.floats(0.0, 1e3)),
            st.floats(0.01, 50.0),  # fade
            st.tuples(st.sampled_from(ChangedQuantity), st.integers(0, 3000)),  # forget
        ),
        max_size=100,
    )
)
def test_nothing_that_happens_to_a_record_breaks_it(
    events: list[tuple[int, float, float] | float | tuple[ChangedQuantity, int]],
) -> None:
    window, now = AdaptiveWindow(), 0
    for event in events:
        if isinstance(event, float):
            window.fade(event)
        elif len(event) == 2:
            window.forget_before(event[0], now - event[1])
        else:
            tuples, share, cost = event
            now += tuples
            window.add(now, tuples, round(tuples * share), cost)
        assert window.whole.tuples >= 0.0
        assert window.whole.cost_visits >= 0.0
        assert window.whole.returned >= 0.0
        assert window.whole.cost_noise() >= 0.0


@pytest.mark.parametrize("selectivity", [0.0, 0.02, 0.5, 1.0])
def test_a_stationary_module_keeps_its_whole_history(selectivity: float) -> None:
    alarms = 0
    for seed in range(20):
        window = AdaptiveWindow()
        alarms += len(fill(window, np.random.default_rng(seed), 2000, selectivity, 1.0))
    assert alarms <= 1  # of 40,000 visits; the bound is 1 of 1,000 histories


@pytest.mark.parametrize(
    ("before", "after"), [(0.1, 0.9), (0.5, 0.2), (0.0, 0.3), (1.0, 0.5), (0.05, 0.15)]
)
def test_a_change_of_selectivity_is_found(before: float, after: float) -> None:
    generator = np.random.default_rng(3)
    window = AdaptiveWindow()
    fill(window, generator, 500, before, 1.0)
    found = fill(window, generator, 200, after, 1.0, start=500)
    assert found
    assert {change.quantity for change in found} == {ChangedQuantity.SELECTIVITY}
    assert 490 * 30 <= found[-1].when <= 540 * 30
    assert window.whole.returned / window.whole.tuples == pytest.approx(after, abs=0.05)


@pytest.mark.parametrize("factor", [0.1, 0.6, 1.6, 10.0])
def test_a_change_of_cost_is_found_under_a_noisy_clock(factor: float) -> None:
    generator = np.random.default_rng(4)
    window = AdaptiveWindow()
    fill(window, generator, 500, 0.5, 1.0, noise=0.3)
    found = fill(window, generator, 300, 0.5, factor, start=500, noise=0.3)
    assert found
    assert {change.quantity for change in found} == {ChangedQuantity.COST}
    assert window.whole.cost / window.whole.cost_tuples == pytest.approx(factor, rel=0.15)
    assert window.whole.tuples == 800 * 30  # the selectivity is not forgotten with it


def test_a_cost_that_changes_by_little_does_not_matter() -> None:
    generator = np.random.default_rng(5)
    window = AdaptiveWindow()
    fill(window, generator, 500, 0.5, 1.0, noise=0.05)
    assert fill(window, generator, 500, 0.5, 1.15, start=500, noise=0.05) == []


def test_a_large_change_is_found_within_a_few_visits() -> None:
    generator = np.random.default_rng(6)
    window = AdaptiveWindow()
    fill(window, generator, 1000, 0.1, 1.0)
    visits = 0
    while not fill(window, generator, 1, 0.9, 1.0, start=1000 + visits):
        visits += 1
    assert visits < 5


def test_a_change_tells_what_held_before_and_after() -> None:
    generator = np.random.default_rng(7)
    window = AdaptiveWindow()
    fill(window, generator, 500, 0.1, 2.0)
    found = fill(window, generator, 50, 0.9, 2.0, start=500)
    assert found[0].before == pytest.approx(0.1, abs=0.03)
    assert found[0].after > 0.5
    assert window.whole.cost_visits == 550


def test_a_cost_takes_several_witnesses() -> None:
    generator = np.random.default_rng(11)
    window = AdaptiveWindow()
    fill(window, generator, 100, 0.5, 1.0, noise=0.02)
    assert fill(window, generator, 3, 0.5, 4.0, start=100, noise=0.02) == []
    assert fill(window, generator, 50, 0.5, 1.0, start=103, noise=0.02) == []
    found = fill(window, generator, 8, 0.5, 4.0, start=153, noise=0.02)
    assert len(found) == 1
    assert 153 * 30 <= found[0].when <= 155 * 30


def test_now_and_then_a_visit_that_takes_long_is_no_change() -> None:
    generator = np.random.default_rng(12)
    window = AdaptiveWindow()
    for start in range(0, 2000, 20):
        assert fill(window, generator, 19, 0.5, 1.0, start=start, noise=0.02) == []
        assert fill(window, generator, 1, 0.5, 5.0, start=start + 19, noise=0.02) == []


def test_a_cost_that_means_nothing_is_left_out() -> None:
    window = AdaptiveWindow()
    assert window.add(10, 10, 4, None) is None
    assert window.add(20, 10, 4, 30.0) is None
    assert (window.whole.tuples, window.whole.returned) == (20.0, 8.0)
    assert (window.whole.cost_visits, window.whole.cost_tuples, window.whole.cost) == (
        1.0,
        10.0,
        30.0,
    )


def test_a_module_that_joins_on_either_side_of_one_tuple_for_one() -> None:
    window = AdaptiveWindow()
    # Half and one and a half: one for one on the average.
    found = [
        window.add((number + 1) * 100, 100, 50 if number < 20 else 150, 1.0) for number in range(40)
    ]
    assert any(change is not None for change in found)
    assert window.whole.returned / window.whole.tuples == pytest.approx(1.5)


def test_two_visits_that_come_to_one_for_one_are_no_fault() -> None:
    window = AdaptiveWindow()
    window.add(100, 100, 50, 1.0)
    window.add(200, 100, 150, 1.0)
    assert window.whole.tuples in (100.0, 200.0)


def test_visits_that_end_at_the_same_time_are_kept_apart() -> None:
    window = AdaptiveWindow()
    for _ in range(20):
        window.add(1000, 20, 2, 1.0)
    found = [window.add(1000, 20, 18, 1.0) for _ in range(3)]
    assert any(change is not None for change in found)
    assert window.whole.returned / window.whole.tuples == pytest.approx(0.9)


def test_memory_grows_with_the_logarithm_of_the_visits() -> None:
    window = AdaptiveWindow()
    fill(window, np.random.default_rng(8), 5000, 0.5, 1.0)
    levels = 1 + int(np.log2(5000))
    assert window.whole.cost_visits == 5000
    assert len(window._buckets) <= (BUCKETS_A_LEVEL + 1) * levels


def test_forget_before_drops_only_what_is_older() -> None:
    window = AdaptiveWindow()
    for now in (10, 20, 30):
        window.add(now, 10, 5, 1.0)
    window.forget_before(ChangedQuantity.SELECTIVITY, 20)
    assert (window.whole.tuples, window.whole.returned) == (10.0, 5.0)
    assert (window.whole.cost_visits, window.whole.cost_tuples, window.whole.cost) == (
        3.0,
        30.0,
        3.0,
    )
    window.forget_before(ChangedQuantity.COST, 10)
    assert (window.whole.cost_visits, window.whole.cost_tuples, window.whole.cost) == (
        2.0,
        20.0,
        2.0,
    )
    window.forget_before(ChangedQuantity.COST, 30)
    window.forget_before(ChangedQuantity.SELECTIVITY, 30)
    assert (window.whole.tuples, window.whole.cost_visits, window.whole.cost) == (0.0, 0.0, 0.0)


def test_a_faded_record_says_the_same_with_less_weight() -> None:
    generator = np.random.default_rng(9)
    window = AdaptiveWindow()
    fill(window, generator, 300, 0.2, 3.0)
    selectivity, cost = (
        window.whole.returned / window.whole.tuples,
        window.whole.cost / window.whole.cost_tuples,
    )
    window.fade(30.0)
    assert window.whole.tuples == pytest.approx(30.0)
    assert window.whole.returned / window.whole.tuples == pytest.approx(selectivity)
    assert window.whole.cost_visits == 300, "only the selectivity fades"
    assert window.whole.cost / window.whole.cost_tuples == pytest.approx(cost)
    window.fade(100.0)
    assert window.whole.tuples == pytest.approx(30.0), "fading adds nothing"
    fill(window, generator, 100, 0.6, 3.0, start=300)
    assert window.whole.returned / window.whole.tuples == pytest.approx(0.6, abs=0.03)
