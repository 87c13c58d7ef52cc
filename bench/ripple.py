"""``python -m bench ripple``: rates of reading by what narrows the interval, beside even rates.

Two relations of 60,000 rows are joined by 500 keys in an eddy, each dealt out to 100 units; four
cases differ in what makes a sum vary, and in what a unit takes to be read. Told are the rows, and
the seconds on a virtual clock, until the 95 % interval of the sum is so narrow: with rates as they
are chosen, with even ones, and where the second relation is read to its end first, relative to the
even ones, median over seeds. With ``--spark`` the same on Spark, in seconds and in turns, over two
tables of ``--rows`` rows, as far as the narrowest interval; with ``--exact`` to the end.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from rich.console import Console
from rich.table import Table

import eddyline
from bench.turns import Spread
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join.reading_rates import ROUND, Rates, even_rates, narrowing_rates
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.modules.scan_access import Arrival
from eddyline.engine.policies.catalogue import make_policy
from eddyline.expressions import Argument, Comparison, ComparisonOperator
from eddyline.simulation.virtual_clock import VirtualClock
from eddyline.watching import work
from eddyline.watching.aggregate import WatchedAggregate, WatchedFunction
from eddyline.watching.ripple_join import RippleJoin, SampledInput, with_units
from eddyline.watching.running_aggregates import Estimates, RunningAggregates
from eddyline.watching.watched_values import Values

ROWS: Final = 60_000
KEYS: Final = 500
UNITS: Final = 100
NARROW: Final = (0.1, 0.05, 0.02)
"""Half the width of an interval, as a part of the value."""

INT: Final = pa.int64()
Rows = npt.NDArray[np.int64]


def second_first(
    units: Sequence[int], read: Sequence[int], spreads: Sequence[float], seconds: Sequence[float]
) -> tuple[int, ...]:
    """Return a round where the second input is read to its end before the first."""
    del spreads, seconds
    left = units[1] - read[1]
    return (0, min(ROUND, left)) if left else (min(ROUND, units[0] - read[0]), 0)


WAYS: Final[Mapping[str, Rates]] = {
    "even": even_rates,
    "chosen": narrowing_rates,
    "second first": second_first,
}


@dataclass(frozen=True)
class Case:
    """How values of R and keys of S are drawn, and the seconds of a unit of each."""

    values: Callable[[np.random.Generator], Rows]
    keys: Callable[[np.random.Generator], Rows]
    seconds: tuple[float, float] = (1.0, 1.0)


def _even_keys(generator: np.random.Generator) -> Rows:
    return generator.integers(0, KEYS, ROWS)


def _skewed_keys(generator: np.random.Generator) -> Rows:
    return np.minimum((KEYS * generator.random(ROWS) ** 3).astype(np.int64), KEYS - 1)


def _even_values(generator: np.random.Generator) -> Rows:
    return generator.integers(900, 1100, ROWS)


def _skewed_values(generator: np.random.Generator) -> Rows:
    return (1000 * generator.exponential(size=ROWS) ** 4).astype(np.int64)


CASES: Final = {
    "R's values vary": Case(_skewed_values, _even_keys),
    "neither varies more": Case(_even_values, _even_keys),
    "frequent keys": Case(_even_values, _skewed_keys),
    "S takes 9 times as long": Case(_even_values, _skewed_keys, (1.0, 9.0)),
    "R varies, S takes 9 times as long": Case(_skewed_values, _even_keys, (1.0, 9.0)),
}


class _Units:
    """Units that are there as soon as they are wanted, and then take time."""

    def __init__(self, units: Sequence[Arrival], seconds: float, clock: VirtualClock) -> None:
        self._units = deque(units)
        self._seconds, self._clock, self._wanted = seconds, clock, 0

    @property
    def ended(self) -> bool:
        return not self._units

    def want(self, units: int) -> None:
        self._wanted += units

    def poll(self) -> Arrival | None:
        if not self._wanted:
            return None
        self._wanted -= 1
        self._clock.advance(self._seconds)
        return self._units.popleft()


def reached(case: Case, rates: Rates, seed: int) -> dict[float, tuple[int, float]]:
    """Return for each width of the interval the rows that were read for it, and the seconds."""
    generator, clock = np.random.default_rng(seed), VirtualClock()
    keys = generator.integers(0, KEYS, ROWS)
    tables = [
        np.stack([keys, case.values(generator)], axis=1),
        np.stack([case.keys(generator), np.ones(ROWS, np.int64)], axis=1),
    ]
    inputs = []
    for number, (rows, seconds) in enumerate(zip(tables, case.seconds, strict=True)):
        unit = generator.integers(0, UNITS, ROWS)
        parts = [rows[unit == n] for n in range(UNITS)]
        arrivals = [Arrival(tuple(map(pa.array, part.T)), len(part)) for part in parts]
        inputs.append(SampledInput(number, _Units(arrivals, seconds, clock), UNITS))
    names = ("R", "S")
    bare = JoinQuery(tuple(JoinRelation(name, (INT, INT)) for name in names))
    equal = Comparison(ComparisonOperator.EQUAL, bare.column(0, 0), bare.column(1, 0))
    query = JoinQuery(bare.relations, (equal,), (bare.column(0, 1),))
    eddy = JoinEddy(
        with_units(query, (0, 1)),
        [],
        lambda: make_policy("benefit"),
        VirtualClock(),
        np.random.default_rng(0),
    )
    total = WatchedAggregate(WatchedFunction.SUM, 0, "s", INT)
    join = RippleJoin(
        eddy,
        inputs,
        Values([Argument(0, INT)]),
        RunningAggregates((), (total,), (UNITS, UNITS)),
        clock.now,
        rates=rates,
    )
    found: dict[float, tuple[int, float]] = {}
    for estimates in join.run(lambda: None):
        part = _half_width(estimates)
        for narrow in NARROW:
            if part <= narrow:
                done = sum(source.done for source in inputs)
                found.setdefault(narrow, (done * ROWS // UNITS, clock.now()))
        if len(found) == len(NARROW):
            break
    return found


def _half_width(estimates: Estimates) -> float:
    (row,) = estimates.table.to_pylist()
    if row["s_low"] is None or not row["s"]:
        return float("inf")
    return float(row["s_high"] - row["s_low"]) / 2 / abs(float(row["s"]))


def in_the_eddy(seeds: int) -> Table:
    """Return what each way takes in each case, relative to even rates."""
    table = Table(box=None)
    columns = ("case", "interval", "rows, even", "chosen", "second first", "s, even", "chosen")
    for column in (*columns, "second first"):
        table.add_column(column)
    for name, case in CASES.items():
        runs = [{way: reached(case, rates, n) for way, rates in WAYS.items()} for n in range(seeds)]
        for narrow in NARROW:
            cells = [name, f"± {narrow:.0%}"]
            for what in (0, 1):
                even = [run["even"][narrow][what] for run in runs]
                cells.append(f"{Spread.of(even).median:,.0f}")
                for way in ("chosen", "second first"):
                    ratios = (
                        run[way][narrow][what] / number
                        for run, number in zip(runs, even, strict=True)
                    )
                    cells.append(str(Spread.of(ratios)))
            table.add_row(*cells)
    return table


def query_on_spark(spark: SparkSession, rows: int) -> DataFrame:
    """Return a sum over the join of two tables, of which one has skewed values."""
    draw = -F.log(1 - F.rand(1))
    value = (1000 * draw * draw * draw).cast("long").alias("x")
    keys = (F.rand(2) * rows / 100).cast("long").alias("k")
    left = spark.range(rows).select(keys, value)
    right = spark.range(rows).select((F.rand(3) * rows / 100).cast("long").alias("k"))
    return left.join(right, "k").agg(F.sum("x").alias("s"))


def over_time(df: DataFrame, least: float, rates: Rates, *, to_the_end: bool) -> dict[str, float]:
    """Return the seconds until a watched sum had an interval, narrow ones, and its value.

    The second table is sampled where Spark's estimate of its bytes is not below ``least``.
    """
    began = time.perf_counter()
    found: dict[str, float] = {}
    with (
        mock.patch.object(work, "LARGE_BYTES", least),
        mock.patch.object(work, "RippleJoin", partial(RippleJoin, rates=rates)),
    ):
        watch = eddyline.watch(df, every=0.0)
        for part in watch:
            now = time.perf_counter() - began
            if part.estimates is None:
                continue
            width = _half_width(part.estimates)
            if width < float("inf"):
                found.setdefault("first interval", now)
            for narrow in NARROW:
                if width <= narrow:
                    found.setdefault(f"± {narrow:.0%}", now)
            if part.done:
                found["exact"] = now
            if len(found) > len(NARROW) and not to_the_end:
                break
        watch.stop()
    return found


def on_spark(rows: int, turns: int, *, to_the_end: bool) -> Table:
    """Return the seconds that each way takes, in turns, and the chosen rates over the others."""
    spark = eddyline.session()
    over_time(query_on_spark(spark, 10_000), 0.0, even_rates, to_the_end=True)  # starts workers
    df = query_on_spark(spark, rows)
    ways = {
        "chosen": (0.0, narrowing_rates),
        "even": (0.0, even_rates),
        "second first": (float("inf"), narrowing_rates),
    }
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(turns):
        for way, (least, rates) in ways.items():
            found[way].append(over_time(df, least, rates, to_the_end=to_the_end))
    table = Table(box=None)
    for column in ("seconds to", *ways, "chosen over even", "over second first"):
        table.add_column(column)
    for moment in (
        m for m in found["chosen"][0] if all(m in run for runs in found.values() for run in runs)
    ):
        seconds_of = {way: [run[moment] for run in runs] for way, runs in found.items()}
        chosen = seconds_of["chosen"]
        table.add_row(
            moment,
            *(str(Spread.of(values)) for values in seconds_of.values()),
            *(
                str(Spread.of(one / other for one, other in zip(chosen, values, strict=True)))
                for values in (seconds_of["even"], seconds_of["second first"])
            ),
        )
    return table


def main(arguments: Sequence[str]) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench ripple", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--exact", action="store_true")
    options = parser.parse_args(arguments)
    if options.spark:
        Console(width=150).print(on_spark(options.rows, options.turns, to_the_end=options.exact))
    else:
        Console(width=150).print(in_the_eddy(options.seeds))
    return 0
