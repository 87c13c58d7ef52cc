"""Joins with much more data than memory: right rows, a report that tells, nothing left behind."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import eddyline
from bench.answers import require_same_rows
from tests.planner.joins.broadcasting import broadcasting
from tests.planner.joins.spilled_files import spilled_files

ROWS = 40_000
MEMORY = 30 * 1024
"""Bytes for a task; each of four tasks gets ten times as much in two inputs of two integers."""


@pytest.fixture
def local(spark: SparkSession) -> Path:
    """The folder that Spark gives its workers."""
    said = spark.sparkContext.range(1).map(lambda _: os.environ["SPARK_LOCAL_DIRS"]).first()
    return Path(said.split(",")[0])


def side(spark: SparkSession, name: str, factor: int) -> DataFrame:
    """Return rows whose keys come once each, in an order of their own."""
    key = (F.col("id") * factor % ROWS).alias("k")
    return spark.range(0, ROWS, numPartitions=2).select(F.col("id").alias(name), key)


def test_ten_times_the_memory(spark: SparkSession, local: Path) -> None:
    frame = side(spark, "a", 7).join(side(spark, "b", 11), "k")
    with broadcasting(spark, allowed=False):
        adapted = eddyline.adapt(frame, joins="always", memory=MEMORY)
        found = adapted.toArrow()
    numbers = pa.array(range(ROWS), pa.int64())
    # By either factor every key has one row: the multiples of the inverse.
    inverses = [pow(factor, -1, ROWS) for factor in (7, 11)]
    a, b = (pa.array([k * inverse % ROWS for k in range(ROWS)]) for inverse in inverses)
    require_same_rows(pa.table({"k": numbers, "a": a, "b": b}), found)
    (block,) = eddyline.report(adapted).blocks
    assert block.record is not None
    join = block.record.join
    assert join is not None
    assert len(join.cells) == 4
    assert sum(join.came) * 16 >= 4 * 10 * MEMORY
    assert join.spilled_bytes >= sum(join.came) * 16
    assert join.spilled_files > 0
    assert "spilled" in str(eddyline.report(adapted)).lower()
    assert spilled_files(local) == []


def test_with_enough_memory_nothing_is_spilled(spark: SparkSession, local: Path) -> None:
    frame = side(spark, "a", 7).join(side(spark, "b", 11), "k")
    with broadcasting(spark, allowed=False):
        adapted = eddyline.adapt(frame, joins="always")
        assert adapted.count() == ROWS
    (block,) = eddyline.report(adapted).blocks
    assert block.record is not None
    assert block.record.join is not None
    assert (block.record.join.spilled_bytes, block.record.join.spilled_files) == (0, 0)
    assert spilled_files(local) == []


def test_whoever_stops_early_leaves_no_files(spark: SparkSession, local: Path) -> None:
    frame = side(spark, "a", 7).join(side(spark, "b", 11), "k")
    with broadcasting(spark, allowed=False):
        assert len(eddyline.adapt(frame, joins="always", memory=MEMORY).take(5)) == 5
    # The workers of tasks that nobody needs any more notice that as soon as they hand on rows.
    for _ in range(100):
        if not spilled_files(local):
            break
        time.sleep(0.1)
    assert spilled_files(local) == []


def test_a_file_that_is_open_would_be_found(tmp_path: Path) -> None:
    assert spilled_files(tmp_path) == []
    with tempfile.TemporaryFile(dir=tmp_path, prefix="eddyline-spill-"):
        if not Path("/proc/self/fd").exists():
            pytest.skip("only Linux tells which files a process has open")
        assert len(spilled_files(tmp_path)) == 1
    assert spilled_files(tmp_path) == []
