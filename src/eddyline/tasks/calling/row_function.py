"""Functions that are called row by row: what one row raises stays with that row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat, starmap
from types import TracebackType
from typing import Any, Final, Protocol

import pyarrow as pa
from pyspark.errors import PySparkRuntimeError

from eddyline.expressions.vector import NO_ERRORS, Vector
from eddyline.quirks.pyspark_errors import error_of
from eddyline.tasks.calling.pickled_functions import UserCode, bind_keywords

# Modules whose frames only lead to the user's code.
_ON_THE_WAY: Final = frozenset(
    {__name__, bind_keywords.__module__, "eddyline.tasks.calling.nest_function"}
)

Reader = Callable[[pa.Array], Sequence[Any]]
"""Turns a column into the Python values that the user's function shall see, one per row."""


class Writer(Protocol):
    """Turns what the user's function returned into a column of the declared type."""

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the column."""
        ...

    def __call__(self, results: list[Any], errors: dict[int, Exception]) -> pa.Array:
        """Return one value per result, NULL where ``errors`` has the position.

        A result that cannot be converted adds its own error there.
        """
        ...


class RowFunction:
    """A function called once for each row."""

    vectorized = False

    def __init__(self, function: UserCode, readers: Sequence[Reader], write: Writer) -> None:
        """Make it of its parts; ``readers`` are one for each argument of ``function``."""
        self._function = function
        self._readers = tuple(readers)
        self._write = write

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Call the function for each of ``rows`` rows, in order."""
        try:
            arguments = [read(column) for read, column in zip(self._readers, columns, strict=True)]
        except Exception as error:  # noqa: BLE001 - e.g. a date beyond Python's; nothing is called yet
            return self._row_by_row(columns, rows, error)
        errors: dict[int, Exception] = {}
        results = self._called(columns, arguments, rows, errors)
        return Vector(self._write(results, errors), errors or NO_ERRORS)

    def _called(
        self,
        columns: Sequence[pa.Array],  # noqa: ARG002 - for those that tell rows apart
        arguments: Sequence[Sequence[Any]],
        rows: int,
        errors: dict[int, Exception],
    ) -> list[Any]:
        """Return what the function returns for each row, likewise :func:`call_rows`."""
        return call_rows(self._function, arguments, rows, errors)

    def _row_by_row(self, columns: Sequence[pa.Array], rows: int, error: Exception) -> Vector:
        """Find the rows whose arguments Python cannot represent; the others go on."""
        if rows == 1:
            return Vector(pa.nulls(1, self._write.arrow_type), {0: error})
        vectors = [self([column.slice(row, 1) for column in columns], 1) for row in range(rows)]
        values = pa.concat_arrays([vector.values for vector in vectors])
        return Vector(
            values, {row: vector.errors[0] for row, vector in enumerate(vectors) if vector.errors}
        )

    def close(self) -> None:
        """Do nothing: a function that is called row by row holds nothing open."""


def call_rows(
    function: UserCode,
    arguments: Sequence[Sequence[Any]],
    rows: int,
    errors: dict[int, Exception],
) -> list[Any]:
    """Return ``function``'s value for each row, None where it raised; no row is called twice.

    ``errors`` gets the exception of each row that raised, with the user's part of
    its traceback. What is no ``Exception`` (``SystemExit``, ``KeyboardInterrupt``)
    is no error of a row but an order to stop, and is raised.
    """
    results: list[Any] = []
    # `map` keeps its place when a call raises, and `extend` what it has got until then.
    # That loop is C's: 80 ns a row and call, against 155 ns for PySpark's
    # `[function(*row) for row in zip(...)]` and 115 ns for a loop with `append` (two arguments).
    calls = map(function, *arguments) if arguments else starmap(function, repeat((), rows))
    while len(results) < rows:
        try:
            results.extend(calls)
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            errors[len(results)] = error.with_traceback(_users_part(error.__traceback__))
            results.append(None)
        else:
            if len(results) < rows:  # `extend` took a StopIteration for the end
                errors[len(results)] = error_of(
                    PySparkRuntimeError, "STOP_ITERATION_OCCURRED", exc=""
                )
                results.append(None)
    return results


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in _ON_THE_WAY:
        trace = trace.tb_next
    return trace


def write_one_by_one(
    results: Sequence[Any],
    errors: dict[int, Exception],
    write: Callable[[Any], pa.Array],
    arrow_type: pa.DataType,
) -> pa.Array:
    """Return a column of results that cannot be written together.

    ``write`` makes a column of one result; what it raises becomes that row's error.
    """
    parts = []
    for row, result in enumerate(results):
        part = pa.nulls(1, arrow_type)
        if row not in errors:
            try:
                part = write(result)
            except Exception as error:  # noqa: BLE001 - whatever Spark would fail with
                errors[row] = error
        parts.append(part)
    return pa.concat_arrays(parts)
