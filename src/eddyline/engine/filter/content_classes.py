"""Rows told apart by what they contain, where modules do other things to each class of them.

After Bizarro, Babu, DeWitt and Widom (Content-Based Routing: Different Plans for Different Data,
VLDB 2005). Theirs profiles a sample of the tuples by all operators, and takes the attribute with
the best gain ratio. Here nothing is asked that would not be asked anyway, and the attribute is the
one whose classes save the most by an order of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.engine.batch import Rows, TupleBatch, as_array
from eddyline.engine.clock import Clock
from eddyline.engine.eddy import LearnedCosts
from eddyline.engine.filter.class_counts import Floats, NotedVisit, Places, Tally, usual_costs
from eddyline.engine.filter.class_evidence import Active, Candidate, Candidates
from eddyline.engine.filter.class_orders import ClassOrders, Split
from eddyline.engine.policies.policy import RoutesByContent
from eddyline.engine.prior import Prior
from eddyline.engine.signature import Signature

MOST_MODULES: Final = 8
"""Modules up to which rows are told apart; of more, a policy weighs only a few by what it knows."""

LOOKING_SHARE: Final = 0.002
"""Share of the time in modules that may be spent on looking for classes."""

WHILE_TOLD_SHARE: Final = 0.004
"""The same while rows are told apart: it saves far more, and may cease to."""

FIRST_SHARE: Final = 0.008
"""The same for the first looks: what they find pays the longer the sooner it is found."""

FIRST_LOOKS: Final = 3

A_LOOK: Final = 0.3e-3
"""Seconds that a look at one column takes, until it is measured."""

A_ROW: Final = 50e-9
"""The same for each row."""

FIRST_ROWS: Final = 512
"""Rows before the first look, the older half of which is compared with the newer one."""

MOST_ROWS: Final = 4096
"""Rows between two looks, at the most; before, each look is at as many as all before together."""

LEAST_SAVING: Final = 0.03
"""Part of the cost that classes must save, beyond doubt, to be told apart."""

NO_ROWS: Final[Places] = np.zeros(0, np.intp)

TELLING: Final = 50e-9
"""Seconds that it takes to tell the class of a row, and to gather it with others of its class."""


@dataclass(frozen=True, slots=True)
class ToldApart:
    """Rows that were told apart by the values of a column, and into how many classes at most."""

    column: int
    classes: int
    rows: int


class ContentClasses:
    """Looks for a column by which rows are worth telling apart, and tells them apart by it.

    The class is a mark in the signature of a tuple, so all that a policy knows is by class.
    Routing alone depends on it: tuples of every class visit the same modules.

    What rows did by bucket of each column is counted from visits that are paid anyway, by looks
    whose time is a small share of that in modules. A look finds the classes of the older rows, and
    takes what these would have saved the newer ones. So nothing is believed that was chance, or
    past. Classes are told apart where that is more than they cost, and no longer when it is not;
    where the policy notices that a selectivity has changed, all that was counted is forgotten.
    """

    def __init__(self, modules: int, precedence: Mapping[int, int]) -> None:
        """``precedence`` has the modules, as a mask, that must come before each."""
        self._modules = modules
        self._precedence = precedence
        self._candidates = Candidates(modules)
        self._active: Active | None = None
        self._looks = 0
        self._rows_a_batch = 0.0
        self._credit = 0.0  # seconds that looks may take
        self._slowness = 1.0  # of looks, as a multiple of what they were expected to take
        self._shifts = 0  # that the policy had noticed
        self._seen = 0  # rows, in the looks so far
        self._fresh = 0  # since the last look
        self._idle = False  # until the next look
        self._wanted = FIRST_ROWS
        self._log: list[NotedVisit] = []  # since the last look
        self._columns: Sequence[pa.Array] = ()  # of the rows at hand
        self._start = 0  # the number of the first of them
        self._classes: Places = NO_ROWS  # of each
        self._shares = np.ones(1)  # of them in each class

    def attach(self, policy: RoutesByContent, clock: Clock) -> None:
        """Serve the eddy that asks this policy."""
        self._policy = policy
        self._clock = clock
        self._told: dict[int, ToldApart] = {}

    @property
    def told_apart(self) -> tuple[ToldApart, ...]:
        """What this eddy's rows were told apart by."""
        return tuple(self._told.values())

    @property
    def active(self) -> bool:
        """Whether rows are told apart now."""
        return self._active is not None

    def begin(self, columns: Sequence[pa.Array], numbers: range) -> None:
        """Take the columns of the rows that come now, and their numbers."""
        self._columns = columns
        self._start = numbers.start
        weight = 0.1 if self._rows_a_batch else 1.0
        self._rows_a_batch += weight * (len(numbers) - self._rows_a_batch)
        self._candidates.take(columns)
        if self._active is not None:
            self._mark_rows(self._active)

    def visited(
        self, taken: TupleBatch, module: int, results: Sequence[TupleBatch], seconds: float
    ) -> bool:
        """Note a visit; tell whether it is time for a look."""
        if not self._candidates:
            return False
        self._credit += self._share * seconds
        if not self._idle and self._fresh < self._wanted:  # more rows than that would cost more
            self._log.append(NotedVisit(module, taken, results, seconds))
        if not taken.signature.done:
            self._fresh += len(taken)
            if taken.signature.mark and self._active is not None:
                self._count_told(self._active, len(taken))
        return self._fresh >= self._wanted and self._credit >= self._expected()

    def look(self, costs: LearnedCosts) -> bool:
        """Look whether other classes are better, or none; tell whether they are others now."""
        usual = usual_costs(costs, self._modules)
        if usual is None:  # some module was hardly visited yet
            self._wanted = self._fresh + FIRST_ROWS
            return False
        started = self._clock.now()
        expected, looked_at = self._expected() / self._slowness, self._looking
        shifts = self._policy.shifts
        changed = False
        if shifts != self._shifts:
            self._shifts = shifts
            self._candidates.forget()
            if self._active is not None:
                self._active.evidence.forget()
            self._log.clear()
            self._seen = self._fresh = 0
            self._wanted = FIRST_ROWS
        else:
            self._count(costs)
            changed = self._judge(costs, usual)
            self._candidates.grow_older()
            if self._active is not None:
                self._active.evidence.grow_older()
            self._seen += self._fresh
            self._wanted = min(self._seen, MOST_ROWS)
            self._fresh = 0
        self._idle = not self._looking
        spent = self._clock.now() - started
        first = not self._looks  # finds everything cold, as no later one does
        self._credit -= expected if first else spent
        self._looks += 1
        if looked_at and not first:
            self._slowness += 0.25 * (spent / expected - self._slowness)
        return changed

    def end(self, costs: LearnedCosts) -> None:
        """Let go of the rows; what they did is counted if there is time for that."""
        if self._log and self._credit >= self._expected():
            started = self._clock.now()
            self._count(costs)
            self._credit -= self._clock.now() - started
        self._log.clear()
        self._columns, self._classes = (), NO_ROWS

    def sort(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Return tuples by class, as far as they are not yet told apart."""
        signature, rows = batch.signature, batch.rows[0]
        if signature.mark or self._active is None or rows is None:
            return (batch,)
        if isinstance(rows, range):
            classes = self._classes[rows.start - self._start : rows.stop - self._start]
        else:
            classes = self._classes[rows - self._start]
        return [
            batch.at(positions, signature._replace(mark=number + 1))
            for number in range(self._active.classes)
            if len(positions := np.flatnonzero(classes == number))
        ]

    def sort_again(self, batches: Sequence[TupleBatch]) -> Sequence[TupleBatch]:
        """Return tuples by the classes of now, whatever they were told apart by before.

        Each in the order in which they came: for all that is known, those of a class would else
        come together where tuples are told apart no longer.
        """
        by_signature: dict[Signature, list[Rows]] = {}
        for batch in batches:
            if (rows := batch.rows[0]) is not None:
                by_signature.setdefault(batch.signature._replace(mark=0), []).append(rows)
        return [
            part
            for signature, of in by_signature.items()
            for part in self.sort(
                TupleBatch(signature, (np.sort(np.concatenate([as_array(rows) for rows in of])),))
            )
        ]

    def _count(self, costs: LearnedCosts) -> None:
        """Count the visits noted, by the buckets of each column.

        At the beginning the older half of them counts as what was known before.
        """
        log, active = self._log, self._active
        if not log:
            return
        self._candidates.prepare(self._columns)
        half = 0 if self._seen else len(log) // 2
        older = Tally(log[:half], self._modules, self._start, costs) if half else None
        newer = Tally(log[half:], self._modules, self._start, costs)
        self._candidates.count(self._columns, older, newer)
        if active is not None:
            if older is not None and not active.evidence.older.rows:
                older.add_to(active.evidence.older, older.of(self._classes))
            newer.add_to(active.evidence.newer, newer.of(self._classes))
        log.clear()

    def _judge(self, costs: LearnedCosts, usual: Floats) -> bool:
        """Tell rows apart as is best by what was counted; return whether that is new."""
        orders = ClassOrders(usual, self._precedence)
        now = 0.0
        if self._active is not None:
            evidence = self._active.evidence
            if not evidence.older.rows:
                return False
            split = orders.as_it_is(evidence.older, evidence.newer, self._shares)
            now = self._worth(split, costs)
            if now + 0.5 * split.doubt < 0.5 * LEAST_SAVING:
                self._tell_apart(None, orders)
                return True
        best = self._best(orders, costs, now)
        if best is None:
            return False
        groups = orders.groups(best.evidence.all())
        classes = int(groups.max()) + 1
        if classes == 1:
            return False
        evidence = best.evidence.together(groups, classes)
        self._tell_apart(Active(best.column, best.buckets, groups, classes, evidence), orders)
        return True

    def _best(self, orders: ClassOrders, costs: LearnedCosts, now: float) -> Candidate | None:
        """Return the column that beyond doubt saves most, by enough more than is saved ``now``."""
        best, most = None, now + LEAST_SAVING
        for candidate in self._candidates.looked_at():
            evidence = candidate.evidence
            if not evidence.older.rows:
                continue
            split = orders.split(evidence.older, evidence.newer)
            worth = self._worth(split, costs)
            if split.classes > 1 and worth - split.doubt > most:
                best, most = candidate, worth - split.doubt
            if worth > LEAST_SAVING:
                candidate.wake()
            else:
                candidate.rest()
        return best

    def _worth(self, split: Split, costs: LearnedCosts) -> float:
        """Return the part of the cost that classes save, less what it costs to have them."""
        a_visit_each = sum(costs.routing_cost + model.per_visit for model in costs.models.values())
        more_visits = (split.classes - 1) * a_visit_each / max(self._rows_a_batch, 1.0)
        return split.saving - (TELLING + more_visits) / split.cost if split.cost > 0.0 else 0.0

    def _tell_apart(self, active: Active | None, orders: ClassOrders) -> None:
        """Tell rows apart in another way from now on; let the policy know what is known of them."""
        self._active = active
        if active is None:
            self._policy.tell_apart(())
            return
        self._mark_rows(active)
        known = active.evidence.all()
        rates = orders.rates(known)

        def prior(number: int, module: int) -> Prior:
            tuples = max(float(known.asked[number, module]), 1.0)
            passed = tuples * float(rates.selectivities[number, module])
            return Prior(tuples, min(passed, tuples), float(rates.costs[number, module]))

        modules = range(self._modules)
        self._policy.tell_apart(
            [{module: prior(n, module) for module in modules} for n in range(active.classes)]
        )

    def _mark_rows(self, active: Active) -> None:
        self._classes = active.groups[active.buckets.of(self._columns[active.column])]
        rows = np.bincount(self._classes, minlength=active.classes)
        self._shares = rows / max(len(self._classes), 1)

    def _expected(self) -> float:
        """Return the seconds that a look is expected to take."""
        return self._slowness * max(self._looking, 1) * (A_LOOK + A_ROW * self._wanted)

    @property
    def _share(self) -> float:
        """The share of the time in modules that looks may take now."""
        if self._looks < FIRST_LOOKS:
            return FIRST_SHARE
        return LOOKING_SHARE if self._active is None else WHILE_TOLD_SHARE

    @property
    def _looking(self) -> int:
        """The columns that take part in the next look."""
        return self._candidates.awake() + self.active

    def _count_told(self, active: Active, rows: int) -> None:
        before = self._told.get(active.column, ToldApart(active.column, 0, 0))
        classes = max(before.classes, active.classes)
        self._told[active.column] = ToldApart(active.column, classes, before.rows + rows)
