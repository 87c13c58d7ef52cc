"""The clocks of eddies outside the simulator; the engine has none of its own."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

SCHEDULING = Path("/proc/thread-self/schedstat")
"""Where Linux counts the nanoseconds for which this thread had to wait for a core."""


UNDISTURBED = 20e-6
"""Seconds between two readings of the time in which the core was not taken away.

Reading the counter between them takes 1 to 3 microseconds, a wait for a core mostly milliseconds.
"""

TRIES = 3
"""Readings of the counter, of which one should be undisturbed: a fresh time slice has begun."""


class WallClock:
    """Real time in seconds, monotonic; the zero point means nothing."""

    resolution = time.get_clock_info("perf_counter").resolution
    """Seconds; nothing that was measured took less."""

    now = staticmethod(time.perf_counter)


class WorkClock:
    """Real time in seconds without that in which this thread waited for a core; monotonic.

    What a function costs is the time in which it works, sleeps or waits for an
    answer. It is not to blame when the machine gives the core to another process meanwhile: beside
    Spark's own threads up to one visit in twenty takes twice as long for that reason, enough to
    make a policy change its mind for nothing. Only Linux tells; elsewhere this is the wall clock
    (docs/decisions/0007).

    The kernel likes to take the core away at the end of a system call, and so between the
    reading of its counter and that of the time: a wait that is in the time and not yet in the
    counter would be missing from whatever is measured next. So the time is read before and
    after, and both again where they lie far apart. Beside four busy processes on two cores two
    visits of 100 microseconds in five came out as nothing without that.

    A reading takes about 1 microsecond. The clock is that of the thread that made it.
    """

    resolution = 1e-6
    """Seconds; nothing that was measured took less."""

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
                work = self._work(self._file)
            except (OSError, ValueError, IndexError):  # its thread has ended, say
                self.close()
            else:
                self._latest = max(self._latest, work)
                return self._latest
        return time.perf_counter()

    def close(self) -> None:
        """Let the counter go; from now on this is the wall clock, which is ahead of it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @staticmethod
    def _work(file: int) -> float:
        """Return the time less the wait for a core."""
        for _ in range(TRIES):
            before = time.perf_counter()
            waited = int(os.pread(file, 64, 0).split()[1]) * 1e-9
            after = time.perf_counter()
            if after - before < UNDISTURBED:
                return after - waited
        return before - waited  # at least: what is missing comes with the next reading
