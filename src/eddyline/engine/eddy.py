"""The eddy: takes tuples, asks the policy, hands them to modules, emits what is finished."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from eddyline.engine.batch import TupleBatch, concatenate
from eddyline.engine.clock import Clock
from eddyline.engine.cost_model import CostModel, TypicalVisit
from eddyline.engine.modules.module import Module
from eddyline.engine.policies.policy import Allotment, Policy
from eddyline.engine.quantum import MeasuredQuantum, Quantum
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature
from eddyline.engine.statistics import EddyStatistics, StatisticsTable

ROUTING_COST_PRIOR = 15e-6
"""Seconds that the eddy itself spends on a visit, until it has measured it.

On a 2 GHz machine it measures 10 to 20 microseconds; too low a guess only makes
the very first quanta too small.
"""


WARM = 8
"""Visits before the eddy believes its own measurement; fewer tell more about the cold start."""


A_VISITS_WORTH = 1024
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
        """See one visit that has ended."""
        ...


@dataclass(frozen=True, slots=True)
class LearnedCosts:
    """What an eddy has measured: a cost model for each module, and its own cost a visit."""

    models: tuple[CostModel, ...]
    routing_cost: float


class VisitCosts:
    """What visits cost: a model for each module, and the eddy's own part.

    A policy asks here, and not the eddy: policies outlive eddies, and must not
    keep alive the data and the user's functions that an eddy holds.
    """

    __slots__ = ("models", "routing_cost")

    def __init__(self, models: tuple[CostModel, ...], routing_cost: float) -> None:
        """Start with what is known."""
        self.models = models
        self.routing_cost = routing_cost

    def overhead(self, module: int) -> float:
        """Return what a visit to a module costs before its first tuple."""
        return self.routing_cost + self.models[module].per_visit


class Waiting:
    """Tuples of one signature in the buffer; ``enough`` of them are worth a visit."""

    __slots__ = ("batches", "depth", "enough", "tuples")

    def __init__(self, batch: TupleBatch, tuples: int, enough: int) -> None:
        """Start with one batch of so many tuples."""
        self.batches = [batch]
        self.tuples = tuples
        self.enough = enough
        self.depth = batch.signature.depth

    def add(self, batch: TupleBatch, tuples: int) -> None:
        """Put another batch behind."""
        self.batches.append(batch)
        self.tuples += tuples


class Eddy:
    """Routes batches of tuples through inline modules until every tuple is finished or gone.

    The buffer holds tuples by signature. Tuples that come back from a module go
    before new ones (Avnur and Hellerstein, 2000, Section 4), so that the buffer
    stays small; but a signature waits while it holds less than a quantum and
    others have more, so that a few survivors do not pay for a visit of their own.

    The eddy does not change answers: it hands a batch only to candidates of
    :class:`~eddyline.engine.routes.Routes` and emits it when there are none left.
    """

    def __init__(
        self,
        modules: Sequence[Module],
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
        """Make an eddy over ``modules``; module numbers are positions in that sequence.

        ``visit_costs`` are guesses of each module's fixed cost a visit, where modules of one
        kind have the same and learn it from each other, and
        ``routing_cost`` one of the eddy's own, in the clock's unit; ``learned``
        replaces both by what another eddy over the same modules has measured.
        """
        self.modules = tuple(modules)
        self.policy = policy
        self._clock = clock
        self._routes = routes or Routes(len(self.modules))
        self._quantum = quantum or MeasuredQuantum()
        guesses = visit_costs or [0.0] * len(self.modules)
        typical = {guess: TypicalVisit(guess) for guess in guesses}
        self._costs = VisitCosts(
            learned.models
            if learned is not None
            else tuple(CostModel(typical[guess]) for guess in guesses),
            routing_cost if learned is None else learned.routing_cost,
        )
        self._buffer: dict[Signature, Waiting] = {}
        # What was enough the last time: so a policy is asked about tuples that are likely
        # to go, and not each time a few more of them come in.
        self._enough: dict[Signature, int] = {}
        self._table = StatisticsTable()
        self._instrument = instrument
        self._visits = 0
        self._work_seconds = 0.0
        self._routing_seconds = 0.0
        self._only_computes = [self._routes.only_computes(m) for m in range(len(self.modules))]
        policy.start(self._routes, generator, self._costs.overhead)

    def statistics(self) -> EddyStatistics:
        """Return what the eddy has done so far."""
        return EddyStatistics(
            self._table.snapshot(), self._visits, self._work_seconds, self._routing_seconds
        )

    def seconds_in(self, module: int) -> float:
        """Return the time spent in a module so far."""
        return self._table.seconds_in(module)

    def renew(self, clock: Clock, instrument: Instrument | None) -> None:
        """Go on with another clock and another instrument."""
        self._clock = clock
        self._instrument = instrument

    def costs(self) -> LearnedCosts:
        """Return what is known of the costs; the models go on learning."""
        return LearnedCosts(self._costs.models, self._costs.routing_cost)

    def run(self, batch: TupleBatch) -> list[TupleBatch]:
        """Route a batch of new tuples to the end; return the finished ones, in no set order."""
        finished: list[TupleBatch] = []
        if not len(batch):
            return finished
        clock, buffer, policy = self._clock, self._buffer, self.policy
        table, instrument = self._table, self._instrument
        resolution = clock.resolution  # nothing is for nothing, whatever the clock says
        self._put(batch, len(batch), finished)
        since = clock.now()
        while buffer:
            signature, (module, tuples), usual = self._choose()
            taken = self._take(signature, tuples)
            tuples_in = len(taken)
            if usual:
                policy.sent(signature, module, tuples_in)
            started = clock.now()
            tuples_out = 0
            for result in self.modules[module].process(taken):
                size = len(result)
                tuples_out += size
                self._put(result, size, finished)
            ended = clock.now()
            seconds = max(ended - started, resolution)
            table.record(signature, module, tuples_in, tuples_out, seconds)
            if usual:
                costs = self._costs.models[module]
                costs.record(tuples_in, seconds)
                cost = costs.fair_share(tuples_in, seconds, usual)
                policy.returned(signature, module, tuples_in, tuples_out, cost)
            if instrument is not None:
                try:
                    instrument.visited(signature, module, tuples_in, tuples_out, seconds)
                except Exception:  # noqa: BLE001 - whatever the observer raises
                    _log.exception("An instrument raised an error and is dropped: %r", instrument)
                    instrument = self._instrument = None
            self._visits += 1
            self._work_seconds += seconds
            self._routing_seconds += started - since
            since = ended
        if self._visits >= WARM:
            self._costs.routing_cost = self._routing_seconds / self._visits
        return finished

    def _put(self, batch: TupleBatch, tuples: int, finished: list[TupleBatch]) -> None:
        signature = batch.signature
        waiting = self._buffer.get(signature)
        if waiting is not None:
            waiting.add(batch, tuples)
        elif self._routes.candidates(signature):
            self._buffer[signature] = Waiting(batch, tuples, self._enough.get(signature, 1))
        else:
            finished.append(batch)

    def _choose(self) -> tuple[Signature, Allotment, int]:
        """Return the signature to serve, module and number of tuples, and the usual number.

        A build is no decision: there is no usual number of tuples for it, and neither the
        policy nor the model of the module's cost is told, which are about probes.
        """
        while True:
            signature, ready = self._next_signature()
            waiting = self._buffer[signature]
            candidates = self._routes.candidates(signature)
            if self._routes.is_build(signature, candidates[0]):
                return signature, Allotment(candidates[0], waiting.tuples), 0
            allotment = self.policy.route(signature, candidates, candidates, waiting.tuples)
            if allotment is None:
                message = f"policy {self.policy.name} waits, but no module is busy"
                raise RuntimeError(message)
            module, allotted = allotment
            costs = self._costs.models[module]
            cost = costs.per_tuple
            if cost is None and self._only_computes[module]:
                cost = self._costs.overhead(module) / A_VISITS_WORTH
            quantum = self._quantum.size(cost, costs.per_visit, self._costs.routing_cost)
            if not ready or waiting.tuples >= quantum or signature.depth == ENTERING.depth:
                # As long as nothing is known the usual visit is one of all there are.
                usual = waiting.tuples if costs.per_tuple is None else min(quantum, waiting.tuples)
                self._enough[signature] = quantum
                return signature, Allotment(module, min(quantum, allotted)), usual
            waiting.enough = self._enough[signature] = quantum

    def _next_signature(self) -> tuple[Signature, bool]:
        """Return the deepest signature with enough tuples for a visit, and that it has.

        If none has, the one that is farthest behind: so its tuples catch up with those of
        others, and the visits from there on are shared.
        """
        best: Signature | None = None
        depth = -1
        for signature, waiting in self._buffer.items():
            if waiting.tuples >= waiting.enough and waiting.depth > depth:
                best, depth = signature, waiting.depth
        if best is not None:
            return best, True
        return min(self._buffer, key=lambda signature: self._buffer[signature].depth), False

    def _take(self, signature: Signature, tuples: int) -> TupleBatch:
        waiting = self._buffer[signature]
        batch = concatenate(waiting.batches)
        if tuples >= waiting.tuples:
            del self._buffer[signature]
            return batch
        taken, rest = batch.cut(tuples)
        waiting.batches = [rest]
        waiting.tuples -= tuples
        waiting.enough = self._enough[signature]
        return taken
