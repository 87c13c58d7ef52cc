"""What was fused in a Spark context: the functions made, by block, and what their tasks report.

Equal blocks of one adapted plan share one function, byte for byte, so that Spark
still recognizes equal parts of the plan (and exchanges only one of them). A block
is found again in any DataFrame derived from an adapted one, by the bytes of its
function.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from weakref import WeakMethod, WeakValueDictionary

from pyspark import Accumulator, SparkContext
from pyspark.sql import DataFrame

from eddyline import counters
from eddyline.asking.driver_channel import Address
from eddyline.blocks.filter_block import FilterBlock
from eddyline.blocks.join_block import Block
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.digest import digest
from eddyline.host.context_channel import channel_of
from eddyline.host.per_context import PerContext
from eddyline.host.session import local_cores
from eddyline.latest import Latest
from eddyline.learning.learned_store import LearnedStore, Told
from eddyline.planner.action_records import ActionRecords
from eddyline.planner.rewrite.filter_rewrite import FusedFunction
from eddyline.reports.records import TaskRecord
from eddyline.tasks.filter_task import fused_command, result_type
from eddyline.tasks.others_learned import telling
from eddyline.tasks.remembered_call import remembered_command
from eddyline.tasks.task_records import (
    Records,
    RecordsParam,
    forget_records,
    number_of_blocks,
    record_key,
)

BLOCKS: Final = 256
"""The latest blocks, which are known though no DataFrame of :func:`~eddyline.adapt` has them.

One with two small functions takes 6 kB. A block that was forgotten still runs; it is only no longer
explained, or told of limits.
"""

BYTES: Final = 1 << 25
"""Bytes of the functions of all these together; one may refer to a model of some megabytes."""

LIMITS: Final = 8
"""Limits of a block whose functions are kept, the latest ones."""

Maker: TypeAlias = Callable[[Any], bytes]
"""Makes the function of a block of its kind, pickled: of one with another limit, too."""


@dataclass(frozen=True, eq=False)
class Fused:
    """A function that was made of a block; ``make`` is None where no other limit makes sense.

    ``again`` are those with other limits, and whether their tasks stop there.
    """

    command: bytes
    block: Block
    options: RoutingOptions
    make: Maker | None
    again: Latest[tuple[int, bool], Fused] = field(default_factory=lambda: Latest(LIMITS))

    @property
    def size(self) -> int:
        """The bytes of its function, and of the functions that this calls."""
        return len(self.command) + sum(
            len(command) for function in self.block.functions for command in function.commands
        )


RecordedBlock: TypeAlias = tuple[Block, RoutingOptions, TaskRecord | None]
"""A block, and what its tasks have reported; None where none has."""


@dataclass(frozen=True, slots=True)
class AdaptedFrame:
    """A DataFrame that ``adapt`` has returned, while it is there, and what is left to Spark."""

    frame: weakref.ref[DataFrame]
    left: tuple[tuple[str, str], ...]


class Registry:
    """The fused functions of one Spark context."""

    def __init__(self, context: SparkContext) -> None:
        # PySpark keeps accumulators for good, also those of contexts that have stopped.
        self.records: Final[Accumulator[Records]] = context.accumulator(
            {}, RecordsParam(WeakMethod(self._hear))
        )
        self.learned: Final = LearnedStore()
        """What tasks have reported of functions and predicates."""
        self.counts: Final = counters.CounterValues()
        """What was counted of all blocks; what the driver does for tasks is counted there."""
        self.actions: ActionRecords | None = None
        """What actions that run have reported, where somebody wants it of each by itself."""
        self._latest = Latest[bytes, Fused](BLOCKS, lambda fused: fused.size, BYTES)
        # What is kept by somebody: among the latest, or with a DataFrame.
        self._by_digest: WeakValueDictionary[bytes, Fused] = WeakValueDictionary()
        self._by_block: WeakValueDictionary[tuple[str, RoutingOptions, bool], Fused] = (
            WeakValueDictionary()
        )
        self._by_key: WeakValueDictionary[str, Fused] = WeakValueDictionary()
        self._adapted = Latest[int, AdaptedFrame](BLOCKS)
        self._runs = itertools.count(1)
        self.asked_at: Final = _listening(context, WeakMethod(self._told))
        """Where tasks ask what others have learned."""

    def next_run(self) -> int:
        """Return a number that no other call of ``adapt`` has had, in whatever thread."""
        return next(self._runs)

    def of_run(self, run: int) -> tuple[Fused, ...]:
        """Return what was made for a call of ``adapt``; it is known while somebody keeps it."""
        return tuple(fused for fused in self._latest.values() if fused.options.run == run)

    def fuse(self, block: FilterBlock, options: RoutingOptions) -> FusedFunction:
        """Return the function of a block; the same one for an equal block and options.

        One with other priors is made again.
        """

        def made(of: FilterBlock) -> bytes:
            return fused_command(of, options, self.records)

        fused = self._known(block, options, one_value=False) or Fused(
            made(block), block, options, made
        )
        self._by_block[block.identity, options, False] = fused
        self._note(fused)
        return FusedFunction(fused.command, result_type(block).json())

    def remembered(self, block: FilterBlock, options: RoutingOptions) -> bytes:
        """Return the function of a block of one value, pickled; the same for an equal block."""
        fused = self._known(block, options, one_value=True) or Fused(
            remembered_command(block, options, self.records), block, options, None
        )
        self._by_block[block.identity, options, True] = fused
        self._note(fused)
        return fused.command

    def remember(self, command: bytes, block: Block, options: RoutingOptions, make: Maker) -> None:
        """Take note of what a function was made of, and of who can ``make`` it of another block."""
        self._note(Fused(command, block, options, make))

    def note_adapted(self, run: int, df: DataFrame, left: tuple[tuple[str, str], ...]) -> None:
        """Take note of what a call of ``adapt`` has returned, and left to Spark, and why."""
        self._adapted.put(run, AdaptedFrame(weakref.ref(df), left))

    def adapted(self, run: int) -> AdaptedFrame | None:
        """Return what a call of ``adapt`` has made; None for another number, or a forgotten one."""
        return self._adapted.get(run)

    def in_order(
        self, records: Mapping[str, TaskRecord], digests: Iterable[bytes]
    ) -> Iterator[RecordedBlock]:
        """Yield the blocks of which there are records; first those with some functions, in order.

        ``digests`` are those of the functions.
        """
        fused = (self._by_digest.get(known) for known in digests)
        first = (record_key(each.block.identity, each.options) for each in fused if each)
        for key in dict.fromkeys((*first, *records)):
            made = self.reporting(key) if key in records else None
            if made is not None:
                yield *made, records[key]

    def made_again(self, command: bytes, block: Block) -> bytes | None:
        """Return a function with another limit in its block; None where nobody can make it.

        Tasks report as those of the first one do.
        """
        made = self._by_digest.get(digest(command))
        if made is None or made.make is None:
            return None
        key = block.limit, block.stops
        again = made.again.get(key)
        if again is None:
            again = Fused(made.make(block), block, made.options, made.make)
            made.again.put(key, again)
        self._keep(again)
        return again.command

    def made(self, command: bytes) -> tuple[Block, RoutingOptions] | None:
        """Return what a fused function was made of; None if it is unknown."""
        return _parts(self._by_digest.get(digest(command)))

    def reporting(self, key: str) -> tuple[Block, RoutingOptions] | None:
        """Return the block whose tasks report under a key; None if it is unknown."""
        return _parts(self._by_key.get(key))

    @property
    def kept(self) -> tuple[int, int, int]:
        """How many blocks are kept, the bytes of their functions, and how many have records."""
        return len(self._latest), self._latest.size, number_of_blocks(self.records.value)

    def forget(self) -> None:
        """Keep nothing but what DataFrames have, and no records."""
        self._latest.clear()
        self._adapted.clear()
        forget_records(self.records.value)
        self.learned.forget()

    def close(self) -> None:
        """Keep what was learned, where somebody wants that: the context has stopped."""
        self.learned.save()

    def _hear(self, records: Records) -> None:
        if self.actions is not None:
            self.actions.take(records)
        for key, record in records.items():
            fused = self._by_key.get(key)
            self._count(None if fused is None else fused.block, record)
            if fused is not None:
                self.learned.reported(fused.block, record)

    def _told(self, key: str) -> Told:
        """Return what is known now of the block whose tasks report under a key."""
        made = self.reporting(key)
        return () if made is None else self.learned.told(made[0])

    def _count(self, block: Block | None, record: TaskRecord) -> None:
        # The calls of a concurrent function are the driver's, each for any number of tasks.
        driven = () if block is None else tuple(f.driver is not None for f in block.functions)
        own = [
            told
            for place, told in enumerate(record.functions)
            if not (place < len(driven) and driven[place])
        ]
        self.counts.add(
            {
                counters.ROWS: record.rows_in,
                counters.CALLS_MADE: sum(told.calls for told in own),
                counters.CALLS_AVOIDED: record.calls_avoided,
                counters.CALLS_REMEMBERED: sum(told.remembered for told in record.functions),
                counters.SPILLED: 0 if record.join is None else record.join.spilled_bytes,
            }
        )

    def _known(
        self, block: FilterBlock, options: RoutingOptions, *, one_value: bool
    ) -> Fused | None:
        fused = self._by_block.get((block.identity, options, one_value))
        if fused is None or not isinstance(fused.block, FilterBlock):
            return None
        return fused if fused.block.priors == block.priors else None

    def _note(self, fused: Fused) -> None:
        self._keep(fused)
        key = record_key(fused.block.identity, fused.options)
        if key not in self._by_key:
            self.counts.add({counters.BLOCKS: 1})
        self._by_key[key] = fused

    def _keep(self, fused: Fused) -> None:
        name = digest(fused.command)
        self._by_digest[name] = fused
        self._latest.put(name, fused)


def _parts(fused: Fused | None) -> tuple[Block, RoutingOptions] | None:
    return None if fused is None else (fused.block, fused.options)


def _listening(context: SparkContext, told: WeakMethod[Callable[[str], Told]]) -> Address | None:
    """Return where tasks ask what others have learned; None where none need to, or none can.

    On one machine a worker process for each core soon knows by itself.
    """
    if local_cores(str(context.master)) is not None:
        return None

    def told_now(key: str) -> Told:
        tell = told()
        return () if tell is None else tell(key)

    with contextlib.suppress(OSError, ValueError):
        return channel_of(context).listen("learned", telling(told_now))
    return None


_registries = PerContext(Registry, Registry.close)


def registry_of(context: SparkContext) -> Registry:
    """Return the registry of a Spark context."""
    return _registries.of(context)
