"""A scan whose rows arrive from Spark's tasks while they are wanted.

Where some of its rows are preferred, they are reordered within what has been read (Raman, Raman and
Hellerstein, Online Dynamic Reordering for Interactive Data Processing, 1999): tasks read ahead, the
preferred rows of what they bring are given at once, and the others wait for their turn, as long
as there is room for more and not longer than a person waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.modules.scan_access import Arrival
from eddyline.errors import ScanBrokenError

HELD_ROWS: Final = 1 << 20
"""Rows that wait to be read; then the tasks that send more have to wait as well."""

READ_AHEAD: Final = HELD_ROWS // 2
"""Rows that are read, and wait, before one is given that is not preferred."""

LONGEST_WAIT: Final = 1.0
"""Seconds that such a row waits at the longest, where a scan brings so many only slowly."""

Choose: TypeAlias = Callable[[Arrival], npt.NDArray[np.bool_]]
"""Tells of rows which are to come first."""


class Arriving:
    """Rows of one scan, put by the threads that receive them and read by the eddy.

    What a task sends stays together by partition where ``whole`` partitions are wanted: then an
    arrival is all rows of one, else it is what comes.
    """

    def __init__(self, wake: Callable[[], None], check: Callable[[], None], *, whole: bool) -> None:
        """``wake`` the reader when there is something new; ``check`` whether it is to go on."""
        self._wake = wake
        self._check = check
        self._whole = whole
        self._partitions: dict[int, list[pa.RecordBatch]] = {}
        self._used: set[int] = set()  # partitions of which rows may have been read
        self._waiting: deque[Arrival] = deque()
        self._others: deque[tuple[float, Arrival]] = deque()  # since when they wait
        self._choose: Choose | None = None
        self._alarm: threading.Timer | None = None
        self._held = 0
        self._changed = threading.Condition()
        self._complete = False
        self._closed = False
        self._error: BaseException | None = None

    @property
    def ended(self) -> bool:
        """Whether all rows were read; raises what has gone wrong in the scan."""
        with self._changed:
            if self._error is not None:
                raise self._error
            return self._complete and not self._waiting and not self._others

    @property
    def is_read(self) -> bool:
        """Whether all rows were read, even if something has gone wrong."""
        with self._changed:
            return self._complete and not self._waiting and not self._others

    @property
    def expected_rows(self) -> float | None:
        """None: nobody knows."""
        return None

    def poll(self) -> Arrival | None:
        """Return the next rows; None where none are there."""
        self._check()
        with self._changed:
            if self._error is not None:
                raise self._error
            if self._waiting:
                arrival = self._waiting.popleft()
            elif self._others and self._may_give_others():
                arrival = self._others.popleft()[1]
            else:
                return None
            self._held -= arrival.rows
            self._changed.notify_all()
            return arrival

    def put(self, partition: int, batch: pa.RecordBatch) -> None:
        """Take rows from a task, as soon as there is room.

        Of a partition that is to be whole as soon as there is room for its first: else two that
        wait for room would wait for each other.
        """
        with self._changed:
            if not self._whole or partition not in self._partitions:
                self._changed.wait_for(self._may_go_on)
            if self._whole:
                self._partitions.setdefault(partition, []).append(batch)
                return
            self._held += batch.num_rows
            self._used.add(partition)
            self._sort(Arrival(tuple(batch.columns), batch.num_rows))
        self._wake()

    def prefer(self, choose: Choose | None) -> None:
        """Give the chosen ones of the rows read first; None: as they come.

        Also of those that wait already. A scan of ``whole`` partitions keeps their order.
        """
        with self._changed:
            waiting = [*self._waiting, *(arrival for _, arrival in self._others)]
            self._waiting.clear()
            self._others.clear()
            self._choose = choose
            for arrival in waiting:
                self._sort(arrival)
        self._wake()

    def _sort(self, arrival: Arrival) -> None:
        """Put rows where they wait."""
        if self._choose is None or self._whole:
            self._waiting.append(arrival)
            return
        chosen = self._choose(arrival)
        if chosen.any():
            self._waiting.append(_rows_of(arrival, chosen))
        if not chosen.all():
            self._others.append((time.monotonic(), _rows_of(arrival, ~chosen)))

    def _may_give_others(self) -> bool:
        """Whether rows that are not preferred have waited enough; else ensure that they will."""
        waits = LONGEST_WAIT - (time.monotonic() - self._others[0][0])
        if self._complete or self._held >= READ_AHEAD or waits <= 0.0:
            return True
        if self._alarm is None or not self._alarm.is_alive():
            self._alarm = threading.Timer(waits, self._wake)
            self._alarm.daemon = True
            self._alarm.start()
        return False

    def end_partition(self, partition: int) -> None:
        """Say that all rows of a partition were put."""
        if not self._whole:
            return
        with self._changed:
            held = self._partitions.pop(partition, None)
            if held is None:
                arrival = Arrival((), 0)
            else:
                table = pa.Table.from_batches(held)
                columns = tuple(column.combine_chunks() for column in table.columns)
                arrival = Arrival(columns, len(table))
            self._held += arrival.rows
            self._waiting.append(arrival)
        self._wake()

    def broke_off(self, partition: int) -> None:
        """Forget the rows of a partition, which comes again; fail where they were used."""
        with self._changed:
            self._partitions.pop(partition, None)
            used = partition in self._used
        if used:
            self.fail(
                ScanBrokenError(
                    "a task of Spark's broke off after some of its rows had been used: watch again"
                )
            )

    def end(self) -> None:
        """Say that all rows were put."""
        with self._changed:
            self._complete = True
        self._wake()

    def close(self) -> None:
        """Let nobody wait for room any more: nobody will read."""
        with self._changed:
            self._closed = True
            if self._alarm is not None:
                self._alarm.cancel()
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Let those who read or put rows fail."""
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()
        self._wake()

    def _may_go_on(self) -> bool:
        return self._held < HELD_ROWS or self._closed or self._error is not None


def _rows_of(arrival: Arrival, chosen: npt.NDArray[np.bool_]) -> Arrival:
    if chosen.all():
        return arrival
    mask = pa.array(chosen)
    columns = tuple(column.filter(mask) for column in arrival.columns)
    return Arrival(columns, int(chosen.sum()), arrival.done)
