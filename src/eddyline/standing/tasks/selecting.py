"""What a task does for queries on one stream: it tells for each row which of them want it.

The rows stay in the JVM. What travels are the columns that the queries' predicates are about, and
back the names of the queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.accumulators import Accumulator

from eddyline.standing.engine.failing_event import FailingEvent
from eddyline.standing.engine.shared_eddy import SharedEddy
from eddyline.standing.engine.shared_query import Stream
from eddyline.standing.engine.shared_results import SharedResults
from eddyline.standing.log.jobs import Job
from eddyline.standing.log.rule_limits import NO_LIMITS, RuleLimits
from eddyline.standing.tasks.called_values import CalledValues, without_failed
from eddyline.standing.tasks.counts import Counts, CountsByBatch
from eddyline.standing.tasks.failed_queries import QueryFailure, error_text, shown_event
from eddyline.standing.tasks.kept_up import KeptUpQueries, compiled, uncollected
from eddyline.standing.tasks.result_limit import ResultLimit
from eddyline.standing.tasks.rule_functions import EngineFunctions
from eddyline.standing.tasks.sampled_rows import SampledRows
from eddyline.wall_clock import WorkClock

QUERY, LAYOUT = "eddyline_query", "eddyline_layout"
"""The name of a query that wants a row, and which of the batch's layouts its results have."""

_MATCH: Final = (
    pa.field(QUERY, pa.string(), nullable=False),
    pa.field(LAYOUT, pa.int32(), nullable=False),
)


@dataclass(frozen=True, slots=True)
class SelectingWork:
    """What the tasks of a micro-batch do: the queries of a version, on rows of a stream.

    ``batch`` is its number, ``kept`` the part of its rows that is taken, and ``counts`` where they
    say what they did.

    ``types`` are those of all columns of the stream and of derived ones, None for one that does not
    travel; of these ``columns`` do. ``names`` are those of all. ``shown`` are the columns in which
    parameters of SELECT lists come back. ``remember`` says whether results of functions are kept
    for further events, ``limits`` what a query may take.
    """

    log: str
    job: Job
    version: int
    batch: int
    kept: float
    types: tuple[pa.DataType | None, ...]
    columns: tuple[int, ...]
    counts: Accumulator[CountsByBatch]
    names: tuple[str, ...]
    shown: tuple[tuple[str, pa.DataType], ...] = ()
    remember: bool = True
    limits: RuleLimits = NO_LIMITS

    def wanted(self, batches: Iterator[Sequence[pa.Array]]) -> Iterator[pa.Array]:
        """Yield for each batch of columns the queries that want each row."""
        counts = Counts()
        started = time.perf_counter()
        live = _live_in(self)
        live.begin()
        counts.seconds["keep up"] += time.perf_counter() - started
        sample = SampledRows(self.kept, self.batch)
        for columns in batches:
            started = time.perf_counter()
            matches = live.wanted(columns, self, counts, sample.taken(len(columns[0])))
            counts.seconds["select"] += time.perf_counter() - started
            yield matches
        self.counts.add({(self.job.name, self.batch): counts})


def wanted_by(work: SelectingWork) -> Callable[..., Iterator[pa.Array]]:
    """Return the function that Spark calls, with the type hints that tell it how."""

    def of_several(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return work.wanted(batches)

    def of_one(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return work.wanted((column,) for column in batches)

    return of_one if len(work.columns) == 1 else of_several


Matches: TypeAlias = "tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]"
"""Pairs of a row and a query that wants it."""


class SelectingQueries:
    """The queries of one job, in an eddy of this worker, which lives from task to task."""

    def __init__(self, work: SelectingWork) -> None:
        self._live = KeptUpQueries(work.log, work.job)
        stream = Stream("stream", tuple(pa.null() if kind is None else kind for kind in work.types))
        self._eddy = SharedEddy(
            (stream,),
            self._take,
            WorkClock(),
            np.random.default_rng(0),
            on_error=self._failed,
        )
        self._functions = EngineFunctions(
            self._eddy, remember=work.remember, seconds=work.limits.function_seconds
        )
        self._called = CalledValues(self._live, self._functions)
        self._names = work.names
        self._limit = ResultLimit(work.limits.max_results)
        self._errors: dict[int, QueryFailure] = {}
        self._found: list[Matches] = []

    @property
    def version(self) -> int:
        """The version of the queries that are here."""
        return self._live.version

    def go_to(self, version: int) -> None:
        """Take on the changes up to a version; ValueError for one before."""
        if version == self.version:
            return
        difference = self._live.go_to(version)
        self._eddy.remove(difference.went)
        with uncollected():
            self._eddy.add(compiled(difference.came, lambda _: (0,), self._functions.numbers))
        if difference.went:
            self._functions.keep_only(self._live.templates)

    def begin(self) -> None:
        """Begin with a task."""
        self._limit.begin()
        self._functions.begin()

    def wanted(
        self,
        columns: Sequence[pa.Array],
        work: SelectingWork,
        counts: Counts,
        taken: npt.NDArray[np.bool_] | None = None,
    ) -> pa.Array:
        """Return for each row the queries that want it: a list of names, layouts and parameters.

        Rows that are not ``taken`` are wanted by none.
        """
        rows = len(columns[0])
        counts.rows_in[work.job.streams[0]] += rows
        places = None
        if taken is not None:
            counts.dropped[work.job.streams[0]] += int((~taken).sum())
            places = np.flatnonzero(taken)
            columns = [column.take(pa.array(places)) for column in columns]
        every = [pa.nulls(len(columns[0])) for _ in work.types]
        for number, column in zip(work.columns, columns, strict=False):
            every[number] = column
        self._found.clear()
        if len(self._eddy):
            self._eddy.push(0, every, len(columns[0]))
        matches = self._matches(rows, places, every, work.shown, counts)
        counts.errors |= self._errors
        self._errors.clear()
        return matches

    def _failed(self, query: int, error: Exception, event: FailingEvent) -> None:
        if query not in self._errors:
            named = ((self._names[number], value) for number, value in event().items())
            values = {name: value for name, value in named if name}
            self._errors[query] = QueryFailure(error_text(error), shown_event(values))

    def _take(self, results: SharedResults) -> None:
        positions, queries = self._eddy.sets.spread(results.lineages)
        rows = results.arrivals(0) - self._eddy.first_passing(0)
        self._found.append((rows[positions], queries))

    def _matches(
        self,
        rows: int,
        places: npt.NDArray[np.int64] | None,
        columns: Sequence[pa.Array],
        shown: Sequence[tuple[str, pa.DataType]],
        counts: Counts,
    ) -> pa.Array:
        starts = np.zeros(rows + 1, np.int32)
        at, queries = in_row_order(self._found)
        passing = self._limit.passing(queries, counts)
        if passing is not None:
            at, queries = at[passing], queries[passing]
        rows_of_results = pa.array(at)
        called, failed = self._called.of(queries, lambda _, n: columns[n].take(rows_of_results))
        if failed:
            kept = without_failed(failed, len(queries), counts)
            at, queries = at[kept], queries[kept]
            called = {name: values.take(pa.array(kept)) for name, values in called.items()}
            for call in failed:
                self._failed(call.query, call.error, call.event)
        at = at if places is None else places[at]
        np.cumsum(np.bincount(at, minlength=rows), out=starts[1:])
        names, layouts = self._live.described()
        chosen = pa.array(queries)
        beside = self._live.shown(chosen) | called
        values = pa.StructArray.from_arrays(
            [names.take(chosen), layouts.take(chosen), *(beside[name] for name, _ in shown)],
            fields=[*_MATCH, *(pa.field(name, kind) for name, kind in shown)],
        )
        matches = pa.list_(pa.field("element", values.type, nullable=False))
        return pa.ListArray.from_arrays(pa.array(starts), values, type=matches)


def in_row_order(found: Sequence[Matches]) -> Matches:
    """Return matches in the order of their rows.

    The eddy gives even a single batch of results in any order: its rows have gone different ways.
    """
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    at, queries = (np.concatenate(parts) for parts in zip(*found, strict=True))
    if (at[1:] < at[:-1]).any():
        order = np.argsort(at, kind="stable")
        at, queries = at[order], queries[order]
    return at, queries


_LIVE: dict[tuple[str, str], SelectingQueries] = {}
"""The queries of jobs in this worker process, by log and name of the job."""


def _live_in(work: SelectingWork) -> SelectingQueries:
    key = work.log, work.job.name
    live = _LIVE.get(key)
    if live is None or live.version > work.version:
        live = SelectingQueries(work)
    _LIVE.pop(key, None)  # what fails half-way is not to be used again
    live.go_to(work.version)
    _LIVE[key] = live
    return live
