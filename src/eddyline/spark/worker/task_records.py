"""What tasks record, and how that comes together in the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pyspark.accumulators import AccumulatorParam

from eddyline.engine.functions.remembered_function import MemoryStatistics
from eddyline.engine.modules.selection import SelectionStatistics
from eddyline.engine.modules.stem import SteMStatistics
from eddyline.engine.relation import CallStatistics
from eddyline.reports.merging import merge_by_block
from eddyline.reports.records import FunctionRecord, PredicateRecord, SteMRecord, TaskRecord
from eddyline.spark.blocks.filter_block import UserFunction
from eddyline.spark.blocks.routing_options import RoutingOptions

Records: TypeAlias = dict[str, TaskRecord]
"""What the tasks of all blocks have reported, merged by block."""

REPORTED_BLOCKS = 1_000
"""Blocks whose records the driver keeps, the latest ones; a record takes up to 40 kB."""


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


def function_records(
    functions: Sequence[UserFunction],
    calls: Sequence[CallStatistics],
    memories: Sequence[MemoryStatistics | None] = (),
) -> tuple[FunctionRecord, ...]:
    """Return how often each function was called, for the report.

    ``calls`` count rows that were answered from a memory as well, ``memories`` say how many.
    """
    records = []
    for number, function in enumerate(functions):
        of_function = [call for call in calls if call.call.function == number]
        memory = (memories[number] if memories else None) or MemoryStatistics(0, 0, 0, 0, 0.0, 0.0)
        records.append(
            FunctionRecord(
                name=function.name,
                calls=max(sum(call.calls for call in of_function) - memory.hits, 0),
                calls_possible=sum(call.possible for call in of_function),
                seconds=sum(call.seconds for call in of_function),
                remembered=memory.hits,
                distinct=memory.distinct,
                memory_bytes=memory.nbytes,
                lookup_seconds=memory.lookup_seconds,
            )
        )
    return tuple(records)


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
