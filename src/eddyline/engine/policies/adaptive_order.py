"""The modules in the order of what all signatures together know of them, to look things up in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from eddyline.engine.policies.adaptive_knowledge import Knowledge, SharedKnowledge

WORTH_SWITCHING = 0.01
"""Part of the cost to the end by which another choice must be better to replace the last one."""


class Near(NamedTuple):
    """What a decision weighs, of the modules that a tuple has yet to visit."""

    modules: tuple[int, ...]  # those next by rank
    far: tuple[tuple[int, int], ...]  # a few behind them, with their places in the order
    cost_behind: float  # of visiting those behind ``modules``, a tuple that comes so far


class PooledOrder:
    """All modules, best pooled rank first, for routes on which any order is allowed.

    Sorting takes O(modules log modules); where a tuple stands is found by bisection over the
    sets of the first 1, 2, … modules, as bit masks, in O(log modules).
    """

    def __init__(self, knowledge: Knowledge, modules: Iterable[int]) -> None:
        """Nothing may be asked before :meth:`sort` was called."""
        self._knowledge = knowledge
        self._ranked = list(modules)
        self._place = {module: place for place, module in enumerate(self._ranked)}
        self._hopeful = list(self._ranked)  # by what they may be at the best
        self._first: list[int] = []  # the sets of the first 0, 1, 2, … of them
        self._hopeful_first: list[int] = []
        self._cost_from: list[float] = []  # expected, from each place to the end
        self._turn = 0
        self.entered = 0  # tuples that came new since the last look at the order
        self._missed = 0.0  # what another order would have saved since this one stands

    def sort(self) -> None:
        """Put the modules in the order of what is known now, if that is worth a change of course.

        Those about which nothing is known come last, as written: others need not wait for them.
        Tuples that went the old way and tuples that go the new way visit every module apart.
        So the order changes when the better one would by now have saved as much as that costs,
        and some part of the work: among a hundred cheap predicates the noise of the clock
        would have another one first each time.
        """
        knowledge = self._knowledge
        shared = knowledge.shared_by_module()
        self._hopeful.sort(
            key=lambda module: (
                (shared[module].lowest_selectivity - 1) / max(shared[module].lowest_cost, 1e-12)
            )
        )
        self._hopeful_first = _sets(self._hopeful)
        best = sorted(
            self._ranked, key=lambda module: shared[module].rank if shared[module].seen else 0.0
        )
        cost = _costs_from(best, shared)
        as_it_is = _costs_from(self._ranked, shared)
        self._missed += (as_it_is[0] - cost[0]) * self.entered
        self.entered = 0
        apart = sum(map(knowledge.overhead, best))
        if self._first and (
            self._missed <= apart or as_it_is[0] <= (1.0 + WORTH_SWITCHING) * cost[0]
        ):
            self._cost_from = as_it_is
            return
        self._missed = 0.0
        self._cost_from = cost
        self._ranked = best
        for place, module in enumerate(best):
            self._place[module] = place
        self._first = _sets(best)

    def first(self, done: int) -> int:
        """Return the first module that is not done."""
        return self._ranked[_first_not_done(self._first, done)]

    def next(self, done: int, count: int) -> Near:
        """Return the next ``count`` modules that are not done, and up to two that stand behind.

        These are the one that may turn out the best of all, and one of the others, each in
        its turn, so that none is out of sight for good.
        """
        place = start = _first_not_done(self._first, done)
        near: list[int] = []
        while place < len(self._ranked) and len(near) < count:
            module = self._ranked[place]
            if not done >> module & 1:
                near.append(module)
            place += 1
        taken = done
        for module in near:
            taken |= 1 << module
        if place == len(self._ranked):
            return Near(tuple(near), (), 0.0)
        far: list[tuple[int, int]] = []
        hopeful = _first_not_done(self._hopeful_first, taken)
        if hopeful < len(self._hopeful):
            module = self._hopeful[hopeful]
            far.append((module, self._place[module] - start))
            taken |= 1 << module
        self._turn = self._turn % (len(self._ranked) - place) + 1
        module = self._ranked[-self._turn]
        if not taken >> module & 1:
            far.append((module, len(self._ranked) - self._turn - start))
        return Near(tuple(near), tuple(far), self._cost_from[place])

    def remaining(self, done: int) -> Iterator[int]:
        """Yield the modules that are not done, in their order."""
        return (module for module in self._ranked if not done >> module & 1)


def _costs_from(order: list[int], shared: dict[int, SharedKnowledge]) -> list[float]:
    """Return the cost expected from each place of an order to its end, a tuple that gets there."""
    costs = [0.0]
    for module in reversed(order):
        known = shared[module]
        costs.append(known.cost + known.selectivity * costs[-1])
    costs.reverse()
    return costs


def _sets(modules: list[int]) -> list[int]:
    """Return the sets of the first 0, 1, 2, … modules as bit masks."""
    sets = [0]
    for module in modules:
        sets.append(sets[-1] | 1 << module)
    return sets


def _first_not_done(sets: list[int], done: int) -> int:
    """Return the place of the first module that is not done; sets are of all before a place."""
    low, high = 0, len(sets) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if sets[middle] & ~done:
            high = middle - 1
        else:
            low = middle
    return low
