"""``python -m bench changes``: how long it takes to add queries while others run.

One query into 10,000, again and again: the time of the call, and whether the next micro-batch has
it. Then 100,000 at once: the time of the call, and of the first micro-batch with them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence

from rich.table import Table

from bench import report
from bench.against_plain import start
from bench.standing.rules import RULE, make_rules, written
from bench.turns import Spread
from eddyline.standing.sinks import Batch
from eddyline.standing.standing_queries import StandingQueries

ONE = "SELECT symbol, price, volume FROM events WHERE price BETWEEN {} AND {} AND volume > 990"


def main(arguments: Sequence[str]) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="changes", description=__doc__)
    parser.add_argument("--standing", type=int, default=10_000)
    parser.add_argument("--adds", type=int, default=20)
    parser.add_argument("--many", type=int, default=100_000)
    options = parser.parse_args(arguments)
    spark = start()
    events = (
        spark.readStream.format("rate")
        .option("rowsPerSecond", 1_000)
        .load()
        .selectExpr(
            "value % 1000 AS symbol",
            "CAST(value % 997 AS DOUBLE) AS price",
            "value % 1009 AS volume",
        )
    )
    table = Table(title=f"{options.standing:,} queries stand, 1,000 events a second")
    for heading in ("", "seconds"):
        table.add_column(heading, justify="right" if heading else "left")
    with (
        tempfile.TemporaryDirectory() as state,
        StandingQueries(spark, streams={"events": events}, state=state) as queries,
    ):
        started = time.perf_counter()
        queries.add_many(RULE, make_rules(options.standing))
        table.add_row(f"the first {options.standing:,}", f"{time.perf_counter() - started:.2f}")
        ran: list[tuple[float, Batch]] = []

        def sink(results: object, batch: Batch) -> None:
            written(results)  # type: ignore[arg-type]  # a DataFrame
            ran.append((time.perf_counter(), batch))

        queries.start(sink, processingTime="1 second")
        while len(ran) < 3:  # noqa: PLR2004 - till it is warm
            time.sleep(0.1)
        calls, late = [], 0
        for number in range(options.adds):
            time.sleep(1.3)
            started = time.perf_counter()
            queries.add(ONE.format(number, number + 5), name=f"one-{number}")
            calls.append(time.perf_counter() - started)
        time.sleep(3)
        versions = {row["version"]: row["queries"] for row in queries.batches().collect()}
        late = sum(options.standing + n + 1 not in versions.values() for n in range(options.adds))
        table.add_row("one more, the call", str(Spread.of(calls)))
        table.add_row("median, ms", f"{statistics.median(calls) * 1000:.0f}")
        table.add_row("that no micro-batch had as the newest", str(late))
        before = len(ran)
        many = make_rules(options.many).assign(name=[f"many-{n}" for n in range(options.many)])
        started = time.perf_counter()
        queries.add_many(RULE, many)
        table.add_row(f"{options.many:,} more, the call", f"{time.perf_counter() - started:.2f}")
        while len(ran) < before + 3:
            time.sleep(0.1)
        took = [row["seconds"] for row in queries.batches().collect() if row["queries"] > len(many)]
        table.add_row("the first micro-batch with them", f"{took[0]:.2f}")
        table.add_row("those after it", str(Spread.of(took[1:])))
    report.show(table)
    return 0
