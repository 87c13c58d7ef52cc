"""PySpark's errors have a text with their numbers, and one name in all versions."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkRuntimeError, PySparkTypeError

from eddyline.quirks.pyspark_errors import condition_of, error_of, rows_mismatch


@pytest.mark.parametrize("kind", [None, "pandas_udf"])
def test_errors_of_rows(kind: str | None) -> None:
    error = rows_mismatch(7, 31, kind)
    assert condition_of(error) == "RESULT_ROWS_MISMATCH"
    assert "7" in str(error)
    assert "31" in str(error)


@pytest.mark.parametrize("condition", ["OUTPUT_EXCEEDS_INPUT_ROWS", "INPUT_NOT_FULLY_CONSUMED"])
def test_errors_of_iterators(condition: str) -> None:
    assert condition_of(error_of(PySparkRuntimeError, condition)) == condition


def test_errors_of_types() -> None:
    error = error_of(PySparkTypeError, "UDF_RETURN_TYPE", expected="pandas.Series", actual="int")
    assert condition_of(error) == "UDF_RETURN_TYPE"
    assert "pandas.Series" in str(error)


def test_an_error_without_a_name_has_none() -> None:
    assert condition_of(PySparkRuntimeError("something")) is None
