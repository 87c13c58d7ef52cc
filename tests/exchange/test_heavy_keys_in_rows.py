"""Keys of which a few have most of the rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import eddyline
from bench.answers import require_same_rows
from tests.planner.joins.broadcasting import broadcasting


def zipf(spark: SparkSession, name: str, rows: int, seed: int) -> DataFrame:
    """Return rows with keys of Zipf's distribution: one row in six has the most frequent one."""
    keys = np.random.default_rng(seed).zipf(1.2, rows)
    table = pa.table({name: np.arange(rows), "k": np.minimum(keys, 10_000)})
    return spark.createDataFrame(table).repartition(3)


@pytest.mark.parametrize(("joins", "memory"), [("always", None), ("auto", "16KB")])
def test_same_rows_as_plain_spark(spark: SparkSession, joins: str, memory: str | None) -> None:
    """With little memory the rows of one key have to be dealt out one by one."""
    frame = zipf(spark, "a", 2000, 1).join(zipf(spark, "b", 400, 2), "k")
    third = zipf(spark, "c", 30, 3)
    frame = frame.join(third, "k").select("k", "a", "b", "c")
    if joins == "auto":
        frame = frame.filter(F.udf(lambda a, c: (a + c) % 5 == 0, "boolean")("a", "c"))
    with broadcasting(spark, allowed=False):
        adapted = eddyline.adapt(frame, joins=joins, memory=memory)
        (block,) = eddyline.explain(adapted).blocks
        assert "one shuffle" in block.layout
        expected, found = frame.toArrow(), adapted.toArrow()
    assert len(expected) > 10_000
    require_same_rows(expected, found)
