"""``python -m bench delayed``: functions of joined streams, called early or as it pays.

Two streams are pushed into a shared eddy in turn, without Spark; a query joins them and calls a
function of one. Beside it stands the same eddy that calls it for all rows before they are stored,
as the plan CAR has it (Krishnamurthy et al., 2004, Section 6.3). Results are compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from rich.table import Table

from bench import report
from bench.turns import Spread
from eddyline.expressions import Argument, Call
from eddyline.expressions.vector import Vector
from eddyline.standing.engine.shared_eddy import SharedEddy
from eddyline.standing.engine.shared_query import SharedQuery, Stream, edge
from eddyline.standing.engine.shared_results import SharedResults
from eddyline.wall_clock import WorkClock

TYPES = (pa.int64(), pa.int64())

STREAMS = (Stream("R", TYPES), Stream("S", TYPES))

PUSHED = 5_000
"""Rows of a stream that come together."""


class Case(NamedTuple):
    """What the function takes for a row, how many of 100 rows pass, the keys, and the pushes."""

    what: str
    seconds: float
    passing: int
    keys: int
    other_keys: int
    pushes: int


CASES = (
    Case("200 us, one row of a hundred is joined", 200e-6, 50, 500_000, 5_000, 4),
    Case("20 us, drops 99 %, each row is joined to many", 20e-6, 1, 1_000, 1_000, 10),
    Case("2 us, drops half, a row is joined to 7", 2e-6, 50, 20_000, 20_000, 30),
    Case("0.2 us, drops 99 %, each row is joined to many", 0.2e-6, 1, 1_000, 1_000, 30),
    Case("0.2 us, drops half, a row is joined to 2", 0.2e-6, 50, 100_000, 100_000, 40),
)


class Busy:
    """A function that takes so long for a row."""

    vectorized = True

    def __init__(self, case: Case) -> None:
        self._case = case
        self.calls = 0

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Tell which rows pass."""
        self.calls += rows
        until = time.perf_counter() + self._case.seconds * rows
        passes = columns[0].to_numpy(zero_copy_only=False) % 100 < self._case.passing
        while time.perf_counter() < until:
            pass
        return Vector(pa.array(passes))


class Run(NamedTuple):
    """The seconds of a run, the rows that the function was called for, and the results."""

    seconds: float
    calls: int
    results: int


def run(case: Case, *, delays: bool) -> Run:
    """Push all rows."""
    function, delivered = Busy(case), [0]

    def deliver(results: SharedResults) -> None:
        delivered[0] += len(results)

    eddy = SharedEddy(STREAMS, deliver, WorkClock(), np.random.default_rng(0), delays=delays)
    eddy.take_functions([function])
    asked = Call(0, (Argument(1, pa.int64()),), pa.bool_())
    eddy.add({0: SharedQuery({0: asked, 1: None}, frozenset({edge((0, 0), (1, 0))}))})
    chance = np.random.default_rng(1)
    started = time.perf_counter()
    for number in range(case.pushes):
        for stream, keys in ((1, case.other_keys), (0, case.keys)):
            columns = [pa.array(chance.integers(0, keys, PUSHED))]
            columns.append(pa.array(np.arange(PUSHED) + number * PUSHED))
            eddy.push(stream, columns, PUSHED)
    return Run(time.perf_counter() - started, function.calls, delivered[0])


def main(arguments: Sequence[str]) -> int:
    """Measure, compare, and print."""
    parser = argparse.ArgumentParser(prog="delayed", description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args(arguments)
    run(CASES[3], delays=True)  # compiles kernels
    table = Table(title="functions of joined streams, as it pays over always early")
    for heading in ("the function", "calls", "early", "seconds", "early", "ratio"):
        table.add_column(heading, justify="right" if heading != "the function" else "left")
    different = 0
    for case in CASES:
        ways = [partial(run, case, delays=delays) for delays in (True, False)]
        runs = [[way() for way in ways] for _ in range(options.turns)]
        different += sum(one.results != other.results for one, other in runs)
        one, other = (Spread.of(each[way].seconds for each in runs) for way in (0, 1))
        ratio = Spread.of(one.seconds / other.seconds for one, other in runs)
        calls = [f"{runs[0][way].calls:,}" for way in (0, 1)]
        seconds = [f"{spread.median:.3f}" for spread in (one, other)]
        table.add_row(case.what, *calls, *seconds, str(ratio))
    report.show(table)
    return 1 if different else 0
