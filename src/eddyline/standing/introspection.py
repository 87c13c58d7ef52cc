"""What standing queries do, as tables: queries, micro-batches, SteMs and operators.

As in TelegraphCQ (Krishnamurthy et al., 2003), where the system's own state is streams that can
be asked.
"""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from eddyline.standing.arguments import keep_text
from eddyline.standing.log.jobs import job_of
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.tasks.counts import Counts

BATCHES_KEPT: Final = 1_000
"""Micro-batches whose work is remembered."""

WINDOWS_KEPT: Final = 10_000
"""Windows whose losses are remembered."""

SPARE: Final = 100
"""Queries that are gone whose work a job may still know, beside as many as there are: so that
looking for them costs next to nothing a batch."""

_TIME: Final = pa.timestamp("us", tz="UTC")

QUERIES: Final = pa.schema(
    {
        "name": pa.string(),
        "state": pa.string(),
        "reason": pa.string(),
        "job": pa.string(),
        "sql": pa.string(),
        "derived": pa.list_(pa.string()),
        "keep": pa.string(),
        "backfill": pa.string(),
        "parameters": pa.string(),
        "rows_in": pa.int64(),
        "results": pa.int64(),
        "seconds": pa.float64(),
    }
)

BATCHES: Final = pa.schema(
    {
        "job": pa.string(),
        "batch": pa.int64(),
        "version": pa.int64(),
        "queries": pa.int64(),
        "rows_in": pa.int64(),
        "late": pa.int64(),
        "dropped": pa.int64(),
        "kept": pa.float64(),
        "results": pa.int64(),
        "started": _TIME,
        "seconds": pa.float64(),
    }
)

STEMS: Final = pa.schema(
    {
        "job": pa.string(),
        "cell": pa.int64(),
        "stream": pa.string(),
        "rows": pa.int64(),
        "blobs": pa.int64(),
    }
)

WINDOWS: Final = pa.schema(
    {
        "job": pa.string(),
        "start": _TIME,
        "end": _TIME,
        "events": pa.int64(),
        "dropped": pa.int64(),
    }
)

OPERATORS: Final = pa.schema({"job": pa.string(), "operator": pa.string(), "seconds": pa.float64()})


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A micro-batch: the version that it ran, how many queries, and the seconds that it took.

    ``kept`` is the part of its events that was taken.
    """

    job: str
    batch: int
    version: int
    queries: int
    started: float  # seconds since 1970
    seconds: float
    counts: Counts
    kept: float = 1.0


@dataclass(slots=True)
class _JobTotals:
    rows_in: int = 0
    results: Counter[int] = field(default_factory=Counter)
    joined: dict[int, int] = field(default_factory=dict)  # rows before a query saw any
    seconds: dict[int, float] = field(default_factory=dict)  # of batches with results, by query
    with_results: Counter[int] = field(default_factory=Counter)
    operators: dict[str, float] = field(default_factory=dict)
    most: int = SPARE  # queries, before those that are gone are looked for

    def let_go(self, there: Collection[int]) -> None:
        """Forget what queries that are not there any more did."""
        for by_query in (self.results, self.joined, self.seconds, self.with_results):
            for number in [query for query in by_query if query not in there]:
                del by_query[number]
        self.most = 2 * len(self.joined) + SPARE


@dataclass(frozen=True, slots=True)
class Progress:
    """What all jobs have done since the start; ``seconds`` are those of the last micro-batch."""

    batches: int = 0
    rows_in: int = 0
    late: int = 0
    dropped: int = 0
    results: int = 0
    seconds: float = 0.0


class Introspection:
    """What was done since the start; any thread may note and ask."""

    def __init__(
        self,
        there: Callable[[], Collection[int]],
        backfill_of: Callable[[StandingQuery], str | None] = lambda _: None,
    ) -> None:
        """``there`` gives the numbers of all queries, paused or not.

        ``backfill_of`` says how far the backfill of a query is, None where it has none.
        """
        self._there = there
        self._backfill_of = backfill_of
        self._noting = threading.Lock()
        # As numbers alone: with what each query did, a thousand batches of 10,000 are a gigabyte.
        self._batches: deque[tuple[object, ...]] = deque(maxlen=BATCHES_KEPT)
        self._stems: dict[tuple[str, int, str], tuple[int, int]] = {}
        self._totals: dict[str, _JobTotals] = {}
        self._windows: deque[dict[str, object]] = deque(maxlen=WINDOWS_KEPT)
        self.progress = Progress()
        """What was done altogether."""

    def note(self, record: BatchRecord, queries: Iterable[StandingQuery]) -> None:
        """Take in what a batch did with its queries."""
        counts = record.counts
        with self._noting:
            self._batches.append(_row_of(record))
            for (cell, stream), rows in counts.stored.items():
                self._stems[record.job, cell, stream] = rows, counts.entries[cell, stream]
            self._windows += _windows_in(record)
            self.progress = Progress(
                self.progress.batches + 1,
                self.progress.rows_in + sum(counts.rows_in.values()),
                self.progress.late + sum(counts.late.values()),
                self.progress.dropped + sum(counts.dropped.values()),
                self.progress.results + sum(counts.results.values()),
                record.seconds,
            )
            totals = self._totals.setdefault(record.job, _JobTotals())
            for query in queries:
                totals.joined.setdefault(query.number, totals.rows_in)
            totals.rows_in += sum(counts.rows_in.values())
            totals.results.update(counts.results)
            for number in counts.results:
                totals.seconds[number] = totals.seconds.get(number, 0.0) + record.seconds
                totals.with_results[number] += 1
            for operator, seconds in counts.seconds.items():
                totals.operators[operator] = totals.operators.get(operator, 0.0) + seconds
            if len(totals.joined) > totals.most:
                totals.let_go(self._there())

    def note_part(self, record: BatchRecord, job: str) -> None:
        """Take in what a part of a backfill did for queries of a job."""
        with self._noting:
            self._batches.append(_row_of(record))
            self._totals.setdefault(job, _JobTotals()).results.update(record.counts.results)

    def queries(
        self, running: Sequence[StandingQuery], paused: Sequence[tuple[StandingQuery, str]]
    ) -> pa.Table:
        """Return a row for each query, whatever branches it has.

        ``rows_in`` are the rows that it could see, ``seconds`` the mean time of a batch with
        results of it, NULL where there was none.
        """
        with self._noting:
            rows = self._rows(running, "running", [None] * len(running))
            rows += self._rows(
                [query for query, _ in paused], "paused", [reason or None for _, reason in paused]
            )
        return pa.Table.from_pylist(rows, QUERIES)

    def batches(self) -> pa.Table:
        """Return a row for each of the last micro-batches."""
        with self._noting:
            rows = [dict(zip(BATCHES.names, row, strict=True)) for row in self._batches]
        return pa.Table.from_pylist(rows, BATCHES)

    def windows(self) -> pa.Table:
        """Return a row for each of the last windows that have lost events, as they closed.

        Those of a join count the events of all its streams.
        """
        with self._noting:
            return pa.Table.from_pylist(list(self._windows), WINDOWS)

    def stems(self) -> pa.Table:
        """Return a row for each stream in each cell of the jobs that join, as they are now."""
        with self._noting:
            latest = dict(self._stems)
        rows = [
            {"job": job, "cell": cell, "stream": stream, "rows": rows, "blobs": blobs}
            for (job, cell, stream), (rows, blobs) in sorted(latest.items())
        ]
        return pa.Table.from_pylist(rows, STEMS)

    def operators(self) -> pa.Table:
        """Return a row for what took time in the tasks, job by job."""
        with self._noting:
            rows = [
                {"job": job, "operator": operator, "seconds": seconds}
                for job, totals in self._totals.items()
                for operator, seconds in sorted(totals.operators.items())
            ]
        return pa.Table.from_pylist(rows, OPERATORS)

    def _rows(
        self, queries: Sequence[StandingQuery], state: str, reasons: Sequence[str | None]
    ) -> list[Mapping[str, object]]:
        branches: dict[str, list[StandingQuery]] = {}
        told: dict[str, str | None] = {}
        for query, reason in zip(queries, reasons, strict=True):
            branches.setdefault(query.name, []).append(query)
            told.setdefault(query.name, reason)
        return [
            {"name": name, "state": state, "reason": told[name]} | self._query(own)
            for name, own in branches.items()
        ]

    def _query(self, branches: Sequence[StandingQuery]) -> dict[str, object]:
        """Return what a query has done, in all its branches."""
        by_job: dict[str, list[StandingQuery]] = {}
        for branch in branches:
            by_job.setdefault(job_of(branch.template).name, []).append(branch)
        rows_in, results, times, seconds = 0, 0, 0, 0.0
        for job, own in by_job.items():
            totals = self._totals.get(job, _JobTotals())
            before = totals.joined.get(own[0].number, totals.rows_in)
            rows_in += totals.rows_in - before
            results += sum(totals.results[branch.number] for branch in own)
            times += sum(totals.with_results[branch.number] for branch in own)
            seconds += sum(totals.seconds.get(branch.number, 0.0) for branch in own)
        query = branches[0]
        parameters = query.group.parameters
        names = [name for name, _ in query.template.parameters]
        values = {name: parameters[name][query.position].as_py() for name in names}
        derived = [column for branch in branches for column in branch.template.derived]
        backfills = [self._backfill_of(branch) for branch in branches]
        keeps = [branch.template.keep for branch in branches]
        return {
            "job": ", ".join(by_job),
            "sql": query.template.sql,
            "derived": list(dict.fromkeys(c.text for c in derived if not c.is_event)),
            "keep": keep_text(next((keep for keep in keeps if keep is not None), None)),
            "backfill": "; ".join(dict.fromkeys(filter(None, backfills))) or None,
            "parameters": json.dumps(values, default=str) if values else None,
            "rows_in": rows_in,
            "results": results,
            "seconds": seconds / times if times else None,
        }


def _row_of(record: BatchRecord) -> tuple[object, ...]:
    """Return a batch as a row of :data:`BATCHES`."""
    counts = record.counts
    return (
        record.job,
        record.batch,
        record.version,
        record.queries,
        counts.rows_in.total(),
        counts.late.total(),
        counts.dropped.total(),
        record.kept,
        counts.results.total(),
        dt.datetime.fromtimestamp(record.started, dt.UTC),
        record.seconds,
    )


def _windows_in(record: BatchRecord) -> list[dict[str, object]]:
    """Return the windows that have closed in a batch and lost events, each once.

    Queries that group otherwise count the events of the same window for themselves, from when the
    first of them came.
    """
    counted: dict[tuple[int, int], tuple[int, int]] = {}
    for key, events in record.counts.window_events.items():
        _, start, end = key
        own = events, record.counts.window_dropped[key]
        counted[start, end] = max(counted.get((start, end), own), own)
    return [
        {"job": record.job, "start": start, "end": end, "events": events, "dropped": dropped}
        for (start, end), (events, dropped) in sorted(counted.items())
        if dropped
    ]
