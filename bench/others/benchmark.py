"""``python -m bench others``: queries that were written from the documentation alone.

Forty-nine queries, with 52 Python functions of their own, over seven tables of 500 to 100,000 rows
in Parquet files. Group ``udfbench`` has pipelines over publications, projects and logs in the
manner of UDFBench, ``people`` everyday queries, ``tiny`` statements over 10 to 500 rows.

The contestants are those of :mod:`bench.short.benchmark`, sessions of one application, which take
turns: one is plain; in one a query is ``eddyline.adapt(spark.sql(text)).collect()``; ``enable`` is
enabled with the defaults, and each plan is a new one to it; to ``again`` an equal plan is known
after the turns that do not count. The rows of all runs are compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from rich.table import Table

from bench import report
from bench.against_plain import CORES, PLAIN, start
from bench.others.functions import register_all
from bench.others.pipelines import UDFBENCH
from bench.others.queries import QUERIES
from bench.others.tables import ROWS, make_views, tables, write
from bench.short import benchmark as short
from bench.short.benchmark import (
    ENABLE,
    UNCOUNTED,
    Measured,
    Sessions,
    in_sessions,
    judged,
    measure,
    of_group,
    summary,
    worst,
)
from bench.short.records import Rows

WORST: Final = 1.03
"""Target of each query of the group ``udfbench`` by ``enable``, over plain Spark."""

WARMING: Final = "SELECT count(*) FROM products WHERE has_tag(tags, 'sale')"
"""Run once in each session, so that the first query finds processes of Python."""

TITLE: Final = "Queries of others: Eddyline's time over plain Spark's, median (least-greatest)"


def sessions(first: SparkSession, folder: Path) -> Sessions:
    """Return a session for each contestant, which knows the tables in a folder."""

    def prepare(spark: SparkSession) -> None:
        make_views(spark, folder)
        register_all(spark)

    return in_sessions(first, prepare)


def prepared(folder: Path, rows: Rows = ROWS) -> Sessions:
    """Write the tables, start Spark, and return a session for each contestant, warm."""
    write(folder, tables(rows=rows))
    by_name = sessions(start(CORES), folder)
    for spark in by_name.values():
        spark.sql(WARMING).collect()
    return by_name


def table(measured: Sequence[Measured]) -> Table:
    """Return the table that a person reads, with geometric means and the greatest by group."""
    return short.table(measured, TITLE)


def verdicts(measured: Sequence[Measured]) -> list[str]:
    """Return what became of the target, in words."""
    results = of_group(measured, UDFBENCH)
    if not results:
        return []
    slowest = worst(results, ENABLE)
    ratio = slowest.over(ENABLE).median
    return [f"{UDFBENCH}, {ENABLE}: worst {judged(ratio, WORST)} ({slowest.query.name})"]


def as_dict(measured: Sequence[Measured], turns: int) -> dict[str, object]:
    """Return everything measured, for JSON."""
    return {**summary(measured, turns, ROWS), "targets": verdicts(measured)}


def main(arguments: Sequence[str]) -> int:
    """Measure all queries that the command line asks for."""
    parser = report.argument_parser("bench others", __doc__, turns=5)
    parser.add_argument("--only", default="", help="only queries with this in group and name")
    options = parser.parse_args(arguments)
    chosen = [query for query in QUERIES if options.only in f"{query.group}: {query.name}"]
    if not chosen:
        parser.error(f"no query has {options.only!r} in its name")
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="eddyline-others-") as folder:
        by_name = prepared(Path(folder))
        runs = len(chosen) * len(by_name) * (options.turns + UNCOUNTED)
        with report.progress(runs) as advance:
            for number, query in enumerate(chosen):
                advance(f"{query.group}: {query.name}")
                measured.append(measure(by_name, query, options.turns, number, advance))
                path = report.write(options, "others", as_dict(measured, options.turns))
        by_name[PLAIN].stop()
    report.show(table(measured), *verdicts(measured), f"written: {path}")
    return 0
