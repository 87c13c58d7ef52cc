"""The default policy: least expected cost on conditional statistics, with bounded exploration.

Over 500 lines, a sixth of which are constants with their reasons. What it knows, plans and forgets
is in ``adaptive_knowledge.py``, ``adaptive_plan.py`` and ``adaptive_window.py``; what is left, when
to look and where tuples go together, is one decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eddyline.checked_values import share, switch
from eddyline.engine.policies.adaptive_knowledge import Knowledge, SignatureKnowledge
from eddyline.engine.policies.adaptive_plan import Outlook, RoutingPlan
from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.engine.policies.policy import Allotment, no_overhead
from eddyline.engine.prior import Prior
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature

COMPANY = 32
"""Of many modules, tuples go first where others have been, so large a part of them at least.

Where as many others are asked for, 300 cheap predicates on a noisy clock take twice the visits.
"""


class Company:
    """Which modules the tuples that came new together have been to, and how many of them.

    Tuples parted from the others, as by a look or a change of the order, come together
    with them again when all have been to the same modules. By the common order alone a
    thousand cheap predicates fell into dozens of small groups where the clock was noisy,
    which never met again before the end: 37,000 visits instead of 4,000.
    """

    def __init__(self) -> None:
        self._visitors: dict[int, int] = {}  # tuples, by module
        self._visited_by: list[int] = []  # the modules that 1, 2, 4, … and more went to, as bits

    def new(self) -> None:
        """Begin with tuples that come new."""
        self._visitors.clear()
        self._visited_by.clear()

    def went(self, module: int, tuples: int) -> None:
        """Count tuples that have been to a module."""
        before = self._visitors.get(module, 0)
        after = self._visitors[module] = before + tuples
        while len(self._visited_by) <= after.bit_length():
            self._visited_by.append(0)
        for length in range(before.bit_length(), after.bit_length() + 1):
            self._visited_by[length] |= 1 << module

    def ahead(self, signature: Signature, tuples: int) -> Signature:
        """Return the signature with only the modules left that enough others have been to.

        How many are enough depends on ``tuples``; where there is no such module, the signature
        is returned as it is.
        """
        modules = 0
        wanted = (tuples // COMPANY).bit_length()
        if wanted < len(self._visited_by):
            modules = self._visited_by[wanted] & ~signature.done
        return signature._replace(done=~modules) if modules else signature


EXPLORATION_SHARE = 0.02
"""Share of all cost so far that may go into orders other than the one believed best."""

FIRST_SHARE = 0.1
"""Share of all cost so far that may go into first looks at modules whose turn has not come.

Of twenty predicates of random costs and selectivities, the best may stand where no tuple comes
that the others left. Over 40,000 rows they take 1.10 times the best orders with a tenth, 1.15
with next to nothing.
"""

STALE_PART = 0.5
"""Part of it that refreshes old knowledge although nothing speaks for a better order."""

FIRST_LOOK = 8
"""Tuples that a module gets before anything is decided about it."""

SETTLED = 0.1
"""Part of the cost to the end by which a choice may turn out better to be in doubt beforehand.

As long as what was known of modules beforehand stands: two that are as good as each other within
what is known of them would else be compared again in every query.
"""

FRESH = 50_000
"""Tuples after which what was known beforehand is as old as what this eddy has not seen for long.

Until then it is refreshed the more the older it is.
"""

LONG_LOOK = 1024
"""Tuples of the first look at a module whose visits cost more than these tuples do.

Eight tuples of a join say little of its fan-out, and cost hardly less than a thousand.
"""

REFRESH = 32
"""Tuples of one look at a module that was not tried for long; enough to tell 10 % from 50 %."""

SHORT = 16
"""Tuples of a decision at the start of a task and after a change of selectivity, at least.

From then on a decision may stand for as many as were sent since, so that what
has become wrong is seen early. Four predicates of 50 microseconds that exchange
their selectivities half-way take 1.08 times the best orders, without it 1.09; with eight
of random costs 1.19 and 1.27 (a visit costing 400 microseconds by itself).
"""

SHORT_OVERHEAD = 0.25
"""Part of a decision's work that its visit may cost by itself where decisions are short.

A pandas function that does 10,000 rows in a millisecond is not tried on 16.
"""

WORTH_DECIDING = 50.0
"""A decision stands for work of so many times what a visit costs by itself.

Far down a long order a batch leaves a handful of tuples for each of many signatures.
Deciding on every handful takes time, and the looks and changes of course that come
of it spread the tuples even thinner.
"""

MANY = 16
"""More modules than these are first looked at by one group of tuples that visits them in turn.

Fewer all get a look of their own, by which the best are known sooner: twelve of random costs
take 1.05 times the best orders, otherwise 1.07. But the groups go their ways apart, in half
as many visits as the square of the modules.
"""

PLAN_OVERHEADS = 2.0
"""A plan for many modules stands for the work of so many visits' overheads, for each of them.

Making it takes time in proportion to them.
"""

MOST_VISITS_A_PLAN = 64
"""Visits after which a plan is made anew, at the latest."""


@dataclass(frozen=True, slots=True)
class NoticedChange:
    """A change that the policy has noticed; ``when`` counts the tuples sent until then."""

    when: int
    module: int
    quantity: ChangedQuantity
    before: float
    after: float


@dataclass(slots=True)
class Explored:
    """Tuples that were sent another way than the plan's, to learn, by reason."""

    first: int = 0
    """To see something of a module before anything is decided about it."""
    doubtful: int = 0
    """To settle whether another choice is better."""
    stale: int = 0
    """To see again what was not tried for long."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.first + self.doubtful + self.stale


class Look(NamedTuple):
    """A few tuples sent another way than the plan's, to learn."""

    module: int
    tuples: int
    extra: float  # what a tuple is expected to cost more
    usual: int  # tuples of a visit that is no look
    visits: int  # until its tuples are where those sent the usual way are
    stale: bool  # to refresh old knowledge, not to settle a doubt


class AdaptivePolicy:
    """Routes to the module with the least expected cost to the end.

    Statistics are conditional: selectivity and cost are kept per (signature,
    module), so a predicate whose rows another one has already picked over is
    judged by what it does to those rows (the correlated case that independent
    ranks get wrong). Where a signature is rarely seen, the module's pooled
    record fills in.

    Exploration sends some tuples another way, which costs only the difference
    between the two orders, never a call that no order would make. It is paid for
    from a budget of 2 % of what the tuples of that signature have cost so far: half
    for choices that could turn out better within their statistical doubt, half
    for those not tried for longest. What a signature does not spend it keeps: after a
    change, when much is in doubt at once, there is something to spend.

    Forgetting is left to :class:`~eddyline.engine.policies.adaptive_window.AdaptiveWindow`.
    When a module changes under one signature, its older record under all others
    is dropped too, and what is known of the other modules loses its weight.
    """

    name = "adaptive"

    new_knowledge: type[Knowledge] = Knowledge
    """What is learned from visits; something simpler can be put in its place."""

    def __init__(self, exploration: float = EXPLORATION_SHARE, *, by_content: bool = True) -> None:
        """``exploration`` is the share of the cost that looks at other orders take; 0 for none.

        With ``by_content`` it wants tuples to be told apart by their values where that pays.
        ValueError or TypeError for what is no share, from 0 to 1, or no switch.
        """
        exploration = share(exploration, "exploration")
        self.by_content = switch(by_content, "by_content")
        self.shifts = 0  # changes of selectivities noticed so far
        self._classes = 1
        self._doubt_share = exploration * (1.0 - STALE_PART)
        self._stale_share = exploration * STALE_PART
        self._overhead: Callable[[int], float] = no_overhead
        self._now = 0  # all tuples sent so far: the policy's own time
        self._spent = 0.0  # what they have cost
        self._decided = 0  # tuples sent so far for which there was a choice
        self._doubted_at = 0  # of these, when there last was reason to doubt everything
        self._visits = 0  # since the last change
        self._replan_at = 0
        self._look: Look | None = None  # what the last decision was, if a look
        self.changes: list[NoticedChange] = []  # that were noticed for this eddy
        self.explored = Explored()  # for this eddy
        self._learn_anew(Routes(0))

    def _learn_anew(self, routes: Routes) -> None:
        """Start with nothing known of the modules of some routes."""
        self._knowledge = self.new_knowledge(routes)
        self._plan = RoutingPlan(self._knowledge, routes)
        self._work = 0.0  # since the last plan
        self._first_budget = 0.0  # what first looks out of turn may cost, of many modules
        self._out_of_turn = -1  # the module of the last decision, if it was such a look
        self._sent: list[int] = []  # tuples, by module
        self._company = Company()
        # The first call may load a model or open a connection: what it costs is never
        # seen again. It is one tuple's, and its cost is not learned.
        self._warm: list[bool] = []
        self._only_computes: list[bool] = []
        self._unlooked = 0  # the modules to see more of at first, as bits
        self._numbers: tuple[int, ...] = ()
        self._take_up(routes)

    def _take_up(self, routes: Routes) -> None:
        """Take note of modules that have come, and forget those that are gone."""
        new = range(len(self._sent), routes.given)
        self._sent.extend(0 for _ in new)
        self._warm.extend(False for _ in new)
        self._only_computes.extend(map(routes.only_computes, new))
        here = sum(1 << module for module in routes.numbers)
        self._unlooked = (self._unlooked | sum(1 << module for module in new)) & here
        self._company.new()
        self._many = routes.free and len(routes.numbers) > MANY
        self._numbers = routes.numbers

    def start(
        self,
        routes: Routes,
        generator: np.random.Generator,  # noqa: ARG002 - decisions follow from the numbers alone
        overhead: Callable[[int], float] = no_overhead,
        *,
        queued: bool = False,  # noqa: ARG002 - waits for the best module, queue or no queue
    ) -> None:
        """Take the routes; what was learned for another eddy over the same modules stays."""
        self._overhead = overhead
        self._doubted_at = self._decided
        if routes is self._knowledge.routes:
            gone = set(self._numbers).difference(routes.numbers)
            self._take_up(routes)
            self._knowledge.take_up(gone)
        else:
            self.changes = []
            self.explored = Explored()
            if routes.numbers != self._numbers:
                self._learn_anew(routes)
            self._knowledge.routes = routes
        self._knowledge.overhead = overhead
        self._knowledge.forget_rare()
        self._plan = RoutingPlan(self._knowledge, routes)

    def believe(self, priors: Mapping[int, Prior]) -> None:
        """Begin with what is known of modules: they need no first look."""
        known = sum(1 << module for module in priors)
        self._unlooked &= ~known
        self._knowledge.believe(priors)
        self._plan.renew()

    def tell_apart(self, classes: Sequence[Mapping[int, Prior]]) -> None:
        """Begin anew with tuples told apart, each class by what was seen of its tuples before."""
        self._classes = max(len(classes), 1)
        self._knowledge.tell_apart(classes)
        self._plan.renew()

    def route(
        self,
        signature: Signature,
        candidates: tuple[int, ...],
        open_: tuple[int, ...],  # noqa: ARG002 - waits for the best module rather than take another
        tuples: int,
    ) -> Allotment | None:
        """Send to the best module, or some tuples to one that is worth a look."""
        self._look = None  # the last decision may have been asked for and not carried out
        self._out_of_turn = -1
        if len(candidates) == 1:
            return Allotment(candidates[0], tuples)
        if self._unlooked:
            for module in self._to_look_at(signature, candidates, tuples):
                wanted = self._first_look(module)
                if wanted > 0:
                    return Allotment(module, min(tuples, wanted))
                self._unlooked &= ~(1 << module)
            self._out_of_turn = -1
        known = self._knowledge.of(signature)
        if self._many and not known.cells:
            # By what is known under this signature, which is nothing, the order would be the same.
            known.chosen = self._plan.next(self._company.ahead(signature, tuples))
        elif known.standing <= 0.0:
            outlook = self._plan.outlook(signature)
            self._look = self._doubtful(signature, known, outlook, tuples) or self._stale(
                signature, known, outlook, tuples
            )
            if self._look is not None:
                return Allotment(self._look.module, self._look.tuples)
            known.standing = WORTH_DECIDING * self._overhead(outlook.best)
            if self._many:
                known.chosen = self._on_the_way(signature, outlook, tuples, len(candidates))
        return Allotment(known.chosen, self._trusted(signature, known.chosen, tuples))

    def sent(self, signature: Signature, module: int, tuples: int) -> None:
        """Count what is on its way, and reserve what it is expected to cost too much."""
        known = self._knowledge.of(signature)
        look = self._look
        if look is None or look.module != module:
            if not self._unlooked >> module & 1:
                known.usual = tuples
            else:
                self.explored.first += tuples
        else:
            extra = self._extra(look, tuples)
            if look.stale:
                known.stale_budget -= extra
                self.explored.stale += tuples
            else:
                known.doubt_budget -= extra
                self.explored.doubtful += tuples
        self._look = None
        if self._out_of_turn == module:
            seen = len(self._numbers) - self._unlooked.bit_count()
            own_visits = 0.5 * seen * self._overhead(module)  # as if it came to stand in the middle
            self._first_budget -= own_visits + tuples * self._spent / self._now
        self._out_of_turn = -1
        self._sent[module] += tuples
        self._now += tuples
        if not signature.done:
            self._plan.enter(tuples)
            self._company.new()
        if self._many:
            self._company.went(module, tuples)
        if len(self._knowledge.routes.candidates(signature)) > 1:
            self._decided += tuples
        cell = self._knowledge.cell(known, module)
        cell.sent += tuples
        cell.last_sent = known.last_used = self._now

    def returned(
        self, signature: Signature, module: int, tuples_in: int, tuples_out: int, cost: float
    ) -> None:
        """Learn from a visit and look for changes."""
        known = self._knowledge.of(signature)
        known.doubt_budget += self._doubt_share * cost
        known.stale_budget += self._stale_share * cost * self._age()
        self._first_budget += FIRST_SHARE * cost
        self._spent += cost
        if known.chosen == module:
            known.standing -= cost
        learned = cost if self._warm[module] else None
        shift = self._knowledge.learn(signature, module, self._now, tuples_in, tuples_out, learned)
        self._warm[module] = True
        self._visits += 1
        if shift is not None:
            self._knowledge.forget(signature, module, shift)
            self.changes.append(
                NoticedChange(shift.when, module, shift.quantity, shift.before, shift.after)
            )
            if shift.quantity is ChangedQuantity.SELECTIVITY:
                self._doubted_at = self._decided
                self.shifts += 1
            self._visits = self._replan_at = 0
        if self._knowledge.overrules(module, tuples_in, learned):
            self._unlooked |= sum(1 << number for number in self._numbers if not self._sent[number])
            self._doubted_at = self._decided
            self._visits = self._replan_at = 0
        self._work += cost
        if self._visits >= self._replan_at and self._work >= self._worth_a_plan(module):
            # Between changes the estimates only get firmer, so plans may get rarer.
            most = self._classes * MOST_VISITS_A_PLAN
            self._replan_at = self._visits + min(1 + self._visits // 4, most)
            self._work = 0.0
            self._plan.renew()

    def order(self, signature: Signature = ENTERING) -> tuple[int, ...]:
        """Return the order that the plan now prefers."""
        return self._plan.order(signature)

    def _age(self) -> float:
        """Return how old is what is known, 1 for what was not known beforehand."""
        return min(self._now / FRESH, 1.0) if self._knowledge.believes_any else 1.0

    def _worth_a_plan(self, module: int) -> float:
        """Return the work that a plan must stand for: making it takes longer the more modules."""
        return PLAN_OVERHEADS * len(self._numbers) * self._overhead(module) if self._many else 0.0

    def _to_look_at(
        self, signature: Signature, candidates: tuple[int, ...], tuples: int
    ) -> Iterator[int]:
        """Yield the candidates to be seen more of before anything is decided.

        Of many, only the one whose turn it is, as long as there is no money for more: if each
        were looked at by new tuples, these would go separate ways, in as many visits as the
        square of the modules.
        """
        if not self._many:
            yield from (module for module in candidates if self._unlooked >> module & 1)
            return
        following = self._plan.next(self._company.ahead(signature, tuples))
        if self._unlooked >> following & 1:
            yield following
        while self._first_budget > 0.0 and (left := self._unlooked & ~signature.done):
            self._out_of_turn = (left & -left).bit_length() - 1
            yield self._out_of_turn

    def _first_look(self, module: int) -> int:
        """Return how many tuples more a module gets before anything is decided about it.

        One, which may have to wait for a model to load, then a few; and then as many as cost
        what a visit costs by itself. Where nothing is called it is known beforehand that these
        are many: as many at once, and once more, since the first ones had to wait for an index.
        """
        sent = self._sent[module]
        if self._only_computes[module] and sent <= LONG_LOOK:
            return LONG_LOOK
        if sent < FIRST_LOOK:
            return FIRST_LOOK if sent else 1
        cost = self._knowledge.seen_cost(module)
        wanted = round(min(self._overhead(module) / cost, LONG_LOOK)) if cost else 0
        return 0 if wanted < 2 * sent else wanted - sent  # a few more are not worth another visit

    def _on_the_way(
        self, signature: Signature, outlook: Outlook, tuples: int, candidates: int
    ) -> int:
        """Return the best module if it is worth leaving the common order for, else its next one.

        Tuples that visit a module before its turn may not meet the others again before the end:
        then they pay for visits of their own to all modules that are left.
        """
        usual = self._plan.next(self._company.ahead(signature, tuples))
        best = outlook.best
        if usual not in outlook.choices or self._unlooked >> best & 1:
            return usual
        saved = tuples * (outlook.choices[usual][0] - outlook.choices[best][0])
        apart = candidates * self._overhead(best)
        return best if saved > apart else usual

    def _trusted(self, signature: Signature, module: int, tuples: int) -> int:
        """Return for how many of so many tuples a decision may stand."""
        if not self._warm[module] and self._knowledge.believes(module):
            return 1  # as of a first look
        trusted = self._decided - self._doubted_at
        if trusted >= tuples:
            return tuples
        return min(tuples, max(trusted, self._short(signature, module)))

    def _short(self, signature: Signature, module: int) -> int:
        """Return the tuples of the shortest decision that is worth its visit."""
        cost = self._knowledge.estimate(signature, module).cost
        return max(SHORT, round(self._overhead(module) / (SHORT_OVERHEAD * cost)))

    def _doubtful(
        self, signature: Signature, known: SignatureKnowledge, outlook: Outlook, tuples: int
    ) -> Look | None:
        """Choose the module that could be better within its doubt, if there is money for it."""
        if known.doubt_budget <= 0.0:
            return None
        believes = self._knowledge.believes
        settled = (1.0 - SETTLED) * outlook.cost if believes(outlook.best) else outlook.cost
        hopeful = [
            (optimistic, module)
            for module, (_, optimistic) in outlook.choices.items()
            if module != outlook.best
            and optimistic < (settled if believes(module) else outlook.cost)
        ]
        if not hopeful:
            return None
        module = min(hopeful)[1]
        # As many again as were tried before: every look halves the doubt left, at least.
        wanted = min(tuples, max(FIRST_LOOK, self._knowledge.cell(known, module).sent))
        return self._afford(signature, known, module, wanted, tuples, stale=False)

    def _stale(
        self, signature: Signature, known: SignatureKnowledge, outlook: Outlook, tuples: int
    ) -> Look | None:
        """Choose the module that was tried longest ago, if there is money for it."""
        if known.stale_budget <= 0.0:
            return None
        others = [module for module in outlook.choices if module != outlook.best]
        module = min(others, key=lambda other: self._knowledge.cell(known, other).last_sent)
        wanted = min(tuples, REFRESH)
        return self._afford(signature, known, module, wanted, tuples, stale=True)

    def _afford(
        self,
        signature: Signature,
        known: SignatureKnowledge,
        module: int,
        wanted: int,
        waiting: int,
        *,
        stale: bool,
    ) -> Look | None:
        """Return a look at up to so many tuples; None where the budget has no room for it."""
        outlook = self._plan.outlook(signature)
        left = known.stale_budget if stale else known.doubt_budget
        extra = max(0.0, outlook.choices[module][0] - outlook.cost)  # the best may be one of habit
        visits = self._plan.visits_apart(signature, module)
        look = Look(module, wanted, extra, known.usual or waiting, visits, stale)
        while self._extra(look, look.tuples) > left:
            if look.tuples <= FIRST_LOOK:
                return None
            look = look._replace(tuples=look.tuples // 2)
        return look

    def _extra(self, look: Look, tuples: int) -> float:
        """Return what a look costs more than sending its tuples the usual way.

        That is ``extra`` a tuple, and visits of its own, as far as they are smaller
        than usual ones, until its tuples have seen what the others have: those of a
        look at the last module of the order stay apart to the end.
        """
        own_visit = max(0.0, 1.0 - tuples / look.usual)
        return tuples * look.extra + own_visit * look.visits * self._overhead(look.module)
