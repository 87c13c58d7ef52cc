"""``python -m bench rules``: alert rules on one stream, beside what people write by hand.

Events are replayed from files, a file a micro-batch, with ``availableNow``; each rule has two
ranges and matches one event of a thousand. The opponents: a broadcast join with a table of rules, a
persisted micro-batch with a filter for each rule, and one array of CASE expressions. Of the last
two only some rules are run where all would take minutes; they are then said to be extrapolated, to
their own favour: as if twice the rules took twice the time of the rules alone.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from rich.table import Table

from bench import report
from bench.against_plain import start
from bench.turns import Spread, in_turns
from eddyline.standing.standing_queries import StandingQueries

SCHEMA: Final = "symbol bigint, price double, volume bigint"

RULE: Final = (
    "SELECT symbol, price, volume FROM events "
    "WHERE price BETWEEN :low AND :high AND volume BETWEEN :few AND :many"
)

WIDTH: Final = 1000 / 1000**0.5
"""Of a range among 1,000: of two such ranges one event in a thousand is in both."""

ROWS: Final = {1_000: 200_000, 10_000: 100_000}
"""Events of a micro-batch, by the number of rules."""

BATCHES: Final = 4
"""Files; the first of them is not counted."""

SOME_RULES: Final = {"filters": 50, "array": 200}
"""Rules that are run of contestants that cannot run all of them in reasonable time."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The files, and the rules."""

    spark: SparkSession
    files: Path
    rules: pd.DataFrame
    rows: int

    def stream(self) -> DataFrame:
        """Return the stream of the files."""
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.files))


def make_rules(count: int, width: float = WIDTH) -> pd.DataFrame:
    """Return rules, each with two ranges somewhere, of a ``width`` among 1,000."""
    chance = np.random.default_rng(1)
    low, few = chance.random((2, count)) * (1000 - width)
    names = [f"rule-{number}" for number in range(count)]
    few = few.astype(np.int64)
    many = few + int(width)
    return pd.DataFrame({"name": names, "low": low, "high": low + width, "few": few, "many": many})


def write_events(directory: Path, rows: int) -> None:
    """Write the files."""
    chance = np.random.default_rng(2)
    for number in range(BATCHES):
        table = pa.table(
            {
                "symbol": chance.integers(0, 1000, rows),
                "price": chance.random(rows) * 1000,
                "volume": chance.integers(0, 1000, rows),
            }
        )
        pq.write_table(table, directory / f"{number}.parquet")


def written(df: DataFrame) -> None:
    """Compute all rows, and throw them away."""
    df.write.format("noop").mode("overwrite").save()


def matches(rule: pd.Series) -> Column:
    """Return a rule as a condition."""
    price = F.col("price").between(rule.low, rule.high)
    return price & F.col("volume").between(int(rule.few), int(rule.many))


def broadcast(setup: Setup, rules: DataFrame) -> Callable[[DataFrame], DataFrame]:
    """Return the join of events with the rules' table."""
    low, high, few, many = (F.col(name) for name in ("low", "high", "few", "many"))
    within = F.col("price").between(low, high) & F.col("volume").between(few, many)
    del setup
    return lambda events: events.join(F.broadcast(rules), within).select(
        F.col("name").alias("query"), "symbol", "price", "volume"
    )


def one_array(setup: Setup) -> Callable[[DataFrame], DataFrame]:
    """Return the array of the names of all rules that match, exploded."""
    cases = [F.when(matches(rule), rule["name"]) for _, rule in setup.rules.iterrows()]
    names = F.explode(F.array_compact(F.array(*cases)))
    return lambda events: events.select(names.alias("query"), "symbol", "price", "volume")


def with_filters(setup: Setup) -> Callable[[DataFrame], list[DataFrame]]:
    """Return a filter for each rule, over a persisted batch."""
    rules = [rule for _, rule in setup.rules.iterrows()]
    return lambda events: [
        events.where(matches(rule)).select(
            F.lit(rule["name"]).alias("query"), "symbol", "price", "volume"
        )
        for rule in rules
    ]


def seconds_of(setup: Setup, each: Callable[[DataFrame], object]) -> float:
    """Return the mean seconds of a micro-batch, the first left out."""
    took: list[float] = []

    def run(events: DataFrame, _: int) -> None:
        started = time.perf_counter()
        each(events)
        took.append(time.perf_counter() - started)

    with tempfile.TemporaryDirectory() as checkpoint:
        writer = setup.stream().writeStream.foreachBatch(run)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
    return float(np.mean(took[1:]))


def eddyline_seconds(setup: Setup, sink: Callable[[DataFrame], object] = written) -> float:
    """Return the same of standing queries."""
    with (
        tempfile.TemporaryDirectory() as state,
        StandingQueries(setup.spark, streams={"events": setup.stream()}, state=state) as them,
    ):
        them.add_many(RULE, setup.rules)
        them.start(lambda results, _: sink(results), availableNow=True)
        them.await_termination()
        took = [row["seconds"] for row in them.batches().collect()]
    return float(np.mean(took[1:BATCHES]))


def check(setup: Setup) -> int:
    """Compare the rows of standing queries with those of the broadcast join; return how many."""
    found: list[pd.DataFrame] = []
    eddyline_seconds(setup, lambda results: found.append(results.toPandas()))
    rules = setup.spark.createDataFrame(setup.rules)
    events = setup.spark.read.schema(SCHEMA).parquet(str(setup.files))
    wanted = broadcast(setup, rules)(events).toPandas()
    columns = ["query", "symbol", "price", "volume"]
    ours = pd.concat(found)[columns].sort_values(columns, ignore_index=True)
    pd.testing.assert_frame_equal(ours, wanted[columns].sort_values(columns, ignore_index=True))
    return len(wanted)


def measure(spark: SparkSession, count: int, turns: int, directory: Path) -> Table:
    """Measure so many rules, and return the table."""
    files = directory / str(count)
    files.mkdir()
    rows = ROWS[count]
    write_events(files, rows)
    setup = Setup(spark, files, make_rules(count), rows)
    results = check(setup)
    rules = spark.createDataFrame(setup.rules).cache()
    rules.count()
    join = broadcast(setup, rules)
    contestants = {
        "eddyline": lambda: eddyline_seconds(setup),
        "broadcast join": lambda: seconds_of(setup, lambda events: written(join(events))),
    }
    took = in_turns(contestants, turns)
    table = Table(title=f"{count:,} rules, {rows:,} events a micro-batch, {results:,} results")
    for heading in ("", "million events/s", "Eddyline is faster by"):
        table.add_column(heading, justify="left" if not heading else "right")
    own = took["eddyline"]
    for name, seconds in took.items():
        rate = Spread.of(rows / 1e6 / each for each in seconds)
        ratio = Spread.of(other / mine for mine, other in zip(own, seconds, strict=True))
        table.add_row(name, f"{rate.median:.3f} ({rate.least:.3f}-{rate.greatest:.3f})", str(ratio))
    for name, estimate in estimates(setup, count).items():
        factor = estimate / float(np.median(own))
        table.add_row(f"{name} *", f"{rows / 1e6 / estimate:.4f}", f"{factor:.0f}")
    return table


def estimates(setup: Setup, count: int) -> dict[str, float]:
    """Return the seconds of a batch with all rules, as some of them let expect."""
    some = {
        what: Setup(setup.spark, setup.files, setup.rules.head(rules), setup.rows)
        for what, rules in SOME_RULES.items()
    }
    filters, array = with_filters(some["filters"]), one_array(some["array"])

    def run_filters(events: DataFrame) -> None:
        events.persist()
        for each in filters(events):
            written(each)
        events.unpersist()

    seconds = {
        "filters": seconds_of(some["filters"], run_filters),
        "array": seconds_of(some["array"], lambda events: written(array(events))),
    }
    return {what: took * count / SOME_RULES[what] for what, took in seconds.items()}


def main(arguments: Sequence[str]) -> int:
    """Measure 1,000 and 10,000 rules."""
    parser = argparse.ArgumentParser(prog="rules", description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rules", type=int, nargs="*", choices=list(ROWS), default=list(ROWS))
    options = parser.parse_args(arguments)
    spark = start()
    with tempfile.TemporaryDirectory() as name:
        for count in options.rules:
            report.show(measure(spark, count, options.turns, Path(name)))
    return 0
