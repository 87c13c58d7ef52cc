"""The map side of a join block: rows of one input, sent to the cells where they may join."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator

from eddyline.engine.storage.key_words import KeyColumn
from eddyline.spark.fused import Records, RoutingOptions, record_key
from eddyline.spark.joins.blobs import BLOB_ROWS, Sorter, gathered
from eddyline.spark.joins.block import JoinBlock
from eddyline.spark.joins.early import EarlySelection
from eddyline.spark.joins.hypercube import Hypercube


@dataclass(frozen=True)
class MapSide:
    """What Spark runs over the partitions of input number ``relation``."""

    block: JoinBlock
    relation: int
    keys: tuple[int, ...]  # columns that an equality needs: where one is NULL nothing joins
    cube: Hypercube
    copied: bool  # whether a row may go to several places
    options: RoutingOptions
    records: Accumulator[Records]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield blobs for the rows of one partition."""
        context = TaskContext.get()
        # A different start for each partition, so that dealing is even over all of them.
        seen = context.partitionId() if context is not None else 0
        sorters: dict[int, Sorter] = {}  # by the predicates that rows have passed
        early = EarlySelection(self.block, self.relation, copied=self.copied)
        read = 0
        try:
            # By default Spark sends 10,000 rows at a time: too few to pay for sorting them apart.
            for arrived in gathered(batches, BLOB_ROWS):
                joinable = self._joinable(arrived)
                read += joinable.num_rows
                for checked in early.check(joinable):
                    batch = checked.batch
                    if not batch.num_rows:
                        continue
                    sorter = sorters.get(checked.done)
                    if sorter is None:
                        sorter = Sorter(self.relation, self.cube.cells, checked.done)
                        sorters[checked.done] = sorter
                    yield from sorter.add(batch, self._cells(batch, seen))
                    seen += batch.num_rows
            for sorter in sorters.values():
                yield from sorter.rest()
        finally:
            record = early.record(read)
            self.records.add({record_key(self.block.identity, self.options): record})
            early.close()

    def _cells(self, batch: pa.RecordBatch, seen: int) -> npt.NDArray[np.int64]:
        words = [
            None if column is None else key_words(batch.column(column))
            for column in (axis.columns[self.relation] for axis in self.cube.axes)
        ]
        return self.cube.cells_of(self.relation, words, batch.num_rows, seen)

    def _joinable(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Drop the rows with a NULL where a key must be."""
        wanted: npt.NDArray[np.bool_] | None = None
        for column in self.keys:
            values = batch.column(column)
            if values.null_count:
                valid = values.is_valid().to_numpy(zero_copy_only=False)
                wanted = valid if wanted is None else wanted & valid
        return batch if wanted is None else batch.filter(pa.array(wanted))


def key_words(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return one word for each key; equal keys have equal words, on every side of a join."""
    column = KeyColumn(values.type)
    column.append(values)
    first, *others = column.words
    mixed = first.view(np.uint64)
    for word in others:
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        mixed = mixed + word.view(np.uint64)
    return mixed.view(np.int64)
