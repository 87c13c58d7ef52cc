"""Backfills at work: a thread that evaluates old events for new queries, part by part."""

from __future__ import annotations

import datetime as dt
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame

from eddyline.standing.history.backfill_log import BackfillLog, BegunPart
from eddyline.standing.history.backfill_plan import BackfillPart, BackfillPlan, closing
from eddyline.standing.history.event_history import EventHistory
from eddyline.standing.history.old_results import OldResults
from eddyline.standing.introspection import BatchRecord
from eddyline.standing.log.jobs import job_of
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.query_registry import QueryRegistry
from eddyline.standing.sinks import Batch
from eddyline.standing.tasks.counts import Counts, CountsByBatch
from eddyline.standing.tasks.failed_queries import QueryFailure, error_text

_LOOK: Final = 0.5
"""Seconds between two looks at what there is to do, where nobody says that there is something."""

DONE: Final = "done"
"""What has become of a backfill of which nothing is left to be done."""

ENDED: Final = "ended, as the query was paused"
"""What has become of one none of whose queries ran any more."""


class _Turn(NamedTuple):
    """What is done next of a backfill."""

    plan: BackfillPlan
    number: int
    part: BegunPart


class Backfilling:
    """The backfills of standing queries: which there are, how far they are, and who does them.

    One part after the other, the oldest backfill first, in a thread of its own, and each in one
    task of Spark's: what else there is of cores, micro-batches have. Histories are tidied in
    between, by the same thread, so that no file goes while it is read.
    """

    def __init__(
        self,
        registry: QueryRegistry,
        histories: Mapping[str, EventHistory],
        results: OldResults,
        counts: Accumulator[CountsByBatch],
        put_out: Callable[[DataFrame, Batch, Sequence[StandingQuery], int], object],
        note: Callable[[BatchRecord, str], object],
        fail: Callable[[Mapping[int, QueryFailure]], object],
    ) -> None:
        """Take the histories by stream, what makes results, and who gets them.

        ``put_out`` is as for micro-batches; ``note`` gets what a part did and the job that its
        queries are of, ``fail`` the queries that cannot go on.
        """
        self._registry = registry
        self._histories = histories
        self._results = results
        self._counts = counts
        self._put_out = put_out
        self._note = note
        self._fail = fail
        self._log = BackfillLog(registry.state / "history" / "backfills")
        self._changing = threading.RLock()
        self.planning = threading.RLock()
        """Held while a plan is made, so that no event goes that it is about to need."""
        self._plans: dict[int, BackfillPlan] = {}
        self._pending: dict[int, BackfillPlan] = {}
        self._queries: dict[int, Sequence[StandingQuery]] = {}  # of what is pending
        self._states: dict[int, str] = {}
        self._log.forget(registry.numbers())
        for plan in self._log.plans():
            finished = self._log.finished(plan.number)
            self._take(plan, finished, () if finished else self._log.queries(plan.number))
        self._known: dict[str, Sequence[StandingQuery]] = {}
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._idle = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to work."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="eddyline-backfills", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End with the part that is being done."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wait(self, timeout: float | None) -> bool:
        """Wait until all is done that can be, at most ``timeout`` seconds; return whether it is."""
        if self._thread is None:
            return True
        self.glance()
        return self._idle.wait(timeout)

    def glance(self) -> None:
        """Say that there may be something to do."""
        self._idle.clear()
        self._wake.set()

    def unplanned(self, job: str, queries: Sequence[StandingQuery]) -> list[StandingQuery]:
        """Return those queries of a micro-batch that look back and have no plan yet.

        Nothing is looked for in the list that was given last for the job.
        """
        if queries is self._known.get(job):
            return []
        self._known[job] = queries
        with self._changing:
            return [q for q in queries if q.look_back is not None and q.number not in self._plans]

    def take(self, plan: BackfillPlan, queries: Sequence[StandingQuery]) -> None:
        """Take a plan for some of these queries; it is on disk when this returns."""
        own = [query for query in queries if query.number in plan.numbers]
        self._log.add(plan, own)
        with self._changing:
            self._take(plan, None, own)

    def begins(self, job: str, queries: Sequence[StandingQuery]) -> dict[int, int]:
        """Return for queries of a job when the first window begins that they see in it."""
        with self._changing:
            return {
                query.number: plan.until
                for query in queries
                if (plan := self._plans.get(query.number)) is not None
                and plan.job == job
                and plan.until is not None
            }

    def state_of(self, query: StandingQuery) -> str | None:
        """Return how far the backfill of a query is; None where it has none."""
        with self._changing:
            plan = self._plans.get(query.number)
            if plan is not None:
                return self._states[plan.number]
        looks_back = query.look_back is not None and not job_of(query.template).joins
        return "waiting for a micro-batch" if looks_back else None

    def _take(
        self, plan: BackfillPlan, finished: str | None, queries: Sequence[StandingQuery]
    ) -> None:
        self._plans |= dict.fromkeys(plan.numbers, plan)
        self._states[plan.number] = finished or _progress(plan, self._log.done(plan.number))
        if finished is None:
            self._pending[plan.number] = plan
            self._queries[plan.number] = queries

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            with self._changing:
                pending = list(self._pending.values())
            for plan in pending:
                self._work(plan)
            self._tidy()
            if not self._wake.is_set():
                self._idle.set()
                self._wake.wait(_LOOK)

    def _work(self, plan: BackfillPlan) -> None:
        """Do what can be done of a backfill by now; after an error it rests."""
        try:
            while not self._stopping.is_set() and (turn := self._next(plan)) is not None:
                self._do(turn)
                self._log.end(plan.number, turn.number)
                self._states[plan.number] = _progress(plan, turn.number + 1)
        except Exception as error:  # noqa: BLE001 - the sink's, or Spark's: the jobs go on
            text = error_text(error)
            with self._changing:
                del self._pending[plan.number], self._queries[plan.number]
                self._states[plan.number] = f"failed, and is tried again at the next start: {text}"
            warnings.warn(f"A backfill of standing queries has failed: {text}", stacklevel=2)

    def _next(self, plan: BackfillPlan) -> _Turn | None:
        """Return the next part of a backfill; None where there is none, for now or for good."""
        turn = self._log.done(plan.number)
        begun = self._log.begun(plan.number, turn)
        if begun is not None:
            return _Turn(plan, turn, begun)
        there = self._registry.still_running(plan.numbers)
        if not there:
            self._finish(plan, ENDED)
            return None
        part = self._part(plan, turn)
        if part is None:
            return None
        found = _Turn(plan, turn, BegunPart(part, there))
        self._log.begin(plan.number, turn, found.part)
        return found

    def _part(self, plan: BackfillPlan, turn: int) -> BackfillPart | None:
        """Return a part that has not begun; None where there is none, for now or for good."""
        if turn < len(plan.parts):
            return plan.parts[turn]
        waiting = self._waiting(plan, turn)
        if waiting is None or plan.window is None:
            self._finish(plan, DONE)
            return None
        part = next(closing(plan, waiting, self._histories[plan.stream].segments), None)
        if part is None:
            end = dt.datetime.fromtimestamp((waiting + plan.window.size) / 1e6, dt.UTC)
            self._states[plan.number] = f"waiting for the window that ends at {end:%F %T} UTC"
        return part

    def _waiting(self, plan: BackfillPlan, turn: int) -> int | None:
        """Return when the first window begins that is still waited for; None without any."""
        waiting = plan.waiting
        if turn > len(plan.parts):
            last = self._log.begun(plan.number, turn - 1)
            waiting = None if last is None else last.part.starts_until
        return None if waiting is None or waiting == plan.until else waiting

    def _finish(self, plan: BackfillPlan, why: str) -> None:
        self._log.finish(plan.number, why)
        with self._changing:
            del self._pending[plan.number], self._queries[plan.number]
            self._states[plan.number] = why

    def _do(self, turn: _Turn) -> None:
        started, clock = time.time(), time.perf_counter()
        of_plan = self._queries[turn.plan.number]
        queries = [query for query in of_plan if query.number in turn.part.numbers]
        job = job_of(queries[0].template)
        name = f"{job.name} backfill {turn.plan.number}"
        history = self._histories[turn.plan.stream]
        results, batch = self._results.of(job, history, turn.part.part, queries)
        version = self._registry.version
        try:
            self._put_out(results.rows, Batch(name, turn.number), queries, version)
            counts = self._counts.value.pop((job.name, batch), Counts())
            results.tell(counts, queries)
            self._counts.value.pop((job.name, batch), None)  # of what was done again
        finally:
            results.release()
        self._fail(counts.errors)
        elapsed = time.perf_counter() - clock
        record = BatchRecord(name, turn.number, version, len(queries), started, elapsed, counts)
        self._note(record, job.name)

    def _tidy(self) -> None:
        """Tidy all histories; where that fails all stays as it was."""
        for stream, history in self._histories.items():
            try:
                with self.planning:
                    history.remove(self._needed(stream))
                # What is planned meanwhile is pinned to segments that are not merged yet.
                while not self._stopping.is_set() and history.merge(self._pinned(stream)):
                    pass
            except Exception as error:  # noqa: BLE001 - it is tried again; nothing else is harmed
                warnings.warn(
                    f"The history of {stream} could not be tidied, which is tried again: "
                    f"{error_text(error)}",
                    stacklevel=2,
                )

    def _needed(self, stream: str) -> list[int]:
        plans = self._plans_of(stream)
        return [since for plan in plans if (since := plan.needed()) is not None]

    def _pinned(self, stream: str) -> list[int]:
        return [plan.after for plan in self._plans_of(stream) if plan.waiting is not None]

    def _plans_of(self, stream: str) -> list[BackfillPlan]:
        with self._changing:
            return [plan for plan in self._pending.values() if plan.stream == stream]


def _progress(plan: BackfillPlan, done: int) -> str:
    return f"running {min(done, len(plan.parts))}/{len(plan.parts)} parts"
