"""A tiny query of each kind that is adapted, over no table of the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

Query: TypeAlias = Callable[[SparkSession], DataFrame]


class AdaptedPart(StrEnum):
    """What is adapted."""

    FILTERS = "filters in eddies"
    VALUES = "functions that remember"
    JOINS = "joins in eddies"


ROWS: Final = 60

MODULO: Final = 5
"""How many keys rows have."""

_VECTORIZED: Any = F  # whose stubs do not know its functions over pandas


def _function(kind: str, code: Callable[..., object], *, arrow: bool = False) -> Callable[..., Any]:
    return F.udf(code, kind, useArrow=arrow)


def is_low(number: int | None) -> bool:
    """Return whether a number is low, or missing."""
    return number is None or 2 * number < MODULO


def is_even(number: int) -> bool:
    """Return whether a number is even."""
    return number % 2 == 0


def are_long(texts: Any) -> Any:  # noqa: ANN401 - Series; pandas is imported for them alone
    """Return which texts have two digits."""
    return texts.str.len() > len("é0")


def is_near(number: int, other: int) -> bool:
    """Return whether the sum of two numbers is low."""
    return number + other <= MODULO


def numbers(spark: SparkSession) -> DataFrame:
    """Return numbers, keys with NULLs, and texts."""
    keys, texts = f"IF(id % 7 = 0, NULL, id % {MODULO}) AS n", "concat('é', id) AS text"
    return spark.range(0, ROWS, 1, 2).selectExpr("id", keys, texts)


def filtered(spark: SparkSession) -> DataFrame:
    """Return rows that functions of three kinds keep, and what a fourth makes of them."""
    import pandas as pd  # noqa: PLC0415 - on a version that is not tested, and nowhere else

    are_long.__annotations__ = {"texts": pd.Series, "return": pd.Series}
    low, even = _function("boolean", is_low), _function("boolean", is_even, arrow=True)
    long: Callable[..., Column] = _VECTORIZED.pandas_udf(are_long, "boolean")
    size = _function("int", len)
    rows = numbers(spark).where(low("n") & even("id") & long("text"))
    return rows.select("id", size("text").alias("size"))


def remembered(spark: SparkSession) -> DataFrame:
    """Return values of functions whose arguments repeat."""
    name = _function("string", lambda n: None if n is None else f"<{n}>")
    twice = _function("array<long>", lambda n: [n, n] if n else None)
    return numbers(spark).select("id", name("n").alias("name"), twice("n").alias("twice"))


def joined(spark: SparkSession) -> DataFrame:
    """Return pairs by a key that one predicate keeps, of rows that another keeps."""
    others = numbers(spark).toDF("other", "m", "word")
    even, near = _function("boolean", is_even), _function("boolean", is_near)
    both = numbers(spark).join(others, F.col("n") == F.col("m"))
    return both.where(even("id") & near("n", "other")).select("id", "other", "word")


def joined_by_shuffling(spark: SparkSession) -> DataFrame:
    """Return the same where no input may be sent to all tasks."""
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    return joined(spark)


QUERIES: Final[Mapping[AdaptedPart, tuple[Query, ...]]] = {
    AdaptedPart.FILTERS: (filtered,),
    AdaptedPart.VALUES: (remembered,),
    AdaptedPart.JOINS: (joined, joined_by_shuffling),
}
"""One or two of each kind."""
