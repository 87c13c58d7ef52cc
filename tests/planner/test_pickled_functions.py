"""Plain functions that return another type than they declare, whose rows travel pickled."""

from __future__ import annotations

import array
import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from random import Random
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, udf

import eddyline
from tests.properties import examples
from tests.tasks.java.odd_values import PLACE, random_value

RETURNED: list[Any] = [
    {"a": 1, "b": "x"},
    {"k": {"n": [1, None, True, 2.5]}, "e": {}},
    {1},
    {"b", "a", 3, None},
    dt.time(1, 2, 3),
    dt.timedelta(days=1, seconds=2),
    complex(1, -2),
    dt.date(2020, 1, 2),
    dt.datetime(2020, 1, 2, 13, 4),  # noqa: DTZ001 - naive is one of the cases
    (1, 2),
    b"ab",
    array.array("i", [1, 2]),
    pd.NA,
    object(),
    ValueError("bad"),
    int,
    Decimal("-0.00"),
    5.097654563224752e18,  # Java before 19 writes a digit more than are needed
    "text",
    None,
]
"""What functions return, of which only the last two are strings."""

FUNCTION = len(RETURNED)


def returning(declared: str) -> Callable[..., Any]:
    values = list(RETURNED)
    return udf(lambda number: values[number % FUNCTION], declared, useArrow=False)


def odd(name: str) -> Any:  # noqa: ANN401 - a column
    return udf(lambda number: number % 2 == 0 or number < FUNCTION, "boolean", useArrow=False)(name)


@contextmanager
def enabled(spark: SparkSession) -> Iterator[None]:
    eddyline.enable(spark)
    try:
        yield
    finally:
        eddyline.disable(spark)


def told(df: DataFrame) -> list[str]:
    return sorted(PLACE.sub("@", repr(row)) for row in df.collect())


def in_filters(spark: SparkSession) -> DataFrame:
    """Return what both filters and the select list say, of each kind of value twice."""
    number = spark.range(0, 2 * FUNCTION, 1, 2)
    text, whole, parts = returning("string"), returning("int"), returning("array<string>")
    seen = col("id").cast("int")
    found = number.where((text(seen) != "no") | text(seen).isNull()).where(odd("id"))
    return found.where(whole(seen).isNull()).select(
        "id", text(seen).alias("text"), parts(seen).alias("parts")
    )


def test_odd_values_have_sparks_texts_or_are_null(spark: SparkSession) -> None:
    plain = told(in_filters(spark))
    assert any("text='{a=1, b=x}'" in row for row in plain)
    adapted = eddyline.adapt(in_filters(spark))
    assert "Block 1" in str(eddyline.explain(adapted))
    assert told(adapted) == plain
    with enabled(spark):
        assert told(in_filters(spark)) == plain


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("{a=1, b=x}", 0),
        ("[null, a, b, 3]", 3),
        ("Time: 1 hours, 2 minutes, 3 seconds, 0 microseconds", 4),
        ("0.00", 16),
    ],
)
def test_texts_of_javas_are_found_by_a_filter(spark: SparkSession, text: str, number: int) -> None:
    said = returning("string")
    query = spark.range(FUNCTION).where((said("id") == text) & odd("id"))
    assert [row.id for row in query.collect()] == [number]
    assert [row.id for row in eddyline.adapt(query).collect()] == [number]


@given(st.integers(0, 1 << 32))
@examples(2, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_generated_values_are_those_of_plain_spark(spark: SparkSession, seed: int) -> None:
    random = Random(seed)
    values = [random_value(random) for _ in range(120)]  # in one query
    count = len(values)

    def function(declared: str) -> Callable[..., Any]:
        return udf(lambda number: values[number % count], declared, useArrow=False)

    text, whole, parts = function("string"), function("bigint"), function("array<string>")
    query = spark.range(0, 2 * count, 1, 2).where((text("id") != "no") | text("id").isNull())
    query = query.where(whole("id").isNull() | (whole("id") > 0))
    query = query.select("id", text("id"), whole("id"), parts("id"), function("binary")("id"))
    assert told(eddyline.adapt(query)) == told(query)


def test_a_part_that_is_never_null_is_a_zero_where_there_is_none(spark: SparkSession) -> None:
    """As the code is that Spark generates; it reads NULL where it interprets expressions."""
    declared = (
        "struct<a:int not null,b:array<int>,c:double not null,d:boolean not null,e:bigint not null>"
    )
    answers = [
        (None, [1], None, None, None),
        (2, None, 0.5, True, 1 << 40),
        {"b": [1], "e": "text"},
        None,
    ]
    zeros = (0, [1], 0.0, False, 0)
    parts = udf(lambda n: answers[n % 4], declared, useArrow=False)
    odd = udf(lambda n: n % 2 == 1, "boolean", useArrow=False)
    frame = spark.range(8).select("id", parts("id").alias("parts"))
    found = eddyline.adapt(frame).orderBy("id").collect()
    assert [each.parts and tuple(each.parts) for each in found] == [
        *(zeros, answers[1], zeros, None),
        *(zeros, answers[1], zeros, None),
    ]
    some = eddyline.adapt(frame.filter(odd("id") & parts("id").isNotNull())).orderBy("id")
    assert [(each.id, tuple(each.parts)) for each in some.collect()] == [
        (1, answers[1]),
        (5, answers[1]),
    ]
