"""A function with a memory, as Spark calls it: once for each batch, and in no eddy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.blocks.column_types import returned_type, spark_type
from eddyline.blocks.filter_block import FilterBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.functions.remembered_function import MemoryStatistics
from eddyline.engine.settling import cause
from eddyline.expressions import Argument, Case, call_of
from eddyline.expressions.program import spread, true_mask
from eddyline.expressions.value_types import relabelled
from eddyline.quirks import arrow_columns
from eddyline.reports.records import FunctionRecord, TaskRecord
from eddyline.tasks.action_settings import settings_of_action
from eddyline.tasks.calling import WorkerFunction
from eddyline.tasks.live_news import NOWHERE, LiveNews, live_news
from eddyline.tasks.our_functions import packed, pickled, unpacked
from eddyline.tasks.task_functions import task_functions
from eddyline.tasks.task_records import RecordsSink, of_action, record_key
from eddyline.tasks.worker_memory import WithMemory
from eddyline.wall_clock import WallClock


def remembered_command(block: FilterBlock, options: RoutingOptions, records: RecordsSink) -> bytes:
    """Return the function of a block of one value, pickled as Spark keeps user functions."""
    call = RememberedCall(block, options, records)
    return pickled(arrow_columns.by_batch(call), spark_type(block.functions[0].return_type))


class RememberedCall:
    """The callable that Spark runs: arrays of arguments in, an array of values out.

    Spark does not say when a task ends, so each batch is reported by itself.
    """

    def __init__(self, block: FilterBlock, options: RoutingOptions, records: RecordsSink) -> None:
        """Bind a block of one value to how it remembers and to where its tasks report."""
        self._block = block
        self._options = options
        self._records = records
        self._task: _Task | None = None  # each task unpickles its own
        self._news = LiveNews("", NOWHERE, "")

    def __reduce__(self) -> tuple[object, ...]:
        """Travel with the block packed by itself, which tasks of one process unpickle once."""
        return _remembered_call, (packed((self._block, self._options)), self._records)

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


def _remembered_call(content: bytes, records: RecordsSink) -> RememberedCall:
    block, options = unpacked(content)
    return RememberedCall(block, options, records)


class _Task:
    def __init__(self, block: FilterBlock, options: RoutingOptions) -> None:
        self._block = block
        self._clock = WallClock()
        of_action = settings_of_action(block.settings)
        made = task_functions(
            block.functions,
            block.settings,
            of_action,
            options,
            None,
            self._clock,
            always=block.repeats,
        )
        self._function: WorkerFunction = made[0]
        (value,) = block.outputs
        call = call_of(value)
        self._arguments = [
            argument for argument in call.arguments if isinstance(argument, Argument)
        ]
        self._needed = value.branches[0][0] if isinstance(value, Case) else None
        self._type = returned_type(spark_type(block.functions[0].return_type))
        self._rows = 0
        self._called = 0
        self._seconds = 0.0
        self._before = MemoryStatistics(0, 0, 0, 0, 0.0, 0.0)

    def values(self, columns: tuple[Any, ...]) -> pa.Array:
        started = self._clock.now()
        self._rows = len(columns[0])
        taken = [relabelled(columns[argument.index], argument.type) for argument in self._arguments]
        needed = None
        if isinstance(self._needed, Argument):
            needed = np.flatnonzero(true_mask(columns[self._needed.index]))
        self._called = self._rows if needed is None else len(needed)
        if needed is not None and len(needed) < self._rows:
            values = self._values_at(needed, taken)
        else:
            values = self._values_of(taken, self._rows)
        self._seconds = self._clock.now() - started
        return values

    def _values_at(self, needed: npt.NDArray[np.int64], columns: Sequence[pa.Array]) -> pa.Array:
        """Return the function's values for some rows, and NULL for those that need none."""
        if not len(needed):
            return pa.nulls(self._rows, self._type)
        chosen = pa.array(needed)
        values = self._values_of([column.take(chosen) for column in columns], len(needed))
        return spread(values, needed, self._rows)

    def _values_of(self, columns: Sequence[pa.Array], rows: int) -> pa.Array:
        answer = self._function(columns, rows)
        if answer.errors:
            raise cause(answer.errors[min(answer.errors)])
        return relabelled(answer.values, self._type)

    def record(self, tasks: int) -> TaskRecord:
        """Return what was done since the last time."""
        function, before = self._function, self._before
        now = before
        if isinstance(function, WithMemory):
            self._before = now = function.statistics()
        hits = now.hits - before.hits
        rows, called, seconds = self._rows, self._called, self._seconds
        self._rows, self._called, self._seconds = 0, 0, 0.0
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
                    calls=called - hits,
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
