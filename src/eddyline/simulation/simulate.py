"""A river on a virtual clock: modules of given cost and selectivity share one processor."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from eddyline.engine.policies.policy import Policy
from eddyline.engine.routes import Routes
from eddyline.engine.routing import Departure
from eddyline.simulation.processor import Processor
from eddyline.simulation.river import BUFFER, QUEUE, River, is_whole
from eddyline.simulation.virtual_clock import VirtualClock

Setting: TypeAlias = "float | Callable[[float, int], float]"
"""A number, or a function of the virtual time and the tuple's number that returns one."""

PATIENCE = 10.0
"""Delay units after which the eddy has its turn although no module is done with a tuple.

A lottery that makes a tuple wait for its winner is held anew each turn. With
turns too close together it is as if nobody waited: over Figure 5 at 10 % the
lottery takes 1.24 times the better order with 1 unit, 1.08 with 5, 1.05 with 10
and with 20. With turns too far apart a tuple waits long for a slow winner: over
the toggling costs of Section 4.5 it takes 80,000 units with 10, 110,000 with 20,
205,000 without any limit.
"""


@dataclass(frozen=True, slots=True)
class RoutingTime:
    """What the eddy's own work takes, in delay units: for a decision, and for each of its tuples.

    Where it takes any the eddy is a thread like the modules, which shares the processor with them.
    A decision to wait takes none. ValueError for what is no number from 0 on.
    """

    per_decision: float = 0.0
    per_tuple: float = 0.0

    def __post_init__(self) -> None:
        for units in (self.per_decision, self.per_tuple):
            if not 0.0 <= units < math.inf:
                raise ValueError(f"routing takes a number of delay units from 0 on, not {units}")


FREE: Final = RoutingTime()
"""Routing takes no time, and the eddy has its turn as soon as a module is done with a tuple."""


@dataclass(frozen=True, slots=True)
class SimulatedSelection:
    """A selection that spins for ``cost`` delay units and lets a share of the tuples pass.

    These are the modules of Avnur and Hellerstein (2000, Section 4.1), but what
    becomes of a tuple is no throw at the time of the visit: every tuple has
    hidden numbers, uniform in [0, 1) and fixed by the seed, and passes where its
    hidden number ``attribute`` is below ``selectivity``. So every policy meets the
    same data. By default a module has a hidden number of its own and is
    independent of all others; modules of one ``attribute`` are correlated.
    """

    cost: Setting = 1.0
    selectivity: Setting = 0.5
    attribute: int | None = None
    name: str = "selection"


@dataclass(frozen=True, slots=True)
class ModuleUse:
    """What a module did in a simulation; ``longest_queue`` in tuples, its own work included."""

    name: str
    tuples_in: int
    tuples_out: int
    busy_time: float
    longest_queue: int


@dataclass(frozen=True, slots=True, eq=False)
class SimulationResult:
    """What came of a simulation, down to every decision.

    ``decisions`` is int32 of shape (visits, 2): tuple and module, in the order in
    which tuples were handed over. ``finished`` and ``dropped`` are int64: tuple
    numbers in the order in which they left. ``most_inside`` is the largest number of
    tuples that were under way at a time.
    """

    policy: str
    tuples: int
    total_time: float
    modules: tuple[ModuleUse, ...]
    decisions: npt.NDArray[np.int32]
    finished: npt.NDArray[np.int64]
    dropped: npt.NDArray[np.int64]
    most_inside: int

    def first_modules(self) -> npt.NDArray[np.int32]:
        """Return the module that each tuple visited first, by tuple number."""
        first = np.full(self.tuples, -1, dtype=np.int32)
        # Written backwards, so that the first visit of a tuple is the one that stays.
        first[self.decisions[::-1, 0]] = self.decisions[::-1, 1]
        return first

    def share_first(self, module: int) -> float:
        """Return the share of all tuples that visited ``module`` first; 0 where there are none."""
        return np.count_nonzero(self.first_modules() == module) / max(self.tuples, 1)

    def first_shares(self, bins: int) -> npt.NDArray[np.float64]:
        """Return the same in the course of the run: float64 of shape (bins, modules).

        A bin is a run of tuple numbers, all of nearly the same size. ValueError unless there is
        at least one.
        """
        _check_bins(bins)
        first = self.first_modules()
        shares = [
            np.bincount(part, minlength=len(self.modules)) / max(len(part), 1)
            for part in np.array_split(first, bins)
        ]
        return np.asarray(shares, dtype=np.float64)

    def order_shares(self, bins: int) -> dict[tuple[int, ...], npt.NDArray[np.float64]]:
        """Return, by order of visits, the share of tuples that took it: float64 of length bins.

        A tuple that was dropped has the order of the visits that it paid. ValueError unless there
        is at least one bin.
        """
        _check_bins(bins)
        by_tuple = np.argsort(self.decisions[:, 0], kind="stable")
        visits = np.bincount(self.decisions[:, 0], minlength=self.tuples)
        ends = np.cumsum(visits).tolist()
        modules = self.decisions[by_tuple, 1].tolist()
        edges = np.linspace(0, self.tuples, bins + 1).astype(np.int64)
        in_bin = np.searchsorted(edges, np.arange(self.tuples), side="right") - 1
        size = np.maximum(np.bincount(in_bin, minlength=bins), 1)
        counts: dict[tuple[int, ...], npt.NDArray[np.float64]] = {}
        start = 0
        for place, end in zip(in_bin.tolist(), ends, strict=True):
            order = tuple(modules[start:end])
            if order not in counts:
                counts[order] = np.zeros(bins)
            counts[order][place] += 1
            start = end
        return {order: count / size for order, count in sorted(counts.items())}


def simulate(  # noqa: PLR0913 - each is something that the paper leaves open
    modules: Sequence[SimulatedSelection],
    policy: Policy,
    *,
    tuples: int,
    seed: int,
    routes: Routes | None = None,
    queue: int = QUEUE,
    buffer: int = BUFFER,
    quantum: int = 1,
    time_slice: float = 1.0,
    patience: float = PATIENCE,
    routing: RoutingTime = FREE,
) -> SimulationResult:
    """Run ``tuples`` tuples through ``modules`` and return what happened.

    All that is random hangs on ``seed``, the data and the policy's draws by
    generators of their own: one seed is one set of data for every policy, and one
    seed and policy is one run, to the last decision. ``routing`` is what the eddy's
    own work takes, by default nothing. ``queue``, ``buffer`` and ``quantum`` are those of
    :class:`~eddyline.simulation.river.River`, time slice and patience are in delay
    units. Raises ValueError for settings that make no sense.

    >>> from eddyline.policies import Static
    >>> cheap, expensive = SimulatedSelection(cost=1.0), SimulatedSelection(cost=5.0)
    >>> better = simulate([cheap, expensive], Static((0, 1)), tuples=1000, seed=7)
    >>> worse = simulate([cheap, expensive], Static((1, 0)), tuples=1000, seed=7)
    >>> better.total_time < worse.total_time, len(better.finished) == len(worse.finished)
    (True, True)
    """
    if not patience > 0.0:
        raise ValueError(f"patience is a duration above 0, not {patience}")
    _check_modules(modules, routes)
    of_data, of_policy = np.random.SeedSequence(seed).spawn(2)
    clock = VirtualClock()
    processor = Processor(len(modules) + 1, clock, time_slice)
    river = River(
        routes or Routes(len(modules)),
        policy,
        np.random.default_rng(of_policy),
        tuples=tuples,
        queue=queue,
        buffer=buffer,
        quantum=quantum,
    )
    eddy = _EddyThread(river, processor, len(modules), routing)
    hidden = _hidden_numbers(modules, tuples, np.random.default_rng(of_data))
    work = _Work(modules, hidden, river, processor)
    while True:
        eddy.take_turn()
        work.begin()
        done = processor.run(patience)
        if done == eddy.number:
            eddy.end_turn()
        elif done is not None:
            work.end(done)
        elif not eddy.is_at_work and not any(river.queues):
            return _result(modules, policy, river, clock, tuples)


class _EddyThread:
    """The eddy as one of the threads that share the processor."""

    def __init__(
        self, river: River, processor: Processor, number: int, routing: RoutingTime
    ) -> None:
        self.number = number
        self._river = river
        self._processor = processor
        self._routing = routing
        self._departing: Departure[deque[int]] | None = None  # what it is at

    @property
    def is_at_work(self) -> bool:
        """Whether it routes something."""
        return self._departing is not None

    def take_turn(self) -> None:
        """Route what can be routed, or begin to where that takes time."""
        if self._routing == FREE:
            self._river.dispatch()
        elif self._departing is None:
            self._departing = departing = self._river.next_departure()
            if departing is not None:
                seconds = self._routing.per_decision + departing.tuples * self._routing.per_tuple
                self._processor.begin(self.number, seconds)

    def end_turn(self) -> None:
        """Hand over what was routed."""
        if self._departing is not None:
            self._river.place(self._departing)
            self._departing = None


class _Work:
    """What the modules are at: one tuple each at the most."""

    def __init__(
        self,
        modules: Sequence[SimulatedSelection],
        hidden: Sequence[Sequence[float]],
        river: River,
        processor: Processor,
    ) -> None:
        self._modules = modules
        self._hidden = hidden
        self._river = river
        self._processor = processor
        self._places = range(len(modules))
        self._costs = [0.0] * len(modules)
        self._passes = [False] * len(modules)

    def begin(self) -> None:
        """Let each idle module take the next tuple of its queue."""
        clock, queues = self._processor.clock, self._river.queues
        for module in self._places:
            if self._processor.is_idle(module) and queues[module]:
                number = queues[module][0][0]
                cost, selectivity = self._modules[module].cost, self._modules[module].selectivity
                self._costs[module] = cost(clock.now(), number) if callable(cost) else cost
                if callable(selectivity):
                    selectivity = selectivity(clock.now(), number)
                    _check_selectivity(self._modules[module], selectivity)
                self._passes[module] = self._hidden[module][number] < selectivity
                self._processor.begin(module, self._costs[module])

    def end(self, module: int) -> None:
        """Hand back the tuple that a module is done with, or drop it."""
        self._river.settle(module, passed=self._passes[module], cost=self._costs[module])


def _check_modules(modules: Sequence[SimulatedSelection], routes: Routes | None) -> None:
    """Raise ValueError for modules that cannot be, and for routes that are of others."""
    for module in modules:
        attribute = module.attribute
        if attribute is not None and not is_whole(attribute, 0):
            raise ValueError(
                f"{module.name}: an attribute is a whole number from 0 on, not {attribute}"
            )
        if not callable(module.selectivity):
            _check_selectivity(module, module.selectivity)
    if routes is not None and routes.given != len(modules):
        raise ValueError(
            f"the routes are of {routes.given} modules, not of the {len(modules)} given"
        )


def _check_selectivity(module: SimulatedSelection, selectivity: float) -> None:
    if not 0.0 <= selectivity <= 1.0:
        raise ValueError(f"{module.name}: a selectivity is from 0 to 1, not {selectivity}")


def _check_bins(bins: int) -> None:
    if not is_whole(bins, 1):
        raise ValueError(f"bins is a whole number from 1 on, not {bins}")


def _hidden_numbers(
    modules: Sequence[SimulatedSelection], tuples: int, generator: np.random.Generator
) -> list[list[float]]:
    """Return, by module, the hidden numbers that decide there."""
    shared = [module.attribute for module in modules if module.attribute is not None]
    columns = max(shared, default=-1) + 1
    own = iter(range(columns, columns + len(modules)))
    # By column and not by row: a further module leaves the numbers of the others alone.
    numbers = [generator.random(tuples).tolist() for _ in range(columns + len(modules))]
    return [
        numbers[next(own) if module.attribute is None else module.attribute] for module in modules
    ]


def _result(
    modules: Sequence[SimulatedSelection],
    policy: Policy,
    river: River,
    clock: VirtualClock,
    tuples: int,
) -> SimulationResult:
    uses = []
    snapshot = river.statistics.snapshot()
    for place, module in enumerate(modules):
        visits = [of for (_, visited), of in snapshot.items() if visited == place]
        uses.append(
            ModuleUse(
                module.name,
                sum(of.rows_in for of in visits),
                sum(of.rows_out for of in visits),
                sum(of.seconds for of in visits),
                river.longest_queue[place],
            )
        )
    return SimulationResult(
        policy=policy.name,
        tuples=tuples,
        total_time=clock.now(),
        modules=tuple(uses),
        decisions=np.array([river.sent_tuples, river.sent_to], dtype=np.int32).T,
        finished=np.array(river.finished, dtype=np.int64),
        dropped=np.array(river.dropped, dtype=np.int64),
        most_inside=river.most_inside,
    )
