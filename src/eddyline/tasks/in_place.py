"""Join blocks with only one input that is not small: the rows of that one stay in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import pyarrow as pa
from pyspark.accumulators import Accumulator

from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.modules.scan_access import Arrival
from eddyline.exchange.blobs import decoded, gathered
from eddyline.exchange.framing import Frame, frames
from eddyline.reports.records import TaskRecord
from eddyline.tasks.block_task import MEMORY
from eddyline.tasks.join_task import JoinTask
from eddyline.tasks.live_news import live_news
from eddyline.tasks.our_functions import ending_quietly
from eddyline.tasks.rounds import PUSHED_ROWS, Rounds
from eddyline.tasks.task_lookups import ask_for_nothing, job_of
from eddyline.tasks.task_records import Records, of_action, record_key

SMALL_INPUTS: Final = "small_inputs"
"""The column that brings all small inputs, in the first row of a partition.

Bytes, one frame after the other; NULL where there is none. They are not a list of structs, because
Spark measures what it has written after every row, which takes it 27 µs where there are nested
columns.
"""


@dataclass(frozen=True)
class InPlaceSide:
    """What Spark runs over the partitions of the input that is not small.

    ``number`` tells this block from others of one call of ``adapt``, which may look the same.
    """

    driver: int
    number: int
    block: JoinBlock
    options: RoutingOptions
    records: Accumulator[Records]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the joined rows of one partition."""
        arriving = gathered(batches, PUSHED_ROWS)
        empty = True
        for first in arriving:
            empty = False
            with ending_quietly(), self.running(first.column(SMALL_INPUTS)[0].as_buffer()) as task:
                rounds = Rounds.of_join(self.block)
                for joined in self._joined(task, chain([first], arriving), rounds):
                    yield joined
                    if rounds.gave(joined.num_rows):
                        return
        if empty:
            ask_for_nothing(self.block, job_of(self.options))

    def _joined(
        self, task: JoinTask, batches: Iterable[pa.RecordBatch], rounds: Rounds
    ) -> Iterator[pa.RecordBatch]:
        """Yield joined rows; under a limit, all those of a round before the next begins."""
        for batch in batches:
            columns, rows = batch.columns[:-1], batch.num_rows
            for start, size in rounds.of(rows) if rounds.limited else [(0, rows)]:
                arrival = Arrival(tuple(column.slice(start, size) for column in columns), size)
                yield from task.results(task.eddy.push(self.driver, arrival))
                if rounds.limited:
                    yield from task.results(task.eddy.finish())
        yield from task.results(task.eddy.finish())

    @contextmanager
    def running(self, small: pa.Buffer | None) -> Iterator[JoinTask]:
        """Give the task to push rows into; at its end it reports what it did."""
        key = record_key(self.block.identity, self.options)
        task = self._begin(small)
        if self.block.lookups:
            task.give_first_rows_soon()
        news = live_news(key)
        if news.wanted:
            task.between_visits(lambda: news.glance(lambda: self._record(task)))
        try:
            yield task
        except BaseException as error:
            if not isinstance(error, GeneratorExit):
                MEMORY.prepared.clear()  # an eddy that was left in the middle may hold tuples
            task.end(error)
            raise
        else:
            task.end(None)
        finally:
            record = of_action(self._record(task))
            self.records.add({key: record})
            news.end(record)

    def _record(self, task: JoinTask) -> TaskRecord:
        came = task.came()
        own = [rows if relation == self.driver else 0 for relation, rows in enumerate(came)]
        record = task.record(own, came)
        if record.join is None:
            return record
        return replace(record, join=replace(record.join, cells=(sum(own),)))

    def _begin(self, small: pa.Buffer | None) -> JoinTask:
        key = f"{job_of(self.options)}/{self.number}/{self.block.identity}"
        prepared = MEMORY.prepared.get(key)
        if prepared is not None:
            return JoinTask(self.block, self.options, prepared)
        task = JoinTask(self.block, self.options)
        try:
            self._load(task, [] if small is None else list(frames(small)))
        except BaseException as error:
            task.end(error)
            raise
        if not self.block.lookups:  # whose connections end with the task
            MEMORY.prepared.put(key, task.eddy)
        return task

    def _load(self, task: JoinTask, small: Sequence[Frame]) -> None:
        """Build the complete SteMs of the small inputs."""
        for relation in self.block.scanned:
            if relation == self.driver:
                continue
            for frame in small:
                if frame.relation != relation:
                    continue
                for batch in decoded(frame.batches):
                    arrival = Arrival(tuple(batch.columns), batch.num_rows, frame.done)
                    task.load(task.eddy.push(relation, arrival))
            task.load(task.eddy.end(relation))
