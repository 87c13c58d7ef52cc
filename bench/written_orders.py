"""``python -m bench orders``: one join in many written orders, plain Spark and Eddyline.

The five tables of the flights in FROM clauses of every kind. Spark joins them as they are
written, as far as that needs no cross product; an eddy should not care.
"""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from bench import report
from bench.against_plain import PLAIN, adapted, start
from bench.answers import require_same_rows
from bench.turns import Turns, take_turns
from eddyline_demos.flights import create_views, write_parquet

TABLES = ("flights", "weather", "planes", "airports", "airlines")

SELECT = "SELECT airlines.name, count(*) AS flights, avg(dep_delay) AS minutes_late"

CONDITIONS = """
    flights.origin = weather.origin AND flights.time_hour = weather.time_hour
    AND flights.tailnum = planes.tailnum AND flights.dest = airports.faa
    AND flights.carrier = airlines.carrier
    AND visib < 5 AND planes.engines = 2 AND airports.alt < 1000
"""

JOINS = "always"
SIDES = (PLAIN, JOINS)
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


def measure(spark: SparkSession, orders: Mapping[str, str], turns: int) -> dict[str, Turns]:
    """Let all orders take turns, so that none is measured on a colder JVM than another."""

    def run(text: str, side: str) -> pa.Table:
        frame = spark.sql(text)
        return (frame if side == PLAIN else adapted(frame, side)).toArrow()

    contestants = {
        f"{side}: {name}": functools.partial(run, text, side)
        for name, text in orders.items()
        for side in SIDES
    }
    with report.progress(len(contestants) * (turns + 1)) as advance:
        taken = take_turns(
            contestants, turns=turns, require_same=require_same_rows, progress=advance
        )
    return taken.split(SIDES)


def main(arguments: Sequence[str]) -> int:
    """Measure, and print the worst order over the best one for each contestant."""
    parser = report.argument_parser("bench orders", __doc__)
    parser.add_argument("--orders", type=int, default=6, help="how many orders (default: 6)")
    options = parser.parse_args(arguments)
    orders = texts(options.orders)
    with tempfile.TemporaryDirectory(prefix="eddyline-orders-") as folder:
        write_parquet(Path(folder))
        spark = start()
        create_views(spark, Path(folder))
        measured = measure(spark, orders, options.turns)
        spark.stop()
    path = report.write(
        options, "orders", {side: turns.seconds for side, turns in measured.items()}
    )
    report.show(
        report.table(
            "Written orders: median seconds",
            ("FROM", *measured),
            (
                (name, *(f"{turns.median(name):.2f}" for turns in measured.values()))
                for name in orders
            ),
        ),
        *(
            f"{side}: worst order over best {turns.worst_over_best()}"
            f"{f', target {TARGET}' if side == JOINS else ''}"
            for side, turns in measured.items()
        ),
        f"written: {path}",
    )
    return 0
