"""Functions of one name are told apart wherever people read of them, and answers are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.blocks.decline import DeclineReason

if TYPE_CHECKING:
    from pyspark.sql._typing import UserDefinedFunctionLike


def multiple(of: int) -> UserDefinedFunctionLike:
    def check(n: int) -> bool:
        return n % of == 0

    return udf(check, BooleanType())


def above(least: int) -> UserDefinedFunctionLike:
    def check(n: int) -> bool:
        return n > least

    return udf(check, BooleanType())


def test_lambdas_are_named_by_their_source_in_explain_and_report(spark: SparkSession) -> None:
    even = udf(lambda n: n % 2 == 0, "boolean")
    half = udf(lambda n: n / 2, "double")
    df = spark.range(20).filter(
        even("id") & (half("id") > half(half("id"))) & half("id").isNotNull()
    )
    fast = eddyline.adapt(df)
    assert sorted(row.id for row in fast.collect()) == list(range(2, 20, 2))
    explanation = str(eddyline.explain(fast))
    report = eddyline.report(fast)
    line = even.func.__code__.co_firstlineno
    first, second = f"<lambda> line {line}: n % 2 == 0", f"<lambda> line {line + 1}: n / 2"
    for text in (explanation, "\n".join(report.blocks[0].predicates)):
        assert f"({first})(id)" in text
        assert f"({second})(id) > ({second})(({second})(id))" in text
        assert "<lambda>(" not in text
    record = report.blocks[0].record
    assert record is not None
    assert {each.name for each in record.functions} >= {first, second, f"({second})({second})"}
    assert first in report.blocks[0].title


def place(function: UserDefinedFunctionLike) -> str:
    return f"test_function_names.py:{function.func.__code__.co_firstlineno}"


def test_functions_of_one_name_are_told_apart(spark: SparkSession) -> None:
    first, second = multiple(3), above(20)
    fast = eddyline.adapt(spark.range(60).filter(first("id") & second("id") & first("id")))
    assert [row.id for row in fast.collect()] == list(range(21, 60, 3))
    (block,) = eddyline.report(fast).blocks
    assert block.predicates == ("check(id)", f"(check at {place(second)})(id)")
    assert block.record is not None
    names = [each.name for each in block.record.functions]
    assert names == ["check", f"check at {place(second)}"]
    assert block.title == f"check, check at {place(second)}"


def test_functions_of_one_place_are_numbered(spark: SparkSession) -> None:
    df = spark.range(60).filter(multiple(2)("id") & multiple(3)("id") & multiple(5)("id"))
    texts = [text for each in eddyline.explain(df).claimable for text in each.predicates]
    here = place(multiple(2))
    assert texts == ["check(id)", f"(check at {here})(id)", f"(check at {here} (2))(id)"]


def test_what_is_left_to_spark_is_named_too(spark: SparkSession) -> None:
    df = spark.range(5).filter(udf(lambda n: n > 1, "boolean").asNondeterministic()("id"))
    (left,) = eddyline.explain(df).left
    assert left.reason is DeclineReason.NON_DETERMINISTIC
    assert left.text.startswith("(<lambda> line ")
    assert left.text.endswith(": n > 1)(id)")


def test_only_the_function_that_remembers_is_said_to_remember(spark: SparkSession) -> None:
    remembers, forgets = multiple(2), udf(eddyline.forgetful(lambda n: n > 1), "boolean")
    (left,) = eddyline.explain(spark.range(5).filter(remembers("id"))).left
    assert left.detail == "the function still remembers"
    (left,) = eddyline.explain(spark.range(5).filter(forgets("id"))).left
    assert left.detail == ""


def test_equal_queries_have_equal_blocks(spark: SparkSession) -> None:
    even = udf(lambda n: n % 2 == 0, "boolean")

    def blocks() -> list[str]:
        df = spark.range(20).filter(even("id") & above(3)("id"))
        return [each.identity for each in eddyline.explain(df).claimable]

    assert blocks() == blocks()
    assert len(blocks()) == 1
