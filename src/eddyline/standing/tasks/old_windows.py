"""What a task does with old events that queries aggregate: all of their windows at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.accumulators import Accumulator

from eddyline.exchange.blobs import decoded, encoded
from eddyline.standing.engine.aggregation.aggregate_parts import START
from eddyline.standing.engine.shared_query import NEVER
from eddyline.standing.log.joined_streams import JoinedStreams
from eddyline.standing.tasks.counts import Counts, CountsByBatch
from eddyline.standing.tasks.joining import JoiningQueries
from eddyline.standing.tasks.micro_batch import micro_batch
from eddyline.standing.tasks.putting_out import TALLIES, WINDOWS

PUT_OUT: Final = pa.schema([("part", pa.int32()), ("kind", pa.int32()), ("results", pa.binary())])
"""What a cell puts out, as Arrow has it."""


@dataclass(frozen=True, slots=True)
class OldWindows:
    """What Spark runs over the blobs of old events, all of them in one task.

    Puts out the windows that begin at a time from ``since`` on and before ``until``, in
    microseconds. No state is kept: the events are all that these windows have.
    """

    streams: JoinedStreams
    counts: Accumulator[CountsByBatch]
    since: int
    until: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield closed windows, as cells do."""
        now = micro_batch()
        counts = Counts()
        queries = JoiningQueries(self.streams, 0)
        queries.go_to(now.version, 0)
        queries.begin()
        number = 0
        for batch in batches:
            for relation, blob in zip(batch["relation"].to_pylist(), batch["batch"], strict=True):
                for rows in decoded(blob.as_buffer()):
                    if relation < 0:  # how many events windows have
                        queries.aggregated.tally(rows, 1.0)
                        continue
                    queries.take((now.number, number), relation, rows)
                    queries.keep_only(())
                    number += 1
        closed = queries.aggregated.close(NEVER)
        queries.results(counts)
        tallies = [] if closed.tallies is None else [closed.tallies]
        for kind, tables in ((WINDOWS, closed.aggregates), (TALLIES, tallies)):
            for table in tables:
                starts = table.column(START).to_numpy()
                chosen = (starts >= self.since) & (starts < self.until)
                for rows in table.filter(pa.array(chosen)).combine_chunks().to_batches():
                    yield _put_out(kind, rows)
        self.counts.add({(self.streams.job.name, now.number): counts})


def _put_out(kind: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    blob = encoded([rows]).to_pybytes()
    return pa.record_batch({"part": [0], "kind": [kind], "results": [blob]}, schema=PUT_OUT)
