"""A memory of visits that forgets by itself what no longer holds."""

from __future__ import annotations

import math
from dataclasses import dataclass

BUCKETS_A_LEVEL = 4
"""Buckets of one size before the two oldest are merged; more find a change a little sooner."""

CONFIDENCE = 1e-3
"""Chance of taking noise for a change in one whole history, were all visits independent."""

MATTERS = 0.2
"""Smallest relative change of a cost that is looked for.

Two predicates whose ranks differ by a fifth cost at most a few percent when
they stand in the wrong order, and real clocks wander by about as much.
"""

FULL_SCAN = 8
"""Visits between two looks at every possible point of change; the newest are always looked at."""


@dataclass(slots=True)
class Bucket:
    """Visits that followed each other: how many, their tuples, what came back, what it cost."""

    end: int  # when the last of them ended, in the policy's own count of tuples
    visits: float
    tuples: float
    returned: float
    cost: float
    log_cost: float  # sums over visits of log(cost a tuple) and of its square
    log_cost_squared: float

    def absorb(self, later: Bucket) -> None:
        """Add the visits of the bucket that follows."""
        self.end = later.end
        self.visits += later.visits
        self.tuples += later.tuples
        self.returned += later.returned
        self.cost += later.cost
        self.log_cost += later.log_cost
        self.log_cost_squared += later.log_cost_squared


class AdaptiveWindow:
    """Selectivity and cost of one module for one signature, over the time since the last change.

    The idea is that of ADWIN (Bifet and Gavaldà, SDM 2007): keep the history in
    buckets of exponentially growing size, compare every older part with the
    newer one, and drop the older part where the two differ by more than chance
    allows. The window is as long as the data allow and no length is set.
    Selectivity is compared by a Bernstein bound, cost by its logarithm a visit,
    because the noise of a clock is multiplicative and heavy-tailed.

    Times and memory: O(log visits) each.
    """

    __slots__ = (
        "_buckets",
        "_since_scan",
        "before",
        "cost",
        "returned",
        "selectivity_changed",
        "tuples",
        "visits",
    )

    def __init__(self) -> None:
        """Start empty."""
        self._buckets: list[Bucket] = []
        self._since_scan = 0
        self.before = (0.0, 0.0)  # selectivity and cost a tuple before the last change
        self.selectivity_changed = False  # or else the cost alone, at the last change
        self.visits = 0.0
        self.tuples = 0.0
        self.returned = 0.0
        self.cost = 0.0

    def add(self, now: int, tuples: int, returned: int, cost: float) -> int | None:
        """Add a visit; return when the change happened, if one has come to light, else None."""
        log_cost = math.log(max(cost / tuples, 1e-12))
        self._buckets.append(
            Bucket(now, 1.0, tuples, returned, cost, log_cost, log_cost * log_cost)
        )
        self.visits += 1.0
        self.tuples += tuples
        self.returned += returned
        self.cost += cost
        self._compress()
        self._since_scan += 1
        if self._since_scan >= FULL_SCAN:
            self._since_scan = 0
            return self._cut(len(self._buckets) - 1)
        return self._cut(min(3, len(self._buckets) - 1))

    def forget_before(self, time: int) -> None:
        """Drop the visits that ended at ``time`` or before."""
        keep = 0
        while keep < len(self._buckets) and self._buckets[keep].end <= time:
            keep += 1
        self._drop(keep)

    def fade(self, tuples: float) -> None:
        """Let the record count for no more than so many tuples; what it says stays."""
        if self.tuples <= tuples:
            return
        part = tuples / self.tuples
        faded = Bucket(self._buckets[-1].end, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        for bucket in self._buckets:
            faded.absorb(bucket)
        self.visits = faded.visits = faded.visits * part
        self.tuples = faded.tuples = faded.tuples * part
        self.returned = faded.returned = faded.returned * part
        self.cost = faded.cost = faded.cost * part
        faded.log_cost *= part
        faded.log_cost_squared *= part
        self._buckets = [faded]

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

    def _cut(self, points: int) -> int | None:
        """Look at the newest ``points`` boundaries of buckets; drop what is before a change."""
        buckets = self._buckets
        newer = Bucket(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        best: int | None = None
        strongest = 1.0
        doubt = math.log(2.0 * math.log(self.visits + math.e) / CONFIDENCE)
        for boundary in range(len(buckets) - 1, len(buckets) - 1 - points, -1):
            newer.absorb(buckets[boundary])
            of_selectivity = self._selectivity_changed(newer, doubt)
            strength = max(of_selectivity, self._cost_changed(newer, doubt))
            if strength > strongest:
                strongest, best = strength, boundary
                self.selectivity_changed = of_selectivity > 1.0
        if best is None:
            return None
        changed_at = buckets[best - 1].end
        older = Bucket(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        for bucket in buckets[:best]:
            older.absorb(bucket)
        self.before = (older.returned / older.tuples, older.cost / older.tuples)
        self._drop(best)
        return changed_at

    def _selectivity_changed(self, newer: Bucket, doubt: float) -> float:
        """Return how many times the bound the two parts differ by in selectivity."""
        older = self.tuples - newer.tuples
        difference = abs(newer.returned / newer.tuples - (self.returned - newer.returned) / older)
        if difference == 0.0:
            return 0.0
        mean = self.returned / self.tuples
        # Bernoulli up to 1; above, where a module joins, as noisy as Poisson.
        variance = mean * (1.0 - mean) if mean <= 1.0 else mean
        inverse = 1.0 / newer.tuples + 1.0 / older
        bound = math.sqrt(2.0 * inverse * variance * doubt) + 2.0 / 3.0 * inverse * doubt
        return difference / bound

    def _cost_changed(self, newer: Bucket, doubt: float) -> float:
        """Return how many times the bound the two parts differ by in cost."""
        older = self.visits - newer.visits
        if min(newer.visits, older) <= 1.0:
            return 0.0
        log_cost = sum(bucket.log_cost for bucket in self._buckets)
        squared = sum(bucket.log_cost_squared for bucket in self._buckets)
        older_mean = (log_cost - newer.log_cost) / older
        newer_mean = newer.log_cost / newer.visits
        difference = abs(newer_mean - older_mean)
        if difference < MATTERS:
            return 0.0
        # The spread within the two parts, not around their common mean: a large
        # change must not hide itself.
        within = max(squared - older * older_mean**2 - newer.visits * newer_mean**2, 0.0)
        variance = within / (self.visits - 1.0)
        inverse = 1.0 / newer.visits + 1.0 / older
        bound = math.sqrt(2.0 * inverse * variance * doubt) + MATTERS
        return difference / bound

    def _drop(self, count: int) -> None:
        for bucket in self._buckets[:count]:
            self.visits -= bucket.visits
            self.tuples -= bucket.tuples
            self.returned -= bucket.returned
            self.cost -= bucket.cost
        del self._buckets[:count]
        if not self._buckets:  # no rounding may stay behind
            self.visits = self.tuples = self.returned = self.cost = 0.0
