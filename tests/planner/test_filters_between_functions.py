"""Where plain Spark filters between two functions, the second gets no rows that it would not get.

Spark evaluates functions of one kind together; where two kinds meet, or one function is called with
what another returns, a filter over the first stands below the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark import Accumulator
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.blocks.filter_block import FilterBlock
from eddyline.planner.adapt import adapted_blocks
from tests.without_arrow_udf import arrow_udf_or

VECTORIZED: Any = F  # of which the type checker does not know all

ROWS = 400


def counted(kind: str, number: int, calls: Accumulator[int]) -> Callable[..., Any]:
    """Return a function of whole numbers that counts the rows it is called for."""

    def of_row(value: int) -> int:
        calls.add(1)
        return value * number % 10

    def of_series(values: pd.Series) -> pd.Series:
        calls.add(len(values))
        return values * number % 10

    def of_array(values: pa.Array) -> pa.Array:
        calls.add(len(values))
        return pa.array([value * number % 10 for value in values.to_pylist()], pa.int64())

    made: dict[str, Callable[[], Callable[..., Any]]] = {
        "row": lambda: F.udf(of_row, "long", useArrow=True),
        "pickled": lambda: F.udf(of_row, "long", useArrow=False),
        "pandas": lambda: VECTORIZED.pandas_udf(of_series, "long"),
        "arrow": lambda: arrow_udf_or(of_array, of_series, "long"),
    }
    return made[kind]()


@pytest.fixture(scope="module")
def calls(spark: SparkSession) -> Iterator[Mapping[str, Accumulator[int]]]:
    made = {}
    for number, kind in ((3, "row"), (7, "pickled"), (9, "pandas"), (11, "arrow")):
        made[kind] = spark.sparkContext.accumulator(0)
        spark.udf.register(kind, counted(kind, number, made[kind]))
    # The first terms pass most rows, the last few: an order to change, if that were free.
    spark.range(0, ROWS, 1, 2).selectExpr("id AS a").createOrReplaceTempView("numbers")
    yield made
    spark.catalog.dropTempView("numbers")


QUERIES = {
    "two kinds": ("row(a) < 8 AND pickled(a) = 1", (0, 1)),
    "three kinds": ("pandas(a) < 8 AND arrow(a) < 7 AND row(a) = 1", None),
    "an argument": ("row(a) < 8 AND arrow(arrow(a) + 1) = 1", None),
    "an argument of another kind": ("row(a) < 8 AND pandas(pickled(a)) = 2", None),
    "in CASE": ("row(a) < 8 AND row(CASE WHEN row(a) > 3 THEN a ELSE a + 1 END) = 1", None),
    "the same below": ("row(a) < 8 AND row(a) + pickled(a) = 3 AND pickled(a + 1) < 2", None),
    "or": ("(pandas(a) < 6 OR a > 390) AND (row(a) = 1 OR row(a + 1) = 3)", None),
    "an argument that may raise": ("row(a) < 8 AND pickled(a + 1) = 1", (0, 1)),
    "that within OR": ("row(a) < 8 AND (row(a + 1) = 9 OR pickled(a + 1) = 1)", None),
    "one kind": ("row(a) < 8 AND row(a + 1) = 1", ()),
}


@pytest.mark.parametrize("query", QUERIES)
def test_calls_are_those_of_plain_spark_at_most(
    spark: SparkSession, calls: Mapping[str, Accumulator[int]], query: str
) -> None:
    condition, waits = QUERIES[query]
    text = f"SELECT a FROM numbers WHERE {condition}"  # noqa: S608 - of this file
    expected = sorted(spark.sql(text).collect())
    plain = {name: each.value for name, each in calls.items()}
    adapted = eddyline.adapt(spark.sql(text))
    assert sorted(adapted.collect()) == expected
    made = {name: each.value - plain[name] for name, each in calls.items()}
    for each in calls.values():
        each.value = 0
    assert sum(made.values()) > 0
    assert all(made[name] <= plain[name] for name in made), (made, plain)
    if waits is not None:
        (block,) = [block for block, _ in adapted_blocks(adapted)]
        assert isinstance(block, FilterBlock)
        assert block.waits == waits
