"""Queries are seen while they run, and what was seen adds up to what the report says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.monitor.live_query import LiveQuery, QueryState
from eddyline.monitor.looking import Looking, looking_of
from eddyline.reports.records import TaskRecord
from eddyline.tasks.live_news import LOOKING


@pytest.fixture
def looking(spark: SparkSession) -> Iterator[Looking]:
    made = looking_of(spark.sparkContext)
    made.begin(spark)
    yield made
    made.end(spark)


def slow_until(gate: Path) -> Callable[[str], Column]:
    @fn.udf("boolean")
    def slow(number: int) -> bool:
        if not gate.exists():
            time.sleep(0.005)  # two minutes for all rows
        return number % 2 == 0

    return slow


@fn.udf(BooleanType())
def third(number: int) -> bool:
    return number % 3 == 0


def newest(looking: Looking, after: int, wanted: Callable[[LiveQuery], bool]) -> LiveQuery:
    """Wait until a query that began after others is as it is wanted."""
    until = time.monotonic() + 100
    while time.monotonic() < until:
        for query in looking.book.queries(most=1):
            if query.number > after and wanted(query):
                return query
        time.sleep(0.02)
    raise AssertionError([query.name for query in looking.book.queries(most=3)])


def begun(query: LiveQuery) -> bool:
    return query.totals.rows_in > 0 and query.tasks > 0


def is_over(query: LiveQuery) -> bool:
    return query.state is not QueryState.RUNNING


def count(looking: Looking) -> int:
    return max((query.number for query in looking.book.queries(most=1)), default=0)


def test_a_filter_is_seen_while_it_runs(
    spark: SparkSession, looking: Looking, tmp_path: Path
) -> None:
    gate, before = tmp_path / "gate", count(looking)
    frame = eddyline.adapt(
        spark.range(0, 50_000, 1, 2).filter(slow_until(gate)("id") & third("id"))
    )
    found: list[int] = []
    action = threading.Thread(target=lambda: found.append(frame.count()))
    action.start()
    try:
        running = newest(
            looking, before, lambda query: query.totals.rows_in > 0 and query.tasks > 0
        )
        assert running.state is QueryState.RUNNING
        assert running.ended is None
        assert running.totals.rows_in < 50_000
        assert running.tasks_done < running.tasks == 2
        assert running.about == "slow, third"
        assert running.description.startswith("count")
    finally:
        gate.touch()
        action.join()
    ended = newest(looking, before, is_over)
    assert found == [8_334]
    assert (ended.state, ended.tasks_done, ended.error) == (QueryState.DONE, 2, None)
    assert (ended.totals.rows_in, ended.totals.rows_out) == (50_000, 8_334)
    assert ended.blocks[0].record == eddyline.report(frame).blocks[0].record


def joined(spark: SparkSession) -> DataFrame:
    one = spark.range(0, 20_000, 1, 2).withColumn("key", fn.col("id") % 500)
    two = spark.range(0, 500, 1, 2).select(fn.col("id").alias("key"), third("id").alias("kept"))
    return one.join(two, "key").filter(third("id"))


def remembered(spark: SparkSession) -> DataFrame:
    return spark.range(0, 40_000, 1, 2).select(third(fn.col("id") % 10).alias("third"))


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (joined, {}),
        (joined, {"spark.sql.autoBroadcastJoinThreshold": "-1"}),
        (remembered, {}),
    ],
    ids=["in place", "shuffled", "remembered"],
)
def test_what_was_seen_adds_up_to_the_report(
    make: Callable[[SparkSession], DataFrame],
    settings: dict[str, str],
    spark: SparkSession,
    looking: Looking,
) -> None:
    for key, value in settings.items():
        spark.conf.set(key, value)
    before = count(looking)
    try:
        frame = eddyline.adapt(make(spark), joins="always")
        frame.collect()
    finally:
        for key in settings:
            spark.conf.unset(key)
    reported = [block.record for block in eddyline.report(frame).blocks]
    assert reported
    sums = sorted(map(sums_of, reported))
    newest(
        looking,
        before,
        lambda query: (
            is_over(query) and sums == sorted(sums_of(each.record) for each in query.blocks)
        ),
    )


def sums_of(record: TaskRecord | None) -> tuple[object, ...]:
    assert record is not None
    return (record.block, record.rows_in, record.rows_out, record.calls, record.calls_possible)


def test_a_query_that_a_limit_ends_has_ended(spark: SparkSession, looking: Looking) -> None:
    before = count(looking)
    frame = eddyline.adapt(spark.range(0, 200_000, 1, 4).filter(third("id")).limit(5))
    assert len(frame.collect()) == 5
    query = newest(looking, before, is_over)
    assert query.state is QueryState.DONE
    assert query.totals.rows_in >= 15


def test_a_query_that_fails_says_why(spark: SparkSession, looking: Looking) -> None:
    @fn.udf("boolean")
    def fails(number: int) -> bool:
        return 1 / (number - 7) > 0

    before = count(looking)
    with pytest.raises(PythonException):
        eddyline.adapt(spark.range(100).filter(fails("id") & third(fn.lit(0)))).collect()
    query = newest(looking, before, is_over)
    assert query.state is QueryState.FAILED
    assert query.error is not None
    assert "ZeroDivisionError" in query.error
    assert query.totals.errors == 1


def test_sessions_tell_only_where_somebody_looks(spark: SparkSession) -> None:
    looking, other = looking_of(spark.sparkContext), spark.newSession()
    looking.begin(spark)
    looking.begin(spark)
    assert spark.conf.get(LOOKING)
    assert other.conf.get(LOOKING, None) is None
    before = count(looking)
    eddyline.adapt(other.range(100).filter(third("id"))).collect()
    looking.end(spark)
    assert spark.conf.get(LOOKING)  # somebody else looks still
    looking.end(spark)
    assert spark.conf.get(LOOKING, None) is None
    eddyline.adapt(spark.range(100).filter(third("id"))).collect()
    assert count(looking) == before


def test_the_address_is_a_secret_to_sparks_pages() -> None:
    assert "token" in LOOKING  # which spark.redaction.regex looks for
