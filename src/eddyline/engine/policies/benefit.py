"""Expected value over expected time: the policy of the SteM paper, for competing access methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.policy import Allotment, no_overhead
from eddyline.engine.routes import Routes
from eddyline.engine.signature import ENTERING, Signature
from eddyline.engine.statistics import StatisticsTable
from eddyline.engine.table_progress import Fetching, TableProgress

MEMORY: Final = 0.75
"""Weight that an answer keeps after each further one: the last four or so count.

What a service takes for an answer now it will take for the next. With a memory of fifty, an index
that has become slow after thousands of fast answers would look fast for fifty slow ones.
"""

ROWS_MEMORY: Final = 0.98
"""The same for the rows of an answer, which differ from one to the next and seldom change."""

MOST_WAITING: Final = 1 << 14
"""Tuples that wait for room in a lookup rather than be left to the scan."""

DECIDING: Final = 0.02
"""Share of the time that lookups take which the visits to SteMs before them may take.

A prior prober has no choice any more (ProbeCompletion). So of several relations that could be
next no more tuples are committed to one than this makes worth a visit, and the others wait: a
source that becomes slow has few of them.
"""

MOSTLY: Final = 0.9
"""From this share of bounced tuples on it does not matter that tuples wait with their probe."""

SUSPECT: Final = 4.0
"""A source that has not answered for so many times what an answer takes gets no more tuples that
have another choice: it may have become slow, and they would not have it any more.

Where of two indexes one becomes slow and the other one fast (Avnur and Hellerstein, 2000, Figure
10) one tuple is lost to the slow one, and not three.
"""

MOST_AT_ONCE: Final = 64
"""Tuples that are committed at a time, at the most."""

LEAST_COST: Final = 1e-9
"""Least cost of a tuple, in the clock's unit, so that no access method is free."""


@dataclass(slots=True)
class AccessRecord:
    """What is known of one lookup: its cost a tuple, and the rows of an answer."""

    cost: float | None = None  # None: it has not answered yet
    rows: float = 0.5  # as one answer that was half seen
    answers: float = 1.0
    since: float = 0.0  # when it has answered last, or was idle

    def record(self, tuples: int, rows: int, cost: float) -> None:
        """Learn from ``tuples`` that came back, and ``rows`` with them, for a cost in all."""
        per_tuple = cost / tuples
        kept = MEMORY**tuples
        self.cost = per_tuple if self.cost is None else kept * self.cost + (1.0 - kept) * per_tuple
        if cost:  # else somebody had asked already, and the rows have come
            self.answers = ROWS_MEMORY * self.answers + tuples
            self.rows = ROWS_MEMORY * self.rows + rows

    @property
    def fan_out(self) -> float:
        """Rows that an answer has."""
        return self.rows / self.answers


class BenefitPolicy:
    """Send a tuple where the expected value of what comes back is greatest for the time it takes.

    Raman, Deshpande and Hellerstein (2003, Section 4.1): the benefit of a module is the value
    of what it gives, by the expected number of matches and the user's preferences, and is
    divided by the time that it is expected to take. It is for what has several access methods:

    - A prior prober goes to the lookup with the greatest value over time that has room. So all
      are at work while they answer, the best first, and one that stalls has no room. A tuple
      that a scan will bring the matches of is worth a lookup only as far as that is sooner: the
      less of the relation the scan has left, the less (Section 4.5). It waits for room that long.
    - What needs no lookup comes before what does, where it takes less time.
    - Of several SteMs whose misses must be looked up, a tuple probes the one whose access
      methods have the matches soonest, behind those that wait there already (Section 4.4).

    All else, such as predicates and SteMs that nothing is looked up for, it leaves to
    :class:`~eddyline.engine.policies.adaptive.AdaptivePolicy`, by expected cost.
    """

    name = "benefit"

    def __init__(self) -> None:
        self._usual = AdaptivePolicy()
        self._records: dict[int, AccessRecord] = {}
        self._away: dict[int, int] = {}  # tuples that are with a lookup
        self._routes = Routes(0)
        self._numbers: tuple[int, ...] = ()
        self._overhead: Callable[[int], float] = no_overhead
        self._local = StatisticsTable()

    def start(
        self,
        routes: Routes,
        generator: np.random.Generator,
        overhead: Callable[[int], float] = no_overhead,
        *,
        queued: bool = False,
    ) -> None:
        """Take the routes; what is known of modules that have gone is forgotten."""
        gone = set(self._numbers).difference(routes.numbers)
        if gone:
            self._local.forget(gone)
            for module in gone:
                self._records.pop(module, None)
        self._numbers = routes.numbers
        if routes is not self._routes:
            self._away.clear()
        self._routes = routes
        self._overhead = overhead
        self._usual.start(routes, generator, overhead, queued=queued)

    def route(
        self, signature: Signature, candidates: tuple[int, ...], open_: tuple[int, ...], tuples: int
    ) -> Allotment | None:
        """Choose an access method for prior probers, and what to probe for others."""
        if signature.probed:
            if len(candidates) == 1:
                return Allotment(candidates[0], tuples)
            return self._access(signature, candidates, open_, tuples)
        usual = self._usual.route(signature, candidates, open_, tuples)
        if usual is None or self._routes.fetching(signature, usual.module) is None:
            return usual
        return self._among_lookups(usual, signature, candidates, tuples)

    def sent(self, signature: Signature, module: int, tuples: int) -> None:
        """Count what is with a lookup."""
        if self._asks(signature, module):
            if not self._away.get(module):
                self._record(module).since = self._now(signature, module)
            self._away[module] = self._away.get(module, 0) + tuples
        elif not signature.probed:
            self._usual.sent(signature, module, tuples)

    def returned(
        self, signature: Signature, module: int, tuples_in: int, tuples_out: int, cost: float
    ) -> None:
        """Learn how long a lookup takes, and how many rows it gives."""
        if not self._asks(signature, module):
            if not signature.probed:
                self._usual.returned(signature, module, tuples_in, tuples_out, cost)
            if self._routes.joins:
                self._local.record(signature, module, tuples_in, tuples_out, cost)
            return
        self._away[module] = max(self._away.get(module, 0) - tuples_in, 0)
        if tuples_in:
            record = self._record(module)
            record.record(tuples_in, tuples_out, cost)
            if cost:
                record.since = self._now(signature, module)

    def order(self, signature: Signature = ENTERING) -> tuple[int, ...]:
        """Return the order of the modules among which cost alone decides."""
        return self._usual.order(signature)

    def value_over_time(self, signature: Signature, lookup: int) -> float:
        """Return what asking a lookup is worth for a tuple, for each unit of its time.

        Not above 0 where the scan of the same relation is expected to be as soon. Infinity as
        long as nothing is known of the lookup.
        """
        record = self._record(lookup)
        if record.cost is None:
            return math.inf
        fetching = self._routes.fetching(signature, lookup)
        if fetching is None:
            raise ValueError(f"tuples of {signature} do not bind module {lookup}")
        soon = self._delay(lookup, fetching.table, 0)
        saved = 1.0 - soon / max(fetching.table.seconds_by_scan(), LEAST_COST)
        return self._routes.weight(signature) * record.fan_out * saved / soon

    def _record(self, lookup: int) -> AccessRecord:
        record = self._records.get(lookup)
        if record is None:
            record = self._records[lookup] = AccessRecord()
        return record

    def _now(self, signature: Signature, lookup: int) -> float:
        fetching = self._routes.fetching(signature, lookup)
        return 0.0 if fetching is None else fetching.table.now()

    def _delay(self, lookup: int, table: TableProgress, before: int) -> float:
        """Return after how long a lookup answers a tuple, with so many in front of the queue.

        By its last answers, or the time for which one that is asked has not answered.
        """
        record, away = self._record(lookup), self._away.get(lookup, 0)
        cost = record.cost or 0.0
        if away:
            cost = max(cost, table.now() - record.since)
        return max(cost, LEAST_COST) * (away + before + 1)

    def _is_late(self, lookup: int, table: TableProgress) -> bool:
        """Tell whether a lookup takes far longer for an answer than it did before."""
        record = self._record(lookup)
        if record.cost is None or not self._away.get(lookup):
            return False
        return table.now() - record.since > SUSPECT * max(record.cost, LEAST_COST)

    def _access(
        self, signature: Signature, candidates: tuple[int, ...], open_: tuple[int, ...], tuples: int
    ) -> Allotment | None:
        lookups = [module for module in candidates if self._asks(signature, module)]
        if not lookups:  # it has asked already
            return Allotment(self._local.best_rank(signature, candidates), tuples)
        fetched, local = self._apart(signature, candidates)
        soon = self._sooner(signature, local, fetched)
        if soon:
            return Allotment(self._local.best_rank(signature, soon), tuples)
        table = next(iter(fetched))  # the SteM, if it may be left to the scan
        may_leave = table not in lookups
        values = {lookup: self.value_over_time(signature, lookup) for lookup in lookups}
        worth = [lookup for lookup in lookups if values[lookup] > 0.0 or not may_leave]
        if not worth:
            return Allotment(table, tuples)
        with_room = [lookup for lookup in worth if lookup in open_]
        if with_room:
            best = max(with_room, key=lambda it: (values[it], -self._away.get(it, 0)))
            return Allotment(best, tuples)
        if may_leave and tuples > MOST_WAITING:
            return Allotment(table, tuples - MOST_WAITING)
        return None

    def _among_lookups(
        self, usual: Allotment, signature: Signature, candidates: tuple[int, ...], tuples: int
    ) -> Allotment | None:
        """Choose where the usual choice is a SteM that is looked up for."""
        rivals, local = self._apart(signature, candidates)
        soon = self._sooner(signature, local, rivals)
        if soon:
            return Allotment(self._local.best_rank(signature, soon), tuples)
        if len(rivals) == 1:
            return usual
        found_meanwhile = signature.built == signature.spanned
        return self._probe(rivals, tuples, found_meanwhile=found_meanwhile)

    def _asks(self, signature: Signature, module: int) -> bool:
        """Tell whether tuples that visit a module ask a lookup there."""
        if not signature.probed:
            return False
        fetching = self._routes.fetching(signature, module)
        return fetching is not None and module in fetching.lookups

    def _apart(
        self, signature: Signature, candidates: tuple[int, ...]
    ) -> tuple[dict[int, Fetching], list[int]]:
        """Return the modules that are looked up for, with what is known, and the others."""
        fetched, local = {}, []
        for module in candidates:
            fetching = self._routes.fetching(signature, module)
            if fetching is None:
                local.append(module)
            else:
                fetched[module] = fetching
        return fetched, local

    def _sooner(
        self, signature: Signature, local: Sequence[int], rivals: Mapping[int, Fetching]
    ) -> tuple[int, ...]:
        """Return the modules that nothing is looked up for and that finish before a lookup does."""
        soonest = min(
            self._delay(lookup, table, 0)
            for lookups, table in rivals.values()
            for lookup in lookups
        )
        return tuple(m for m in local if self._local.of(signature, m).cost <= soonest)

    def _probe(
        self, rivals: Mapping[int, Fetching], tuples: int, *, found_meanwhile: bool
    ) -> Allotment | None:
        """Choose among SteMs that have to be looked up for; wait while each is crowded.

        Not where others would be kept from finding their matches: ``found_meanwhile`` are tuples
        in SteMs, which whatever is looked up finds; and few find theirs where most bounce back.
        """
        ranked = []
        for stem, (lookups, table) in rivals.items():
            delays = {lookup: self._delay(lookup, table, table.waiting) for lookup in lookups}
            soonest = min(delays, key=delays.__getitem__)
            delay = table.bounce_share * delays[soonest]
            value = self._record(soonest).fan_out / (delay + LEAST_COST)
            queue = table.waiting + sum(self._away.get(lookup, 0) for lookup in lookups)
            work = DECIDING * (self._record(soonest).cost or LEAST_COST)
            few = round(min(self._overhead(stem) / work, MOST_AT_ONCE)) or 1
            may_wait = found_meanwhile or table.bounce_share >= MOSTLY
            crowded = table.waiting >= few or all(self._is_late(it, table) for it in lookups)
            ranked.append((may_wait and crowded, -value, queue, stem, few))
        crowded, _, _, best, few = min(ranked)
        asked = {lookup for fetching in rivals.values() for lookup in fetching.lookups}
        if crowded and any(self._away.get(lookup, 0) for lookup in asked):
            return None
        return Allotment(best, min(tuples, few))
