"""Filters of a hundred Python predicates and more: Spark's rows, each column taken in once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everyone writes it

import eddyline
from eddyline.spark.adapt import adapted_blocks
from eddyline.spark.filter_block import FilterBlock


def term(number: int, *, either: bool) -> Callable[[Column], Column]:
    return F.udf(lambda x: ((x * 31 + number) % 401 == 0) is either, "boolean")


def filtered(spark: SparkSession, terms: int, columns: int, *, either: bool) -> DataFrame:
    parts = [term(n, either=either)(F.col("id") + n % columns) for n in range(terms)]
    while len(parts) > 1:  # in a deep tree Spark's analyzer overflows its stack
        pairs = zip(parts[::2], parts[1::2], strict=False)
        joined = [one | other if either else one & other for one, other in pairs]
        parts = [*joined, *parts[2 * len(joined) :]]
    return spark.range(600).filter(parts[0])


@pytest.mark.parametrize(
    ("terms", "columns", "either"), [(120, 1, False), (160, 1, True), (90, 60, False)]
)
def test_same_rows_as_spark(spark: SparkSession, terms: int, columns: int, *, either: bool) -> None:
    plain = filtered(spark, terms, columns, either=either)
    fast = eddyline.adapt(plain)
    ((block, _),) = adapted_blocks(fast)
    assert isinstance(block, FilterBlock)
    assert len(block.functions) == terms
    assert len(block.argument_names) == columns
    rows = sorted(fast.collect())
    assert rows == sorted(plain.collect())
    assert 0 < len(rows) < 600
