"""The adaptive policy's plan: what each signature's next choices are expected to cost."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.engine.policies.adaptive_knowledge import Knowledge
from eddyline.engine.routes import Routes
from eddyline.engine.signature import Signature

EXHAUSTIVE = 5
"""Up to so many modules every order is compared; a plan for 5 takes 0.3 ms, for 8 it took 5 ms."""

WORTH_SWITCHING = 0.01
"""Part of the cost to the end by which another choice must be better to replace the last one."""


@dataclass(slots=True)
class Outlook:
    """What the plan expects of tuples of one signature, a tuple, from here to the end."""

    best: int
    cost: float
    optimistic: float  # the same were all that is in doubt as low as it may be
    choices: dict[int, tuple[float, float]]  # next module -> expected, optimistic


class Plan:
    """The expected cost of choices, computed when first asked for, until the next :meth:`renew`.

    The expected cost of an order is that of Krishnamurthy, Boral and Zaniolo
    (1986): cost plus selectivity times the cost of the rest.
    """

    def __init__(self, knowledge: Knowledge, routes: Routes) -> None:
        """Plan by ``knowledge`` along ``routes``."""
        self._knowledge = knowledge
        self._routes = routes
        self._outlooks: dict[Signature, Outlook] = {}
        self._orders: dict[Signature, tuple[int, ...]] = {}

    def renew(self) -> None:
        """Plan anew by what is known now."""
        self._outlooks.clear()
        self._orders.clear()

    def outlook(self, signature: Signature) -> Outlook:
        """Return what is expected for a signature with all its choices."""
        if not self._outlooks:
            self._knowledge.pool()
        outlook = self._outlooks.get(signature)
        if outlook is None:
            candidates = self._routes.candidates(signature)
            choices = {module: self._choice(signature, module) for module in candidates}
            best = min(choices, key=lambda module: choices[module][0])
            station = self._knowledge.station(signature)
            # The next best by a hair is not worth a change of course: tuples that went
            # the old way and tuples that go the new way pay visits of their own.
            if station.chosen in choices:
                expected = choices[station.chosen][0]
                if expected <= (1.0 + WORTH_SWITCHING) * choices[best][0]:
                    best = station.chosen
            station.chosen = best
            optimistic = min(low for _, low in choices.values())
            outlook = Outlook(best, choices[best][0], optimistic, choices)
            self._outlooks[signature] = outlook
        return outlook

    def order(self, signature: Signature) -> tuple[int, ...]:
        """Return the order that is best by what is known."""
        order = self._orders.get(signature)
        if order is None:
            order = self._orders[signature] = self._order(signature)
        return order

    def _order(self, signature: Signature) -> tuple[int, ...]:
        candidates = self._routes.candidates(signature)
        if not candidates:
            return ()
        best = candidates[0] if len(candidates) == 1 else self.outlook(signature).best
        following = self._routes.after(signature, best)
        if self._routes.modules > EXHAUSTIVE:
            return (best, *self._by_rank(following))
        return (best, *self._order(following))

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
        if self._routes.modules <= EXHAUSTIVE or signature in self._outlooks:
            outlook = self.outlook(signature)
            return outlook.cost, outlook.optimistic
        expected = optimistic = 0.0
        passing = passing_at_best = 1.0
        for module in self._by_rank(signature):
            estimate = self._knowledge.estimate(signature, module)
            expected += passing * estimate.cost
            optimistic += passing_at_best * estimate.lowest_cost
            passing *= estimate.selectivity
            passing_at_best *= estimate.lowest_selectivity
            signature = self._routes.after(signature, module)
        return expected, optimistic

    def _by_rank(self, signature: Signature) -> list[int]:
        """Return the modules that are left, best rank first, as far as precedence allows."""
        order: list[int] = []
        while candidates := self._routes.candidates(signature):
            remaining = self._routes.remaining(signature)
            if len(candidates) == len(remaining) and not self._routes.joins:
                # Nothing has to wait for anything.
                return order + sorted(candidates, key=lambda module: self._rank(signature, module))
            module = min(candidates, key=lambda module: self._rank(signature, module))
            order.append(module)
            signature = self._routes.after(signature, module)
        return order

    def _rank(self, signature: Signature, module: int) -> float:
        estimate = self._knowledge.estimate(signature, module)
        return (estimate.selectivity - 1.0) / max(estimate.cost, 1e-12)
