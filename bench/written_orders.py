"""``python -m bench orders``: one join in many written orders, plain Spark and Eddyline.

The five tables of the flights in FROM clauses of every kind. Spark joins them as they are
written, as far as that needs no cross product; an eddy should not care.
"""

from __future__ import annotations

import functools
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from bench.against_plain import PLAIN, Query, argument_parser, run, start
from eddyline.app.demo.flights import create_views, write_parquet

TABLES = ("flights", "weather", "planes", "airports", "airlines")

SELECT = "SELECT airlines.name, count(*) AS flights, avg(dep_delay) AS minutes_late"

CONDITIONS = """
    flights.origin = weather.origin AND flights.time_hour = weather.time_hour
    AND flights.tailnum = planes.tailnum AND flights.dest = airports.faa
    AND flights.carrier = airlines.carrier
    AND visib < 5 AND planes.engines = 2 AND airports.alt < 1000
"""

TARGET = 1.10
SEED = 0


def queries(spark: SparkSession, count: int) -> Iterator[Query]:
    """Return the join in so many orders, that of :data:`TABLES` and its reverse first."""
    draw = random.Random(SEED)
    orders = [list(TABLES), list(TABLES[::-1])]
    while len(orders) < count:
        order = draw.sample(TABLES, len(TABLES))
        if order not in orders:
            orders.append(order)
    for order in orders:
        text = f"{SELECT} FROM {', '.join(order)} WHERE {CONDITIONS} GROUP BY airlines.name"
        yield Query(" ".join(name[:7] for name in order), functools.partial(spark.sql, text))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the worst order over the best one for each contestant."""
    parser = argument_parser("orders", __doc__)
    parser.add_argument("--orders", type=int, default=6, help="how many orders (default: 6)")
    parser.set_defaults(joins=["always"])
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="eddyline-orders-") as folder:
        write_parquet(Path(folder))
        spark = start()
        create_views(spark, Path(folder))
        path = options.out / "orders.json"
        report = run(
            queries(spark, options.orders),
            title="Written orders",
            count=options.orders,
            options=options,
            setting={},
            path=path,
        )
        spark.stop()
    spread = {}
    for name in (PLAIN, *options.joins):
        medians = [result.turns.median(name) for result in report.results]
        spread[name] = max(medians) / min(medians)
        text = f"{name}: worst order over best {spread[name]:.2f}"
        print(text if name == PLAIN else f"{text} ({TARGET})")
    path.write_text(json.dumps({**report.to_dict(), "worst_over_best": spread}, indent=1))
    return 0
