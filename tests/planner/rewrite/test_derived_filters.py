"""What Spark derives from a function's result does not call the function a second time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest
from pyspark import Accumulator
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline

VECTORIZED: Any = F  # of which the type checker does not know all

Called = Callable[..., Any]

ROWS, OTHERS = 60, 40


@pytest.fixture(scope="module")
def views(spark: SparkSession) -> Iterator[None]:
    spark.range(0, ROWS, 1, 2).selectExpr("id AS a", "id % 7 AS k").createOrReplaceTempView("t")
    spark.range(0, OTHERS, 1, 2).selectExpr("id AS b", "id % 5 AS k").createOrReplaceTempView("u")
    yield
    spark.catalog.dropTempView("t")
    spark.catalog.dropTempView("u")


def triple(calls: Accumulator[int], kind: str) -> Called:
    """Return a function for SQL that counts for how many rows it is called."""

    def of_row(value: int) -> int:
        calls.add(1)
        return value * 3 % 50

    def of_series(values: pd.Series) -> pd.Series:
        calls.add(len(values))
        return values * 3 % 50

    if kind == "pandas":
        made: Called = VECTORIZED.pandas_udf(of_series, "long")
        return made
    return F.udf(of_row, "long", useArrow=kind == "row")


def pair(calls: Accumulator[int]) -> Called:
    """Return a function that counts its calls and gives a struct."""

    def of_row(value: int) -> dict[str, int]:
        calls.add(1)
        return {"x": value * 3 % 50}

    return F.udf(of_row, "struct<x:long>")


QUERIES = {
    "a key": ("row", "SELECT * FROM t JOIN u ON f(a) = b"),
    "a pickled function": ("pickled", "SELECT * FROM t JOIN u ON f(a) = b"),
    "a function of series": ("pandas", "SELECT * FROM t JOIN u ON f(a) = b"),
    "both keys": ("row", "SELECT * FROM t JOIN u ON f(a) = f(b)"),
    "a key of a key": ("row", "SELECT * FROM t JOIN u ON f(f(a)) = b"),
    "part of a key": ("row", "SELECT * FROM t JOIN u ON f(a) + 1 = b"),
    "no key": ("row", "SELECT * FROM t JOIN u ON f(a) + b = 30"),
    "an outer join": ("row", "SELECT * FROM t RIGHT JOIN u ON f(a) = b"),
    "a semijoin": ("pandas", "SELECT * FROM t LEFT SEMI JOIN u ON f(a) = b"),
    "EXISTS": ("row", "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE f(b) = a)"),
    "a value IN": ("row", "SELECT * FROM t WHERE f(a) IN (SELECT b FROM u)"),
    "IN values": ("row", "SELECT * FROM t WHERE a IN (SELECT f(b) FROM u)"),
    "a scalar": ("row", "SELECT * FROM t WHERE f(a) > (SELECT max(f(b)) FROM u WHERE u.k = t.k)"),
    "three inputs": ("row", "SELECT * FROM t JOIN u ON f(a) = b JOIN t AS v ON f(b) = v.a"),
    "a filter beside": ("row", "SELECT * FROM t JOIN u ON f(a) = b AND t.k < u.k WHERE f(b) > 9"),
    "a field of what is known": (
        "row",
        "SELECT * FROM t JOIN (SELECT b, g(b).x AS n FROM u) AS v ON t.a = g(v.b).x",
    ),
    "an array": ("row", "SELECT a, explode(sequence(0, f(a))) FROM t"),
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.usefixtures("views")
def test_a_function_is_called_no_more_often_than_in_plain_spark(
    spark: SparkSession, query: str
) -> None:
    kind, text = QUERIES[query]
    calls = spark.sparkContext.accumulator(0)
    spark.udf.register("f", triple(calls, kind))
    spark.udf.register("g", pair(calls))
    expected = sorted(map(tuple, spark.sql(text).collect()))
    plain = calls.value
    joins = "never" if query in {"a key", "no key"} else "auto"
    assert sorted(map(tuple, eddyline.adapt(spark.sql(text), joins=joins).collect())) == expected
    adapted = calls.value - plain
    assert 0 < adapted <= plain
    if query in {"a key", "EXISTS", "an array"}:
        with eddyline.enable(spark):
            assert sorted(map(tuple, spark.sql(text).collect())) == expected
        assert calls.value - plain - adapted <= plain


def test_an_array_that_is_exploded_is_made_once(spark: SparkSession) -> None:
    calls = spark.sparkContext.accumulator(0)

    def up_to(value: int) -> list[int]:
        calls.add(1)
        return list(range(value % 4))

    frame = spark.range(0, ROWS, 1, 2)
    exploded = frame.select("id", F.explode(F.udf(up_to, "array<long>")("id")))
    expected = sorted(map(tuple, exploded.collect()))
    assert calls.value == ROWS
    assert sorted(map(tuple, eddyline.adapt(exploded).collect())) == expected
    assert calls.value == 2 * ROWS


@pytest.mark.usefixtures("views")
def test_sides_that_spark_computes_once_are_left_to_it(spark: SparkSession) -> None:
    calls = spark.sparkContext.accumulator(0)
    spark.udf.register("f", triple(calls, "pandas"))
    bound = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    text = (
        "WITH c AS (SELECT a, k + 1 AS r FROM t WHERE f(a) > 9) "
        "SELECT x.a, y.a AS b FROM c AS x JOIN c AS y ON x.r = y.r"
    )
    try:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        expected = sorted(spark.sql(text).collect())
        assert calls.value == ROWS
        adapted = eddyline.adapt(spark.sql(text), joins="always")
        assert sorted(adapted.collect()) == expected
        assert calls.value <= 2 * ROWS
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(bound))


@pytest.mark.usefixtures("views")
def test_a_registered_function_of_itself_is_another_function(spark: SparkSession) -> None:
    """All calls of a registered function carry one identity in Spark's plans."""
    spark.udf.register("f", F.udf(lambda value: value * 3, "long"))
    text = (
        "WITH c AS (SELECT a, f(a) AS r FROM t) "
        "SELECT * FROM c AS x JOIN c AS y ON x.r = y.a WHERE y.r > 5"
    )
    found = eddyline.adapt(spark.sql(text)).collect()
    assert sorted(map(tuple, found)) == [(n, 3 * n, 3 * n, 9 * n) for n in range(1, ROWS // 3)]
    both = "SELECT a, f(f(a)), f(a) FROM t WHERE f(f(a)) > 90 AND f(a) % 2 = 0"
    expected = sorted(map(tuple, spark.sql(both).collect()))
    assert sorted(map(tuple, eddyline.adapt(spark.sql(both)).collect())) == expected


@pytest.mark.usefixtures("views")
def test_functions_that_spark_runs_in_one_go_are_all_reported(spark: SparkSession) -> None:
    """One kind is called with what another returns: with memories both are of one kind."""
    calls = spark.sparkContext.accumulator(0)
    spark.udf.register("f", triple(calls, "pandas"))
    spark.udf.register("h", triple(calls, "row"))
    adapted = eddyline.adapt(spark.sql("SELECT f(h(a)) AS r FROM t"))
    assert len(adapted.collect()) == ROWS
    records = [block.record for block in eddyline.report(adapted).blocks]
    assert len(records) == 2
    assert sum(record.calls for record in records if record is not None) == calls.value
