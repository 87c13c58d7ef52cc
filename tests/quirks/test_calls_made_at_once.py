"""The main paths where nothing puts calls into the JVM off: then each is what Py4J makes of it."""

from __future__ import annotations

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from eddyline.catalyst import pipeline
from eddyline.planner.adapt import adapt, adapted_blocks
from tests.planner.shapes import even, good, new_table, score, session, short


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    found = session()
    monkeypatch.setattr(pipeline._of_thread, "gateway", id(SparkContext._jvm), raising=False)
    monkeypatch.setattr(pipeline._of_thread, "pipeline", None, raising=False)
    return found


def rows(df: DataFrame) -> list[str]:
    return sorted(repr(tuple(row)) for row in df.collect())


def test_filters_and_values(spark: SparkSession) -> None:
    def asked() -> DataFrame:
        kept = new_table(spark, 60).where(good("id") & short("text") & (score("id") > 0.2))
        return kept.select("id", score("n").alias("s"))

    fast = adapt(asked())
    assert adapted_blocks(fast)
    assert rows(fast) == rows(asked())


def test_over_a_cache(spark: SparkSession) -> None:
    cached = adapt(new_table(spark, 60).where(good("id") & short("text"))).cache()
    expected = rows(new_table(spark, 60).where(good("id") & short("text")))
    try:
        assert rows(cached) == expected
        assert adapted_blocks(cached.where("id > 3"))
    finally:
        cached.unpersist()


@pytest.mark.parametrize("joins", ["always", "auto"])
def test_joins(spark: SparkSession, joins: str) -> None:
    def joined() -> DataFrame:
        one = new_table(spark, 60)
        two = spark.range(90).selectExpr("id * 2 as key", "id % 7 as n2")
        both = one.join(two, col("id") == col("key"))
        return both.where(good("id") & even(col("n") + col("n2"))).select("id", "text", "n2")

    fast = adapt(joined(), joins=joins)
    assert adapted_blocks(fast)
    assert rows(fast) == rows(joined())
