"""TPC-H against plain Spark: what adapting costs and saves where Spark is at home."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from bench.against_plain import CORES, Query, argument_parser, run, start
from bench.tpch.data import create_views, default_cache, tables
from bench.tpch.queries import QUERIES, TpchQuery


def query(spark: SparkSession, tpch: TpchQuery, scale: float) -> Query:
    """Return one of the 22 for the benchmark's frame."""
    ask = functools.partial(spark.sql, tpch.sql_at(scale))
    return Query(tpch.name, ask, tpch.order_by, tpch.title)


def chosen(only: Iterable[str] | None) -> tuple[TpchQuery, ...]:
    """Return the queries of some names, in their own order; without names all.

    >>> [query.title for query in chosen(["q6", "1"])]
    ['Pricing Summary Report', 'Forecasting Revenue Change']
    """
    if only is None:
        return QUERIES
    names = {name.lower().removeprefix("q") for name in only}
    unknown = names - {str(query.number) for query in QUERIES}
    if unknown:
        raise ValueError(f"no query {', '.join(sorted(unknown))}; there are q1 to q22")
    return tuple(query for query in QUERIES if str(query.number) in names)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the queries that the command line asks for."""
    parser = argument_parser("tpch", __doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="scale factor (default: 1)")
    parser.add_argument("--only", nargs="+", metavar="QUERY", help="only these: q3 q18")
    parser.add_argument(
        "--cache", type=Path, default=default_cache(), help="for the tables (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        queries = chosen(options.only)
        folder = tables(options.scale, options.cache)
    except ValueError as error:
        parser.error(str(error))
    spark = start()
    create_views(spark, folder)
    run(
        [query(spark, each, options.scale) for each in queries],
        name="tpch",
        title=f"TPC-H at scale factor {options.scale:g}",
        count=len(queries),
        options=options,
        setting={"cores": CORES, "scale": options.scale},
    )
    spark.stop()
    return 0
