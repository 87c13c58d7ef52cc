"""Concurrent functions over the rows of lookup tables: what binds these is adapted first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.errors import UnboundLookupError

NUMBERS = range(40)
calls: Counter[str] = Counter()


@eddyline.concurrent(returns="boolean")
async def seventh(text: str) -> bool:
    calls[text] += 1
    return text.endswith("7")


@eddyline.concurrent(returns="boolean")
async def even(number: int) -> bool:
    return number % 2 == 0


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession) -> None:
    """Numbers to scan, and texts by number that are looked up, under two names."""
    spark.range(len(NUMBERS)).withColumnRenamed("id", "k").createOrReplaceTempView("numbers")
    source = eddyline.PythonLookup(lambda keys: [(key, f"text {key}") for key in keys])
    for name in ("texts", "others"):
        eddyline.lookup_table(spark, name, "n long, text string", ["n"], source)


def joined(spark: SparkSession) -> DataFrame:
    return spark.table("numbers").join(spark.table("texts"), F.col("k") == F.col("n"))


Query = Callable[[DataFrame], DataFrame]

TOO_EARLY: dict[str, tuple[Query, str]] = {
    "a filter": (lambda df: df.where(seventh("text")), "seventh"),
    "of both sides": (
        lambda df: df.where(seventh(F.concat("text", F.col("k").cast("string")))),
        "seventh",
    ),
    "of the other side": (lambda df: df.where(even("k")), "even"),
    "in a chain": (
        lambda df: df.join(
            df.sparkSession.table("others").alias("o"), F.col("k") == F.col("o.n")
        ).where(seventh("o.text")),
        "seventh",
    ),
    "constants": (
        lambda df: df.sparkSession.table("texts").where("n = 7").where(seventh("text")),
        "seventh",
    ),
}


@pytest.mark.parametrize("name", TOO_EARLY)
def test_a_function_that_is_called_before_the_join_is_named(spark: SparkSession, name: str) -> None:
    query, function = TOO_EARLY[name]
    said = rf"cannot be asked: {function} is a concurrent function.*joined\).where\({function}\("
    for face in (eddyline.adapt, eddyline.explain):
        with pytest.raises(UnboundLookupError, match=said):
            face(query(joined(spark)))


def test_what_the_error_says_can_be_written(spark: SparkSession) -> None:
    calls.clear()
    first = eddyline.adapt(joined(spark))
    rows = eddyline.adapt(first.where(seventh("text") & even("k"))).select("k", "text").collect()
    assert rows == []
    rows = eddyline.adapt(first.where(seventh("text"))).select("k", "text").collect()
    assert Counter(map(tuple, rows)) == Counter((n, f"text {n}") for n in NUMBERS if n % 10 == 7)
    one = eddyline.adapt(spark.table("texts").where("n = 7"))
    assert eddyline.adapt(one.where(seventh("text"))).count() == 1


def test_each_text_is_asked_about_once(spark: SparkSession) -> None:
    calls.clear()
    twice = spark.table("numbers").union(spark.table("numbers"))
    first = eddyline.adapt(twice.join(spark.table("texts"), F.col("k") == F.col("n")))
    assert eddyline.adapt(first.where(seventh("text"))).count() == 8
    assert calls == {f"text {n}": 1 for n in NUMBERS}


def test_values_in_a_select_list_need_no_second_step(spark: SparkSession) -> None:
    rows = eddyline.adapt(joined(spark).select("k", seventh("text").alias("is"))).collect()
    assert sorted(map(tuple, rows)) == [(n, n % 10 == 7) for n in NUMBERS]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        # There is no other table that could give values, be it with or without the function.
        ("SELECT k FROM numbers JOIN texts ON k > n", "no values for n"),
        ("SELECT count(1) FROM texts", "nothing about n"),
    ],
)
def test_a_function_is_not_named_for_what_it_does_not_do(
    spark: SparkSession, query: str, message: str
) -> None:
    for df in (spark.sql(query), spark.sql(query).toDF("x").where(even("x"))):
        with pytest.raises(UnboundLookupError, match=message):
            eddyline.adapt(df)
