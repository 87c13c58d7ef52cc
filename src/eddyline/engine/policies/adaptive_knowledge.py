"""What the adaptive policy knows: a record for each (signature, module), and their sums.

Over 450 lines: records, their sums by module and by class, and what is known beforehand are one
state, which each visit changes together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from eddyline.engine.policies.adaptive_window import (
    CONFIDENCE,
    AdaptiveWindow,
    Bucket,
    ChangedQuantity,
    DetectedShift,
    surprise,
)
from eddyline.engine.policies.policy import no_overhead
from eddyline.engine.prior import Prior
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature

BORROWED = 32.0
"""Weight, in tuples, of a module's record under other signatures beside that under this one.

Of 8, 16, 32 the last was best by a little on predicates with random costs that
change three times, and made no difference elsewhere.
"""

BORROWED_VISITS = 16.0
"""The same for its cost, in what a visit costs by itself, where tuples cost little beside that.

A probe of a thousand tuples finds the index out of the cache: it measures 80 ns a tuple where
probes of 65,000 take 12. By its own record of one such look the best module looked too expensive
for the rest of a star join; what was seen of it behind others puts that right.
"""

FADED = 0.25
"""Weight, in tuples, left to the other modules' records when one's selectivity has changed.

Eight predicates of 500 microseconds that exchange their selectivities half-way take
1.18 times the best orders with 1 tuple, 1.12 with a quarter; without any the
modules would all look alike.
"""

OF_A_CLASS = 64.0
"""Weight, in tuples, of what was seen of a class's tuples before they were told apart."""

OF_A_CLASS_VISITS = 4.0
"""The same for how far a cost is in doubt, in visits."""

BELIEVED = 1024.0
"""Weight, in tuples, of a selectivity that is known beforehand, beside what is seen of it."""

BELIEVED_COST = 32.0
"""The same of a cost."""

BELIEVED_VISITS = 16.0
"""The same for how far a cost is in doubt, in visits: to within 6 %."""

OVERRULED = 0.1
"""Difference of a selectivity from what was known that speaks against all that was known.

Smaller ones, as between two days, are learned, and no reason to look at everything anew.
"""

OVERRULED_COST = 2.0
"""The same for a cost, as a factor."""

OVERRULED_VISITS = 2
"""Visits in a row that must agree on a higher one; by accident none takes half as long.

In a worker process that has just started not only the first visit takes longer: the second one, of
eight tuples of a function that takes 1 microsecond, took 17 to 75 a tuple.
"""

OPTIMISM = 2.0
"""Standard deviations by which a selectivity or a cost may be better than it looks."""

FIRST_DOUBT = 0.5
"""Standard deviation of the logarithm of a cost that was seen once: a factor of 1.6."""

CHEAPEST = 1e-12
"""Least cost of a tuple, in the clock's unit, so that no cost is nothing."""

STATIONS = 4096
"""Signatures that are remembered from one eddy to the next; a record of one takes some 2 kB."""


class Estimate(NamedTuple):
    """What one module is expected to do to one tuple."""

    cost: float
    selectivity: float
    lowest_cost: float  # were it as low as its doubt allows
    lowest_selectivity: float  # likewise


class SharedKnowledge(NamedTuple):
    """What is known of an operation of a module under all signatures together."""

    cost: float
    selectivity: float
    lowest_cost: float
    lowest_selectivity: float
    weight: float  # of its cost, in tuples, beside what one signature knows
    seen: bool  # it is not all guesses

    @property
    def rank(self) -> float:
        """Return the rank, (selectivity - 1) / cost: what comes first has the least."""
        return (self.selectivity - 1.0) / self.cost


@dataclass(slots=True)
class Sum:
    """Records of one operation, or of all operations of a module."""

    module: int = -1
    bucket: Bucket = field(default_factory=Bucket)
    noise: float = 0.0

    def add(self, bucket: Bucket, noise: float) -> None:
        """Add one more."""
        self.bucket.absorb(bucket)
        self.noise += noise


@dataclass(slots=True)
class ModuleKnowledge:
    """What is known of one module for one signature."""

    window: AdaptiveWindow
    sent: int = 0  # tuples
    last_sent: int = 0  # in the policy's own time


@dataclass(slots=True)
class SignatureKnowledge:
    """What is kept for one signature: where its tuples wait, and are sent on."""

    cells: dict[int, ModuleKnowledge] = field(default_factory=dict)  # by module
    chosen: int = -1  # the last choice, -1 where there was none
    standing: float = 0.0  # cost for which it still stands
    usual: int = 0  # tuples of the last visit that was no look
    doubt_budget: float = 0.0  # what settling doubts may still cost
    stale_budget: float = 0.0  # what refreshing old knowledge may still cost
    last_used: int = 0  # in the policy's own time


class Knowledge:
    """Conditional statistics that fill each other's gaps.

    A cell is the record of a module under one signature. Where it holds few tuples,
    the module's record over all signatures fills in.

    A visit is learned in O(1) time, in signatures and in modules: sums over signatures are kept
    up visit by visit. Only a change, which makes old records void, has them added up again.
    """

    new_window: type[AdaptiveWindow] = AdaptiveWindow
    """What remembers the visits; another way of forgetting can be put in its place."""

    def __init__(self, routes: Routes) -> None:
        self.routes = routes
        self.overhead: Callable[[int], float] = no_overhead  # of a visit to a module
        self.signatures: dict[Signature, SignatureKnowledge] = {}
        self._sums: dict[Hashable, Sum] = {}  # by operation
        self._wholes: dict[int, Sum] = {}  # by module
        self._void = False  # something in the sums is no longer believed
        self._shared: dict[Hashable, SharedKnowledge] = {}  # by operation
        self._unseen: dict[int, SharedKnowledge] = {}  # by module
        self._priors: dict[int, Prior] = {}  # by module, as long as they are believed
        self._believed: dict[int, Bucket] = {}  # what they count as
        self._disagreed: dict[int, float] = {}  # by the cost of the last visits in a row
        self._seen_before: dict[Hashable, Sum] = {}  # of a class, by operation
        self._make_room()

    def believe(self, priors: Mapping[int, Prior]) -> None:
        """Begin with what is known of modules; it counts as a few tuples beside those seen."""
        for module, prior in priors.items():
            if module in self._wholes:
                tuples = min(prior.tuples, BELIEVED)
                cost_tuples = min(prior.tuples, BELIEVED_COST)
                cost = max(prior.cost, CHEAPEST)
                log_cost = math.log(cost)
                self._priors[module] = prior
                self._believed[module] = Bucket(
                    0,
                    BELIEVED_VISITS,
                    tuples,
                    tuples * prior.selectivity,
                    BELIEVED_VISITS,
                    cost_tuples,
                    cost_tuples * cost,
                    BELIEVED_VISITS * log_cost,
                    BELIEVED_VISITS * log_cost * log_cost,
                )

    def tell_apart(self, classes: Sequence[Mapping[int, Prior]]) -> None:
        """Forget the classes of before, and begin with what was seen of the tuples of others."""
        self._void = True
        self.signatures = {s: known for s, known in self.signatures.items() if not s.mark}
        self._seen_before = {}
        for number, priors in enumerate(classes):
            entering = ENTERING._replace(mark=number + 1)
            for module, prior in priors.items():
                tuples = min(prior.tuples, OF_A_CLASS)
                cost = max(prior.cost, CHEAPEST)
                visits = min(OF_A_CLASS_VISITS, tuples)
                log_cost = math.log(cost)
                seen = Bucket(
                    0,
                    visits,
                    tuples,
                    tuples * prior.selectivity,
                    visits,
                    tuples,
                    tuples * cost,
                    visits * log_cost,
                    visits * log_cost * log_cost,
                )
                self._seen_before[self.routes.operation(entering, module)] = Sum(module, seen)

    def believes(self, module: int) -> bool:
        """Tell whether something was known of a module beforehand that still stands."""
        return module in self._believed

    @property
    def believes_any(self) -> bool:
        """Whether something was known of any module beforehand that still stands."""
        return bool(self._believed)

    def overrules(self, module: int, tuples: int, cost: float | None) -> bool:
        """Tell whether a visit, the last that was learned, disproves what was known beforehand.

        It does with all that was seen of the module, or the visits right before. Then nothing of
        all that was known is believed any longer: it seldom changes alone.
        """
        prior = self._priors.get(module)
        if prior is None or self._void:
            return False
        if cost is not None:
            against = _against(prior, tuples, cost, self.overhead(module))
            before = self._disagreed.get(module, 0.0)
            self._disagreed[module] = before + against if against else 0.0
        seldom = self._disagreed.get(module, 0.0) < 1.0
        if seldom and not _is_other_rate(self._wholes[module].bucket, prior):
            return False
        self._priors.clear()
        self._believed.clear()
        for known in self.signatures.values():
            known.standing = 0.0
        return True

    def take_up(self, gone: Collection[int]) -> None:
        """Go on with modules that have come to the routes, and without those that are gone.

        What is known of tuples that have been to these is now what is known of those that have
        been to the others; where both are known, by what was seen last.
        """
        self._make_room()
        if not gone:
            return
        self._void = True
        for module in gone:
            del self._wholes[module], self._unseen[module]
            self._priors.pop(module, None)
            self._believed.pop(module, None)
        left = ~sum(1 << module for module in gone)
        in_time = sorted(self.signatures.items(), key=lambda entry: entry[1].last_used)
        self.signatures = {
            signature._replace(done=signature.done & left): known for signature, known in in_time
        }
        for known in self.signatures.values():
            known.standing = 0.0
            known.cells = {
                number: cell for number, cell in known.cells.items() if number not in gone
            }

    def _make_room(self) -> None:
        for module in self.routes.numbers:
            if module not in self._wholes:
                self._wholes[module] = Sum(module)
                self._unseen[module] = SharedKnowledge(1.0, 0.5, 0.0, 0.0, BORROWED, seen=False)

    def of(self, signature: Signature) -> SignatureKnowledge:
        """Return the record of a signature."""
        known = self.signatures.get(signature)
        if known is None:
            if len(self.signatures) >= 2 * STATIONS:  # of hundreds of modules, in a long task
                self.forget_rare()
            known = self.signatures[signature] = SignatureKnowledge()
        return known

    def cell(self, known: SignatureKnowledge, module: int) -> ModuleKnowledge:
        """Return the record of a module for a signature."""
        cell = known.cells.get(module)
        if cell is None:
            cell = known.cells[module] = ModuleKnowledge(self.new_window())
        return cell

    def learn(
        self, signature: Signature, module: int, now: int, given: int, back: int, cost: float | None
    ) -> DetectedShift | None:
        """Add a visit, None for a cost that means nothing; return the change that it reveals."""
        window = self.cell(self.of(signature), module).window
        visit = Bucket.of_visit(now, given, back, cost)
        noise = window.whole.cost_noise()
        shift = window.add_visit(visit)
        if shift is not None:
            self._void = True
        elif not self._void:
            noise = window.whole.cost_noise() - noise
            operation = self.routes.operation(signature, module)
            if (total := self._sums.get(operation)) is None:
                total = self._sums[operation] = Sum(module)
            total.add(visit, noise)
            self._wholes[module].add(visit, noise)
        return shift

    def estimate(self, signature: Signature, module: int) -> Estimate:
        """Return cost and selectivity, a tuple, and how low they may plausibly be."""
        shared = self.shared(signature, module)
        cost, selectivity = shared.cost, shared.selectivity
        tuples = 0.0
        known = self.signatures.get(signature)
        cell = known.cells.get(module) if known is not None else None
        if cell is not None:
            whole = cell.window.whole
            tuples = whole.tuples
            selectivity = (whole.returned + BORROWED * selectivity) / (tuples + BORROWED)
            cost = (whole.cost + shared.weight * cost) / (whole.cost_tuples + shared.weight)
        lowest_cost = cost * shared.lowest_cost / shared.cost
        if (believed := self._believed.get(module)) is not None:
            tuples += believed.tuples
        return Estimate(cost, selectivity, lowest_cost, _lowest(selectivity, tuples))

    def shared(self, signature: Signature, module: int) -> SharedKnowledge:
        """Return what all signatures together know of what a module does to one of them."""
        known = self._shared.get(self.routes.operation(signature, module))
        return self._unseen[module] if known is None else known

    def pooled_rank(self, signature: Signature, module: int) -> float:
        """Return the rank of a module by what all signatures together know."""
        return self.shared(signature, module).rank

    def shared_by_module(self) -> dict[int, SharedKnowledge]:
        """Return what all signatures together know of each module, where it does but one thing."""
        return {m: self._shared.get(m, unseen) for m, unseen in self._unseen.items()}

    def seen_cost(self, module: int) -> float:
        """Return the cost a tuple that was seen at a module; 0 where none was."""
        self._add_up()
        whole = self._wholes[module].bucket
        return whole.cost / whole.cost_tuples if whole.cost_tuples else 0.0

    def pool(self) -> None:
        """Judge each operation by the records of all signatures."""
        self._add_up()
        typical = Bucket()
        for total in self._wholes.values():
            typical.absorb(total.bucket)
        for believed in self._believed.values():
            typical.absorb(believed)
        self._unseen = {
            module: weighed if module in self._believed else weighed._replace(selectivity=0.5)
            for module, total in self._wholes.items()
            for weighed in (self._weighed(total, typical),)
        }
        self._shared = {
            operation: self._weighed(total, typical) for operation, total in self._sums.items()
        }
        for operation, before in self._seen_before.items():
            self._shared[operation] = self._of_class(before, self._sums.get(operation), typical)

    def _add_up(self) -> None:
        """Add the records up again if something in the sums is no longer believed."""
        if not self._void:
            return
        self._void = False
        self._sums = {}
        self._wholes = {module: Sum(module) for module in self._wholes}
        for signature, known in self.signatures.items():
            for module, cell in known.cells.items():
                operation = self.routes.operation(signature, module)
                noise = cell.window.whole.cost_noise()
                for total in (
                    self._sums.setdefault(operation, Sum(module)),
                    self._wholes[module],
                ):
                    total.add(cell.window.whole, noise)

    def _weighed(self, total: Sum, typical: Bucket) -> SharedKnowledge:
        """Return what a sum says, with what is typical of all modules where it says nothing.

        It counts as one tuple beside those seen. Were that one's selectivity the same for all,
        a half say, the one seen least would look the most selective, and come first.
        """
        bucket = total.bucket
        if (believed := self._believed.get(total.module)) is not None:
            bucket = replace(believed)
            bucket.absorb(total.bucket)
        known = bucket if bucket.cost_tuples else typical
        mean = known.cost / known.cost_tuples if known.cost_tuples else 1.0
        cost = max(mean, CHEAPEST)
        noise = total.noise + FIRST_DOUBT * FIRST_DOUBT
        doubt = math.sqrt(noise) / max(bucket.cost_visits, 1.0)
        # A fan-out is typical of nothing.
        prior = min((typical.returned + 0.5) / (typical.tuples + 1.0), 1.0)
        selectivity = (bucket.returned + prior) / (bucket.tuples + 1.0)
        return SharedKnowledge(
            cost,
            selectivity,
            cost * math.exp(-OPTIMISM * doubt),
            _lowest(selectivity, bucket.tuples),
            max(BORROWED, BORROWED_VISITS * self.overhead(total.module) / cost),
            bucket.tuples > 0.0,
        )

    def _of_class(self, before: Sum, since: Sum | None, typical: Bucket) -> SharedKnowledge:
        """Return what is known of a class: what was seen before it was told apart, and since."""
        total = Sum(before.module)
        total.add(before.bucket, 0.0)
        if since is not None:
            total.add(since.bucket, since.noise)
        return self._weighed(total, typical)

    def forget(self, signature: Signature, module: int, found: DetectedShift) -> None:
        """Drop what other signatures know of a module from before it changed.

        A change of selectivity is one of the data and seldom comes alone: what is
        known of the other modules may still hold, but no longer stands against what
        is seen from now on. A change of cost may be a hiccup of the machine.
        """
        self._void = True
        if found.quantity is ChangedQuantity.SELECTIVITY:
            self._seen_before.clear()
        for other, known in self.signatures.items():
            known.standing = 0.0
            for number, cell in known.cells.items():
                if number == module:
                    if other != signature:
                        cell.window.forget_before(found.quantity, found.when)
                elif found.quantity is ChangedQuantity.SELECTIVITY:
                    cell.window.fade(FADED)

    def forget_rare(self) -> None:
        """Drop the signatures that have gone unseen the longest, if there are too many."""
        if len(self.signatures) > STATIONS:
            latest = sorted(self.signatures.items(), key=lambda entry: entry[1].last_used)
            self.signatures = dict(latest[-STATIONS // 2 :])
            self._void = True


def _lowest(selectivity: float, tuples: float) -> float:
    """Return how low a selectivity that was seen on so many tuples may plausibly be."""
    variance = selectivity * max(1.0 - selectivity, 0.0) or selectivity
    # Agresti and Coull's four extra observations keep 0 of 8 from looking certain.
    doubt = math.sqrt((variance + 1.0 / (tuples + 4.0)) / (tuples + 4.0))
    return max(0.0, selectivity - OPTIMISM * doubt)


def _is_other_rate(seen: Bucket, prior: Prior) -> bool:
    """Tell whether a selectivity differs from what was known by more than chance and a little."""
    if seen.tuples <= 0.0:
        return False
    rate, known = seen.returned / seen.tuples, prior.selectivity
    if abs(rate - known) <= OVERRULED:
        return False
    tested = min(prior.tuples, BELIEVED)
    mean = (seen.returned + tested * known) / (seen.tuples + tested)
    evidence = surprise(seen.tuples, rate, mean) + surprise(tested, known, mean)
    return evidence > -math.log(CONFIDENCE)


def _against(prior: Prior, tuples: int, cost: float, overhead: float) -> float:
    """Return how much the cost of a visit speaks against what was known; 1 is enough.

    It does where it differs by a factor, and by more than the visit costs by itself: eight tuples
    of a cheap function say little else.
    """
    known = max(prior.cost, CHEAPEST) * tuples
    if abs(cost - known) <= overhead:
        return 0.0
    if cost > OVERRULED_COST * known:
        return 1.0 / OVERRULED_VISITS
    return 1.0 if known > OVERRULED_COST * cost else 0.0
