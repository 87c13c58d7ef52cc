"""Keys of joins that functions make are keys of the eddy's indexes, beside those that are there."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.blocks.decline import DeclineReason

ROWS = 300
PAGES = 3
"""Different values of the key that is there: a hundred rows of each side have the same."""


@pytest.fixture
def joined(spark: SparkSession) -> DataFrame:
    """Two tables, by the number of pages and by what a function makes of each row."""
    code = F.udf(lambda text: text.split("::")[1], "string")
    alike = F.udf(lambda one, other: one[-1] == other[-1], "boolean")
    near = F.udf(lambda one, other: abs(one - other) < 2, "boolean")
    one, other = (
        spark.range(0, ROWS, 1, 1)
        .selectExpr("id", f"id % {PAGES} AS pages", f"concat('{prefix}::', id) AS funding")
        .alias(name)
        for name, prefix in (("one", "ec"), ("other", "nih"))
    )
    return one.join(
        other,
        (F.col("one.pages") == F.col("other.pages"))
        & (code("one.funding") == code("other.funding")),
    ).where(alike("one.funding", "other.funding") & near("one.id", "other.id"))


@pytest.mark.parametrize("joins", ["auto", "always"])
def test_few_rows_meet_where_a_function_makes_a_key(joined: DataFrame, joins: str) -> None:
    adapted = eddyline.adapt(joined, joins=joins)
    assert sorted(adapted.collect()) == sorted(joined.collect())
    records = [block.record for block in eddyline.report(adapted).blocks]
    (join,) = (record.join for record in records if record is not None and record.join is not None)
    assert sum(stem.matches for stem in join.stems) == ROWS  # by pages alone 30,000


def test_who_makes_the_keys_is_told(joined: DataFrame) -> None:
    left = eddyline.explain(joined).left
    assert [each.reason for each in left] == [DeclineReason.JOIN_KEY] * 2
