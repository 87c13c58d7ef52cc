"""``python -m bench base-engine``: what routing costs a tuple, against engines without an eddy.

The selections of Deshpande (2004, Figure 5): three predicates that let everything pass, so that no
order is better than another, and what an eddy takes longer is its overhead. The base is a straight
pipeline over NumPy arrays: predicate after predicate over the rows that are left, no statistics, no
routing. Both call the same functions on the same batches, and what is compared is the time of this
process on its core, whoever else is there. In further queries the first predicate drops most rows:
the pipeline has that order, the best, by hand, and so has ``static``.

With ``--spark`` the base is plain Spark with one function of a row, written by hand, that asks the
predicates in the best order up to the first that drops the row. Beside it are the predicates as
three functions, all of which plain Spark calls for each row, and that query adapted.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from rich.table import Table

import eddyline
from bench import report
from bench.against_plain import CORES, start
from bench.turns import Spread, Turns, take_turns
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.expressions import And, Argument, Call
from eddyline.expressions.vector import Vector
from eddyline.wall_clock import WorkClock

BATCH: Final = 10_000
"""Rows of a batch, as Spark sends them."""

NUMPY: Final = "NumPy"

POLICIES: Final = (PolicyName.STATIC, PolicyName.RANK, PolicyName.LOTTERY, PolicyName.ADAPTIVE)

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def compared(values: Column, bound: int) -> Mask:
    """Return which values are below a bound: a vector at a time."""
    return values < bound


def row_by_row(values: Column, bound: int) -> Mask:
    """Return the same by a Python function of one row, which looks at it and no more."""
    return np.fromiter((value < bound for value in values.tolist()), np.bool_, len(values))


def delayed(values: Column, bound: int, *, additions: int) -> Mask:
    """Return the same by a function of one row that adds so many numbers first."""

    def passes(value: int) -> bool:
        return sum(range(additions)) > 0 and value < bound

    return np.fromiter(map(passes, values.tolist()), np.bool_, len(values))


@dataclass(frozen=True, slots=True)
class Query:
    """Predicates ``column < bound`` by one function; ``values`` of each column run from 0.

    The predicates stand in the best order.
    """

    name: str
    function: Callable[[Column, int], Mask]
    rows: int
    bounds: tuple[int, ...] = (2, 4, 10)
    values: tuple[int, ...] = (2, 4, 10)

    def columns(self) -> list[Column]:
        """Return the columns: all values equally often, in no order, each for itself."""
        generator = np.random.default_rng(2004)
        return [generator.permutation(np.arange(self.rows) % many) for many in self.values]

    def batches(self) -> Iterator[list[Column]]:
        """Give the columns batch by batch."""
        columns = self.columns()
        for start_of in range(0, self.rows, BATCH):
            yield [column[start_of : start_of + BATCH] for column in columns]


DROPPING: Final = {"bounds": (1, 2, 9), "values": (10, 4, 10)}
"""Predicates that let 10, 50 and 90 % pass."""

QUERIES: Final = (
    Query("a vector at a time", compared, 2_000_000),
    Query("a row at a time", row_by_row, 500_000),
    Query("1,000 additions a row", functools.partial(delayed, additions=1_000), 20_000),
    Query("10,000 additions a row", functools.partial(delayed, additions=10_000), 2_000),
    Query("a vector at a time, 10 % pass first", compared, 2_000_000, **DROPPING),
    Query("a row at a time, 10 % pass first", row_by_row, 500_000, **DROPPING),
)


def pipeline(query: Query, batches: Sequence[list[Column]]) -> int:
    """Return how many rows pass, predicate after predicate: no eddy, no routing, no statistics."""
    passed = 0
    for columns in batches:
        rows: Column | None = None  # all of them
        for column, bound in zip(columns, query.bounds, strict=True):
            mask = query.function(column if rows is None else column[rows], bound)
            if not mask.all():
                rows = np.flatnonzero(mask) if rows is None else rows[mask]
        passed += len(columns[0]) if rows is None else len(rows)
    return passed


@dataclass(slots=True)
class OverArrow:
    """A function as the eddy calls it: Arrow values in and out."""

    function: Callable[[Column, int], Mask]
    bound: int
    vectorized: bool = True

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:  # noqa: ARG002 - the column tells
        """Compute a vector."""
        return Vector(pa.array(self.function(columns[0].to_numpy(), self.bound)))


def through_an_eddy(query: Query, batches: Sequence[list[Column]], policy: PolicyName) -> int:
    """Return how many rows pass, routed by a policy that begins with nothing known."""
    clock = WorkClock()  # as in a task
    calls = [Call(n, (Argument(n, pa.int64()),), pa.bool_()) for n in range(len(query.bounds))]
    eddy = FilterEddy(
        FilterPlan(And(tuple(calls))),
        [OverArrow(query.function, bound, query.function is compared) for bound in query.bounds],
        functools.partial(make_policy, policy),
        clock,
        np.random.default_rng(0),
    )
    try:
        return sum(
            len(eddy.filter([pa.array(column) for column in columns], len(columns[0])).kept)
            for columns in batches
        )
    finally:
        clock.close()


def measure(query: Query, turns: int, progress: Callable[..., None]) -> Turns:
    """Let the pipeline and the eddies take turns."""
    batches = list(query.batches())
    contestants: dict[str, Callable[[], object]] = {
        NUMPY: functools.partial(pipeline, query, batches)
    }
    for policy in POLICIES:
        contestants[policy] = functools.partial(through_an_eddy, query, batches, policy)
    return take_turns(contestants, turns=turns, progress=progress, clock=time.process_time)


def overhead(turns: Turns, contestant: str, base: str, rows: int) -> Spread:
    """Return the nanoseconds that a contestant takes longer for a row, turn by turn."""
    both = zip(turns.seconds[contestant], turns.seconds[base], strict=True)
    return Spread.of(1e9 * (own - other) / rows for own, other in both)


def shown(turns: Turns, base: str, rows: int) -> Iterator[str]:
    """Give the cells of a row: the base in nanoseconds a row, the others beside it."""
    yield f"{1e9 * turns.median(base) / rows:,.0f}"
    for name in turns.seconds:
        if name != base:
            longer = overhead(turns, name, base, rows)
            spread = f"({longer.least:+,.0f} to {longer.greatest:+,.0f})"
            yield f"{longer.median:+,.0f} {spread} = {turns.ratio(name, base).median:.2f}"


CAPTION: Final = "nanoseconds a row: the base, and how much longer (least to greatest) = times"

BY_HAND: Final = "Spark, one function by hand"
TOGETHER: Final = "Spark, three functions"
ADAPTED: Final = "adapted"


def spark_queries(spark: SparkSession, rows: int) -> Mapping[str, Mapping[str, DataFrame]]:
    """Return queries by name, each in several ways: the functions are those of single rows."""
    frame = spark.range(0, rows, 1, CORES).cache()
    frame.count()
    found = {}
    for name, drops in (("all pass", False), ("10 % pass first", True)):
        values = DROPPING["values"] if drops else (2, 4, 10)
        bounds = DROPPING["bounds"] if drops else (2, 4, 10)
        checks = [
            functools.partial(_below, many, bound)
            for many, bound in zip(values, bounds, strict=True)
        ]
        predicates = [F.udf(check, "boolean")("id") for check in checks]
        together = frame.filter(predicates[0] & predicates[1] & predicates[2])
        found[name] = {
            BY_HAND: frame.filter(F.udf(functools.partial(_all, checks), "boolean")("id")),
            TOGETHER: together,
            ADAPTED: eddyline.adapt(together, remember=False),
        }
    return found


def _below(many: int, bound: int, number: int) -> bool:
    return number * 2_654_435_761 % 4_294_967_296 // 7 % many < bound


def _all(checks: Sequence[Callable[[int], bool]], number: int) -> bool:
    return all(check(number) for check in checks)


def measure_spark(rows: int, turns: int) -> dict[str, Turns]:
    """Let plain Spark and the adapted queries take turns."""
    spark = start()
    measured = {
        name: take_turns({way: frame.count for way, frame in ways.items()}, turns=turns)
        for name, ways in spark_queries(spark, rows).items()
    }
    spark.stop()
    return measured


def measured_engines(turns: int) -> tuple[Table, dict[str, Turns]]:
    """Measure the engine beside the pipeline; return the table and the turns."""
    with report.progress(len(QUERIES) * (1 + len(POLICIES)) * (1 + turns)) as advance:
        measured = {query.name: measure(query, turns, advance) for query in QUERIES}
    table = report.table(
        f"Three predicates, batches of {BATCH:,} rows",
        ("functions", NUMPY, *POLICIES),
        ((query.name, *shown(measured[query.name], NUMPY, query.rows)) for query in QUERIES),
        CAPTION,
    )
    return table, measured


def measured_spark(turns: int, rows: int) -> tuple[Table, dict[str, Turns]]:
    """Measure adapted queries beside plain Spark; return the table and the turns."""
    measured = measure_spark(rows, turns)
    table = report.table(
        f"Spark on {CORES} cores, {rows:,} rows, functions of a row",
        ("rows", BY_HAND, TOGETHER, ADAPTED),
        ((name, *shown(each, BY_HAND, rows)) for name, each in measured.items()),
        CAPTION,
    )
    return table, measured


def main(arguments: Sequence[str]) -> int:
    """Measure, and print what each policy costs a row beside the base engine."""
    parser = report.argument_parser("bench base-engine", __doc__, turns=9)
    parser.add_argument("--spark", action="store_true", help="beside plain Spark instead")
    parser.add_argument("--rows", type=int, default=2_000_000, help="on Spark")
    options = parser.parse_args(arguments)
    table, measured = (
        measured_spark(options.turns, options.rows)
        if options.spark
        else measured_engines(options.turns)
    )
    name = "base-engine-spark" if options.spark else "base-engine"
    path = report.write(options, name, {each: turns.seconds for each, turns in measured.items()})
    report.show(table, f"written: {path}")
    return 0
