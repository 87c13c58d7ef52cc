"""``python -m bench watching``: how soon a watched query shows something.

Three sources: 200,000 rows are scanned, two tables are looked up, of which an answer takes 20 ms
and comes for 8 keys at a time. Told are the seconds to the first row, to half of the rows and to
the end, beside ``adapt`` on the same query, which shows nothing before its end; and for an average
over the same query the seconds to the first interval, and to one of 1 % of the value.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

import eddyline
from bench.turns import Spread

ROWS: Final = 200_000
KEYS: Final = 4_000
TOWNS: Final = 400
WAIT: Final = 0.02
"""Seconds of an answer."""

WIDTH: Final = 8
NARROW: Final = 0.01
"""Half the width of an interval, as a part of the value."""


def query(spark: SparkSession) -> DataFrame:
    """Return the join of the three sources."""

    async def customer(keys: list[int]) -> list[tuple[int, int, float]]:
        await asyncio.sleep(WAIT)
        return [(key, key % TOWNS, key / 7) for key in keys]

    async def town(keys: list[int]) -> list[tuple[int, str]]:
        await asyncio.sleep(WAIT)
        return [(key, f"town {key}") for key in keys]

    for name, schema, function in (
        ("customers", "customer long, town long, credit double", customer),
        ("towns", "town long, name string", town),
    ):
        source = eddyline.PythonLookup(function)
        column = schema.split()[0]
        eddyline.lookup_table(spark, name, schema, [column], source, max_in_flight=WIDTH)
    spark.range(0, ROWS, 1, 8).selectExpr(
        "id", f"pmod(hash(id), {KEYS}) AS customer", "cast(id % 100 AS double) AS paid"
    ).createOrReplaceTempView("orders")
    return spark.sql(
        "SELECT o.id, o.paid, c.credit, t.name FROM orders o JOIN customers c ON o.customer = "
        "c.customer JOIN towns t ON c.town = t.town"
    )


def rows_over_time(df: DataFrame) -> dict[str, float]:
    """Return the seconds until rows of a watched query came."""
    began = time.perf_counter()
    came = [
        (time.perf_counter() - began, part.total)
        for part in eddyline.watch(df, every=0.0)
        if part.rows.num_rows
    ]
    half = next(seconds for seconds, total in came if 2 * total >= came[-1][1])
    return {"first row": came[0][0], "half of the rows": half, "all rows": came[-1][0]}


def intervals_over_time(df: DataFrame) -> dict[str, float]:
    """Return the seconds until a watched aggregate had an interval, and a narrow one."""
    began = time.perf_counter()
    found: dict[str, float] = {}
    for part in eddyline.watch(df.agg({"credit": "avg"}).toDF("mean"), every=0.0):
        now = time.perf_counter() - began
        if part.estimates is None:
            continue
        (row,) = part.estimates.table.to_pylist()
        if row["mean_low"] is not None:
            found.setdefault("first interval", now)
            if row["mean_high"] - row["mean_low"] <= 2 * NARROW * row["mean"]:
                found.setdefault("interval of 1 %", now)
        found["exact"] = now
    return found


def adapted(df: DataFrame) -> dict[str, float]:
    """Return the seconds of the same query, all at once."""
    began = time.perf_counter()
    rows = eddyline.adapt(df).toArrow()
    if not len(rows):
        raise AssertionError("the query has rows")
    return {"adapt, all rows": time.perf_counter() - began}


def main(arguments: Sequence[str]) -> int:
    """Measure, in turns, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench watching", description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args(arguments)
    spark = eddyline.session()
    seconds: dict[str, list[float]] = {}
    for turn in range(options.turns + 1):
        df = query(spark)
        for measure in (rows_over_time, intervals_over_time, adapted):
            for name, value in measure(df).items():
                if turn:  # the first one starts the workers
                    seconds.setdefault(name, []).append(value)
    table = Table(box=None)
    for column in ("seconds to", "median (least-greatest)", "of the total"):
        table.add_column(column)
    for name, values in seconds.items():
        total = seconds["exact" if name in {"first interval", "interval of 1 %"} else "all rows"]
        parts = Spread.of(one / other for one, other in zip(values, total, strict=True))
        table.add_row(name, str(Spread.of(values)), f"{100 * parts.median:.1f} %")
    Console().print(table)
    return 0
