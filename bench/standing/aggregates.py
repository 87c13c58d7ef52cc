"""``python -m bench aggregates``: alerts on windows, a range of prices and a threshold each.

Each rule counts the events in its range by symbol, in windows of a minute every 20 seconds, and
puts out those with enough of them. Plain Spark joins events with a broadcast table of rules and
groups by rule, as one streaming query in append mode. Events are replayed from files, a file a
micro-batch, with ``availableNow``; the windows' results are compared row by row.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from rich.table import Table

from bench import report
from bench.against_plain import start
from bench.standing.rules import written
from bench.turns import Spread, in_turns
from eddyline.standing.standing_queries import StandingQueries
from eddyline.standing.stream_settings import stream_settings

SCHEMA: Final = "symbol bigint, price double, volume bigint, time timestamp"

SYMBOLS: Final = 20

ROWS: Final = 100_000
"""Events of a micro-batch, over a minute."""

BATCHES: Final = 5

SHARE: Final = 0.01
"""Of the events that are in a rule's range."""

ALERT: Final = """SELECT symbol, window.start AS began, count(*) AS n, avg(volume) AS mean
    FROM events WHERE price BETWEEN :low AND :high
    GROUP BY symbol, window(time, '60 seconds', '20 seconds') HAVING count(*) >= :least"""

COLUMNS: Final = ["query", "symbol", "began", "n", "mean"]

Sink = Callable[[DataFrame], object]


@dataclass(frozen=True, slots=True)
class Setup:
    """The files, and the rules."""

    spark: SparkSession
    files: Path
    rules: pd.DataFrame

    def stream(self) -> DataFrame:
        """Return the stream of the files."""
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.files)).withWatermark("time", "1 second")


def make_rules(count: int) -> pd.DataFrame:
    """Return rules, each with a range somewhere, and a threshold that half of the groups reach."""
    low = np.random.default_rng(1).random(count) * (1 - SHARE)
    names = [f"rule-{number}" for number in range(count)]
    least = int(ROWS * SHARE / SYMBOLS)
    return pd.DataFrame({"name": names, "low": low, "high": low + SHARE, "least": least})


def write_events(directory: Path) -> None:
    """Write the files; those of the last are late enough to close all windows before."""
    chance = np.random.default_rng(2)
    for number in range(BATCHES):
        seconds = np.sort(chance.random(ROWS)) * 60 + 60 * number
        table = pa.table(
            {
                "symbol": chance.integers(0, SYMBOLS, ROWS),
                "price": chance.random(ROWS),
                "volume": chance.integers(0, 1000, ROWS),
                "time": pa.array((seconds * 1e6).astype(np.int64), pa.timestamp("us", "UTC")),
            }
        )
        pq.write_table(table, directory / f"{number}.parquet")


def eddyline_seconds(setup: Setup, sink: Sink = written) -> float:
    """Return how long standing queries take for all files but the first."""
    with (
        tempfile.TemporaryDirectory() as state,
        StandingQueries(setup.spark, streams={"events": setup.stream()}, state=state) as them,
    ):
        them.add_many(ALERT, setup.rules)
        them.start(lambda results, _: sink(results), availableNow=True)
        them.await_termination()
        took = [row["seconds"] for row in them.batches().collect()]
    return float(np.sum(took[1:]))


def spark_seconds(setup: Setup, rules: DataFrame, sink: Sink = written) -> float:
    """Return the same of a join with the rules, grouped by rule."""
    took: list[float] = []

    def run(alerts: DataFrame, _: int) -> None:
        started = time.perf_counter()
        sink(alerts)
        took.append(time.perf_counter() - started)

    within = F.col("price").between(F.col("low"), F.col("high"))
    windows = F.window("time", "60 seconds", "20 seconds")
    grouped = setup.stream().join(F.broadcast(rules), within).groupBy("name", "symbol", windows)
    counted = grouped.agg(
        F.count("*").alias("n"), F.avg("volume").alias("mean"), F.first("least").alias("least")
    )
    alerts = counted.where("n >= least").selectExpr(
        "name AS query", "symbol", "window.start AS began", "n", "mean"
    )
    with tempfile.TemporaryDirectory() as checkpoint, stream_settings(setup.spark, 2):
        writer = alerts.writeStream.foreachBatch(run).option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
    return float(np.sum(took[1:]))


def check(setup: Setup, rules: DataFrame) -> int:
    """Compare the rows of both, and return how many there are."""
    ours: list[pd.DataFrame] = []
    theirs: list[pd.DataFrame] = []
    eddyline_seconds(setup, lambda alerts: ours.append(alerts.toPandas()))
    spark_seconds(setup, rules, lambda alerts: theirs.append(alerts.toPandas()))
    keys = COLUMNS[:3]
    found, wanted = (
        pd.concat(parts)[COLUMNS].sort_values(keys, ignore_index=True) for parts in (ours, theirs)
    )
    pd.testing.assert_frame_equal(found, wanted)
    return len(wanted)


def main(arguments: Sequence[str]) -> int:
    """Measure 100 and 1,000 rules."""
    parser = argparse.ArgumentParser(prog="aggregates", description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rules", type=int, nargs="*", default=[100, 1_000])
    options = parser.parse_args(arguments)
    spark = start()
    with tempfile.TemporaryDirectory() as name:
        write_events(Path(name))
        for count in options.rules:
            setup = Setup(spark, Path(name), make_rules(count))
            rules = spark.createDataFrame(setup.rules).cache()
            results = check(setup, rules)
            contestants = {
                "eddyline": partial(eddyline_seconds, setup),
                "join and groupBy": partial(spark_seconds, setup, rules),
            }
            report.show(table_of(count, results, in_turns(contestants, options.turns)))
    return 0


def table_of(count: int, results: int, took: dict[str, list[float]]) -> Table:
    """Return what was measured as a table."""
    table = Table(
        title=f"{count:,} rules on windows, {ROWS:,} events a micro-batch, {results:,} alerts"
    )
    for heading in ("", "million events/s", "Eddyline is faster by"):
        table.add_column(heading, justify="left" if not heading else "right")
    own = took["eddyline"]
    for name, seconds in took.items():
        rate = Spread.of(ROWS * (BATCHES - 1) / 1e6 / each for each in seconds)
        ratio = Spread.of(other / mine for mine, other in zip(own, seconds, strict=True))
        table.add_row(name, f"{rate.median:.3f} ({rate.least:.3f}-{rate.greatest:.3f})", str(ratio))
    return table
