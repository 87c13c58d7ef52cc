"""A memory of visits that forgets by itself what no longer holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

BUCKETS_A_LEVEL = 4
"""Buckets of one size before the two oldest are merged; more find a change a little sooner."""

CONFIDENCE = 1e-4
"""Chance of taking noise for a change at one comparison of an old part with a new one.

There are many in a history: one of a hundred stationary histories of 2,000 visits gives
a false alarm; with 1e-3 it would be one of twelve.
"""

SELECTIVITY_MATTERS = 0.02
"""Smallest change of a selectivity that is looked for."""

MATTERS = 0.2
"""Smallest relative change of a cost that is looked for.

Two predicates whose ranks differ by a fifth cost at most a few percent when
they stand in the wrong order, and real clocks wander by about as much.
"""

WITNESSES = 4
"""Visits that must agree on a higher cost; two are enough for a lower one.

A visit of 3 ms takes two or three times as long when the machine gives the core
to someone else meanwhile, and on two busy cores that happens to one visit in twenty.
By accident it never takes half as long.
"""

FULL_SCAN = 8
"""Visits between two looks at every possible point of change; the newest are always looked at."""

TOO_FEW = 0.5
"""Tuples below which a part of a record says nothing: rounding leaves such crumbs."""

NEWEST = 4
"""So many of the newest points are always looked at."""


class ChangedQuantity(StrEnum):
    """What can change about a module."""

    SELECTIVITY = "selectivity"  # tuples returned for a tuple given
    COST = "cost"  # a tuple, in the clock's unit


class DetectedShift(NamedTuple):
    """A change that has come to light."""

    quantity: ChangedQuantity
    when: int  # the end of the last visit before it
    before: float
    after: float


@dataclass(slots=True)
class Bucket:
    """Visits that followed each other.

    What is known of their selectivity and of their cost can be forgotten apart
    from each other, so each has its own count of tuples.
    """

    end: int = 0  # when the last of them ended, in the policy's own count of tuples
    visits: float = 0.0
    tuples: float = 0.0  # that the selectivity rests on
    returned: float = 0.0  # how many of them came back
    cost_visits: float = 0.0  # that the cost rests on
    cost_tuples: float = 0.0  # likewise
    cost: float = 0.0  # of these tuples together, in the clock's unit
    log_cost: float = 0.0  # sums over visits of log(cost a tuple) and of its square
    log_cost_squared: float = 0.0

    @classmethod
    def of_visit(cls, now: int, tuples: int, returned: int, cost: float | None) -> Bucket:
        """Return the bucket of one visit, None for a cost that means nothing."""
        if cost is None:
            return cls(now, 1.0, tuples, returned)
        log_cost = math.log(max(cost / tuples, 1e-12))
        return cls(now, 1.0, tuples, returned, 1.0, tuples, cost, log_cost, log_cost * log_cost)

    def absorb(self, later: Bucket) -> None:
        """Add the visits of the bucket that follows."""
        self.end = later.end
        self.visits += later.visits
        self.tuples += later.tuples
        self.returned += later.returned
        self.cost_visits += later.cost_visits
        self.cost_tuples += later.cost_tuples
        self.cost += later.cost
        self.log_cost += later.log_cost
        self.log_cost_squared += later.log_cost_squared

    def cost_noise(self) -> float:
        """Return the sum over visits of the squared deviation of the logarithm of the cost."""
        if self.cost_visits <= 1.0:
            return 0.0
        squared_mean = self.log_cost * self.log_cost / self.cost_visits
        return max(self.log_cost_squared - squared_mean, 0.0)


def surprise(tuples: float, rate: float, mean: float) -> float:
    """Return the log-likelihood that a part's own rate has over the common one.

    Bernoulli below 1; above, where a module joins, Poisson.
    """
    evidence = rate * math.log(rate / mean) if rate > 0.0 else 0.0
    if mean >= 1.0 or rate > 1.0:
        return tuples * (evidence - rate + mean)
    if rate < 1.0:
        evidence += (1.0 - rate) * math.log((1.0 - rate) / (1.0 - mean))
    return tuples * evidence


class AdaptiveWindow:
    """Selectivity and cost of one module for one signature, each since it last changed.

    The idea is that of ADWIN (Bifet and Gavaldà, SDM 2007): keep the history in
    buckets of exponentially growing size, compare every older part with the
    newer one, and drop the older part where the two differ by more than chance
    allows. The window is as long as the data allow and no length is set.
    Selectivities are compared by a likelihood ratio, costs by their logarithm a
    visit, because the noise of a clock is multiplicative and heavy-tailed. The
    two are forgotten apart: a hiccup of the machine says nothing about the data.

    Times and memory: O(log visits) each.
    """

    __slots__ = ("_buckets", "_since_scan", "whole")

    def __init__(self) -> None:
        self.whole = Bucket()  # all that is remembered, added up
        self._buckets: list[Bucket] = []
        self._since_scan = 0

    def add(self, now: int, tuples: int, returned: int, cost: float | None) -> DetectedShift | None:
        """Add a visit, None for a cost that means nothing; return the change that it reveals."""
        return self.add_visit(Bucket.of_visit(now, tuples, returned, cost))

    def add_visit(self, visit: Bucket) -> DetectedShift | None:
        """Add the bucket of a visit, which is kept; return the change that it reveals."""
        self.whole.absorb(visit)
        self._buckets.append(visit)
        self._compress()
        self._since_scan += 1
        if self._since_scan >= FULL_SCAN:
            self._since_scan = 0
            return self._look(len(self._buckets) - 1)
        return self._look(min(NEWEST, len(self._buckets) - 1))

    def forget_before(self, quantity: ChangedQuantity, time: int) -> None:
        """Drop what the visits that ended at ``time`` or before say about one quantity."""
        count = 0
        while count < len(self._buckets) and self._buckets[count].end <= time:
            count += 1
        self._forget_first(count, quantity)

    def fade(self, tuples: float) -> None:
        """Let the selectivity rest on no more than so many tuples; what it says stays."""
        if self.whole.tuples <= tuples:
            return
        part = tuples / self.whole.tuples
        faded = self.whole
        faded.tuples *= part
        faded.returned *= part
        self._buckets = [faded]
        self._add_up()

    def _forget_first(self, count: int, quantity: ChangedQuantity) -> None:
        """Drop what the oldest buckets say about one quantity."""
        buckets = self._buckets
        for bucket in buckets[:count]:
            if quantity is ChangedQuantity.SELECTIVITY:
                bucket.tuples = bucket.returned = 0.0
            else:
                bucket.cost_visits = bucket.cost_tuples = bucket.cost = 0.0
                bucket.log_cost = bucket.log_cost_squared = 0.0
        empty = 0
        while empty < count and not buckets[empty].tuples and not buckets[empty].cost_tuples:
            empty += 1
        del buckets[:empty]
        self._add_up()

    def _compress(self) -> None:
        buckets = self._buckets
        # Buckets stand from old to new; equal sizes stand together, sizes double backwards.
        stop = len(buckets)
        while stop > BUCKETS_A_LEVEL:
            size = buckets[stop - 1].visits
            start = stop
            while start and buckets[start - 1].visits == size:
                start -= 1
            if stop - start <= BUCKETS_A_LEVEL:
                return
            buckets[start].absorb(buckets.pop(start + 1))
            stop = start + 1

    def _look(self, points: int) -> DetectedShift | None:
        """Look at the newest ``points`` boundaries of buckets; drop what is before a change."""
        buckets, whole = self._buckets, self.whole
        doubt = math.log(2.0 * math.log(whole.visits + math.e) / CONFIDENCE)
        mean = whole.returned / whole.tuples
        variance = max(mean * (1.0 - mean), 0.0) if mean <= 1.0 else mean
        guess = 0.5 * doubt * variance * whole.tuples
        tuples = returned = visits = log_cost = log_cost_squared = 0.0  # of the newer part
        strongest = 1.0
        best: tuple[ChangedQuantity, int] | None = None
        # This loop is most of what a visit costs the policy: sums in local variables, and
        # roots only where the difference is large, took 14 microseconds down to 4.
        for boundary in range(len(buckets) - 1, len(buckets) - 1 - points, -1):
            bucket = buckets[boundary]
            tuples += bucket.tuples
            returned += bucket.returned
            older = whole.tuples - tuples
            if older > TOO_FEW:
                rate, older_rate = returned / tuples, (whole.returned - returned) / older
                difference = abs(rate - older_rate)
                # A first guess at the evidence, without logarithms; at most a few times too low.
                if (
                    difference > SELECTIVITY_MATTERS
                    and difference * difference * tuples * older > guess
                ):
                    evidence = surprise(tuples, rate, mean) + surprise(older, older_rate, mean)
                    if evidence > strongest * doubt:
                        strongest = evidence / doubt
                        best = (ChangedQuantity.SELECTIVITY, boundary)
            visits += bucket.cost_visits
            log_cost += bucket.log_cost
            log_cost_squared += bucket.log_cost_squared
            older = whole.cost_visits - visits
            if visits >= 2.0 and older > 1.0:  # noqa: PLR2004 - one has no spread
                rise = log_cost / visits - (whole.log_cost - log_cost) / older
                difference = abs(rise)
                if difference > MATTERS and (rise < 0.0 or visits >= WITNESSES):
                    bound = MATTERS + self._cost_noise(visits, log_cost, log_cost_squared, doubt)
                    if difference > strongest * bound:
                        strongest = difference / bound
                        best = (ChangedQuantity.COST, boundary)
        if best is None:
            return None
        quantity, boundary = best
        before = self._older_mean(quantity, boundary)
        when = buckets[boundary - 1].end
        self._forget_first(boundary, quantity)
        return DetectedShift(quantity, when, before, self._mean(quantity))

    def _cost_noise(
        self, visits: float, log_cost: float, log_cost_squared: float, doubt: float
    ) -> float:
        """Return how far the mean logarithms of the cost of two parts lie apart by chance."""
        # Each part has its own spread: one visit of four that took ten times as long
        # makes the four differ among themselves, not from what was before.
        whole = self.whole
        older = whole.cost_visits - visits
        older_log_cost = whole.log_cost - log_cost
        older_squared = whole.log_cost_squared - log_cost_squared
        older_within = older_squared - older_log_cost * older_log_cost / older
        older_variance = max(older_within, 0.0) / older
        within = log_cost_squared - log_cost * log_cost / visits
        variance = (max(within, 0.0) + older_variance) / visits
        return math.sqrt(2.0 * doubt * (variance / visits + older_variance / older))

    def _mean(self, quantity: ChangedQuantity) -> float:
        whole = self.whole
        if quantity is ChangedQuantity.SELECTIVITY:
            return whole.returned / whole.tuples
        return whole.cost / whole.cost_tuples

    def _older_mean(self, quantity: ChangedQuantity, boundary: int) -> float:
        older = self._buckets[:boundary]
        if quantity is ChangedQuantity.SELECTIVITY:
            return sum(bucket.returned for bucket in older) / sum(bucket.tuples for bucket in older)
        return sum(bucket.cost for bucket in older) / sum(bucket.cost_tuples for bucket in older)

    def _add_up(self) -> None:
        """Add the buckets up again: a difference of sums would leave rounding behind."""
        self.whole = Bucket()
        for bucket in self._buckets:
            self.whole.absorb(bucket)
