"""Old data for new queries, as a whole: histories, seams and backfills of standing queries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from eddyline.errors import NotShareableError, StateError
from eddyline.standing.analysis import Analysis
from eddyline.standing.history.backfilling import Backfilling
from eddyline.standing.history.event_history import EventHistory, time_kept
from eddyline.standing.history.old_results import OldResults
from eddyline.standing.history.seams import AggregatingSeam, Seam, SelectingSeam
from eddyline.standing.introspection import BatchRecord
from eddyline.standing.joining_job import JoiningBatches
from eddyline.standing.log.jobs import Job
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.query_registry import QueryRegistry
from eddyline.standing.query_template import QueryTemplate, streams_of
from eddyline.standing.selecting_job import SelectingBatches
from eddyline.standing.sinks import Batch
from eddyline.standing.tasks.counts import CountsByBatch
from eddyline.standing.tasks.failed_queries import QueryFailure

_WARNED: Final = 10
"""Queries paused by a part that a warning each is given of."""


class OldData:
    """What streams had before a query came, where standing queries keep a history of them."""

    def __init__(
        self,
        spark: SparkSession,
        analysis: Analysis,
        registry: QueryRegistry,
        streams: Mapping[str, StructType],
        horizon: int | None,
        counts: Accumulator[CountsByBatch],
        put_out: Callable[[DataFrame, Batch, Sequence[StandingQuery], int], object],
        note: Callable[[BatchRecord, str], object],
        *,
        remember: bool,
        samples: bool,
    ) -> None:
        """Open the histories of all streams that have an event time.

        ``horizon`` is how long events are kept, in microseconds; None where they are not. Then
        StateError where they were before; ValueError where no stream has an event time.
        """
        self._registry = registry
        self.horizon = horizon
        directory = registry.state / "history"
        self._histories: dict[str, EventHistory] = {}
        self._backfilling: Backfilling | None = None
        if horizon is None:
            if directory.exists():
                raise StateError(
                    f"{registry.state} has a history, which must not have gaps: give history="
                )
            return
        timed = {name: schema for name, schema in streams.items() if time_kept(schema) is not None}
        if not timed:
            raise ValueError("a history needs an event time: give a stream withWatermark()")
        for name, schema in timed.items():
            checkpoint = registry.job_directory(Job((name,)).name) / "checkpoint"
            place = directory / "streams" / quote(name, safe="")
            self._histories[name] = EventHistory(spark, place, schema, horizon, checkpoint)
        results = OldResults(
            spark,
            analysis,
            streams,
            directory / "queries",
            counts,
            remember=remember,
            samples=samples,
        )
        self._backfilling = Backfilling(
            registry, self._histories, results, counts, put_out, note, self._fail
        )

    @property
    def jobs(self) -> list[Job]:
        """The jobs whose micro-batches write the histories, with queries or without."""
        return [Job((name,)) for name in self._histories]

    def check(self, template: QueryTemplate, look_back: int) -> None:
        """Raise where there is no old data for a query.

        NotShareableError where there is none for such a query at all, ValueError where it does not
        go back so far.
        """
        if len(streams_of(template)) > 1:  # it looks back at what is stored for others
            return
        if template.tables:
            raise NotShareableError(
                f"old events are not joined with tables: leave out backfill: {template.sql}"
            )
        if template.exploded:
            raise NotShareableError(
                f"old events are not exploded: leave out backfill: {template.sql}"
            )
        (stream,) = template.inputs
        if self.horizon is None:
            raise NotShareableError(
                f"no old events of {stream} are kept that a new query could see: start with "
                f"history=, as in StandingQueries(…, history='7 days'): {template.sql}"
            )
        if stream not in self._histories:
            raise NotShareableError(
                f"no old events of {stream} are kept, as it has no event time: give it "
                f"withWatermark(): {template.sql}"
            )
        if look_back > self.horizon:
            raise ValueError(
                f"backfill goes back farther than the history: {look_back / 1e6:,.0f} s, and "
                f"history is {self.horizon / 1e6:,.0f} s"
            )

    def seam(self, job: Job, batches: SelectingBatches | JoiningBatches) -> Seam | None:
        """Return the seam of a job; None where none of its queries can ask for old events."""
        history = self._histories.get(job.streams[0])
        if self._backfilling is None or history is None or job.joins:
            return None
        if isinstance(batches, JoiningBatches):
            directory = self._registry.job_directory(job.name)
            return AggregatingSeam(job, history, self._backfilling, batches, directory)
        return SelectingSeam(job, history, self._backfilling)

    def state_of(self, query: StandingQuery) -> str | None:
        """Return how far the backfill of a query is; None where it has none."""
        return None if self._backfilling is None else self._backfilling.state_of(query)

    def start(self) -> None:
        """Begin to work on backfills."""
        if self._backfilling is not None:
            self._backfilling.start()

    def stop(self) -> None:
        """End with what is being done."""
        if self._backfilling is not None:
            self._backfilling.stop()

    def wait(self, timeout: float | None) -> bool:
        """Wait until all is done that can be done by now; return whether it is."""
        return self._backfilling is None or self._backfilling.wait(timeout)

    def _fail(self, errors: Mapping[int, QueryFailure]) -> None:
        """Pause the queries that could not be answered for some old event."""
        reasons = {number: error.reason for number, error in errors.items()}
        paused = self._registry.pause_failed(reasons)
        for name, reason in list(paused.items())[:_WARNED]:
            warnings.warn(
                f"The standing query {name!r} has failed on old events and is paused: {reason}",
                stacklevel=2,
            )
