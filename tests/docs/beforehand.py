"""What a page takes for granted when its examples begin: a DataFrame, a function, a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as the pages call it
from pyspark.sql.functions import udf
from pyspark.sql.types import BooleanType

import eddyline


def guide(spark: SparkSession) -> dict[str, Any]:
    """A DataFrame with two predicates, and what the functions of the page call."""
    even = udf(lambda n: n % 2 == 0, BooleanType())
    third = udf(lambda n: n % 3 == 0, BooleanType())
    columns = "id", "concat('2013-0', 1 + id % 9) AS date_text", "concat(' A b ', id) AS text"
    rows = spark.range(300).selectExpr(*columns)
    return {
        "F": F,
        "Iterator": Iterator,
        "df": rows.filter(even("id") & third("id")),
        "load_model": lambda: SimpleNamespace(predict=lambda batch: batch * 2.0),
        "pandas_udf": F.pandas_udf,  # type: ignore[attr-defined]  # PySpark has no type of it
        "pd": pd,
        "slow_parse": lambda text: tuple(map(int, text.split("-"))),
    }


def policies(spark: SparkSession) -> dict[str, Any]:
    """A DataFrame with two predicates."""
    even = udf(lambda n: n % 2 == 0, BooleanType())
    third = udf(lambda n: n % 3 == 0, BooleanType())
    return {"df": spark.range(300).filter(even("id") & third("id"))}


def lookups(spark: SparkSession) -> dict[str, Any]:
    """Flights, and functions that answer as two services would."""
    spark.createDataFrame([("JFK", 5), ("LGA", 6)], "origin string, hour int").createTempView(
        "flights"
    )
    return {
        "by_tail": eddyline.PythonLookup(lambda keys: [(key, "Jane", 2) for key in keys]),
        "by_owner": eddyline.PythonLookup(lambda keys: [("N1", key, 2) for key in keys]),
    }


def watching(spark: SparkSession) -> dict[str, Any]:
    """Sales in three states."""
    sales = "element_at(array('CA', 'NY', 'WA'), 1 + int(id % 3)) AS state", "id AS amount"
    return {"F": F, "df": spark.range(3_000).selectExpr(*sales)}


def functions(spark: SparkSession) -> dict[str, Any]:
    """Posts, and a client that answers as a service would."""

    async def post(path: str, json: Mapping[str, str]) -> SimpleNamespace:
        return SimpleNamespace(json=lambda: {"score": len(json["text"]) / 10 + len(path) * 0})

    return {
        "client": SimpleNamespace(post=post),
        "is_english": udf(lambda text: text.isascii(), BooleanType()),
        "posts": spark.createDataFrame([(1, "hi"), (2, "you are a fool")], "id int, text string"),
    }


def cascades(spark: SparkSession) -> dict[str, Any]:
    """Posts, every seventh of them spam, and a client that answers as a service would."""

    async def post(path: str, json: Mapping[str, str]) -> SimpleNamespace:
        number = int(json["text"].split()[1]) + len(path) * 0
        return SimpleNamespace(json=lambda: {"spam": number % 7 == 0})

    def is_english(text: str) -> bool:
        return text.isascii()

    def text(number: int) -> str:
        loud = number * 7919 % 3 + (number % 7 == 0) * (2 + number % 2)
        return f"post {number} {'for you' if number % 11 else 'für dich'}{'!' * loud}"

    return {
        "client": SimpleNamespace(post=post),
        "is_english": udf(is_english, BooleanType()),
        "posts": spark.createDataFrame([(n, text(n)) for n in range(6_000)], "id int, text string"),
    }


def standing_queries(spark: SparkSession) -> dict[str, Any]:
    """Some trades, and sectors of their symbols."""
    columns = "'AAPL' AS symbol", "900.0D + id AS price", "id AS volume", "now() AS time"
    spark.range(200).selectExpr(*columns).write.parquet("incoming/trades")
    return {}


BEFOREHAND: Final[Mapping[str, Callable[[SparkSession], dict[str, Any]]]] = {
    "docs/cascades.md": cascades,
    "docs/functions.md": functions,
    "docs/guide.md": guide,
    "docs/lookups.md": lookups,
    "docs/policies.md": policies,
    "docs/standing-queries.md": standing_queries,
    "docs/watching.md": watching,
}
