"""One task of a join block: its eddy, and what it did."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from eddyline.engine.eddy import LearnedCosts
from eddyline.engine.evaluation import forget_programs
from eddyline.engine.join_eddy import Joined, JoinEddy
from eddyline.engine.policies.catalogue import make_policy
from eddyline.engine.policies.policy import Policy
from eddyline.spark.calling import make_function
from eddyline.spark.fused import RoutingOptions
from eddyline.spark.joins.block import JoinBlock
from eddyline.wall_clock import WorkClock

Learned: TypeAlias = "tuple[Policy, LearnedCosts]"

OUTPUT_ROWS = 1 << 16
"""Rows of a batch that is handed back to Spark, at the most by a little."""

# What the last task of this worker process learned, by block and policy.
_learned: OrderedDict[tuple[str, str], Learned] = OrderedDict()

LEARNED_BLOCKS = 64
"""Blocks of which a worker process remembers what it learned, the latest ones."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An eddy whose SteMs hold what every task of a process needs."""

    eddy: JoinEddy


class JoinTask:
    """One task's eddy over joins."""

    def __init__(
        self, block: JoinBlock, options: RoutingOptions, prepared: Prepared | None = None
    ) -> None:
        """Make the eddy, or take one that an earlier task of this process has prepared."""
        self._block = block
        self._key = (block.identity, options.policy)
        self._clock = WorkClock()
        self._functions = [make_function(each, block.settings) for each in block.functions]
        if prepared is not None:
            self.eddy = prepared.eddy
            self.eddy.renew(self._functions, self._clock)
            return
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        self.eddy = JoinEddy(
            block.query,
            self._functions,
            lambda: make_policy(options.policy),
            self._clock,
            np.random.default_rng([options.seed, partition]),
            learned=_learned.get(self._key),
        )

    def prepared(self) -> Prepared:
        """Return the eddy for later tasks of this process."""
        return Prepared(self.eddy)

    def end(self, error: BaseException | None) -> None:
        """End the user's iterators; leave what was learned for the next task."""
        _learned[self._key] = self.eddy.learned()
        _learned.move_to_end(self._key)
        if len(_learned) > LEARNED_BLOCKS:
            _learned.popitem(last=False)
        forget_programs()
        self._clock.close()
        with contextlib.ExitStack() as functions:
            if error is not None:  # the first error is the one to see
                functions.enter_context(contextlib.suppress(Exception))
            for function in self._functions:
                functions.callback(function.close)

    def results(self, joined: Iterable[Joined]) -> Iterator[pa.RecordBatch]:
        """Yield joined rows in batches of a good size."""
        names = [f"c{number}" for number in range(len(self._block.output_types))]
        held: list[pa.RecordBatch] = []
        rows = 0
        for each in joined:
            held.append(pa.record_batch(list(each.outputs), names=names))
            rows += each.rows
            if rows >= OUTPUT_ROWS:
                yield from together(held)
                held, rows = [], 0
        yield from together(held)


def together(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches as one, where there are any."""
    if len(batches) == 1:
        yield batches[0]
    elif batches:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()
