"""Sends the rows of a scan from where Spark reads them to the watcher, while they are read.

A task says in its hello which scan and partition it has (:mod:`eddyline.asking.driver_channel`).
It is answered ``+``, or ``-`` where these rows have all come
already; then it sends them as an Arrow stream, and an empty line at the end, so that rows which
were cut off are not taken for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext

from eddyline.asking.driver_channel import Address, connected

CONNECT_SECONDS: Final = 20.0
WANTED: Final = b"+"
THERE_ALREADY: Final = b"-"
END: Final = b"\n"

CUT_OFF: Final = -1
"""Returned instead of a number of rows where nobody took them all."""


@dataclass(frozen=True, slots=True)
class SendRows:
    """The function of a step that sends its rows away, and returns how many these were."""

    address: Address
    scan: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Send one partition; it is merely cut off where nobody takes it any longer."""
        try:
            sent = self._send(batches)
        except OSError:
            sent = CUT_OFF
        yield pa.record_batch({"sent": pa.array([sent], pa.int64())})

    def _send(self, batches: Iterator[pa.RecordBatch]) -> int:
        sent = 0
        task = TaskContext.get()
        place = {"scan": self.scan, "partition": 0 if task is None else task.partitionId()}
        with connected(self.address, place, CONNECT_SECONDS) as connection:
            connection.settimeout(None)
            answer = connection.recv(1)
            if answer == WANTED:
                with connection.makefile("wb") as stream:
                    sent = _sent(batches, stream)
                    stream.write(END)
                answer = connection.recv(1)
            return sent if answer in {WANTED, THERE_ALREADY} else CUT_OFF


def _sent(batches: Iterator[pa.RecordBatch], stream: object) -> int:
    """Write batches as they come; return how many rows there were."""
    sent = 0
    writer = None
    for batch in batches:
        if writer is None:
            writer = pa.ipc.new_stream(stream, batch.schema)
        writer.write_batch(batch)
        stream.flush()  # type: ignore[attr-defined]  # a file
        sent += batch.num_rows
    if writer is None:
        writer = pa.ipc.new_stream(stream, pa.schema([]))
    writer.close()
    return sent
