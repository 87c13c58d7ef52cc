"""The reduce side of a join block: the rows of one cell, joined in an eddy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.accumulators import Accumulator

from eddyline.engine.inputs import Input
from eddyline.query.join_graph import JoinGraph
from eddyline.spark.fused import Records, RoutingOptions, record_key
from eddyline.spark.joins.blobs import decoded
from eddyline.spark.joins.block import JoinBlock
from eddyline.spark.joins.spill import Spill, spill_folder
from eddyline.spark.joins.task import JoinTask


@dataclass(frozen=True)
class ReduceSide:
    """What Spark runs over the blobs of each cell."""

    block: JoinBlock
    options: RoutingOptions
    records: Accumulator[Records]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the joined rows of one cell."""
        spill = Spill(JoinGraph(self.block.query), self.options.memory, spill_folder())
        try:
            for batch in batches:
                relations = batch.column("relation").to_pylist()
                done = batch.column("done").to_pylist()
                blobs = batch.column("batch")
                for relation, passed, blob in zip(relations, done, blobs, strict=True):
                    for rows in decoded(blob.as_buffer()):
                        spill.add(relation, rows, passed)
            for inputs in spill.parts():
                yield from self._joined(inputs, spill)
        finally:
            spill.close()

    def _joined(self, inputs: Sequence[Input], spill: Spill) -> Iterator[pa.RecordBatch]:
        task = JoinTask(self.block, self.options)
        try:
            yield from task.results(task.eddy.run(inputs))
        except BaseException as error:
            task.end(error)
            raise
        else:
            task.end(None)
        finally:
            record = task.record(spill.take_totals())
            self.records.add({record_key(self.block.identity, self.options): record})
