"""``python -m bench orders``: one join in many written orders, plain Spark and Eddyline.

The five tables of the flights in FROM clauses of every kind. Spark joins them as they are
written, as far as that needs no cross product; an eddy should not care.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.against_plain import PLAIN, adapted, start
from bench.answers import check_same_rows
from bench.measure import Turns, take_turns
from eddyline.app.demo.flights import create_views, write_parquet

TABLES = ("flights", "weather", "planes", "airports", "airlines")

SELECT = "SELECT airlines.name, count(*) AS flights, avg(dep_delay) AS minutes_late"

CONDITIONS = """
    flights.origin = weather.origin AND flights.time_hour = weather.time_hour
    AND flights.tailnum = planes.tailnum AND flights.dest = airports.faa
    AND flights.carrier = airlines.carrier
    AND visib < 5 AND planes.engines = 2 AND airports.alt < 1000
"""

JOINS = "always"
TARGET = 1.10
SEED = 0


def texts(count: int) -> dict[str, str]:
    """Return the join in so many orders, by name; that of :data:`TABLES` and its reverse first."""
    draw = random.Random(SEED)
    orders = [list(TABLES), list(TABLES[::-1])]
    while len(orders) < count:
        order = draw.sample(TABLES, len(TABLES))
        if order not in orders:
            orders.append(order)
    return {
        " ".join(order): f"{SELECT} FROM {', '.join(order)} WHERE {CONDITIONS} GROUP BY 1"
        for order in orders
    }


def measure(spark: SparkSession, options: argparse.Namespace) -> dict[str, Turns]:
    """Let all orders take turns, so that none is measured on a colder JVM than another."""
    expected: list[pa.Table] = []
    sides = (PLAIN, JOINS)
    orders = texts(options.orders)

    def run(text: str, side: str) -> None:
        frame = spark.sql(text)
        rows = (frame if side == PLAIN else adapted(frame, side)).toArrow()
        if not expected:
            expected.append(rows)
        check_same_rows(expected[0], rows)

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=len(orders) * len(sides) * (options.turns + 1))
        taken = take_turns(
            {
                f"{side}: {name}": functools.partial(run, text, side)
                for name, text in orders.items()
                for side in sides
            },
            turns=options.turns,
            progress=lambda: progress.advance(task),
        )
    return {
        side: Turns({name: taken.seconds[f"{side}: {name}"] for name in orders}) for side in sides
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the worst order over the best one for each contestant."""
    parser = argparse.ArgumentParser(prog="python -m bench orders", description=__doc__)
    parser.add_argument("--turns", type=int, default=5, help="counted turns (default: 5)")
    parser.add_argument("--orders", type=int, default=6, help="how many orders (default: 6)")
    parser.add_argument("--out", type=Path, default=Path("bench/results"), help="for the JSON file")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="eddyline-orders-") as folder:
        write_parquet(Path(folder))
        spark = start()
        create_views(spark, Path(folder))
        measured = measure(spark, options)
        spark.stop()
    shown = Table("FROM", *measured, title="Written orders: median seconds")
    for name in texts(options.orders):
        shown.add_row(name, *(f"{turns.median(name):.2f}" for turns in measured.values()))
    Console().print(shown)
    for side, turns in measured.items():
        target = f", target {TARGET}" if side == JOINS else ""
        print(f"{side}: worst order over best {turns.worst_over_best()}{target}")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "orders.json"
    path.write_text(
        json.dumps({side: dict(turns.seconds) for side, turns in measured.items()}, indent=1)
    )
    print(f"written: {path}")
    return 0
