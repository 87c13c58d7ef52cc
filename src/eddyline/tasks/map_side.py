"""The map side of a join block: rows of one input, sent to the cells where they may join."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator

from eddyline.blocks.join_block import JoinBlock
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.exchange.blobs import BLOB_ROWS, Sorter, decoded, gathered
from eddyline.exchange.heavy_keys import HeavyKeys, fingerprint, of_dimensions
from eddyline.exchange.hypercube import Hypercube, key_words
from eddyline.tasks.early_selection import EarlySelection
from eddyline.tasks.live_news import live_news
from eddyline.tasks.task_records import Records, of_action, record_key


class Heavy(NamedTuple):
    """The heavy keys of each dimension, none at all if there are none, and what names this set."""

    keys: tuple[HeavyKeys | None, ...]
    stamp: int


@dataclass(frozen=True)
class MapSide:
    """What Spark runs over the partitions of input number ``relation``."""

    block: JoinBlock
    relation: int
    keys: tuple[int, ...]  # columns that an equality needs: where one is NULL nothing joins
    cube: Hypercube
    copied: bool  # whether every row goes to several places
    sampled: bool  # whether the last column brings the heavy keys
    options: RoutingOptions
    records: Accumulator[Records]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield blobs for the rows of one partition."""
        context = TaskContext.get()
        # A different start for each partition, so that dealing is even over all of them.
        seen = context.partitionId() if context is not None else 0
        sorters: dict[int, Sorter] = {}  # by the predicates that rows have passed
        early = EarlySelection(self.block, self.relation, self.options)
        heavy = Heavy((), 0)
        read = 0
        key = record_key(self.block.identity, self.options)
        news = live_news(key)
        try:
            # By default Spark sends 10,000 rows at a time: too few to pay for sorting them apart.
            for number, arrived in enumerate(gathered(batches, BLOB_ROWS)):
                if self.sampled and not number:
                    heavy = self._heavy(arrived.column(-1)[0].as_buffer())
                joinable = self._joinable(self._numbered(arrived, seen))
                seen += arrived.num_rows
                read += joinable.num_rows
                for rows, copied in self._by_copies(joinable, heavy):
                    for checked in early.check(rows, copied=copied):
                        sorter = sorters.get(checked.done)
                        if sorter is None:
                            sorter = Sorter(
                                self.relation, self.cube.cells, checked.done, heavy.stamp
                            )
                            sorters[checked.done] = sorter
                        yield from self._sorted(sorter, checked.batch, heavy)
                        news.glance(partial(early.record, read))
            for sorter in sorters.values():
                yield from sorter.rest()
        except BaseException as error:
            early.end(error)
            raise
        else:
            early.end(None)
        finally:
            record = of_action(early.record(read))
            self.records.add({key: record})
            news.end(record)

    def _numbered(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Return rows with their numbers in the partition in place of the heavy keys.

        They are dealt out by these numbers, which are the same when a task is run again: what a
        predicate drops before depends on the time that it takes.
        """
        own = len(self.block.query.relations[self.relation].types)
        numbers = pa.array(np.arange(first, first + batch.num_rows))
        names = [f"c{n}" for n in range(own)]
        return pa.record_batch([*batch.columns[:own], numbers], names=[*names, "number"])

    def _sorted(
        self, sorter: Sorter, batch: pa.RecordBatch, heavy: Heavy
    ) -> Iterator[pa.RecordBatch]:
        """Send rows to their cells; yield blobs that are full."""
        words = self._words(batch)
        numbers = batch.column(-1).to_numpy()
        bare = batch.select(list(range(batch.num_columns - 1)))
        for some, cells in self.cube.placed(self.relation, words, numbers, heavy.keys):
            yield from sorter.add(bare if some is None else bare.take(pa.array(some)), cells)

    def _heavy(self, data: pa.Buffer) -> Heavy:
        for batch in decoded(data):
            return Heavy(of_dimensions(batch, len(self.cube.dimensions)), fingerprint(data))
        return Heavy((), fingerprint(data))

    def _by_copies(
        self, batch: pa.RecordBatch, heavy: Heavy
    ) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Yield rows that go to one place each, and separately those that are copied."""
        copied = None
        if heavy.keys and not self.copied:
            copied = self.cube.copied(self.relation, self._words(batch), heavy.keys)
        if copied is None:
            yield batch, self.copied
        else:
            yield batch.filter(pa.array(~copied)), False
            yield batch.filter(pa.array(copied)), True

    def _words(self, batch: pa.RecordBatch) -> list[npt.NDArray[np.int64] | None]:
        return [
            None if column is None else key_words(batch.column(column))
            for column in (dimension.columns[self.relation] for dimension in self.cube.dimensions)
        ]

    def _joinable(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Drop the rows with a NULL where a key must be."""
        wanted: npt.NDArray[np.bool_] | None = None
        for column in self.keys:
            values = batch.column(column)
            if values.null_count:
                valid = values.is_valid().to_numpy(zero_copy_only=False)
                wanted = valid if wanted is None else wanted & valid
        return batch if wanted is None else batch.filter(pa.array(wanted))
