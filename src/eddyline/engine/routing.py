"""Routing, written once: which tuples go next, where to, how many, and what is learned of it.

Who runs a module, when, and on which clock is a driver's affair:
:class:`~eddyline.engine.eddy.Eddy` for modules that compute at once or answer later,
:class:`~eddyline.simulation.river.River` for the simulator.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Final, Generic, NamedTuple, Protocol

import numpy as np

from eddyline.engine.cost_model import CostModel
from eddyline.engine.lane import NUMBERS, Contents, Lane
from eddyline.engine.modules.module import BoundedQueue
from eddyline.engine.policies.policy import Allotment, Policy
from eddyline.engine.quantum import Quantum
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature
from eddyline.engine.statistics import EddyStatistics, StatisticsTable

ALL: Final = 1 << 62
"""More tuples than there are."""

LANES: Final = 4096
"""Lanes kept; beyond that, those without tuples go. An order of a thousand modules fits."""

WARM: Final = 8
"""Visits before the eddy believes its own measurement; fewer tell more about the cold start."""

A_VISITS_WORTH: Final = 1024
"""Tuples that cost as much as a visit by itself, as long as nothing is known of a module.

Where it calls no function of a user's. Eight tuples, which others begin with, would cost no less.
"""

_log = logging.getLogger(__name__)


class Instrument(Protocol):
    """Watches an eddy. A run with no instrument pays one comparison a visit for the chance.

    One that raises is dropped and its error logged; the run goes on.
    """

    def visited(
        self, signature: Signature, module: int, tuples_in: int, tuples_out: int, seconds: float
    ) -> None:
        """See tuples that have come back from a module, or have not."""
        ...


class VisitCosts:
    """What visits cost: a model for each module, and the eddy's own part.

    A policy asks here, and not the eddy: policies outlive eddies, and must not
    keep alive the data and the user's functions that an eddy holds.
    """

    __slots__ = ("models", "routing_cost")

    def __init__(self, models: dict[int, CostModel], routing_cost: float) -> None:
        """``models`` are by number of the module."""
        self.models = models
        self.routing_cost = routing_cost

    def overhead(self, module: int) -> float:
        """Return what a visit to a module costs before its first tuple."""
        return self.routing_cost + self.models[module].per_visit


class Departure(NamedTuple, Generic[Contents]):
    """Tuples that leave a lane for a module.

    ``usual`` are those of a usual visit, 0 for a build: that is no decision, and neither the
    policy nor the model of the module's cost is told, which are about probes.
    """

    lane: Lane[Contents]
    module: int
    tuples: int
    usual: int


class Routing(Generic[Contents]):
    """Keeps the tuples of an eddy by signature, and decides which of them go where.

    Tuples that come back from a module go before new ones (Avnur and Hellerstein, 2000,
    Section 4), so that the buffer stays small; but a signature waits while it holds less than
    a quantum and others have more, so that a few survivors do not pay for a visit of their own.

    A module may have a bounded queue. Where that is full the module is no open candidate,
    which is back-pressure (Section 4.2), and tuples that the policy has for it wait.

    Routing does not change answers: tuples go only to candidates of
    :class:`~eddyline.engine.routes.Routes`, whatever the policy says.

    A decision looks at all lanes with tuples, and takes time in proportion to their number.
    """

    def __init__(
        self,
        routes: Routes,
        policy: Policy,
        generator: np.random.Generator,
        make_contents: Callable[[], Contents],
        *,
        quantum: Quantum,
        costs: VisitCosts | None,
        queues: Mapping[int, BoundedQueue] | None = None,
        instrument: Instrument | None = None,
    ) -> None:
        """``queues`` are those of the modules that have one.

        Without ``costs`` each tuple is worth a visit, and a visit takes as many as the quantum
        says of an unknown module.
        """
        self.costs = costs
        self.instrument = instrument
        self.visits = 0
        self.work_seconds = 0.0
        self.routing_seconds = 0.0
        self.waiting_seconds = 0.0
        self.looking_seconds = 0.0  # for classes of tuples: no visit's cost
        self.away = 0  # tuples that are with modules
        self.table = StatisticsTable()
        self._routes = routes
        self._version = routes.version
        self._make_contents = make_contents
        self._quantum = quantum
        self._most = 0 if costs is not None else quantum.size(None, 0.0, 0.0)
        self._queues = dict(queues or {})
        self._room = {module: queue.room for module, queue in self._queues.items()}
        self._full = 0  # modules without room, as a mask
        self._lanes: dict[Signature, Lane[Contents]] = {}
        self._made = 0  # lanes so far
        self._waiting: dict[Lane[Contents], None] = {}  # those with tuples
        self._any_held = False
        self._only_computes = {number: routes.only_computes(number) for number in routes.numbers}
        self._generator = generator
        self.follow(policy)

    def follow(self, policy: Policy) -> None:
        """Ask this policy from now on."""
        overhead = () if self.costs is None else (self.costs.overhead,)
        policy.start(self._routes, self._generator, *overhead, queued=bool(self._room))
        self.policy = policy

    def add(self, model: CostModel, queue: BoundedQueue | None = None) -> int:
        """Let tuples visit one more module from now on; return its number.

        ``model`` is that of its cost. RuntimeError where tuples are on their way.
        """
        self.require_quiet()
        number = self._routes.add()
        if self.costs is not None:
            self.costs.models[number] = model
        self._only_computes[number] = self._routes.only_computes(number)
        if queue is not None:
            self._queues[number] = queue
            self._room[number] = queue.room
        self._changed()
        return number

    def remove(self, module: int) -> None:
        """Let tuples visit a module no more.

        RuntimeError where tuples are on their way, ValueError where there is no such module.
        """
        self.require_quiet()
        self._routes.remove(module)
        del self._only_computes[module]
        self.table.forget({module})
        if self.costs is not None:
            del self.costs.models[module]
        if self._queues.pop(module, None) is not None:
            del self._room[module]
            self._full &= ~(1 << module)
        self._changed()

    @property
    def waiting(self) -> int:
        """The number of lanes with tuples."""
        return len(self._waiting)

    @property
    def tuples_waiting(self) -> int:
        """The number of tuples that wait in lanes."""
        return sum(lane.tuples for lane in self._waiting)

    def away_at(self, module: int) -> int:
        """Return the tuples that are with a module which has a queue."""
        return self._queues[module].room - self._room[module]

    def statistics(self) -> EddyStatistics:
        """Return what was done so far."""
        return EddyStatistics(
            self.table.snapshot(),
            self.visits,
            self.work_seconds,
            self.routing_seconds + self.looking_seconds,
            self.waiting_seconds,
        )

    def lane(self, signature: Signature) -> Lane[Contents] | None:
        """Return the lane of a signature; None where its tuples are finished."""
        lane = self._lanes.get(signature)
        if lane is None:
            lane = Lane(signature, self._make_contents(), self._made)
            self._made += 1
            lane.set_routes(self._routes, self._room)
            if len(self._lanes) >= LANES:
                self._lanes = {kept.signature: kept for kept in self._waiting}
            self._lanes[signature] = lane
        return lane if lane.candidates else None

    def follow_routes(self) -> None:
        """Take note of routes that have changed, as they do where a SteM has become complete."""
        if self._version != self._routes.version:
            self._version = self._routes.version
            for lane in self._lanes.values():
                lane.set_routes(self._routes, self._room)

    def arrive(self, lane: Lane[Contents], tuples: int) -> None:
        """Count tuples, one at least, that were put into a lane."""
        if not lane.tuples:
            self._waiting[lane] = None
        lane.tuples += tuples

    def emptied(self) -> list[Contents]:
        """Return the contents of all lanes with tuples, and leave them empty."""
        contents = [lane.contents for lane in self._waiting]
        for lane in self._waiting:
            lane.contents, lane.tuples, lane.held = self._make_contents(), 0, False
        self._waiting.clear()
        return contents

    def retry(self) -> None:
        """Let the lanes that were held try again."""
        if self._any_held:
            self._any_held = False
            for lane in self._waiting:
                lane.held = False

    def depart(self, most: int = ALL) -> Departure[Contents] | None:
        """Decide what goes next, ``most`` tuples at the most; None where nothing can.

        Whoever calls takes the tuples out of the lane's contents. ValueError where the policy
        names a module that is no candidate.
        """
        costs = self.costs
        while True:
            lane, ready = self._next_lane()
            if lane is None:
                return None
            if lane.builds:
                return self._left(lane, lane.candidates[0], most, 0)
            allotment = self._decided(lane)
            if allotment is None:
                lane.held = self._any_held = True
                continue
            module, allotted = allotment
            if costs is None:
                return self._left(lane, module, min(allotted, self._most, most), allotted)
            model = costs.models[module]
            cost = model.per_tuple
            if cost is None and self._only_computes[module]:
                cost = costs.overhead(module) / A_VISITS_WORTH
            quantum = self._quantum.size(cost, model.per_visit, costs.routing_cost)
            queue = self._queues.get(module)
            if queue is not None:
                quantum = max(quantum, queue.unit)
                allotted = max(allotted, queue.unit)  # a call for fewer costs no less
            lane.enough = quantum
            if lane.ahead:
                lane.enough = 1
            tuples = lane.tuples
            if ready and not lane.ahead and tuples < quantum and lane.depth != ENTERING.depth:
                continue  # no longer enough
            # As long as nothing is known the usual visit is one of all there are.
            usual = tuples if model.per_tuple is None else min(quantum, tuples)
            return self._left(lane, module, min(quantum, allotted, most), usual)

    def settle(
        self,
        lane: Lane[Contents],
        module: int,
        usual: int,
        tuples_in: int,
        tuples_out: int,
        seconds: float,
    ) -> None:
        """Learn of tuples of a lane that a module is done with, and what they have cost.

        ``usual`` is that of their departure. ``seconds`` is in the clock's unit.
        """
        signature = lane.signature
        self.table.record(signature, module, tuples_in, tuples_out, seconds)
        self.away -= tuples_in
        if usual:
            cost = seconds
            if self.costs is not None:
                model = self.costs.models[module]
                model.record(tuples_in, seconds)
                cost = model.fair_share(tuples_in, seconds, usual)
            self.policy.returned(signature, module, tuples_in, tuples_out, cost)
        queue = self._queues.get(module)
        if queue is not None:
            room = self._room[module] = self._room[module] + tuples_in
            if room >= queue.refill:
                self._full &= ~(1 << module)
        if self.instrument is not None:
            try:
                self.instrument.visited(signature, module, tuples_in, tuples_out, seconds)
            except Exception:  # noqa: BLE001 - whatever the observer raises
                _log.exception("An instrument raised an error and is dropped: %r", self.instrument)
                self.instrument = None
        self.visits += 1
        self.work_seconds += seconds

    def learn_routing_cost(self) -> None:
        """Take over what was measured of the eddy's own cost a visit, once that tells anything."""
        if self.costs is not None and self.visits >= WARM:
            self.costs.routing_cost = self.routing_seconds / self.visits

    def require_work(self) -> None:
        """Raise RuntimeError where tuples wait and no module has any: nothing would ever change."""
        if self._waiting and not self.away:
            raise RuntimeError(f"policy {self.policy.name} waits, but no module is busy")

    def require_quiet(self) -> None:
        """Raise RuntimeError where tuples are on their way."""
        if self._waiting or self.away:
            raise RuntimeError("modules come and go only while no tuple is on its way")

    def _changed(self) -> None:
        self._lanes.clear()  # whose tuples had been to other modules
        self._version = self._routes.version
        self.follow(self.policy)

    def _next_lane(self) -> tuple[Lane[Contents] | None, bool]:
        """Return the deepest lane with enough tuples for a visit, and True.

        If none has, the one that is farthest behind, and False: so its tuples catch up with
        those of others, and the visits from there on are shared.
        """
        best = behind = None
        furthest, full = 0, self._full
        for lane in self._waiting:
            if lane.held or lane.limits & full == lane.limits:
                continue
            if lane.tuples >= lane.enough:
                if lane.precedence > furthest:
                    best, furthest = lane, lane.precedence
            elif behind is None or lane.depth < behind.depth:
                behind = lane
        return (behind, False) if best is None else (best, True)

    def _decided(self, lane: Lane[Contents]) -> Allotment | None:
        """Ask the policy; None where it waits, or where it wants a module that has no room."""
        candidates, full = lane.candidates, self._full
        open_ = lane.with_room(full) if full else candidates
        allotment = self.policy.route(lane.signature, candidates, open_, lane.tuples)
        if allotment is None:
            return None
        module = allotment[0]
        at = bisect_left(candidates, module)  # they ascend
        if at == len(candidates) or candidates[at] != module:
            raise ValueError(
                f"policy {self.policy.name} chose module {module} for tuples of "
                f"{lane.signature}, which may go only to {candidates}"
            )
        return None if full >> module & 1 else allotment

    def _left(
        self, lane: Lane[Contents], module: int, tuples: int, usual: int
    ) -> Departure[Contents]:
        """Count so many tuples as away, or as many as there are and the module has room for."""
        tuples = min(tuples, lane.tuples)
        free = self._room.get(module)
        if free is not None:
            if tuples >= free:
                tuples = free
                self._full |= 1 << module
            self._room[module] = free - tuples
        lane.tuples -= tuples
        if lane.in_turn:  # as if it was made last
            lane.precedence = (lane.depth << NUMBERS) - self._made
            self._made += 1
        if not lane.tuples:
            del self._waiting[lane]
        self.away += tuples
        if usual:
            self.policy.sent(lane.signature, module, tuples)
        return Departure(lane, module, tuples, usual)
