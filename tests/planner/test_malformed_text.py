"""Strings that are not valid UTF-8 give the rows of plain Spark, or its error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everyone writes it
from pyspark.sql.functions import col, udf

from eddyline.planner.adapt import adapt
from eddyline.quirks.without_settings import ALWAYS_ON

pytestmark = pytest.mark.slow(20)

SURROGATES: Final = ("EDA080", "EDA0", "EDA041", "EDBFBF42", "EDA0EDA080", "ED8041", "EE41")
TRUNCATED: Final = ("FF41", "C3", "E282", "41E28242", "F09F98", "F09F9841", "F4908080", "F8888080")
VALID: Final = ("", "41", "C3A4", "F09F9880")


@pytest.fixture(scope="module")
def texts(spark: SparkSession) -> DataFrame:
    """A table of strings of any bytes, alone and nested."""
    data = [bytes.fromhex(each) for each in (*SURROGATES, *TRUNCATED, *VALID)]
    df = spark.createDataFrame(
        [(i, bytearray(each)) for i, each in enumerate(data)], "id int, b binary"
    )
    text = col("b").cast("string")
    return df.select(
        "id", text.alias("s"), F.array(text).alias("a"), F.struct(text.alias("f")).alias("r")
    )


def rows(df: DataFrame) -> list[str]:
    """Return the bag of rows."""
    return sorted(repr(tuple(row)) for row in df.collect())


def assert_same(df: DataFrame, **options: str) -> None:
    """Check that a DataFrame is adapted, and has the same rows."""
    fast = adapt(df, **options)  # type: ignore[arg-type]  # only texts are among the options here
    assert fast is not df
    assert fast.schema == df.schema
    expected = rows(df)
    assert expected
    assert rows(fast) == expected


def assert_both_fail(df: DataFrame, error: str) -> None:
    """Check that a DataFrame is adapted, and fails like the plain one."""
    fast = adapt(df)
    assert fast is not df
    for each in (df, fast):
        with pytest.raises(PythonException, match=error):
            each.collect()


def plain(
    function: Callable[..., object], kind: str = "boolean", *, arrow: bool
) -> Callable[..., Column]:
    """Return a plain function."""
    made: Callable[..., Column] = udf(function, kind, useArrow=arrow)
    return made


@pytest.mark.parametrize("column", ["s", "a", "r"])
def test_pickled_arguments_are_javas_text(texts: DataFrame, column: str) -> None:
    seen = plain(ascii, "string", arrow=False)
    longer = plain(lambda value: len(str(value)) > -1, arrow=False)
    assert_same(texts.filter((seen(column) != "x") & longer(column)).select("id", seen(column)))


def test_pickled_keyword_arguments_and_results(texts: DataFrame) -> None:
    seen = plain(lambda id_, text=None: f"{id_} {text}", "string", arrow=False)
    back = plain(lambda text: text, "string", arrow=False)
    df = texts.filter((seen("id", text=col("s")) != "x") & (back("s") != "y"))
    assert_same(df.select("id", F.hex(back("s"))))


@pytest.mark.parametrize("kind", ["string", "binary", "array<string>"])
def test_pickled_results_with_surrogates(texts: DataFrame, kind: str) -> None:
    def answer(number: int) -> object:
        text = ("a\ud800b", "\ud83d\ude00", "ä\udfff", "plain")[number % 4]
        return [text] if kind == "array<string>" else text

    made = plain(answer, kind, arrow=False)
    again = plain(lambda number: number > -1, arrow=False)
    df = texts.filter(made("id").isNotNull() & again("id"))
    hexed = F.hex(made("id")[0]) if kind == "array<string>" else F.hex(made("id"))
    assert_same(df.select("id", hexed))


@pytest.mark.parametrize("column", ["s", "a", "r"])
def test_plain_functions_by_arrow_fail_as_in_spark(texts: DataFrame, column: str) -> None:
    known = plain(lambda value: value is not None, arrow=True)
    shown = plain(lambda value: str(value) != "x", arrow=True)
    # By way of pandas it is Arrow that fails.
    error = "Wrapping .* failed" if ALWAYS_ON else "UnicodeDecodeError"
    assert_both_fail(texts.filter(known(column) & shown(column)), error)


def test_a_failure_is_held_back_where_another_predicate_rejects(texts: DataFrame) -> None:
    valid = plain(lambda number: number >= len(SURROGATES + TRUNCATED), arrow=True)
    known = plain(lambda text: text is not None, arrow=True)
    number = col("id").cast("double")  # functions over integers are left to PySpark 4.0
    kept = adapt(texts.filter(known("s") & valid(number))).select("id").collect()
    assert len(kept) == len(VALID)


def _series(values: pd.Series) -> pd.Series:
    return values.notna()


def _each_series(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    for values in batches:
        yield values.notna()


def _array(values: pa.Array) -> pa.Array:
    return pc.not_equal(values, "q")


def _each_array(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    for values in batches:
        yield pc.not_equal(values, "q")


def vectorized(
    kind: str, function: Callable[..., object], result: str = "boolean"
) -> Callable[..., Column]:
    """Return a function over vectors."""
    made: Callable[..., Column] = getattr(F, kind)(function, result)
    return made


@pytest.mark.parametrize("function", [_series, _each_series])
def test_functions_over_series_fail_as_in_spark(
    texts: DataFrame, function: Callable[..., object]
) -> None:
    one = vectorized("pandas_udf", function)
    other = vectorized("pandas_udf", lambda values: values != "q")
    assert_both_fail(texts.filter(one("s") & other("s")), "ArrowException")


@pytest.mark.parametrize("function", [_array, _each_array])
def test_functions_over_arrays(texts: DataFrame, function: Callable[..., object]) -> None:
    known = vectorized("arrow_udf", function)
    valid = vectorized("arrow_udf", lambda values: values.is_valid())
    assert_same(texts.filter(known("s") & valid("s")).select("id", F.hex("s")))


@pytest.mark.parametrize(
    "condition",
    [
        lambda same: same.like("_A"),
        lambda same: same.like("_"),
        lambda same: same.like("%A") | same.startswith("A"),
        lambda same: same.endswith("B") | same.contains("A"),
        lambda same: (same < "z") | (same >= "\N{GRINNING FACE}"),
        lambda same: (same == col("s")) & (same <= col("s")),
        lambda same: same.isin("A", "B", "ä"),
    ],
)
def test_conditions_that_are_evaluated_in_the_eddy(
    texts: DataFrame, condition: Callable[[Column], Column]
) -> None:
    same = vectorized("arrow_udf", lambda values: values, "string")
    kept = plain(lambda number: number > -1, arrow=False)
    assert_same(texts.filter(condition(same("s")) & kept("id")).select("id", F.hex("s")))


@pytest.mark.parametrize("small", ["10MB", "-1"], ids=["in place", "shuffled"])
@pytest.mark.parametrize("on", ["s = k", "id = j", "s < k AND id < 9 AND j < 9"])
def test_joins(spark: SparkSession, texts: DataFrame, small: str, on: str) -> None:
    first = plain(lambda text: len(text) > -1, arrow=False)
    both = plain(lambda one, other: len(one + other) > 0, arrow=False)
    others = texts.select(col("s").alias("k"), col("id").alias("j"), col("a").alias("c"))
    df = texts.join(others, F.expr(on)).filter(first("s") & both("s", "k"))
    hexed = [F.hex(each) for each in (col("s"), col("k"), col("a")[0], col("r.f"), col("c")[0])]
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", small)
    try:
        assert_same(df.select("id", "j", *hexed), joins="always")
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
