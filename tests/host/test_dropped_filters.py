"""Filters by functions of partition columns, which Spark drops where files are of version 2."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BooleanType, LongType

import eddyline
from eddyline.quirks.pyspark_at_hand import MINOR

SOURCES = "spark.sql.sources.useV1SourceList"
TOLD = MINOR > (4, 0)
"""Whether a scan in a plan names the filters that were pushed to it; else nobody can keep them."""

FORMATS = ("parquet", "csv", "json")

even = F.udf(lambda n: n % 2 == 0, BooleanType())
odd = F.udf(lambda n: n % 2 == 1, BooleanType())
next_one = F.udf(lambda n: n + 1, LongType())
even_sum = F.udf(lambda a, b: (a + b) % 2 == 0, BooleanType())

QUERIES = (
    "SELECT id FROM files_parquet WHERE even(p)",
    "SELECT id FROM files_csv WHERE even(p) AND v > 4",
    "SELECT id FROM files_json WHERE odd(p) AND even(id) AND p < 3",
    "SELECT id FROM (SELECT id, p + 1 AS q FROM files_parquet) WHERE even(q)",
    "SELECT id FROM (SELECT id, even(p) AS e FROM files_parquet) WHERE e",
    "SELECT id FROM files_parquet WHERE NOT (even(p) OR odd(id))",
    "SELECT id FROM files_parquet WHERE CASE WHEN p > 0 THEN even(p) ELSE r = 1 END",
    "SELECT max(id) AS id FROM files_parquet GROUP BY p HAVING even(p)",
    "SELECT a.id FROM files_parquet a JOIN files_csv b ON a.id = b.id AND even(a.p) AND odd(b.r)",
    "SELECT a.id FROM files_parquet a LEFT JOIN files_csv b ON a.id = b.id AND even(b.p)",
    "SELECT id FROM files_csv WHERE id IN (SELECT id FROM files_json WHERE even(p))",
    "SELECT id FROM files_csv WHERE id = (SELECT max(id) FROM files_json WHERE even(p))",
    "WITH t AS (SELECT * FROM files_json) SELECT id FROM t WHERE even(p)",
    "SELECT id FROM (SELECT id, p FROM files_csv UNION ALL TABLE numbers) WHERE odd(p)",
    "SELECT id FROM files_parquet WHERE even(next_one(p))",
    "SELECT id FROM files_parquet WHERE even_sum(p, id) AND p > 0",
)
ALL = "\nUNION ALL\n".join(
    f"SELECT {n} AS query, id FROM ({query})"  # noqa: S608 - made here
    for n, query in enumerate(QUERIES)
)


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of all formats, in partitions, and the functions of the queries."""
    folder = tmp_path_factory.mktemp("files")
    rows = spark.range(16).selectExpr("id", "id % 4 AS p", "id % 3 AS r", "id * 2 AS v").coalesce(1)
    for kind in FORMATS:
        rows.write.partitionBy("p", "r").format(kind).save(str(folder / kind))
    spark.range(5).selectExpr("id", "id AS p").createOrReplaceTempView("numbers")
    functions = {"even": even, "odd": odd, "next_one": next_one, "even_sum": even_sum}
    for name, function in functions.items():
        spark.udf.register(name, function)
    return folder


@pytest.fixture
def expected(spark: SparkSession, files: Path) -> Iterator[Counter[Row]]:
    """The rows that there are, read by version 1; what is read from then on is so by version 2."""
    read(spark, files)
    rows = Counter(spark.sql(ALL).collect())
    before = str(spark.conf.get(SOURCES))
    spark.conf.set(SOURCES, "")
    read(spark, files)
    yield rows
    spark.conf.set(SOURCES, before)


def read(spark: SparkSession, files: Path) -> None:
    for kind in FORMATS:
        rows = spark.read.format(kind).schema("id long, v long, p long, r long")
        rows.load(str(files / kind)).createOrReplaceTempView(f"files_{kind}")


def test_no_filter_is_dropped(
    spark: SparkSession, expected: Counter[Row], caplog: pytest.LogCaptureFixture
) -> None:
    if not TOLD:
        plain = Counter(spark.sql(ALL).collect())
        assert plain != expected
        expected = plain
    with caplog.at_level(logging.WARNING, "eddyline"):
        adapted = eddyline.adapt(spark.sql(ALL))
    assert Counter(adapted.collect()) == expected
    assert ("Spark drops these filters" in caplog.text) == TOLD
    caplog.clear()
    with caplog.at_level(logging.WARNING, "eddyline"), eddyline.enable(spark):
        assert Counter(spark.sql(ALL).collect()) == expected
    assert ("Spark drops these filters" in caplog.text) == TOLD


@pytest.mark.usefixtures("expected")
def test_what_is_dropped_is_said(spark: SparkSession) -> None:
    def dropped(df: DataFrame) -> tuple[str, ...]:
        explanation = eddyline.explain(df)
        assert ("Spark drops these filters" in str(explanation)) == bool(explanation.dropped)
        assert eddyline.explain(eddyline.adapt(df)).dropped == explanation.dropped
        return explanation.dropped

    found = [dropped(spark.sql(QUERIES[n])) for n in (0, 5, 8)]
    named = [("even(p)",), ("(NOT even(p))",), ("even(p)", "odd(r)")]
    assert found == (named if TOLD else [()] * 3)
    assert dropped(spark.sql(QUERIES[-1])) == ()
    assert dropped(spark.sql("SELECT id, even(p) FROM files_json WHERE p > 1 AND odd(v)")) == ()
