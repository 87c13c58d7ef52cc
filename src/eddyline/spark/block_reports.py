"""What the report says of a block, put together from the block and what its tasks recorded."""

from __future__ import annotations

from eddyline.reports.block_report import BlockReport
from eddyline.reports.plain_spark import with_plain_calls
from eddyline.reports.records import TaskRecord
from eddyline.spark.blocks.join_block import JoinBlock
from eddyline.spark.blocks.routing_options import RoutingOptions
from eddyline.spark.registry import Block


def block_report(block: Block, options: RoutingOptions, record: TaskRecord | None) -> BlockReport:
    """Return the report of a block; ``record`` is None where no task has reported."""
    if isinstance(block, JoinBlock):
        inputs = tuple(relation.name for relation in block.query.relations)
        names, steps, layout = " join ".join(inputs), block.steps, block.layout
        notes = block.notes
    else:
        names = ", ".join(dict.fromkeys(function.name for function in block.functions))
        steps, layout, inputs, notes = block.texts, "", (), block.joined
    if record is not None:
        record = with_plain_calls(record)
    reduced = any(" is reduced by " in note for note in notes)
    return BlockReport(names, options.policy, options.seed, steps, record, layout, inputs, reduced)
