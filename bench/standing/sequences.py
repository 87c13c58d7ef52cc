"""``python -m bench sequences``: 1,000 rules "a followed by b within 10 seconds" in one job.

The events lie in files, each a micro-batch. Both sides read all of them once, in turns; medians of
the turns. Plain Spark joins the stream with itself once for all rules, within 10 s, and the pairs
with a table of rules that every task has, as one would by hand. The results must be as many.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from rich.table import Table

from bench import report
from bench.against_plain import start
from eddyline.standing.standing_queries import StandingQueries
from eddyline.standing.stream_settings import stream_settings

CORES: Final = 2

SCHEMA: Final = "key bigint, price bigint, time timestamp"

PRICES: Final = 100_000

RULE: Final = """SELECT a.key, a.price AS before, b.price AS after
    FROM events a FOLLOWED BY events b ON a.key = b.key WITHIN 10 SECONDS
    WHERE a.price BETWEEN :low AND :high AND b.price < :most"""

ABSENT: Final = """SELECT a.key, a.price AS before
    FROM events a NOT FOLLOWED BY events b ON a.key = b.key AND b.price < :most WITHIN 10 SECONDS
    WHERE a.price BETWEEN :low AND :high"""


def write_events(directory: Path, files: int, rows: int) -> None:
    """Write files of events, a second of them in each."""
    chance = np.random.default_rng(0)
    for number in range(files):
        times = 1_767_225_600_000_000 + number * 1_000_000 + chance.integers(0, 1_000_000, rows)
        table = pa.table(
            {
                "key": chance.integers(0, rows, rows),
                "price": chance.integers(0, PRICES, rows),
                "time": pa.array(np.sort(times)).cast(pa.timestamp("us", "UTC")),
            }
        )
        pq.write_table(table, directory / f"{number:05}.parquet")


def rules(count: int, share: float) -> pd.DataFrame:
    """Return the constants of rules: each event may be the first of four.

    Of all events, `share` may be the second of a rule, or up to 1.5 times as many.
    """
    low = np.arange(count) * PRICES // count
    names = [f"rule-{number}" for number in range(count)]
    high = low + 4 * PRICES // count - 1
    most = (share * (PRICES + low // 2)).astype(np.int64)
    return pd.DataFrame({"name": names, "low": low, "high": high, "most": most})


def stream(spark: SparkSession, directory: Path) -> DataFrame:
    """Return the events as a stream, a file a micro-batch."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(directory)).withWatermark("time", "1 second")


class Counted:
    """A sink that counts results."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, results: DataFrame, _: object) -> None:
        """Count the results of a micro-batch."""
        self.rows += results.count()


def shared(spark: SparkSession, directory: Path, constants: pd.DataFrame, template: str) -> int:
    """Run standing queries over all events; return the number of results."""
    sink = Counted()
    with (
        tempfile.TemporaryDirectory() as state,
        StandingQueries(
            spark, streams={"events": stream(spark, directory)}, state=state
        ) as queries,
    ):
        queries.add_many(template, constants)
        queries.start(sink, availableNow=True)
        queries.await_termination()
    return sink.rows


def plain(spark: SparkSession, directory: Path, constants: pd.DataFrame) -> int:
    """Run one join of plain Spark for all rules; return the number of results."""
    sink = Counted()
    table = F.broadcast(spark.createDataFrame(constants))
    a, b = stream(spark, directory).alias("a"), stream(spark, directory).alias("b")
    pairs = a.join(
        b,
        F.expr("a.key = b.key AND b.time > a.time AND b.time <= a.time + INTERVAL 10 SECONDS"),
    ).select("a.key", F.col("a.price").alias("before"), F.col("b.price").alias("after"))
    results = pairs.join(table, F.expr("before BETWEEN low AND high AND after < most"))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        writer = results.select("name", "key", "before", "after").writeStream
        writer = writer.foreachBatch(sink).option("checkpointLocation", folder)
        with stream_settings(spark, CORES):
            writer.trigger(availableNow=True).start().awaitTermination()
    return sink.rows


def main(arguments: Sequence[str]) -> int:
    """Run all in turns, and print the medians."""
    parser = argparse.ArgumentParser(prog="sequences", description=__doc__)
    parser.add_argument("--rules", type=int, default=1_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--events", type=int, default=10_000, help="in a file")
    parser.add_argument("--share", type=float, default=0.02, help="that may be second")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args(arguments)
    spark = start(CORES)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        write_events(directory, options.files, options.events)
        given = spark, directory, rules(options.rules, options.share)
        sides: dict[str, Callable[[], int]] = {
            "plain Spark, one join and a table of rules": partial(plain, *given),
            "FOLLOWED BY": partial(shared, *given, RULE),
            "NOT FOLLOWED BY": partial(shared, *given, ABSENT),
        }
        took: dict[str, list[float]] = {side: [] for side in sides}
        found: dict[str, set[int]] = {side: set() for side in sides}
        for turn in range(options.turns + 1):  # the first one warms up
            for side in list(sides) if turn % 2 else list(reversed(sides)):
                began = time.perf_counter()
                found[side].add(sides[side]())
                if turn:
                    took[side].append(time.perf_counter() - began)
    table = Table(title=f"{options.rules:,} rules, {options.files} x {options.events:,} events")
    for heading in ("", "results", "seconds", "events/s"):
        table.add_column(heading, justify="right" if heading else "left")
    for side, seconds in took.items():
        median = statistics.median(seconds)
        counts = ", ".join(f"{rows:,}" for rows in sorted(found[side]))
        rate = options.files * options.events / median
        table.add_row(side, counts, f"{median:.1f}", f"{rate:,.0f}")
    report.show(table)
    alike = {frozenset(found[side]) for side in list(sides)[:2]}
    return 0 if len(alike) == 1 and len(found["FOLLOWED BY"]) == 1 else 1
