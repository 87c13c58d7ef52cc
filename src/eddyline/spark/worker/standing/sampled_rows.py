"""Samples of rows under overload: the same ones whenever a batch is run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pyspark import TaskContext

from eddyline.exchange.hypercube import coordinates

_BITS = 31
"""Of the number that decides of a row."""


class SampledRows:
    """Which rows of a task are taken, ``kept`` being the part of all."""

    def __init__(self, kept: float, batch: int) -> None:
        """Start with the first row of the task's partition."""
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        self._kept = kept
        # A file's rows are in the same order each time, and a partition's of a log.
        self._next = (batch << 40) + (partition << 32)

    def taken(self, rows: int) -> npt.NDArray[np.bool_] | None:
        """Return which of the next rows are taken; None for all."""
        first, self._next = self._next, self._next + rows
        if self._kept >= 1:
            return None
        numbers = np.arange(first, first + rows, dtype=np.int64)
        taken: npt.NDArray[np.bool_] = coordinates(numbers, 1 << _BITS) < self._kept * (1 << _BITS)
        return taken
