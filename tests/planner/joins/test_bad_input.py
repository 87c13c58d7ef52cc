"""Keys of two types, and tables that are others than they were: what Spark says, eddies say."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import eddyline
from tests.planner.joins.broadcasting import broadcasting

NUMBERS = pa.array([0, 1, 1, 2, None, 7])
DAYS = [dt.date(2024, 2, 28), dt.date(2024, 2, 29), None]

TYPES: dict[str, tuple[pa.Array, pa.Array]] = {
    "tinyint and bigint": (NUMBERS.cast(pa.int8()), NUMBERS),
    "int and double": (NUMBERS.cast(pa.int32()), pa.array([0.0, -0.0, 1.0, 1.5, float("nan")])),
    "bigint and float": (NUMBERS, pa.array([0.0, 1.0, 7.0, None], pa.float32())),
    "int and decimal": (NUMBERS.cast(pa.int32()), pa.array([1, 2, 9]).cast(pa.decimal128(22, 3))),
    "decimals": (NUMBERS.cast(pa.decimal128(20, 0)), NUMBERS.cast(pa.decimal128(22, 2))),
    "date and timestamp": (
        pa.array(DAYS),
        pa.array([*DAYS, DAYS[0]]).cast(pa.timestamp("us")),
    ),
    "string and bigint": (pa.array(["0", " 1 ", "+2", None, "99"]), NUMBERS),
    "string and double": (pa.array(["0", "NaN", "1e0", None]), pa.array([0.0, 1.0, float("nan")])),
    "string and boolean": (pa.array(["true", "f", "1", None]), pa.array([True, False, None])),
    "string that is no bigint": (pa.array(["1", "one"]), NUMBERS),
    "string that is no date": (pa.array(["2024-02-29", "today?"]), pa.array(DAYS)),
}


def outcome(frame: DataFrame) -> tuple[str, Any]:
    """Return the rows, or which error there was, with the condition that Spark names first."""
    try:
        rows = [tuple(row) for row in frame.collect()]
    except (PySparkException, Py4JJavaError) as error:  # Spark translates only some
        conditions = re.findall(r"\[([A-Z_]+(?:\.[A-Z_]+)*)\]", str(error))
        return type(error).__name__, next(iter(conditions), str(error))
    return "rows", sorted(map(repr, rows))


def joined(
    spark: SparkSession, left: pa.Array, right: pa.Array, predicate: Callable[..., Any]
) -> DataFrame:
    """Return the join of two tables by keys of different types."""
    one = spark.createDataFrame(pa.table({"k": left, "a": range(len(left))}))
    other = spark.createDataFrame(pa.table({"m": right, "b": range(len(right))}))
    return one.join(other, F.col("k") == F.col("m")).filter(predicate("a", "b"))


@pytest.mark.parametrize("name", TYPES)
def test_keys_of_two_types(spark: SparkSession, name: str) -> None:
    left, right = TYPES[name]
    frame = joined(spark, left, right, F.udf(lambda a, b: (a + b) % 4 != 3, "boolean"))
    expected = outcome(frame)
    if "is no" in name:
        assert expected[1] == "CAST_INVALID_INPUT"
    else:
        assert expected[1]
    with broadcasting(spark, allowed=list(TYPES).index(name) % 2 == 0):
        assert outcome(eddyline.adapt(frame, joins="always")) == expected


# ---------------------------------------------------------------- tables that change


def rewritten(path: Path) -> None:
    """Take the column away."""
    pq.write_table(pa.table({"id": range(20)}), path)


def retyped(path: Path) -> None:
    """Make texts of the numbers."""
    pq.write_table(pa.table({"id": range(20), "k": [str(n) for n in range(20)]}), path)


def removed(path: Path) -> None:
    """Take the table away."""
    path.unlink()


def spoiled(path: Path) -> None:
    """Make it no table."""
    path.write_bytes(b"nothing of the sort")


@pytest.mark.parametrize("broadcast", [True, False])
@pytest.mark.parametrize("change", [rewritten, retyped, removed, spoiled])
def test_a_table_that_changes_after_planning(
    spark: SparkSession, tmp_path: Path, change: Callable[[Path], None], *, broadcast: bool
) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path in paths:
        pq.write_table(pa.table({"id": range(20), "k": [n % 5 for n in range(20)]}), path)
    one, other = (spark.read.parquet(str(path)) for path in paths)
    both = F.udf(lambda a, b: (a + b) % 4 != 3, "boolean")
    frame = one.join(other, one.k == other.k).filter(both(one.id, other.id))
    frame = frame.select(one.id.alias("a"), other.id.alias("b"), one.k)
    with broadcasting(spark, allowed=broadcast):
        adapted = eddyline.adapt(frame)
        assert adapted is not frame
        change(paths[1])
        expected, found = outcome(frame), outcome(adapted)
    assert found == expected
    assert (expected[0] == "rows") == (change is rewritten)  # to Parquet it is a column of NULLs
