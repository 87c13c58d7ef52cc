"""What the report says of a block: from the block, what its tasks and the driver recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pyspark import SparkContext

from eddyline.asking.price import Books, Spending
from eddyline.blocks.filter_block import FilterBlock, UserFunction
from eddyline.blocks.join_block import Block, JoinBlock
from eddyline.blocks.lookup_table import AccessChoice
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.explanation import block_report
from eddyline.planner.block_registry import RecordedBlock
from eddyline.planner.declare.lookup_tables import lookup_tables_of
from eddyline.planner.rewrite.measured_rows import measured_for
from eddyline.reports.block_report import JoinedBy, MeasuredInput
from eddyline.reports.driver_records import AskedTable, CalledFunction
from eddyline.reports.records import FunctionRecord, TaskRecord
from eddyline.reports.routing_report import RoutingReport

_JOINED: Final = {
    "broadcast": JoinedBy.BROADCAST,
    "shuffled": JoinedBy.SHUFFLED,
    "other-broadcast": JoinedBy.OTHER_BROADCAST,
    "gone": JoinedBy.NOT_AT_ALL,
}
"""What became of rows that were measured, in the words of :mod:`eddyline.catalyst`."""


def routing_report(
    context: SparkContext,
    recorded: Sequence[RecordedBlock],
    left: tuple[tuple[str, str], ...],
    *,
    whole: bool,
    every_action: bool,
    action: int | None = None,
    choices: Sequence[AccessChoice] = (),
) -> RoutingReport:
    """Return the report of the blocks of a query, with what the driver has done for them.

    They are the ``whole`` of what Spark plans by where it has no joins beside them, and where
    nothing was added to what was adapted. The records are of ``every_action``, or of one; what the
    driver has done is that for all, or for the ``action`` that is given. ``left`` is what is left
    to Spark, and why, ``choices`` are the tables that were looked up or scanned.
    """
    # Spark derives filters from the keys of joins when it optimizes once more. They drop rows, and
    # may have a function called twice. It may also compute below some joins what stands above an
    # eddy's.
    joined = any(isinstance(block, JoinBlock) for block, _, _ in recorded)
    calls = DriverCalls(lookup_tables_of(context).books, every_action=every_action)
    blocks = []
    for block, options, record in recorded:
        if record is not None and not isinstance(block, JoinBlock):
            record = calls.in_record(record, block, options)  # noqa: PLW2901 - the same, complete
        counted = whole and (not joined or isinstance(block, JoinBlock))
        told = block_report(block, options, record, whole=counted)
        blocks.append(replace(told, measured=_measured(context, block, record)))
    adapted = [(block, options) for block, options, _ in recorded]
    job = "" if action is None else str(action)
    return RoutingReport(
        tuple(blocks),
        left,
        _called(context, adapted, job),
        _asked(context, adapted, choices, job),
    )


def _measured(
    context: SparkContext, block: Block, record: TaskRecord | None
) -> tuple[MeasuredInput, ...]:
    """Return what inputs have waited for in the last action of a block."""
    if record is None or isinstance(block, JoinBlock):
        return ()
    return tuple(
        MeasuredInput(name, stage.rows, stage.bytes, _JOINED[stage.outcome], stage.seconds)
        for name, stage in measured_for(context, block, record.action)
    )


class DriverCalls:
    """The calls of concurrent functions in a report: those that the driver made, each once.

    A task knows for how many rows it wanted a value, but not who else did. The driver calls for
    each distinct tuple of arguments once an action, whichever block asks: the first block of a
    report has the calls, and what others asked for is shared.
    """

    def __init__(self, books: Books, *, every_action: bool) -> None:
        """Take the driver's books; of ``every_action``, or of the one that a record is of."""
        self._books = books
        self._every_action = every_action
        self._left: dict[tuple[str, int], int] = {}  # calls that no block has yet

    def in_record(
        self, record: TaskRecord, block: FilterBlock, options: RoutingOptions
    ) -> TaskRecord:
        """Return the record of a block with the driver's calls."""
        job = None if self._every_action else f"{options.run}/{record.action}"
        done = self._books.total(f"{options.run}/", job)
        functions = tuple(
            self._called(told, function, done, job or f"{options.run}/")
            for told, function in zip(record.functions, block.functions, strict=True)
        )
        return replace(record, functions=functions)

    def _called(
        self,
        told: FunctionRecord,
        function: UserFunction,
        done: dict[int, Spending],
        job: str,
    ) -> FunctionRecord:
        if function.driver is None or function.driver.number not in done:
            return told
        number = function.driver.number
        values = self._left.setdefault((job, number), done[number].values)
        made = min(told.calls, values)
        self._left[job, number] -= made
        spending = done[number]
        seconds = spending.seconds * made / spending.values if spending.values else 0.0
        shared = told.shared + told.calls - made
        return replace(told, calls=made, shared=shared, seconds=seconds)


def _asked(
    context: SparkContext,
    adapted: Sequence[tuple[Block, RoutingOptions]],
    choices: Sequence[AccessChoice],
    job: str,
) -> tuple[AskedTable, ...]:
    """Return what lookup tables were asked for, in a job or, without one, all.

    Those are the tables of blocks, and those that may have been scanned instead.
    """
    wanted: dict[tuple[int, str], int] = {}
    for block, options in adapted:
        for lookup in block.lookups if isinstance(block, JoinBlock) else ():
            wanted.setdefault((options.run, lookup.method), lookup.keys_per_call)
    for choice in choices:
        for way in choice.ways:
            wanted.setdefault((choice.run, way.method), way.keys_per_call)
    tables = lookup_tables_of(context)
    totals = {run: tables.server.totals(f"{run}/{job}") for run in {run for run, _ in wanted}}
    return tuple(
        AskedTable(
            method.rpartition("/")[0],
            asked.keys,
            asked.requests,
            asked.failures,
            asked.most_in_flight,
            asked.by_source,
            asked.unmatched,
            asked.kept,
            together,
            asked.refusals,
            asked.waited,
            asked.waits,
            asked.choice,
            asked.spent,
            asked.unit,
        )
        for (run, method), together in wanted.items()
        if (asked := totals[run].get(method)) is not None
    )


def _called(
    context: SparkContext, adapted: Sequence[tuple[Block, RoutingOptions]], job: str
) -> tuple[CalledFunction, ...]:
    """Return what the concurrent functions have done, in a job or, without one, all."""
    books = lookup_tables_of(context).books
    wanted: dict[tuple[int, int], int] = {}
    for block, options in adapted:
        for function in () if isinstance(block, JoinBlock) else block.functions:
            if function.driver is not None:
                wanted.setdefault((options.run, function.driver.number), function.driver.values)
    totals = {run: books.total(f"{run}/{job}") for run in {run for run, _ in wanted}}
    done = (  # as they were declared
        (totals[run].get(number), together) for (run, number), together in sorted(wanted.items())
    )
    return tuple(
        CalledFunction(
            spending.name,
            spending.values,
            spending.calls,
            spending.failures,
            spending.seconds,
            spending.spent,
            spending.unit,
            spending.kept,
            together,
            spending.saved,
            spending.refusals,
            spending.waited,
            spending.tokens,
            spending.waits,
        )
        for spending, together in done
        if spending is not None
    )
