"""The eddy: takes tuples, has them routed, hands them to modules, emits what is finished."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from eddyline.engine.batch import TupleBatch, concatenate
from eddyline.engine.clock import Clock
from eddyline.engine.cost_model import CostModel, TypicalVisit
from eddyline.engine.lane import Lane
from eddyline.engine.modules.module import ConcurrentModule, Module
from eddyline.engine.policies.policy import Policy
from eddyline.engine.quantum import MeasuredQuantum, Quantum
from eddyline.engine.routes import Routes
from eddyline.engine.routing import Instrument, Routing, VisitCosts
from eddyline.engine.signature import Signature
from eddyline.engine.statistics import EddyStatistics, Spent

ROUTING_COST_PRIOR = 15e-6
"""Seconds that the eddy itself spends on a visit, until it has measured it.

On a 2 GHz machine it measures 10 to 20 microseconds; too low a guess only makes
the very first quanta too small.
"""


Witness: TypeAlias = Callable[[Signature | None, TupleBatch], None]
"""Is shown tuples that come into being, and the signature of those they were made from, if any."""


@dataclass(frozen=True, slots=True)
class LearnedCosts:
    """What an eddy has measured: a cost model for each module, by number, and its cost a visit."""

    models: Mapping[int, CostModel]
    routing_cost: float


Sort: TypeAlias = "Callable[[TupleBatch], Sequence[TupleBatch]]"
"""Tells tuples of one signature apart: returns them all, under signatures with the same routes."""


class Classes(Protocol):
    """Watches visits, and finds classes by which tuples are worth telling apart."""

    @property
    def active(self) -> bool:
        """Whether tuples are told apart now."""
        ...

    def visited(
        self, taken: TupleBatch, module: int, results: Sequence[TupleBatch], seconds: float
    ) -> bool:
        """Note a visit; tell whether it is time for a look."""
        ...

    def look(self, costs: LearnedCosts) -> bool:
        """Look whether other classes are better, or none; tell whether they are others now."""
        ...

    def sort(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Return tuples by class, as far as they are not yet told apart."""
        ...

    def sort_again(self, batches: Sequence[TupleBatch]) -> Sequence[TupleBatch]:
        """Return tuples by the classes of now, whatever they were told apart by before."""
        ...


@dataclass(frozen=True, slots=True)
class Learned:
    """The policies and cost models of an eddy and of those inside it, in a fixed order.

    They go on learning where they are handed to another eddy. So do the classes by which the
    first of the eddies tells tuples apart, if it does.
    """

    eddies: tuple[tuple[Policy, LearnedCosts], ...]
    classes: Classes | None = None


class Eddy:
    """Routes batches of tuples through modules until every tuple is finished or gone.

    Modules that compute do so while the eddy waits. Others take tuples into a bounded queue
    and answer later, through an agenda that they share; the eddy waits for it only when
    nothing else is to be done.

    The eddy does not change answers: what it does with a batch is what
    :class:`~eddyline.engine.routing.Routing` says, and it emits a batch when there is no
    module left to be visited.

    A module's number is its name; modules may come and go between runs.
    """

    def __init__(
        self,
        modules: Sequence[Module | ConcurrentModule],
        policy: Policy,
        clock: Clock,
        generator: np.random.Generator,
        *,
        routes: Routes | None = None,
        quantum: Quantum | None = None,
        visit_costs: Sequence[float] | None = None,
        routing_cost: float = ROUTING_COST_PRIOR,
        learned: LearnedCosts | None = None,
        instrument: Instrument | None = None,
    ) -> None:
        """Make an eddy over ``modules``, which are numbered as they come.

        ``visit_costs`` are guesses of each module's fixed cost a visit, where modules of one
        kind have the same and learn it from each other, and
        ``routing_cost`` one of the eddy's own, in the clock's unit; ``learned``
        replaces both by what another eddy over the same modules has measured.
        ValueError if modules that answer later do not all use one agenda, or the routes, or what
        was learned, are of modules with other numbers.
        """
        self.modules = dict(enumerate(modules))
        """By number."""
        self._clock = clock
        self.witness: Witness | None = None
        """Is shown what comes, and what modules that compute return."""
        self._typical: dict[float, TypicalVisit] = {}  # by the guess
        guesses = visit_costs or [0.0] * len(self.modules)
        self._costs = VisitCosts(
            dict(learned.models)
            if learned is not None
            else {number: self._guessed(guess) for number, guess in enumerate(guesses)},
            routing_cost if learned is None else learned.routing_cost,
        )
        if self._costs.models.keys() != self.modules.keys():
            raise ValueError(f"costs are those of modules {list(self._costs.models)}")
        if routes is not None and set(routes.numbers) != self.modules.keys():
            raise ValueError(f"routes are those of modules {list(routes.numbers)}")
        self._inline = {n: m for n, m in self.modules.items() if isinstance(m, Module)}
        later = {n: m for n, m in self.modules.items() if isinstance(m, ConcurrentModule)}
        self._later = later
        agendas = list({id(module.agenda): module.agenda for module in later.values()}.values())
        if len(agendas) > 1:
            raise ValueError("modules that answer later say so in one agenda, not several")
        self._agenda = agendas[0] if agendas else None
        self._running = False
        self._sort: Sort | None = None
        self._classes: Classes | None = None
        for number, module in later.items():
            module.attend(number)
        self._routes = Routes(len(self.modules)) if routes is None else routes
        self._routing: Routing[list[TupleBatch]] = Routing(
            self._routes,
            policy,
            generator,
            list,
            quantum=quantum or MeasuredQuantum(),
            costs=self._costs,
            queues={number: module.queue for number, module in later.items()},
            instrument=instrument,
        )

    def add(self, make: Callable[[int], Module | ConcurrentModule], visit_cost: float = 0.0) -> int:
        """Take one more module, made from the number that it gets; return the number.

        Tuples of the runs to come visit it; what is known of the other modules stays.
        ``visit_cost`` is a guess of its fixed cost a visit, in the clock's unit.
        RuntimeError within a run; ValueError where the routes are those of a join query, or
        the module answers later through another agenda than others.
        """
        self._routing.require_quiet()
        number = self._routes.given
        module = make(number)
        if isinstance(module, Module):
            self._routing.add(self._guessed(visit_cost))
            self._inline[number] = module
        else:
            if self._agenda is not None and self._agenda is not module.agenda:
                raise ValueError("modules that answer later say so in one agenda, not several")
            module.attend(number)
            self._routing.add(self._guessed(visit_cost), module.queue)
            self._agenda = module.agenda
            self._later[number] = module
        self.modules[number] = module
        return number

    def remove(self, number: int) -> None:
        """Let a module go, with its statistics; its number is not given again.

        RuntimeError within a run; ValueError where there is none of that number, or the routes
        are those of a join query.
        """
        self._routing.remove(number)
        del self.modules[number]
        self._inline.pop(number, None)
        self._later.pop(number, None)
        if not self._later:
            self._agenda = None

    @property
    def policy(self) -> Policy:
        """The policy that it asks."""
        return self._routing.policy

    def follow(self, policy: Policy) -> None:
        """Ask another policy from now on, which knows what it brings along."""
        self._routing.follow(policy)

    def sort_by(self, sort: Sort) -> None:
        """Tell tuples apart from now on before they wait, and those that wait already.

        RuntimeError within a run. Tuples that are with modules are told apart as they come back.
        """
        self._require_whole()
        self._sort = sort
        self._routing.follow_routes()
        self._put_again(lambda batches: [part for batch in batches for part in sort(batch)])

    def watch_by(self, classes: Classes) -> None:
        """Tell tuples apart as these classes say, which see the visits."""
        self._classes = classes
        self._sort = classes.sort if classes.active else None

    def _put_again(self, sort: Callable[[Sequence[TupleBatch]], Sequence[TupleBatch]]) -> None:
        """Tell apart the tuples that wait."""
        finished: list[TupleBatch] = []
        waiting = [batch for contents in self._routing.emptied() for batch in contents]
        for part in sort(waiting):
            self._put_sorted(part, len(part), finished)
        if finished:
            raise AssertionError("tuples that waited for a module had none to visit")

    def statistics(self) -> EddyStatistics:
        """Return what the eddy has done so far."""
        return self._routing.statistics()

    def seconds_in(self, module: int) -> float:
        """Return the time spent in a module so far."""
        return self._routing.table.seconds_in(module)

    def spent_in(self, module: int) -> Spent:
        """Return the same, and how much of it in the first visit."""
        return self._routing.table.spent_in(module)

    @property
    def looking_seconds(self) -> float:
        """The time in which classes of tuples were looked for, a part of what routing took."""
        return self._routing.looking_seconds

    def renew(self, clock: Clock, instrument: Instrument | None) -> None:
        """Go on with another clock and another instrument."""
        self._clock = clock
        self._routing.instrument = instrument

    def costs(self) -> LearnedCosts:
        """Return what is known of the costs; the models go on learning."""
        return LearnedCosts(dict(self._costs.models), self._costs.routing_cost)

    @property
    def away(self) -> int:
        """Tuples that are with modules which answer later."""
        return self._routing.away

    def away_at(self, module: int) -> int:
        """Return the tuples that are with one of the modules which answer later."""
        return self._routing.away_at(module)

    @property
    def backlog(self) -> int:
        """Tuples that wait in the eddy, for modules without room."""
        return self._routing.tuples_waiting

    def run(self, batch: TupleBatch) -> list[TupleBatch]:
        """Route a batch of new tuples to the end; return the finished ones, in no set order.

        What was fed before and is not finished is routed to the end as well.
        One run at a time. RuntimeError within another one, and after one that an exception has
        ended: its tuples are still there.
        """
        finished = self.feed(batch)
        while self._routing.away:
            finished += self.advance()
        return finished

    def feed(self, batch: TupleBatch, *, new: bool = True) -> list[TupleBatch]:
        """Take tuples, and route as far as is possible without waiting; return finished ones.

        They are ``new``, or have waited somewhere else than here.

        Other tuples may be with modules that answer later, or wait for room there: see
        :attr:`away` and :meth:`advance`. Raises as :meth:`run` does.
        """
        finished: list[TupleBatch] = []
        if not len(batch) and not self._routing.away:
            self._require_whole()
            return finished
        self._begin()
        if self.witness is not None and new:
            self.witness(None, batch)
        self._put(batch, len(batch), finished)
        if self._routing.away and self._agenda is not None:
            self._collect(self._agenda.poll(), finished)
        self._serve(finished)
        self._ended()
        return finished

    def advance(self) -> list[TupleBatch]:
        """Wait for an answer of a module that answers later, and route on; return finished tuples.

        RuntimeError where no module has anything to answer. Raises as :meth:`run` does.
        """
        if not self._routing.away or self._agenda is None:
            raise RuntimeError("no module has any tuple to answer")
        self._begin()
        finished: list[TupleBatch] = []
        since = self._clock.now()
        answered = self._agenda.wait()
        self._routing.waiting_seconds += self._clock.now() - since
        self._collect(answered, finished)
        self._serve(finished)
        self._ended()
        return finished

    def _begin(self) -> None:
        self._require_whole()
        self._running = True
        self._routing.follow_routes()

    def _ended(self) -> None:
        if not self._routing.away:
            self._routing.learn_routing_cost()
        self._running = False

    def _require_whole(self) -> None:
        if self._running:
            raise RuntimeError("the run before has not ended, or ended by an exception")

    def _serve(self, finished: list[TupleBatch]) -> None:
        """Route until nothing can go on before something comes back.

        Modules that answer later are looked after between visits to those that compute: else
        they would be idle as long as there is anything to compute.
        """
        clock, routing, inline = self._clock, self._routing, self._inline.get
        agenda = self._agenda
        classes = self._classes
        resolution = clock.resolution  # nothing is for nothing, whatever the clock says
        since = clock.now()
        while (departure := routing.depart()) is not None:
            lane, number, tuples, usual = departure
            taken = _take(lane, tuples)
            module = inline(number)
            if module is None:
                self._later[number].offer(taken)
                continue
            started = clock.now()
            tuples_out = 0
            results = module.process(taken)
            for result in results:
                size = len(result)
                tuples_out += size
                if self.witness is not None:
                    self.witness(taken.signature, result)
                self._put(result, size, finished)
            ended = clock.now()
            seconds = max(ended - started, resolution)
            routing.settle(lane, number, usual, tuples, tuples_out, seconds)
            routing.routing_seconds += started - since
            since = ended
            if classes is not None and classes.visited(taken, number, results, seconds):
                self._look(classes)
                since += clock.now() - ended
            if routing.away and agenda is not None and (answered := agenda.poll()):
                self._collect(answered, finished)
        routing.require_work()

    def _look(self, classes: Classes) -> None:
        """Have other classes looked for, and the tuples that wait told apart by them."""
        started = self._clock.now()
        if classes.look(self.costs()):
            self._sort = classes.sort if classes.active else None
            self._put_again(classes.sort_again)
        self._routing.looking_seconds += self._clock.now() - started

    def _collect(self, answered: Sequence[int], finished: list[TupleBatch]) -> None:
        """Take what modules have answered, and let tuples that waited try again."""
        classes, look = self._classes, False
        for number in answered:
            if number not in self._later:  # of another eddy, before, with the same agenda
                continue
            for answer in self._later[number].collect():
                lane = self._routing.lane(answer.signature)
                if lane is None:
                    raise AssertionError(f"{answer.signature} had no module to visit")
                tuples_out = 0
                for result in answer.results:
                    size = len(result)
                    tuples_out += size
                    self._put(result, size, finished)
                self._routing.settle(
                    lane, number, answer.tuples, answer.tuples, tuples_out, answer.cost
                )
                if classes is not None and answer.taken is not None:
                    due = classes.visited(answer.taken, number, answer.results, answer.cost)
                    look = look or due
        if look and classes is not None:
            self._look(classes)
        self._routing.retry()

    def _guessed(self, visit_cost: float) -> CostModel:
        """Return a model that begins with a guess, shared with modules of the same guess."""
        return CostModel(self._typical.setdefault(visit_cost, TypicalVisit(visit_cost)))

    def _put(self, batch: TupleBatch, tuples: int, finished: list[TupleBatch]) -> None:
        if not tuples:
            return
        if self._sort is not None:
            for part in self._sort(batch):
                self._put_sorted(part, len(part), finished)
            return
        self._put_sorted(batch, tuples, finished)

    def _put_sorted(self, batch: TupleBatch, tuples: int, finished: list[TupleBatch]) -> None:
        lane = self._routing.lane(batch.signature)
        if lane is None:
            finished.append(batch)
        else:
            lane.contents.append(batch)
            self._routing.arrive(lane, tuples)


def _take(lane: Lane[list[TupleBatch]], tuples: int) -> TupleBatch:
    batch = concatenate(lane.contents)
    if not lane.tuples:  # these were all
        lane.contents.clear()
        return batch
    taken, rest = batch.cut(tuples)
    lane.contents = [rest]
    return taken
