"""``python -m bench executors``: standing queries on one executor of a core, and on two.

Spark's ``local-cluster``, whose executors are processes of their own. Rules on one stream, and the
same stream joined with itself by key, as jobs of their own; in both, events are replayed from files
with ``availableNow``, two files a micro-batch. The driver has no core to itself on a machine with
two.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

import eddyline
from bench import report
from bench.standing.rules import RULE, make_rules, written
from bench.turns import Spread
from eddyline.standing.standing_queries import StandingQueries

SCHEMA: Final = "symbol bigint, price double, volume bigint, time timestamp"

BATCHES: Final = 6
"""Micro-batches, the first of which is not counted."""

PAIRS: Final = (
    "SELECT a.symbol, a.price, b.price AS later FROM events a JOIN events b "
    "ON a.symbol = b.symbol AND b.time BETWEEN a.time AND a.time + INTERVAL 5 SECONDS "
    "WHERE a.price BETWEEN :low AND :high AND b.volume BETWEEN :few AND :many"
)

MEMORY: Final = 1536
"""Of an executor, in MB."""


def write_events(directory: Path, rows: int) -> None:
    """Write two files for each micro-batch, of a minute each."""
    chance = np.random.default_rng(2)
    for number in range(2 * BATCHES):
        seconds = np.sort(chance.random(rows)) * 60 + 60 * (number // 2)
        table = pa.table(
            {
                "symbol": chance.integers(0, 10_000, rows),
                "price": chance.random(rows) * 1000,
                "volume": chance.integers(0, 1000, rows),
                "time": pa.array((seconds * 1e6).astype(np.int64), pa.timestamp("us", "UTC")),
            }
        )
        pq.write_table(table, directory / f"{number:02}.parquet")


def measured(executors: int, kind: str, count: int, files: str) -> float:
    """Return the mean seconds of a micro-batch, in a cluster of so many executors."""
    config = {
        "spark.executor.memory": f"{MEMORY}m",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # no job begins with one of two
    }
    spark = eddyline.session(master=f"local-cluster[{executors},1,{MEMORY}]", config=config)
    seconds: list[float] = []
    for _ in range(2):  # the first warms up
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2)
        stream = reader.parquet(files).withWatermark("time", "1 second")
        with (
            tempfile.TemporaryDirectory() as state,
            StandingQueries(spark, streams={"events": stream}, state=state) as queries,
        ):
            queries.add_many(RULE if kind == "rules" else PAIRS, make_rules(count))
            queries.start(lambda results, _: written(results), availableNow=True)
            queries.await_termination()
            rows = queries.batches().orderBy("batch").collect()
            seconds = [row["seconds"] for row in rows if row["rows_in"]][1:BATCHES]
    return float(np.mean(seconds))


def in_a_process(executors: int, kind: str, count: int, files: str) -> float:
    """Return the same, of a process of its own."""
    command = [sys.executable, "-m", "bench.standing.executors", "--measure"]
    command.append(json.dumps([executors, kind, count, files]))
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
    run = subprocess.run(  # noqa: S603 - this very module
        command, capture_output=True, text=True, env=environment, check=False
    )
    if run.returncode:
        raise RuntimeError(run.stderr[-2000:])
    return float(run.stdout.splitlines()[-1])


def main(arguments: Sequence[str]) -> int:
    """Measure, compare, and print."""
    parser = argparse.ArgumentParser(prog="executors", description=__doc__)
    parser.add_argument("--rules", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=100_000, help="in a file")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        print(measured(*json.loads(options.measure)))
        return 0
    table = Table(title=f"{options.rules:,} rules, {2 * options.rows:,} events a micro-batch")
    for heading in ("", "one executor, s", "two, s", "throughput of two over one"):
        table.add_column(heading, justify="left" if not heading else "right")
    with tempfile.TemporaryDirectory() as files:
        write_events(Path(files), options.rows)
        for kind in ("rules", "joins"):
            took: dict[int, list[float]] = {1: [], 2: []}
            for _ in range(options.turns):
                for executors, own in took.items():
                    own.append(in_a_process(executors, kind, options.rules, files))
            ratio = Spread.of(one / two for one, two in zip(took[1], took[2], strict=True))
            table.add_row(kind, str(Spread.of(took[1])), str(Spread.of(took[2])), str(ratio))
    report.show(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
