"""One predicate over the rows of one join is Spark's; where there is an order, the eddy joins."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.blocks.decline import DeclineReason

ONE = {
    "a predicate": "SELECT a.id, b.id FROM a JOIN b ON a.k = b.k WHERE near(a.v, b.v)",
    "with more conditions": """SELECT a.id, b.id FROM a JOIN b ON a.k = b.k AND a.id < b.id
        WHERE near(a.v, b.v) AND a.v > 3""",
    "of two functions": """SELECT a.id, b.id FROM a JOIN b ON a.k = b.k
        WHERE near(a.v, b.v) = near(a.id, b.v)""",
    "and values": "SELECT half(a.v), b.id FROM a JOIN b ON a.k = b.k WHERE near(a.v, b.v)",
}
SEVERAL = {
    "two predicates": """SELECT a.id, b.id FROM a JOIN b ON a.k = b.k
        WHERE near(a.v, b.v) AND near(a.id, b.v)""",
    "an or": "SELECT a.id, b.id FROM a JOIN b ON a.k = b.k WHERE near(a.v, b.v) OR half(a.id) = 2",
    "a case": """SELECT a.id, b.id FROM a JOIN b ON a.k = b.k
        WHERE CASE WHEN a.id > b.id THEN near(a.v, b.v) ELSE near(a.id, b.id) END""",
    "functions that Spark calls below": """SELECT a.id, b.id FROM a JOIN b ON a.k = b.k
        WHERE half(a.v) > half(b.v)""",
    "one of them": "SELECT a.id, b.id FROM a JOIN b ON a.k = b.k WHERE half(a.v) > b.v",
    "a value that Spark computes below": """SELECT a.h, b.id
        FROM (SELECT *, half(v) AS h FROM a) a JOIN b ON a.k = b.k WHERE near(a.v, b.v)""",
    "an equality that is no key": """SELECT a.id, b.id FROM a JOIN b ON a.k + b.k = 4
        WHERE near(a.v, b.v)""",
    "no key": "SELECT a.id, b.id FROM a JOIN b ON a.k < b.k WHERE near(a.v, b.v)",
    "three inputs": """SELECT a.id, b.id, c.id FROM a JOIN b ON a.k = b.k JOIN c ON b.v = c.v
        WHERE near(a.v, c.id)""",
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> SparkSession:
    """A session of three tables and two functions."""
    session = spark.newSession()
    for number, name in enumerate("abc"):
        rows = session.range(number, 40, 1, 1).selectExpr(
            "id", "id % 5 AS k", f"id * {number + 2} % 37 AS v"
        )
        rows.createOrReplaceTempView(name)
    session.udf.register("near", F.udf(lambda one, other: abs(one - other) < 9, "boolean"))
    session.udf.register("half", F.udf(lambda number: number // 2, "bigint"))
    return session


def joins_in_eddies(session: SparkSession, sql: str, joins: str = "auto") -> bool:
    """Tell whether the eddy joins, after a look at the rows."""
    plain = session.sql(sql)
    adapted = eddyline.adapt(plain, joins=joins)
    rows = adapted.collect()
    assert sorted(rows) == sorted(plain.collect())
    assert rows
    records = (block.record for block in eddyline.report(adapted).blocks)
    return any(record is not None and record.join is not None for record in records)


@pytest.mark.parametrize("sql", ONE.values(), ids=ONE)
def test_spark_joins_where_nothing_can_be_reordered(tables: SparkSession, sql: str) -> None:
    assert not joins_in_eddies(tables, sql)
    left = eddyline.explain(tables.sql(sql)).left
    assert [each.reason for each in left] == [DeclineReason.FEWER_THAN_TWO_TERMS]
    assert joins_in_eddies(tables, sql, "always")


@pytest.mark.parametrize("sql", SEVERAL.values(), ids=SEVERAL)
def test_the_eddy_joins_where_there_is_an_order(tables: SparkSession, sql: str) -> None:
    assert joins_in_eddies(tables, sql)
