"""``python -m bench backfill``: what a history costs, and what looking back at it takes.

Events are replayed from files, a file a micro-batch, to rules on one stream: without a history, and
with one. Then as many rules again are added that look back at all of it, while further events come:
how long until they have seen it, and how long micro-batches take meanwhile.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from bench.against_plain import start
from bench.standing.rules import make_rules
from eddyline.standing.sinks import Batch
from eddyline.standing.standing_queries import StandingQueries

SCHEMA: Final = "symbol bigint, price double, volume bigint, time timestamp"

RULE: Final = (
    "SELECT symbol, price, volume FROM events "
    "WHERE price BETWEEN :low AND :high AND volume BETWEEN :few AND :many"
)

COLD: Final = 3
"""Micro-batches that are not counted, the first ones."""


class Replay:
    """A stream of files, of a second of events each."""

    def __init__(self, spark: SparkSession, directory: Path, rows: int) -> None:
        directory.mkdir()
        self._directory = directory
        self._rows = rows
        self._written = 0
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        self.stream = reader.parquet(str(directory)).withWatermark("time", "10 seconds")

    def give(self, files: int) -> None:
        """Write further files."""
        for number in range(self._written, self._written + files):
            chance = np.random.default_rng(number)
            times = 1_000_000 * number + chance.integers(0, 1_000_000, self._rows)
            columns = {
                "symbol": chance.integers(0, 1000, self._rows),
                "price": chance.random(self._rows) * 1000,
                "volume": chance.integers(0, 1000, self._rows),
                "time": pa.array(times, pa.timestamp("us", tz="UTC")),
            }
            hidden = self._directory / f".{number}"
            pq.write_table(pa.table(columns), hidden)
            hidden.rename(self._directory / f"{number:05}.parquet")
        self._written += files


def count(results: DataFrame, _: Batch) -> None:
    """Look at all results and keep none."""
    results.write.format("noop").mode("overwrite").save()


def seconds(queries: StandingQueries) -> list[float]:
    """Return what the micro-batches with events took; without a job of Spark's to ask for it."""
    rows = queries._introspection.batches().to_pylist()  # noqa: SLF001
    own = [row for row in rows if row["job"] == "select events" and row["rows_in"]]
    return [row["seconds"] for row in sorted(own, key=lambda row: row["batch"])]


def all_done(queries: StandingQueries) -> bool:
    """Tell whether all rules that look back have."""
    running = queries._registry.running()  # noqa: SLF001
    table = queries._introspection.queries(running, ())  # noqa: SLF001
    return set(table["backfill"].to_pylist()) <= {None, "done"}


def run(
    spark: SparkSession,
    directory: Path,
    rules: pd.DataFrame,
    rows: int,
    files: int,
    history: str | None,
) -> None:
    """Run one of both, and print what it took."""
    replay = Replay(spark, directory / f"events {history}", rows)
    replay.give(files)
    queries = StandingQueries(
        spark,
        streams={"events": replay.stream},
        state=directory / f"state {history}",
        history=history,
    )
    with queries:
        queries.add_many(RULE, rules)
        queries.start(count)
        wait_for(queries, files)
        alone = seconds(queries)[COLD:]
        said = "with a history" if history else "without a history"
        print(f"{said}: {median(alone):.3f} s a micro-batch of {rows:,} events", flush=True)
        if not history:
            return
        began = time.perf_counter()
        queries.add_many(
            RULE, rules.assign(name=[f"new {name}" for name in rules["name"]]), backfill="1 day"
        )
        given = files
        while not all_done(queries):
            replay.give(1)
            given += 1
            wait_for(queries, given)
        took = time.perf_counter() - began
        meanwhile = seconds(queries)[files:]
        old = queries.batches().where("job LIKE '%backfill%'").collect()
        events = sum(row["rows_in"] for row in old)
        print(
            f"{len(rules):,} rules looked back at {events:,} events in {took:.1f} s, "
            f"{sum(row['seconds'] for row in old):.1f} s of them at work in {len(old)} parts; "
            f"{len(meanwhile)} micro-batches meanwhile took {median(meanwhile):.3f} s, the first "
            f"{meanwhile[0]:.3f}, the others at most {max(meanwhile[1:], default=0):.3f}"
        )


def wait_for(queries: StandingQueries, batches: int) -> None:
    """Wait until so many micro-batches with events are done."""
    while len(seconds(queries)) < batches:
        time.sleep(0.02)


def main(arguments: Sequence[str]) -> int:
    """Run the experiment."""
    parser = argparse.ArgumentParser(prog="backfill", description=__doc__)
    parser.add_argument("--rules", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=40)
    options = parser.parse_args(arguments)
    rules = make_rules(options.rules)
    with tempfile.TemporaryDirectory() as temporary, start() as spark:
        for history in (None, "1 day"):
            run(spark, Path(temporary), rules, options.rows, options.files, history)
    return 0
