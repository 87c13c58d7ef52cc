"""Routing by itself: which tuples go next, back-pressure, what a change of routes does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from eddyline.engine.cost_model import CostModel, TypicalVisit
from eddyline.engine.lane import Lane
from eddyline.engine.modules.module import BoundedQueue
from eddyline.engine.policies.policy import Allotment
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.routes import Routes
from eddyline.engine.routing import LANES, Routing, VisitCosts
from eddyline.engine.signature import ENTERING, Signature
from eddyline.simulation.fixed_quantum import FixedQuantum


class Told(StaticPolicy):
    """Writes down what it is asked and told; sends to the module that it is set to."""

    name = "told"

    def __init__(self, answer: int | None = 0) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[tuple[tuple[int, ...], int]] = []
        self.went: list[tuple[int, int]] = []
        self.came: list[tuple[int, int, int, float]] = []

    def route(
        self,
        signature: Signature,  # noqa: ARG002 - the same for all
        candidates: tuple[int, ...],  # noqa: ARG002
        open_: tuple[int, ...],
        tuples: int,
    ) -> Allotment | None:
        self.asked.append((open_, tuples))
        return None if self.answer is None else Allotment(self.answer, tuples)

    def sent(self, signature: Signature, module: int, tuples: int) -> None:  # noqa: ARG002
        self.went.append((module, tuples))

    def returned(
        self,
        signature: Signature,  # noqa: ARG002
        module: int,
        tuples_in: int,
        tuples_out: int,
        cost: float,
    ) -> None:
        self.came.append((module, tuples_in, tuples_out, cost))


def routing(
    policy: StaticPolicy,
    *,
    modules: int = 3,
    room: dict[int, int] | None = None,
    quantum: int = 10,
    counted: bool = False,
    routes: Routes | None = None,
    refill: int = 1,
) -> Routing[list[int]]:
    models = {number: CostModel(TypicalVisit(0.0)) for number in range(modules)}
    return Routing(
        routes or Routes(modules),
        policy,
        np.random.default_rng(0),
        list,
        quantum=FixedQuantum(quantum),
        costs=None if counted else VisitCosts(models, 0.0),
        queues={module: BoundedQueue(free, refill) for module, free in (room or {}).items()},
    )


def lane_of(core: Routing[list[int]], done: int, tuples: int) -> Lane[list[int]]:
    lane = core.lane(Signature(done=done))
    assert lane is not None
    core.arrive(lane, tuples)
    return lane


def departures(core: Routing[list[int]]) -> Sequence[tuple[int, int, int]]:
    found = []
    while (departure := core.depart()) is not None:
        found.append((departure.lane.signature.done, departure.module, departure.tuples))
    return found


def test_the_deepest_goes_first_and_of_equals_the_one_first_seen() -> None:
    core = routing(StaticPolicy(), counted=True)
    for done in (0b000, 0b010, 0b001, 0b011):
        lane_of(core, done, 1)
    assert [done for done, _, _ in departures(core)] == [0b011, 0b010, 0b001, 0b000]


def test_new_tuples_of_several_classes_take_turns() -> None:
    core = routing(StaticPolicy(), quantum=5, counted=True)
    for mark in (1, 2):
        lane = core.lane(ENTERING._replace(mark=mark))
        assert lane is not None
        core.arrive(lane, 10)
    marks = []
    while (departure := core.depart()) is not None:
        marks.append(departure.lane.signature.mark)
    assert marks == [1, 2, 1, 2]


def test_too_few_wait_for_those_behind_them() -> None:
    core = routing(StaticPolicy(), quantum=10)
    deep, entering = lane_of(core, 0b001, 4), lane_of(core, 0, 30)
    deep.enough = 10
    assert departures(core) == [(0, 0, 10)] * 3 + [(0b001, 1, 4)]
    lane_of(core, 0b001, 4)
    core.arrive(deep, 7)
    core.arrive(entering, 1)
    assert departures(core) == [(0b001, 1, 10), (0, 0, 1), (0b001, 1, 1)]


def test_no_more_go_than_there_is_room_for() -> None:
    policy = Told()
    core = routing(policy, room={0: 4})
    entering = lane_of(core, 0, 9)
    assert departures(core) == [(0, 0, 4)]
    assert (entering.tuples, core.away, policy.went) == (5, 4, [(0, 4)])
    core.settle(entering, 0, 4, 3, 1, 0.5)
    assert departures(core) == [], "held until somebody says that something has changed"
    core.retry()
    assert departures(core) == [(0, 0, 3)]
    assert policy.came == [(0, 3, 1, 0.5)]


def test_a_full_module_is_no_open_candidate() -> None:
    policy = Told()
    core = routing(policy, room={0: 2, 1: 2})
    lane_of(core, 0, 9)
    assert departures(core) == [(0, 0, 2)]
    assert policy.asked == [((0, 1, 2), 9), ((1, 2), 7)]
    policy.answer = 1
    core.retry()
    assert departures(core) == [(0, 1, 2)]
    assert policy.asked[-1] == ((2,), 5)


def test_a_queue_that_was_full_is_refilled_by_a_few_at_a_time() -> None:
    core = routing(Told(), modules=1, room={0: 8}, refill=4)
    entering = lane_of(core, 0, 30)
    assert departures(core) == [(0, 0, 8)]
    core.settle(entering, 0, 8, 3, 0, 1.0)
    core.retry()
    assert departures(core) == []
    core.settle(entering, 0, 8, 1, 0, 1.0)
    core.retry()
    assert departures(core) == [(0, 0, 4)]


def test_a_policy_is_not_asked_where_nothing_has_room() -> None:
    policy = Told()
    core = routing(policy, modules=1, room={0: 2})
    lane_of(core, 0, 9)
    assert departures(core) == [(0, 0, 2)]
    assert len(policy.asked) == 1


def test_waiting_is_an_error_only_where_nobody_is_busy() -> None:
    policy = Told()
    core = routing(policy, room={0: 2})
    entering = lane_of(core, 0, 3)
    assert departures(core) == [(0, 0, 2)]
    core.require_work()
    policy.answer = None
    core.settle(entering, 0, 2, 2, 0, 1.0)
    core.retry()
    assert departures(core) == []
    with pytest.raises(RuntimeError, match="told waits, but no module is busy"):
        core.require_work()


@pytest.mark.parametrize("module", [1, 7, -1])
def test_an_illegal_choice_is_found_out(module: int) -> None:
    core = routing(Told(module))
    lane_of(core, 0b010, 1)
    with pytest.raises(ValueError, match=f"told chose module {module} for tuples of"):
        core.depart()


def test_what_is_forgotten_is_without_tuples() -> None:
    core = routing(StaticPolicy(), modules=20)
    kept = lane_of(core, 0b1, 5)
    for done in range(2, LANES + 10):
        core.lane(Signature(done=done))
    assert core.lane(Signature(done=0b1)) is kept
    assert departures(core) == [(0b1, 1, 5)]


def test_routes_that_have_changed_are_followed() -> None:
    class Changing(Routes):
        """Has one candidate first, and another later."""

        only = 0

        def candidates(self, signature: Signature) -> tuple[int, ...]:  # noqa: ARG002
            return (self.only,)

    routes = Changing(2)
    core = routing(StaticPolicy(), modules=2, routes=routes)
    lane = core.lane(ENTERING)
    assert lane is not None
    assert lane.candidates == (0,)
    routes.only = 1
    routes.version += 1
    core.follow_routes()
    assert lane.candidates == (1,)
