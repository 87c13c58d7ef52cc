"""Predicates that are asked on the map side of a shuffle, in a whole query."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.reports.records import PredicateRecord, TaskRecord
from tests.planner.joins.broadcasting import broadcasting

pytestmark = pytest.mark.slow(35)

ROWS = 1_500
"""Rows of the input that is copied, being the smaller one of a join by a range."""

EVERY = 50
"""One row of so many is not accepted by the cheap term."""


def costly(number: int) -> bool:
    time.sleep(3e-4)
    return number % 2 == 0


def cheap(number: int) -> bool:
    return number % EVERY != 0


@dataclass(frozen=True)
class Fails:
    """A function that raises for one number, and accepts no other or all."""

    at: int
    accepts: bool

    def __call__(self, number: int) -> bool:
        if number == self.at:
            raise ZeroDivisionError(f"fails at {number}")
        return self.accepts


def call(function: Callable[[int], bool], column: str = "a") -> Column:
    def wrapped(number: int) -> bool:
        return function(number)

    return F.udf(wrapped, "boolean")(column)


@pytest.fixture(scope="module", autouse=True)
def shuffled(spark: SparkSession) -> Iterator[None]:
    with broadcasting(spark, allowed=False):
        yield


def table(spark: SparkSession, **columns: pa.Array) -> DataFrame:
    return spark.createDataFrame(pa.table(columns))


def joined(spark: SparkSession, *conditions: Column) -> DataFrame:
    """Join by a range, so that the smaller input is copied to several cells."""
    small = table(spark, a=pa.array(range(ROWS)), next=pa.array(range(1, ROWS + 1)))
    large = table(spark, b=pa.array(range(3 * ROWS)))
    frame = small.join(large, F.expr("b BETWEEN a AND next"))
    for condition in conditions:
        frame = frame.where(condition)
    return frame.select("a", "b")


def rows(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, df.collect()))


def record_of(adapted: DataFrame) -> TaskRecord:
    (block,) = eddyline.report(adapted).blocks
    assert "one shuffle" in block.layout
    assert block.record is not None
    return block.record


@pytest.mark.parametrize("costly_first", [True, False], ids=["costly first", "cheap first"])
def test_an_or_is_routed_among_its_terms_and_these_are_reported(
    spark: SparkSession, *, costly_first: bool
) -> None:
    terms = (call(costly), call(cheap)) if costly_first else (call(cheap), call(costly))
    adapted = eddyline.adapt(joined(spark, terms[0] | terms[1]), joins="always")
    wanted = [a for a in range(ROWS) if a % EVERY or a % 2 == 0]
    assert rows(adapted) == [(a, b) for a in wanted for b in (a, a + 1)]
    record = record_of(adapted)
    calls = [function.calls for function in record.functions]
    asked_of_costly, asked_of_cheap = calls if costly_first else calls[::-1]
    # Written first or last, the costly one is asked about what the cheap one leaves.
    assert asked_of_costly < 0.4 * ROWS
    assert asked_of_cheap > 0.6 * ROWS
    (predicate,) = (each for each in record.predicates if each.nested)
    # Each row once, and where it was not copied yet.
    assert predicate.rows_in == ROWS
    assert predicate.passed == len(wanted)
    assert [part.rows_in for part in predicate.nested] == calls
    names = [part.text.removesuffix("(a)") for part in predicate.nested]
    assert all("wrapped" in name for name in names)
    assert len(set(names)) == len(names)  # functions of one name are told apart
    text = str(eddyline.report(adapted))
    assert text.count("wrapped") >= 1 + len(predicate.nested)


def test_terms_that_both_sides_ask_are_reported_once(spark: SparkSession) -> None:
    """A row for which an OR fails is asked about again where it arrives."""
    either = call(cheap) | call(Fails(EVERY, accepts=False))
    others = F.udf(lambda a, b: min(a, b) != EVERY, "boolean")("a", "b")
    adapted = eddyline.adapt(joined(spark, either, others), joins="always", policy="static")
    wanted = [a for a in range(ROWS) if a % EVERY]
    assert rows(adapted) == [(a, b) for a in wanted for b in (a, a + 1)]
    predicates = record_of(adapted).predicates
    (predicate,) = (each for each in predicates if each.nested)
    assert len(predicate.nested) == 2
    assert predicate.rows_in > ROWS
    assert held(predicates) >= 2


def held(predicates: tuple[PredicateRecord, ...]) -> int:
    return sum(each.errors_held for each in predicates)


@pytest.mark.parametrize("policy", ["adaptive", "static"])
@pytest.mark.parametrize("failing_first", [True, False], ids=["failing first", "failing last"])
@pytest.mark.parametrize("at", [EVERY, 0])
def test_an_error_that_no_other_term_makes_up_for_is_that_of_plain_spark(
    spark: SparkSession, *, failing_first: bool, policy: str, at: int
) -> None:
    terms = (call(Fails(at, accepts=False)), call(cheap))
    first, second = terms if failing_first else terms[::-1]
    frame = joined(spark, first | second)
    for each in (frame, eddyline.adapt(frame, joins="always", policy=policy)):
        with pytest.raises(PythonException, match=f"ZeroDivisionError: fails at {at}"):
            each.collect()


@pytest.mark.parametrize("policy", ["adaptive", "static"])
@pytest.mark.parametrize("failing_first", [True, False], ids=["failing first", "failing last"])
def test_an_error_of_a_term_does_not_count_where_another_accepts_the_row(
    spark: SparkSession, *, failing_first: bool, policy: str
) -> None:
    """The rows are those that plain Spark has where the term rejects the row instead."""
    terms = (call(Fails(7, accepts=False)), call(cheap))
    first, second = terms if failing_first else terms[::-1]
    adapted = eddyline.adapt(joined(spark, first | second), joins="always", policy=policy)
    found = rows(adapted)
    assert found == rows(joined(spark, call(cheap)))
    assert (7, 7) in found
    assert held(record_of(adapted).predicates) == 0


@pytest.mark.parametrize("policy", ["adaptive", "static"])
def test_an_error_of_an_or_does_not_count_for_a_row_that_is_dropped(
    spark: SparkSession, policy: str
) -> None:
    """By another predicate over the same input, on the map side."""
    either = call(Fails(EVERY, accepts=False)) | call(cheap)
    frame = joined(spark, either, call(lambda number: number != EVERY))
    adapted = eddyline.adapt(frame, joins="always", policy=policy)
    assert rows(adapted) == rows(joined(spark, call(cheap)))
