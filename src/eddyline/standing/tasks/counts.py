"""What the tasks of standing queries have counted, and how that comes together in the driver."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from pyspark.accumulators import AccumulatorParam

from eddyline.standing.tasks.failed_queries import QueryFailure


def _no_seconds() -> defaultdict[str, float]:
    return defaultdict(float)


@dataclass(slots=True)
class Counts:
    """Counts of one micro-batch, by whatever they are counted by.

    ``errors`` has for each query that could not be answered what went wrong first.
    ``rows_in``, ``late`` and ``dropped`` are by stream, ``results`` by query, as are those
    ``left_out`` because there were too many, ``stored``
    and ``entries`` by cell and stream, ``seconds`` by what did the work. ``window_events`` and
    ``window_dropped`` are of windows that have closed, by their grouping, start and end. ``latest``
    is the latest event time, in microseconds, by stream.
    """

    rows_in: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    results: Counter[int] = field(default_factory=Counter)
    stored: Counter[tuple[int, str]] = field(default_factory=Counter)
    entries: Counter[tuple[int, str]] = field(default_factory=Counter)
    left_out: Counter[int] = field(default_factory=Counter)
    window_events: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    window_dropped: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=_no_seconds)
    errors: dict[int, QueryFailure] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)

    def add(self, other: Counts) -> None:
        """Add what another task has counted."""
        for name in self.__slots__:
            if name not in {"errors", "latest", "seconds"}:
                getattr(self, name).update(getattr(other, name))
        for what, seconds in other.seconds.items():
            self.seconds[what] += seconds
        self.errors = other.errors | self.errors
        for stream, latest in other.latest.items():
            self.latest[stream] = max(latest, self.latest.get(stream, latest))

    def add_results(self, queries: npt.NDArray[np.int64]) -> None:
        """Count a result for each of these queries."""
        if len(queries):
            numbers = np.bincount(queries)
            for query in np.flatnonzero(numbers).tolist():
                self.results[query] += int(numbers[query])


CountsByBatch: TypeAlias = "dict[tuple[str, int], Counts]"
"""Counts by the name of the job and the number of the batch."""

BATCHES_KEPT = 1_000
"""Batches whose counts the driver keeps, the latest."""


class CountsParam(AccumulatorParam[CountsByBatch]):
    """Merges the counts of tasks in the driver."""

    def zero(self, value: CountsByBatch) -> CountsByBatch:  # noqa: ARG002 - the protocol's argument
        """Return no counts."""
        return {}

    def addInPlace(  # noqa: N802 - PySpark's name
        self, value1: CountsByBatch, value2: CountsByBatch
    ) -> CountsByBatch:
        """Add the counts of a task to those that are there, in place."""
        for key, counts in value2.items():
            value1.setdefault(key, Counts()).add(counts)
        while len(value1) > BATCHES_KEPT:
            del value1[next(iter(value1))]
        return value1
