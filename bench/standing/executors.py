"""``python -m bench executors``: standing queries on one executor of a core, and on two.

Spark's ``local-cluster``, whose executors are processes of their own. Rules on one stream, and the
same stream joined with itself by key, as jobs of their own; in both, events are replayed from files
with ``availableNow``, two files a micro-batch.

A task keeps two cores busy: Spark decodes the next rows while Python judges these. An executor "of
one core" thus takes two where it can, and on a machine with two cores a second executor has nothing
left. So each executor, with its Python, is bound to one core of the machine here, as if it were a
machine of its own; ``--free`` leaves them as they are. The driver takes its part of both cores.
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
from typing import Final, NamedTuple

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


def pin_executors() -> None:
    """Bind each executor of this machine, and the Python that it will start, to a core.

    Linux only. A process started later inherits the core of the thread that starts it.
    """
    cores = sorted(os.sched_getaffinity(0))
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_text().split("\0")
            if not any("CoarseGrainedExecutorBackend" in word for word in words):
                continue
            number = int(words[words.index("--executor-id") + 1])
            for thread in (directory / "task").iterdir():
                os.sched_setaffinity(int(thread.name), {cores[number % len(cores)]})
        except (OSError, ValueError):  # a process, or a thread, that has ended meanwhile
            continue


class Run(NamedTuple):
    """One measurement: queries of a kind, over the files of a directory."""

    executors: int
    kind: str
    queries: int
    files: str
    pinned: bool


def measured(run: Run) -> float:
    """Return the mean seconds of a micro-batch."""
    config = {
        "spark.executor.memory": f"{MEMORY}m",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # no job begins with one of two
    }
    spark = eddyline.session(master=f"local-cluster[{run.executors},1,{MEMORY}]", config=config)
    if run.pinned:
        pin_executors()
    seconds: list[float] = []
    for _ in range(2):  # the first warms up
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2)
        stream = reader.parquet(run.files).withWatermark("time", "1 second")
        with (
            tempfile.TemporaryDirectory() as state,
            StandingQueries(spark, streams={"events": stream}, state=state) as queries,
        ):
            queries.add_many(RULE if run.kind == "rules" else PAIRS, make_rules(run.queries))
            queries.start(lambda results, _: written(results), availableNow=True)
            queries.await_termination()
            rows = queries.batches().orderBy("batch").collect()
            seconds = [row["seconds"] for row in rows if row["rows_in"]][1:BATCHES]
    return float(np.mean(seconds))


def in_a_process(run: Run) -> float:
    """Return the same, of a process of its own."""
    command = [sys.executable, "-m", "bench.standing.executors", "--measure"]
    command.append(json.dumps(run))
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(  # noqa: S603 - this very module
        command, capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return float(done.stdout.splitlines()[-1])


def main(arguments: Sequence[str]) -> int:
    """Measure, compare, and print."""
    parser = argparse.ArgumentParser(prog="executors", description=__doc__)
    parser.add_argument("--rules", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=500_000, help="in a file")
    parser.add_argument("--joins", type=int, default=1_000, help="rules that join")
    parser.add_argument("--joined-rows", type=int, default=50_000, help="in a file, for joins")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", choices=("rules", "joins"))
    parser.add_argument("--free", action="store_true", help="do not bind executors to cores")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        print(measured(Run(*json.loads(options.measure))))
        return 0
    sizes = {
        "rules": (options.rules, options.rows),
        "joins": (options.joins, options.joined_rows),
    }
    where = "executors where the machine puts them" if options.free else "a core for each executor"
    table = Table(title=f"Seconds of a micro-batch; {where}")
    headings = ("", "queries", "events", "one executor", "two", "throughput of two over one")
    for heading in headings:
        table.add_column(heading, justify="left" if not heading else "right")
    for kind in (options.only,) if options.only else tuple(sizes):
        count, rows = sizes[kind]
        took: dict[int, list[float]] = {1: [], 2: []}
        with tempfile.TemporaryDirectory() as files:
            write_events(Path(files), rows)
            for _ in range(options.turns):
                for executors, own in took.items():
                    own.append(in_a_process(Run(executors, kind, count, files, not options.free)))
        ratio = Spread.of(one / two for one, two in zip(took[1], took[2], strict=True))
        seconds = (str(Spread.of(own)) for own in took.values())
        table.add_row(kind, f"{count:,}", f"{2 * rows:,}", *seconds, str(ratio))
    report.show(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
