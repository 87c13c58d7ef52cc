"""Rank ordering, re-decided every so many tuples: the policy of the 2004 paper."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eddyline.checked_values import whole_number
from eddyline.engine.policies.policy import Allotment, no_overhead
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature
from eddyline.engine.statistics import StatisticsTable


class RankPolicy:
    """Order the modules of every signature by rank and keep to it for a while.

    Deshpande (2004, Section 2.1.4): estimate the selectivity of every module a
    signature may visit, order by rank (Krishnamurthy, Boral and Zaniolo, 1986:
    selectivity minus one over cost, least first), route by that order until the
    reoptimization frequency says to decide again. Statistics run from the start
    of the run and are per signature; a module that was never visited comes first.

    Where a visit takes more tuples than ``every``, the decisions that fall into
    it are made, one after the other, before it; between them nothing was learned.
    """

    name = "rank"

    def __init__(self, every: int = 100) -> None:
        """Set the reoptimization frequency, in tuples of a signature.

        ValueError or TypeError for what is no whole number from 1 on.
        """
        self._every = whole_number(every, "the reoptimization frequency", 1, "tuples", floats=True)
        self._table = StatisticsTable()
        self._next: dict[Signature, int] = {}  # the decisions in force
        self._left: dict[Signature, int] = {}
        self._routes = Routes(0)
        self._numbers: tuple[int, ...] = ()

    def start(
        self,
        routes: Routes,
        generator: np.random.Generator,  # noqa: ARG002 - nothing here is random
        overhead: Callable[[int], float] = no_overhead,  # noqa: ARG002 - the paper has one frequency for all
        *,
        queued: bool = False,  # noqa: ARG002 - waits for the best module, queue or no queue
    ) -> None:
        """Take the routes; statistics of an earlier eddy stay, and decisions that still stand."""
        if routes.numbers != self._numbers:
            self._next.clear()
            self._left.clear()
            self._table.forget(set(self._numbers).difference(routes.numbers))
        self._routes, self._numbers = routes, routes.numbers

    def route(
        self,
        signature: Signature,
        candidates: tuple[int, ...],
        open_: tuple[int, ...],  # noqa: ARG002 - waits for the best module
        tuples: int,
    ) -> Allotment | None:
        """Send to the first of the order in force."""
        if len(candidates) == 1:
            return Allotment(candidates[0], tuples)
        if self._left.get(signature, 0) <= 0:
            self._next[signature] = self._table.best_rank(signature, candidates)
            self._left[signature] = self._every
        return Allotment(self._next[signature], tuples)

    def sent(self, signature: Signature, module: int, tuples: int) -> None:
        """Count down to the next decision; make those that fell into the visit."""
        candidates = self._routes.candidates(signature)
        if len(candidates) == 1:  # nothing to decide
            return
        left = self._left.get(signature, 0) - tuples
        if left <= -self._every:
            best_rank, chosen = self._table.best_rank, module
            while left <= -self._every:
                chosen = best_rank(signature, candidates)
                left += self._every
            self._next[signature] = chosen
        self._left[signature] = left

    def returned(
        self, signature: Signature, module: int, tuples_in: int, tuples_out: int, cost: float
    ) -> None:
        """Add the visit to the statistics."""
        self._table.record(signature, module, tuples_in, tuples_out, cost)

    def order(self, signature: Signature = ENTERING) -> tuple[int, ...]:
        """Return the order of ranks, each under the signature that it would be met with."""
        order: list[int] = []
        while candidates := self._routes.candidates(signature):
            best = self._table.best_rank(signature, candidates)
            order.append(best)
            signature = self._routes.after(signature, best)
        return tuple(order)
