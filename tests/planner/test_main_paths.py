"""The main paths through Eddyline, once each: what `make versions` runs with every PySpark.

Other tests look closer. These are few enough to be run some times over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everyone writes it
from pyspark.sql.functions import col

from eddyline.blocks.join_block import JoinBlock
from eddyline.planner.adapt import adapt, adapted_blocks, explain
from eddyline.planner.reporting import report
from tests.compiled import compiled
from tests.planner.joins.broadcasting import broadcasting
from tests.planner.shapes import (
    SHAPES,
    Shape,
    even,
    good,
    label,
    new_table,
    score,
    session,
    short,
    table,
)

PATHS = (
    "four_kinds",  # plain with and without Arrow, pandas, Arrow
    "iterators",
    "a_disjunction",
    "and_inside_or",
    "negations",
    "conditionals",
    "nested_kinds",
    "nested_of_one_kind",
    "keywords_and_defaults",
    "timestamps",
    "decimals",
    "arrays",
    "a_struct_comes_back",
    "value_used_above",
    "functions_of_sql",
    "broadcast_variable",
    "union",
    "aggregated",
    "window_above",
    "scalar_subquery",
    "exists",
    "over_a_cache",
    "mapped_in_arrow",
)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """The session, with the code that Spark compiles."""
    with compiled(session()) as found:
        yield found


def rows(df: DataFrame) -> list[str]:
    return sorted(repr(tuple(row)) for row in df.collect())


@pytest.mark.parametrize("path", PATHS)
def test_filters(spark: SparkSession, path: str) -> None:
    (shape,) = (each for each in SHAPES if each.name == path)
    assert_as_plain(shape, spark)


def assert_as_plain(shape: Shape, spark: SparkSession) -> None:
    expected = rows(shape.build(spark))
    fast = adapt(shape.build(spark))
    assert fast.schema == shape.build(spark).schema
    assert rows(fast) == expected
    found = {text for block, _ in adapted_blocks(fast) for text in block_texts(block)}
    assert found == {text for block in shape.blocks for text in block}


def block_texts(block: object) -> tuple[str, ...]:
    texts = block.query.texts if isinstance(block, JoinBlock) else getattr(block, "texts", ())
    return tuple(texts)


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "shuffled"])
def test_joins(spark: SparkSession, tmp_path: Path, *, in_place: bool) -> None:
    new_table(spark, 200).write.parquet(str(tmp_path / "one"))
    spark.range(90).selectExpr("id * 2 as key", "id % 7 as n2").write.parquet(str(tmp_path / "two"))
    one = spark.read.parquet(str(tmp_path / "one"))
    two = spark.read.parquet(str(tmp_path / "two"))

    def joined() -> DataFrame:
        both = one.join(two, col("id") == col("key"))
        kept = both.filter(good("id") & short("text") & even(col("n") + col("n2")))
        return kept.select("id", "text", "n2", "moment", score("id").alias("s"))

    with broadcasting(spark, allowed=in_place):
        expected = rows(joined())
        fast = adapt(joined(), joins="always")
        assert rows(fast) == expected
        assert expected
        (block,) = (each for each, _ in adapted_blocks(fast) if isinstance(each, JoinBlock))
        assert block.layout.startswith("no shuffle") is in_place
        assert "good(id)" in str(report(fast))


def test_a_users_iterator_over_values_of_a_function_with_a_memory(spark: SparkSession) -> None:
    def loud(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        for values in batches:
            yield values.str.upper()

    vectorized: Any = F
    upper = vectorized.pandas_udf(loud, "string")
    named = new_table(spark, 60).select("id", label("n").alias("name"))
    fast = adapt(named)
    assert adapted_blocks(fast)
    derivations: list[Callable[[DataFrame], DataFrame]] = [
        lambda df: df.select("id", upper("name").alias("upper")),
        lambda df: df.where(upper("name") != "LABEL-1").select("id"),
        lambda df: df.select("name", upper("name")),
    ]
    for derive in derivations:
        assert rows(derive(fast)) == rows(derive(named))


def test_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(100).selectExpr("id", "string(id) as text").write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long, text string").parquet(str(tmp_path / "in"))
    adapted = adapt(stream.filter(good("id") & short("text")))
    assert adapted.isStreaming
    assert adapted_blocks(adapted)
    sink = adapted.writeStream.format("memory").queryName("main_paths")
    query = sink.trigger(availableNow=True).start()
    query.awaitTermination(120)
    expected = rows(spark.read.parquet(str(tmp_path / "in")).filter(good("id") & short("text")))
    assert rows(spark.table("main_paths")) == expected
    assert expected


def test_explain_and_report(spark: SparkSession) -> None:
    not_understood = F.upper(label("id")) > "LABEL-2"
    fast = adapt(table(spark).filter(good("id") & (score("id") > 0.2) & not_understood))
    fast.collect()
    explanation = explain(fast)
    (block,) = (each for each in explanation.blocks if each.predicates)
    assert block.predicates == ("good(id)", "score(id) > 0.2")
    assert [left.text for left in explanation.left] == ["upper(label(id)) > LABEL-2"]
    text = str(report(fast))
    assert "good(id)" in text
    assert "score(id) > 0.2" in text
