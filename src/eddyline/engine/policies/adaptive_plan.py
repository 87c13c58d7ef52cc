"""The adaptive policy's plan: what each signature's next choices are expected to cost."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest

from eddyline.engine.policies.adaptive_knowledge import Knowledge
from eddyline.engine.policies.adaptive_order import WORTH_SWITCHING, Near, PooledOrder
from eddyline.engine.routes import Routes
from eddyline.engine.signature import Signature

EXHAUSTIVE = 5
"""Up to so many modules every order is compared; a plan for 5 takes 0.3 ms, for 8 it took 5 ms."""

HORIZON = 8
"""Of more modules, so many are weighed against each other: those whose turn is next by rank.

What a decision costs would otherwise grow with the square of the modules, or with their cube.
Twelve predicates of random costs take 1.05 times the best orders; with all twelve weighed they
took 1.07.
"""

ROLLOUT = 16
"""Steps for which the rest of a join is thought through."""


@dataclass(slots=True)
class Outlook:
    """What the plan expects of tuples of one signature, a tuple, from here to the end."""

    best: int
    cost: float
    optimistic: float  # the same were all that is in doubt as low as it may be
    choices: dict[int, tuple[float, float]]  # next module -> expected, optimistic
    places: dict[int, int] | None = None  # next module -> place in the order, if it is known


class RoutingPlan:
    """The expected cost of choices, computed when first asked for, until the next :meth:`renew`.

    The expected cost of an order is that of Krishnamurthy, Boral and Zaniolo
    (1986): cost plus selectivity times the cost of the rest.

    An outlook takes O(1) time in the number of modules that a tuple may visit in any order: of
    many, only the next :data:`HORIZON` by pooled rank are compared, by what is known of them
    under the signature. For joins it is linear in the candidates. The first one after
    :meth:`renew` adds up what is known, in O(modules log modules).
    """

    def __init__(self, knowledge: Knowledge, routes: Routes) -> None:
        self._knowledge = knowledge
        self._routes = routes
        self._few = len(routes.numbers) <= EXHAUSTIVE
        self._by_horizon = routes.free and not self._few
        self._pooled = PooledOrder(knowledge, routes.numbers)
        self._known = False  # what is pooled is that of this plan
        self._outlooks: dict[Signature, Outlook] = {}
        self._orders: dict[Signature, tuple[int, ...]] = {}
        self._next: dict[Signature, int] = {}

    def renew(self) -> None:
        """Plan anew by what is known now."""
        self._known = False
        self._outlooks.clear()
        self._orders.clear()
        self._next.clear()

    def outlook(self, signature: Signature) -> Outlook:
        """Return what is expected for a signature, with the choices that are worth weighing."""
        self._pool()
        outlook = self._outlooks.get(signature)
        if outlook is None:
            outlook = self._outlooks[signature] = self._outlook(signature)
        return outlook

    def order(self, signature: Signature) -> tuple[int, ...]:
        """Return the order that is best by what is known."""
        order = self._orders.get(signature)
        if order is None:
            order = self._orders[signature] = self._order(signature)
        return order

    def enter(self, tuples: int) -> None:
        """Count tuples that no module has handled."""
        self._pooled.entered += tuples

    def next(self, signature: Signature) -> int:
        """Return the module that is next by what is known of all signatures together."""
        self._pool()
        return self._pooled.first(signature.done)

    def visits_apart(self, signature: Signature, module: int) -> int:
        """Return how many visits tuples sent to a module first stay apart from the others.

        Those of the last module of the order stay apart to the end, and so do those of one
        that the order has no place for, such as the other lookup of a relation.
        """
        outlook = self.outlook(signature)
        places = outlook.places
        if places is not None:  # in which the best may not be the first by rank
            return places[module] + (places[module] < places[outlook.best])
        order = self.order(signature)
        return order.index(module) if module in order else len(order)

    def _pool(self) -> None:
        """Add up what is known, once a plan."""
        if not self._known:
            self._known = True
            self._knowledge.pool()
            self._pooled.sort()

    def _outlook(self, signature: Signature) -> Outlook:
        usual: int | None = None
        if self._by_horizon:
            near = self._pooled.next(signature.done, HORIZON)
            choices, places = self._horizon(signature, near)
            usual = near.modules[0]
        else:
            candidates = self._near(signature)
            choices = {module: self._choice(signature, module) for module in candidates}
            places = None
        best = min(choices, key=lambda module: choices[module][0])
        known = self._knowledge.of(signature)
        # The next best by a hair is not worth a change of course: tuples that went
        # the old way and tuples that go the new way pay visits of their own.
        last = known.chosen if known.chosen in choices else usual
        if last is not None and choices[last][0] <= (1.0 + WORTH_SWITCHING) * choices[best][0]:
            best = last
        known.chosen = best
        optimistic = min(low for _, low in choices.values())
        return Outlook(best, choices[best][0], optimistic, choices, places)

    def _order(self, signature: Signature) -> tuple[int, ...]:
        if not self._routes.candidates(signature):
            return ()
        if self._by_horizon:
            outlook = self.outlook(signature)
            near = sorted(outlook.choices, key=(outlook.places or {}).__getitem__)
            first = (outlook.best, *(module for module in near if module != outlook.best))
            weighed = frozenset(first)
            beyond = self._pooled.remaining(signature.done)
            return (*first, *(module for module in beyond if module not in weighed))
        order: list[int] = []
        while candidates := self._routes.candidates(signature):
            if len(candidates) == 1:
                best = candidates[0]
            elif self._few or not order:
                best = self.outlook(signature).best
            else:
                best = self._by_rank(signature)
            order.append(best)
            signature = self._routes.after(signature, best)
        return tuple(order)

    def _horizon(
        self, signature: Signature, near: Near
    ) -> tuple[dict[int, tuple[float, float]], dict[int, int]]:
        """Return the choices where any order is allowed, and their places in the order of ranks.

        With ``before`` the cost of what stands before a module in the order, ``reaching`` the
        part of the tuples that come so far, and ``rest`` what is to come behind it, putting it
        first costs ``cost + selectivity * (before + reaching * rest)``: one pass for all.
        """
        weighed = [(module, self._knowledge.estimate(signature, module)) for module in near.modules]
        weighed.sort(key=lambda entry: (entry[1].selectivity - 1.0) / max(entry[1].cost, 1e-12))
        behind = [near.cost_behind]
        for _, estimate in reversed(weighed):
            behind.append(estimate.cost + estimate.selectivity * behind[-1])
        choices: dict[int, tuple[float, float]] = {}
        places: dict[int, int] = {}
        before, reaching = 0.0, 1.0
        for place, (module, estimate) in enumerate(weighed):
            others = before + reaching * behind[len(weighed) - place - 1]
            choices[module] = (
                estimate.cost + estimate.selectivity * others,
                estimate.lowest_cost + estimate.lowest_selectivity * others,
            )
            places[module] = place
            before += reaching * estimate.cost
            reaching *= estimate.selectivity
        for module, place in near.far:
            estimate = self._knowledge.estimate(signature, module)
            choices[module] = (
                estimate.cost + estimate.selectivity * behind[-1],
                estimate.lowest_cost + estimate.lowest_selectivity * behind[-1],
            )
            places[module] = place
        return choices, places

    def _near(self, signature: Signature) -> tuple[int, ...]:
        """Return the candidates worth weighing: all, or of many the best by pooled rank."""
        candidates = self._routes.candidates(signature)
        if self._few or len(candidates) <= HORIZON:
            return candidates
        rank = self._knowledge.pooled_rank
        return tuple(nsmallest(HORIZON, candidates, key=lambda module: rank(signature, module)))

    def _choice(self, signature: Signature, module: int) -> tuple[float, float]:
        """Return expected and optimistic cost to the end when ``module`` comes next."""
        estimate = self._knowledge.estimate(signature, module)
        following = self._routes.after(signature, module)
        if not self._routes.candidates(following):
            return estimate.cost, estimate.lowest_cost
        expected, optimistic = self._rest(following)
        return (
            estimate.cost + estimate.selectivity * expected,
            estimate.lowest_cost + estimate.lowest_selectivity * optimistic,
        )

    def _rest(self, signature: Signature) -> tuple[float, float]:
        """Return expected and optimistic cost from a signature to the end.

        By the best of all orders where these are few, else in the order of ranks.
        """
        if self._few or signature in self._outlooks:
            outlook = self.outlook(signature)
            return outlook.cost, outlook.optimistic
        expected = optimistic = 0.0
        passing = passing_at_best = 1.0
        for _ in range(ROLLOUT):
            if not self._routes.candidates(signature):
                break
            module = self._by_rank(signature)
            estimate = self._knowledge.estimate(signature, module)
            expected += passing * estimate.cost
            optimistic += passing_at_best * estimate.lowest_cost
            passing *= estimate.selectivity
            passing_at_best *= estimate.lowest_selectivity
            signature = self._routes.after(signature, module)
        return expected, optimistic

    def _by_rank(self, signature: Signature) -> int:
        module = self._next.get(signature)
        if module is None:
            near = self._near(signature)
            module = self._next[signature] = min(near, key=lambda m: self._rank(signature, m))
        return module

    def _rank(self, signature: Signature, module: int) -> float:
        estimate = self._knowledge.estimate(signature, module)
        return (estimate.selectivity - 1.0) / max(estimate.cost, 1e-12)
