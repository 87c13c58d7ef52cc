"""What goes wrong with one row inside a native operator, under Spark's error conditions."""

from __future__ import annotations

from enum import StrEnum


class ErrorCondition(StrEnum):
    """Spark's names of the error conditions that :func:`evaluate` can find in a row."""

    ARITHMETIC_OVERFLOW = "ARITHMETIC_OVERFLOW"
    BINARY_ARITHMETIC_OVERFLOW = "BINARY_ARITHMETIC_OVERFLOW"  # of 8 and 16 bit integers
    CANNOT_PARSE_TIMESTAMP = "CANNOT_PARSE_TIMESTAMP"
    CAST_INVALID_INPUT = "CAST_INVALID_INPUT"
    CAST_OVERFLOW = "CAST_OVERFLOW"
    DIVIDE_BY_ZERO = "DIVIDE_BY_ZERO"
    REMAINDER_BY_ZERO = "REMAINDER_BY_ZERO"


class ArithmeticFailure(ArithmeticError):  # noqa: N818  # an error of a row, not of the engine
    """A row on which arithmetic or a cast has no result in ANSI mode.

    The text starts with Spark's error condition in brackets, as Spark's own
    ``ArithmeticException`` does, so that a user finds it in Spark's documentation.
    """

    def __init__(self, condition: ErrorCondition, detail: str) -> None:
        """Remember the condition and what was being computed."""
        super().__init__(condition, detail)
        self.condition = condition
        self.detail = detail

    def __str__(self) -> str:
        """Return the condition, the computation, and what the user can do."""
        return (
            f"[{self.condition}] {self.detail}. Use the try_ variant of the operation to get "
            'NULL instead, or set "spark.sql.ansi.enabled" to "false".'
        )
