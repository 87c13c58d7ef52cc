"""What it is worth to visit modules in another order for each class of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from eddyline.engine.filter.class_counts import BucketCounts, Floats, Places

MOST_CLASSES: Final = 8
"""Classes that rows are told apart by: each has lanes, records and visits of its own."""

WORTH_A_CLASS: Final = 0.01
"""Part of the cost of all rows that a further class must save by its order."""


class Rates(NamedTuple):
    """Selectivity and cost of a tuple, both (buckets, modules)."""

    selectivities: Floats
    costs: Floats


@dataclass(frozen=True, slots=True)
class Split:
    """What it is worth to tell rows apart into so many classes.

    ``saving`` is the part of their cost that newer rows save by the orders that older ones had
    best, ``cost`` what one of them would cost by the best common order, and ``rows`` is their
    number.
    """

    classes: int
    saving: float
    cost: float
    rows: float

    @property
    def doubt(self) -> float:
        """How much of the saving may be chance."""
        return float(self.rows**-0.5) if self.rows else 1.0


class ClassOrders:
    """Expected costs by order, where modules are independent of each other within a bucket.

    ``costs`` are what a tuple usually costs at each module; ``precedence`` has the modules, as a
    mask, that come before each. Takes O(buckets * modules) for each order, and compares as many
    orders as buckets.
    """

    def __init__(self, costs: Floats, precedence: Mapping[int, int]) -> None:
        self._costs = costs
        self._precedence = precedence

    def split(self, older: BucketCounts, newer: BucketCounts) -> Split:
        """Return the classes that older rows call for, and what they are worth to newer ones.

        What was found by chance, and what was so for a while only, saves the newer rows nothing.
        """
        orders, chosen = self._chosen(older, MOST_CLASSES)
        return self._judged(orders, chosen, newer.entered, self.rates(newer))

    def groups(self, counts: BucketCounts) -> Places:
        """Return the class of each bucket, from 0 on: those of a class go in the same order."""
        _, chosen = self._chosen(counts, MOST_CLASSES)
        return np.unique(chosen, return_inverse=True)[1].astype(np.intp)

    def as_it_is(self, older: BucketCounts, newer: BucketCounts, shares: Floats) -> Split:
        """Return the classes that tuples go by already, and what they are worth to newer ones.

        ``shares`` are those of the rows in each. Hardly any tuples come to a module that stands
        last for their class: what these did before has to do.
        """
        size = len(shares)
        orders, chosen = self._chosen(older, size)
        rates = self.rates(newer, older)
        return self._judged(orders, chosen, newer.rows * shares, rates)

    def _chosen(self, counts: BucketCounts, most: int) -> tuple[list[tuple[int, ...]], Places]:
        """Return orders, and the place of each bucket's among them: ``most`` different ones."""
        rates = self.rates(counts)
        common = self._order(counts.entered, rates)
        orders = list(dict.fromkeys((common, *self._by_bucket(rates))))
        return orders, self._assigned(_by_order(orders, counts.entered, rates), most)

    def _judged(
        self,
        orders: list[tuple[int, ...]],
        chosen: Places,
        weights: Floats,
        rates: Rates,
    ) -> Split:
        """Return what rows save in the order chosen for their bucket, of what one order costs."""
        costs = _by_order([*orders, self._order(weights, rates)], weights, rates)
        together = float(costs.sum(axis=0).min())
        apart = float(costs[np.arange(len(chosen)), chosen].sum())
        rows = float(weights.sum())
        saving = 1.0 - apart / together if together > 0.0 else 0.0
        classes = len(np.unique(chosen))
        return Split(classes, saving, together / max(rows, 1.0), rows)

    def rates(self, counts: BucketCounts, before: BucketCounts | None = None) -> Rates:
        """Return what is known by counts; where little, with what was known before, if given."""
        return Rates(counts.selectivities(before), counts.costs.by_bucket() * self._costs)

    def _order(self, weights: Floats, rates: Rates) -> tuple[int, ...]:
        """Return the order that drops the most for its cost at each step, of all rows."""
        alive = weights
        left = list(range(len(self._costs)))
        done, order = 0, []
        while left:
            legal = [m for m in left if self._precedence.get(m, 0) & ~done == 0]
            dropped = alive @ (1.0 - rates.selectivities[:, legal])
            best = legal[
                int(np.argmax(dropped / np.maximum(alive @ rates.costs[:, legal], 1e-300)))
            ]
            order.append(best)
            left.remove(best)
            done |= 1 << best
            alive = alive * rates.selectivities[:, best]
        return tuple(order)

    def _by_bucket(self, rates: Rates) -> list[tuple[int, ...]]:
        """Return the best order of each bucket."""
        if self._precedence:
            one = np.ones(1)
            return [
                self._order(one, Rates(selectivities[None, :], costs[None, :]))
                for selectivities, costs in zip(*rates, strict=True)
            ]
        ranks = (rates.selectivities - 1.0) / rates.costs
        return [tuple(order) for order in np.argsort(ranks, axis=1, kind="stable").tolist()]

    @staticmethod
    def _assigned(expected: Floats, most: int) -> Places:
        """Return the order of each bucket: of a few orders, those that save the most together."""
        first = int(expected.sum(axis=0).argmin())
        worth = WORTH_A_CLASS * float(expected[:, first].sum())
        taken = [first]
        least = expected[:, first]
        while len(taken) < most:
            saved = np.maximum(least[:, None] - expected, 0.0).sum(axis=0)
            best = int(saved.argmax())
            if saved[best] <= worth:
                break
            taken.append(best)
            least = np.minimum(least, expected[:, best])
        chosen: Places = np.array(taken, np.intp)[expected[:, taken].argmin(axis=1)]
        return chosen


def _by_order(orders: Sequence[tuple[int, ...]], weights: Floats, rates: Rates) -> Floats:
    """Return what the rows of each bucket cost in each order."""
    alive = np.repeat(weights[:, None], len(orders), axis=1)
    costs = np.zeros_like(alive)
    for modules in np.array(orders).T:  # those that come first, second, … in each order
        costs += alive * rates.costs[:, modules]
        alive *= rates.selectivities[:, modules]
    return costs
