"""One task of a join block: its eddy, and what it did."""

from __future__ import annotations

import contextlib
import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from eddyline.engine.eddy import LearnedCosts
from eddyline.engine.evaluation import forget_programs
from eddyline.engine.join_eddy import Joined, JoinEddy, JoinStatistics
from eddyline.engine.modules.stem import SteMStatistics
from eddyline.engine.policies.catalogue import make_policy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.signature import Signature
from eddyline.reports.merging import compacted
from eddyline.reports.records import JoinRecord, OrderSlice, SteMRecord, TaskRecord
from eddyline.spark.calling import make_function
from eddyline.spark.fused import Orders, RoutingOptions, function_records, predicate_record
from eddyline.spark.joins.blobs import together
from eddyline.spark.joins.block import JoinBlock
from eddyline.spark.joins.spill import SpillTotals
from eddyline.wall_clock import WallClock, WorkClock

Learned: TypeAlias = "tuple[Policy, LearnedCosts]"

OUTPUT_ROWS = 1 << 16
"""Rows of a batch that is handed back to Spark, at the most by a little."""

# What the last task of this worker process learned, by block and policy.
_learned: OrderedDict[tuple[str, str], Learned] = OrderedDict()

LEARNED_BLOCKS = 64
"""Blocks of which a worker process remembers what it learned, the latest ones."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An eddy whose SteMs hold what every task of a process needs."""

    eddy: JoinEddy


class JoinTask:
    """One task's eddy over joins."""

    def __init__(
        self, block: JoinBlock, options: RoutingOptions, prepared: Prepared | None = None
    ) -> None:
        """Make the eddy, or take one that an earlier task of this process has prepared."""
        self._block = block
        self._key = (block.identity, options.policy)
        self._work_clock = WorkClock()
        self._clock = WallClock()
        self._epoch = time.time() - self._clock.now()
        self._inside = 0.0
        self._slices: list[OrderSlice] = []
        self._orders = Orders(_begins)
        self._functions = [make_function(each, block.settings) for each in block.functions]
        if prepared is not None:
            self.eddy = prepared.eddy
            self.eddy.renew(self._functions, self._work_clock, self._orders)
        else:
            context = TaskContext.get()
            partition = context.partitionId() if context is not None else 0
            self.eddy = JoinEddy(
                block.query,
                self._functions,
                lambda: make_policy(options.policy),
                self._work_clock,
                np.random.default_rng([options.seed, partition]),
                instrument=self._orders,
                learned=_learned.get(self._key),
            )
        self._orders.policy = self.eddy.eddy.policy
        self._before = self.eddy.statistics() if prepared is not None else None

    def prepared(self) -> Prepared:
        """Return the eddy for later tasks of this process."""
        return Prepared(self.eddy)

    def end(self, error: BaseException | None) -> None:
        """End the user's iterators; leave what was learned for the next task."""
        _learned[self._key] = self.eddy.learned()
        _learned.move_to_end(self._key)
        if len(_learned) > LEARNED_BLOCKS:
            _learned.popitem(last=False)
        forget_programs()
        self._work_clock.close()
        with contextlib.ExitStack() as functions:
            if error is not None:  # the first error is the one to see
                functions.enter_context(contextlib.suppress(Exception))
            for function in self._functions:
                functions.callback(function.close)

    def results(self, joined: Iterable[Joined]) -> Iterator[pa.RecordBatch]:
        """Yield joined rows in batches of a good size."""
        names = [f"c{number}" for number in range(len(self._block.output_types))]
        held: list[pa.RecordBatch] = []
        rows = 0
        for each in self._timed(joined):
            held.append(pa.record_batch(list(each.outputs), names=names))
            rows += each.rows
            if rows >= OUTPUT_ROWS:
                yield from together(held)
                held, rows = [], 0
        yield from together(held)

    def record(self, spilled: SpillTotals | None = None) -> TaskRecord:
        """Return what this task did."""
        now, before = self.eddy.statistics(), self._before
        modules = len(now.predicates)
        stems = tuple(
            stem_record(stem, self.eddy.eddy.seconds_in(modules + number))
            for number, stem in enumerate(now.stems)
        )
        read = now.read
        record = TaskRecord(
            block=self._block.identity,
            rows_in=sum(read),
            rows_out=now.rows_out,
            seconds=self._inside,
            work_seconds=now.eddy.work_seconds,
            routing_seconds=now.eddy.routing_seconds,
            decisions=now.eddy.decisions,
            predicates=tuple(map(predicate_record, now.predicates)),
            functions=function_records(self._block.functions, now.calls),
            orders=tuple(self._slices),
            worker=str(os.getpid()),
        )
        if before is not None:
            stems = tuple(map(_stem_since, stems, before.stems))
            read = tuple(one - two for one, two in zip(read, before.read, strict=True))
            record = _since(record, before, self._block)
        totals = spilled or SpillTotals()
        join = JoinRecord(
            stems=stems,
            read=read,
            cells=(sum(read),),
            spilled_bytes=totals.bytes,
            spilled_files=totals.files,
        )
        return compacted(replace(record, join=join))

    def _timed(self, joined: Iterable[Joined]) -> Iterator[Joined]:
        """Pass joined rows on, and note how long they took and in which orders they came."""
        source = iter(joined)
        while True:
            started = self._clock.now()
            each = next(source, None)
            ended = self._clock.now()
            self._inside += ended - started
            taken = self._orders.taken()
            if taken:
                span = OrderSlice(
                    self._epoch + started, self._epoch + ended, sum(n for _, n in taken), taken
                )
                self._slices.append(span)
            if each is None:
                return
            yield each


def _begins(signature: Signature) -> bool:
    """Tell whether tuples begin their way through selections and SteMs: they are singletons."""
    return signature.spanned.bit_count() == 1 and not signature.done


def stem_record(stem: SteMStatistics, seconds: float) -> SteMRecord:
    """Return what a SteM did, for the report."""
    return SteMRecord(
        relation=stem.relation,
        rows=stem.rows,
        bytes=stem.bytes,
        builds=stem.builds,
        probes=stem.probes,
        matches=stem.matches,
        bounced=stem.bounced,
        killed=stem.killed,
        seconds=seconds,
    )


def _stem_since(now: SteMRecord, before: SteMStatistics) -> SteMRecord:
    """Return what a SteM did since; its time is not known apart and stays as it is."""
    return replace(
        now,
        builds=now.builds - before.builds,
        probes=now.probes - before.probes,
        matches=now.matches - before.matches,
        bounced=now.bounced - before.bounced,
        killed=now.killed - before.killed,
    )


def _since(record: TaskRecord, before: JoinStatistics, block: JoinBlock) -> TaskRecord:
    """Return what was done since an eddy had done what is in ``before``."""
    predicates = map(predicate_record, before.predicates)
    functions = function_records(block.functions, before.calls)
    return replace(
        record,
        rows_in=record.rows_in - sum(before.read),
        rows_out=record.rows_out - before.rows_out,
        work_seconds=record.work_seconds - before.eddy.work_seconds,
        routing_seconds=record.routing_seconds - before.eddy.routing_seconds,
        decisions=record.decisions - before.eddy.decisions,
        predicates=tuple(
            replace(
                now,
                rows_in=now.rows_in - then.rows_in,
                passed=now.passed - then.passed,
                rejected=now.rejected - then.rejected,
                null=now.null - then.null,
                errors_held=now.errors_held - then.errors_held,
                seconds=now.seconds - then.seconds,
            )
            for now, then in zip(record.predicates, predicates, strict=True)
        ),
        functions=tuple(
            replace(
                now,
                calls=now.calls - then.calls,
                calls_possible=now.calls_possible - then.calls_possible,
                seconds=now.seconds - then.seconds,
            )
            for now, then in zip(record.functions, functions, strict=True)
        ),
    )
