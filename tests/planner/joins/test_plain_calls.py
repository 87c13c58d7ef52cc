"""The report's calls of plain Spark are those that plain Spark makes, joins included."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import eddyline
from eddyline.reports.plain_spark import compared


def test_calls_of_plain_spark_are_estimated_as_they_are(spark: SparkSession) -> None:
    calls = spark.sparkContext.accumulator(0)

    def counted(test: Callable[[int, int], bool]) -> Callable[[int, int], bool]:
        def count(one: int, other: int) -> bool:
            calls.add(1)
            return test(one, other)

        return count

    near = udf(counted(lambda one, other: (one * 7 + other) % 5 == 0), "boolean")
    far = udf(counted(lambda one, other: (one + other * 3) % 4 == 0), "boolean")
    left = spark.range(2_000).selectExpr("id AS a", "id % 50 AS k")
    right = spark.range(300).selectExpr("id AS b", "id % 50 AS k")
    joined = left.join(right, "k").filter(near("a", "b") & far("a", "b"))
    rows = joined.count()
    plain = calls.value
    assert plain == 2 * 2_000 * 6
    fast = eddyline.adapt(joined, joins="always", remember=False)
    assert fast.count() == rows
    made = calls.value - plain
    (block,) = eddyline.report(fast).blocks
    found = compared((block,))
    assert found is not None
    assert found.calls == made < plain
    assert found.estimated
    assert 0.8 * plain < found.plain_calls < 1.2 * plain
