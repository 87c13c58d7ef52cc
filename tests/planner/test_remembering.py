"""Functions that remember: rows of plain Spark, and a call for each distinct tuple of arguments."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.planner.adapt import adapted_blocks

pytestmark = pytest.mark.slow(25)

ROWS, DISTINCT = 20_000, 50

VECTORIZED: Any = F  # of which the type checker does not know all


@pytest.fixture(scope="module")
def numbers(spark: SparkSession) -> Iterator[DataFrame]:
    frame = spark.range(0, ROWS, numPartitions=2).selectExpr(
        "id", f"id * 7919 % {DISTINCT} AS few", f"'n' || (id % {DISTINCT}) AS text"
    )
    frame.cache().count()
    yield frame
    frame.unpersist()


class Counted:
    """A function that counts its calls in an accumulator."""

    def __init__(self, spark: SparkSession) -> None:
        self.calls = spark.sparkContext.accumulator(0)

    def triple(self, kind: str) -> Callable[..., Any]:
        calls = self.calls

        def of_row(value: int) -> int:
            calls.add(1)
            return value * 3

        def of_series(values: pd.Series) -> pd.Series:
            calls.add(len(values))
            return values * 3

        def of_array(values: pa.Array) -> pa.Array:
            calls.add(len(values))
            return pa.array(values.to_numpy(zero_copy_only=False) * 3)

        made: Callable[..., Any]
        if kind == "row":
            made = F.udf(of_row, "long")
        elif kind == "pickled":
            made = F.udf(of_row, "long", useArrow=False)
        elif kind == "pandas":
            made = VECTORIZED.pandas_udf(of_series, "long")
        else:
            made = VECTORIZED.arrow_udf(of_array, "long")
        return made


KINDS = ["row", "pickled", "pandas", "arrow"]
QUERIES: dict[str, Callable[[DataFrame, Callable[..., Any]], DataFrame]] = {
    "filter": lambda frame, triple: frame.filter(triple("few") > 30),
    "not understood": lambda frame, triple: frame.filter(F.hex(triple("few")) > "30"),
    "select list": lambda frame, triple: frame.select("id", triple("few").alias("t")),
    "aggregate": lambda frame, triple: frame.groupBy("text").agg(F.sum(triple("few"))),
    "group": lambda frame, triple: frame.groupBy(triple("few")).count(),
    "generator": lambda frame, triple: frame.select(
        "id",
        F.explode(F.array(triple("few"), triple("few"))),
    ),
    "condition of a join": lambda frame, triple: frame.join(
        frame.select(F.col("id").alias("other")).limit(100),
        triple("few") == F.col("other"),
    ),
    "in a subquery": lambda frame, triple: frame.filter(
        F.col("id") < frame.select(F.max(triple("few"))).scalar()
    ),
}


def rows(df: DataFrame) -> list[str]:
    return sorted(map(repr, df.collect()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", QUERIES)
def test_a_function_is_called_for_distinct_arguments(
    spark: SparkSession, numbers: DataFrame, query: str, kind: str
) -> None:
    plain, counted = Counted(spark), Counted(spark)
    expected = rows(QUERIES[query](numbers, plain.triple(kind)))
    adapted = eddyline.adapt(QUERIES[query](numbers, counted.triple(kind)))
    assert rows(adapted) == expected
    assert adapted_blocks(adapted)
    assert DISTINCT <= counted.calls.value <= 4 * DISTINCT  # processes, and places in the plan
    assert plain.calls.value >= ROWS - DISTINCT  # as often as there are rows


@pytest.mark.parametrize("how", ["count", "another column"])
def test_values_that_nobody_asks_for_are_not_computed(
    spark: SparkSession, numbers: DataFrame, how: str
) -> None:
    counted = Counted(spark)
    adapted = eddyline.adapt(numbers.select("id", counted.triple("row")("few").alias("t")))
    if how == "count":
        assert adapted.count() == ROWS
    else:
        assert len(adapted.select("id").collect()) == ROWS
    assert counted.calls.value == 0


def test_what_a_filter_above_drops_is_not_asked_about(
    spark: SparkSession, numbers: DataFrame
) -> None:
    counted = Counted(spark)
    adapted = eddyline.adapt(numbers.select("few", counted.triple("row")("id").alias("t")))
    assert adapted.filter("few = 3").count() == ROWS // DISTINCT
    assert adapted.filter("few = 3").agg(F.sum("t")).first() is not None
    assert counted.calls.value == ROWS // DISTINCT


def test_a_filter_keeps_rows_from_the_next_function(
    spark: SparkSession, numbers: DataFrame
) -> None:
    """Two filters over two kinds of functions are a barrier in plain Spark, and stay one."""

    def build(counted: Counted) -> DataFrame:
        few = numbers.filter(F.hex(VECTORIZED.pandas_udf(lambda v: v % 10, "long")("few")) == "1")
        return few.filter(F.hex(counted.triple("row")("id")) != "0")

    plain, counted = Counted(spark), Counted(spark)
    assert rows(eddyline.adapt(build(counted))) == rows(build(plain))
    assert counted.calls.value == plain.calls.value == ROWS // 10


def test_the_next_action_calls_anew(spark: SparkSession, numbers: DataFrame) -> None:
    counted = Counted(spark)
    adapted = eddyline.adapt(numbers.filter(counted.triple("row")("few") > 30))
    adapted.count()
    first = counted.calls.value
    adapted.count()
    assert counted.calls.value >= first + DISTINCT


def test_closures_are_kept_apart(numbers: DataFrame) -> None:
    def times(factor: int) -> Callable[..., Any]:
        return F.udf(lambda value: value * factor, "long")

    frame = numbers.select(times(2)("few").alias("two"), times(5)("few").alias("five"), "few")
    found = eddyline.adapt(frame).filter("two <> 2 * few OR five <> 5 * few OR two IS NULL")
    assert found.count() == 0


def test_remembering_can_be_switched_off(spark: SparkSession, numbers: DataFrame) -> None:
    counted = Counted(spark)
    frame = numbers.filter(counted.triple("row")("few") > 30)
    assert eddyline.adapt(frame, remember=False) is frame
    other = numbers.filter((counted.triple("row")("few") > 30) & F.udf(bool, "boolean")("id"))
    eddyline.adapt(other, remember=False, policy="static").count()
    assert counted.calls.value == ROWS
    with pytest.raises(TypeError, match="remember is True or False, not 1"):
        eddyline.adapt(frame, remember=1)  # type: ignore[arg-type]


def test_a_function_can_be_marked(spark: SparkSession, numbers: DataFrame) -> None:
    calls = spark.sparkContext.accumulator(0)

    @F.udf("long")
    @eddyline.forgetful
    def triple(value: int) -> int:
        calls.add(1)
        return value * 3

    frame = numbers.filter(triple("few") > 30)
    assert eddyline.adapt(frame) is frame
    two = numbers.filter((triple("few") > 30) & F.udf(lambda n: n >= 0, "boolean")("few"))
    assert eddyline.adapt(two, policy="static").count() == two.count()
    assert calls.value == 2 * ROWS


def test_what_is_not_deterministic_is_called_for_every_row(
    spark: SparkSession, numbers: DataFrame
) -> None:
    calls = spark.sparkContext.accumulator(0)

    def draw(value: int) -> int:
        calls.add(1)
        return value

    drawn = F.udf(draw, "long").asNondeterministic()
    assert eddyline.adapt(numbers.select(drawn("few").alias("d"))).filter("d >= 0").count() == ROWS
    assert calls.value == ROWS


@pytest.mark.parametrize("kind", ["row", "pandas"])
def test_an_error_is_raised_as_in_plain_spark(numbers: DataFrame, kind: str) -> None:
    def divide(value: int) -> int:
        return 10 // (value - 7)

    def divide_all(values: pd.Series) -> pd.Series:
        return values.map(divide)

    made = F.udf(divide, "long") if kind == "row" else VECTORIZED.pandas_udf(divide_all, "long")
    frame = numbers.select(made("few").alias("q"))
    for each in (frame, eddyline.adapt(frame)):
        with pytest.raises(Exception, match="ZeroDivisionError"):
            each.collect()
    fine = numbers.filter("few <> 7").select("id", made("few").alias("q"))
    assert rows(eddyline.adapt(fine)) == rows(fine)


def test_an_error_is_that_of_its_arguments(spark: SparkSession, numbers: DataFrame) -> None:
    """In an eddy an error counts only if nothing else drops the row, however often it comes."""
    calls = spark.sparkContext.accumulator(0)

    def fail(value: int) -> bool:
        calls.add(1)
        if value == 3:
            raise ValueError(value)
        return True

    frame = numbers.filter(
        F.udf(fail, "boolean")("few") & F.udf(lambda value: value != 3, "boolean")("few")
    )
    assert eddyline.adapt(frame).count() == ROWS - ROWS // DISTINCT
    assert calls.value <= 2 * DISTINCT


def test_arguments_and_results_that_are_changed_by_the_function(spark: SparkSession) -> None:
    held: list[list[int]] = []

    def push(values: list[int]) -> list[int]:
        values.append(1)
        held.append(values)
        held[0].append(2)  # a result of before
        return values

    frame = spark.range(0, 100, numPartitions=1).selectExpr("array(id % 3) AS few", "id")
    found = eddyline.adapt(frame.select("id", F.udf(push, "array<long>")("few").alias("p")))
    for row in found.collect():
        assert row.p[:2] == [row.id % 3, 1]


AWKWARD: dict[str, list[Any]] = {
    "double": [0.0, -0.0, float("nan"), None, 1.5],
    "float": [0.0, -0.0, float("nan"), None],
    "string": ["", "a", "a ", None, "é", "e\u0301"],
    "binary": [b"", b"\0", None],
    "boolean": [True, False, None],
    "byte": [1, -1, None],
    "decimal(38,2)": [decimal.Decimal("0.00"), decimal.Decimal("-1.10"), None],
    "date": [dt.date(2020, 2, 29), None],
    "timestamp": [dt.datetime(2020, 2, 29, 12, tzinfo=dt.UTC), None],
    "timestamp_ntz": [dt.datetime(2020, 2, 29, 12), None],  # noqa: DTZ001 - naive is what it is
    "array<double>": [[], [0.0], [-0.0], [None], None, [float("nan")]],
    "map<string,int>": [{}, {"a": 1}, {"a": None}, None],
    "struct<a:int,b:array<string>>": [(1, []), (1, None), (None, None), None, (1, [""])],
}


@pytest.mark.parametrize("kind", AWKWARD)
@pytest.mark.parametrize("arrow", [True, False])
def test_arguments_of_every_type(spark: SparkSession, kind: str, arrow: bool) -> None:  # noqa: FBT001 - a parameter
    values: list[Any] = AWKWARD[kind]
    data = [(n, values[n % len(values)], values[n // 3 % len(values)]) for n in range(300)]
    frame = spark.createDataFrame(data, f"id int, a {kind}, b {kind}").repartition(2, "id").cache()
    shown = F.udf(lambda one, other: f"{one!r} {other!r}", "string", useArrow=arrow)
    query = frame.select("id", shown("a", "b").alias("both"), shown("b", "b").alias("same"))
    query = query.filter(F.udf(lambda one: "x" not in repr(one), "boolean")("a"))
    assert rows(eddyline.adapt(query)) == rows(query)
    frame.unpersist()


def test_the_report_tells_what_was_remembered(numbers: DataFrame) -> None:
    adapted = eddyline.adapt(numbers.select(F.udf(lambda n: n + 1, "long")("few").alias("n")))
    adapted.agg(F.sum("n")).collect()
    report = eddyline.report(adapted)
    (block,) = report.blocks
    assert block.record is not None
    (function,) = block.record.functions
    assert function.calls + function.remembered == function.calls_possible == ROWS
    assert function.calls <= 2 * DISTINCT
    assert function.distinct == DISTINCT
    assert function.memory_bytes > DISTINCT * 8
    assert "answered from memory (50 argument tuples cached," in " ".join(str(report).split())
    assert ">Cached<" in report._repr_html_()
    assert "computes <lambda>" in str(eddyline.explain(adapted))


def test_a_stream_remembers_within_a_micro_batch(spark: SparkSession, tmp_path: object) -> None:
    frame = spark.range(0, 1_000, numPartitions=2).selectExpr("id % 10 AS few")
    frame.write.parquet(f"{tmp_path}/in")
    counted = Counted(spark)
    stream = spark.readStream.schema("few long").parquet(f"{tmp_path}/in")
    adapted = eddyline.adapt(stream.select(counted.triple("row")("few").alias("t")))
    writing = adapted.writeStream.format("memory").queryName("tripled")
    writing.trigger(availableNow=True).start().awaitTermination()
    try:
        found = spark.table("tripled").groupBy("t").count().collect()
        assert sorted(map(tuple, found)) == [(3 * n, 100) for n in range(10)]
        assert counted.calls.value <= 20
    finally:
        spark.catalog.dropTempView("tripled")


TOP: dict[str, Callable[[DataFrame, Callable[..., Any]], DataFrame]] = {
    "a column": lambda frame, triple: frame.select("id", triple("few").alias("t")).orderBy(
        F.desc("id")
    ),
    "something computed": lambda frame, triple: frame.select(
        (F.col("id") % 1_000).alias("rest"), (triple("few") + 1).alias("t"), "id"
    ).orderBy("rest", "id"),
    "what is not shown": lambda frame, triple: frame.orderBy(F.desc("id")).select(
        triple("few").alias("t")
    ),
    "a name for two": lambda frame, triple: frame.select(
        F.col("few").alias("id"), triple("few").alias("few"), F.col("id").alias("key")
    ).orderBy("key"),
}


@pytest.mark.parametrize("by", TOP)
@pytest.mark.parametrize("remember", [True, False])
def test_the_first_rows_are_found_before_functions_are_called(
    spark: SparkSession,
    numbers: DataFrame,
    by: str,
    remember: bool,  # noqa: FBT001 - a parameter
) -> None:
    plain, counted = Counted(spark), Counted(spark)
    expected = TOP[by](numbers, plain.triple("row")).limit(10).collect()
    adapted = eddyline.adapt(TOP[by](numbers, counted.triple("row")).limit(10), remember=remember)
    assert adapted.collect() == expected  # in this order
    assert counted.calls.value <= 10


def test_rows_that_are_sorted_by_a_function_are_all_asked_about(
    spark: SparkSession, numbers: DataFrame
) -> None:
    counted = Counted(spark)
    frame = numbers.select("id", counted.triple("row")("few").alias("t"))
    top = frame.orderBy(F.desc("t"), "id").limit(10)
    expected = top.collect()
    assert counted.calls.value == ROWS
    assert eddyline.adapt(top).collect() == expected
    assert eddyline.adapt(top, remember=False) is top
