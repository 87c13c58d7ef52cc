"""Lets Spark scan what a watched block reads, each scan in a job of its own, and takes the rows."""

from __future__ import annotations

import contextlib
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from queue import SimpleQueue
from types import MappingProxyType, TracebackType
from typing import BinaryIO

import pyarrow as pa
from pyspark import InheritableThread
from pyspark.sql import DataFrame, Row, SparkSession

from eddyline.asking.driver_channel import DriverChannel, Hello
from eddyline.engine.modules.scan_access import Arrival
from eddyline.errors import ScanBrokenError
from eddyline.host.context_channel import channel_of
from eddyline.tasks.our_functions import sent
from eddyline.tasks.send_rows import CUT_OFF, END, THERE_ALREADY, WANTED, SendRows
from eddyline.watching.arriving import Arriving


class Scanning:
    """Scans of one block, while they run; they are over at the end of the ``with``."""

    def __init__(
        self,
        spark: SparkSession,
        frames: Mapping[int, DataFrame],
        arriving: Mapping[int, Arriving],
        units: Mapping[int, WantedUnits] = MappingProxyType({}),
    ) -> None:
        """Start them all, one job each, the smallest number first.

        Of those with ``units`` only what comes before the last shuffle is started; then the
        partitions that are wanted, in jobs of their own, as tasks that had to wait for room would
        keep the cores from others that are wanted sooner.
        """
        self._context = spark.sparkContext
        self._group = f"eddyline-watch-{uuid.uuid4().hex[:12]}"
        numbers = sorted(frames)
        self._arriving = [arriving[number] for number in numbers]
        self._receiver = RowReceiver(self._arriving, channel_of(self._context))
        self._units = units
        self._threads = []
        for scan, number in enumerate(numbers):
            thread = InheritableThread(
                target=self._scan,
                args=(
                    frames[number],
                    arriving[number],
                    SendRows(self._receiver.address, scan),
                    units.get(number),
                ),
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
        for wanted in self._units.values():
            wanted.close()
        for arriving in self._arriving:
            arriving.close()
        self._receiver.close()
        for thread in self._threads:
            thread.join()

    def _scan(
        self, frame: DataFrame, arriving: Arriving, send: SendRows, units: WantedUnits | None
    ) -> None:
        try:
            self._context.setJobGroup(self._group, "a watched query", interruptOnCancel=True)
            sending = frame.mapInArrow(sent(send), "sent long")
            if units is None:
                _require_whole(sending.collect())
            else:
                self._scan_units(sending, arriving, units)
        except BaseException as error:  # noqa: BLE001 - it is raised where the rows are wanted
            arriving.fail(error)
        else:
            arriving.end()

    def _scan_units(self, sending: DataFrame, arriving: Arriving, units: WantedUnits) -> None:
        rows = sending.rdd
        there = rows.getNumPartitions()  # fewer where Spark has seen that there are no rows
        for wanted in units:
            _require_whole(
                self._context.runJob(rows, list, [unit for unit in wanted if unit < there])
            )
            for unit in wanted:
                if unit >= there:
                    arriving.end_partition(unit)


def _require_whole(ends: Sequence[Row]) -> None:
    if any(row.sent == CUT_OFF for row in ends):
        raise ScanBrokenError("rows of a scan were cut off on their way: watch again")


class AllUnits:
    """A scan in whole partitions, all of which are read, wanted or not yet."""

    def __init__(self, arriving: Arriving) -> None:
        """They are put into ``arriving``."""
        self._arriving = arriving

    @property
    def ended(self) -> bool:
        """Whether all were read; raises what has gone wrong in the scan."""
        return self._arriving.ended

    def poll(self) -> Arrival | None:
        """Return the next one; None where none is there now."""
        return self._arriving.poll()

    def want(self, units: int) -> None:
        """Take note of nothing."""


class WantedUnits(AllUnits):
    """A scan in whole partitions, of which only those are read that are wanted."""

    def __init__(self, arriving: Arriving, units: int) -> None:
        """Of so many partitions none is wanted yet; what is read is put into ``arriving``."""
        super().__init__(arriving)
        self._units = units
        self._asked = 0
        self._queue: SimpleQueue[range | None] = SimpleQueue()

    def want(self, units: int) -> None:
        """Ask for so many more."""
        wanted = range(self._asked, self._asked + units)
        self._asked = wanted.stop
        self._queue.put(wanted)

    def close(self) -> None:
        """Want no more."""
        self._queue.put(None)

    def __iter__(self) -> Iterator[range]:
        """Yield the numbers of those that are wanted, as soon as they are, until all were."""
        read = 0
        while read < self._units and (wanted := self._queue.get()) is not None:
            yield wanted
            read = wanted.stop


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
