"""``python -m bench common-part``: joins under a UNION ALL with a part in common.

A joins B, and both join a table of each branch's own. As it is, each branch is a join block of its
own, which reads A and B again. A SteM over A and B (Raman, Deshpande and Hellerstein, 2003, future
work) would hold their pairs once for all branches. In the engine alone such a SteM is put together
from three eddies: one that joins A and B, and one a branch, which joins the pairs that come of it
with the branch's table. On Spark the common part is cached by hand, as one can today.

The branches' tables match all rows of A, or one in a hundred: then an eddy that may choose meets
them first, and hardly makes a pair, while a SteM of pairs has to have them all.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import eddyline
from bench import report
from bench.against_plain import PLAIN, start
from bench.turns import Spread, Turns, take_turns
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.modules.scan_access import Arrival, HeldScan
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.expressions import Comparison, ComparisonOperator
from eddyline.wall_clock import WallClock

ROWS: Final = 300_000
BATCH: Final = 1 << 16
NUMBER: Final = pa.int64()

SPARK_ROWS: Final = 100_000
MICROSECONDS: Final = 10.0

APART, SHARED, CACHED = "each branch alone", "pairs once", "cached by hand"
ADAPT: Final = "adapt"


@dataclass(frozen=True, slots=True)
class Case:
    """So many branches; a row of A finds so many of B, and of each branch's table."""

    name: str
    branches: int
    of_b: float
    of_own: float


CASES: Final = (
    Case("all match, 2 branches", 2, 1.0, 1.0),
    Case("all match, 4 branches", 4, 1.0, 1.0),
    Case("3 of B, 2 branches", 2, 3.0, 1.0),
    Case("one of a hundred in B, 2 branches", 2, 0.01, 1.0),
    Case("one of a hundred in the branch, 2 branches", 2, 1.0, 0.01),
    Case("one of a hundred in the branch, 4 branches", 4, 1.0, 0.01),
)


def _pieces(columns: Sequence[pa.Array]) -> list[Arrival]:
    rows = len(columns[0])
    return [
        Arrival(tuple(c.slice(start, BATCH) for c in columns), min(BATCH, rows - start))
        for start in range(0, rows, BATCH)
    ]


def joined(name: str, columns: Sequence[int], *equalities: tuple[int, int]) -> JoinQuery:
    """Return a first relation that joins others of one column each, by a column of its own.

    ``columns`` are how many each has; the outputs are the last column of the first.
    """
    relations = tuple(JoinRelation(f"{name}{r}", (NUMBER,) * n) for r, n in enumerate(columns))
    plain = JoinQuery(relations)
    return JoinQuery(
        relations,
        tuple(
            Comparison(ComparisonOperator.EQUAL, plain.column(0, own), plain.column(other, 0))
            for own, other in equalities
        ),
        (plain.column(0, columns[0] - 1),),
    )


def eddy(query: JoinQuery) -> JoinEddy:
    """Return an eddy that knows nothing."""
    return JoinEddy(query, (), AdaptivePolicy, WallClock(), np.random.default_rng(0))


@dataclass(frozen=True, slots=True)
class Tables:
    """A with two keys, B, and a table a branch, in arrivals."""

    a: list[Arrival]
    b: list[Arrival]
    own: list[list[Arrival]]

    @classmethod
    def of(cls, case: Case, rows: int) -> Tables:
        """Make those of a case."""
        draw = np.random.default_rng(5)
        times = max(round(case.of_b), 1)
        b = np.repeat(draw.permutation(rows)[: round(rows * min(case.of_b, 1.0))], times)
        own = [draw.permutation(rows)[: round(rows * case.of_own)] for _ in range(case.branches)]
        a = [pa.array(draw.permutation(rows)) for _ in range(2)]
        return cls(_pieces(a), _pieces([pa.array(b)]), [_pieces([pa.array(c)]) for c in own])


def apart(tables: Tables) -> int:
    """Join each branch with an eddy of its own; return the rows."""
    rows = 0
    for own in tables.own:
        join = eddy(joined("abc", (2, 1, 1), (0, 1), (1, 2)))
        inputs = [HeldScan(pieces) for pieces in (tables.a, tables.b, own)]
        rows += sum(found.rows for found in join.run(inputs))
    return rows


def shared(tables: Tables) -> int:
    """Join A and B once, and the pairs with each branch's table; return the rows."""
    branches = []
    for own in tables.own:
        join = eddy(joined("pc", (1, 1), (0, 1)))
        for arrival in own:
            _nothing(join.push(1, arrival))
        _nothing(join.end(1))
        branches.append(join)
    pairs = eddy(joined("ab", (2, 1), (0, 1)))
    rows = 0
    for found in pairs.run([HeldScan(pieces) for pieces in (tables.a, tables.b)]):
        arrival = Arrival(tuple(found.outputs), found.rows)
        rows += sum(each.rows for join in branches for each in join.push(0, arrival))
    return rows


def _nothing(found: Iterable[object]) -> None:
    for _ in found:
        raise ValueError("what is loaded matches before there are pairs")


def in_engine(case: Case, rows: int, turns: int) -> Turns:
    """Let both ways take turns in the engine alone; seconds are the processor's."""
    tables = Tables.of(case, rows)
    ways = {APART: lambda: apart(tables), SHARED: lambda: shared(tables)}
    return take_turns(ways, turns=turns, clock=time.process_time)


def slow(number):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201 - as users write it
    """Return whether a number is wanted, as half of them are, after some microseconds."""
    end = time.perf_counter() + MICROSECONDS * 1e-6
    while time.perf_counter() < end:
        pass
    return number % 2 == 0


def on_spark(spark: SparkSession, case: Case, rows: int, turns: int) -> Turns:
    """Let plain Spark, one ``adapt``, and ``adapt`` over a cached common part take turns."""
    wanted = F.udf(slow, "boolean")

    def table(name: str, sql: str, count: int) -> DataFrame:
        return spark.range(count, numPartitions=2).selectExpr(f"{sql} AS {name}").localCheckpoint()

    a = spark.range(rows, numPartitions=2)
    a = a.selectExpr("id AS k", f"id * 7919 % {rows} AS c", "id AS x").localCheckpoint()
    b = table("bk", f"id % {rows}", round(rows * case.of_b))
    own = [table("ck", "id", round(rows * case.of_own)) for _ in range(case.branches)]

    def common() -> DataFrame:
        return a.join(b, a["k"] == b["bk"]).filter(wanted("x"))

    def union(parts: Sequence[DataFrame]) -> DataFrame:
        branches = [part.join(c, part["c"] == c["ck"]) for part, c in zip(parts, own, strict=True)]
        return functools.reduce(DataFrame.unionAll, branches)

    def counted(frame: DataFrame) -> tuple[int, ...]:
        return tuple(frame.agg(F.count("*"), F.sum("x")).collect()[0])

    def cached() -> tuple[int, ...]:
        part = eddyline.adapt(common()).cache()
        try:
            return counted(eddyline.adapt(union([part] * case.branches)))
        finally:
            part.unpersist(blocking=True)

    ways: dict[str, Callable[[], object]] = {
        PLAIN: lambda: counted(union([common()] * case.branches)),
        ADAPT: lambda: counted(eddyline.adapt(union([common() for _ in own]))),
        CACHED: cached,
    }
    return take_turns(ways, turns=turns)


def main(arguments: Sequence[str]) -> int:
    """Measure all cases, write the file, print the tables."""
    parser = report.argument_parser("bench common-part", __doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--spark-rows", type=int, default=SPARK_ROWS)
    parser.add_argument("--only", default="", help="engine or spark (default: both)")
    options = parser.parse_args(arguments)
    document: dict[str, object] = {"turns": options.turns}
    shown = []
    if options.only in ("", "engine"):
        taken = {case.name: in_engine(case, options.rows, options.turns) for case in CASES}
        document["engine"] = {name: dict(turns.seconds) for name, turns in taken.items()}
        rows = [
            (name, *_seconds(turns), str(turns.ratio(SHARED, APART)))
            for name, turns in taken.items()
        ]
        columns: tuple[str, ...] = ("", APART, SHARED, "ratio")
        shown.append(report.table(f"{options.rows:,} rows of A, engine, s", columns, rows))
    if options.only in ("", "spark"):
        spark = start()
        taken = {
            case.name: on_spark(spark, case, options.spark_rows, options.turns) for case in CASES
        }
        spark.stop()
        document["spark"] = {name: dict(turns.seconds) for name, turns in taken.items()}
        over = [
            (
                name,
                *_seconds(turns),
                str(turns.ratio(ADAPT, PLAIN)),
                str(turns.ratio(CACHED, ADAPT)),
            )
            for name, turns in taken.items()
        ]
        columns = ("", PLAIN, ADAPT, CACHED, "adapt over plain", "cached over adapt")
        shown.append(report.table(f"{options.spark_rows:,} rows of A, Spark, s", columns, over))
    path = report.write(options, "common_part", document)
    report.show(*shown, f"written: {path}")
    return 0


def _seconds(turns: Turns) -> list[str]:
    return [str(Spread.of(seconds)) for seconds in turns.seconds.values()]
