"""A function with a memory, as Spark calls it: once for each batch, and in no eddy."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
from pyspark.accumulators import Accumulator

from eddyline.engine.functions.remembered_function import MemoryStatistics
from eddyline.engine.settling import cause
from eddyline.evaluation.labels import relabelled
from eddyline.query.expressions import Argument
from eddyline.reports.records import FunctionRecord, TaskRecord
from eddyline.spark.blocks.column_types import returned_type, spark_type
from eddyline.spark.blocks.filter_block import FilterBlock
from eddyline.spark.blocks.routing_options import RoutingOptions
from eddyline.spark.worker.action_settings import settings_of_action
from eddyline.spark.worker.calling import WorkerFunction
from eddyline.spark.worker.commands import pickled
from eddyline.spark.worker.live_news import NOWHERE, LiveNews, live_news
from eddyline.spark.worker.remembering import WithMemory
from eddyline.spark.worker.task_functions import task_functions
from eddyline.spark.worker.task_records import Records, of_action, record_key
from eddyline.wall_clock import WallClock


def remembered_command(
    block: FilterBlock, options: RoutingOptions, records: Accumulator[Records]
) -> bytes:
    """Return the function of a block of one value, pickled as Spark keeps user functions."""
    call = RememberedCall(block, options, records)
    return pickled(call, spark_type(block.functions[0].return_type))


class RememberedCall:
    """The callable that Spark runs: arrays of arguments in, an array of values out.

    Spark does not say when a task ends, so that each batch is reported by itself.
    """

    def __init__(
        self, block: FilterBlock, options: RoutingOptions, records: Accumulator[Records]
    ) -> None:
        """Bind a block of one value to how it remembers and to where its tasks report."""
        self._block = block
        self._options = options
        self._records = records
        self._task: _Task | None = None  # each task unpickles its own
        self._news = LiveNews("", NOWHERE, "")

    def __call__(self, *columns: pa.Array) -> pa.Array:
        """Return the function's values; raises what it raised for the first row that failed."""
        first = self._task is None
        task = self._task = self._task or _Task(self._block, self._options)
        key = record_key(self._block.identity, self._options)
        if first:
            self._news = live_news(key)
        try:
            return task.values(columns)
        finally:
            record = of_action(task.record(tasks=int(first)))
            self._records.add({key: record})
            self._news.add(record)


class _Task:
    def __init__(self, block: FilterBlock, options: RoutingOptions) -> None:
        self._block = block
        self._clock = WallClock()
        of_action = settings_of_action(block.settings)
        made = task_functions(
            block.functions, block.settings, of_action, options, None, self._clock
        )
        self._function: WorkerFunction = made[0]
        (call,) = block.outputs
        self._arguments = [each for each in call.arguments if isinstance(each, Argument)]
        self._type = returned_type(spark_type(block.functions[0].return_type))
        self._rows = 0
        self._seconds = 0.0
        self._before = MemoryStatistics(0, 0, 0, 0, 0.0, 0.0)

    def values(self, columns: tuple[Any, ...]) -> pa.Array:
        started = self._clock.now()
        self._rows = len(columns[0])
        taken = [relabelled(columns[each.index], each.type) for each in self._arguments]
        found = self._function(taken, self._rows)
        if found.errors:
            raise cause(found.errors[min(found.errors)])
        values = relabelled(found.values, self._type)
        self._seconds = self._clock.now() - started
        return values

    def record(self, tasks: int) -> TaskRecord:
        """Return what was done since the last time."""
        function, before = self._function, self._before
        now = before
        if isinstance(function, WithMemory):
            self._before = now = function.statistics()
        hits = now.hits - before.hits
        rows, seconds = self._rows, self._seconds
        self._rows, self._seconds = 0, 0.0
        return TaskRecord(
            block=self._block.identity,
            tasks=tasks,
            rows_in=rows,
            rows_out=rows,
            seconds=seconds,
            work_seconds=seconds,
            functions=(
                FunctionRecord(
                    name=self._block.functions[0].name,
                    calls=rows - hits,
                    calls_possible=rows,
                    seconds=seconds,
                    remembered=hits,
                    distinct=now.distinct,
                    memory_bytes=now.nbytes,
                    lookup_seconds=now.lookup_seconds - before.lookup_seconds,
                ),
            ),
            worker=str(os.getpid()),
        )
