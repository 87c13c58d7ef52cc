"""``python -m bench latency``: how long after an event the results of 1,000 rules are there.

A process writes events steadily, 20,000 a second in ten files; each belongs to one rule on average.
Latency is from the time that an event is made to the time that the sink has its results, for all
results after the beginning. Plain Spark joins the events with a broadcast table of rules.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
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
from bench.standing.rules import make_rules
from eddyline.standing.standing_queries import StandingQueries
from eddyline.standing.stream_settings import stream_settings

SCHEMA: Final = "symbol bigint, price double, volume bigint, made bigint"

RULE: Final = (
    "SELECT symbol, made FROM events "
    "WHERE price BETWEEN :low AND :high AND volume BETWEEN :few AND :many"
)

FILES: Final = 10
"""Files a second."""

CORES: Final = 2

BEGINNING: Final = 1 / 3
"""The part of the time that does not count: processes start, and code is compiled."""


def write_events(directory: Path, rate: int) -> None:
    """Write files of events, ``rate`` a second, until somebody ends the process."""
    chance = np.random.default_rng(2)
    rows, number = rate // FILES, 0
    began = time.time()
    while True:
        number += 1
        until = began + number / FILES
        time.sleep(max(until - time.time(), 0))
        table = pa.table(
            {
                "symbol": chance.integers(0, 1000, rows),
                "price": chance.random(rows) * 1000,
                "volume": chance.integers(0, 1000, rows),
                "made": (1e6 * (until - (1 - np.arange(rows) / rows) / FILES)).astype(np.int64),
            }
        )
        written = directory / f".{number}"
        pq.write_table(table, written)
        written.rename(directory / f"{number:08}.parquet")


class Latencies:
    """A sink that remembers the latency of each result, in seconds, and when it came."""

    def __init__(self) -> None:
        self._parts: list[tuple[float, np.ndarray]] = []

    def __call__(self, results: DataFrame, _: object) -> None:
        """Take the results of a micro-batch."""
        made = results.select("made").toArrow()["made"].to_numpy()
        now = time.time()
        self._parts.append((now, now - made / 1e6))

    def after(self, since: float) -> np.ndarray:
        """Return those of results that came after a time."""
        return np.concatenate([[], *(part for came, part in self._parts if came > since)])

    def batches(self, since: float) -> int:
        """Return the number of micro-batches after a time."""
        return sum(came > since for came, _ in self._parts)


def stream(spark: SparkSession, directory: Path) -> DataFrame:
    """Return the events as a stream."""
    return spark.readStream.schema(SCHEMA).parquet(str(directory))


def shared(spark: SparkSession, directory: Path, rules: pd.DataFrame, seconds: float) -> Latencies:
    """Run standing queries for a time."""
    sink = Latencies()
    with (
        tempfile.TemporaryDirectory() as state,
        StandingQueries(
            spark, streams={"events": stream(spark, directory)}, state=state
        ) as queries,
    ):
        queries.add_many(RULE, rules)
        queries.start(sink)
        time.sleep(seconds)
    return sink


def plain(spark: SparkSession, directory: Path, rules: pd.DataFrame, seconds: float) -> Latencies:
    """Run one streaming query of plain Spark for a time."""
    sink = Latencies()
    table = F.broadcast(spark.createDataFrame(rules))
    within = F.expr("price BETWEEN low AND high AND volume BETWEEN few AND many")
    results = stream(spark, directory).join(table, within).select("name", "symbol", "made")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        writer = results.writeStream.foreachBatch(sink).option("checkpointLocation", folder)
        with stream_settings(spark, CORES):
            query = writer.start()
        time.sleep(seconds)
        query.stop()
    return sink


def main(arguments: Sequence[str]) -> int:
    """Run both, and print percentiles of latency."""
    parser = argparse.ArgumentParser(prog="latency", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--rules", type=int, default=1_000)
    parser.add_argument("--events", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.events:
        write_events(options.events, options.rate)
    spark = start(CORES)
    rules = make_rules(options.rules)
    title = f"{options.rules:,} rules, {options.rate:,} events/s, {options.seconds:.0f} s each"
    table = Table(title=title)
    for heading in ("", "results/s", "p50, s", "p99, s", "micro-batches"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, run in {"standing queries": shared, "plain Spark": plain}.items():
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            command = [sys.executable, "-m", "bench", "latency", "--events", folder]
            with subprocess.Popen([*command, "--rate", str(options.rate)]) as writing:  # noqa: S603 - this very project
                began = time.time()
                try:
                    sink = run(spark, Path(folder), rules, options.seconds)
                finally:
                    writing.kill()
        counted = options.seconds * (1 - BEGINNING)
        since = began + options.seconds * BEGINNING
        found = sink.after(since)
        p50, p99 = np.percentile(found, [50, 99]) if len(found) else (np.inf, np.inf)
        rate = f"{len(found) / counted:,.0f}"
        table.add_row(name, rate, f"{p50:.2f}", f"{p99:.2f}", str(sink.batches(since)))
    report.show(table)
    return 0
