"""PySpark's own errors by their conditions, whose names and arguments differ between versions."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pyspark.errors import PySparkException, PySparkRuntimeError

from eddyline.quirks.pyspark_at_hand import MINOR

_OF_VECTORS: Final = "SCHEMA_MISMATCH_FOR_PANDAS_UDF"

_FORMER: Final = {
    "INPUT_NOT_FULLY_CONSUMED": "STOP_ITERATION_OCCURRED_FROM_SCALAR_ITER_PANDAS_UDF",
    "RESULT_ROWS_MISMATCH": _OF_VECTORS,
}
"""Conditions as PySpark 3.5 calls them."""

_ITS_OWN: Final = {
    "OUTPUT_EXCEEDS_INPUT_ROWS": "Pandas SCALAR_ITER UDF outputted more rows than input rows.",
}
"""What PySpark 3.5 says where it has no name for a condition."""

ErrorT = TypeVar("ErrorT", bound=PySparkException)


def error_of(kind: type[ErrorT], condition: str, **parameters: str) -> ErrorT:
    """Return an error of a class of PySpark's, with the text that it has for a condition."""
    made: Any = kind
    if MINOR >= (4, 0):
        error: ErrorT = made(errorClass=condition, messageParameters=parameters)
    elif condition in _ITS_OWN:
        error = made(_ITS_OWN[condition])
    else:
        if condition == "RESULT_ROWS_MISMATCH":
            parameters = {
                "expected": parameters["input_length"],
                "actual": parameters["output_length"],
            }
        named = _FORMER.get(condition, condition)
        error = made(error_class=named, message_parameters=parameters)
    return error


def rows_mismatch(results: int, rows: int, kind: str | None = None) -> PySparkRuntimeError:
    """Return the error of a function that has not one result for each row.

    ``kind`` is the decorator of one from vectors to a vector, None for one over iterators. Up to
    PySpark 4.2 the former has another name and says it in other words.
    """
    if kind is None or MINOR >= (4, 3):
        return error_of(
            PySparkRuntimeError,
            "RESULT_ROWS_MISMATCH",
            output_length=str(results),
            input_length=str(rows),
        )
    named = {"udf_type": kind} if MINOR >= (4, 1) else {}
    return error_of(
        PySparkRuntimeError, _OF_VECTORS, expected=str(rows), actual=str(results), **named
    )


def condition_of(error: PySparkException) -> str | None:
    """Return the name of what is wrong, as later versions call it; None where there is none."""
    asked: Any = error
    if MINOR >= (4, 0):
        name: str | None = asked.getCondition()
        return "RESULT_ROWS_MISMATCH" if name == _OF_VECTORS else name
    texts = {text: condition for condition, text in _ITS_OWN.items()}
    former = {name: condition for condition, name in _FORMER.items()}
    name = asked.getErrorClass() or texts.get(str(error))
    return former.get(name, name) if name else None
