"""Inputs of joins as Spark's optimizer leaves them: with nodes that nobody writes in a query."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from tests.planner.joins.broadcasting import broadcasting


@pytest.fixture(autouse=True)
def tables(spark: SparkSession, tmp_path: Path) -> None:
    """Write a table that is partitioned by the key of joins, and one that is not."""
    parts = spark.range(100).selectExpr("id", "id % 10 AS k")
    parts.write.partitionBy("k").parquet(str(tmp_path / "parts"))
    others = spark.range(20).selectExpr("id", "id % 8 AS k", "id % 3 AS z")
    others.write.parquet(str(tmp_path / "others"))
    for name in ("parts", "others"):
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    spark.udf.register("agree", F.udf(lambda one, other: (one + other) % 2 == 0, "boolean"))
    spark.udf.register("not_third", F.udf(lambda one: one % 3 != 0, "boolean"))


def optimized(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().optimizedPlan().toString())


def same(plain: DataFrame, joins: str) -> bool:
    adapted = eddyline.adapt(plain, joins=joins)
    rows = plain.collect()
    return bool(rows) and sorted(adapted.collect()) == sorted(rows)


@pytest.mark.parametrize("joins", ["auto", "always"])
@pytest.mark.parametrize("broadcast", [True, False])
def test_partitions_that_are_pruned_while_a_query_runs(
    spark: SparkSession, *, joins: str, broadcast: bool
) -> None:
    """What prunes is a subquery over the other side, by columns that an eddy gives other names."""
    with broadcasting(spark, allowed=broadcast):
        plain = spark.sql("""
            SELECT parts.id, others.id AS other, again.id AS third FROM parts
            JOIN others ON parts.k = others.k JOIN parts AS again ON again.k = others.z
            WHERE agree(again.id, parts.id) AND others.id > 3""")
        assert "dynamicpruning" in optimized(plain)
        assert same(plain, joins)


@pytest.mark.parametrize("joins", ["auto", "always"])
def test_what_exists_under_an_or(spark: SparkSession, joins: str) -> None:
    plain = spark.sql("""
        SELECT others.id, again.id AS other FROM others JOIN others AS again USING (k)
        WHERE not_third(others.id) OR EXISTS (SELECT 1 FROM parts WHERE parts.k = others.z - 1)""")
    assert "ExistenceJoin" in optimized(plain)
    assert same(plain, joins)
