"""Average latency of results by the number of queries that share a join, plan by plan.

Tuples arrive at a given rate. What has arrived when the eddy is free is worked off as one
vector; how long that takes is measured, and the next one begins behind it. So latency grows
where work does not keep up, as in Krishnamurthy et al. (2004, Section 5), without waiting for a
clock. What is measured is the processor's time of this process: by the wall clock the work of
others went in as well, and near the knee a tenth more work multiplies latencies.

The latency of a result is the time from the arrival of its last tuple to its output; a
tuple that is a result of many queries counts once for each.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.sharing.planned_eddy import PlannedEddy
from bench.sharing.setups import STREAMS, VALUES, Setup, queries_of
from bench.sharing.sharing_plans import PLANS
from eddyline.standing.engine.shared_query import SharedQuery
from eddyline.standing.engine.shared_results import SharedResults
from eddyline.wall_clock import WallClock

MOST_A_VECTOR = 2_000
WARM = 4_000
"""Tuples of each stream that come before the clock starts: all that is made on first use is."""


@dataclass(frozen=True)
class Tuples:
    """Keys and values of both streams, and how many of each come before the clock starts."""

    keys: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    warm: int

    @classmethod
    def made(cls, tuples: int, keys: int, warm: int = WARM) -> Tuples:
        """Make so many of each stream, with so many distinct keys; always the same."""
        generator = np.random.default_rng(4)
        return cls(
            generator.integers(0, keys, (2, tuples)),
            generator.integers(0, VALUES, (2, tuples)),
            warm,
        )

    @property
    def timed(self) -> int:
        """How many of each stream come while the clock runs."""
        return int(self.keys.shape[1]) - self.warm


@dataclass(frozen=True)
class Latency:
    """What a run took: average seconds a result, work in all, results and zombies."""

    average: float
    busy: float
    results: int
    zombies: int
    made: int


class Run:
    """One run of one plan."""

    def __init__(self, plan: str, queries: Mapping[int, SharedQuery], data: Tuples) -> None:
        self._data = data
        self._came: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
        self._aside = 0.0  # seconds in which results were only looked at
        self._eddy = PlannedEddy(
            STREAMS,
            self._deliver,
            WallClock(),
            np.random.default_rng(0),
            plan=PLANS[plan],
        )
        self._eddy.add(queries)

    def at(self, rate: float) -> Latency:
        """Let so many tuples of each stream arrive a second."""
        tuples, warm = self._data.keys.shape[1], self._data.warm
        arrivals = (np.arange(tuples) - warm) / rate
        now = busy = total = 0.0
        results = 0
        self._push(0, warm)
        self._came.clear()
        gc.collect()
        gc.disable()
        start = warm
        try:
            while start < tuples:
                now = max(now, float(arrivals[start]))
                stop = int(np.searchsorted(arrivals, now, "right"))
                stop = max(min(stop, start + MOST_A_VECTOR), start + 1)
                self._aside = 0.0
                began = time.process_time()
                self._push(start, stop)
                taken = time.process_time() - began - self._aside
                now += taken
                busy += taken
                for last, weights in self._came:
                    total += float(((now - arrivals[last]) * weights).sum())
                    results += int(weights.sum())
                self._came.clear()
                start = stop
        finally:
            gc.enable()
        done = self._eddy.statistics()
        return Latency(total / max(results, 1), busy, results, self._eddy.zombies, done.made)

    def _push(self, start: int, stop: int) -> None:
        for stream in range(2):
            columns = [
                pa.array(self._data.keys[stream, start:stop]),
                pa.array(self._data.values[stream, start:stop]),
            ]
            self._eddy.push(stream, columns, stop - start)

    def _deliver(self, results: SharedResults) -> None:
        began = time.process_time()
        last = np.maximum(results.arrivals(0), results.arrivals(1))
        self._came.append((last, self._eddy.sets.sizes(results.lineages)))
        self._aside += time.process_time() - began


def latency(
    setup: Setup, plan: str, queries: int, rate: float, *, of: int, data: Tuples
) -> Latency:
    """Return the latency of a plan with so many of a setup's queries, which may be ``of`` many."""
    return Run(plan, queries_of(setup, queries, of), data).at(rate)
