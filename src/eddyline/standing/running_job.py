"""One running job of standing queries: a Spark streaming query and its micro-batches."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

from pyspark.accumulators import Accumulator
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from eddyline import catalyst
from eddyline.errors import EddylineError
from eddyline.host.classic import classic
from eddyline.standing.history.seams import Seam
from eddyline.standing.introspection import BatchRecord
from eddyline.standing.joining_job import JoiningBatches
from eddyline.standing.log.batch_log import BatchRun
from eddyline.standing.log.jobs import Job, job_of
from eddyline.standing.log.joined_streams import SAMPLE, VERSION, WAKE
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.log.rule_limits import NO_LIMITS, RuleLimits
from eddyline.standing.overload import Overload
from eddyline.standing.query_registry import QueryRegistry
from eddyline.standing.selecting_job import SelectingBatches
from eddyline.standing.sinks import Batch
from eddyline.standing.stream_settings import stream_settings
from eddyline.standing.tasks.counts import Counts, CountsByBatch
from eddyline.standing.tasks.failed_queries import QueryFailure

_PATIENCE: Final = 60.0
"""Seconds that a job is waited for at the most before others begin."""

_LOOK: Final = 0.5
"""Seconds between two looks at whether a job has begun."""

_GLANCE: Final = 0.01
"""Seconds between two looks at whether Spark has begun to stop a job."""


_BEGINNINGS: Final = 6
"""How often a job is begun where Spark could not plan its first batch in time."""

_PAUSE: Final = 1.0
"""Seconds before the second beginning; four times as many before the third, nine before the next:
what keeps the machine busy is given time to end."""

_WARNED: Final = 10
"""Queries paused by a batch that a warning each is given of, and one of all others together."""

_NARROW: Final = (
    "Narrow the query with replace(), or give a larger max_results, and go on with resume()."
)

_TOO_LATE: Final = "Python worker failed to connect back"
"""What Spark says of a Python process that was not there after ten seconds."""


class JobStoppedError(EddylineError):
    """Ends a batch that has begun while its job was stopped: it will be run again.

    In the words by which Spark knows that the end of a query has interrupted a batch. Of any others
    it says, with all stacks, that the query has failed.
    """

    def __init__(self) -> None:
        """Say what Spark looks for."""
        super().__init__(
            "py4j.protocol.Py4JJavaError: An error occurred while calling for a batch: "
            "java.lang.InterruptedException"
        )


class RunningJob:
    """A job of standing queries, from its start to its end."""

    def __init__(
        self,
        spark: SparkSession,
        registry: QueryRegistry,
        batches: SelectingBatches | JoiningBatches,
        job: Job,
        counts: Accumulator[CountsByBatch],
        overload: Overload,
        put_out: Callable[[DataFrame, Batch, Sequence[StandingQuery], int], object],
        note: Callable[[BatchRecord, Sequence[StandingQuery]], object],
        limits: RuleLimits = NO_LIMITS,
        seam: Seam | None = None,
    ) -> None:
        """Take what to do, and where tasks report.

        ``overload`` says how much of the rows is taken, ``limits`` what a query may take.
        ``put_out`` takes the results of each micro-batch with its queries and their version,
        ``note`` what it did. ``seam`` is for queries that ask for old data.
        """
        self._seam = seam
        self._counts = counts
        self._overload = overload
        self._limits = limits
        self._spark = spark
        self._registry = registry
        self._batches = batches
        self.job = job
        self._put_out = put_out
        self._note = note
        self._at_work = threading.Lock()
        self._stopping = threading.Event()
        self._begun = threading.Event()
        self._beginning = threading.Lock()
        self._beginnings = 0
        self._plan: Callable[[], DataFrame] | None = None
        self._trigger: Mapping[str, object] = {}
        self._failure: Exception | None = None  # to go on with another plan
        self._writer: DataStreamWriter | None = None
        self._cells = 0
        self._query: StreamingQuery | None = None
        self._queries: tuple[int, list[StandingQuery]] = (-1, [])
        self._woken = -1  # the last version at which all cells worked
        self._warm_at = -1  # the version that the last batch ran

    @property
    def query(self) -> StreamingQuery:
        """Spark's handle on it; RuntimeError before it is started."""
        if self._query is None:
            raise RuntimeError("the job is not started")
        return self._query

    def start(
        self, plan: Callable[[], DataFrame], cells: int, trigger: Mapping[str, object]
    ) -> None:
        """Begin with the micro-batches of a stream, which ``plan`` gives.

        It is asked again where queries need what the stream's plan does not compute.
        """
        self._plan, self._cells, self._trigger = plan, cells, trigger
        if self.job.keeps_state:
            catalyst.leave_out_planning_steps()
        with self._beginning:
            self._begin_as_planned()

    def _begin_as_planned(self) -> None:
        if self._plan is None:
            raise RuntimeError("the job is not started")
        directory = self._registry.job_directory(self.job.name)
        writer = (
            self._plan()
            .writeStream.foreachBatch(self._run)
            .queryName(f"eddyline {self.job.name}")
            .option("checkpointLocation", str(directory / "checkpoint"))
        )
        if self._trigger:
            writer = writer.trigger(**self._trigger)  # type: ignore[call-overload]  # Spark checks
        self._writer = writer
        self._begin()
        if self.job.keeps_state:
            name = f"eddyline-begin-{self.job.name}"
            threading.Thread(target=self._see_it_begin, name=name, daemon=True).start()

    def _begin_anew(self, left: list[StreamingQuery]) -> None:
        """Go on with another plan; tell the batch that takes one which query is ``left``."""
        with self._beginning:
            if self._stopping.is_set():
                return
            left.append(self.query)
            self.query.stop()
            self._begun.clear()
            self._beginnings = 0
            try:
                self._begin_as_planned()
            except Exception as error:  # noqa: BLE001 - whatever it is, who waits is told
                self._failure = error

    def _begin(self) -> None:
        if self._writer is None:
            raise RuntimeError("the job is not started")
        self._beginnings += 1
        with stream_settings(self._spark, self._cells):
            self._query = self._writer.start()

    def _see_it_begin(self) -> None:
        while not self._begun.wait(_LOOK) and not self._stopping.is_set():
            query = self.query
            if not query.isActive and not self._begins_again(query):
                return

    def _begins_again(self, query: StreamingQuery) -> bool:
        """Begin again, a few times, if Spark gave up on the process that plans the first batch.

        It waits ten seconds for that, whatever else the machine does. Nothing has run then.
        """
        with self._beginning:
            if self._query is not query:
                return True
            error = query.exception()
            late = error is not None and _TOO_LATE in str(error)
            done = self._begun.is_set() or self._stopping.is_set()
            if not late or done or self._beginnings >= _BEGINNINGS:
                return False
            if self._stopping.wait(_PAUSE * self._beginnings**2):
                return False
            self._begin()
            return True

    def await_termination(self, timeout: float | None) -> bool:
        """Wait until it has ended, at most ``timeout`` seconds; raises what ended it."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            query = self.query
            left = None if until is None else max(until - time.monotonic(), _GLANCE)
            try:
                ended = query.awaitTermination(left)  # type: ignore[arg-type]  # None is for ever
            except StreamingQueryException:
                if not self._begins_again(query):
                    raise
            else:
                with self._beginning:
                    if self._failure is not None:
                        raise self._failure
                    if ended is False or self._query is query:
                        return ended is not False

    def wait_until_begun(self) -> None:
        """Wait until the first batch is planned, or there is nothing to plan.

        To plan one that keeps state Spark starts a Python process, and gives it ten seconds: where
        four jobs begin at once on two cores, that is too little.
        """
        waited_until = time.monotonic() + _PATIENCE
        while not self._begun.wait(_GLANCE) and self.query.isActive:
            idle = str(self.query.status["message"]).startswith("Waiting")
            if idle or time.monotonic() > waited_until:
                break

    def stop(self) -> None:
        """Let the batch that runs come to its end, and stop.

        And the planning of the first: the Python process that Spark has started for it would find
        nobody to connect to.
        """
        self._stopping.set()
        with self._beginning:
            if self.job.keeps_state:
                self.wait_until_begun()
            with self._at_work:
                self.query.stop()

    def _run(self, rows: DataFrame, batch: int) -> None:
        self._begun.set()
        # A batch that is interrupted inside this call ends Spark's thread with a stack that is
        # too deep for a pattern that Spark looks for in the error's text. So none is.
        if self._stopping.is_set() or not self._at_work.acquire(timeout=3600):
            while self._query is not None and self._query.isActive:
                time.sleep(_GLANCE)
            raise JobStoppedError
        try:
            is_done = self._work(rows, batch)
        finally:
            self._at_work.release()
        if not is_done:
            self._leave_to_another()

    def _leave_to_another(self) -> NoReturn:
        """End a batch that takes another plan: it is run again by the query that has it."""
        left: list[StreamingQuery] = []
        name = f"eddyline-begin-{self.job.name}"
        threading.Thread(target=self._begin_anew, args=(left,), name=name, daemon=True).start()
        while True:
            query = left[0] if left else self._query if self._stopping.is_set() else None
            if query is not None and not query.isActive:
                raise JobStoppedError
            time.sleep(_GLANCE)

    def _work(self, rows: DataFrame, batch: int) -> bool:
        """Work a batch; return False where it takes another plan."""
        started, clock = time.time(), time.perf_counter()
        run = self._registry.begin(self.job.name, batch, self._overload.kept)
        wake = int(run.version != self._woken)
        for key, value in ((VERSION, run.version), (SAMPLE, run.kept), (WAKE, wake)):
            self._spark.sparkContext.setLocalProperty(key, str(value))
        queries = self.queries_at(run.version)
        if self._batches.lacks(queries):
            return False
        if self._seam is not None:
            rows = self._seam.begin(rows, batch, queries)
        counts = Counts()
        if queries:
            counts = self._answered(rows, queries, run, batch)
        elif self.job.keeps_state:  # without an action Spark would miss the state of this batch
            rows.write.format("noop").mode("overwrite").save()
            counts = self._counts.value.pop((self.job.name, batch), counts)
        if self._seam is not None:
            self._seam.end(counts)
        if counts.rows_in.total():  # without rows there is no task that could wake a cell
            self._woken = run.version
        elapsed = time.perf_counter() - clock
        events = counts.rows_in.total()
        taken = events - counts.dropped.total()
        self._overload.took(events, taken, elapsed, cold=run.version != self._warm_at)
        self._warm_at = run.version
        record = BatchRecord(
            self.job.name, batch, run.version, len(queries), started, elapsed, counts, run.kept
        )
        self._note(record, queries)
        return True

    def _answered(
        self, rows: DataFrame, queries: Sequence[StandingQuery], run: BatchRun, batch: int
    ) -> Counts:
        """Put out the results of a batch, pause the queries that failed, and return the counts."""
        results = self._batches.results(classic(rows), queries, run, batch)
        try:
            self._put_out(results.rows, Batch(self.job.name, batch), queries, run.version)
            # All actions of the batch have ended, so nothing is added to its counts any more.
            counts = self._counts.value.pop((self.job.name, batch), Counts())
            results.tell(counts, queries)
            self._counts.value.pop((self.job.name, batch), None)  # of what was done again
        finally:
            results.release()
        self._find_floods(counts)
        self._pause_failed(counts.errors)
        return counts

    def _find_floods(self, counts: Counts) -> None:
        """Take as failed the queries that had too many results."""
        most = self._limits.max_results
        if most is None:
            return
        for number, passed in counts.results.items():
            left_out = counts.left_out[number]
            if passed + left_out > most:
                error = (
                    f"{passed + left_out:,} results in a micro-batch, and max_results is {most:,}"
                )
                counts.errors.setdefault(number, QueryFailure(error, rows=left_out, remedy=_NARROW))

    def _pause_failed(self, errors: Mapping[int, QueryFailure]) -> None:
        """Pause the queries that could not be answered for some row of a batch."""
        paused = self._registry.pause_failed({n: error.reason for n, error in errors.items()})
        for name, reason in list(paused.items())[:_WARNED]:
            warnings.warn(
                f"The standing query {name!r} has failed and is paused: {reason}", stacklevel=2
            )
        if len(paused) > _WARNED:
            warnings.warn(
                f"{len(paused) - _WARNED:,} more standing queries have failed and are paused: "
                "queries() has the reasons",
                stacklevel=2,
            )

    @property
    def at_work(self) -> bool:
        """Whether a batch runs: one that begins later has the version that the queries have now."""
        return self._at_work.locked()

    def queries_at(self, version: int) -> list[StandingQuery]:
        """Return the queries of this job that ran at a version; the same list for the same one."""
        if self._queries[0] != version:
            queries = [q for q in self._registry.at(version) if job_of(q.template) == self.job]
            self._queries = version, queries
        return self._queries[1]
