"""Which moment's settings count: the making of a DataFrame, or the action. As in plain Spark."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everyone writes it
from pyspark.sql.functions import udf
from pyspark.sql.types import (
    BooleanType,
    DecimalType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from eddyline import catalyst
from eddyline.blocks.join_block import JoinBlock
from eddyline.catalyst.spark_settings import default_settings
from eddyline.planner.adapt import adapt, adapted_blocks, explain
from tests.planner.joins.broadcasting import broadcasting

pytestmark = pytest.mark.slow(20)

# Workers cannot import the tests, so the functions travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

UDFS: Any = F  # whose overloads do not know what decorators return


def told(value: Any) -> str:  # noqa: ANN401 - of any type
    return f"{type(value).__name__} {value!r}"


plain = udf(told, StringType(), useArrow=True)
pickled = udf(told, StringType(), useArrow=False)
yes = udf(lambda _: True, BooleanType())


def _series(values: pd.Series) -> pd.Series:
    return pd.Series([f"{values.dtype} {value!r}" for value in values])


series = UDFS.pandas_udf(_series, StringType())


def _array(values: pa.Array) -> pa.Array:
    return pa.array([f"{values.type} {value!r}" for value in values.to_pylist()])


array = UDFS.arrow_udf(_array, StringType())


def _noon(values: pd.Series) -> pd.Series:
    return pd.Series([pd.Timestamp("2020-06-01 12:00")] * len(values))


noon = UDFS.pandas_udf(_noon, TimestampType())


def _reversed_columns(values: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({"y": values * 0 + 2, "x": values * 0 + 1})


reversed_columns = UDFS.pandas_udf(
    _reversed_columns, StructType().add("x", IntegerType()).add("y", IntegerType())
)


def _integers(values: pd.Series) -> pd.Series:
    return values


integers = UDFS.pandas_udf(_integers, DecimalType(10, 2))


def _halves(values: pd.Series) -> pd.Series:
    return values + 0.5


halves = UDFS.pandas_udf(_halves, IntegerType())


@dataclass(frozen=True)
class Case:
    """A setting that is changed after the DataFrame was made, and a column that tells of it."""

    key: str
    before: str
    after: str
    column: Callable[[], Column]
    of_action: bool = True


BINARY = "spark.sql.execution.pyspark.binaryAsBytes"
ZONE = "spark.sql.session.timeZone"
LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
CASES = {
    "binary": Case(BINARY, "true", "false", lambda: plain("b")),
    "binary-pickled": Case(BINARY, "true", "false", lambda: pickled("b")),
    "legacy-pandas": Case(
        "spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled",
        "false",
        "true",
        lambda: plain("t"),
    ),
    "columns-by-name": Case(
        "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName",
        "true",
        "false",
        lambda: reversed_columns("id"),
    ),
    "integers-as-decimals": Case(
        "spark.sql.execution.pythonUDF.pandas.intToDecimalCoercionEnabled",
        "false",
        "true",
        lambda: integers("id"),
    ),
    "safe-conversion": Case(
        "spark.sql.execution.pandas.convertToArrowArraySafely",
        "true",
        "false",
        lambda: halves("id"),
    ),
    "integer-extension-types": Case(
        "spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype",
        "false",
        "true",
        lambda: series("id"),
    ),
    "large-types": Case(LARGE, "false", "true", lambda: array("s")),
    "large-types-inside": Case(LARGE, "false", "true", lambda: array(F.array("s", F.lit("é")))),
    "time-zone-series": Case(ZONE, "UTC", "America/New_York", lambda: series("t")),
    "time-zone-array": Case(ZONE, "UTC", "America/New_York", lambda: array("t")),
    "time-zone-result": Case(ZONE, "UTC", "America/New_York", lambda: noon("id")),
    "time-zone-of-sql": Case(
        ZONE, "UTC", "America/New_York", lambda: plain(F.col("t").cast("string")), of_action=False
    ),
    "ansi": Case(
        "spark.sql.ansi.enabled",
        "false",
        "true",
        lambda: plain(F.concat("s", F.lit("x")).cast("int")),
        of_action=False,
    ),
    "case": Case(
        "spark.sql.caseSensitive", "false", "true", lambda: plain(F.col("ID")), of_action=False
    ),
}

# What is not set is what Spark takes by default, which need not be what its workers would.
CASES |= {
    f"{name}-set-back": replace(case, before=case.after, after="")
    for name, case in CASES.items()
    if case.of_action
}


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Eight rows of one file: what is read from a file is not computed, and known to be small."""
    path = str(tmp_path_factory.mktemp("settings") / "rows")
    instants = [dt.datetime.fromtimestamp(100_000 * n, dt.UTC) for n in range(8)]
    values = [(n, str(n), b"%d" % n, instant) for n, instant in enumerate(instants)]
    made = spark.createDataFrame(values, "id long, s string, b binary, t timestamp")
    made.coalesce(1).write.parquet(path)
    return spark.read.parquet(path)


def filtered(table: DataFrame, case: Case) -> DataFrame:
    column = case.column()
    kept = table.filter(column.isNotNull() | yes("s")).filter(yes("id"))
    return kept.select("id", column.alias("told"))


def joined(table: DataFrame, case: Case) -> DataFrame:
    """Return rows of two tables by a text and a timestamp, of which a block tells."""
    one, other = table, table.selectExpr("s as other_s", "t as other_t", "id as n")
    both = one.join(other, (F.col("s") == F.col("other_s")) & (F.col("t") == F.col("other_t")))
    told = case.column()
    return both.filter(told.isNotNull() & yes("n")).select("n", "other_s", told.alias("told"))


@contextmanager
def setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """Set a key; an empty value stands for Spark's default."""
    held = spark.conf.get(key, None)
    if value:
        spark.conf.set(key, value)
    else:
        spark.conf.unset(key)
    try:
        yield
    finally:
        if held is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, held)


def outcome(df: DataFrame) -> list[str] | str:
    try:
        return sorted(map(repr, df.collect()))
    except Exception:  # noqa: BLE001 - whatever Spark raises, in Python or in the JVM
        return "an error"


@pytest.mark.parametrize("name", CASES)
def test_a_setting_that_was_changed_counts_as_in_plain_spark(
    spark: SparkSession, table: DataFrame, name: str
) -> None:
    case = CASES[name]
    default = default_settings((case.key,))
    if case.key not in default:
        pytest.skip("this Spark has no such setting")
    with setting(spark, case.key, case.before):
        unchanged = outcome(filtered(table, case))
        df = filtered(table, case)
        fast = adapt(filtered(table, case))
        assert adapted_blocks(fast)
    with setting(spark, case.key, case.after):
        expected = outcome(df)
        assert outcome(fast) == expected
    differs = (case.after or default[case.key]) != case.before
    assert (expected != unchanged) is (differs and case.of_action)


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "shuffled"])
@pytest.mark.parametrize("name", ["binary", "large-types", "time-zone-array"])
def test_a_setting_that_was_changed_counts_in_joins(
    spark: SparkSession, table: DataFrame, name: str, *, in_place: bool
) -> None:
    case = CASES[name]
    with broadcasting(spark, allowed=in_place):
        with setting(spark, case.key, case.before):
            df = joined(table, case)
            fast = adapt(joined(table, case), joins="always")
            ((block, _),) = adapted_blocks(fast)
        with setting(spark, case.key, case.after):
            expected = outcome(df)
            assert outcome(fast) == expected
    assert isinstance(block, JoinBlock)
    assert block.layout.startswith("no shuffle") is in_place
    assert len(expected) == 8


def test_settings_without_an_action_are_those_of_adapt(
    spark: SparkSession, table: DataFrame
) -> None:
    """A job of Spark's core has no settings of SQL's to go by."""
    case = CASES["time-zone-array"]
    with setting(spark, case.key, "Europe/Paris"):
        fast = adapt(filtered(table, case))
        ours = {row.told for row in fast.rdd.collect()}
    assert all("Europe/Paris" in told for told in ours)


@pytest.mark.usefixtures("spark")
def test_a_setting_that_this_spark_does_not_know_has_no_default() -> None:
    known = "spark.sql.execution.pandas.convertToArrowArraySafely"
    defaults = catalyst.default_settings(("spark.sql.no.such.setting", known))
    assert defaults.keys() == {known}


def test_integers_that_may_be_null_go_by_way_of_pandas_in_spark_alone(spark: SparkSession) -> None:
    """Which of them are floats depends on the batch that they are in."""
    legacy = CASES["legacy-pandas"].key
    told = udf(lambda number: str(number), StringType(), useArrow=True)  # noqa: PLW0108 - 3.5 wants arguments
    rows = spark.range(60).selectExpr("id", "IF(id % 7 = 0, NULL, id) AS n")

    def asked(column: str) -> DataFrame:
        return rows.where((told(column) != "13.0") & (told(column).endswith("3"))).select("id")

    with setting(spark, legacy, "true"):
        nullable = adapt(asked("n"))
        assert outcome(nullable) == outcome(asked("n"))
        assert not adapted_blocks(nullable)
        assert "sees integers as floats in a batch" in str(explain(asked("n")))
        assert adapted_blocks(adapt(asked("id")))
