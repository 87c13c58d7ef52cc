"""How much of a micro-batch is taken, on machines that cost what the tests say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eddyline.standing.overload import (
    CONFIRMED,
    LEAST,
    PROBE,
    TOLERANCE,
    BatchCost,
    Overload,
)
from tests.properties import examples


@dataclass
class Machine:
    """What batches cost, and what a controller makes of it; no time passes."""

    cost: BatchCost
    target: float
    noise: float = 0.0
    seed: int = 0
    seconds: list[float] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.overload = Overload("sample", self.target)
        self._generator = np.random.default_rng(self.seed)

    def run(self, sizes: Iterable[int], *, extra: float = 0.0, cold: bool = False) -> Machine:
        """Run batches of these numbers of events."""
        for events in sizes:
            share = self.overload.kept
            taken = round(events * share)
            seconds = self.cost.seconds(events, taken) + extra
            seconds *= 1 + self.noise * self._generator.uniform(-1, 1)
            self.overload.took(events, taken, seconds, cold=cold)
            self.kept.append(share)
            self.seconds.append(seconds)
        return self


def test_a_cold_first_batch_drops_nothing() -> None:
    machine = Machine(BatchCost(0.5, 0.0, 1e-4), target=2.0)
    machine.run([200], extra=1.68, cold=True)
    assert machine.seconds == [pytest.approx(2.2)]
    machine.run([200] * 20)
    assert set(machine.kept) == {1.0}
    machine.run([4000] * 2)
    learned = machine.overload.statistics()
    assert learned.cost is not None
    assert astuple(learned.cost) == pytest.approx((0.5, 0.0, 1e-4))
    assert learned.cold == pytest.approx(1.68)


def test_other_queries_make_a_cold_batch_but_not_for_ever() -> None:
    machine = Machine(BatchCost(0.1, 0.0, 1e-3), target=1.0)
    for _ in range(3):
        machine.run([10, 20], cold=False)
        machine.run([10], extra=60.0, cold=True)
    assert set(machine.kept) == {1.0}
    machine.run([10_000] * 20, cold=True)
    assert machine.seconds[-1] == pytest.approx(1.0)


def test_where_the_fixed_cost_is_above_the_target_nothing_is_lost_but_two_probes() -> None:
    """Windows of 10,000 events each, in batches that take 0.4 to 0.7 s whatever they have."""
    machine = Machine(BatchCost(0.5, 0.0, 5e-6), target=0.3, noise=0.1)
    machine.run([10_000] * 300)
    assert [share for share in machine.kept if share < 1] == [PROBE] * 2


def test_where_the_sizes_of_batches_tell_what_they_cost_it_is_known_at_once() -> None:
    machine = Machine(BatchCost(0.5, 0.0, 5e-6), target=0.47, noise=0.05)
    machine.run([100, 1_000, 3_000, 7_000, 10_000] * 50)
    assert set(machine.kept[4:]) == {1.0}


def test_of_what_is_too_much_as_much_is_taken_as_there_is_time_for() -> None:
    machine = Machine(BatchCost(0.5, 0.0, 1e-3), target=2.0).run([10_000] * 10)
    assert machine.kept[:5] == [1.0, 1.0, PROBE, PROBE, pytest.approx(0.15)]
    assert machine.seconds[4:] == pytest.approx([2.0] * 6, rel=1e-3)
    # There is room again, and all of it is used at once.
    machine.run([1_000] * 3)
    assert machine.kept[-2:] == [1.0, 1.0]
    # A second flood costs no second probe.
    machine.run([10_000] * 4)
    assert PROBE not in machine.kept[-4:]
    assert machine.seconds[-1] == pytest.approx(2.0, rel=1e-2)


def test_what_is_read_and_dropped_costs_time_too() -> None:
    machine = Machine(BatchCost(0.2, 5e-5, 5e-4), target=2.0, noise=0.02)
    machine.run([*[1_000] * 5, *[8_000] * 30])
    assert machine.seconds[-1] == pytest.approx(2.0, rel=0.1)


def test_batches_without_events_tell_what_is_fixed() -> None:
    machine = Machine(BatchCost(0.5, 0.0, 1e-3), target=2.0).run([0, 10_000, 0, 10_000, 10_000])
    cost = machine.overload.statistics().cost
    assert cost is not None
    assert astuple(cost) == pytest.approx((0.5, 0.0, 1e-3))
    assert machine.overload.kept == pytest.approx(0.15)
    machine.run([0, 0])
    assert machine.overload.kept == pytest.approx(0.15)  # nothing is known of the next


def test_one_slow_batch_drops_nothing() -> None:
    machine = Machine(BatchCost(0.2, 0.0, 1e-4), target=2.0)
    for _ in range(5):
        machine.run([5_000] * 3).run([5_000], extra=5.0)
    assert set(machine.kept) == {1.0}


def test_to_block_is_to_take_all() -> None:
    overload = Overload("block", 0.1)
    for _ in range(9):
        overload.took(1000, 1000, 60.0)
    assert overload.kept == 1.0


costs = st.builds(
    BatchCost,
    st.floats(0.01, 3),
    st.sampled_from([0.0, 1e-6, 1e-4]),
    st.floats(1e-7, 1e-2),
)
sizes = st.lists(st.integers(0, 50_000), min_size=1, max_size=25)


@examples(50)
@given(costs, st.floats(0.05, 5), sizes, st.integers(0, 99))
def test_what_is_taken_is_a_part_and_nothing_is_dropped_without_need(
    cost: BatchCost, target: float, sizes: list[int], seed: int
) -> None:
    machine = Machine(cost, target, noise=0.1, seed=seed).run(sizes)
    assert all(LEAST <= share <= 1 for share in machine.kept)
    too_large = 0
    for events, share in zip(sizes, machine.kept, strict=True):
        if share < 1:
            assert too_large >= CONFIRMED - 1
        # With a tenth for noise on either side: of the batch, and of what its events would take.
        if events:
            too_large = too_large + 1 if cost.seconds(events, events) * 1.25 > target else 0


@examples(50)
@given(costs, st.floats(0.05, 5), st.integers(1_000, 100_000), st.integers(0, 99))
def test_a_steady_load_is_brought_to_what_there_is_room_for(
    cost: BatchCost, target: float, events: int, seed: int
) -> None:
    fixed = cost.seconds(events, 0)
    room = max(target - fixed, fixed)
    work = cost.working * events
    assume(not 0.7 * TOLERANCE < work / room < 1.4 * TOLERANCE)  # where noise decides
    assume(room / work > 2 * LEAST)
    machine = Machine(cost, target, noise=0.02, seed=seed).run([events] * 40)
    if work < room:
        assert sum(share < 1 for share in machine.kept) <= 2  # probes
    else:
        assert machine.seconds[-1] <= 1.3 * (fixed + room)
        assert machine.kept[-1] >= 0.7 * room / work


@examples(50)
@given(costs, st.floats(0.05, 5), st.integers(1_000, 100_000))
def test_all_is_taken_as_soon_as_there_is_room(cost: BatchCost, target: float, events: int) -> None:
    few = 10
    assume(cost.seconds(few, few) < 0.8 * target)
    machine = Machine(cost, target).run([events] * 12)
    machine.run([few] * 2)
    assert machine.overload.kept == 1.0
