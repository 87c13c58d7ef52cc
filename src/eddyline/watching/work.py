"""Runs the block of a watched query in this process, while Spark scans."""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline.blocks.chosen_policy import ChosenPolicy
from eddyline.blocks.column_types import returned_type, spark_type
from eddyline.blocks.join_block import JoinBlock
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.join_results import Joined, Partial, PartialResults
from eddyline.engine.join.reading_order import Goal
from eddyline.engine.join_query import JoinQuery
from eddyline.exchange.spill import spill_folder
from eddyline.expressions import Expression
from eddyline.expressions.value_types import relabelled
from eddyline.quirks.numbered_partitions import repartitioned
from eddyline.tasks.calling import make_function
from eddyline.tasks.task_lookups import TaskLookups
from eddyline.wall_clock import WallClock
from eddyline.watching.aggregation import WatchedAggregation
from eddyline.watching.arriving import Arriving
from eddyline.watching.bounded_scans import BoundedScans
from eddyline.watching.control import Control, StoppedError, WatchedAgenda
from eddyline.watching.parts import MISSING, Parts, SourceProgress
from eddyline.watching.preferences import rows_first
from eddyline.watching.ripple_join import RippleJoin, SampledInput, rates_of, with_units
from eddyline.watching.running_aggregates import Estimates, RunningAggregates
from eddyline.watching.scanning import AllUnits, Scanning, WantedUnits
from eddyline.watching.watched_query import WatchedQuery
from eddyline.watching.watched_values import Values

PROGRESS_SECONDS: Final = 0.05
"""Seconds between two readings of the progress."""

ROOM: Final = 256
"""Tuples that a lookup takes at a time: what was handed over cannot be preferred any more."""

UNIT: Final = "eddyline_unit"

LARGE_BYTES: Final = 1 << 26
"""Spark's estimate of a scan, by size second to the largest, from which on it is sampled, too.

A smaller one is read sooner than it is dealt out to units.
"""

LARGE_PART: Final = 0.1
"""Part of the largest scan that it must be: reading it first takes little of the time otherwise."""

APART: Final = 1 << 32
"""Between the seeds of two scans: more than either has partitions."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """How a query is to be worked: see :func:`eddyline.watch`."""

    partial: bool
    policy: ChosenPolicy
    seed: int
    units: int
    confidence: float
    memory: int  # bytes that rows of joins may take


class Work:
    """One run of a watched query, in the thread that calls :meth:`run`."""

    def __init__(
        self, spark: SparkSession, query: WatchedQuery, wishes: Wishes, job: str, control: Control
    ) -> None:
        """Nothing runs before :meth:`run`."""
        self._spark = spark
        self._query = query
        self._block = query.block
        self._wishes = wishes
        self._job = job
        self._control = control
        self._agenda = WatchedAgenda(self._check)
        self._types = [returned_type(spark_type(text)) for text in query.types]
        self._values = Values(query.values)
        fields = list(zip(query.names, self._types, strict=True))
        self.parts = Parts(pa.schema([] if query.aggregation is not None else fields))
        self._sampled = sampled_in(self._block) if query.aggregation is not None else ()
        self._arriving = {
            r: Arriving(self._agenda.poke, self._check, whole=r in self._sampled)
            for r in query.scans
        }
        self._ripple: RippleJoin | None = None
        self._eddy: JoinEddy | None = None
        self._scans: BoundedScans | None = None
        self._preference: tuple[Expression | None, float] | None = None
        self._read_rows = [0] * len(self._block.query.relations)
        self._keys: dict[int, int] = {}
        self._noted: PartialResults | None = None
        self._last_progress = 0.0
        self._ended = False
        self._preferred: deque[tuple[Expression | None, float]] = deque()

    def poke(self) -> None:
        """Let the working thread see that it is to pause, or to stop."""
        self._agenda.poke()

    def prefer(self, predicate: Expression | None, weight: float) -> None:
        """Let rows that satisfy a predicate over the query's columns come first, soon."""
        for relation, scan in self._arriving.items():
            scan.prefer(rows_first(self._block.query, relation, predicate, weight))
        self._preferred.append((predicate, weight))
        self._agenda.poke()

    def run(self) -> None:
        """Run the query; all that comes, and any error, goes to ``parts``."""
        error: BaseException | None = None
        try:
            self._run()
        except StoppedError:
            pass
        except BaseException as raised:  # noqa: BLE001 - it is raised where the rows are wanted
            error = raised
        finally:
            self.parts.end(error)

    def _run(self) -> None:
        if self._query.aggregation is None:
            self._join()
        else:
            self._aggregate(self._query.aggregation)
        self._ended = True
        self._tell_progress()

    @contextmanager
    def _eddy_over(self, query: JoinQuery) -> Iterator[JoinEddy]:
        """Make the eddy that works from now on, with its lookups."""
        lookups = TaskLookups(self._block, self._job, self._agenda, ROOM)
        try:
            eddy = self._eddy = JoinEddy(
                query,
                [
                    make_function(function, self._block.settings)
                    for function in self._block.functions
                ],
                self._wishes.policy.make,
                WallClock(),
                np.random.default_rng(self._wishes.seed),
                lookups=lookups.sources,
            )
            eddy.between_steps = partial(self._between_steps, eddy)
            if self._preference is not None:
                eddy.prefer(*self._preference)
            yield eddy
            self._flush()
            self._note_progress(eddy)
        finally:
            self._eddy = None
            lookups.close()

    def _join(self) -> None:
        """Join the scans in memory, then what does not fit there."""
        query = self._block.query
        scans = self._scans = BoundedScans(query, self._arriving, self._wishes.memory)
        with Scanning(self._spark, self._query.scans, self._arriving):
            with self._eddy_over(query) as eddy:
                eddy.reading.goal = Goal.INTERACTIVE
                if self._wishes.partial:
                    self._noted = eddy.note_partial_results()
                    eddy.want_partial_rows()
                self._emit(eddy.run(scans.inputs(), self._wait))
            if not scans.is_full:
                return
            self._noted = None
            del eddy
            gc.collect()  # its SteMs, which refer to each other
            for left, inputs in scans.joins_left(self._wait, spill_folder()):
                with self._eddy_over(left) as another:
                    self._emit(another.run(inputs))

    def _wait(self) -> None:
        self._agenda.wait()

    def _check(self) -> None:
        """Ensure that what has come is seen, and check whether to go on."""
        self._control.check()
        if self._eddy is None:
            return
        self._flush()
        if time.monotonic() - self._last_progress >= PROGRESS_SECONDS:
            self._note_progress(self._eddy)
            self._tell_progress()

    def _between_steps(self, eddy: JoinEddy) -> None:
        self._check()
        while self._preferred:
            self._preference = self._preferred.popleft()
            eddy.prefer(*self._preference)

    def _flush(self) -> None:
        for noted in () if self._noted is None else self._noted.take():
            self.parts.put_partial(self._partial_rows(noted))

    def _note_progress(self, eddy: JoinEddy) -> None:
        """Take note of what an eddy has read; several read the same rows, and ask the same keys."""
        done = eddy.statistics()
        keys: dict[int, int] = {}
        for (relation, _), lookup in zip(self._block.query.lookups, done.lookups, strict=True):
            keys[relation] = keys.get(relation, 0) + lookup.bindings
        for r, rows in enumerate(done.read):
            read = self._scans.rows.get(r) if self._scans is not None else None
            self._read_rows[r] = max(self._read_rows[r], rows if read is None else read)
        self._keys = {r: max(count, self._keys.get(r, 0)) for r, count in keys.items()}

    def _tell_progress(self) -> None:
        self._last_progress = time.monotonic()
        ripple = {} if self._ripple is None else rates_of(self._ripple.inputs)
        self.parts.put_progress(
            [
                SourceProgress(
                    relation.name,
                    self._read_rows[r],
                    self._has_ended(r),
                    self._keys.get(r),
                    *ripple.get(r, (None, None)),
                )
                for r, relation in enumerate(self._block.query.relations)
            ]
        )

    def _has_ended(self, relation: int) -> bool:
        scan = self._arriving.get(relation)
        return self._ended if scan is None else scan.is_read

    def _emit(self, joined: Iterable[Joined]) -> None:
        for result in joined:
            self.parts.put(self._full_rows(result), lambda: not self._control.stopped)

    def _full_rows(self, joined: Joined) -> pa.RecordBatch:
        columns = list(map(relabelled, self._values.of(joined.outputs, joined.rows), self._types))
        names = list(self._query.names)
        if not names:  # nobody wants a column, but there are rows
            return pa.record_batch([pa.nulls(joined.rows)], names=[""]).select([])
        return pa.record_batch(columns, names=names)

    def _partial_rows(self, noted: Partial) -> pa.RecordBatch:
        known_values = self._values.known(noted.outputs, noted.rows)
        columns = [
            pa.nulls(noted.rows, kind) if values is None else relabelled(values, kind)
            for values, kind in zip(known_values, self._types, strict=True)
        ]
        names = list(self._query.names)
        missing = [name for name, values in zip(names, known_values, strict=True) if values is None]
        marks = pa.array([missing], pa.list_(pa.string())).take(pa.array([0] * noted.rows))
        return pa.record_batch([*columns, marks], names=[*names, MISSING])

    def _aggregate(self, aggregation: WatchedAggregation) -> None:
        """Read all relations that are not sampled, then the sampled ones unit by unit.

        Only then are these scanned: until they are read their tasks would keep the cores from the
        others.
        """
        query = self._block.query
        if len(self._sampled) > 1:
            query = with_units(query, self._sampled)
        others = {r: df for r, df in self._query.scans.items() if r not in self._sampled}
        units = self._wishes.units
        running = RunningAggregates(
            aggregation.groups,
            aggregation.aggregates,
            [units] * len(self._sampled),
            self._wishes.confidence,
            aggregation.formulas,
        )
        with self._eddy_over(query) as eddy:
            with Scanning(self._spark, others, self._arriving):
                for r in others:
                    for joined in self._read(eddy, r, self._arriving[r]):
                        raise AssertionError(f"{joined.rows} rows without the sampled relations")
            wanted = (
                {r: WantedUnits(self._arriving[r], units) for r in self._sampled}
                if len(self._sampled) > 1
                else {}
            )
            self._ripple = RippleJoin(
                eddy,
                [
                    SampledInput(r, wanted.get(r) or AllUnits(self._arriving[r]), units)
                    for r in self._sampled
                ],
                self._values,
                running,
                WallClock().now,
                room=self._wishes.memory,
            )
            dealt = {r: self._dealt(r, place) for place, r in enumerate(self._sampled)}
            with Scanning(self._spark, dealt, self._arriving, wanted):
                for estimates in self._ripple.run(self._wait):
                    self.parts.put_estimates(in_order(estimates, aggregation))

    def _dealt(self, relation: int, place: int) -> DataFrame:
        """Return a scan with its rows dealt out to units, one a partition.

        By numbers that have nothing to do with those of another scan of the same rows: Spark begins
        with the sum of the seed and a partition's number.
        """
        units = self._wishes.units
        unit = (F.rand(self._wishes.seed + place * APART) * units).cast("int")
        frame = self._query.scans[relation].withColumn(UNIT, unit)
        return repartitioned(frame, units, UNIT).drop(UNIT)

    def _read(self, eddy: JoinEddy, relation: int, scan: Arriving) -> Iterator[Joined]:
        while not scan.ended:
            arrival = scan.poll()
            if arrival is not None and arrival.rows:
                yield from eddy.push(relation, arrival)
            elif arrival is None and not scan.ended:
                self._wait()
        yield from eddy.end(relation)


def sampled_in(block: JoinBlock) -> tuple[int, ...]:
    """Return the relations whose rows are dealt out to units, the largest first: one or two."""
    by_size = sorted(block.scanned, key=lambda r: (-block.sizes[r], r))
    largest, *others = by_size
    least = max(LARGE_BYTES, LARGE_PART * block.sizes[largest])
    return (largest, *(r for r in others[:1] if block.sizes[r] >= least))


def in_order(estimates: Estimates, aggregation: WatchedAggregation) -> Estimates:
    """Return estimates with columns as the DataFrame has them."""
    columns: list[int] = []
    groups = len(aggregation.groups)
    for place in aggregation.order:
        first = place if place < groups else groups + 3 * (place - groups)
        columns += [first] if place < groups else [first, first + 1, first + 2]
    table = estimates.table.select(columns).rename_columns(list(aggregation.names))
    return replace(estimates, table=table)
