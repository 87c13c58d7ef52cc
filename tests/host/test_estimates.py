"""Spark's estimates of sizes have no bound; ours have, wherever one is asked for."""

from __future__ import annotations

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BooleanType

import eddyline
from eddyline import catalyst
from eddyline.catalyst import pipeline
from eddyline.catalyst.table_statistics import LARGEST_ESTIMATE
from tests.planner.joins.broadcasting import broadcasting

related = F.udf(lambda a, b: a < b, BooleanType())
odd = F.udf(lambda a: a % 2 == 1, BooleanType())


@pytest.fixture(scope="module")
def edges(spark: SparkSession) -> DataFrame:
    """A graph of unknown size: rows of an RDD."""
    return spark.createDataFrame(spark.sparkContext.parallelize([(1, 2), (2, 3)]), "a long, b long")


def paths(edges: DataFrame, times: int, *, distinct: bool) -> DataFrame:
    """Join edges with themselves, and the result with itself, so many times in all."""
    for _ in range(times):
        left, right = edges.alias("l"), edges.alias("r")
        both = left.join(right, F.col("l.b") == F.col("r.a"))
        edges = both.select(F.col("l.a").alias("a"), F.col("r.b").alias("b"))
        edges = edges.distinct() if distinct else edges
    return edges


def joined(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.alias("x").join(other.alias("y"), F.col("x.b") == F.col("y.a"))


def test_sizes_beyond_a_float_are_planned_with(spark: SparkSession, edges: DataFrame) -> None:
    five = paths(edges, 5, distinct=True)
    squared = joined(five, five)
    further = joined(five, edges)
    queries = {
        "a function of both": further.where(related("x.a", "y.b")),
        "with itself": squared.where(related("x.a", "y.b")),
        "a function of one": squared.where(odd("x.a") & odd("x.b")),
        "values only": further.select(odd("y.b")),
        "a union": joined(five.union(five), edges).where(related("x.a", "y.b")),
    }
    for name, df in queries.items():
        adapted = eddyline.adapt(df)
        assert eddyline.explain(adapted).blocks, name
        assert eddyline.explain(df).claimable, name
    with broadcasting(spark, allowed=False):
        assert eddyline.explain(eddyline.adapt(queries["with itself"], joins="always")).blocks


@pytest.mark.parametrize("put_off", [True, False])
def test_no_estimate_is_larger_than_a_long(
    edges: DataFrame, monkeypatch: pytest.MonkeyPatch, *, put_off: bool
) -> None:
    if not put_off:
        monkeypatch.setattr(pipeline._of_thread, "gateway", id(SparkContext._jvm))
        monkeypatch.setattr(pipeline._of_thread, "pipeline", None)
    many, five = (catalyst.analyzed_plan(paths(edges, n, distinct=False)) for n in (9, 5))
    one = catalyst.analyzed_plan(edges)
    catalyst.look_at([many])
    sizes = [catalyst.size_in_bytes(each) for each in (many, five, one)]
    assert sizes == [LARGEST_ESTIMATE] * 3


def test_a_known_size_is_as_spark_says(spark: SparkSession) -> None:
    assert catalyst.size_in_bytes(catalyst.analyzed_plan(spark.range(1000))) == 8000
