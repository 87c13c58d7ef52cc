"""Where old and new meet: what micro-batches do so that a query sees each event exactly once.

See ``docs/decisions/0079-old-data-for-new-queries.md``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from pyspark.sql import DataFrame

from eddyline.standing.engine.aggregation.time_window import TimeWindow
from eddyline.standing.history.backfill_plan import (
    BackfillPlan,
    first_start,
    latest_in,
    of_selections,
    of_windows,
)
from eddyline.standing.history.backfilling import Backfilling
from eddyline.standing.history.event_history import EventHistory, seen_before
from eddyline.standing.joining_job import JoiningBatches
from eddyline.standing.log.jobs import Job
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.tasks.counts import Counts


class Seam(Protocol):
    """What the micro-batches of a job do for queries that ask for old data."""

    def begin(self, rows: DataFrame, batch: int, queries: Sequence[StandingQuery]) -> DataFrame:
        """Begin with a micro-batch before its tasks do; return the rows that they work on."""

    def end(self, counts: Counts) -> None:
        """Take in what the tasks of a micro-batch have counted, before Spark commits it."""


class SelectingSeam:
    """The seam of the queries that select from a stream: the first micro-batch that they run in.

    All events of earlier micro-batches are old, and kept with the number of theirs.
    """

    def __init__(self, job: Job, history: EventHistory, backfilling: Backfilling) -> None:
        """Take the job, the history that its micro-batches write, and what does the rest."""
        self._job = job
        self._history = history
        self._backfilling = backfilling

    def begin(self, rows: DataFrame, batch: int, queries: Sequence[StandingQuery]) -> DataFrame:
        """Keep the events, and plan what queries that run for the first time have missed."""
        looking = self._backfilling.unplanned(self._job.name, queries)
        with self._backfilling.planning:
            kept = self._history.record(rows, batch)
            before = [s for s in self._history.segments if s.first < batch] if looking else []
            for look_back, numbers in _alike({q.number: q.look_back or 0 for q in looking}).items():
                plan = BackfillPlan(numbers, self._job.name, self._job.streams[0])
                since = latest_in(before) - look_back
                self._backfilling.take(of_selections(plan, before, batch, since), looking)
        self._backfilling.glance()
        return kept

    def end(self, counts: Counts) -> None:
        """Do nothing: all is done before the tasks begin."""


class AggregatingSeam:
    """The seam of the queries that aggregate a stream: the first window that begins after it.

    That is after all events that the job has seen when they come. It sees all of the events of
    such windows, and puts out no others for them: those have all their events in the history,
    which another job keeps.
    """

    def __init__(
        self,
        job: Job,
        history: EventHistory,
        backfilling: Backfilling,
        batches: JoiningBatches,
        directory: Path,
    ) -> None:
        """Take the job, the history of its stream, what does the rest, and its micro-batches.

        ``directory`` is that of the job.
        """
        self._job = job
        self._history = history
        self._backfilling = backfilling
        self._batches = batches
        self._checkpoint = directory / "checkpoint"
        self._seen = LatestSeen(directory / "seen")
        self._known: Sequence[StandingQuery] | None = None

    def begin(self, rows: DataFrame, batch: int, queries: Sequence[StandingQuery]) -> DataFrame:
        """Say from which windows on queries that run for the first time see them here."""
        looking = self._backfilling.unplanned(self._job.name, queries)
        if looking:
            self._plan(looking, batch)
        if queries is not self._known:
            self._known = queries
            self._batches.begins = self._backfilling.begins(self._job.name, queries)
        return rows

    def _plan(self, looking: Sequence[StandingQuery], batch: int) -> None:
        with self._backfilling.planning:
            seen = self._seen.latest
            if seen is None:
                seen = seen_before(self._checkpoint, batch, self._history.delay)
            asked = {q.number: (q.look_back or 0, *_window_of(q)) for q in looking}
            for (look_back, window, delay), numbers in _alike(asked).items():
                plan = BackfillPlan(numbers, self._job.name, self._job.streams[0])
                if seen is not None:
                    plan = self._planned(plan, look_back, window, delay, seen)
                self._backfilling.take(plan, looking)

    def end(self, counts: Counts) -> None:
        """Take note of the latest event that the job has seen."""
        latest = counts.latest.get(self._job.streams[0])
        if latest is not None:
            self._seen.take(latest)

    def _planned(
        self, plan: BackfillPlan, look_back: int, window: TimeWindow, delay: int, seen: int
    ) -> BackfillPlan:
        segments = self._history.segments
        since = max(latest_in(segments), seen) - look_back
        since = max(since, self._history.complete_since)
        plan = BackfillPlan(
            plan.numbers,
            plan.job,
            plan.stream,
            window=window,
            until=first_start(window, seen + 1),
            delay=self._history.delay + delay,
        )
        return of_windows(plan, segments, since)


class LatestSeen:
    """The latest event time that a job has seen, in microseconds, in a file of its own."""

    def __init__(self, path: Path) -> None:
        """Read the file, if it is there."""
        self._path = path
        self.latest: int | None = json.loads(path.read_text()) if path.exists() else None

    def take(self, latest: int) -> None:
        """Take in a time; it is on disk when this returns."""
        if self.latest is not None and latest <= self.latest:
            return
        hidden = self._path.with_suffix(".new")
        with hidden.open("w") as file:
            json.dump(latest, file)
            file.flush()
            os.fsync(file.fileno())
        hidden.rename(self._path)
        self.latest = latest


def _window_of(query: StandingQuery) -> tuple[TimeWindow, int]:
    aggregated = query.template.aggregated
    if aggregated is None:
        raise ValueError(f"{query.name} aggregates nothing")
    grouping = aggregated.aggregation.grouping
    if not isinstance(grouping.window, TimeWindow):
        raise TypeError(f"{query.name} has sessions, which are not backfilled")
    return grouping.window, grouping.delay


_KeyT = TypeVar("_KeyT")


def _alike(asked: Mapping[int, _KeyT]) -> dict[_KeyT, tuple[int, ...]]:
    """Return the numbers of queries by what they ask for, ascending."""
    alike: dict[_KeyT, list[int]] = {}
    for number in sorted(asked):
        alike.setdefault(asked[number], []).append(number)
    return {key: tuple(numbers) for key, numbers in alike.items()}
