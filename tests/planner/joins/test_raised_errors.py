"""Whatever fails in an input of a join is raised as the query that is not adapted raises it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.errors import ArithmeticException, PySparkException, PythonException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BooleanType, LongType

import eddyline


@F.udf(LongType())
def no_five(number: int) -> int:
    if number == 5:
        raise ValueError("no five")
    return number


@F.udf(BooleanType())
def agree(one: int, other: int) -> bool:
    return (one + other) % 2 == 0


WRONG = {
    "a function": (lambda: no_five("id"), PythonException),
    "a division": (lambda: F.expr("1 DIV (id - 5)"), ArithmeticException),
    "an assertion": (lambda: F.expr("IF(id = 5, raise_error('five'), id)"), PySparkException),
}

ACTIONS: dict[str, Callable[[DataFrame], object]] = {
    "collect": lambda df: df.collect(),
    "count": lambda df: df.count(),
    "toPandas": lambda df: df.toPandas(),
    "toArrow": lambda df: df.toArrow(),
    "write": lambda df: df.write.format("noop").mode("overwrite").save(),
}


@pytest.mark.filterwarnings("ignore:toPandas attempted Arrow")
@pytest.mark.parametrize("action", ACTIONS.values(), ids=list(ACTIONS))
@pytest.mark.parametrize(("wrong", "kind"), WRONG.values(), ids=list(WRONG))
def test_a_small_input_that_fails(
    spark: SparkSession,
    wrong: Callable[[], Column],
    kind: type[PySparkException],
    action: Callable[[DataFrame], object],
) -> None:
    rows = spark.range(1_000).selectExpr("id", "id % 20 AS k")
    small = spark.range(20).select(wrong().alias("k"), F.col("id").alias("x"))
    plain = rows.join(small, "k").where(agree("id", "x"))
    adapted = eddyline.adapt(plain, joins="always")
    assert "scalar-subquery" in adapted._jdf.queryExecution().optimizedPlan().toString()
    with pytest.raises(kind) as expected:
        action(plain)
    with pytest.raises(kind) as caught:
        action(adapted)
    assert type(caught.value) is type(expected.value)
    assert caught.value.getCondition() == expected.value.getCondition()
    if kind is PythonException:
        assert "ValueError: no five" in str(caught.value)


def test_what_fails_as_itself_is_left_as_it_is(spark: SparkSession) -> None:
    eddyline.adapt(spark.range(1))
    with pytest.raises(ArithmeticException):
        spark.sql("SELECT (SELECT 1 DIV (id - 5) FROM range(5, 6))").collect()
    failing = spark.sparkContext.parallelize([5]).map(lambda each: 1 // (each - 5))
    with pytest.raises(Exception, match="ZeroDivisionError") as caught:
        failing.collect()
    assert not isinstance(caught.value, PySparkException) or isinstance(
        caught.value, PythonException
    )
