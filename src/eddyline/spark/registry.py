"""What was fused in a Spark context: the functions made, by block, and what their tasks report.

Equal blocks of one adapted plan share one function, byte for byte, so that Spark
still recognizes equal parts of the plan (and exchanges only one of them). A block
is found again in any DataFrame derived from an adapted one, by the bytes of its
function.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final, TypeAlias

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

Maker: TypeAlias = Callable[[Any], bytes]
"""Makes the function of a block of its kind, pickled: of one with another limit, too."""


class Registry:
    """The fused functions of one Spark context."""

    def __init__(self, context: SparkContext) -> None:
        self.records: Final[Accumulator[Records]] = context.accumulator({}, RecordsParam())
        self._functions = Latest[tuple[str, RoutingOptions], FusedFunction](_CAPACITY)
        self._made = Latest[bytes, tuple[Block, RoutingOptions]](_CAPACITY)
        self._makers = Latest[bytes, Maker](_CAPACITY)
        self._again = Latest[tuple[bytes, int, bool], bytes](_CAPACITY)
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
        self.remember(function.command, block, options, lambda of: self._fused(of, options))
        return function

    def _fused(self, block: FilterBlock, options: RoutingOptions) -> bytes:
        return fused_command(block, options, self.records)

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

    def remember(
        self, command: bytes, block: Block, options: RoutingOptions, make: Maker | None = None
    ) -> None:
        """Take note of what a function was made of, and of who can ``make`` it of another block."""
        self._made.put(digest(command), (block, options))
        self._reporting.put(record_key(block.identity, options), (block, options))
        if make is not None:
            self._makers.put(digest(command), make)

    def made_again(self, command: bytes, block: Block) -> bytes | None:
        """Return a function with another limit in its block; None where nobody can make it.

        Tasks report as those of the first one do.
        """
        make, made = self._makers.get(digest(command)), self.made(command)
        if make is None or made is None:
            return None
        key = digest(command), block.limit, block.stops
        again = self._again.get(key)
        if again is None:
            again = make(block)
            self._again.put(key, again)
        self._made.put(digest(again), (block, made[1]))
        self._makers.put(digest(again), make)
        return again

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
