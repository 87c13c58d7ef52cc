"""What a task does for queries on one stream: it tells for each row which of them want it.

The rows stay in the JVM. What travels are the columns that the queries' predicates are about, and
back the names of the queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.sharing.shared_eddy import Results, SharedEddy
from eddyline.sharing.shared_query import SharedQuery, Stream
from eddyline.spark.blocks.standing import OutputColumn
from eddyline.spark.query_log.change_log import ChangeLog
from eddyline.spark.query_log.constants import queries_of
from eddyline.spark.query_log.jobs import Job, job_of
from eddyline.spark.query_log.live_queries import LiveQueries, LiveQuery
from eddyline.wall_clock import WallClock

Layout = tuple[OutputColumn, ...]
"""What queries put out."""

QUERY, LAYOUT = "eddyline_query", "eddyline_layout"
"""The name of a query that wants a row, and which of the batch's layouts its results have."""

_MATCH: Final = pa.struct([pa.field(QUERY, pa.string(), False), pa.field(LAYOUT, pa.int32(), False)])  # noqa: FBT003 - never NULL
_MATCHES: Final = pa.list_(pa.field("element", _MATCH, nullable=False))


@dataclass(frozen=True, slots=True)
class SelectingWork:
    """What the tasks of a micro-batch do: the queries of a version, on rows of a stream.

    ``types`` are those of all columns of the stream, None for one that cannot travel; of these
    ``columns`` travel.
    """

    log: str
    job: Job
    version: int
    types: tuple[pa.DataType | None, ...]
    columns: tuple[int, ...]
    layouts: tuple[Layout, ...]

    def wanted(self, batches: Iterator[Sequence[pa.Array]]) -> Iterator[pa.Array]:
        """Yield for each batch of columns the queries that want each row."""
        live = _live_in(self)
        for columns in batches:
            yield live.wanted(columns, self)


def wanted_by(work: SelectingWork) -> Callable[..., Iterator[pa.Array]]:
    """Return the function that Spark calls, with the type hints that tell it how."""

    def of_several(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        return work.wanted(batches)

    def of_one(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        return work.wanted((column,) for column in batches)

    return of_one if len(work.columns) == 1 else of_several


class SelectingQueries:
    """The queries of one job, in an eddy of this worker, which lives from task to task."""

    def __init__(self, types: Sequence[pa.DataType | None]) -> None:
        """Start without queries."""
        self._live = LiveQueries()
        stream = Stream("stream", tuple(pa.null() if kind is None else kind for kind in types))
        self._eddy = SharedEddy((stream,), self._take, WallClock(), np.random.default_rng(0))
        self._names: list[str] = []
        self._layouts: list[Layout] = []
        self._known: tuple[pa.Array, pa.Array] | None = None
        self._layouts_of_batch: tuple[Layout, ...] = ()
        self._found: list[Results] = []

    @property
    def version(self) -> int:
        """The version of the queries that are here."""
        return self._live.version

    def go_to(self, version: int, log: ChangeLog, job: Job) -> None:
        """Take on the changes up to a version; ValueError for one before."""
        if version == self.version:
            return
        difference = self._live.go_to(version, log)
        self._eddy.remove([number for number in difference.went if number in self._eddy])
        came = [query for query in difference.came if job_of(query.template) == job]
        for number in range(len(self._names), self._live.next_number):
            self._names.append("")
            self._layouts.append(())
        for query in came:
            self._names[query.number] = query.name
            self._layouts[query.number] = query.template.outputs
        self._eddy.add(compiled(came))
        self._known = None

    def wanted(self, columns: Sequence[pa.Array], work: SelectingWork) -> pa.Array:
        """Return for each row the queries that want it: a list of names and layouts."""
        rows = len(columns[0])
        every = [pa.nulls(rows) for _ in work.types]
        for number, column in zip(work.columns, columns, strict=False):
            every[number] = column
        self._found.clear()
        if len(self._eddy):
            self._eddy.push(0, every, rows)
        return self._matches(rows, work)

    def _take(self, results: Results) -> None:
        self._found.append(results)

    def _matches(self, rows: int, work: SelectingWork) -> pa.Array:
        starts = np.zeros(rows + 1, np.int32)
        parts = []
        for results in self._found:  # one a row at the most: there is one way through this eddy
            first = self._eddy.first_passing(0)
            places, queries = self._eddy.sets.spread(results.lineages)
            at = results.arrivals(0)[places] - first
            parts.append((at, queries))
        at = np.concatenate([part[0] for part in parts]) if parts else np.empty(0, np.int64)
        queries = np.concatenate([p[1] for p in parts]) if parts else np.empty(0, np.int64)
        if len(parts) > 1:
            order = np.argsort(at, kind="stable")
            at, queries = at[order], queries[order]
        np.cumsum(np.bincount(at, minlength=rows), out=starts[1:])
        names, layouts = self._described(work)
        chosen = pa.array(queries)
        values = pa.StructArray.from_arrays(
            [names.take(chosen), layouts.take(chosen)], fields=list(_MATCH)
        )
        return pa.ListArray.from_arrays(pa.array(starts), values, type=_MATCHES)

    def _described(self, work: SelectingWork) -> tuple[pa.Array, pa.Array]:
        """Return the names and the layouts of queries by number."""
        if self._known is None or self._layouts_of_batch != work.layouts:
            number = {layout: position for position, layout in enumerate(work.layouts)}
            layouts = [number.get(layout, -1) for layout in self._layouts]
            self._known = pa.array(self._names, pa.string()), pa.array(layouts, pa.int32())
            self._layouts_of_batch = work.layouts
        return self._known


def compiled(queries: Sequence[LiveQuery]) -> dict[int, SharedQuery]:
    """Return queries as an eddy takes them, by number; those of a group at once."""
    groups: dict[int, list[LiveQuery]] = {}
    for query in queries:
        groups.setdefault(id(query.group), []).append(query)
    found: dict[int, SharedQuery] = {}
    for members in groups.values():
        positions = [query.position for query in members]
        shared = queries_of(members[0].group, positions)
        found |= {query.number: one for query, one in zip(members, shared, strict=True)}
    return found


_LIVE: dict[tuple[str, str], SelectingQueries] = {}
"""The queries of jobs in this worker process, by log and name of the job."""


def _live_in(work: SelectingWork) -> SelectingQueries:
    key = work.log, work.job.name
    live = _LIVE.get(key)
    if live is None or live.version > work.version:
        live = SelectingQueries(work.types)
    _LIVE.pop(key, None)  # what fails half-way is not to be used again
    live.go_to(work.version, ChangeLog(Path(work.log)), work.job)
    _LIVE[key] = live
    return live
