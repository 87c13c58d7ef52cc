"""What tasks record, and how that comes together in the driver."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, TypeAlias

from pyspark import TaskContext
from pyspark.accumulators import AccumulatorParam

from eddyline.blocks.filter_block import UserFunction
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.functions.remembered_function import MemoryStatistics
from eddyline.engine.modules.selection import SelectionStatistics
from eddyline.engine.modules.stem import SteMStatistics
from eddyline.engine.relation import CallStatistics
from eddyline.reports.merging import merge, merge_by_block
from eddyline.reports.records import FunctionRecord, PredicateRecord, SteMRecord, TaskRecord
from eddyline.tasks.action_settings import ACTION

_log = logging.getLogger("eddyline")

Records: TypeAlias = dict[str, TaskRecord]
"""What the tasks of all blocks have reported, merged by block."""


class RecordsSink(Protocol):
    """Where a task puts what it has done: an accumulator, or what stands for one."""

    def add(self, term: Records, /) -> None:
        """Take the records of a task."""


Listener: TypeAlias = Callable[[Records], None]
"""Hears what a task has reported."""

_ROOT_ACTION: Final = "spark.sql.execution.root.id"  # of what a command runs, as a write does

REPORTED_BLOCKS = 256
"""Blocks whose records the driver keeps, the latest ones; a record takes up to 40 kB."""


def record_key(identity: str, options: RoutingOptions) -> str:
    """Return the key under which the tasks of a block report."""
    return f"{options.run}/{identity}"


_EARLIER: Final = " earlier"
"""Follows the key of a block where its records of all actions but the last one are."""

_MERGING: Final = threading.Lock()  # tasks report while somebody asks


def of_action(record: TaskRecord) -> TaskRecord:
    """Return the record of a task with the number of the action that the task belongs to."""
    context = TaskContext.get()
    names = (_ROOT_ACTION, ACTION) if context is not None else ()
    numbers = (context.getLocalProperty(name) for name in names if context is not None)
    return replace(record, action=next((int(number) for number in numbers if number), -1))


def recorded(records: Records, key: str, *, earlier: bool) -> TaskRecord | None:
    """Return what the last action of a block has reported, or all ``earlier`` ones with it."""
    with _MERGING:
        last, before = records.get(key), records.get(key + _EARLIER)
    return merge(before, last) if earlier and before and last else last


def number_of_blocks(records: Records) -> int:
    """Return of how many blocks there are records."""
    with _MERGING:
        return sum(not key.endswith(_EARLIER) for key in records)


def forget_records(records: Records) -> None:
    """Keep none of what was reported."""
    with _MERGING:
        records.clear()


class RecordsParam(AccumulatorParam[Records]):
    """Merges the records of tasks in the driver: those of a block's last action, and all before."""

    def __init__(self, listener: Callable[[], Listener | None] = lambda: None) -> None:
        """Let a listener, as long as there is one, hear in the driver what each task reports."""
        self._listener = listener

    def __reduce__(self) -> tuple[Any, ...]:
        """Stay the same in a pickle, but for who hears of it."""
        return RecordsParam, ()

    def zero(self, value: Records) -> Records:  # noqa: ARG002 - the protocol's argument
        """Return no records."""
        return {}

    def addInPlace(self, value1: Records, value2: Records) -> Records:  # noqa: N802 - PySpark's name
        """Add the records of a task to those that are there, in place."""
        with _MERGING:
            for key, record in value2.items():
                _put(value1, key, record)
            while len(value1) > REPORTED_BLOCKS:
                del value1[next(iter(value1))]
        hear = self._listener()
        if hear is not None:
            try:
                hear(value2)
            except Exception:  # noqa: BLE001 - whatever it raises: records are merged all the same
                _log.exception("What a task has reported could not be learned")
        return value1


def _put(records: Records, key: str, record: TaskRecord) -> None:
    known = records.get(key)
    if known is None:
        records[key] = record
    elif known.action == record.action or key.endswith(_EARLIER):
        records |= merge_by_block({key: known}, {key: record})
    else:  # a task of an earlier action may end after the first one of a later
        before, records[key] = sorted((known, record), key=lambda each: each.action)
        _put(records, key + _EARLIER, before)


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
        first_rows=predicate.first_rows,
        first_seconds=predicate.first_seconds,
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
