"""``python -m bench enabling``: what a session's queries are planned longer for being adapted.

Milliseconds to optimize a plan that calls no Python function, one of which two Python predicates
are a filter, and one of five tables, in a session for which Eddyline is switched on and in the same
one for which it is not, in turns. Nothing runs. With ``--plug-in`` the plug-in adapts the session.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from rich.console import Console
from rich.table import Table

import eddyline
from bench.against_plain import CORES, SETTINGS
from bench.flights import query
from bench.plugged_in import session
from bench.turns import Spread
from eddyline_demos.flights import create_views, write_parquet

SWITCH: Final = "spark.eddyline.enabled"

NATIVE: Final = "no Python"
"""How the queries are named whose plans nothing of ours may hold up."""

LONGEST: Final = 1.0
"""The target: milliseconds by which those plans may take longer."""

PLANS: Final = 20
"""Optimized one after the other in a turn; their median counts."""


def queries(spark: SparkSession) -> dict[str, Callable[[], DataFrame]]:
    """Return the queries, each made anew when it is called."""
    rows = spark.range(100).withColumn("k", F.col("id") % 10)
    high = F.udf(lambda number: number % 3 == 0, "boolean")
    even = F.udf(lambda number: number % 2 == 0, "boolean")
    wide = rows.select("k", *[(F.col("id") % n).alias(f"c{n}") for n in range(1, 201)])
    return {
        "no Python": lambda: rows.filter("id > 3").groupBy("k").count(),
        "no Python, 200 columns": lambda: wide.filter(
            " AND ".join(f"c{n} >= 0" for n in range(1, 201))
        ),
        "no Python, five tables": lambda: joined(spark),
        "two predicates": lambda: rows.filter(high("id") & even("k")),
        "five tables, four predicates": query(spark).ask,
    }


def joined(spark: SparkSession) -> DataFrame:
    """Return five tables joined, a filter over them and an aggregate, all of it native."""
    one, *others = [spark.range(100 * n).withColumn(f"n{n}", F.col("id") % 7) for n in range(1, 6)]
    for other in others:
        one = one.join(other, "id")
    return one.filter("n1 = n2 AND n3 > 1").groupBy("n4").count()


@contextlib.contextmanager
def switched_on(spark: SparkSession, *, plugged_in: bool) -> Iterator[None]:
    """Have the session adapted for a while."""
    if not plugged_in:
        with eddyline.enable(spark):
            yield
        return
    spark.conf.set(SWITCH, "true")
    try:
        yield
    finally:
        spark.conf.set(SWITCH, "false")


def milliseconds(ask: Callable[[], DataFrame]) -> float:
    """Return how long it takes to optimize a query that has been analyzed."""
    taken = []
    for _ in range(PLANS):
        execution = ask()._jdf.queryExecution()  # noqa: SLF001 - nothing public tells it
        execution.analyzed()
        began = time.perf_counter()
        execution.optimizedPlan()
        taken.append(time.perf_counter() - began)
    return 1000 * median(taken)


def main(arguments: Sequence[str]) -> int:
    """Measure all queries; the tables of the five are those of the flights, without a sample."""
    parser = argparse.ArgumentParser(prog="python -m bench enabling", description=__doc__)
    parser.add_argument("--turns", type=int, default=7, help="counted turns (default: 7)")
    parser.add_argument("--plug-in", action="store_true", help="instead of eddyline.enable")
    options = parser.parse_args(arguments)
    met = True
    table = Table("query", "off, ms", "on, ms", "longer by, ms", title="To optimize a plan")
    with tempfile.TemporaryDirectory(prefix="eddyline-enabling-") as folder:
        write_parquet(Path(folder), sample=None)
        spark = session("bench-enabling", SETTINGS, plugged_in=options.plug_in, cores=CORES)
        if options.plug_in:
            spark.conf.set(SWITCH, "false")
        create_views(spark, Path(folder))
        for name, ask in queries(spark).items():
            off, on = [], []
            for turn in range(options.turns + 2):  # two are not counted
                without = milliseconds(ask)
                with switched_on(spark, plugged_in=options.plug_in):
                    adapted = milliseconds(ask)
                if turn > 1:
                    off.append(without)
                    on.append(adapted)
            longer = Spread.of(b - a for a, b in zip(off, on, strict=True))
            met = met and (NATIVE not in name or longer.median <= LONGEST)
            table.add_row(name, str(Spread.of(off)), str(Spread.of(on)), str(longer))
        spark.stop()
    Console(width=120).print(table)
    return int(not met)
