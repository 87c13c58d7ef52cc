"""The fused function: a filter block as one Arrow iterator UDF that is an eddy.

Spark hands it the arguments of all the block's predicates, batch by batch, and
gets back for each row whether it is kept, and for kept rows the values that are
needed above the block. The rows themselves never leave the JVM.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.types import (
    BooleanType,
    StructField,
    StructType,
)

from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan, FilterStatistics, Learned
from eddyline.engine.modules.selection import SelectionStatistics
from eddyline.engine.policies.adaptive import AdaptivePolicy, NoticedChange
from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.engine.policies.catalogue import make_policy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.relation import CallStatistics
from eddyline.engine.signature import ENTERING, Signature
from eddyline.evaluation import forget_programs
from eddyline.evaluation.labels import relabelled
from eddyline.reports.merging import compacted, merge_by_block
from eddyline.reports.records import (
    Change,
    FunctionRecord,
    Order,
    OrderSlice,
    PredicateRecord,
    TaskRecord,
)
from eddyline.spark.blocks.column_types import returned_type, spark_type
from eddyline.spark.blocks.filter_block import FilterBlock, UserFunction
from eddyline.spark.worker.action_settings import settings_of_action
from eddyline.spark.worker.calling import make_function
from eddyline.wall_clock import WallClock, WorkClock

Records: TypeAlias = dict[str, TaskRecord]
"""What the tasks of all blocks have reported, merged by block."""

NOTEWORTHY_SELECTIVITY = 0.1
"""Change of a predicate's selectivity that goes into the report."""

NOTEWORTHY_COST = 0.2
"""Change of a predicate's cost, as a part of it, that does so if the order changed with it.

Smaller ones come and go with whatever else the machine does.
"""

KEEP = "keep"
"""Field of the fused function's result that says whether the row passes."""


DEFAULT_MEMORY = 512 * 1024 * 1024
"""Bytes that a task of a join block may use where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class RoutingOptions:
    """How a block is routed."""

    policy: str = "adaptive"
    seed: int = 0
    run: int = 0  # tells the records of one `adapt` from those of another
    memory: int = DEFAULT_MEMORY  # bytes that a task of a join block may use


def record_key(identity: str, options: RoutingOptions) -> str:
    """Return the key under which the tasks of a block report."""
    return f"{options.run}/{identity}"


class RecordsParam(AccumulatorParam[Records]):
    """Merges the records of tasks in the driver."""

    def zero(self, value: Records) -> Records:  # noqa: ARG002 - the protocol's argument
        """Return no records."""
        return {}

    def addInPlace(self, value1: Records, value2: Records) -> Records:  # noqa: N802 - PySpark's name
        """Add the records of a task to those that are there, in place."""
        known = {block: value1[block] for block in value2 if block in value1}
        value1.update(merge_by_block(known, value2))
        while len(value1) > REPORTED_BLOCKS:
            del value1[next(iter(value1))]
        return value1


def result_type(block: FilterBlock) -> StructType:
    """Return the Spark type of the fused function: ``keep``, then a field for each output."""
    fields = [StructField(KEEP, BooleanType(), nullable=False)]
    for position, call in enumerate(block.outputs):
        declared = block.functions[call.function].return_type
        fields.append(StructField(f"v{position}", spark_type(declared)))
    return StructType(fields)


def fused_command(
    block: FilterBlock, options: RoutingOptions, records: Accumulator[Records]
) -> bytes:
    """Return the fused function of a block, pickled as Spark keeps user functions."""
    fused = FusedFilter(block, options, records)
    serializer = CloudPickleSerializer()  # type: ignore[no-untyped-call]  # PySpark's own is untyped
    command: bytes = serializer.dumps((fused, result_type(block)))  # type: ignore[no-untyped-call]
    return command


# What the last task of this worker process learned, by block and policy: Spark
# reuses its Python workers, so the next task need not start from nothing.
_learned: OrderedDict[tuple[str, str], Learned] = OrderedDict()

LEARNED_BLOCKS = 64
"""Blocks of which a worker process remembers what it learned, the latest ones."""

REPORTED_BLOCKS = 1_000
"""Blocks whose records the driver keeps, the latest ones; a record takes up to 40 kB."""


class FusedFilter:
    """The callable that Spark runs, once a task."""

    def __init__(
        self, block: FilterBlock, options: RoutingOptions, records: Accumulator[Records]
    ) -> None:
        """Bind a block to the way it is routed and to where its tasks report."""
        self._block = block
        self._options = options
        self._records = records

    def __call__(self, batches: Iterator[Any]) -> Iterator[pa.StructArray]:
        """Filter the batches of one task: arrays of one argument, or tuples of several."""
        task = _Task(self._block, self._options)
        try:
            for batch in batches:
                columns = batch if isinstance(batch, tuple) else (batch,)
                yield task.filter(columns)
        except BaseException:
            # The first error is the one to see, not what comes of it at the end.
            with contextlib.suppress(Exception):
                task.close()
            raise
        else:
            task.close()
        finally:
            self._records.add({record_key(self._block.identity, self._options): task.record()})


class _Task:
    """One task's eddy, and what it did."""

    def __init__(self, block: FilterBlock, options: RoutingOptions) -> None:
        clock = WallClock()
        self._clock = clock
        self._work_clock = WorkClock()
        self._epoch = time.time() - clock.now()
        self._started = clock.now()
        self._inside = 0.0
        self._block = block
        self._fields = [
            pa.field(field.name, returned_type(field.dataType), field.nullable)
            for field in result_type(block)
        ]
        settings = settings_of_action(block.settings)
        self._functions = [make_function(each, settings) for each in block.functions]
        self._orders = Orders()
        self._slices: list[OrderSlice] = []
        self._key = (block.identity, options.policy)
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        self._eddy = FilterEddy(
            FilterPlan(
                block.predicate,
                block.outputs,
                block.texts,
                tuple(function.name for function in block.functions),
                block.argument_names,
            ),
            self._functions,
            lambda: make_policy(options.policy),
            self._work_clock,
            np.random.default_rng([options.seed, partition]),
            instrument=self._orders,
            learned=_learned.get(self._key),
        )
        self._orders.policy = self._eddy.eddy.policy
        self._changes_seen = len(self._changes())
        self._changes_noticed: list[Change] = []
        self._order = self._eddy.eddy.policy.order(ENTERING)

    def filter(self, columns: Sequence[pa.Array]) -> pa.StructArray:
        """Return ``keep`` and the outputs for one batch."""
        started = self._clock.now()
        rows = len(columns[0])
        kept = self._eddy.filter(columns, rows)
        mask = np.zeros(rows, dtype=np.bool_)
        mask[kept.kept] = True
        outputs = (_spread(values, kept.kept, rows) for values in kept.outputs)
        arrays = [
            relabelled(values, field.type)
            for values, field in zip([pa.array(mask), *outputs], self._fields, strict=True)
        ]
        result = pa.StructArray.from_arrays(arrays, fields=self._fields)
        ended = self._clock.now()
        self._inside += ended - started
        self._notice_changes(self._epoch + ended)
        self._slices.append(self._orders.slice(self._epoch + started, self._epoch + ended, rows))
        return result

    def close(self) -> None:
        """End the user's iterators; leave what was learned for the next task."""
        _learned[self._key] = self._eddy.learned()
        _learned.move_to_end(self._key)
        if len(_learned) > LEARNED_BLOCKS:
            _learned.popitem(last=False)
        forget_programs()
        self._work_clock.close()
        with contextlib.ExitStack() as functions:
            for function in self._functions:
                functions.callback(function.close)

    def record(self) -> TaskRecord:
        """Return what this task did."""
        statistics = self._eddy.statistics()
        record = TaskRecord(
            block=self._block.identity,
            rows_in=statistics.rows_in,
            rows_out=statistics.rows_out,
            seconds=self._inside,
            work_seconds=statistics.eddy.work_seconds,
            routing_seconds=statistics.eddy.routing_seconds,
            decisions=statistics.eddy.decisions,
            predicates=_predicates(statistics),
            functions=function_records(self._block.functions, statistics.calls),
            orders=tuple(self._slices),
            changes=tuple(self._changes_noticed),
            worker=str(os.getpid()),
        )
        return compacted(record)  # a long task has thousands of batches, each a slice

    def _changes(self) -> Sequence[NoticedChange]:
        policy = self._eddy.eddy.policy
        return policy.changes if isinstance(policy, AdaptivePolicy) else ()

    def _notice_changes(self, when: float) -> None:
        """Keep what people should know of: not every hiccup of a machine with other work."""
        changes = self._changes()[self._changes_seen :]
        self._changes_seen += len(changes)
        order = self._eddy.eddy.policy.order(ENTERING)
        reordered = order != self._order
        self._order = order
        for change in changes:
            difference = abs(change.after - change.before)
            if change.quantity is ChangedQuantity.SELECTIVITY:
                noteworthy = difference >= NOTEWORTHY_SELECTIVITY
            else:
                noteworthy = reordered and difference >= NOTEWORTHY_COST * change.before
            if noteworthy:
                self._changes_noticed.append(
                    Change(when, change.module, change.quantity, change.before, change.after)
                )


def function_records(
    functions: Sequence[UserFunction], calls: Sequence[CallStatistics]
) -> tuple[FunctionRecord, ...]:
    """Return how often each function was called, for the report."""
    records = []
    for number, function in enumerate(functions):
        of_function = [call for call in calls if call.call.function == number]
        records.append(
            FunctionRecord(
                name=function.name,
                calls=sum(call.calls for call in of_function),
                calls_possible=sum(call.possible for call in of_function),
                seconds=sum(call.seconds for call in of_function),
            )
        )
    return tuple(records)


class Orders:
    """Counts the tuples that entered the eddy by the order meant for them."""

    def __init__(self) -> None:
        """Start with nothing seen; set ``policy`` before anything is."""
        self.policy: Policy | None = None
        self._shares: Counter[tuple[int, ...]] = Counter()

    def visited(
        self,
        signature: Signature,
        module: int,
        tuples_in: int,
        tuples_out: int,  # noqa: ARG002 - only entries are counted
        seconds: float,  # noqa: ARG002 - likewise
    ) -> None:
        """Count the tuples of a visit, if they begin with it."""
        if self.policy is not None and signature == ENTERING:
            order = self.policy.order(signature)
            if order[0] != module:  # exploration: this module first, then as planned
                order = (module, *(other for other in order if other != module))
            self._shares[order] += tuples_in

    def slice(self, start: float, end: float, rows: int) -> OrderSlice:
        """Return what was counted since the last time."""
        return OrderSlice(start, end, rows, self.taken())

    def taken(self) -> tuple[tuple[Order, int], ...]:
        """Return the tuples of each order since the last time."""
        shares = tuple(self._shares.items())
        self._shares.clear()
        return shares


def _predicates(statistics: FilterStatistics) -> tuple[PredicateRecord, ...]:
    return tuple(
        predicate_record(predicate, dropped)
        for predicate, dropped in zip(statistics.predicates, statistics.errors_dropped, strict=True)
    )


def predicate_record(predicate: SelectionStatistics, dropped: int = 0) -> PredicateRecord:
    """Return what happened at a predicate, for the report."""
    return PredicateRecord(
        text=predicate.text,
        rows_in=predicate.rows_in,
        passed=predicate.passed,
        rejected=predicate.rejected,
        null=predicate.null,
        errors_held=predicate.errors,
        errors_dropped=dropped,
        seconds=predicate.seconds,
        nested=tuple(predicate_record(part) for part in predicate.nested),
    )


def _spread(values: pa.Array, kept: npt.NDArray[np.int64], rows: int) -> pa.Array:
    """Return the values of kept rows as a column of all rows, NULL for the others."""
    if len(kept) == rows:
        return values
    places = np.full(rows, -1, dtype=np.int64)
    places[kept] = np.arange(len(kept))
    return values.take(pa.array(places, mask=places < 0))
