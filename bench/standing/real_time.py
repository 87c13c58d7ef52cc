"""``python -m bench real-time``: a prototype of grouped selections in Spark's real-time mode.

Real-time mode runs no Python in the plan. Rules with two ranges are cells of a grid here, one row
for each cell that a rule touches; an event is in one cell, so that a broadcast hash join finds the
few rules which may want it, and a filter those that do. Events come from Spark's own source in
memory, ``--rate`` a second; latency is from the time that an event is due to the time that the plan
computes its results. The same plan runs in micro-batches, and so does a broadcast join with the
rules as they are, which real-time mode does not admit. Spark 4.1 or later.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from rich.table import Table

from bench import report
from bench.against_plain import start
from eddyline.standing.stream_settings import stream_settings

BEFORE: Final = 8.0
"""Seconds before the first event: until the plan runs."""

AFTER: Final = 6.0
"""Seconds after the last one."""

BEGINNING: Final = 1 / 3
"""The part of the time that does not count."""

PAUSE: Final = 0.005
"""Seconds between two additions of events."""

WITHIN: Final = "price BETWEEN low AND high AND volume BETWEEN few AND many"

_NUMBER: Final = "pmod(xxhash64(value, {}), 1000000) / 1000000D"
"""A number below 1 that an event has, by its own."""


MODES: Final = (
    ("real-time, join by cell", True, True),
    ("micro-batches, join by cell", False, True),
    ("micro-batches, join with the rules", False, False),
)
"""What is measured: whether in real-time mode, and by cell."""


def make_rules(count: int) -> pd.DataFrame:
    """Return rules with two ranges each; an event belongs to one of them on average."""
    side = 1 / count**0.5
    chance = np.random.default_rng(1)
    low, few = (chance.random(count) * (1 - side) for _ in range(2))
    names = [f"rule-{number}" for number in range(count)]
    return pd.DataFrame(
        {"name": names, "low": low, "high": low + side, "few": few, "many": few + side}
    )


def cells_of(rules: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return a row for each cell that a rule touches, and how many cells a side has."""
    side = max(int(len(rules) ** 0.5), 1)
    first, last = (
        np.minimum((rules[list(names)].to_numpy() * side).astype(int), side - 1)
        for names in (("low", "few"), ("high", "many"))
    )
    cells = [
        (price * side + volume, rule)
        for rule in range(len(rules))
        for price in range(first[rule, 0], last[rule, 0] + 1)
        for volume in range(first[rule, 1], last[rule, 1] + 1)
    ]
    return pd.DataFrame(cells, columns=["cell", "rule"]).join(rules, on="rule"), side


class _Times:
    """A sink in Python that writes down when the results of an event were computed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def open(self, _partition: int, _epoch: int) -> bool:
        self._file = (self._directory / uuid.uuid4().hex).open("w", buffering=1)
        return True

    def process(self, row: Row) -> None:
        self._file.write(f"{row['value']} {row['computed']}\n")  # a batch may end by being killed

    def close(self, _error: Exception | None) -> None:
        self._file.close()


def results(events: DataFrame, rules: pd.DataFrame, *, by_cell: bool) -> DataFrame:
    """Return the results of rules, with the time at which each was computed."""
    spark = events.sparkSession
    numbered = events.select(
        "value", *(F.expr(_NUMBER.format(n)).alias(n_) for n, n_ in ((1, "price"), (2, "volume")))
    )
    within = F.expr(WITHIN)
    if by_cell:
        cells, side = cells_of(rules)
        place = f"CAST(price * {side} AS BIGINT) * {side} + CAST(volume * {side} AS BIGINT)"
        numbered = numbered.withColumn("at", F.expr(place))
        rules, within = cells.drop(columns="rule"), (F.col("at") == F.col("cell")) & within
    joined = numbered.join(F.broadcast(spark.createDataFrame(rules)), within)
    now = F.expr(
        "reflect('java.lang.System', 'currentTimeMillis')"
    )  # for each row, and no constant
    return joined.select("value", "name", now.alias("computed"))


def latencies(
    spark: SparkSession,
    rules: pd.DataFrame,
    options: argparse.Namespace,
    *,
    by_cell: bool,
    real_time: bool,
) -> npt.NDArray[np.float64]:
    """Return the seconds from events to their results, without those of the beginning."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark's source in memory has no other way
    sources = jvm.org.apache.spark.sql.execution.streaming.sources
    encoder = jvm.org.apache.spark.sql.Encoders.INT()
    source = sources.LowLatencyMemoryStream.singlePartition(spark._jsparkSession, encoder)  # noqa: SLF001
    numbers = jvm.scala.collection.immutable.Range
    found = results(ClassicDataFrame(source.toDF(), spark), rules, by_cell=by_cell)
    with (
        tempfile.TemporaryDirectory() as written,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint,
        stream_settings(spark, 1),
    ):
        writer = found.writeStream.foreach(_Times(Path(written))).outputMode("update")
        writer = writer.option("checkpointLocation", checkpoint)
        if real_time:
            writer = writer.trigger(realTime=options.batch)  # type: ignore[call-overload]  # PySpark's types lack it
        query = writer.start()
        time.sleep(BEFORE)
        began, sent = time.time(), 0
        while (passed := time.time() - began) < options.seconds:
            due = int(passed * options.rate)
            if due > sent:
                source.addData(numbers.Exclusive(sent, due, 1))
                sent = due
            time.sleep(PAUSE)
        time.sleep(AFTER)
        query.stop()
        lines = [line for path in Path(written).iterdir() for line in path.read_text().split("\n")]
    rows = np.array([line.split() for line in lines if line], np.float64).reshape(-1, 2)
    rows[:, 1] /= 1e3
    counted = rows[rows[:, 0] > options.rate * options.seconds * BEGINNING]
    took: npt.NDArray[np.float64] = counted[:, 1] - began - counted[:, 0] / options.rate
    return took


def main(arguments: Sequence[str]) -> int:
    """Run all four, and print percentiles of latency."""
    parser = argparse.ArgumentParser(prog="real-time", description=__doc__)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--rules", type=int, default=10_000)
    parser.add_argument(
        "--batch", default="5 minutes", help="how long a batch of real-time mode is"
    )
    options = parser.parse_args(arguments)
    spark = start(2)
    rules = make_rules(options.rules)
    table = Table(title=f"{options.rules:,} rules, {options.rate:,} events/s")
    for heading in ("", "results", "p50, ms", "p99, ms", "most, ms"):
        table.add_column(heading, justify="right" if heading else "left")
    for mode, real_time, by_cell in MODES:
        found = latencies(spark, rules, options, by_cell=by_cell, real_time=real_time)
        shown = ["-"] * 3
        if len(found):
            shown = [f"{1e3 * n:,.0f}" for n in (*np.percentile(found, [50, 99]), found.max())]
        table.add_row(mode, f"{len(found):,}", *shown)
    report.show(table)
    return 0
