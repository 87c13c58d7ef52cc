"""The results that queries find in old events, by the engine that finds them in new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pyspark.accumulators import Accumulator
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from eddyline.host.classic import classic
from eddyline.standing.analysis import Analysis
from eddyline.standing.history.backfill_plan import BackfillPart
from eddyline.standing.history.event_history import EventHistory
from eddyline.standing.joining_job import JoiningBatches
from eddyline.standing.log.batch_log import BatchRun
from eddyline.standing.log.change_log import ChangeLog
from eddyline.standing.log.jobs import Job
from eddyline.standing.log.joined_streams import BATCH, SAMPLE, VERSION, WAKE
from eddyline.standing.log.live_queries import LiveQueries, StandingQuery
from eddyline.standing.outputs import BatchResults
from eddyline.standing.selecting_job import SelectingBatches
from eddyline.standing.tasks.counts import CountsByBatch

_ONE_CELL: Final = (0,)
"""One task aggregates all old events of a part."""


class OldResults:
    """Makes results of parts of backfills; those of one part at a time.

    Workers learn from a log of its own which queries these are for, as they do in micro-batches:
    each version of it has the queries of one part, under their own numbers.
    """

    def __init__(
        self,
        spark: SparkSession,
        analysis: Analysis,
        schemas: Mapping[str, StructType],
        directory: Path,
        counts: Accumulator[CountsByBatch],
        *,
        remember: bool,
        samples: bool,
    ) -> None:
        """Take what jobs are made of, and the directory of the log."""
        self._spark = spark
        self._analysis = analysis
        self._schemas = schemas
        self._counts = counts
        self._remember = remember
        self._samples = samples
        self._log = ChangeLog(directory)
        self._log.create()
        self._version = self._log.last()
        self._now: Sequence[StandingQuery] = ()
        self._selecting: dict[str, SelectingBatches] = {}
        self._aggregating: dict[str, JoiningBatches] = {}
        self._batch = 0

    def of(
        self, job: Job, history: EventHistory, part: BackfillPart, queries: Sequence[StandingQuery]
    ) -> tuple[BatchResults, int]:
        """Return the results of a part, and the number under which tasks count what they do.

        That is below 0, as no micro-batch's is, and another one each time.
        """
        self._batch -= 1
        run = BatchRun(self._version_with(queries))
        rows = history.events(part.events)
        if not job.aggregates:
            # One task a part: the other cores are left to the micro-batches.
            alone = classic(rows.coalesce(1))
            selecting = self._selecting.get(job.name) or self._new_selecting(job)
            return selecting.results(alone, self._now, run, self._batch), self._batch
        context = self._spark.sparkContext
        for key, value in ((BATCH, self._batch), (VERSION, run.version), (SAMPLE, 1.0), (WAKE, 0)):
            context.setLocalProperty(key, str(value))
        aggregating = self._aggregating.get(job.name) or self._new_aggregating(job)
        until = part.events.until if part.starts_until is None else part.starts_until
        templates = list({id(query.template): query.template for query in self._now}.values())
        packed = aggregating.old_windows(rows.coalesce(1), templates, part.events.since, until)
        return aggregating.results(classic(packed), self._now, run, self._batch), self._batch

    def _version_with(self, queries: Sequence[StandingQuery]) -> int:
        """Return a version of the log that has these queries and no others."""
        if [query.number for query in queries] != [query.number for query in self._now]:
            live = LiveQueries()
            live.version = self._version = self._version + 1
            live.running = {query.number: query for query in queries}
            live.next_number = max(live.running, default=-1) + 1
            self._log.write_snapshot(live.snapshot())
            for version in self._log.snapshots():
                if version < self._version:
                    self._log.remove_snapshot(version)
            self._now = queries
        return self._version

    def _new_selecting(self, job: Job) -> SelectingBatches:
        (stream,) = job.streams
        batches = self._selecting[job.name] = SelectingBatches(
            self._analysis,
            job,
            self._schemas[stream],
            self._log.label,
            self._counts,
            remember=self._remember,
            samples=self._samples,
        )
        return batches

    def _new_aggregating(self, job: Job) -> JoiningBatches:
        batches = self._aggregating[job.name] = JoiningBatches(
            self._analysis,
            job,
            self._schemas,
            self._log.label,
            self._counts,
            (),
            _ONE_CELL,
            remember=self._remember,
            samples=self._samples,
        )
        return batches
