"""``python -m bench looking``: what it costs that somebody looks at queries while they run.

The time of a query while its tasks tell the driver what they do, and as many requests are answered
as a page makes, over that of the same query while nobody looks; in turns. The queries: predicates
of 2 and 20 µs, two that do next to nothing, and a join of three inputs over a shuffle.
"""

from __future__ import annotations

import argparse
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from rich.console import Console
from rich.table import Table

import eddyline
from bench.against_plain import CORES, start
from bench.turns import Spread

EVERY: Final = 0.25
"""Seconds between two requests for the query that is shown, as the page asks while it runs."""


def queries(spark: SparkSession) -> dict[str, DataFrame]:
    """Return the queries, adapted."""
    cheap = F.udf(lambda number: number % 3 == 0, "boolean")
    costly = F.udf(lambda number: sum(number * i % 7 for i in range(250)) % 2 == 0, "boolean")
    even = F.udf(lambda number: number % 2 == 0, "boolean")
    # Each takes some seconds: of less nobody could tell one hundredth.
    rows, more = (spark.range(0, number, 1, CORES) for number in (2_000_000, 20_000_000))
    one = spark.range(0, 8_000_000, 1, CORES).withColumn("a", F.col("id") % 100_000)
    two = spark.range(0, 200_000, 1, CORES).select(
        F.col("id").alias("a"), (F.col("id") % 999).alias("b")
    )
    three = spark.range(0, 999, 1, CORES).selectExpr("id AS b")
    joined = one.join(two, "a").join(three, "b").filter(even("id"))
    return {
        "2 and 20 µs": eddyline.adapt(rows.filter(costly("id") & cheap("id"))),
        "next to nothing": eddyline.adapt(more.filter(even("id") & cheap("id"))),
        "a join of three": eddyline.adapt(joined, joins="always"),
    }


@contextmanager
def looked_at(spark: SparkSession) -> Iterator[None]:
    """Serve the page, and ask for what it shows as often as it does."""
    over = threading.Event()

    def look(url: str) -> None:
        while not over.wait(EVERY):
            with urllib.request.urlopen(f"{url}queries?most=50") as answer:  # noqa: S310 - ours
                answer.read()

    with eddyline.live(spark) as page:
        looking = threading.Thread(target=look, args=(page.url,))
        looking.start()
        try:
            yield
        finally:
            over.set()
            looking.join()


def seconds(run: Callable[[], object]) -> float:
    """Return how long something takes."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def main(arguments: Sequence[str]) -> int:
    """Measure all queries."""
    parser = argparse.ArgumentParser(prog="python -m bench looking", description=__doc__)
    parser.add_argument("--turns", type=int, default=9, help="counted turns (default: 9)")
    options = parser.parse_args(arguments)
    spark = start(CORES)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    table = Table("query", "nobody looks, s", "somebody looks", title="Seconds, and times as long")
    for name, frame in queries(spark).items():
        alone, ratios = [], []
        for turn in range(options.turns + 2):  # two are not counted
            if turn % 2:
                without = seconds(frame.count)
            with looked_at(spark):
                watched = seconds(frame.count)
            if not turn % 2:
                without = seconds(frame.count)
            if turn > 1:
                alone.append(without)
                ratios.append(watched / without)
        table.add_row(name, str(Spread.of(alone)), str(Spread.of(ratios)))
    spark.stop()
    Console(width=100).print(table)
    return 0
