"""``adapt`` on Spark: the same rows or the same failure, whatever happens on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import and_, or_
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.pandas import functions as vectorized

import eddyline
from eddyline.engine.policies.catalogue import PolicyName
from eddyline.errors import UnknownPolicyError
from eddyline.expressions import (
    And,
    Argument,
    Call,
    Case,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Not,
    Or,
)
from eddyline.reports.records import TaskRecord
from eddyline.tasks.task_records import REPORTED_BLOCKS, RecordsParam
from tests.predicates import ERROR, FUNCTIONS, RAISE, TABLES, TRUE, accepted, predicates, result_of
from tests.properties import examples

ROWS = [
    (
        number,
        None if number % 11 == 0 else number % 10,
        None if number % 7 == 0 else number // 3 % 10,
    )
    for number in range(60)
]
"""Row number, and the two columns that predicates look at, with NULLs."""

VECTORIZED: Any = vectorized  # its overloads know fewer ways to call it than there are

KINDS = ("plain", "pickled", "pandas", "arrow")


@pytest.fixture(scope="module")
def small_batches(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in which a task sees several batches."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "9")
    yield spark
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def table_function(kind: str, table: Sequence[object]) -> Callable[..., Column]:
    """Return a user function of one of Spark's kinds that does what a table says."""

    def one(value: int | None) -> bool | None:
        result = result_of(table, value)
        if result == RAISE:
            raise ValueError("refused")
        return result if result is None else bool(result)

    def pandas_values(values: pd.Series) -> pd.Series:
        return pd.Series([one(None if pd.isna(v) else int(v)) for v in values], dtype="boolean")

    def arrow_values(values: pa.Array) -> pa.Array:
        return pa.array([one(v) for v in values.to_pylist()], pa.bool_())

    made: Callable[..., Column]
    match kind:
        case "plain":
            made = F.udf(one, "boolean")
        case "pickled":
            made = F.udf(one, "boolean", useArrow=False)
        case "pandas":
            pandas_values.__annotations__ = {"values": pd.Series, "return": pd.Series}
            made = VECTORIZED.pandas_udf(pandas_values, "boolean")
        case _:
            arrow_values.__annotations__ = {"values": pa.Array, "return": pa.Array}
            made = VECTORIZED.arrow_udf(arrow_values, "boolean")
    return made


def column_of(expression: Expression, functions: Sequence[Callable[..., Column]]) -> Column:  # noqa: C901, PLR0911
    """Return a generated expression as a user would write it in PySpark."""

    def write(inner: Expression) -> Column:
        return column_of(inner, functions)

    match expression:
        case Argument(index=index):
            return F.col("ab"[index])
        case Literal(value=value):
            return F.lit(value)
        case Call(function=number, arguments=(argument,)):
            return functions[number](write(argument))
        case Not(operand=operand):
            return ~write(operand)
        case IsNull(operand=operand):
            return write(operand).isNull()
        case Comparison(left=left, right=right):
            return write(left) < write(right)
        case Case(branches=((condition, then),), otherwise=otherwise):
            return F.when(write(condition), write(then)).otherwise(write(otherwise))
        case And(terms=terms):
            return reduce(and_, map(write, terms))
        case Or(terms=terms):
            return reduce(or_, map(write, terms))
    raise AssertionError(expression)


@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    predicate=predicates(),
    tables=TABLES,
    kinds=st.lists(st.sampled_from(KINDS), min_size=FUNCTIONS, max_size=FUNCTIONS),
    policy=st.sampled_from(list(PolicyName)),
    seed=st.integers(0, 3),
)
def test_generated_predicates_give_the_rows_of_the_reference(
    small_batches: SparkSession,
    predicate: Expression,
    tables: list[list[object]],
    kinds: list[str],
    policy: str,
    seed: int,
) -> None:
    frame = small_batches.createDataFrame(ROWS, "n long, a long, b long").repartition(2, "n")
    functions = [table_function(kind, t) for kind, t in zip(kinds, tables, strict=True)]
    plain = frame.filter(column_of(predicate, functions))
    adapted = eddyline.adapt(plain, policy=policy, seed=seed)
    outcomes = [accepted(predicate, row[1:], tables, wanted=True) for row in ROWS]
    if ERROR in outcomes:
        try:
            rows = adapted.collect()
        except PySparkException as error:
            assert "refused" in str(error)  # noqa: PT017 - there may be none, see below
        else:
            # Spark's optimizer took the call out (CASE with branches that are all the same):
            # else plain Spark, which calls every function on every row, fails.
            assert sorted(plain.collect()) == sorted(rows)
    elif all(RAISE not in table for table in tables):
        expected = [row for row, outcome in zip(ROWS, outcomes, strict=True) if outcome == TRUE]
        assert sorted(map(tuple, adapted.collect())) == sorted(expected)


# ---------------------------------------------------------------- single promises


def even(value: int) -> bool:
    return value % 2 == 0


def small(value: int) -> bool:
    return value < 50


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(0, 1000, numPartitions=2).withColumn("v", F.col("id") % 100)


def two_predicates(frame: DataFrame) -> DataFrame:
    return frame.filter(F.udf(even, "boolean")("v") & F.udf(small, "boolean")("v"))


def test_a_guarded_error_never_surfaces(numbers: DataFrame) -> None:
    def fails_for_odd(value: int) -> bool:
        if value % 2:
            raise ValueError("odd")
        return True

    guarded = numbers.filter(F.udf(fails_for_odd, "boolean")("v") & F.udf(even, "boolean")("v"))
    for seed in range(3):
        assert eddyline.adapt(guarded, policy="lottery", seed=seed).count() == 500


def test_an_error_that_counts_shows_the_users_own_traceback(numbers: DataFrame) -> None:
    def divides(value: int) -> bool:
        return 1 / (value - 48) > -5

    failing = numbers.filter(F.udf(divides, "boolean")("v") & F.udf(even, "boolean")("v"))
    with pytest.raises(PySparkException) as raised:
        eddyline.adapt(failing).collect()
    assert "ZeroDivisionError: division by zero" in str(raised.value)
    assert "in divides" in str(raised.value)
    assert Path(__file__).name in str(raised.value)


def test_the_report_counts_what_happened(numbers: DataFrame) -> None:
    adapted = eddyline.adapt(two_predicates(numbers))
    before = eddyline.report(adapted)
    assert before.blocks[0].record is None
    assert adapted.count() == 250
    record = eddyline.report(adapted).blocks[0].record
    assert record is not None
    assert (record.tasks, record.rows_in, record.rows_out) == (2, 1000, 250)
    for predicate in record.predicates:
        assert predicate.passed + predicate.rejected == predicate.rows_in
    answered = sum(f.calls + f.remembered for f in record.functions)
    assert answered == sum(p.rows_in for p in record.predicates)
    assert record.calls_avoided == 2000 - record.calls > 0
    assert sum(piece.rows for piece in record.orders) == 1000
    again = eddyline.adapt(two_predicates(numbers))
    assert eddyline.report(again).blocks[0].record is None
    derived = adapted.groupBy("v").count()
    assert eddyline.report(derived).blocks[0].record is not None


def test_an_unknown_policy_is_refused(numbers: DataFrame) -> None:
    with pytest.raises(UnknownPolicyError, match="choose one of: static, naive"):
        eddyline.adapt(two_predicates(numbers), policy="fastest")
    with pytest.raises(UnknownPolicyError):
        eddyline.adapt(two_predicates(numbers), policy="fastest", pin_order=True)


def test_a_negative_seed_is_refused(numbers: DataFrame) -> None:
    with pytest.raises(ValueError, match="from 0 on, not -1"):
        eddyline.adapt(two_predicates(numbers), seed=-1)


def test_a_report_is_of_a_dataframe() -> None:
    with pytest.raises(TypeError, match="DataFrame is expected, not int"):
        eddyline.report(5)  # type: ignore[arg-type]


def test_the_driver_keeps_the_records_of_the_latest_blocks_only() -> None:
    records = RecordsParam().zero({})
    for number in range(REPORTED_BLOCKS + 5):
        record = TaskRecord(block=str(number), rows_in=1, rows_out=1, seconds=0.0)
        records = RecordsParam().addInPlace(records, {str(number): record})
    last = str(REPORTED_BLOCKS + 4)
    again = TaskRecord(block=last, rows_in=1, rows_out=1, seconds=0.0)
    records = RecordsParam().addInPlace(records, {last: again})
    assert list(records) == [str(number) for number in range(5, REPORTED_BLOCKS + 5)]
    assert records[last].rows_in == 2


def test_an_empty_table(spark: SparkSession) -> None:
    empty = spark.createDataFrame([], "v long").repartition(2)
    assert eddyline.adapt(two_predicates(empty)).collect() == []


def test_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    spark.range(0, 100, numPartitions=1).select((F.col("id") % 100).alias("v")).write.parquet(
        str(source)
    )
    stream = spark.readStream.schema("v long").parquet(str(source))
    adapted = eddyline.adapt(two_predicates(stream))
    assert adapted.isStreaming
    query = (
        adapted.writeStream.format("memory").queryName("adapted").trigger(availableNow=True).start()
    )
    query.awaitTermination(120)
    rows = sorted(row.v for row in spark.table("adapted").collect())
    assert rows == [v for v in range(50) if v % 2 == 0]


def test_what_a_worker_learned_reaches_its_next_task(spark: SparkSession) -> None:
    """With one row a batch, a task that started from nothing would look at everything first."""
    costly_calls = spark.sparkContext.accumulator(0)

    def costly(value: int) -> bool:
        costly_calls.add(1)
        time.sleep(0.0005)
        return value >= 0

    def selective(value: int) -> bool:
        return value % 50 == 0

    frame = spark.range(0, 4000, numPartitions=40).filter(
        F.udf(costly, "boolean")("id") & F.udf(selective, "boolean")("id")
    )
    adapted = eddyline.adapt(frame)
    assert adapted.count() == 80
    # 80 rows need the costly call. Forty tasks that each took a first look of eight
    # rows at it would have added some 320.
    assert costly_calls.value < 80 + 200


def test_values_that_are_wanted_above_the_filter_are_computed_once(spark: SparkSession) -> None:
    calls = spark.sparkContext.accumulator(0)

    def score(value: int) -> float:
        calls.add(1)
        return value / 100

    scored = F.udf(score, "double")
    frame = (
        spark.range(0, 1000, numPartitions=2)
        .filter((scored("id") > 2.5) & F.udf(even, "boolean")("id"))
        .select("id", scored("id").alias("score"))
    )
    rows = eddyline.adapt(frame).collect()
    assert len(rows) == 374
    assert all(row.score == row.id / 100 for row in rows)
    assert calls.value <= 1000


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_a_function_may_return_the_same_buffer_again(spark: SparkSession, kind: str) -> None:
    buffer = np.zeros(1000)

    def halves(values: pd.Series) -> pd.Series:
        return pd.Series(np.divide(values, 2.0, out=buffer[: len(values)]), copy=False)

    def arrow_halves(values: pa.Array) -> pa.Array:
        return pa.array(np.divide(values.to_numpy(), 2.0, out=buffer[: len(values)]))

    half = (
        VECTORIZED.pandas_udf(halves, "double")
        if kind == "pandas"
        else VECTORIZED.arrow_udf(arrow_halves, "double")
    )
    frame = (
        spark.range(0, 1000, numPartitions=1)
        .filter((half("id") >= 0.0) & F.udf(even, "boolean")("id"))
        .select("id", half("id").alias("half"))
    )
    rows = eddyline.adapt(frame).collect()  # in several visits, the first of one row
    assert len(rows) == 500
    assert all(row.half == row.id / 2 for row in rows)


def test_rows_are_those_of_plain_spark_under_every_policy(numbers: DataFrame) -> None:
    expected = sorted(row.id for row in two_predicates(numbers).collect())
    for policy in PolicyName:
        adapted = eddyline.adapt(two_predicates(numbers), policy=policy, seed=7)
        assert sorted(row.id for row in adapted.collect()) == expected
