"""Lets Spark scan what a watched block reads, each scan in a job of its own, and takes the rows."""

from __future__ import annotations

import contextlib
import socket
import threading
import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import BinaryIO

import pyarrow as pa
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession

from eddyline.asking.driver_channel import DriverChannel, Hello
from eddyline.errors import ScanBrokenError
from eddyline.host.context_channel import channel_of
from eddyline.tasks.our_functions import sent
from eddyline.tasks.send_rows import CUT_OFF, END, THERE_ALREADY, WANTED, SendRows
from eddyline.watching.arriving import Arriving


class Scanning:
    """Scans of one block, while they run; they are over at the end of the ``with``."""

    def __init__(
        self, spark: SparkSession, frames: Mapping[int, DataFrame], arriving: Mapping[int, Arriving]
    ) -> None:
        """Start them all, one job each, the smallest number first."""
        self._context = spark.sparkContext
        self._group = f"eddyline-watch-{uuid.uuid4().hex[:12]}"
        numbers = sorted(frames)
        self._arriving = [arriving[number] for number in numbers]
        self._receiver = RowReceiver(self._arriving, channel_of(self._context))
        self._threads = []
        for scan, number in enumerate(numbers):
            thread = InheritableThread(
                target=self._scan,
                args=(frames[number], arriving[number], SendRows(self._receiver.address, scan)),
            )
            thread.daemon = True
            self._threads.append(thread)
            thread.start()

    def __enter__(self) -> None:
        """Go on with what was started."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """End the scans that still run, and wait until they have ended."""
        with contextlib.suppress(Exception):  # Spark may have stopped
            self._context.cancelJobGroup(self._group)
        for arriving in self._arriving:
            arriving.close()
        self._receiver.close()
        for thread in self._threads:
            thread.join()

    def _scan(self, frame: DataFrame, arriving: Arriving, send: SendRows) -> None:
        try:
            self._context.setJobGroup(self._group, "a watched query", interruptOnCancel=True)
            ends = frame.mapInArrow(sent(send), "sent long").collect()
            if any(row.sent == CUT_OFF for row in ends):
                raise ScanBrokenError("rows of a scan were cut off on their way: watch again")  # noqa: TRY301 - as any failure of a scan
        except BaseException as error:  # noqa: BLE001 - it is raised where the rows are wanted
            arriving.fail(error)
        else:
            arriving.end()


class RowReceiver:
    """Listens for tasks; each sends one partition of one scan.

    A partition counts once, however often Spark runs it: a second attempt waits for the first,
    and is sent away where that has ended. Where the first breaks off after it has given rows, the
    scan fails: these may be in results already.
    """

    def __init__(self, scans: Sequence[Arriving], channel: DriverChannel) -> None:
        """Listen from now on."""
        self._scans = tuple(scans)
        self._locks: dict[tuple[int, int], threading.Lock] = {}
        self._done: set[tuple[int, int]] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._channel = channel
        self.address = channel.listen("rows", self._take)

    def close(self) -> None:
        """Take no more; tasks that send fail."""
        self._closed = True
        self._channel.hang_up(self.address)

    def _take(self, hello: Hello, connection: socket.socket) -> None:
        scan, partition = int(hello["scan"]), int(hello["partition"])
        with self._lock:
            one_at_a_time = self._locks.setdefault((scan, partition), threading.Lock())
        with one_at_a_time:
            if (scan, partition) in self._done:
                connection.sendall(THERE_ALREADY)
                return
            connection.sendall(WANTED)
            arriving = self._scans[scan]
            with connection.makefile("rb") as stream:
                whole = _received(stream, partition, arriving)
            if not whole:
                if not self._closed:
                    arriving.broke_off(partition)
                return
            self._done.add((scan, partition))
            arriving.end_partition(partition)
            connection.sendall(WANTED)


def _received(stream: BinaryIO, partition: int, arriving: Arriving) -> bool:
    """Take the rows of a partition; tell whether these were all."""
    try:
        with pa.ipc.open_stream(stream) as reader:
            for batch in reader:
                arriving.put(partition, batch)
        return stream.read(1) == END
    except (OSError, pa.ArrowException):
        return False
