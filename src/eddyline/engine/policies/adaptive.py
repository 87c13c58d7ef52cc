"""The default policy: least expected cost on conditional statistics, with bounded exploration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eddyline.engine.policies.adaptive_window import AdaptiveWindow
from eddyline.engine.policies.policy import Allotment, no_overhead
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature

EXPLORATION_SHARE = 0.02
"""Share of all cost so far that may go into orders other than the one believed best."""

STALE_PART = 0.5
"""Part of it that refreshes old knowledge although nothing speaks for a better order."""

FIRST_LOOK = 8
"""Tuples that a module gets before anything is decided about it."""

REFRESH = 32
"""Tuples of one look at a module that was not tried for long; enough to tell 10 % from 50 %."""

BORROWED = 16.0
"""Weight, in tuples, of a module's record under other signatures beside that under this one."""

FADED = 1.0
"""Weight, in tuples, left to the other modules' records when one's selectivity has changed.

Four predicates of 500 microseconds that exchange their selectivities every 1,000 rows
take 1.38 times the best orders with the records left alone, 1.13 with 1 tuple.
"""

EXHAUSTIVE = 5
"""Up to so many modules every order is compared; a plan for 5 takes 0.3 ms, for 8 it took 5 ms."""

WORTH_DECIDING = 50.0
"""A decision stands for work of so many times what a visit costs by itself.

Far down a long order a batch leaves a handful of tuples for each of many signatures.
Deciding on every handful took 5 % of the time that eight predicates of 5 microseconds
spent, and the looks and changes of course that came of it spread the tuples even thinner;
so it still takes 4 %.
"""

MOST_VISITS_A_PLAN = 64
"""Visits after which a plan is made anew, at the latest."""

WORTH_SWITCHING = 0.01
"""Part of the cost to the end by which another choice must be better to replace the last one."""

OPTIMISM = 2.0
"""Standard deviations by which a selectivity may be better than it looks."""


class Estimate(NamedTuple):
    """What one module is expected to do to one tuple."""

    cost: float
    selectivity: float
    lowest: float  # the selectivity were it as low as its doubt allows


@dataclass(slots=True)
class Outlook:
    """What the plan expects of tuples of one signature, a tuple, from here to the end."""

    best: int
    cost: float
    optimistic: float  # the same were every doubtful selectivity as low as it may be
    choices: dict[int, tuple[float, float]]  # next module -> expected, optimistic


@dataclass(frozen=True, slots=True)
class Change:
    """A change that the policy has noticed; ``when`` counts the tuples sent until then."""

    when: int
    module: int
    selectivity: tuple[float, float]  # before and after, tuples returned for a tuple given
    cost: tuple[float, float]  # before and after, a tuple


class Look(NamedTuple):
    """A few tuples sent another way than the plan's, to learn."""

    module: int
    tuples: int
    extra: float  # what a tuple is expected to cost more
    visits: int  # until its tuples are where those sent the usual way are
    stale: bool  # to refresh old knowledge, not to settle a doubt


@dataclass(slots=True)
class Cell:
    """What is known of one module for one signature."""

    window: AdaptiveWindow
    sent: int = 0
    last_sent: int = 0


class AdaptivePolicy:
    """Routes to the module with the least expected cost to the end.

    Statistics are conditional: selectivity and cost are kept per (signature,
    module), so a predicate whose rows another one has already picked over is
    judged by what it does to those rows (the correlated case that independent
    ranks get wrong). Where a signature is rarely seen, the module's pooled
    record fills in. The expected cost of an order is that of Krishnamurthy, Boral
    and Zaniolo (1986): cost plus selectivity times the cost of the rest.

    Exploration sends some tuples another way, which costs only the difference
    between the two orders, never a call that no order would make. It is paid for
    from a budget of 2 % of all cost so far: half for choices that could turn out
    better within their statistical doubt, half for those not tried for longest.

    Forgetting is left to :class:`AdaptiveWindow`. When a module changes under one
    signature, its older record under all others is dropped too.
    """

    name = "adaptive"

    new_window: type[AdaptiveWindow] = AdaptiveWindow
    """What remembers the visits; another way of forgetting can be put in its place."""

    def __init__(self, exploration: float = EXPLORATION_SHARE) -> None:
        """Set the share of the cost that exploration may take, 0 for none."""
        self._doubt_share = exploration * (1.0 - STALE_PART)
        self._stale_share = exploration * STALE_PART
        self._doubt_spent = 0.0
        self._stale_spent = 0.0
        self._total_cost = 0.0
        self._cells: dict[tuple[Signature, int], Cell] = {}
        self._sent: list[int] = []  # tuples, by module
        self._now = 0  # all tuples sent so far: the policy's own time
        self._visits = 0
        self._replan_at = 0
        self._plan: dict[Signature, Outlook] = {}
        self._pooled: list[Estimate] = []
        self._chosen: dict[Signature, int] = {}  # the plan's choices until now
        self._standing: dict[Signature, float] = {}  # cost for which they still stand
        self._routes = Routes(0)
        self._overhead: Callable[[int], float] = no_overhead
        self._look: Look | None = None  # what the last decision was, if a look
        self._usual: dict[Signature, int] = {}  # tuples of the last visit that was none
        self.changes: list[Change] = []

    def start(
        self,
        routes: Routes,
        generator: np.random.Generator,  # noqa: ARG002 - decisions follow from the numbers alone
        overhead: Callable[[int], float] = no_overhead,
        *,
        queued: bool = False,  # noqa: ARG002 - waits for the best module, queue or no queue
    ) -> None:
        """Take the routes; what was learned for another eddy over the same modules stays."""
        self._routes = routes
        self._overhead = overhead
        if len(self._sent) != routes.modules:
            self._sent = [0] * routes.modules

    def route(
        self,
        signature: Signature,
        candidates: tuple[int, ...],
        open_: tuple[int, ...],  # noqa: ARG002 - waits for the best module rather than take another
        tuples: int,
    ) -> Allotment | None:
        """Send to the best module, or some tuples to one that is worth a look."""
        self._look = None  # the last decision may have been asked for and not carried out
        if len(candidates) == 1:
            return Allotment(candidates[0], tuples)
        for module in candidates:
            if self._sent[module] < FIRST_LOOK:
                return Allotment(module, min(tuples, FIRST_LOOK))
        if self._standing.get(signature, 0.0) > 0.0:
            return Allotment(self._chosen[signature], tuples)
        outlook = self._outlook(signature)
        self._look = self._doubtful(signature, outlook, tuples) or self._stale(
            signature, outlook, tuples
        )
        if self._look is not None:
            return Allotment(self._look.module, self._look.tuples)
        self._standing[signature] = WORTH_DECIDING * self._overhead(outlook.best)
        return Allotment(outlook.best, tuples)

    def sent(self, signature: Signature, module: int, tuples: int) -> None:
        """Count what is on its way, and reserve what it is expected to cost too much."""
        cell = self._cell(signature, module)
        if self._look is not None and self._look.module == module:
            extra = self._extra(signature, self._look, tuples)
            if self._look.stale:
                self._stale_spent += extra
            else:
                self._doubt_spent += extra
        else:
            self._usual[signature] = tuples
        self._look = None
        cell.sent += tuples
        self._sent[module] += tuples
        self._now += tuples
        cell.last_sent = self._now

    def returned(
        self, signature: Signature, module: int, tuples_in: int, tuples_out: int, cost: float
    ) -> None:
        """Learn from a visit and look for changes."""
        self._visits += 1
        self._total_cost += cost
        if self._chosen.get(signature) == module:
            self._standing[signature] = self._standing.get(signature, 0.0) - cost
        window = self._cell(signature, module).window
        changed_at = window.add(self._now, tuples_in, tuples_out, cost)
        if changed_at is not None:
            self._forget(signature, module, changed_at)
            self._plan.clear()
            self._standing.clear()
        elif self._visits >= self._replan_at:
            # Between changes the estimates only get firmer, so plans may get rarer.
            self._replan_at = self._visits + min(1 + self._visits // 4, MOST_VISITS_A_PLAN)
            self._plan.clear()

    def order(self, signature: Signature = ENTERING) -> tuple[int, ...]:
        """Return the order that the plan now prefers."""
        order: list[int] = []
        while candidates := self._routes.candidates(signature):
            best = candidates[0] if len(candidates) == 1 else self._outlook(signature).best
            order.append(best)
            signature = signature.after(best)
            if self._routes.modules > EXHAUSTIVE:
                return (*order, *self._by_rank(signature))
        return tuple(order)

    # -- exploration ---------------------------------------------------------------

    def _doubtful(self, signature: Signature, outlook: Outlook, tuples: int) -> Look | None:
        """Choose the module that could be better within its doubt, if there is money for it."""
        hopeful = [
            (optimistic, module)
            for module, (_, optimistic) in outlook.choices.items()
            if module != outlook.best and optimistic < outlook.cost
        ]
        if not hopeful:
            return None
        module = min(hopeful)[1]
        # As many again as were tried before: every look halves the doubt left, at least.
        wanted = min(tuples, max(FIRST_LOOK, self._cell(signature, module).sent))
        return self._afford(signature, module, wanted, stale=False)

    def _stale(self, signature: Signature, outlook: Outlook, tuples: int) -> Look | None:
        """Choose the module that was tried longest ago, if there is money for it."""
        if self._left(stale=True) <= 0.0:
            return None
        others = [module for module in outlook.choices if module != outlook.best]
        module = min(others, key=lambda other: self._cell(signature, other).last_sent)
        return self._afford(signature, module, min(tuples, REFRESH), stale=True)

    def _left(self, *, stale: bool) -> float:
        """Return what is left of a budget."""
        if stale:
            return self._stale_share * self._total_cost - self._stale_spent
        return self._doubt_share * self._total_cost - self._doubt_spent

    def _afford(
        self, signature: Signature, module: int, tuples: int, *, stale: bool
    ) -> Look | None:
        """Return a look at up to so many tuples; None where the budget has no room for it."""
        left = self._left(stale=stale)
        if left <= 0.0:
            return None
        outlook = self._outlook(signature)
        extra = outlook.choices[module][0] - outlook.cost
        # One visit at the least. How many there will be takes the whole order, which
        # is not asked for where there is no money for one.
        look = self._cut_down(signature, Look(module, tuples, extra, 1, stale), left)
        if look is None:
            return None
        return self._cut_down(
            signature, look._replace(visits=self.order(signature).index(module)), left
        )

    def _cut_down(self, signature: Signature, look: Look, left: float) -> Look | None:
        """Return a look with as many tuples as ``left`` pays for; None if that is too few."""
        while self._extra(signature, look, look.tuples) > left:
            if look.tuples <= FIRST_LOOK:
                return None
            look = look._replace(tuples=look.tuples // 2)
        return look

    def _extra(self, signature: Signature, look: Look, tuples: int) -> float:
        """Return what a look costs more than sending its tuples the usual way.

        That is ``extra`` a tuple, and visits of its own, as far as they are smaller
        than usual ones, until its tuples have seen what the others have: those of a
        look at the last module of the order stay apart to the end.
        """
        own_visit = max(0.0, 1.0 - tuples / self._usual.get(signature, tuples))
        return tuples * look.extra + own_visit * look.visits * self._overhead(look.module)

    # -- knowledge -----------------------------------------------------------------

    def _cell(self, signature: Signature, module: int) -> Cell:
        cell = self._cells.get((signature, module))
        if cell is None:
            cell = self._cells[signature, module] = Cell(self.new_window())
        return cell

    def _forget(self, signature: Signature, module: int, time: int) -> None:
        """Drop what other signatures know of a module from before it changed.

        A change of selectivity is one of the data and seldom comes alone: what is
        known of the other modules may still hold, but no longer stands against what
        is seen from now on. A change of cost may be a hiccup of the machine.
        """
        alone = not self._cell(signature, module).window.selectivity_changed
        for (other, same), cell in self._cells.items():
            if same != module:
                if not alone:
                    cell.window.fade(FADED)
            elif other != signature:
                cell.window.forget_before(time)
        window = self._cell(signature, module).window
        selectivity, cost = window.before
        self.changes.append(
            Change(
                time,
                module,
                (selectivity, window.returned / window.tuples),
                (cost, window.cost / window.tuples),
            )
        )

    def _estimate(self, signature: Signature, module: int) -> Estimate:
        """Return cost, selectivity and lowest plausible selectivity, a tuple."""
        pooled = self._pooled[module]
        cell = self._cells.get((signature, module))
        tuples = cell.window.tuples if cell is not None else 0.0
        if cell is None or not tuples:
            cost, selectivity = pooled.cost, pooled.selectivity
        else:
            weight = tuples + BORROWED
            cost = (cell.window.cost + BORROWED * pooled.cost) / weight
            selectivity = (cell.window.returned + BORROWED * pooled.selectivity) / weight
        variance = selectivity * max(1.0 - selectivity, 0.0) or selectivity
        # Agresti and Coull's four extra observations keep 0 of 8 from looking certain.
        doubt = math.sqrt((variance + 1.0 / (tuples + 4.0)) / (tuples + 4.0))
        return Estimate(cost, selectivity, max(0.0, selectivity - OPTIMISM * doubt))

    def _pool(self) -> list[Estimate]:
        """Return each module's record over all signatures."""
        sums = [[0.0, 0.0, 0.0] for _ in range(self._routes.modules)]
        for (_, module), cell in self._cells.items():
            total = sums[module]
            total[0] += cell.window.tuples
            total[1] += cell.window.returned
            total[2] += cell.window.cost
        known = sum(total[0] for total in sums)
        typical = sum(total[2] for total in sums) / known if known else 1.0
        return [
            Estimate(cost / tuples if tuples else typical, (returned + 0.5) / (tuples + 1.0), 0.0)
            for tuples, returned, cost in sums
        ]

    # -- plan ----------------------------------------------------------------------

    def _outlook(self, signature: Signature) -> Outlook:
        """Return the plan for a signature with all its choices."""
        if not self._plan:
            self._pooled = self._pool()
        outlook = self._plan.get(signature)
        candidates = self._routes.candidates(signature)
        if outlook is None or len(outlook.choices) < len(candidates):
            choices = {module: self._choice(signature, module) for module in candidates}
            best = min(choices, key=lambda module: choices[module][0])
            usual = self._chosen.get(signature, best)
            # The next best by a hair is not worth a change of course: tuples that went
            # the old way and tuples that go the new way pay visits of their own.
            if choices[usual][0] <= (1.0 + WORTH_SWITCHING) * choices[best][0]:
                best = usual
            self._chosen[signature] = best
            outlook = Outlook(
                best, choices[best][0], min(low for _, low in choices.values()), choices
            )
            self._plan[signature] = outlook
        return outlook

    def _choice(self, signature: Signature, module: int) -> tuple[float, float]:
        """Return expected and optimistic cost to the end when ``module`` comes next."""
        estimate = self._estimate(signature, module)
        following = signature.after(module)
        if not self._routes.candidates(following):
            return estimate.cost, estimate.cost
        expected, optimistic = self._rest(following)
        return (
            estimate.cost + estimate.selectivity * expected,
            estimate.cost + estimate.lowest * optimistic,
        )

    def _rest(self, signature: Signature) -> tuple[float, float]:
        """Return expected and optimistic cost from a signature to the end.

        By the best of all orders where these are few, else in the order of ranks.
        """
        if self._routes.modules <= EXHAUSTIVE or signature in self._plan:
            outlook = self._outlook(signature)
            return outlook.cost, outlook.optimistic
        expected = optimistic = 0.0
        passing = passing_at_best = 1.0
        for module in self._by_rank(signature):
            estimate = self._estimate(signature, module)
            expected += passing * estimate.cost
            optimistic += passing_at_best * estimate.cost
            passing *= estimate.selectivity
            passing_at_best *= estimate.lowest
            signature = signature.after(module)
        return expected, optimistic

    def _by_rank(self, signature: Signature) -> list[int]:
        """Return the modules that are left, best rank first, as far as precedence allows."""
        left = sorted(
            (module for module in range(self._routes.modules) if not signature.done >> module & 1),
            key=lambda module: self._rank(signature, module),
        )
        order: list[int] = []
        while left:
            candidates = self._routes.candidates(signature)
            if len(candidates) == len(left):  # nothing has to wait for anything
                return order + left
            module = next(module for module in left if module in candidates)
            order.append(module)
            left.remove(module)
            signature = signature.after(module)
        return order

    def _rank(self, signature: Signature, module: int) -> float:
        estimate = self._estimate(signature, module)
        return (estimate.selectivity - 1.0) / max(estimate.cost, 1e-12)
