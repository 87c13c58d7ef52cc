"""A report is of the last action, or of all of them, whoever runs them at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.reports.records import TaskRecord
from eddyline.tasks.task_records import RecordsParam, recorded

even = udf(lambda n: n % 2 == 0, BooleanType())
third = udf(lambda n: n % 3 == 0, BooleanType())
ROWS = 400


def asked(spark: SparkSession) -> DataFrame:
    return spark.range(ROWS).filter(even("id") & third("id"))


def rows_in(df: DataFrame, *, earlier: bool = False) -> int:
    (block,) = eddyline.report(df, all=earlier).blocks
    return 0 if block.record is None else block.record.rows_in


def test_the_last_action_by_default_and_all_when_asked(spark: SparkSession) -> None:
    fast = eddyline.adapt(asked(spark))
    fast.collect()
    assert (rows_in(fast), rows_in(fast, earlier=True)) == (ROWS, ROWS)
    fast.count()
    fast.toPandas()
    assert (rows_in(fast), rows_in(fast, earlier=True)) == (ROWS, 3 * ROWS)


def test_under_enable_too(spark: SparkSession) -> None:
    with eddyline.enable(spark):
        for _ in range(3):
            asked(spark).collect()
        df = asked(spark)
        assert (rows_in(df), rows_in(df, earlier=True)) == (ROWS, 3 * ROWS)


def test_a_write_is_one_action(spark: SparkSession, tmp_path: object) -> None:
    fast = eddyline.adapt(asked(spark))
    fast.write.parquet(f"{tmp_path}/one")
    fast.write.parquet(f"{tmp_path}/two")
    assert (rows_in(fast), rows_in(fast, earlier=True)) == (ROWS, 2 * ROWS)


def test_actions_at_once_are_told_apart(spark: SparkSession) -> None:
    fast = eddyline.adapt(asked(spark))
    with ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(lambda _: fast.count(), range(6)))
        seen = rows_in(fast, earlier=True)
    assert len(set(counts)) == 1
    assert 0 < seen <= 6 * ROWS
    assert (rows_in(fast), rows_in(fast, earlier=True)) == (ROWS, 6 * ROWS)


def test_tasks_of_an_earlier_action_that_end_late_count_as_such() -> None:
    param, records = RecordsParam(), RecordsParam().zero({})
    for action, rows in ((1, 1), (2, 10), (1, 100), (2, 1_000), (3, 10_000), (2, 100_000)):
        record = TaskRecord(block="b", rows_in=rows, action=action)
        records = param.addInPlace(records, {"k": record})
    last, every = (recorded(records, "k", earlier=earlier) for earlier in (False, True))
    assert last is not None
    assert every is not None
    assert (last.rows_in, last.action) == (10_000, 3)
    assert every.rows_in == 111_111


def test_the_parts_of_the_time_in_a_block_make_the_whole(spark: SparkSession) -> None:
    fast = eddyline.adapt(asked(spark))
    fast.count()
    (block,) = eddyline.report(fast).blocks
    record = block.record
    assert record is not None
    assert record.output_seconds > 0
    known = record.work_seconds + record.routing_seconds + record.output_seconds
    assert known + record.core_seconds + record.other_seconds >= record.seconds
    assert "putting results together" in " ".join(str(eddyline.report(fast)).split())


def test_tasks_that_share_the_calls_at_the_driver_wait_for_answers(spark: SparkSession) -> None:
    """Each waits for as long as all calls take, and they cost that once."""

    def slow(number: int) -> int:
        time.sleep(0.02)
        return number

    ask = eddyline.concurrent(slow, returns="bigint", max_in_flight=1)
    fast = eddyline.adapt(spark.range(0, 20, 1, 2).where(ask("id") > 3))
    fast.count()
    (block,) = eddyline.report(fast).blocks
    record = block.record
    assert record is not None
    assert record.answer_seconds > 0
    known = record.work_seconds + record.routing_seconds + record.output_seconds
    known += record.core_seconds + record.answer_seconds
    assert known + record.other_seconds >= record.seconds
    assert "waiting for answers" in " ".join(str(eddyline.report(fast)).split())


def test_explain_and_report_have_one_number_for_a_block(spark: SparkSession) -> None:
    fast = eddyline.adapt(asked(spark))
    (block,) = eddyline.explain(fast).blocks
    assert f"Block 1 ({block.identity})" in str(eddyline.explain(fast))
    assert "eddyline.report" in str(eddyline.explain(fast))
    assert "Block 1: " in str(eddyline.report(fast))


def test_under_enable_the_calls_of_plain_spark_are_counted(spark: SparkSession) -> None:
    with eddyline.enable(spark):
        df = asked(spark)
        df.collect()
        compared = eddyline.report(df).to_dict()["compared"]
    assert not compared["estimated"]
    assert compared["plain_calls"] == 2 * ROWS
    fast = eddyline.adapt(asked(spark))
    derived = fast.filter("id > 5")
    derived.collect()
    assert eddyline.report(derived).to_dict()["compared"]["estimated"]
