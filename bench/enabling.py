"""``python -m bench enabling``: what a session's queries are planned longer for being adapted.

Milliseconds to optimize a plan that calls no Python function, one of which two Python predicates
are a filter, and one of five tables, in a session for which Eddyline is switched on and in the same
one for which it is not, in turns. Nothing runs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from rich.console import Console
from rich.table import Table

import eddyline
from bench.against_plain import CORES, start
from bench.flights import query
from bench.turns import Spread
from eddyline_demos.flights import create_views, write_parquet

PLANS: Final = 20
"""Optimized one after the other in a turn; their median counts."""


def queries(spark: SparkSession) -> dict[str, Callable[[], DataFrame]]:
    """Return the queries, each made anew when it is called."""
    rows = spark.range(100).withColumn("k", F.col("id") % 10)
    high = F.udf(lambda number: number % 3 == 0, "boolean")
    even = F.udf(lambda number: number % 2 == 0, "boolean")
    return {
        "no Python": lambda: rows.filter("id > 3").groupBy("k").count(),
        "two predicates": lambda: rows.filter(high("id") & even("k")),
        "five tables, four predicates": query(spark).ask,
    }


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
    options = parser.parse_args(arguments)
    table = Table("query", "off, ms", "on, ms", "longer by, ms", title="To optimize a plan")
    with tempfile.TemporaryDirectory(prefix="eddyline-enabling-") as folder:
        write_parquet(Path(folder), sample=None)
        spark = start(CORES)
        create_views(spark, Path(folder))
        for name, ask in queries(spark).items():
            off, on = [], []
            for turn in range(options.turns + 2):  # two are not counted
                without = milliseconds(ask)
                with eddyline.enable(spark):
                    adapted = milliseconds(ask)
                if turn > 1:
                    off.append(without)
                    on.append(adapted)
            longer = Spread.of(b - a for a, b in zip(off, on, strict=True))
            table.add_row(name, str(Spread.of(off)), str(Spread.of(on)), str(longer))
        spark.stop()
    Console(width=120).print(table)
    return 0
