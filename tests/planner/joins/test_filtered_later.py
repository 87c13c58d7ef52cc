"""What is done to a DataFrame after ``adapt`` must not take rows from below a join in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.planner.adapt import adapted_blocks

Later = Callable[[DataFrame], DataFrame]

LATER: dict[str, Later] = {
    "filter": lambda df: df.filter("id > 3"),
    "filter of the other input": lambda df: df.filter("j > 3"),
    "filter and projection": lambda df: df.filter("id > 3").select("j", "extra"),
    "aggregate, then filter": lambda df: df.groupBy("id").count().filter("id > 3"),
    "another join": lambda df: df.join(df.sparkSession.range(5, 20), "id").filter("id > 6"),
    "semi join": lambda df: df.join(df.sparkSession.range(5, 9), "id", "semi"),
    "limit of a sort": lambda df: df.filter("id > 3").orderBy("id", "j").limit(5),
    "adapted again": lambda df: eddyline.adapt(df.filter("id > 3")),
}


@pytest.fixture(scope="module")
def inputs(spark: SparkSession) -> Iterator[tuple[DataFrame, DataFrame]]:
    """Two cached tables; their wide columns stay in the JVM."""
    large = spark.range(0, 60, 1, 2).selectExpr("id", "id % 7 k", "array(id) extra").cache()
    small = spark.range(0, 40, 1, 2).selectExpr("id j", "id % 7 m", "map(id, id) more").cache()
    yield large, small
    for each in (large, small):
        each.unpersist()


@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
def test_same_rows_as_spark(inputs: tuple[DataFrame, DataFrame], later: Later) -> None:
    large, small = inputs
    both = F.udf(lambda x, y: (x + y) % 2 == 0, "boolean")
    own = F.udf(lambda x: x % 3 != 1, "boolean")
    joined = large.join(small, F.expr("k = m")).filter(both("id", "j") & own("id"))
    adapted = eddyline.adapt(joined)
    assert adapted_blocks(adapted)
    rows = sorted(map(str, later(adapted).collect()))
    assert rows == sorted(map(str, later(joined).collect()))
    assert rows
