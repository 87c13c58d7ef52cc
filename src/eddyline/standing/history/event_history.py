"""The history of a stream: its latest events, as Parquet files in the state directory.

See ``docs/decisions/0079-old-data-for-new-queries.md``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from eddyline.standing.engine.shared_query import NEVER
from eddyline.standing.history.kept_segments import Segment, SegmentLog
from eddyline.standing.log.files import read_whole, write_new
from eddyline.standing.outputs import quoted
from eddyline.standing.plain_paths import as_plain
from eddyline.standing.query_registry import WATERMARK
from eddyline.standing.time_bounds import event_time

BATCH: Final = "eddyline_batch"
"""The column of a history that says in which micro-batch an event came."""

TIME: Final = "eddyline_time"
"""The column that has its event time in microseconds, by which files and their parts are told
apart: Spark's own timestamps have no bounds in Parquet."""

MERGED: Final = 50
"""Neighbouring segments of one size that become one: of a week of micro-batches of a second, which
are 605,000, fewer than 200 segments remain, beside those of :data:`MOST_ROWS`."""

MOST_ROWS: Final = 2_000_000
"""Events of a segment from which on it is merged with no other."""


class OldEvents(NamedTuple):
    """Some events of a history: of micro-batches from ``first`` to ``last``, both included.

    With event times from ``since`` on and before ``until``, in microseconds.
    """

    first: int
    last: int
    since: int
    until: int


class EventHistory:
    """Keeps the events of a stream for as long as ``horizon`` says, back from the latest one.

    Events are written in the micro-batches of the job that selects from the stream, whose queries
    read them from here: so what it sees of a micro-batch, and what is kept of it, is the same, also
    when it is run again. All else is done by one thread besides.
    """

    def __init__(
        self,
        spark: SparkSession,
        directory: Path,
        schema: StructType,
        horizon: int,
        checkpoint: Path,
    ) -> None:
        """Open the history of a stream, which has an event time; ``horizon`` is in microseconds.

        ``checkpoint`` is Spark's of the job whose micro-batches are kept.
        """
        self._spark = spark
        self._log = SegmentLog(directory)
        self._began = directory / "began"
        self._checkpoint = checkpoint
        self._schema = schema
        self._horizon = horizon
        column = time_kept(schema)
        if column is None:
            raise ValueError("a history needs an event time")
        self._time = F.unix_micros(F.col(quoted(column.name)))
        self.delay = int(column.metadata[WATERMARK]) * 1000
        """By how much the watermark is behind the latest event, in microseconds."""
        fields = [StructField(field.name, field.dataType) for field in schema.fields]
        added = [StructField(name, LongType()) for name in (BATCH, TIME)]
        for name in schema.names:
            if name.casefold() in {BATCH, TIME}:
                raise ValueError(f"a stream with a history has no column {name}: rename it")
        self._kept_schema = StructType(fields + added)
        self._changing = threading.Lock()

    @property
    def segments(self) -> list[Segment]:
        """The segments that are there, in the order of their micro-batches."""
        with self._changing:
            return list(self._log.segments)

    @property
    def latest(self) -> int | None:
        """The latest event time that was seen, in microseconds; None before there was one."""
        return max((s.latest for s in self.segments if s.latest is not None), default=None)

    @property
    def last(self) -> int:
        """The last micro-batch with events; -1 before there was one."""
        return max((segment.last for segment in self.segments), default=-1)

    def record(self, rows: DataFrame, batch: int) -> DataFrame:
        """Write the events of a micro-batch, unless they are there; return them as kept."""
        if not self._began.exists():
            seen = seen_before(self._checkpoint, batch, self.delay)
            write_new(self._began, json.dumps({"batch": batch, "seen": seen}).encode())
        if not any(segment.first <= batch <= segment.last for segment in self.segments):
            stats = Observation()
            kept = rows.withColumns({BATCH: F.lit(batch).cast("long"), TIME: self._time})
            counted = [
                F.count(F.lit(1)).alias("rows"),
                F.min(TIME).alias("earliest"),
                F.max(TIME).alias("latest"),
            ]
            place = self._log.place(Segment(batch, batch, 0, None, None))
            kept.observe(stats, *counted).write.mode("overwrite").parquet(str(place))
            segment = Segment(batch, batch, **stats.get)
            if not segment.rows:
                self._log.leave_out(segment)
                return rows
            with self._changing:
                self._log.add(segment)
        return self._read(rows.sparkSession, [batch, batch])

    def events(self, chosen: OldEvents) -> DataFrame:
        """Return some old events, in the columns of the stream."""
        batches, times = [chosen.first, chosen.last], [chosen.since, chosen.until]
        return self._read(self._spark, batches, times)

    @property
    def complete_since(self) -> int:
        """The event time from which on all events that came are here, but for those out of it."""
        if not self._began.exists():
            return NEVER if any((self._checkpoint / "offsets").glob("[0-9]*")) else -NEVER
        seen: int | None = json.loads(read_whole(self._began))["seen"]
        return -NEVER if seen is None else seen + 1

    def remove(self, needed: Collection[int]) -> None:
        """Remove what is out of the horizon.

        Events from the earliest of the ``needed`` times on stay, in microseconds.
        """
        segments, latest = self.segments, self.latest
        if latest is not None:
            oldest = min([latest - self._horizon, *needed])
            gone = [s for s in segments[:-1] if s.latest is not None and s.latest < oldest]
            with self._changing:
                self._log.remove(gone)

    def merge(self, pinned: Collection[int]) -> bool:
        """Merge some segments if there are enough; return whether there were.

        None with one after the earliest of the ``pinned`` micro-batches.
        """
        # The newest may be of a micro-batch that is under way, or will be run again.
        settled = self.segments[:-1]
        merged = mergeable([s for s in settled if s.last <= min(pinned, default=s.last)])
        if merged:
            self._merge(merged)
        return bool(merged)

    def _read(
        self, spark: SparkSession, batches: Sequence[int], times: Sequence[int] | None = None
    ) -> DataFrame:
        first, last = batches
        chosen = [s for s in self.segments if s.first <= last and s.last >= first]
        whole = all(first <= s.first and s.last <= last for s in chosen)
        if times is not None:
            since, until = times
            chosen = [
                s
                for s in chosen
                if s.latest is not None
                and s.earliest is not None
                and s.latest >= since
                and s.earliest < until
            ]
        if not chosen:
            rows = spark.createDataFrame([], self._kept_schema)
        else:
            paths = [as_plain(str(self._log.place(segment))) for segment in chosen]
            rows = spark.read.schema(self._kept_schema).parquet(*paths)
        if times is not None:
            rows = rows.where(F.col(TIME).between(since, until - 1))
        if not whole:
            rows = rows.where(F.col(BATCH).between(first, last))
        return rows.select(*[F.col(quoted(field.name)) for field in self._schema.fields])

    def _merge(self, segments: Sequence[Segment]) -> None:
        earliest = [s.earliest for s in segments if s.earliest is not None]
        latest = [s.latest for s in segments if s.latest is not None]
        merged = Segment(
            segments[0].first,
            segments[-1].last,
            sum(segment.rows for segment in segments),
            min(earliest, default=None),
            max(latest, default=None),
        )
        paths = [as_plain(str(self._log.place(segment))) for segment in segments]
        rows = self._spark.read.schema(self._kept_schema).parquet(*paths)
        ordered = rows.coalesce(1).sortWithinPartitions(TIME)  # so that its parts have narrow times
        ordered.write.mode("overwrite").parquet(str(self._log.place(merged)))
        with self._changing:
            self._log.add(merged, segments)


def mergeable(segments: Sequence[Segment]) -> list[Segment]:
    """Return neighbouring segments of one size to be merged, the oldest first.

    :data:`MERGED` of them, or fewer where these have :data:`MOST_ROWS` events.

    >>> small = [Segment(n, n, 10, 0, 0) for n in range(MERGED)]
    >>> len(mergeable(small)), len(mergeable(small[1:]))
    (50, 0)
    >>> mergeable([Segment(0, 9_999, MOST_ROWS, 0, 0), *small[1:]])
    []
    """
    run: list[Segment] = []
    for segment in segments:
        if segment.rows >= MOST_ROWS or (run and _size(segment) != _size(run[0])):
            run = []
        if segment.rows < MOST_ROWS:
            run.append(segment)
        enough = len(run) == MERGED or sum(one.rows for one in run) >= MOST_ROWS
        if len(run) > 1 and enough:
            return run
    return []


def _size(segment: Segment) -> int:
    """Return how often the events of a segment were merged, at the least."""
    batches, size = segment.last - segment.first + 1, 0
    while batches >= MERGED:
        batches, size = batches // MERGED, size + 1
    return size


def seen_before(checkpoint: Path, batch: int, delay: int) -> int | None:
    """Return the latest event time that a job can have seen before a micro-batch; None for none.

    That is what Spark wrote down before the batch began: the watermark, which is ``delay``
    microseconds behind, in whole milliseconds.
    """
    if not batch:
        return None
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    return int(json.loads(lines[1])["batchWatermarkMs"]) * 1000 + delay + 999


def time_kept(schema: StructType) -> StructField | None:
    """Return the event time of a stream, by which its events are kept; None where it has none."""
    number = event_time(schema)
    field = None if number is None else schema.fields[number]
    # A watermark may be on a window, too, which is no time.
    return field if field is not None and isinstance(field.dataType, TimestampType) else None
