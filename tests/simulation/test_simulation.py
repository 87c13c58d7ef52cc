"""The simulated river: what is conserved, who has priority, what back-pressure does."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.policies.lottery import LotteryPolicy
from eddyline.engine.policies.naive import NaivePolicy
from eddyline.engine.policies.policy import Allotment
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature
from eddyline.simulation.processor import Processor
from eddyline.simulation.river import River
from eddyline.simulation.simulate import RoutingTime, SimulatedSelection, SimulationResult, simulate
from eddyline.simulation.virtual_clock import VirtualClock
from tests.properties import examples

EVERY_POLICY = pytest.mark.parametrize("name", list(PolicyName))

SELECTIONS = (
    SimulatedSelection(cost=1.0, selectivity=0.6),
    SimulatedSelection(cost=4.0, selectivity=0.3),
    SimulatedSelection(cost=2.5, selectivity=0.8),
)


class FirstOpen(StaticPolicy):
    """Sends each tuple to the first candidate with room."""

    name = "first open"

    def route(
        self,
        signature: Signature,  # noqa: ARG002 - the same for all
        candidates: tuple[int, ...],  # noqa: ARG002 - only what has room counts
        open_: tuple[int, ...],
        tuples: int,
    ) -> Allotment | None:
        return Allotment(open_[0], tuples)


class Waits(StaticPolicy):
    """Never sends anything."""

    name = "lazy"

    def route(
        self,
        signature: Signature,  # noqa: ARG002 - the same for all
        candidates: tuple[int, ...],  # noqa: ARG002
        open_: tuple[int, ...],  # noqa: ARG002
        tuples: int,  # noqa: ARG002
    ) -> Allotment | None:
        return None


def river(
    policy: StaticPolicy, *, modules: int = 2, tuples: int = 100, queue: int = 1, buffer: int = 100
) -> River:
    return River(
        Routes(modules),
        policy,
        np.random.default_rng(0),
        tuples=tuples,
        queue=queue,
        buffer=buffer,
    )


def in_queue(stream: River, module: int) -> list[int]:
    return [number for number, _ in stream.queues[module]]


# -- the same seed is the same run -------------------------------------------------


@EVERY_POLICY
def test_a_seed_repeats_to_the_last_decision(name: str) -> None:
    runs = [simulate(SELECTIONS, make_policy(name), tuples=600, seed=11) for _ in range(2)]
    assert np.array_equal(runs[0].decisions, runs[1].decisions)
    assert np.array_equal(runs[0].finished, runs[1].finished)
    assert np.array_equal(runs[0].dropped, runs[1].dropped)
    assert runs[0].total_time == runs[1].total_time


def test_another_seed_is_another_run() -> None:
    first, second = (
        simulate(SELECTIONS, make_policy("lottery"), tuples=600, seed=seed) for seed in (11, 12)
    )
    assert not np.array_equal(np.sort(first.finished), np.sort(second.finished))
    assert not np.array_equal(first.decisions[:500], second.decisions[:500])


@EVERY_POLICY
def test_every_policy_meets_the_same_data(name: str) -> None:
    expected = simulate(SELECTIONS, StaticPolicy(), tuples=600, seed=3)
    result = simulate(SELECTIONS, make_policy(name), tuples=600, seed=3)
    assert sorted(result.finished) == sorted(expected.finished)


def test_a_further_module_leaves_the_others_data_alone() -> None:
    two = simulate(SELECTIONS[:2], StaticPolicy(), tuples=600, seed=3)
    extra = SimulatedSelection(selectivity=1.0)
    three = simulate((*SELECTIONS[:2], extra), StaticPolicy(), tuples=600, seed=3)
    assert sorted(two.finished) == sorted(three.finished)


# -- nothing is lost, nothing comes twice ------------------------------------------


@examples(60)
@given(
    name=st.sampled_from(list(PolicyName)),
    modules=st.lists(
        st.tuples(st.sampled_from([0.0, 0.5, 1.0, 7.0]), st.sampled_from([0.0, 0.3, 0.9, 1.0])),
        min_size=1,
        max_size=4,
    ),
    tuples=st.integers(0, 120),
    queue=st.integers(1, 5),
    buffer=st.integers(1, 12),
    quantum=st.integers(1, 4),
    time_slice=st.sampled_from([0.3, 1.0, 50.0]),
    seed=st.integers(0, 1000),
)
def test_every_tuple_is_finished_or_dropped_exactly_once(
    *,
    name: str,
    modules: list[tuple[float, float]],
    tuples: int,
    queue: int,
    buffer: int,
    quantum: int,
    time_slice: float,
    seed: int,
) -> None:
    result = simulate(
        [SimulatedSelection(cost=cost, selectivity=passing) for cost, passing in modules],
        make_policy(name),
        tuples=tuples,
        seed=seed,
        queue=queue,
        buffer=buffer,
        quantum=quantum,
        time_slice=time_slice,
    )
    assert sorted([*result.finished, *result.dropped]) == list(range(tuples))
    visits = list(map(tuple, result.decisions.tolist()))
    assert len(set(visits)) == len(visits), "a module met a tuple twice"
    counts = np.bincount(result.decisions[:, 0], minlength=tuples)
    assert all(counts[number] == len(modules) for number in result.finished)
    assert sum(use.tuples_in for use in result.modules) == len(visits)
    assert sum(use.tuples_in - use.tuples_out for use in result.modules) == len(result.dropped)
    assert result.total_time == pytest.approx(sum(use.busy_time for use in result.modules))
    # Bounded queues, and a bounded eddy.
    assert all(use.longest_queue <= queue for use in result.modules)
    assert result.most_inside <= buffer


def test_precedence_is_kept() -> None:
    routes = Routes(3, {0: 0b110})  # module 0 comes after both others
    result = simulate(SELECTIONS, NaivePolicy(), tuples=300, seed=1, routes=routes)
    assert not np.any(result.first_modules() == 0)
    assert set(result.order_shares(1)) <= {(1,), (2,), (1, 2), (2, 1), (1, 2, 0), (2, 1, 0)}


def test_an_eddy_without_modules_finishes_everything() -> None:
    result = simulate((), StaticPolicy(), tuples=5, seed=0)
    assert result.finished.tolist() == [0, 1, 2, 3, 4]
    assert result.total_time == 0.0


# -- priority ----------------------------------------------------------------------


def test_returned_tuples_go_before_new_ones() -> None:
    stream = river(FirstOpen())
    stream.dispatch()
    stream.dispatch()
    assert (in_queue(stream, 0), in_queue(stream, 1)) == ([0], [1])
    stream.settle(0, passed=True, cost=1.0)  # tuple 0 now wants module 1, which is full
    stream.dispatch()
    assert in_queue(stream, 0) == [2], "a new tuple is admitted where no returned one can go"
    stream.settle(1, passed=False, cost=1.0)
    stream.dispatch()
    assert in_queue(stream, 1) == [0], "the room belongs to the returned tuple, not to a new one"


def test_an_eddy_with_priority_does_not_clog() -> None:
    # Everything passes the fast first module and waits for the slow second one. Were
    # new tuples served first, those that wait would fill the eddy up to its buffer.
    result = simulate(
        [
            SimulatedSelection(cost=1.0, selectivity=1.0),
            SimulatedSelection(cost=1.0, selectivity=0.5),
        ],
        NaivePolicy(),
        tuples=2000,
        seed=5,
        buffer=1000,
    )
    assert result.most_inside < 40


# -- back-pressure -----------------------------------------------------------------


def test_a_policy_is_told_which_modules_have_room() -> None:
    told: list[tuple[int, ...]] = []

    class Listening(FirstOpen):
        def route(
            self,
            signature: Signature,
            candidates: tuple[int, ...],
            open_: tuple[int, ...],
            tuples: int,
        ) -> Allotment | None:
            told.append(open_)
            return super().route(signature, candidates, open_, tuples)

    stream = river(Listening(), queue=2)
    for _ in range(5):
        stream.dispatch()
    assert told == [(0, 1), (0, 1), (1,), (1,)], "not asked at all once every queue is full"
    stream.settle(0, passed=False, cost=1.0)
    stream.dispatch()
    assert told[-1] == (0,)


def test_a_tuple_for_a_module_without_room_waits() -> None:
    stream = river(StaticPolicy((0, 1)))
    for _ in range(3):
        stream.dispatch()
    assert (in_queue(stream, 0), in_queue(stream, 1)) == ([0], [])
    assert stream.sent_tuples == [0]


def test_slow_modules_push_back() -> None:
    modules = (SimulatedSelection(cost=1.0), SimulatedSelection(cost=5.0))
    result = simulate(modules, NaivePolicy(), tuples=2000, seed=1, queue=3)
    assert result.modules[1].longest_queue == 3
    assert result.share_first(0) > 0.9, "fluid dynamics: the cheap module comes first"


def test_a_full_eddy_admits_no_more() -> None:
    stream = river(FirstOpen(), queue=50, buffer=3)
    for _ in range(10):
        stream.dispatch()
    assert stream.sent_tuples == [0, 1, 2]
    stream.settle(0, passed=False, cost=1.0)
    stream.dispatch()
    assert stream.sent_tuples == [0, 1, 2, 3]


def test_one_turn_admits_one_quantum() -> None:
    stream = River(
        Routes(2), FirstOpen(), np.random.default_rng(0), tuples=100, queue=50, quantum=4
    )
    stream.dispatch()
    assert stream.sent_tuples == [0, 1, 2, 3]


def test_the_eddy_has_its_turn_before_a_slow_module_is_done() -> None:
    # While the lottery waits for a slow winner nothing gets done; only turns in
    # between let it be held again.
    modules = (
        SimulatedSelection(cost=1.0, selectivity=0.1),
        SimulatedSelection(cost=100.0, selectivity=0.1),
    )
    patient, impatient = (
        simulate(modules, LotteryPolicy(), tuples=1000, seed=1, patience=patience)
        for patience in (math.inf, 10.0)
    )
    assert impatient.total_time < 0.5 * patient.total_time


def test_a_policy_that_waits_for_nothing_is_found_out() -> None:
    with pytest.raises(RuntimeError, match="lazy waits, but no module is busy"):
        simulate(SELECTIONS, Waits(), tuples=3, seed=0)


def test_an_illegal_choice_is_found_out() -> None:
    class Stubborn(StaticPolicy):
        name = "stubborn"

        def route(
            self,
            signature: Signature,  # noqa: ARG002 - always the same
            candidates: tuple[int, ...],  # noqa: ARG002
            open_: tuple[int, ...],  # noqa: ARG002
            tuples: int,
        ) -> Allotment | None:
            return Allotment(0, tuples)

    with pytest.raises(ValueError, match="stubborn chose module 0"):
        simulate(SELECTIONS, Stubborn(), tuples=3, seed=0)


# -- the processor -----------------------------------------------------------------


def turn_by_turn(works: Sequence[Sequence[float]], time_slice: float) -> list[tuple[int, float]]:
    """Share a processor slice after slice, with no shortcut: (module, when) of each tuple done."""
    queues = [deque(work) for work in works]
    left: list[float | None] = [queue.popleft() if queue else None for queue in queues]
    now, module, done = 0.0, 0, []
    while any(work is not None for work in left):
        work = left[module]
        if work is not None:
            now += min(work, time_slice)
            left[module] = work - time_slice
            if work <= time_slice:
                done.append((module, now))
                left[module] = queues[module].popleft() if queues[module] else None
        module = (module + 1) % len(left)
    return done


@settings(deadline=None)
@given(
    works=st.lists(
        st.lists(st.integers(0, 60).map(lambda quarters: quarters / 4), max_size=5),
        min_size=1,
        max_size=4,
    ),
    time_slice=st.sampled_from([0.5, 1.0, 4.0]),
    most=st.sampled_from([math.inf, 1.0, 5.0]),
)
def test_the_processor_goes_round_robin(
    works: list[list[float]], time_slice: float, most: float
) -> None:
    processor = Processor(len(works), VirtualClock(), time_slice)
    queues = [deque(work) for work in works]
    done: list[tuple[int, float]] = []
    while True:
        for module, queue in enumerate(queues):
            if processor.is_idle(module) and queue:
                processor.begin(module, queue.popleft())
        module_done = processor.run(most)
        if module_done is not None:
            done.append((module_done, processor.clock.now()))
        elif all(map(processor.is_idle, range(len(works)))):
            break
    assert done == turn_by_turn(works, time_slice)


def test_busy_modules_get_equal_shares() -> None:
    processor = Processor(3, VirtualClock(), 1.0)
    for module in range(3):
        processor.begin(module, 1000.0)
    assert processor.run(300.0) is None
    assert processor.clock.now() == 300.0
    assert processor._left == [900.0, 900.0, 900.0]


def test_what_a_tuple_does_not_need_of_its_slice_goes_to_the_next() -> None:
    processor = Processor(2, VirtualClock(), 10.0)
    processor.begin(0, 1.0)
    processor.begin(1, 4.0)
    assert (processor.run(), processor.clock.now()) == (0, 1.0)
    assert (processor.run(), processor.clock.now()) == (1, 5.0)
    assert processor.run() is None


# -- times -------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_static_order_takes_what_it_must(order: tuple[int, ...]) -> None:
    tuples = 4000
    result = simulate(SELECTIONS, StaticPolicy(order), tuples=tuples, seed=9)
    arriving = 1.0
    expected = 0.0
    for module in order:
        assert result.modules[module].tuples_in == pytest.approx(arriving * tuples, rel=0.1)
        cost, selectivity = SELECTIONS[module].cost, SELECTIONS[module].selectivity
        assert isinstance(cost, float)
        assert isinstance(selectivity, float)
        expected += result.modules[module].tuples_in * cost
        arriving *= selectivity
    assert result.total_time == pytest.approx(expected)
    assert np.all(result.first_modules() == order[0])


def test_costs_and_selectivities_may_move() -> None:
    seen: list[tuple[float, int]] = []

    def cost(now: float, number: int) -> float:
        seen.append((now, number))
        return 1.0 if number < 50 else 3.0

    def selectivity(now: float, number: int) -> float:  # noqa: ARG001 - moves with the tuples
        return float(number % 2)

    result = simulate(
        [SimulatedSelection(cost=cost, selectivity=selectivity)], StaticPolicy(), tuples=100, seed=0
    )
    assert result.total_time == 50 * 1.0 + 50 * 3.0
    assert result.finished.tolist() == list(range(1, 100, 2))
    assert seen[:3] == [(0.0, 0), (1.0, 1), (2.0, 2)]


def test_a_cost_may_follow_the_virtual_time() -> None:
    result = simulate(
        [SimulatedSelection(cost=lambda now, _: 1.0 if now < 10.0 else 5.0)],
        StaticPolicy(),
        tuples=20,
        seed=0,
    )
    assert result.total_time == 10 * 1.0 + 10 * 5.0


def test_modules_of_one_attribute_are_correlated() -> None:
    wide = SimulatedSelection(selectivity=0.6, attribute=0)
    narrow = SimulatedSelection(selectivity=0.4, attribute=0)
    apart = SimulatedSelection(selectivity=0.4)
    result = simulate([narrow, wide, apart], StaticPolicy(), tuples=3000, seed=2)
    assert result.modules[1].tuples_in == result.modules[1].tuples_out, "narrow implies wide"
    assert result.modules[2].tuples_out / result.modules[2].tuples_in == pytest.approx(0.4, abs=0.1)


# -- what is told of a run ---------------------------------------------------------


def small_result() -> SimulationResult:
    decisions = [(0, 1), (1, 0), (0, 0), (2, 1), (3, 1), (3, 0)]
    return SimulationResult(
        policy="static",
        tuples=4,
        total_time=0.0,
        modules=simulate(SELECTIONS[:2], StaticPolicy(), tuples=0, seed=0).modules,
        decisions=np.array(decisions, dtype=np.int32),
        finished=np.array([0, 3]),
        dropped=np.array([1, 2]),
        most_inside=0,
    )


def test_first_modules_and_orders_by_stretch_of_tuples() -> None:
    result = small_result()
    assert result.first_modules().tolist() == [1, 0, 1, 1]
    assert result.share_first(1) == 0.75
    assert result.first_shares(2).tolist() == [[0.5, 0.5], [0.0, 1.0]]
    shares = {order: share.tolist() for order, share in result.order_shares(2).items()}
    assert shares == {(0,): [0.5, 0.0], (1,): [0.0, 0.5], (1, 0): [0.5, 0.5]}


@pytest.mark.parametrize("bins", [1, 3, 7])
def test_shares_add_up_in_every_stretch(bins: int) -> None:
    result = simulate(SELECTIONS, NaivePolicy(), tuples=500, seed=4)
    assert np.allclose(result.first_shares(bins).sum(axis=1), 1.0)
    assert np.allclose(sum(result.order_shares(bins).values()), 1.0)


# -- settings that make no sense ---------------------------------------------------


@pytest.mark.parametrize(
    "run",
    [
        lambda: simulate(SELECTIONS, StaticPolicy(), tuples=1, seed=0, queue=0),
        lambda: simulate(SELECTIONS, StaticPolicy(), tuples=1, seed=0, buffer=0),
        lambda: simulate(SELECTIONS, StaticPolicy(), tuples=1, seed=0, quantum=0),
        lambda: simulate(SELECTIONS, StaticPolicy(), tuples=1, seed=0, time_slice=0.0),
        lambda: simulate(SELECTIONS, StaticPolicy(), tuples=1, seed=0, patience=0.0),
        lambda: simulate([SimulatedSelection(cost=-1.0)], StaticPolicy(), tuples=1, seed=0),
        lambda: simulate([SimulatedSelection(cost=math.nan)], StaticPolicy(), tuples=1, seed=0),
        lambda: simulate(SELECTIONS, StaticPolicy(), tuples=1, seed=0, routes=Routes(2)),
        lambda: simulate(SELECTIONS, StaticPolicy(), tuples=1, seed=0, routes=Routes(4)),
    ],
)
def test_settings_that_make_no_sense_are_refused(run: Callable[[], SimulationResult]) -> None:
    with pytest.raises(ValueError, match="not "):
        run()


@pytest.mark.parametrize("tuples", [-1, 1.5])
def test_tuples_are_a_whole_number(tuples: int) -> None:
    with pytest.raises(ValueError, match=f"tuples is a whole number from 0 on, not {tuples}"):
        simulate(SELECTIONS, StaticPolicy(), tuples=tuples, seed=0)


@pytest.mark.parametrize("selectivity", [-0.1, 1.1, math.nan, lambda *_: 2.0, lambda *_: math.nan])
def test_a_selectivity_is_a_share(selectivity: float | Callable[[float, int], float]) -> None:
    module = SimulatedSelection(selectivity=selectivity, name="steep")
    with pytest.raises(ValueError, match="steep: a selectivity is from 0 to 1, not "):
        simulate([module], StaticPolicy(), tuples=1, seed=0)


@pytest.mark.parametrize("attribute", [-1, 0.5])
def test_an_attribute_is_a_whole_number(attribute: int) -> None:
    module = SimulatedSelection(attribute=attribute, name="odd")
    with pytest.raises(ValueError, match="odd: an attribute is a whole number from 0 on, not "):
        simulate([module], StaticPolicy(), tuples=1, seed=0)


@pytest.mark.parametrize("bins", [0, -1])
def test_a_run_has_at_least_one_stretch(bins: int) -> None:
    result = small_result()
    for shares in (result.first_shares, result.order_shares):
        with pytest.raises(ValueError, match=f"bins is a whole number from 1 on, not {bins}"):
            shares(bins)


def test_of_no_tuples_none_goes_anywhere_first() -> None:
    result = simulate(SELECTIONS, StaticPolicy(), tuples=0, seed=0)
    assert result.share_first(0) == 0.0


def test_the_statistics_are_by_signature() -> None:
    stream = river(StaticPolicy())
    stream.dispatch()
    stream.settle(0, passed=True, cost=2.0)
    stream.dispatch()
    stream.settle(1, passed=False, cost=3.0)
    assert stream.statistics.of(ENTERING, 0).selectivity == 1.0
    assert stream.statistics.of(ENTERING.after(0), 1).cost == 3.0
    assert stream.statistics.of(ENTERING, 1).visits == 0


@EVERY_POLICY
@pytest.mark.parametrize("costs", [(1.0, 0.0), (0.3, 0.2), (0.0, 7.0)])
def test_routing_takes_its_time_on_the_same_processor(
    name: PolicyName, costs: tuple[float, float]
) -> None:
    decision_cost, tuple_cost = costs
    result = simulate(
        SELECTIONS,
        make_policy(name),
        tuples=500,
        seed=3,
        routing=RoutingTime(decision_cost, tuple_cost),
    )
    work = sum(module.busy_time for module in result.modules)
    routing = len(result.decisions) * (decision_cost + tuple_cost)
    assert result.total_time == pytest.approx(work + routing)
    free = simulate(SELECTIONS, make_policy(name), tuples=500, seed=3)
    assert sorted(result.finished) == sorted(free.finished)


def test_a_decision_for_many_tuples_is_made_once() -> None:
    def time(decision_cost: float, tuple_cost: float) -> float:
        result = simulate(
            SELECTIONS,
            StaticPolicy(),
            tuples=400,
            seed=3,
            queue=20,
            quantum=10,
            routing=RoutingTime(decision_cost, tuple_cost),
        )
        return result.total_time - sum(module.busy_time for module in result.modules)

    assert time(1.0, 0.0) < time(0.0, 1.0), "decisions are fewer than visits"


def test_modules_work_while_the_eddy_routes() -> None:
    result = simulate(
        [SimulatedSelection(cost=4.0, selectivity=0.5), SimulatedSelection(cost=4.0)],
        NaivePolicy(),
        tuples=300,
        seed=1,
        routing=RoutingTime(2.0),
    )
    assert [module.longest_queue for module in result.modules] == [2, 2]
    assert 1 < result.most_inside <= 5


@examples(30)
@given(
    name=st.sampled_from(list(PolicyName)),
    queue=st.integers(1, 5),
    buffer=st.integers(1, 6),
    quantum=st.integers(1, 4),
    cost=st.sampled_from([1e-3, 1.0, 30.0]),
    seed=st.integers(0, 50),
)
def test_the_same_tuples_pass_whatever_routing_costs(
    *, name: str, queue: int, buffer: int, quantum: int, cost: float, seed: int
) -> None:
    def finished(decision_cost: float) -> list[int]:
        result = simulate(
            SELECTIONS,
            make_policy(name),
            tuples=60,
            seed=seed,
            queue=queue,
            buffer=buffer,
            quantum=quantum,
            routing=RoutingTime(decision_cost),
        )
        assert result.most_inside <= buffer
        return sorted(result.finished)

    assert finished(cost) == finished(0.0)


@pytest.mark.parametrize("units", [-1.0, math.inf, math.nan])
def test_routing_takes_a_number_from_0_on(units: float) -> None:
    for times in ((units, 0.0), (0.0, units)):
        with pytest.raises(ValueError, match="routing takes a number of delay units from 0 on"):
            RoutingTime(*times)


def test_routing_that_takes_less_than_a_time_slice_takes_no_part() -> None:
    def decisions(units: float) -> list[list[int]]:
        found: list[list[int]] = simulate(
            SELECTIONS, NaivePolicy(), tuples=300, seed=4, routing=RoutingTime(units)
        ).decisions.tolist()
        return found

    assert decisions(0.01) == decisions(1.0) != decisions(3.0)


def test_where_routing_keeps_selections_waiting_the_naive_eddy_is_even() -> None:
    modules = [SimulatedSelection(cost=5.0, selectivity=0.1), SimulatedSelection(cost=5.0)]

    def first(units: float) -> float:
        routing = RoutingTime(units)
        return simulate(modules, NaivePolicy(), tuples=2000, seed=4, routing=routing).share_first(0)

    assert first(1.0) == pytest.approx(0.36, abs=0.02), "x + y/2 = y + x/10"
    assert first(5.0) == pytest.approx(0.5, abs=0.03)
