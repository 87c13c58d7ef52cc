"""The reduce side of a join block: the rows of one cell, joined in an eddy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.accumulators import Accumulator

from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.modules.scan_access import ScanAccess
from eddyline.errors import SampledTwiceError
from eddyline.exchange.blobs import decoded, unpacked
from eddyline.exchange.spill import Spill, SpillTotals, spill_folder
from eddyline.reports.merging import merge
from eddyline.reports.records import TaskRecord
from eddyline.tasks.join_task import JoinTask, reading
from eddyline.tasks.live_news import LiveNews, live_news
from eddyline.tasks.task_lookups import ask_for_nothing, job_of
from eddyline.tasks.task_records import Records, of_action, record_key


@dataclass
class Done:
    """What a task has done so far: the rows that came, by input, and the rest."""

    came: list[int]
    record: TaskRecord | None = None  # of the parts of the cell

    def with_(self, task: JoinTask) -> Done:
        """Return what is done together with what was done with a further part."""
        record = task.record()
        return Done(self.came, record if self.record is None else merge(self.record, record))


@dataclass(frozen=True)
class ReduceSide:
    """What Spark runs over the blobs of each cell."""

    block: JoinBlock
    options: RoutingOptions
    records: Accumulator[Records]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the joined rows of one cell."""
        spill = Spill(self.block.graph, self.options.memory, spill_folder())
        done = Done([0] * len(self.block.query.relations))
        dealt_by: set[int] = set()
        key = record_key(self.block.identity, self.options)
        news = live_news(key)
        try:
            for batch in batches:
                for blob in unpacked(batch):
                    dealt_by.add(blob.heavy)
                    if len(dealt_by) > 1:
                        raise SampledTwiceError
                    for rows in decoded(blob.batch):
                        done.came[blob.relation] += rows.num_rows
                        spill.add(blob.relation, rows, blob.done)
            empty = True
            for inputs in spill.parts():
                empty = False
                yield from self._joined(inputs, done, news)
            if empty:
                ask_for_nothing(self.block, job_of(self.options))
        finally:
            spill.close()
            record = of_action(self._record(done, spill.totals))
            self.records.add({key: record})
            news.end(record)

    def _joined(
        self, inputs: Sequence[ScanAccess], done: Done, news: LiveNews
    ) -> Iterator[pa.RecordBatch]:
        task = JoinTask(self.block, self.options)
        if news.wanted:
            task.between_visits(lambda: news.glance(lambda: self._record(done.with_(task))))
        try:
            yield from task.results(task.eddy.run(inputs))
        except BaseException as error:
            task.end(error)
            raise
        else:
            task.end(None)
        finally:
            done.record = done.with_(task).record

    def _record(self, done: Done, spilled: SpillTotals | None = None) -> TaskRecord:
        """Return what was done with all parts, as what one task did."""
        spilled = spilled or SpillTotals()
        record = reading(self.block, came=done.came)
        if done.record is not None:
            record = merge(record, done.record)
        join = record.join
        if join is not None:
            join = replace(
                join,
                cells=(sum(done.came),),
                spilled_bytes=spilled.bytes,
                spilled_files=spilled.files,
            )
        return replace(record, tasks=1, worker=str(os.getpid()), join=join)
