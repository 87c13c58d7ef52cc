"""What guards against an error does so wherever it stands, whatever would raise it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark import Accumulator
from pyspark.errors import (
    ArithmeticException,
    DateTimeException,
    NumberFormatException,
    PythonException,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline

TEXTS = ["1", "22", "x", None, "7", "-", "100", "4.5", "", "9"]


@pytest.fixture(scope="module")
def calls(spark: SparkSession) -> Accumulator[int]:
    return spark.sparkContext.accumulator(0)


@pytest.fixture(scope="module")
def guarded(spark: SparkSession, calls: Accumulator[int]) -> Iterator[DataFrame]:
    """Rows of which some make something raise, and functions by name."""

    def is_number(text: str | None) -> bool:
        calls.add(1)
        return text is not None and text.isdigit()

    functions = {
        "number_of": F.udf(int, "int"),
        "is_number": F.udf(is_number, "boolean"),
        "nonzero": F.udf(lambda n: n != 0, "boolean"),
        "anything": F.udf(lambda _: True, "boolean"),
    }
    for name, function in functions.items():
        spark.udf.register(name, function)
    rows = [(number, text, number % 4) for number, text in enumerate(TEXTS)]
    frame = spark.createDataFrame(rows, "id int, t string, n int").localCheckpoint()
    yield frame
    for name in functions:
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


NUMBERS = "t RLIKE '^[0-9]+$'"

# In plain Spark all but those marked fail, since it computes too much or in another order.
GUARDS: dict[str, list[int]] = {
    f"({NUMBERS} AND number_of(t) > 5) OR t IS NULL": [1, 3, 4, 6, 9],
    f"(number_of(t) > 5 AND {NUMBERS}) OR id = 3": [1, 3, 4, 6, 9],
    "(regexp_extract(t, '([0-9]+)', 1) = t AND t <> '' AND number_of(t) > 5) OR id = 3": [
        *(1, 3, 4, 6, 9)
    ],
    f"CASE WHEN {NUMBERS} THEN number_of(t) > 5 ELSE false END": [1, 4, 6, 9],
    f"IF({NUMBERS}, number_of(t), 0) > 5": [1, 4, 6, 9],
    f"coalesce(CASE WHEN {NUMBERS} THEN number_of(t) END, 0) > 5": [1, 4, 6, 9],
    f"NOT CASE WHEN {NUMBERS} THEN number_of(t) > 5 ELSE true END": [0],
    "is_number(t) AND CAST(t AS int) > 5": [1, 4, 6, 9],
    "CAST(t AS int) > 5 AND is_number(t)": [1, 4, 6, 9],
    "CAST(t AS int) + 1 > 6 AND is_number(t) AND id < 9": [1, 4, 6],
    "CAST(t AS int) IN (1, 22, 5) AND is_number(t)": [0, 1],
    "(CAST(t AS int) > 50 OR CAST(t AS bigint) = 7) AND is_number(t)": [4, 6],
    "nonzero(n) AND 10 / n > 4": [1, 2, 5, 6, 9],
    "nonzero(n) AND 10 % n = 1": [3, 7],
    "nonzero(n) AND 10 div n = 5 AND anything(t)": [2, 6],
    "is_number(t) AND to_date(t, 'y') > date'0010-01-01' AND id > 1": [6],
    "(CAST(t AS int) > 5 AND is_number(t)) OR id = 3": [1, 3, 4, 6, 9],
    "(nonzero(n) AND 10 / n > 4) OR t IS NULL": [1, 2, 3, 5, 6, 9],
    "CASE WHEN is_number(t) THEN CAST(t AS int) > 5 ELSE false END": [1, 4, 6, 9],  # plain: fine
}


@pytest.mark.parametrize("condition", GUARDS)
def test_a_guard_works_wherever_it_stands(guarded: DataFrame, condition: str) -> None:
    assert ids(eddyline.adapt(guarded.where(condition))) == GUARDS[condition]


ACCEPTED: dict[str, type[Exception]] = {
    "anything(t) AND CAST(t AS int) > 5": NumberFormatException,
    "anything(n) AND 10 / n > 4": ArithmeticException,
    "anything(t) AND to_date(t, 'y') > date'2000-01-01'": DateTimeException,
    "(anything(t) AND CAST(t AS int) > 5) OR id = 3": PythonException,
}


@pytest.mark.parametrize("condition", ACCEPTED)
def test_what_nothing_rejects_raises(guarded: DataFrame, condition: str) -> None:
    with pytest.raises(ACCEPTED[condition], match=r"\[(CAST_INVALID|DIVIDE_BY|CANNOT_PARSE)"):
        eddyline.adapt(guarded.where(condition)).collect()


def test_rows_that_a_native_condition_drops_are_not_asked_about(
    guarded: DataFrame, calls: Accumulator[int]
) -> None:
    """Only those for which it would raise come to the function beside those that it keeps."""
    calls.value = 0
    fast = eddyline.adapt(guarded.where("is_number(t) AND CAST(t AS int) > 5"))
    assert ids(fast) == [1, 4, 6, 9]
    assert calls.value == len(["22", "x", "7", "-", "100", "4.5", "", "9"])
    assert "after these: it could raise" in str(eddyline.explain(fast))


def test_what_cannot_raise_stays_below(spark: SparkSession, guarded: DataFrame) -> None:
    condition = "is_number(t) AND try_cast(t AS int) > 5 AND n / 2 >= 0 AND anything(t)"
    plain = guarded.where(condition)
    fast = eddyline.adapt(plain)
    assert ids(fast) == ids(plain) == [1, 4, 6, 9]
    assert "could raise" not in str(eddyline.explain(fast))
    ansi = "spark.sql.ansi.enabled"
    spark.conf.set(ansi, "false")
    try:
        lenient = guarded.where("is_number(t) AND CAST(t AS int) > 5 AND anything(t)")
        assert "could raise" not in str(eddyline.explain(lenient))
        assert ids(eddyline.adapt(lenient)) == ids(lenient) == [1, 4, 6, 9]
    finally:
        spark.conf.unset(ansi)
