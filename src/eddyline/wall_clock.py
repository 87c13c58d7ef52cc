"""The clocks of eddies outside the simulator; the engine has none of its own."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

SCHEDULING = Path("/proc/thread-self/schedstat")
"""Where Linux counts the nanoseconds for which this thread had to wait for a core."""


class WallClock:
    """Real time in seconds, monotonic; the zero point means nothing."""

    now = staticmethod(time.perf_counter)


class WorkClock:
    """Real time in seconds without that in which this thread waited for a core; monotonic.

    What a function costs is the time in which it works, sleeps or waits for an
    answer. That the machine gives the core to another process meanwhile is not
    its fault: beside Spark's own threads up to one visit in twenty takes twice as long
    for that reason, enough to make a policy change its mind for nothing. Only
    Linux tells; elsewhere this is the wall clock (docs/decisions/0007).

    A reading takes about 1 microsecond. The clock is that of the thread that made it.
    """

    def __init__(self, scheduling: Path = SCHEDULING) -> None:
        """Open the counter, if there is one."""
        self._latest = 0.0
        self._file: int | None = None
        with contextlib.suppress(OSError):
            self._file = os.open(scheduling, os.O_RDONLY)

    def now(self) -> float:
        """Return the time."""
        if self._file is not None:
            try:
                waited = int(os.pread(self._file, 64, 0).split()[1]) * 1e-9
            except (OSError, ValueError, IndexError):  # its thread has ended, say
                self.close()
            else:
                # The core may be lost between the two readings too; hence the comparison.
                self._latest = max(self._latest, time.perf_counter() - waited)
                return self._latest
        return time.perf_counter()

    def close(self) -> None:
        """Let the counter go; from now on this is the wall clock, which is ahead of it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
