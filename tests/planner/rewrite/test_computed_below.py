"""A function whose values a filter has had computed is not called again above it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import LongType

import eddyline

ROWS = 1_000

triple = F.udf(lambda number: number * 3, LongType())
or_nothing = F.udf(lambda number: -1 if number is None else number * 3, LongType())
half = F.udf(lambda number: number // 2, LongType())


def evaluations(df: DataFrame) -> int:
    """Return how many functions the plan evaluates, each in each place."""
    plan = df._jdf.queryExecution().executedPlan().toString()
    results = re.findall(r"EvalPython .*\], \[(.*?)\]", plan)
    return sum(len(each.split(",")) for each in results)


def base(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 2).selectExpr("id", "id % 50 AS few", "id % 7 AS other")


def small(df: DataFrame) -> DataFrame:
    """Return some keys, among them none twice."""
    return df.sparkSession.range(0, 60, 3).selectExpr("id AS key")


SHARED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a select list": lambda df: df.filter(triple("few") > 30).select("id", triple("few")),
    "renamed between": lambda df: (
        df.filter(triple("few") > 30)
        .withColumn("sum", F.col("id") + 1)
        .filter("sum % 2 = 0")
        .select("sum", triple("few").alias("a"))
    ),
    "a group": lambda df: df.filter(triple("few") > 30).groupBy(triple("few") % 4).count(),
    "twice above": lambda df: df.filter(triple("few") > 30).select(
        triple("few"), triple("few") + 1, "other"
    ),
    "not understood": lambda df: df.filter(F.hex(triple("few")) > "30").select(triple("few")),
    "the key of a join": lambda df: df.join(small(df), triple("few") == F.col("key")).select(
        "id", triple("few")
    ),
    "the key of a join, on the other side": lambda df: (
        small(df).join(df, triple("few") == F.col("key"), "right").select("id", triple("few"))
    ),
    "the key of a join of rows with themselves": lambda df: (
        df.alias("a")
        .join(df.alias("b"), triple("a.few") == F.col("b.few"))
        .select("a.id", triple("a.few"))
    ),
    "joined twice": lambda df: (
        df.join(small(df), triple("few") == F.col("key"), "left")
        .join(
            small(df).withColumnRenamed("key", "more"), F.col("other") == F.col("more"), "leftsemi"
        )
        .select("id", triple("few"))
    ),
    "a window": lambda df: df.withColumn(
        "sum", F.sum(triple("few")).over(Window.partitionBy("other").orderBy("id"))
    ).select("id", triple("few"), "sum"),
    "of what is computed": lambda df: df.filter(half(triple("few")) > 30).select(
        half(triple("few")), triple("few")
    ),
}


@pytest.mark.parametrize("query", SHARED.values(), ids=list(SHARED))
def test_values_are_passed_on(spark: SparkSession, query: Callable[[DataFrame], DataFrame]) -> None:
    plain = query(base(spark))
    adapted = eddyline.adapt(plain)
    assert adapted.schema == plain.schema
    assert sorted(adapted.collect()) == sorted(plain.collect())
    assert evaluations(adapted) < evaluations(plain)


APART: dict[str, Callable[[DataFrame], DataFrame]] = {
    "other arguments": lambda df: df.filter(triple("few") > 30).select("id", triple("other")),
    "another function": lambda df: df.filter(triple("few") > 30).select("id", half("few")),
    "a column of that name": lambda df: (
        df.filter(triple("few") > 30).withColumn("few", F.col("id")).select(triple("few"))
    ),
    "of the other side of a join": lambda df: (
        df.alias("a")
        .join(df.alias("b"), triple("a.few") == F.col("b.few"))
        .select("a.id", triple("b.few"))
    ),
    "of a side where rows are missing": lambda df: (
        small(df).join(df, triple("few") == F.col("key"), "left").select("key", or_nothing("few"))
    ),
    "above a limit": lambda df: (
        df.filter(triple("few") > 30).orderBy("id").limit(50).select("id", triple("few"))
    ),
}


@pytest.mark.parametrize("query", APART.values(), ids=list(APART))
def test_other_values_are_computed(
    spark: SparkSession, query: Callable[[DataFrame], DataFrame]
) -> None:
    plain = query(base(spark))
    adapted = eddyline.adapt(plain)
    assert adapted.schema == plain.schema
    assert sorted(adapted.collect()) == sorted(plain.collect())
    assert evaluations(adapted) == evaluations(plain)


def test_nothing_more_comes_out_where_a_filter_is_on_top(spark: SparkSession) -> None:
    plain = (
        base(spark)
        .filter(F.hex(triple("few")) > "30")
        .withColumn("more", triple("few"))
        .filter("more % 2 = 0")
    )
    adapted = eddyline.adapt(plain)
    assert adapted.columns == ["id", "few", "other", "more"]
    assert sorted(adapted.collect()) == sorted(plain.collect())
    union = adapted.union(adapted.limit(3))
    assert union.count() == plain.count() + 3


def test_functions_that_forget_are_called_again(spark: SparkSession) -> None:
    forgetting = F.udf(eddyline.forgetful(lambda number: number * 3), LongType())
    plain = base(spark).filter(F.hex(forgetting("few")) > "30").select(forgetting("few"))
    adapted = eddyline.adapt(plain)
    assert evaluations(adapted) == evaluations(plain)
    without = eddyline.adapt(
        base(spark).filter(F.hex(triple("few")) > "30").select(triple("few")), remember=False
    )
    assert evaluations(without) == 2
