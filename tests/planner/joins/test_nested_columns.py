"""Nested columns come out of a block as they went in: rows, names and what may be NULL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.pandas.functions import arrow_udf, pandas_udf
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.blocks.filter_block import FilterBlock
from eddyline.blocks.join_block import JoinBlock
from eddyline.planner.adapt import adapted_blocks
from tests.planner.joins.broadcasting import broadcasting

ZONE: Final = "spark.sql.session.timeZone"
NOON: Final = "timestamp'2024-02-29 12:00:00'"

COLUMNS: Final = {
    "whole": ("named_struct('a', 1, 'b', {0})", "named_struct('a', 2, 'b', {0})"),
    "inner": (
        "named_struct('s', named_struct('a', 1, 'e', named_struct()), 't', {0})",
        "named_struct('s', null, 't', {0})",
    ),
    "list": ("array(named_struct('a', 1, 't', {0}))", "array()"),
    "holes": ("array(named_struct('a', 1), null)", "array(null)"),
    "entries": ("map('k', named_struct('a', 1, 't', {0}))", "map('k', null)"),
    "odd": (
        "named_struct('a.b', 1, ' ', 2, '', 3, 'ü', 4, 'A', 5, 'a', 6)",
        "named_struct('a.b', 9, ' ', 9, '', 9, 'ü', 9, 'A', 9, 'a', 9)",
    ),
    "nothing": ("named_struct()", "named_struct()"),
    "deep": ("array(map(1, array(named_struct('t', {0}))))", "array(map(), null)"),
}
"""Two values of each column, whose fields are NOT NULL; the third is NULL."""


def nested(spark: SparkSession) -> DataFrame:
    """Return three rows; the last comes as another part of a union, with types of its own."""
    values = (f"({row}, {', '.join(column[row] for column in COLUMNS.values())})" for row in (0, 1))
    names = ", ".join(f"`{name}`" for name in COLUMNS)
    nulls = ", ".join(f"null `{name}`" for name in COLUMNS)
    first = f"select i, {names} from values {', '.join(values)} as t(i, {names})"  # noqa: S608 - of constants
    return spark.sql(f"{first} union all select 2, {nulls}".format(NOON))


@pytest.fixture(params=["UTC", "Europe/Paris"])
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Set the session's time zone; what comes back from Python is always of UTC."""
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, request.param)
    yield request.param
    spark.conf.set(ZONE, str(before))


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def agrees(frame: DataFrame, kind: type[FilterBlock | JoinBlock], layout: str = "") -> None:
    """Check that a DataFrame with one block of a kind is as in plain Spark, rows and schema."""
    expected = rows_of(frame)
    assert expected
    adapted = eddyline.adapt(frame, joins="always")
    ((block, _),) = adapted_blocks(adapted)
    assert isinstance(block, kind)
    assert layout in getattr(block, "layout", "")
    assert adapted.schema == frame.schema
    assert rows_of(adapted) == expected


asked = F.udf(lambda one, other: (one + other) % 4 != 3, BooleanType())


@pytest.mark.usefixtures("zone")
class TestJoins:
    """In place and shuffled, carried with small and with large inputs."""

    @pytest.mark.parametrize("shuffled", [False, True])
    def test_carried_by_small_inputs(self, spark: SparkSession, shuffled: bool) -> None:  # noqa: FBT001 - a parameter
        few = spark.range(9).select("id", (F.col("id") % 3).alias("k"))
        frame = nested(spark).join(few, F.expr("i = k")).where(asked("i", "id"))
        with broadcasting(spark, allowed=not shuffled):
            agrees(frame, JoinBlock, "one shuffle" if shuffled else "stays in place")

    def test_carried_past_rows_that_stay_in_the_jvm(self, spark: SparkSession) -> None:
        many = spark.range(40).selectExpr("id", "id % 3 k", "id a", "id b", "id c")
        frame = many.join(nested(spark), F.expr("i = k")).where(asked("i", "id"))
        agrees(frame, JoinBlock, "Python gets 2 of its 5 columns")

    def test_nested_columns_of_rows_that_are_asked_about(self, spark: SparkSession) -> None:
        """They travel as arguments, and come back with the rows."""
        look = F.udf(lambda whole, holes, n: whole is None or len(holes) < n, "boolean")
        few = spark.range(9).select("id", (F.col("id") % 3).alias("k"))
        frame = nested(spark).join(few, F.expr("i = k")).where(look("whole", "holes", "id"))
        agrees(frame, JoinBlock)


# ---------------------------------------------------------------- values of functions

WHOLE: Final = "struct<a: int not null, t: timestamp not null>"
RESULT: Final = f"struct<w: {WHOLE}, l: array<{WHOLE}>>"


def plain(i: int) -> object:
    import datetime as dt  # noqa: PLC0415 - in the worker

    whole = None if i % 3 == 0 else {"a": i, "t": dt.datetime(2024, 2, 29, i % 24)}  # noqa: DTZ001 - Spark's own
    return {"w": whole, "l": [whole, whole]}


def arrow(i: pa.Array) -> pa.Array:
    inner = pa.struct([
        pa.field("a", pa.int32(), nullable=False),
        pa.field("t", pa.timestamp("us", "UTC"), nullable=False),
    ])  # fmt: skip
    made = pa.array([{"a": n, "t": n} for n in i.to_pylist()], inner)
    places = [place if n % 3 else None for place, n in enumerate(i.to_pylist())]
    whole = made.take(pa.array(places, pa.int64()))
    lists = pa.ListArray.from_arrays(pa.array(range(len(made) + 1), pa.int32()), whole)
    declared = [pa.field("w", inner), pa.field("l", pa.list_(pa.field("element", inner)))]
    return pa.StructArray.from_arrays([whole, lists], fields=declared)


def pandas(i: pd.Series) -> pd.DataFrame:
    whole = [None if n % 3 == 0 else {"a": n, "t": pd.Timestamp(n, unit="s", tz="UTC")} for n in i]
    return pd.DataFrame({"w": whole, "l": [[each] for each in whole]})


def functions() -> dict[str, Column]:
    """Return functions of each kind; what they return is NULL where it may be, and only there."""
    of_arrow: Any = arrow_udf
    of_pandas: Any = pandas_udf  # whose stubs know no DataFrame for a struct
    return {
        "plain": F.udf(plain, RESULT)("id"),
        "pickled": F.udf(plain, RESULT, useArrow=False)("id"),
        "arrow": of_arrow(arrow, RESULT)("id"),
        "pandas": of_pandas(pandas, RESULT)("id"),
    }


@pytest.mark.parametrize("name", ["plain", "pickled", "arrow", "pandas"])
@pytest.mark.usefixtures("zone")
class TestValuesOfFunctions:
    """They are predicates' and are needed above, so that the block returns them."""

    def test_of_a_filter(self, spark: SparkSession, name: str) -> None:
        good = F.udf(lambda n: n % 5 != 1, "boolean")
        some = F.udf(lambda value, n: value["w"] is None or n % 2 == 0, "boolean")
        called = spark.range(20).select("id", functions()[name].alias("v"))
        frame = called.where(good("id") & some("v", "id"))
        agrees(frame, FilterBlock)

    def test_of_a_join(self, spark: SparkSession, name: str) -> None:
        few = spark.range(9).select((F.col("id") % 3).alias("k"))
        called = spark.range(6).select("id", functions()[name].alias("v"))
        some = F.udf(lambda value, n: value["w"] is None or n % 2 == 0, "boolean")
        frame = called.join(few, F.expr("id = k")).where(some("v", "id"))
        agrees(frame, JoinBlock)
