"""Columns that functions make of columns that functions made: each call is made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.blocks.filter_block import FilterBlock
from eddyline.planner.adapt import adapted_blocks
from eddyline.quirks import arrow_columns

ROWS = 400
"""In two tasks: too few for it to be told that sharing does not pay."""

pytestmark = pytest.mark.skipif(
    not arrow_columns.KNOWN, reason="each function of a select list has a worker of its own"
)


@pytest.fixture(scope="module")
def texts(spark: SparkSession) -> Iterator[DataFrame]:
    frame = spark.range(0, ROWS, numPartitions=2).selectExpr(
        "id", "concat('  b ', id, repeat(' x', CAST(id % 7 AS INT))) AS text"
    )
    frame.cache().count()
    yield frame
    frame.unpersist()


class Pipeline:
    """Columns made one of another, and how often their functions are called."""

    def __init__(self, texts: DataFrame, *, arrow: bool = True, named: bool = True) -> None:
        self._context = texts.sparkSession.sparkContext
        self.calls: dict[str, Accumulator[int]] = {}
        clean = self._function("clean", str.strip, "string", arrow=arrow, named=named)
        words = self._function("words", str.split, "array<string>", arrow=arrow, named=named)
        count = self._function("count", self._emptying(), "int", arrow=arrow, named=named)
        self.frame = (
            texts.withColumn("clean", clean("text"))
            .withColumn("words", words("clean"))
            .withColumn("n", count("words"))
        )

    @staticmethod
    def _emptying() -> Callable[[list[str]], int]:
        def emptying(words: list[str]) -> int:
            """Count the words and take them away, which is nobody else's business."""
            number = len(words)
            words.clear()
            return number

        return emptying

    def _function(
        self, name: str, call: Callable[..., Any], kind: str, *, arrow: bool, named: bool
    ) -> Any:  # noqa: ANN401 - a UDF
        calls = self.calls[name] = self._context.accumulator(0)

        def counted(value: object) -> object:
            calls.add(1)
            return call(value)

        counted.__name__ = name if named else "<lambda>"
        return F.udf(counted, kind, useArrow=arrow)

    def run(self, frame: DataFrame) -> tuple[list[str], dict[str, int]]:
        """Return a DataFrame's rows and the calls made for them."""
        for calls in self.calls.values():
            calls.value = 0
        rows = sorted(map(str, frame.collect()))
        return rows, {name: calls.value for name, calls in self.calls.items()}


ONCE = {"clean": ROWS, "words": ROWS, "count": ROWS}

QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "all columns": lambda made: made,
    "a filter on the last": lambda made: made.where("n > 5"),
    "a filter on the last, whose column is not wanted": lambda made: made.where("n > 5").drop("n"),
    "filters on two": lambda made: made.where("n > 5 AND clean <> 'b 9'"),
    "an aggregate": lambda made: made.groupBy("clean").agg(F.sum("n"), F.first("words")),
    "a window": lambda made: made.selectExpr(
        "id", "clean", "sum(n) OVER (PARTITION BY words[0] ORDER BY id) AS s"
    ),
}


@pytest.mark.parametrize("arrow", [True, False], ids=["arrow", "pickled"])
@pytest.mark.parametrize("name", QUERIES)
def test_each_function_is_called_once_for_a_row(
    texts: DataFrame, name: str, *, arrow: bool
) -> None:
    pipeline = Pipeline(texts, arrow=arrow)
    query = QUERIES[name](pipeline.frame)
    expected, plainly = pipeline.run(query)
    rows, calls = pipeline.run(eddyline.adapt(query))
    assert rows == expected
    assert plainly["clean"] > ROWS
    assert calls == ONCE


def test_functions_of_one_name_share_what_they_call(texts: DataFrame) -> None:
    pipeline = Pipeline(texts, named=False)
    expected, _ = pipeline.run(pipeline.frame)
    rows, calls = pipeline.run(eddyline.adapt(pipeline.frame))
    assert rows == expected
    assert calls == ONCE


def test_a_single_filter_gives_what_it_has_computed_on_the_way(texts: DataFrame) -> None:
    pipeline = Pipeline(texts)
    query = eddyline.adapt(pipeline.frame.where("n > 5").select("id", "clean", "words"))
    ((block, _),) = adapted_blocks(query)
    assert isinstance(block, FilterBlock)
    assert len(block.outputs) == 2
    assert [function.shared for function in block.functions] == [(1, 2), (1,), (1, 2)]
    assert "hands on the results of clean, words(clean)" in str(eddyline.explain(query))


def test_below_a_filter_that_is_left_to_spark_nothing_is_computed_for_what_is_above(
    texts: DataFrame,
) -> None:
    pipeline = Pipeline(texts)
    left = F.hex(F.udf(lambda number: str(number % 20))("id")) == "33"  # nobody knows hex() here
    query = pipeline.frame.where((F.col("n") > 5) & left).select("id", "words")
    expected, plainly = pipeline.run(query)
    rows, calls = pipeline.run(eddyline.adapt(query))
    assert rows == expected
    assert all(calls[name] <= plainly[name] for name in calls)


def test_where_nothing_is_used_twice_a_single_filter_stays_sparks(texts: DataFrame) -> None:
    pipeline = Pipeline(texts)
    query = eddyline.adapt(pipeline.frame.where("n > 5").select("id"), remember=False)
    assert adapted_blocks(query) == ()


def test_without_a_memory_nothing_is_shared(texts: DataFrame) -> None:
    pipeline = Pipeline(texts)
    expected, plainly = pipeline.run(pipeline.frame)
    rows, calls = pipeline.run(eddyline.adapt(pipeline.frame, remember=False))
    assert rows == expected
    assert calls == plainly


def test_the_report_counts_the_calls_that_were_made(texts: DataFrame) -> None:
    pipeline = Pipeline(texts)
    fast = eddyline.adapt(pipeline.frame.where("n > 5"))
    _, calls = pipeline.run(fast)
    functions = eddyline.report(fast).to_dict()["blocks"][0]["run"]["functions"]
    assert {each["name"]: each["calls"] for each in functions}["clean"] == 0
    assert calls["clean"] == ROWS
