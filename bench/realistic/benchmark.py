"""``python -m bench realistic``: twelve queries over text and records, functions as people write.

Dates to clean, JSON to parse, log lines, user agents, addresses, identifiers, stop words, markup,
similar lists of authors, names. In eight of the twelve hardly any argument is there twice; in two
of these one predicate stands alone, and nothing can be saved. The opponents are plain Spark and,
by hand, the same with caches, barriers and functions above limits and joins.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.against_plain import (
    AUTO,
    BY_HAND,
    CORES,
    PLAIN,
    Query,
    Target,
    argument_parser,
    run,
    start,
)
from bench.realistic.queries import QUERIES, Realistic
from bench.realistic.records import made

PARTS: Final = 2
"""Files of a table, one for each core."""

LEAST_ROWS: Final = 200
"""Of a table at any size, so that queries have rows left."""

TARGETS: Final = (Target(PLAIN, geometric_mean=0.4, greatest=1.03),)


def write(spark: SparkSession, name: str, rows: int, folder: Path) -> None:
    """Write a table of so many rows, unless it is there, and make a view of it."""
    into = folder / f"{name}-{rows}"
    if not into.exists():
        into.mkdir(parents=True)
        table = made(name, rows)
        for part in range(PARTS):
            piece = table.take(np.arange(part, len(table), PARTS))
            pq.write_table(piece, into / f"part-{part}.parquet")
    spark.read.parquet(str(into)).createOrReplaceTempView(name)


def queries(
    spark: SparkSession, chosen: Sequence[Realistic], folder: Path, size: float
) -> Iterator[Query]:
    """Return the queries one by one, each when its tables have been written below ``folder``."""
    for each in chosen:
        for name, rows in each.rows.items():
            write(spark, name, max(int(rows * size), LEAST_ROWS), folder)
        yield Query(
            each.name,
            functools.partial(each.ask, spark),
            opponents={BY_HAND: functools.partial(each.ask_by_hand, spark)},
        )


def main(arguments: Sequence[str]) -> int:
    """Measure the queries that the command line asks for."""
    parser = argument_parser("realistic", __doc__, joins=(AUTO,))
    parser.add_argument(
        "--size",
        type=float,
        default=1.0,
        help="of the tables; 1, the default, keeps plain Spark busy for 2 to 8 seconds",
    )
    parser.add_argument("--only", default="", help="only queries whose name contains this")
    options = parser.parse_args(arguments)
    chosen = [each for each in QUERIES if options.only in each.name]
    if not chosen:
        parser.error(f"no query has {options.only!r} in its name")
    with tempfile.TemporaryDirectory(prefix="eddyline-realistic-") as folder:
        spark = start()
        run(
            queries(spark, chosen, Path(folder), options.size),
            name="realistic",
            title="Realistic queries",
            count=len(chosen),
            options=options,
            setting={"cores": CORES, "size": options.size},
            targets=TARGETS,
            opponents=1,
        )
        spark.stop()
    return 0
