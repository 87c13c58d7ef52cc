"""Rewritten plans over tables of version 2 pass Spark's own validation, as all others do.

The session of the tests validates every plan (see :mod:`tests.validated`), so that to run
one is to check it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everyone writes it
from pyspark.sql.functions import col

from eddyline.planner.adapt import adapt
from tests.planner.shapes import Numbers, even, good, other, plus, score, session, table
from tests.validated import VALIDATED

pytestmark = pytest.mark.slow(35)

Source = Callable[[], DataFrame]

KINDS: Final = ("Parquet of version 2", "Python data source")  # of version 1 are all other tests


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return session()


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    table(spark).select("id", "n", "text").write.parquet(str(folder / "rows"))
    other(spark).write.parquet(str(folder / "others"))
    return folder


@pytest.fixture(params=KINDS)
def source(spark: SparkSession, folder: Path, request: pytest.FixtureRequest) -> Iterator[Source]:
    """Return what reads a table with the columns ``id`` and ``n``, anew each time."""
    if request.param == "Python data source":
        spark.dataSource.register(Numbers)
        yield lambda: spark.read.format("numbers_of_tests").load()
        return
    if request.param == "Parquet of version 2":
        spark.conf.set("spark.sql.sources.useV1SourceList", "")
    yield lambda: spark.read.parquet(str(folder / "rows")).select("id", "n")
    spark.conf.unset("spark.sql.sources.useV1SourceList")


def rows(df: DataFrame) -> list[str]:
    """Return the bag of rows."""
    return sorted(repr(tuple(row)) for row in df.collect())


def two(df: DataFrame) -> DataFrame:
    """Return a table filtered by two functions."""
    return df.filter(good("id") & even("id"))


def assert_same(df: DataFrame, fast: DataFrame) -> None:
    """Check an adapted DataFrame against the plain one."""
    assert fast is not df
    assert fast.schema == df.schema
    expected = rows(df)
    assert expected
    assert rows(fast) == expected


def test_the_session_validates(spark: SparkSession) -> None:
    assert {key: spark.conf.get(key) for key in VALIDATED} == VALIDATED


@pytest.mark.parametrize(
    "build",
    [
        two,
        lambda df: df.filter(good("id") & (score("id") > 0.3)).select("n", score("id").alias("s")),
        lambda df: df.filter(good("id") & score("id").isNotNull()).select(score("id").alias("s")),
        lambda df: two(df).groupBy("n").agg(F.sum("id")),
        lambda df: two(two(df).orderBy("id").limit(8).filter(plus("n") > 0)),
        lambda df: two(df).unionAll(two(df)),
        lambda df: two(df).alias("a").join(two(df).alias("b"), col("a.n") == col("b.n"), "left"),
        lambda df: df.join(two(df).groupBy("n").agg(F.max("id").alias("m")), "n"),
    ],
    ids=["filter", "value", "not null", "group", "blocks", "union", "outer join", "join"],
)
def test_around_filters(source: Source, build: Callable[[DataFrame], DataFrame]) -> None:
    df = build(source())
    assert_same(df, adapt(df, joins="never"))


def test_in_a_subquery(spark: SparkSession, source: Source) -> None:
    two(source()).createOrReplaceTempView("kept_below")
    source().createOrReplaceTempView("all_above")
    df = spark.sql("SELECT * FROM all_above WHERE id < (SELECT max(id) - 3 FROM kept_below)")
    assert_same(df, adapt(df))


@pytest.mark.parametrize("small", ["10MB", "-1"], ids=["in place", "shuffled"])
@pytest.mark.parametrize("itself", [False, True], ids=["another", "itself"])
def test_joins(
    spark: SparkSession, source: Source, folder: Path, small: str, *, itself: bool
) -> None:
    # Columns of a block have such names on their way.
    left = source().withColumnsRenamed({"id": "c0", "n": "m1"})
    right = source() if itself else spark.read.parquet(str(folder / "others"))
    key, number = ("id", "n") if itself else ("key", "grade")
    joined = left.join(right, col("c0") == col(key)).filter(good("m1") & even(number))
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", small)
    try:
        fast = adapt(joined, joins="always")
        assert_same(joined, fast)
        both = (each.alias("a").join(each.alias("b"), "c0") for each in (joined, fast))
        expected, found = map(rows, both)
        assert found == expected
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


@pytest.mark.parametrize("small", ["10MB", "-1"], ids=["in place", "shuffled"])
def test_what_is_never_null_stays_so_through_a_join(spark: SparkSession, small: str) -> None:
    """The columns of ``range`` are never NULL, and what is above relies on it."""
    right = spark.range(50).select("id", col("id").alias("v"), (col("id") + 1).alias("w"))
    df = spark.range(100).alias("a").join(right.alias("b"), col("a.id") == col("v"))
    df = df.filter(good("a.id") & even("b.id"))
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", small)
    try:
        assert_same(df, adapt(df, joins="always"))
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_identities_are_those_of_the_original(source: Source) -> None:
    df = two(source())
    assert rows(adapt(df).filter(df.n > 2).select(df.id)) == rows(df.filter(df.n > 2).select("id"))


def test_joined_with_itself_and_with_the_original(source: Source) -> None:
    df = two(source())
    fast = adapt(df)
    for left, right in ((fast, fast), (df, fast)):
        joined = left.alias("a").join(right.alias("b"), col("a.n") == col("b.n"))
        plain = df.alias("a").join(df.alias("b"), col("a.n") == col("b.n"))
        assert rows(joined.select("a.id", "b.n")) == rows(plain.select("a.id", "b.n"))


def test_adapted_again(source: Source) -> None:
    df = two(source()).filter(plus("n") > 1).filter(good("n"))
    again = adapt(adapt(two(source())).filter((plus("n") > 1) & good("n")))
    assert rows(again) == rows(df)


def test_cached(source: Source) -> None:
    expected = rows(two(source()))
    cached = source().cache()
    fast = adapt(two(cached)).cache()
    try:
        assert rows(fast) == expected
    finally:
        fast.unpersist()
        cached.unpersist()


def test_written(source: Source, tmp_path: Path, spark: SparkSession) -> None:
    adapt(two(source())).write.parquet(str(tmp_path / "kept"))
    assert rows(spark.read.parquet(str(tmp_path / "kept"))) == rows(two(source()))


def test_a_stream_of_version_2(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 30).load()
    kept = adapt(stream.filter(good("value") & even("value")).select("value"))
    writer = kept.writeStream.format("memory").queryName("valid_stream")
    assert writer.trigger(availableNow=True).start().awaitTermination(120)
    values = {row.value for row in spark.table("valid_stream").collect()}
    assert {2, 4, 8, 10} <= values
    assert not values & {0, 1, 3, 5, 6, 9}
