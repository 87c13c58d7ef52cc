"""TPC-H: each query gives the rows of plain Spark, whatever is done with its joins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bench.against_plain import JOINS, adapted
from bench.answers import require_same_rows
from bench.tpch.data import create_views, tables
from bench.tpch.queries import QUERIES, TpchQuery
from tests.compiled import compiled

pytestmark = pytest.mark.slow(50)

SCALE = 0.1
"""Scale factor: the smallest at which no query is left with one or two rows to differ in by
chance (Q11 has none at 0.02, Q20 one), and large enough for several batches a task."""

Plain = Callable[[TpchQuery], pa.Table]


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plain]:
    """What plain Spark answers, asked once for each query; the tables are there as views.

    Spark compiles here: over this many rows that spares more than it costs.
    """
    create_views(spark, tables(SCALE, tmp_path_factory.mktemp("tpch")))

    @cache
    def answer(query: TpchQuery) -> pa.Table:
        return spark.sql(query.sql_at(SCALE)).toArrow()

    with compiled(spark):
        yield answer


@pytest.mark.parametrize("joins", JOINS)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_same_rows_as_plain_spark(
    spark: SparkSession, plain: Plain, query: TpchQuery, joins: str
) -> None:
    expected = plain(query)
    assert len(expected) > 0
    frame = spark.sql(query.sql_at(SCALE))
    changed = adapted(frame, joins)
    if changed is not frame:  # the very DataFrame would only be plain Spark once more
        require_same_rows(expected, changed.toArrow(), query.order_by)
