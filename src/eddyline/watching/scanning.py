"""Lets Spark scan what a watched block reads, each scan in a job of its own."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Final

from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession

from eddyline.asking.wire import Address
from eddyline.errors import ScanBrokenError
from eddyline.host.session import local_cores
from eddyline.tasks.our_functions import sent
from eddyline.tasks.send_rows import CUT_OFF, SendRows
from eddyline.watching.arriving import Arriving
from eddyline.watching.row_receiver import RowReceiver

DRIVER_HOST: Final = "spark.driver.host"
PORT: Final = "spark.eddyline.watch.port"
"""Setting: the port at the driver where tasks bring the rows of scans; any free one by default."""


class Scanning:
    """Scans of one block, while they run; they are over at the end of the ``with``."""

    def __init__(
        self, spark: SparkSession, frames: Mapping[int, DataFrame], arriving: Mapping[int, Arriving]
    ) -> None:
        """Start them all, one job each, the smallest number first."""
        self._context = spark.sparkContext
        self._group = f"eddyline-watch-{uuid.uuid4().hex[:12]}"
        local = local_cores(str(self._context.master)) is not None
        # One value, not all of the context's: these take 7 ms.
        port = int(spark.conf.get(PORT, "0") or 0)
        numbers = sorted(frames)
        self._arriving = [arriving[number] for number in numbers]
        host = "127.0.0.1" if local else "0.0.0.0"  # noqa: S104 - executors are elsewhere, and bring a token
        self._receiver = RowReceiver(self._arriving, host, port)
        address = self._receiver.address
        if not local:
            outside = str(spark.conf.get(DRIVER_HOST, "127.0.0.1"))
            address = Address(outside, address.port, address.token)
        self._threads = []
        for scan, number in enumerate(numbers):
            thread = InheritableThread(
                target=self._scan, args=(frames[number], arriving[number], SendRows(address, scan))
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
        for each in self._arriving:
            each.close()
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
