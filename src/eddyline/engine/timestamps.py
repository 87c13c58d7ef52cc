"""Timestamps of built tuples, as high-water marks of row numbers."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import numpy.typing as npt

from eddyline.engine.batch import Marks


class Ticks:
    """The global clock of builds: every batch that is built gets the next tick."""

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        """Return a timestamp that is greater than all before."""
        self.last += 1
        return self.last


class HighWaterMarks:
    """How many rows a SteM held at every tick.

    Rows are appended in the order of their timestamps, so "older than t" is "below the
    number of rows that there were when t was given": one comparison of row numbers.
    """

    def __init__(self) -> None:
        self._ticks: list[int] = []
        self._rows: list[int] = []

    @property
    def rows(self) -> int:
        """Rows built so far, those evicted included."""
        return self._rows[-1] if self._rows else 0

    @property
    def last(self) -> int:
        """The tick of the last build, 0 where there was none."""
        return self._ticks[-1] if self._ticks else 0

    def built(self, tick: int, rows: int) -> None:
        """Note that there are ``rows`` rows after the build at ``tick``."""
        self._ticks.append(tick)
        self._rows.append(rows)

    def below(self, timestamps: Marks) -> npt.NDArray[np.int64]:
        """Return the number of rows with a lesser timestamp: one, or one a tuple."""
        if timestamps is None:
            return np.array([self.rows], np.int64)
        if isinstance(timestamps, np.ndarray):
            counts = np.array([0, *self._rows], np.int64)
            return counts[np.searchsorted(np.array(self._ticks, np.int64), timestamps, "left")]
        before = bisect_left(self._ticks, timestamps)
        return np.array([self._rows[before - 1] if before else 0], np.int64)
