"""Runs the block of a watched query in this process, while Spark scans."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.partial_results import Partial, PartialResults
from eddyline.engine.join.reading_order import Goal
from eddyline.engine.join.results import Joined
from eddyline.engine.modules.scan_access import Arrival, HeldScan, ScanAccess
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.evaluation.labels import relabelled
from eddyline.online.running_aggregates import Estimates, RunningAggregates
from eddyline.query.expressions import Expression
from eddyline.spark.blocks.column_types import returned_type, spark_type
from eddyline.spark.watching.aggregation import Aggregation
from eddyline.spark.watching.arriving import Arriving
from eddyline.spark.watching.control import Control, StoppedError, WatchedAgenda
from eddyline.spark.watching.parts import MISSING, Parts, SourceProgress
from eddyline.spark.watching.preferences import rows_first
from eddyline.spark.watching.scanning import Scanning
from eddyline.spark.watching.values import Values
from eddyline.spark.watching.watched_query import WatchedQuery
from eddyline.spark.worker.calling import make_function
from eddyline.spark.worker.task_lookups import TaskLookups
from eddyline.wall_clock import WallClock

PROGRESS_SECONDS: Final = 0.05
"""Seconds between two readings of the progress."""

ROOM: Final = 256
"""Tuples that a lookup takes at a time: what was handed over cannot be preferred any more."""

UNIT: Final = "eddyline_unit"


@dataclass(frozen=True, slots=True)
class Wishes:
    """How a query is to be worked: see :func:`eddyline.watch`."""

    partial: bool
    policy: PolicyName
    seed: int
    units: int
    confidence: float


class Work:
    """One run of a watched query, in the thread that calls :meth:`run`."""

    def __init__(
        self, spark: SparkSession, query: WatchedQuery, wishes: Wishes, job: str, control: Control
    ) -> None:
        """Get ready; nothing runs before :meth:`run`."""
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
        sampled = self._largest() if query.aggregation is not None else None
        self._arriving = {
            r: Arriving(self._agenda.poke, self._check, whole=r == sampled) for r in query.scans
        }
        self._eddy: JoinEddy | None = None
        self._noted: PartialResults | None = None
        self._last_progress = 0.0
        self._ended = False
        self._preferred: deque[tuple[Expression | None, float]] = deque()

    def poke(self) -> None:
        """Let the thread that works see that it is to pause, or to stop."""
        self._agenda.poke()

    def prefer(self, predicate: Expression | None, weight: float) -> None:
        """Let rows that satisfy a predicate over the query's columns come first, soon."""
        for relation, scan in self._arriving.items():
            scan.prefer(rows_first(self._block.query, relation, predicate, weight))
        self._preferred.append((predicate, weight))
        self._agenda.poke()

    def run(self) -> None:
        """Run the query; whatever comes, and whatever goes wrong, goes to ``parts``."""
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
        lookups = TaskLookups(self._block, self._job, self._agenda, ROOM)
        try:
            eddy = self._eddy = JoinEddy(
                self._block.query,
                [make_function(each, self._block.settings) for each in self._block.functions],
                lambda: make_policy(self._wishes.policy),
                WallClock(),
                np.random.default_rng(self._wishes.seed),
                lookups=lookups.sources,
            )
            eddy.between_steps = partial(self._prefer, eddy)
            if self._wishes.partial:
                self._noted = eddy.note_partial_results()
                eddy.want_partial_rows()
            if self._query.aggregation is None:
                eddy.reading.goal = Goal.INTERACTIVE
                with Scanning(self._spark, self._query.scans, self._arriving):
                    self._emit(eddy.run(self._inputs(), self._wait))
            else:
                self._aggregate(eddy, self._query.aggregation)
            self._ended = True
            self._flush()
            self._tell_progress(eddy)
        finally:
            lookups.close()

    def _largest(self) -> int:
        scans = self._query.scans
        return max(scans, key=lambda r: (self._block.sizes[r], -r))

    def _inputs(self) -> list[ScanAccess]:
        """Return an input a relation; what is only looked up is not read."""
        count = len(self._block.query.relations)
        return [self._arriving.get(r) or HeldScan(()) for r in range(count)]

    def _wait(self) -> None:
        self._agenda.wait()

    def _check(self) -> None:
        """See to it that what has come is seen, and whether to go on."""
        self._control.check()
        eddy = self._eddy
        if eddy is None:
            return
        self._flush()
        if time.monotonic() - self._last_progress >= PROGRESS_SECONDS:
            self._tell_progress(eddy)

    def _prefer(self, eddy: JoinEddy) -> None:
        while self._preferred:
            eddy.prefer(*self._preferred.popleft())

    def _flush(self) -> None:
        for noted in () if self._noted is None else self._noted.take():
            self.parts.put_partial(self._partial_rows(noted))

    def _tell_progress(self, eddy: JoinEddy) -> None:
        self._last_progress = time.monotonic()
        done = eddy.statistics()
        keys: dict[int, int] = {}
        for (relation, _), lookup in zip(self._block.query.lookups, done.lookups, strict=True):
            keys[relation] = keys.get(relation, 0) + lookup.bindings
        self.parts.put_progress(
            [
                SourceProgress(relation.name, done.read[r], self._has_ended(r), keys.get(r))
                for r, relation in enumerate(self._block.query.relations)
            ]
        )

    def _has_ended(self, relation: int) -> bool:
        scan = self._arriving.get(relation)
        return self._ended if scan is None else scan.is_read

    def _emit(self, joined: Iterable[Joined]) -> None:
        for each in joined:
            self.parts.put(self._full_rows(each), lambda: not self._control.stopped)

    def _full_rows(self, joined: Joined) -> pa.RecordBatch:
        columns = list(map(relabelled, self._values.of(joined.outputs, joined.rows), self._types))
        names = list(self._query.names)
        if not names:  # nobody wants a column, but there are rows
            return pa.record_batch([pa.nulls(joined.rows)], names=[""]).select([])
        return pa.record_batch(columns, names=names)

    def _partial_rows(self, noted: Partial) -> pa.RecordBatch:
        found = self._values.known(noted.outputs, noted.rows)
        columns = [
            pa.nulls(noted.rows, kind) if values is None else relabelled(values, kind)
            for values, kind in zip(found, self._types, strict=True)
        ]
        names = list(self._query.names)
        missing = [name for name, each in zip(names, found, strict=True) if each is None]
        marks = pa.array([missing], pa.list_(pa.string())).take(pa.array([0] * noted.rows))
        return pa.record_batch([*columns, marks], names=[*names, MISSING])

    def _aggregate(self, eddy: JoinEddy, aggregation: Aggregation) -> None:
        """Read all other relations, then the largest unit by unit.

        Only then is it scanned: until it is read its tasks would keep the cores from the others.
        """
        sampled = self._largest()
        others = {r: frame for r, frame in self._query.scans.items() if r != sampled}
        with Scanning(self._spark, others, self._arriving):
            for r in others:
                for joined in self._read(eddy, r, self._arriving[r]):
                    raise AssertionError(f"{joined.rows} rows without the sampled relation")
        units, scan = self._wishes.units, self._arriving[sampled]
        running = RunningAggregates(
            aggregation.groups,
            aggregation.aggregates,
            units,
            self._wishes.confidence,
            aggregation.formulas,
        )
        with Scanning(self._spark, {sampled: self._dealt(sampled)}, self._arriving):
            for unit in range(units):
                arrival = self._next_unit(scan)
                if arrival is not None and arrival.rows:
                    self._add(running, eddy.push(sampled, arrival))
                    self._add(running, eddy.finish())
                if unit == units - 1:
                    self._add(running, eddy.end(sampled))
                    self._add(running, eddy.finish())
                running.end_unit()
                self.parts.put_estimates(in_order(running.estimates(), aggregation))

    def _dealt(self, relation: int) -> DataFrame:
        """Return a scan of which the rows are dealt out to units, one a partition."""
        units = self._wishes.units
        unit = (F.rand(self._wishes.seed) * units).cast("int")
        frame = self._query.scans[relation].withColumn(UNIT, unit)
        return frame.repartitionById(units, F.col(UNIT)).drop(UNIT)

    def _next_unit(self, scan: Arriving) -> Arrival | None:
        """Return the rows of the next unit; None where Spark knows that there are no more."""
        while not scan.ended:
            arrival = scan.poll()
            if arrival is not None:
                return arrival
            if not scan.ended:
                self._wait()
        return None

    def _read(self, eddy: JoinEddy, relation: int, scan: Arriving) -> Iterator[Joined]:
        while not scan.ended:
            arrival = scan.poll()
            if arrival is not None and arrival.rows:
                yield from eddy.push(relation, arrival)
            elif arrival is None and not scan.ended:
                self._wait()
        yield from eddy.end(relation)

    def _add(self, running: RunningAggregates, joined: Iterable[Joined]) -> None:
        for each in joined:
            running.add(self._values.of(each.outputs, each.rows), each.rows)


def in_order(estimates: Estimates, aggregation: Aggregation) -> Estimates:
    """Return estimates with columns as the DataFrame has them."""
    columns: list[int] = []
    groups = len(aggregation.groups)
    for place in aggregation.order:
        first = place if place < groups else groups + 3 * (place - groups)
        columns += [first] if place < groups else [first, first + 1, first + 2]
    table = estimates.table.select(columns).rename_columns(list(aggregation.names))
    return replace(estimates, table=table)
