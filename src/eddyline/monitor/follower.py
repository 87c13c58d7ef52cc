"""Asks Spark, as long as actions run, how far they are."""

from __future__ import annotations

import threading
import time
from typing import Final

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.monitor.live_query import LiveQuery, QueryState
from eddyline.monitor.query_book import QueryBook, StageCount
from eddyline.planner.declare.lookup_tables import lookup_tables_of
from eddyline.reports.wording import JAVA_CALLER

EVERY: Final = 0.3
"""Seconds between two looks; one takes some 3 ms an action that runs."""

FORGOTTEN: Final = 5.0
"""Seconds after which an action that Spark does not know has ended long ago."""


class Follower:
    """A thread that looks after the actions that run, and sleeps where none does."""

    def __init__(self, spark: SparkSession, book: QueryBook) -> None:
        self._spark = spark
        self._book = book
        self._closed = threading.Event()
        self._unknown_since: dict[int, float] = {}
        threading.Thread(target=self._follow, name="eddyline-follow", daemon=True).start()

    def close(self) -> None:
        """Stop looking."""
        self._closed.set()

    def _follow(self) -> None:
        version = 0
        while not self._closed.wait(EVERY):
            running = self._book.running()
            if not running:
                version = self._book.wait(version, 1.0)
                continue
            for query, stages in running:
                self._look(query, stages)

    def _look(self, query: LiveQuery, stages: list[int]) -> None:
        counts = self._counts(stages)
        if query.action is None:
            over = all(
                stage in counts and counts[stage].done == counts[stage].tasks for stage in stages
            )
            self._book.mark(
                query.number,
                counts,
                ended=time.time() if over else None,
                state=QueryState.DONE if over else QueryState.RUNNING,
            )
            return
        state = catalyst.action_state(self._spark, query.action)
        if state is None:
            self._without(query, counts)
            return
        ended = state.ended is not None
        how = QueryState.FAILED if state.error else QueryState.DONE
        self._book.mark(
            query.number,
            counts,
            description=state.description.removesuffix(JAVA_CALLER),
            started=state.started,
            ended=state.ended,
            state=how if ended else QueryState.RUNNING,
            error=state.error if ended else None,
            waiting="" if ended else self._waiting(query.action),
        )

    def _without(self, query: LiveQuery, counts: dict[int, StageCount]) -> None:
        """Wait a little for an action that Spark does not know yet, or no longer."""
        since = self._unknown_since.setdefault(query.number, time.monotonic())
        if time.monotonic() - since > FORGOTTEN:
            del self._unknown_since[query.number]
            self._book.mark(query.number, counts, ended=time.time(), state=QueryState.UNKNOWN)

    def _waiting(self, action: int) -> str:
        try:
            return lookup_tables_of(self._spark.sparkContext).waiting(action)
        except Exception:  # noqa: BLE001 - Spark has stopped, in whatever way Py4J says so
            return ""

    def _counts(self, stages: list[int]) -> dict[int, StageCount]:
        counts: dict[int, StageCount] = {}
        tracker = self._spark.sparkContext.statusTracker()
        for stage in stages:
            try:
                known = tracker.getStageInfo(stage)
            except Exception:  # noqa: BLE001 - Spark has stopped, in whatever way Py4J says so
                return counts
            if known is not None:
                counts[stage] = StageCount(known.numTasks, known.numCompletedTasks)
        return counts
