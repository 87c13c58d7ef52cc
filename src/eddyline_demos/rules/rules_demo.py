"""The demo of standing queries from its beginning to its end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from rich.console import Console
from rich.live import Live

import eddyline
from eddyline.app.endings import RunError
from eddyline.app.file_errors import printing
from eddyline.app.interrupts import temporary_folder
from eddyline.app.spark_errors import spark_errors_explained
from eddyline.app.start import running_spark
from eddyline.app.terminal import chatter, results, show
from eddyline.standing.sinks import Batch
from eddyline_demos.rules.flights_and_rules import TEMPLATE, make_rules, write_stream
from eddyline_demos.rules.rules_display import BatchesSeen, introduction, outcome, picture

RULES: Final = 1_000
BATCHES: Final = 24
CHANGED: Final = 200
"""Rules that are dropped on the way, and as many that are added."""

CHANGE_AFTER: Final = 11
"""The micro-batch after which the rules change: half of them are over then."""

Row = tuple[str, str, int, str, str, int]


@dataclass
class Run:
    """What the sink has got so far."""

    rows: Counter[Row] = field(default_factory=Counter)
    by_rule: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    receiving: threading.Lock = field(default_factory=threading.Lock)

    def take(self, found: DataFrame) -> None:
        """Take the results of a micro-batch."""
        rows = [tuple(row) for row in found.collect()]
        with self.receiving:
            self.rows.update(rows)
            self.by_rule.update(row[0] for row in rows)
            self.batches += 1


def perform(sample: int | None) -> None:
    """Show everything; RunError if the rules have not found what a batch query finds."""
    console, out = chatter(), results()
    with temporary_folder("eddyline-demo-") as folder:
        with console.status("Writing the stream"):
            paths = write_stream(folder / "flights", BATCHES, sample)
            first = make_rules(RULES, 1, "rule")
            second = make_rules(CHANGED, 2, "new")
        with printing():
            show(out, introduction(RULES, CHANGED, BATCHES))
            out.print()
        with running_spark(console) as spark, spark_errors_explained():
            run = Run()
            seconds = _stream(spark, folder, (first, second), run, out)
            with console.status("Asking the same of all flights in a batch query"):
                wanted = _batch(spark, paths, first, second)
    if run.rows != wanted:
        raise RunError("the results differ. This is a defect of Eddyline; please report it")
    with printing():
        out.print()
        show(out, outcome(RULES + CHANGED, wanted.total(), seconds))


def _stream(
    spark: SparkSession,
    folder: Path,
    rules: tuple[pd.DataFrame, pd.DataFrame],
    run: Run,
    out: Console,
) -> float:
    """Run the rules over the stream; return the seconds from the first results on."""
    first, second = rules
    schema = spark.read.parquet(str(folder / "flights")).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    flights = reader.parquet(str(folder / "flights"))
    with eddyline.StandingQueries(
        spark, streams={"flights": flights}, state=folder / "state"
    ) as queries:
        queries.add_many(TEMPLATE, first)

        def sink(found: DataFrame, batch: Batch) -> None:
            run.take(found)
            if batch.number == CHANGE_AFTER:
                queries.drop(*first["name"].tail(CHANGED))
                queries.add_many(TEMPLATE, second)

        queries.start(sink, availableNow=True)
        began = time.monotonic()
        with (
            printing(),
            Live(console=out, auto_refresh=False) as live,
        ):
            done = False
            while not done:
                done = queries.await_termination(0.25)
                if out.is_terminal or done:
                    live.update(picture(_seen(queries, run, began)), refresh=True)
        return time.monotonic() - began


def _seen(queries: eddyline.StandingQueries, run: Run, began: float) -> BatchesSeen:
    with run.receiving:
        busiest = run.by_rule.most_common(5)
        found = run.rows.total()
    return BatchesSeen(
        progress=queries.progress(),
        standing=RULES,
        changed=queries.progress().batches > CHANGE_AFTER,
        found=found,
        busiest=busiest,
        seconds=time.monotonic() - began,
        batches=BATCHES,
    )


def _batch(
    spark: SparkSession, paths: list[Path], first: pd.DataFrame, second: pd.DataFrame
) -> Counter[Row]:
    """Return what plain Spark finds, for the micro-batches in which each rule stood."""
    change = CHANGE_AFTER + 1
    first = first.assign(since=0, until=BATCHES)
    first.loc[first.index[-CHANGED:], "until"] = change
    every = pd.concat([first, second.assign(since=change, until=BATCHES)])
    rules = spark.createDataFrame(every)
    parts = [
        spark.read.parquet(str(path)).withColumn("batch", F.lit(number))
        for number, path in enumerate(paths)
    ]
    flights = parts[0]
    for part in parts[1:]:
        flights = flights.unionAll(part)
    flights.createOrReplaceTempView("flights_by_batch")
    rules.createOrReplaceTempView("rules")
    found = spark.sql(
        """SELECT r.name, f.carrier, f.flight, f.origin, f.dest, f.dep_delay
           FROM flights_by_batch f JOIN rules r ON f.dest = r.dest AND f.origin = r.origin
           AND f.dep_delay BETWEEN r.late AND r.later
           AND f.batch >= r.since AND f.batch < r.until"""
    )
    return Counter(map(tuple, found.collect()))
