"""Filters of a hundred Python predicates and more: Spark's rows, each column taken in once."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everyone writes it

import eddyline
from eddyline import catalyst
from eddyline.blocks.filter_block import FilterBlock
from eddyline.planner.adapt import adapted_blocks
from tests.planner.jvm_calls import counted_calls


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


def test_asking_the_jvm_does_not_grow_with_the_functions(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """31 calls were made for each function."""

    def calls(terms: int) -> int:
        plain = filtered(spark, terms, 1, either=False)
        return counted_calls(monkeypatch, lambda: eddyline.adapt(plain))

    calls(2)  # looks classes up, once
    few, many = calls(20), calls(120)
    assert few > 0
    # A call for each piece of the pickles and of the plan's text, which are some kilobytes a term.
    assert many - few < 100


@pytest.mark.parametrize("character", ["x", "ü", "😀"])
@pytest.mark.parametrize("length", [10, 7_999, 8_000, 8_001, 30_000])
def test_long_texts_come_whole_from_the_jvm(
    spark: SparkSession, character: str, length: int
) -> None:
    """They come in pieces, and no character is cut in two."""
    text = "".join(character if n % 7 else str(n % 10) for n in range(length))
    plain = spark.createDataFrame([("a",)], "s string").filter(F.col("s") != text)
    assert catalyst.is_classic(plain)
    condition = json.loads(catalyst.read_node(catalyst.optimized_plan(plain)).json)[0]["condition"]
    assert text in [node.get("value") for node in condition]


def test_long_lists_of_members_come_whole_from_the_jvm(spark: SparkSession) -> None:
    """Texts of many members lie in several pieces, and so do the sizes of many functions."""
    members = [f"member {number} of a long list" for number in range(2_000)]
    label = F.udf(lambda x: f"member {2 * x} of a long list", "string")
    plain = spark.range(1_500).filter(
        label("id").isin(members) & term(3, either=False)(F.col("id"))
    )
    fast = eddyline.adapt(plain)
    assert adapted_blocks(fast)
    rows = sorted(fast.collect())
    assert rows == sorted(plain.collect())
    assert 900 < len(rows) < 1_000
