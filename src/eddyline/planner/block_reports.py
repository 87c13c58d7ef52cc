"""What the report says of a block: from the block, what its tasks and the driver recorded."""

from __future__ import annotations

from dataclasses import replace

from eddyline.asking.price import Books, Spending
from eddyline.blocks.filter_block import FilterBlock, UserFunction
from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.planner.block_registry import Block
from eddyline.reports.block_report import BlockReport
from eddyline.reports.plain_spark import with_plain_calls
from eddyline.reports.records import FunctionRecord, TaskRecord


def block_report(
    block: Block, options: RoutingOptions, record: TaskRecord | None, *, whole: bool = True
) -> BlockReport:
    """Return the report of a block; ``record`` is None where no task has reported.

    The calls of plain Spark are said to be estimated in a block of joins with several
    functions, between which it may filter, and where the block is not the ``whole`` of what Spark
    plans by: where the DataFrame was derived from the adapted one, or where joins are beside it,
    from which Spark derives filters, and below which it computes what is computed above.
    """
    if isinstance(block, JoinBlock):
        inputs = tuple(relation.name for relation in block.query.relations)
        names, steps, layout = " join ".join(inputs), block.steps, block.layout
    else:
        names = ", ".join(dict.fromkeys(function.name for function in block.functions))
        steps, layout, inputs = block.texts, "", ()
    if record is not None:
        record = with_plain_calls(record)
        if not whole or (isinstance(block, JoinBlock) and len(block.functions) > 1):
            functions = tuple(replace(entry, estimated=True) for entry in record.functions)
            record = replace(record, functions=functions)
    reduced = block.reduced or (isinstance(block, FilterBlock) and block.spared)
    return BlockReport(names, options.policy, options.seed, steps, record, layout, inputs, reduced)


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
