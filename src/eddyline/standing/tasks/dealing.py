"""The map side of a job that joins streams: rows that some query wants go to their cells."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator

from eddyline.engine.relation import Relation
from eddyline.exchange.blobs import BLOB_ROWS, Blob, Sorter, encoded, gathered, packed
from eddyline.exchange.hypercube import coordinates, key_words
from eddyline.expressions import Expression
from eddyline.expressions.vector import Scope
from eddyline.standing.engine.aggregation.grouping import Grouping
from eddyline.standing.engine.aggregation.time_window import TimeWindow
from eddyline.standing.engine.grouped_filter import GroupedFilter
from eddyline.standing.engine.lineage import DEAD, LineageSets
from eddyline.standing.engine.pattern_clauses import PatternClauses
from eddyline.standing.engine.ranges import Box, Range
from eddyline.standing.engine.selections import Selection, Selections, split
from eddyline.standing.engine.shared_eddy import ENOUGH_SETS
from eddyline.standing.log.engine_inputs import columns_needed
from eddyline.standing.log.joined_streams import JoinedStreams
from eddyline.standing.query_template import QueryTemplate, names_that_stand_alone
from eddyline.standing.tasks.counts import Counts, CountsByBatch
from eddyline.standing.tasks.dropped_groups import DroppedGroups, countable_groupings
from eddyline.standing.tasks.joining import latest_of
from eddyline.standing.tasks.kept_up import KeptUpQueries, compiled
from eddyline.standing.tasks.micro_batch import micro_batch
from eddyline.standing.tasks.sampled_rows import EventTally, SampledRows
from eddyline.wall_clock import WallClock


@dataclass(frozen=True, slots=True)
class Dealing:
    """What Spark runs over the batches of one stream; ``columns`` of it travel."""

    streams: JoinedStreams
    stream: int
    columns: tuple[int, ...]
    cells: int
    counts: Accumulator[CountsByBatch]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield blobs of rows by cell."""
        batch_now = micro_batch()
        wanted = _wanted_in(self, batch_now.version)
        sorter = Sorter(self.stream, self.cells)
        sample = SampledRows(batch_now.kept, batch_now.number)
        counts = Counts()
        tally = EventTally(wanted.windows if self.streams.samples else ())
        gone = [DroppedGroups(*pair) for pair in wanted.countable] if self.streams.samples else []
        place = {number: position for position, number in enumerate(self.columns)}
        time_column = self.streams.times[self.stream]
        at = None if time_column is None else self.columns.index(time_column)
        job = self.streams.job
        context = TaskContext.get()
        first = context.partitionId() if context is not None else 0
        for turn, batch in enumerate(gathered(batches, BLOB_ROWS), first):
            counts.rows_in[job.streams[self.stream]] += batch.num_rows
            if at is not None and batch.num_rows:
                stream, latest = job.streams[self.stream], latest_of(batch.column(at))
                counts.latest[stream] = max(latest, counts.latest.get(stream, latest))
            taken = sample.taken(batch.num_rows)
            tally.add(None if at is None else batch.column(at), batch.num_rows, taken)
            if taken is not None:
                counts.dropped[job.streams[self.stream]] += int((~taken).sum())
                for groups in gone:
                    groups.add(batch, place, ~taken)
                batch = batch.filter(pa.array(taken))  # noqa: PLW2901 - what is left of it
            started = time.perf_counter()
            rows = sample.with_shares(wanted.rows(batch))
            counts.seconds["select"] += time.perf_counter() - started
            if rows.num_rows:
                yield from sorter.add(rows, self._cells(rows, turn))
        yield from sorter.rest()
        for counted in (tally.batches(), *(groups.batches() for groups in gone)):
            if counted:
                yield packed(Blob(first % self.cells, ~self.stream, 0, 0, encoded(counted)))
        if batch_now.wakes:
            nothing = pa.py_buffer(b"")
            for cell in range(self.cells):
                yield packed(Blob(cell, self.stream, 0, 0, nothing))
        self.counts.add({(job.name, batch_now.number): counts})

    def _cells(self, rows: pa.RecordBatch, turn: int) -> npt.NDArray[np.int64]:
        job = self.streams.job
        if job.aggregates and not job.sessions:  # what comes of rows anywhere is put together
            return np.full((rows.num_rows, 1), turn % self.cells, np.int64)
        if not job.columns:
            return np.zeros((rows.num_rows, 1), np.int64)
        key = rows.column(f"{job.columns[self.stream]}")
        cells = coordinates(key_words(key), self.cells)
        if key.null_count:
            cells[key.is_null().to_numpy(zero_copy_only=False)] = 0
        return cells.reshape(-1, 1)


class WantedRows:
    """The rows of a stream that some query of a job wants."""

    def __init__(self, dealing: Dealing) -> None:
        self._dealing = dealing
        self._live = KeptUpQueries(dealing.streams.log, dealing.streams.job)
        self._filter = GroupedFilter()
        self._searching = Selections()  # those that are about patterns of texts, too
        self._sets = LineageSets()
        self._selections: dict[int, list[_Selection]] = {}  # by the number of the query
        # Each in the filter once, under a number, with how often it is asked for: 256 queries that
        # want the same of 25,000 rows took 40 ms to be told apart where one does with 3.
        self._numbers: dict[_Selection, int] = {}
        self._asking: Counter[_Selection] = Counter()
        self._next = 0
        self._needed: tuple[int, ...] = ()
        self._alone = False  # whether a row may be a result that meets no other
        self._relation = Relation((), (), WallClock())

    @property
    def version(self) -> int:
        """The version of the queries that are here."""
        return self._live.version

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns of the stream that travel; derived ones come with a new plan."""
        return self._dealing.columns

    @property
    def windows(self) -> list[TimeWindow]:
        """The windows that queries aggregate in, each once; of sessions there are no tallies."""
        aggregated = [template.aggregated for template in self._live.templates]
        windows = [rows.aggregation.grouping.window for rows in aggregated if rows is not None]
        return [window for window in dict.fromkeys(windows) if isinstance(window, TimeWindow)]

    @property
    def countable(self) -> list[tuple[Grouping, tuple[int, ...]]]:
        """The groupings by which dropped events are counted, with their columns."""
        job = self._dealing.streams.job
        return list(countable_groupings(job.inputs, self._live.templates).items())

    def go_to(self, version: int) -> None:
        """Take on the changes up to a version."""
        if version == self.version:
            return
        streams, own = self._dealing.streams, self._dealing.stream
        difference = self._live.go_to(version)
        for gone in difference.went:
            self._forget(self._selections.pop(gone))
        name = streams.job.streams[own]
        inputs = {
            query.number: [n for n, stream in enumerate(query.template.inputs) if stream == name]
            for query in difference.came
        }
        boxes: dict[int, tuple[Box, ...]] = {}
        searching: dict[int, Selection] = {}
        for number, query in compiled(difference.came, _as_written, _as_called).items():
            mine = self._selections[number] = []
            for position in inputs[number]:
                selection = split(query.selections[position])
                key = (
                    frozenset(frozenset(box.items()) for box in selection.boxes),
                    selection.patterns,
                )
                mine.append(key)
                self._asking[key] += 1
                if key not in self._numbers:
                    self._numbers[key] = self._next
                    if selection.patterns:
                        searching[self._next] = selection._replace(rest=())
                    else:
                        boxes[self._next] = selection.boxes
                    self._next += 1
        self._filter.add(boxes)
        self._searching.add(searching)
        self._alone = name in names_that_stand_alone(self._live.templates)
        self._needed = columns_needed(streams.job.inputs, streams.times, self._live.templates)[own]

    def _forget(self, selections: Sequence[_Selection]) -> None:
        """Let the selections that a query asked for go, unless others ask for them."""
        self._asking.subtract(selections)
        gone = [selection for selection in dict.fromkeys(selections) if not self._asking[selection]]
        for selection in gone:
            number = self._numbers.pop(selection)
            (self._searching if selection[1] else self._filter).remove([number])
            del self._asking[selection]

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return those of a batch that some query wants, with the columns that any needs.

        These are named by their numbers.
        """
        dealing = self._dealing
        place = {number: position for position, number in enumerate(dealing.columns)}
        kept = batch.select([place[number] for number in self._needed])
        kept = kept.rename_columns([str(number) for number in self._needed])
        if not self._numbers:
            return kept.slice(0, 0)
        types = dealing.streams.types[dealing.stream]
        columns = [
            batch.column(place[number]) if number in place else pa.nulls(batch.num_rows)
            for number in range(len(types))
        ]
        numbers = self._relation.load(columns, batch.num_rows)
        wanted = self._wanted(self._relation.scope(numbers))
        if dealing.streams.job.joins and dealing.streams.job.columns:
            key = batch.column(place[dealing.streams.job.columns[dealing.stream]])
            if key.null_count and not self._alone:
                wanted &= key.is_valid().to_numpy(zero_copy_only=False)
        return kept if wanted.all() else kept.filter(pa.array(wanted))

    def _wanted(self, scope: Scope) -> npt.NDArray[np.bool_]:
        """Return which rows some selection wants."""
        satisfied = self._filter.satisfied(scope)
        wanted: npt.NDArray[np.bool_] = satisfied.ends > satisfied.begins
        if len(self._searching):
            if len(self._sets) > ENOUGH_SETS:
                self._sets.keep_only(())
            wanted |= self._searching.lineages(scope, self._sets) != DEAD
        return wanted


_Selection: TypeAlias = "tuple[frozenset[frozenset[tuple[Expression, Range]]], PatternClauses]"
"""The boxes and patterns of a selection, so that equal ones are one."""


def _as_written(template: QueryTemplate) -> range:
    return range(len(template.inputs))


def _as_called(template: QueryTemplate) -> range:
    return range(len(template.functions))


_WANTED: dict[tuple[str, str, int], WantedRows] = {}
"""What is wanted of streams in this worker process, by log, job and stream."""


def _wanted_in(dealing: Dealing, version: int) -> WantedRows:
    key = dealing.streams.log, dealing.streams.job.name, dealing.stream
    wanted = _WANTED.pop(key, None)  # what fails half-way is not to be used again
    if wanted is None or wanted.version > version or wanted.columns != dealing.columns:
        wanted = WantedRows(dealing)
    wanted.go_to(version)
    _WANTED[key] = wanted
    return wanted
