"""A join is left to Spark where all calls together cost less than an eddy."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.blocks.decline import DeclineReason
from eddyline.planner.claim.expected_gain import BY_ITSELF, ExpectedGain

pytestmark = pytest.mark.slow(15)


def is_cheap(number: int) -> bool:
    return number % 3 == 0


def is_costly(number: int) -> bool:
    time.sleep(0.0003)
    return number % 3 == 0


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with two tables in files."""
    path = tmp_path_factory.mktemp("gain")
    for name in ("some", "others"):
        rows = spark.range(0, 400, 1, 1).selectExpr("id", "id % 40 AS k")
        rows.write.parquet(str(path / name))
        spark.read.parquet(str(path / name)).createOrReplaceTempView(f"{name}_rows")
    spark.udf.register("is_cheap", F.udf(is_cheap, "boolean"))
    spark.udf.register("is_costly", F.udf(is_costly, "boolean"))
    eddyline.forget()
    yield spark
    eddyline.forget()


def joined(spark: SparkSession, function: str) -> DataFrame:
    return spark.sql(
        f"SELECT a.id, b.id AS other FROM some_rows a JOIN others_rows b ON a.k = b.k "  # noqa: S608
        f"WHERE {function}(a.id) AND {function}(b.id)"
    )


def reasons(df: DataFrame) -> set[DeclineReason]:
    return {left.reason for left in eddyline.explain(df).left}


def test_gain_and_cost_are_told_in_milliseconds() -> None:
    gain = ExpectedGain(0.0042, BY_ITSELF)
    assert not gain.pays
    assert str(gain) == "about 4 ms to gain, 20 ms to pay"


def test_unknown_functions_get_the_benefit_of_the_doubt_once(tables: SparkSession) -> None:
    rows = sorted(joined(tables, "is_cheap").collect())
    first = eddyline.adapt(joined(tables, "is_cheap"))
    assert DeclineReason.LITTLE_TO_GAIN not in reasons(first)
    assert sorted(first.collect()) == rows
    second = eddyline.adapt(joined(tables, "is_cheap"))
    assert DeclineReason.LITTLE_TO_GAIN in reasons(second)
    assert "ms to gain, 2" in str(eddyline.explain(second))
    assert sorted(second.collect()) == rows
    always = eddyline.adapt(joined(tables, "is_cheap"), joins="always")
    assert DeclineReason.LITTLE_TO_GAIN not in reasons(always)


def test_costly_functions_stay_claimed(tables: SparkSession) -> None:
    rows = sorted(eddyline.adapt(joined(tables, "is_costly")).collect())
    again = eddyline.adapt(joined(tables, "is_costly"))
    assert DeclineReason.LITTLE_TO_GAIN not in reasons(again)
    assert sorted(again.collect()) == rows
