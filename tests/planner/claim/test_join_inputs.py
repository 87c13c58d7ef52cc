"""A join says of which input its columns are, by whatever name the query has for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, udf
from pyspark.sql.types import BooleanType

from eddyline.explanation import BlockExplanation
from eddyline.planner.adapt import adapt, explain
from eddyline.planner.reporting import report

fits = udf(lambda one, other: (one + other) % 3 == 0, BooleanType())
good = udf(lambda country: country != 3, BooleanType())


def block_of(df: DataFrame) -> BlockExplanation:
    (block,) = explain(adapt(df, joins="always")).blocks
    return block


def last_parts(block: BlockExplanation) -> set[str]:
    """The predicates, without what lambdas are called."""
    return {text[text.rindex(")(") + 1 :] if ")(" in text else text for text in block.predicates}


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    for name in ("customers", "suppliers"):
        rows = spark.range(20).selectExpr("id", "id % 7 AS country", f"id AS {name}_only")
        rows.write.parquet(f"{tmp_path / name}")
    return tmp_path


def test_files_give_their_names(spark: SparkSession, folder: Path) -> None:
    customers, suppliers = (spark.read.parquet(f"{folder / n}") for n in ("customers", "suppliers"))
    joined = customers.join(suppliers, "country").filter(
        fits(customers.id, suppliers.id)
        & fits("customers_only", "suppliers_only")
        & good(customers.country)
    )
    block = block_of(joined)
    assert block.inputs == ("customers", "suppliers")
    assert last_parts(block) >= {
        "customers.country = suppliers.country",
        "(customers.id, suppliers.id)",
        "(customers_only, suppliers_only)",
        "(customers.country)",
    }


def test_keys_of_different_names_say_it_too(spark: SparkSession, folder: Path) -> None:
    customers, suppliers = (spark.read.parquet(f"{folder / n}") for n in ("customers", "suppliers"))
    joined = customers.join(suppliers, col("customers_only") == col("suppliers_only"))
    fast = adapt(joined.filter(fits(customers.id, suppliers.id)), joins="always")
    assert fast.count() == 7
    (block,) = explain(fast).blocks
    assert "customers.customers_only = suppliers.suppliers_only" in block.predicates
    (reported,) = report(fast).blocks
    assert reported.inputs == block.inputs == ("customers", "suppliers")


def test_one_table_twice_is_told_apart_by_aliases(spark: SparkSession, folder: Path) -> None:
    spark.read.parquet(f"{folder / 'customers'}").createOrReplaceTempView("people")
    query = "SELECT a.id FROM people a JOIN people b ON a.country = b.country"
    block = block_of(spark.sql(query).filter(fits("a.id", "b.id")))
    assert block.inputs == ("a", "b")
    assert last_parts(block) == {"a.country = b.country", "(a.id, b.id)"}


def test_what_has_no_name_has_a_number(spark: SparkSession) -> None:
    one, other = (spark.range(n).selectExpr("id", "id % 3 AS country") for n in (10, 12))
    block = block_of(one.join(other, "country").filter(fits(one.id, other.id)))
    assert block.inputs == ("input 1", "input 2")
    assert last_parts(block) == {
        "input 1.country = input 2.country",
        "(input 1.id, input 2.id)",
    }


def test_an_alias_is_a_name(spark: SparkSession) -> None:
    one, other = (spark.range(n).selectExpr("id", "id % 3 AS country") for n in (10, 12))
    on = col("x.country") == col("y.country")
    joined = one.alias("x").join(other.alias("y"), on).filter(fits("x.id", "y.id"))
    block = block_of(joined)
    assert block.inputs == ("x", "y")
    assert last_parts(block) == {"x.country = y.country", "(x.id, y.id)"}
