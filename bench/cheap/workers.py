"""One task as PySpark's worker runs it, from the function's pickle to its results, in this process.

Nothing is between the contestants but the worker's own code: neither sockets nor the JVM.
"""

from __future__ import annotations

import gc
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

import pyarrow as pa
from pyspark.accumulators import Accumulator, _accumulatorRegistry
from pyspark.serializers import CloudPickleSerializer, CPickleSerializer
from pyspark.sql.types import BooleanType, StructField, StructType
from pyspark.worker import EvalConf, RunnerConf, read_udfs
from pyspark.worker_message import UDFInfo

from bench.cheap.cases import Case
from eddyline.blocks.column_types import arrow_type_of
from eddyline.blocks.filter_block import FilterBlock, FunctionKind, SessionSettings, UserFunction
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.expressions import And, Argument, Call, Expression, IsNull, Not
from eddyline.tasks.block_task import MEMORY
from eddyline.tasks.filter_task import fused_command
from eddyline.tasks.remembered_call import remembered_command
from eddyline.tasks.task_records import Records, RecordsParam
from eddyline.tasks.worker_memory import MEMORIES

SETTINGS: Final = SessionSettings("UTC", safe_arrow_conversion=True)

Run = Callable[[Sequence[pa.RecordBatch]], list[pa.RecordBatch]]
"""Runs a task over batches; the results are as many."""


class Contestant(StrEnum):
    """Who calls the functions."""

    SPARK = "plain Spark"  # its Arrow evaluation, the default for plain functions
    VALUE = "value"  # a function with a memory, outside of eddies
    SPARK_TWO = "plain Spark, two"
    VALUES = "two values"  # the same function twice, of one node
    FILTER = "filter"  # a filter block that asks whether the values of both are there


OPPONENTS: Final = {
    Contestant.VALUE: Contestant.SPARK,
    Contestant.VALUES: Contestant.SPARK_TWO,
    Contestant.FILTER: Contestant.SPARK_TWO,
}
"""Eddyline's contestants, and who does the same in plain Spark."""


def contestants(case: Case) -> dict[Contestant, Run]:
    """Return who calls a function."""
    commands = tuple(_pickled((function, case.result)) for function in case.functions)
    types = [kind.json() for kind in case.arguments]
    functions = tuple(
        UserFunction(
            name,
            FunctionKind.ARROW_BATCHED,
            commands,
            tuple(types),
            (None,) * len(types),
            case.result.json(),
        )
        for name in ("f", "g")
    )
    arguments = tuple(
        Argument(number, arrow_type_of(kind, "UTC")) for number, kind in enumerate(case.arguments)
    )
    kind = arrow_type_of(case.result, "UTC")
    calls = [Call(number, arguments, kind) for number in range(2)]
    terms: list[Expression] = list(calls)
    if not isinstance(case.result, BooleanType):
        terms = [Not(IsNull(call)) for call in calls]
    given = StructType(
        [StructField(f"_{number}", kind) for number, kind in enumerate(case.arguments)]
    )
    names = ("x", "y")[: len(types)]
    options = RoutingOptions()
    with accumulators_of_a_task():
        records = Accumulator(0, Records(), RecordsParam())
    both = FilterBlock("f and g", And(tuple(terms)), ("f", "g"), functions, (), SETTINGS, names)
    values = [
        FilterBlock(
            function.name,
            ALL_ROWS,
            (),
            (function,),
            (Call(0, arguments, kind),),
            SETTINGS,
            names,
        )
        for function in functions
    ]
    with_memory = [[remembered_command(block, options, records)] for block in values]
    fused = fused_command(both, options, records)
    return {
        Contestant.SPARK: _worker(FunctionKind.ARROW_BATCHED, [commands], given),
        Contestant.VALUE: _worker(FunctionKind.ARROW, with_memory[:1], given),
        Contestant.SPARK_TWO: _worker(FunctionKind.ARROW_BATCHED, [commands] * 2, given),
        Contestant.VALUES: _worker(FunctionKind.ARROW, with_memory, given),
        Contestant.FILTER: _worker(FunctionKind.ARROW_ITERATOR, [[fused]], given),
    }


def first_task(run: Run, batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the results of the first task of an action, in a worker that has had other actions."""
    MEMORY.learned.clear()
    MEMORIES.clear()
    return run(batches)


def timed(run: Run, batches: Sequence[pa.RecordBatch]) -> float:
    """Return the seconds of CPU time of such a task."""
    gc.collect()
    began = time.process_time()
    first_task(run, batches)
    return time.process_time() - began


def _pickled(value: object) -> bytes:
    content: bytes = CloudPickleSerializer().dumps(value)  # type: ignore[no-untyped-call]
    return content


@contextmanager
def accumulators_of_a_task() -> Iterator[None]:
    """Begin with no accumulators, as a worker does; those of a driver in this process come back."""
    of_driver = dict(_accumulatorRegistry)
    _accumulatorRegistry.clear()
    try:
        yield
    finally:
        _accumulatorRegistry.clear()
        _accumulatorRegistry.update(of_driver)


def _worker(kind: FunctionKind, nests: Sequence[Sequence[bytes]], given: StructType) -> Run:
    conf = {
        "spark.sql.session.timeZone": SETTINGS.time_zone,
        "spark.sql.execution.pandas.convertToArrowArraySafely": "true",
    }
    runner, types = RunnerConf(conf), EvalConf({"input_type": given.json()})
    infos = [
        UDFInfo(
            udfs=[memoryview(command) for command in commands],
            args=list(range(len(given))),
            kwargs={},
            result_id=0,
        )
        for commands in nests
    ]

    def run(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        with accumulators_of_a_task():
            reader = CPickleSerializer()
            evaluate, _, _, _ = read_udfs(reader, infos, int(kind), runner, types)  # type: ignore[no-untyped-call]
            results = list(evaluate(0, iter(batches)))
            for number, accumulator in _accumulatorRegistry.items():
                pickle.dumps((number, accumulator._value), protocol=5)  # noqa: SLF001 - as the worker does
        return results

    return run
