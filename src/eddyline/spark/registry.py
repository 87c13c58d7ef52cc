"""What was fused in a Spark context: the functions made, by block, and what their tasks report.

Equal blocks of one adapted plan share one function, byte for byte, so that Spark
still recognizes equal parts of the plan (and exchanges only one of them). A block
is found again in any DataFrame derived from an adapted one, by the bytes of its
function.
"""

from __future__ import annotations

import itertools
from typing import Final, TypeAlias

from pyspark import Accumulator, SparkContext

from eddyline.spark.blocks.filter_block import FilterBlock
from eddyline.spark.blocks.join_block import JoinBlock
from eddyline.spark.blocks.routing_options import RoutingOptions
from eddyline.spark.digest import digest
from eddyline.spark.latest import Latest
from eddyline.spark.per_context import PerContext
from eddyline.spark.rewriting.filter_rewrite import FusedFunction
from eddyline.spark.worker.filter_task import fused_command, result_type
from eddyline.spark.worker.remembered_call import remembered_command
from eddyline.spark.worker.task_records import Records, RecordsParam, record_key

# Blocks remembered at a time: each holds its user functions' pickles, mostly some
# kilobytes. A block that was forgotten still runs; it is only no longer explained.
_CAPACITY: Final = 1_000

Block: TypeAlias = FilterBlock | JoinBlock
"""What runs in an eddy."""


class Registry:
    """The fused functions of one Spark context."""

    def __init__(self, context: SparkContext) -> None:
        self.records: Final[Accumulator[Records]] = context.accumulator({}, RecordsParam())
        self._functions = Latest[tuple[str, RoutingOptions], FusedFunction](_CAPACITY)
        self._made = Latest[bytes, tuple[Block, RoutingOptions]](_CAPACITY)
        self._reporting = Latest[str, tuple[Block, RoutingOptions]](_CAPACITY)
        self._runs = itertools.count(1)

    def next_run(self) -> int:
        """Return a number that no other call of ``adapt`` has had, in whatever thread."""
        return next(self._runs)

    def fuse(self, block: FilterBlock, options: RoutingOptions) -> FusedFunction:
        """Return the function of a block; the same one for an equal block and options."""
        key = (block.identity, options)
        function = self._functions.get(key)
        if function is None:
            command = fused_command(block, options, self.records)
            function = FusedFunction(command, result_type(block).json())
            self._functions.put(key, function)
        self.remember(function.command, block, options)
        return function

    def remembered(self, block: FilterBlock, options: RoutingOptions) -> bytes:
        """Return the function of a block of one value, pickled; the same for an equal block."""
        key = (block.identity, options)
        function = self._functions.get(key)
        if function is None:
            command = remembered_command(block, options, self.records)
            function = FusedFunction(command, block.functions[0].return_type)
            self._functions.put(key, function)
        self.remember(function.command, block, options)
        return function.command

    def remember(self, command: bytes, block: Block, options: RoutingOptions) -> None:
        """Take note of what a function was made of."""
        self._made.put(digest(command), (block, options))
        self._reporting.put(record_key(block.identity, options), (block, options))

    def made(self, command: bytes) -> tuple[Block, RoutingOptions] | None:
        """Return what a fused function was made of; None if it is unknown."""
        return self._made.get(digest(command))

    def reporting(self, key: str) -> tuple[Block, RoutingOptions] | None:
        """Return the block whose tasks report under a key; None if it is unknown."""
        return self._reporting.get(key)


_registries = PerContext(Registry)


def registry_of(context: SparkContext) -> Registry:
    """Return the registry of a Spark context."""
    return _registries.of(context)
