"""The reduce side of a join block: the rows of one cell, joined in an eddy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from eddyline.engine.inputs import Arrival, HeldInput
from eddyline.spark.fused import RoutingOptions
from eddyline.spark.joins.blobs import decoded
from eddyline.spark.joins.block import JoinBlock
from eddyline.spark.joins.task import JoinTask


@dataclass(frozen=True)
class ReduceSide:
    """What Spark runs over the blobs of each cell."""

    block: JoinBlock
    options: RoutingOptions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the joined rows of one cell."""
        arrivals: list[list[Arrival]] = [[] for _ in self.block.query.relations]
        for batch in batches:
            relations = batch.column("relation").to_pylist()
            for relation, blob in zip(relations, batch.column("batch"), strict=True):
                rows = decoded(blob.as_buffer())
                if rows is not None:
                    arrivals[relation].append(Arrival(tuple(rows.columns), rows.num_rows))
        if not all(arrivals):
            return
        inputs = [HeldInput(of_relation) for of_relation in arrivals]
        del arrivals
        task = JoinTask(self.block, self.options)
        try:
            yield from task.results(task.eddy.run(inputs))
        except BaseException as error:
            task.end(error)
            raise
        task.end(None)
