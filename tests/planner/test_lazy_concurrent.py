"""Concurrent functions are called where a value is needed: rows of plain UDFs, counted calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline

ANSWERS: dict[str, tuple[Callable[[int], Any], str]] = {
    "twice": (lambda value: value * 2, "long"),
    "text": (lambda value: f"s{value % 5}", "string"),
    "even": (lambda value: value % 2 == 0, "boolean"),
}

Then = Callable[[DataFrame], DataFrame]

# What is done with the adapted frame afterwards, and the calls that are made.
QUERIES: dict[str, tuple[str, Then | None, dict[str, int]]] = {
    "all": ("SELECT id, twice(u) AS r FROM few", None, {"twice": 12}),
    "count": ("SELECT id, twice(u) AS r FROM few", lambda df: df.groupBy().count(), {}),
    "dropped": ("SELECT id, twice(u), text(u) FROM few", lambda df: df.select("id"), {}),
    "dropped at once": ("SELECT id FROM (SELECT id, twice(u) AS r FROM few)", None, {}),
    "dropped beside a filter": (
        "SELECT id, twice(u) AS r FROM few WHERE even(id)",
        lambda df: df.select("id"),
        {"even": 12},
    ),
    "limit": ("SELECT id, twice(u) AS r FROM few", lambda df: df.limit(2), {"twice": 2}),
    "top": (
        "SELECT id, twice(u) + 1, b FROM few ORDER BY b DESC, id LIMIT 2",
        None,
        {"twice": 2},
    ),
    "a page": ("SELECT id, twice(u) FROM few ORDER BY id LIMIT 2 OFFSET 5", None, {"twice": 2}),
    "case": ("SELECT CASE WHEN id < 2 THEN twice(u) ELSE -1 END FROM few", None, {"twice": 2}),
    "coalesce": ("SELECT coalesce(have, twice(u)) FROM few", None, {"twice": 4}),
    "if": ("SELECT IF(id < 2, twice(u), twice(b)) FROM few", None, {"twice": 7}),
    "and": ("SELECT id < 2 AND even(u) FROM few", None, {"even": 2}),
    "filter clause": ("SELECT sum(twice(u)) FILTER (WHERE id < 2) FROM few", None, {"twice": 2}),
    "aggregate": (
        "SELECT b, sum(IF(id < 2, twice(u), 0)) FROM few GROUP BY b",
        None,
        {"twice": 2},
    ),
    "one decides on another": (
        "SELECT coalesce(IF(even(u), text(u), NULL), text(id + 5)) FROM few",
        None,
        {"even": 12, "text": 9},
    ),
    "a plain one decides": ("SELECT IF(small(u), twice(u), 0) FROM few", None, {"twice": 3}),
    "on a plain one": ("SELECT IF(even(u), small(u), false) FROM few", None, {"even": 12}),
    "one in another": ("SELECT IF(id < 3, twice(twice(u)), 0) FROM few", None, {"twice": 4}),
    "filter": (
        "SELECT id FROM few WHERE CASE WHEN id < 2 THEN even(u) ELSE true END",
        None,
        {"even": 2},
    ),
    "join": (
        "SELECT a.id, v FROM few a JOIN other b ON a.id = b.id AND IF(v < 4, even(v), true)",
        None,
        {"even": 2},
    ),
    "key of a join": (
        "SELECT few.id, v FROM few JOIN other ON coalesce(have, twice(u)) = other.id",
        None,
        {"twice": 4},
    ),
    "subquery": (
        "SELECT IF(id < (SELECT max(id) - 17 FROM other), twice(u), 0) FROM few",
        None,
        {"twice": 2},
    ),
}


@pytest.fixture(scope="module")
def _tables(spark: SparkSession) -> Iterator[None]:
    few = spark.range(0, 12, numPartitions=2).selectExpr(
        "id", "id % 7 AS b", "IF(id % 3 = 0, NULL, id) AS have", "id AS u"
    )
    few.createOrReplaceTempView("few")
    spark.range(20).selectExpr("id", "id * 2 AS v").createOrReplaceTempView("other")
    spark.udf.register("small", F.udf(lambda value: value < 3, "boolean"))
    yield
    for name in (*ANSWERS, "small"):
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


def counting(calls: Counter[str], name: str, answer: Callable[[int], Any]) -> Callable[[int], Any]:
    def called(value: int) -> Any:  # noqa: ANN401 - any function's
        calls[name] += 1
        return answer(value)

    return called


@pytest.mark.usefixtures("_tables")
@pytest.mark.parametrize("query", QUERIES)
def test_calls_are_made_where_the_value_is_needed(spark: SparkSession, query: str) -> None:
    statement, then, expected = QUERIES[query]

    def rows(df: DataFrame) -> list[str]:
        return sorted(map(repr, (df if then is None else then(df)).collect()))

    for name, (answer, kind) in ANSWERS.items():
        spark.udf.register(name, F.udf(answer, kind))
    of_plain = rows(spark.sql(statement))
    calls: Counter[str] = Counter()
    for name, (answer, kind) in ANSWERS.items():
        concurrent = eddyline.concurrent(counting(calls, name, answer), returns=kind)
        spark.udf.register(name, concurrent)
    assert rows(eddyline.adapt(spark.sql(statement))) == of_plain
    assert calls == expected


REPORTED: dict[str, tuple[int, int]] = {
    "SELECT twice(n) FROM some": (12, 36),
    "SELECT sum(twice(n)), min(even(n)) FROM some": (24, 72),
    "SELECT n, count(*) FROM some WHERE even(n) GROUP BY n": (12, 36),
    "SELECT twice(twice(n)) FROM some": (18, 72),
    "SELECT IF(id < 20, twice(n), 0) FROM some": (12, 36),
    "SELECT CASE WHEN even(n) THEN twice(n) END FROM some": (18, 72),
    "SELECT id FROM some WHERE twice(n) IN (SELECT id FROM some)": (12, 36),
}
"""Calls that are made, and those of plain Spark: each argument comes three times."""


@pytest.mark.usefixtures("_tables")
def test_the_report_counts_what_the_functions_count(spark: SparkSession) -> None:
    some = spark.range(0, 36, 1, 3).selectExpr("id", "id % 12 AS n")
    some.createOrReplaceTempView("some")
    found = {}
    for statement in REPORTED:
        calls: Counter[str] = Counter()
        for name, (answer, kind) in ANSWERS.items():
            concurrent = eddyline.concurrent(counting(calls, name, answer), returns=kind)
            spark.udf.register(name, concurrent)
        adapted = eddyline.adapt(spark.sql(statement))
        adapted.collect()
        report = eddyline.report(adapted)
        compared = report.to_dict()["compared"]
        found[statement] = compared["calls"], compared["plain_calls"]
        assert compared["calls"] == calls.total() == sum(each.calls for each in report.called)
    assert found == REPORTED
