"""A column of results in which single rows may hold an error instead of a value.

Also the errors that are not the user's own: those of native operators, under Spark's names, and the
one that stands for the failure of a whole vector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:  # a call is an expression, and these give vectors
    from eddyline.expressions.leaves import Call

NO_ERRORS: Mapping[int, Exception] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Vector:
    """``values`` of length n, and the positions among them (0 to n-1) that failed.

    Where a position is in ``errors`` its value is NULL and means nothing: an
    error is a third thing beside a value and NULL, and travels with the row
    until the row is known to be wanted or not.
    """

    values: pa.Array
    errors: Mapping[int, Exception] = field(default_factory=lambda: NO_ERRORS)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)


class Function(Protocol):
    """A user's function as the engine calls it: columns in, one column out.

    It must return one result per row, in order, and must not raise for what the
    user's own code raises: such errors come back in :attr:`Vector.errors`.
    """

    @property
    def vectorized(self) -> bool:
        """Whether the user's code sees whole vectors, so that a visit has a large fixed cost."""
        ...

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Call the function for ``rows`` rows; each column has that length."""
        ...


class Scope(Protocol):
    """Where an expression finds the values of its leaves, for rows given by number."""

    def argument(self, index: int) -> pa.Array:
        """Return column ``index`` for the rows of this scope."""
        ...

    def call(self, call: Call) -> Vector:
        """Return a call's results; each row is computed at most once."""
        ...

    def narrow(self, positions: npt.NDArray[np.int64]) -> Scope:
        """Return the scope of some of the rows; ``positions`` point into this scope's rows."""
        ...

    def __len__(self) -> int:
        """Return the number of rows."""
        ...


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns by the numbers that arguments have, each of so many ``rows``; no function is called.

    Fulfils :class:`Scope`; ValueError for a call.
    """

    columns: Mapping[int, pa.Array]
    rows: int

    def argument(self, index: int) -> pa.Array:
        """Return a column; KeyError for one that is not there."""
        return self.columns[index]

    def call(self, call: Call) -> NoReturn:
        """Refuse."""
        raise ValueError(f"{call} is no expression over columns alone")

    def narrow(self, positions: npt.NDArray[np.int64]) -> Columns:
        """Return the scope of some of the rows."""
        chosen = pa.array(positions)
        taken = {number: column.take(chosen) for number, column in self.columns.items()}
        return Columns(taken, len(positions))

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.rows


class ErrorCondition(StrEnum):
    """Spark's names of the error conditions that :func:`evaluate` can find in a row."""

    ARITHMETIC_OVERFLOW = "ARITHMETIC_OVERFLOW"
    BINARY_ARITHMETIC_OVERFLOW = "BINARY_ARITHMETIC_OVERFLOW"  # of 8 and 16 bit integers
    CANNOT_PARSE_TIMESTAMP = "CANNOT_PARSE_TIMESTAMP"
    CAST_INVALID_INPUT = "CAST_INVALID_INPUT"
    CAST_OVERFLOW = "CAST_OVERFLOW"
    DATETIME_FIELD_OUT_OF_BOUNDS = "DATETIME_FIELD_OUT_OF_BOUNDS"
    DIVIDE_BY_ZERO = "DIVIDE_BY_ZERO"
    INVALID_ARRAY_INDEX = "INVALID_ARRAY_INDEX"
    INVALID_ARRAY_INDEX_IN_ELEMENT_AT = "INVALID_ARRAY_INDEX_IN_ELEMENT_AT"
    NO_RESULT = "NO_RESULT"  # our own: Spark computed it elsewhere, and did not say what went wrong
    REMAINDER_BY_ZERO = "REMAINDER_BY_ZERO"


class ArithmeticFailure(ArithmeticError):  # noqa: N818  # an error of a row, not of the engine
    """A row on which arithmetic or a cast has no result in ANSI mode.

    The text starts with Spark's error condition in brackets, as Spark's own
    ``ArithmeticException`` does, so that a user finds it in Spark's documentation; with what was
    computed where Spark computed it, and the condition is not known.
    """

    def __init__(self, condition: ErrorCondition, detail: str) -> None:
        """Remember the condition and what was being computed."""
        super().__init__(condition, detail)
        self.condition = condition
        self.detail = detail

    def __str__(self) -> str:
        """Return the condition, the computation, and what the user can do."""
        wrong = f"[{self.condition}] {self.detail}"
        if self.condition is ErrorCondition.NO_RESULT:
            wrong = f"{self.detail} raises an error"
        return (
            f"{wrong}. Use the try_ variant of the operation to get NULL instead, or set "
            '"spark.sql.ansi.enabled" to "false".'
        )


class CollectiveFailure(Exception):  # noqa: N818 - it is a mark on rows, not an error of ours
    """A function that works on whole vectors raised: any one row of the vector may be the cause.

    It stands in :attr:`Vector.errors` for every row of
    the vector. Rows that turn out to be wanted are tried again without the others.
    """

    def __init__(self, error: Exception) -> None:
        """Keep the user's own error, with its traceback."""
        super().__init__(error)  # as its one argument, so that it can be pickled
        self.error = error


def hides(kept: Exception, other: Exception) -> bool:
    """Whether to keep one of a row's errors would hide a failure that may yet go away."""
    return isinstance(other, CollectiveFailure) and not isinstance(kept, CollectiveFailure)
