"""The map-side eddy: predicates that are worth asking before rows travel.

A function that is asked on the map side is asked once for each row of its input. Asked later it is
asked only for rows that joins and other predicates have left, but a row that was copied to several
cells may be asked about in each of them. So:

* rows that are copied are checked here, by all predicates over their input, of a block's first
  63: what they have passed travels with them as a mask;
* rows that go to one cell are checked here by a predicate that costs less than what it saves by
  not sending the rows that it drops. That is learned on the first rows of each task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

import pyarrow as pa

from eddyline.blocks.chosen_policy import WRITTEN_ORDER
from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.join.input_eddy import InputEddy, predicates_with_calls
from eddyline.exchange.blobs import DONE_BITS
from eddyline.reports.records import TaskRecord
from eddyline.tasks.block_task import BlockTask, with_policies
from eddyline.tasks.join_task import reading
from eddyline.tasks.task_records import predicate_record

TRIAL = 64
"""Rows of a task on which each predicate is tried."""

SAVED = 1e-6
"""Seconds that a row costs which is sent, shuffled, built and probed.

Joining 5M with 5M rows of two integers over a shuffle took 1.2 µs a row in all, on two cores.
"""


@dataclass(frozen=True, slots=True)
class Checked:
    """Rows that go on, and the predicates that they have passed, as a mask."""

    batch: pa.RecordBatch
    done: int


class EarlySelection:
    """The predicates over one input that call functions, checked as far as it pays."""

    def __init__(self, block: JoinBlock, relation: int, options: RoutingOptions) -> None:
        """Take the predicates of input number ``relation``."""
        self._block = block
        self._number = relation
        self._options = options
        with_calls = predicates_with_calls(block.graph, relation)
        self._predicates = tuple(number for number in with_calls if number < DONE_BITS)
        self._task: _MapSideTask | None = None

    def check(self, batch: pa.RecordBatch, *, copied: bool) -> Iterator[Checked]:
        """Yield the rows that go on, in pieces, none of them empty.

        Rows that are ``copied`` are checked by all predicates. Of others there are few at first,
        then twice as many each time, until each predicate is tried: a predicate that follows
        another gets only the rows that this one has left. Columns of the batch after those of the
        input are passed on.
        """
        start, rows = 0, TRIAL
        while start < batch.num_rows:
            chosen = self._chosen(copied=copied)
            if copied or all(map(self._is_tried, chosen)):
                rows = batch.num_rows
            yield from self._check(batch.slice(start, rows), chosen)
            start, rows = start + rows, 2 * rows

    def record(self, read: int) -> TaskRecord:
        """Return what was done here with ``read`` rows, for the report."""
        rows = [0] * len(self._block.query.relations)
        rows[self._number] = read
        if self._task is None:
            return reading(self._block, rows)
        done = self._task.eddy.statistics()
        record = reading(self._block, rows, made=done.calls, memories=self._task.memories())
        return replace(
            with_policies(record, self._task.eddy.learned()),
            seconds=self._task.inside,
            work_seconds=done.eddy.work_seconds,
            routing_seconds=done.eddy.routing_seconds,
            decisions=done.eddy.decisions,
            predicates=tuple(
                predicate_record(done.predicates[number]) if number in done.predicates else other
                for number, other in enumerate(record.predicates)
            ),
        )

    def end(self, error: BaseException | None) -> None:
        """End the user's functions; leave what was learned for the next task."""
        if self._task is not None:
            self._task.finish(self._task.eddy.learned(), error, self._task.rows)

    def _chosen(self, *, copied: bool) -> tuple[int, ...]:
        """Return the predicates that rows are checked by here, in the written order."""
        if copied:
            return self._predicates
        if self._options.policy == WRITTEN_ORDER:  # none is asked before one written before it
            return tuple(takewhile(self._is_worth, self._predicates))
        return tuple(filter(self._is_worth, self._predicates))

    def _is_tried(self, predicate: int) -> bool:
        task = self._task
        return task is not None and task.eddy.statistics_of(predicate).rows_in >= TRIAL

    def _is_worth(self, predicate: int) -> bool:
        """Tell whether it costs less per row than it saves; yes while too little is known."""
        if self._task is None or not self._is_tried(predicate):
            return True
        done = self._task.eddy.statistics_of(predicate)
        cost = self._task.eddy.cost(predicate)
        return cost is None or cost * done.rows_in < (done.rejected + done.null) * SAVED

    def _check(self, batch: pa.RecordBatch, predicates: tuple[int, ...]) -> Iterator[Checked]:
        if not predicates:
            yield Checked(batch, 0)
            return
        if self._task is None:
            self._task = _MapSideTask(self._block, self._number, self._options)
        own = len(self._block.query.relations[self._number].types)
        started = self._task.clock.now()
        asked = self._task.eddy.ask(batch.columns[:own], batch.num_rows, predicates)
        self._task.inside += self._task.clock.now() - started
        self._task.rows += batch.num_rows
        if len(asked.passed):
            done = sum(1 << predicate for predicate in predicates)
            yield Checked(batch.take(pa.array(asked.passed)), done)
        if len(asked.failed):
            # Whether the error counts is for the reduce side to say, which asks again.
            yield Checked(batch.take(pa.array(asked.failed)), 0)


class _MapSideTask(BlockTask):
    """The eddy over the rows of one input in one task, and what it did."""

    def __init__(self, block: JoinBlock, relation: int, options: RoutingOptions) -> None:
        """Make the eddy, which begins with what the last one of this process knew.

        Or, once, with what the driver says that all tasks have learned.
        """
        identity = f"{block.identity}, input {relation}"
        super().__init__(identity, block.functions, block.settings, options)
        self.rows = 0
        routed = predicates_with_calls(block.graph, relation)
        routed = routed if len(routed) > 1 else ()
        told = self.told_by_others(block, len(block.graph.predicates), routed)
        self.eddy = InputEddy(
            block.with_priors(told).graph if told else block.graph,
            relation,
            self.functions,
            options.policy.make,
            self.work_clock,
            self.generator,
            learned=None if told else self.known(),
        )
