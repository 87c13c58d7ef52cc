"""``python -m bench windows``: 256 queries that join two streams within windows, as they come.

Two rate sources of 25,000 events a second each; each query joins them by key within a second, and
selects a range of one of them. Latency is from an event's time to the end of its micro-batch's
sink. Plain Spark runs as many streaming queries as it can be given, 16, each with its own join;
what 256 would take is said by the ratio of 16.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.table import Table

from bench import report
from bench.against_plain import start
from bench.standing.rules import written
from eddyline.standing.standing_queries import StandingQueries
from eddyline.standing.stream_settings import stream_settings

KEYS: Final = 50_000

JOIN: Final = """SELECT t.key, q.price - t.price AS difference FROM trades t JOIN quotes q
    ON t.key = q.key AND q.time BETWEEN t.time - INTERVAL 1 SECOND AND t.time + INTERVAL 1 SECOND
    WHERE t.price BETWEEN :low AND :high AND q.price < 500"""

CORES: Final = 2


def stream(spark: SparkSession, rate: int, factor: int) -> DataFrame:
    """Return a stream of so many events a second."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", rate)
    return (
        rows.option("numPartitions", CORES)
        .load()
        .selectExpr(
            "timestamp AS time",
            f"value * {factor} % {KEYS} AS key",
            "CAST(value % 1000 AS DOUBLE) AS price",
        )
        .withWatermark("time", "1 second")
    )


def ranges(count: int) -> pd.DataFrame:
    """Return the parameters of so many queries: each price is in the ranges of four."""
    low = np.arange(count) * 1000 / count
    names = [f"query-{number}" for number in range(count)]
    return pd.DataFrame({"name": names, "low": low, "high": low + 4000 / count})


def latencies(query: StreamingQuery, skipped: int) -> list[float]:
    """Return for each micro-batch the seconds from its first event to its end."""
    found = []
    for progress in query.recentProgress[skipped:]:
        if progress["numInputRows"] and "min" in progress["eventTime"]:
            first = pd.Timestamp(progress["eventTime"]["min"])
            began = pd.Timestamp(progress["timestamp"])
            took = progress["durationMs"]["triggerExecution"] / 1000
            found.append((began - first).total_seconds() + took)
    return found


def shared(spark: SparkSession, rate: int, count: int, seconds: float) -> dict[str, object]:
    """Run standing queries, and return how they fared."""
    streams = {"trades": stream(spark, rate, 7), "quotes": stream(spark, rate, 11)}
    with (
        tempfile.TemporaryDirectory() as state,
        StandingQueries(spark, streams=streams, state=state) as queries,
    ):
        queries.add_many(JOIN, ranges(count))
        queries.start(lambda results, _: written(results))
        time.sleep(seconds)
        (job,) = queries._jobs.values()  # noqa: SLF001 - Spark's own figures
        return summary([job.query], f"{count} standing queries", rate, seconds)


def apart(spark: SparkSession, rate: int, count: int, seconds: float) -> dict[str, object]:
    """Run streaming queries of plain Spark, one for each of the first of 256 queries."""
    running = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for number, query in enumerate(ranges(256).head(count).itertuples()):
            trades, quotes = stream(spark, rate, 7), stream(spark, rate, 11)
            trades.createOrReplaceTempView("trades")
            quotes.createOrReplaceTempView("quotes")
            sql = JOIN.replace(":low", str(query.low)).replace(":high", str(query.high))
            writer = spark.sql(sql).writeStream.format("noop")
            writer = writer.option("checkpointLocation", f"{folder}/{number}")
            with stream_settings(spark, CORES):
                running.append(writer.start())
        try:
            time.sleep(seconds)
            return summary(running, f"{count} streaming queries", rate, seconds)
        finally:
            for one in running:
                one.stop()


def summary(
    running: Sequence[StreamingQuery], what: str, rate: int, seconds: float
) -> dict[str, object]:
    """Return the events taken in a second, and percentiles of latency, after the beginning."""
    times = [each for query in running for each in latencies(query, 0)]
    later = [t for query in running for t in latencies(query, len(query.recentProgress) // 3)]
    done = [sum(progress["numInputRows"] for progress in query.recentProgress) for query in running]
    offered = 2 * rate * seconds
    p50, p99 = np.percentile(later or times or [float("inf")], [50, 99])
    return {
        "": what,
        "taken of what was offered": f"{min(done) / offered:.0%}",
        "p50 latency, s": f"{p50:.2f}",
        "p99 latency, s": f"{p99:.2f}",
        "micro-batches": str(len(times)),
    }


def main(arguments: Sequence[str]) -> int:
    """Run both, and print how they fared."""
    parser = argparse.ArgumentParser(prog="windows", description=__doc__)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--rate", type=int, default=25_000)
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--apart", type=int, nargs="*", default=[1, 16])
    options = parser.parse_args(arguments)
    spark = start(CORES)
    # Spark forgets what it says of micro-batches: after 100 of them, which is half a minute.
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", 100_000)
    rows = [shared(spark, options.rate, options.queries, options.seconds)]
    rows += [apart(spark, options.rate, count, options.seconds) for count in options.apart]
    table = Table(title=f"2 x {options.rate:,} events/s, {options.seconds:.0f} s each")
    for heading in rows[0]:
        table.add_column(heading, justify="right" if heading else "left")
    for row in rows:
        table.add_row(*map(str, row.values()))
    report.show(table)
    return 0
