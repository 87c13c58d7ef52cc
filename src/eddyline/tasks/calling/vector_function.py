"""Functions over whole vectors: what they raise may be any row's fault."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException, PySparkRuntimeError, PySparkTypeError
from pyspark.sql.types import DataType
from pyspark.util import fail_on_stopiteration

from eddyline.blocks.column_types import arrow_type_of
from eddyline.blocks.filter_block import SessionSettings
from eddyline.expressions.value_types import relabelled
from eddyline.expressions.vector import CollectiveFailure, Vector
from eddyline.quirks.pyspark_errors import condition_of, error_of, rows_mismatch
from eddyline.tasks.calling.pickled_functions import UserCode

Pack = Callable[[Sequence[pa.Array]], Sequence[Any]]
"""Turns columns into what the user's function takes."""

Unpack = Callable[[Any, int], pa.Array]
"""Checks and converts what it returned for so many rows; raises what Spark would raise."""


_MISCOUNTED: Final = frozenset({"RESULT_ROWS_MISMATCH", "OUTPUT_EXCEEDS_INPUT_ROWS"})
"""Spark's names for what has not one result for each row."""


class VectorFunction:
    """A function called once for each chunk of rows."""

    vectorized = True

    def __init__(
        self, function: UserCode, pack: Pack, unpack: Unpack, arrow_type: pa.DataType
    ) -> None:
        """Make it of its parts."""
        self._function = fail_on_stopiteration(function)
        self._pack = pack
        self._unpack = unpack
        self._arrow_type = arrow_type

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Call the function for a chunk; an exception counts for every row of the chunk."""
        if rows == 0:  # Spark sends no empty chunk
            return Vector(pa.nulls(0, self._arrow_type))
        try:
            result = self._function(*self._pack(columns))
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            return all_failed(error, rows, self._arrow_type)
        return unpacked(self._unpack, result, rows, self._arrow_type)

    def close(self) -> None:
        """Do nothing: a function that is called chunk by chunk holds nothing open."""


def unpacked(
    unpack: Unpack,
    result: Any,  # noqa: ANN401 - anything may be returned
    rows: int,
    arrow_type: pa.DataType,
) -> Vector:
    """Return what a function returned for so many rows.

    Too few results or too many are no single row's fault: a function that returns the first row of
    a chunk is right for chunks of one row, and wrong all the same.
    """
    try:
        return Vector(unpack(result, rows))
    except Exception as error:  # noqa: BLE001 - whatever Spark would fail with
        if isinstance(error, PySparkException) and condition_of(error) in _MISCOUNTED:
            return Vector(pa.nulls(rows, arrow_type), dict.fromkeys(range(rows), error))
        return all_failed(error, rows, arrow_type)


def all_failed(error: Exception, rows: int, arrow_type: pa.DataType) -> Vector:
    """Return a vector with the same failure in every row; any one of the rows may be its cause."""
    failure = CollectiveFailure(error)
    return Vector(pa.nulls(rows, arrow_type), dict.fromkeys(range(rows), failure))


class ArrowResults:
    """Arrow arrays that a function returned, to a column of the declared type."""

    iterated: Final = "iterator of pyarrow.Array"

    def __init__(self, kind: DataType, settings: SessionSettings) -> None:
        """Convert results of a function declared to return ``kind``."""
        self.arrow_type = arrow_type_of(kind, settings.time_zone)
        # Spark takes timestamps without a zone for UTC here, whatever the session's zone.
        self._in_utc = arrow_type_of(kind, "UTC")

    def of_batch(self, result: Any, rows: int) -> pa.Array:  # noqa: ANN401 - anything may be returned
        """Convert what a function over Arrow arrays returned."""
        values = self._convert(result)
        require_length(values, rows, "arrow_udf")
        return values

    def of_iterator(self, result: Any, rows: int) -> pa.Array:  # noqa: ANN401 - likewise
        """Convert what an iterator over Arrow arrays yielded."""
        require_type(result, pa.Array, self.iterated, f"iterator of {type(result).__name__}")
        values = self._convert(result)
        require_length_of_output(values, rows)
        return values

    def _convert(self, result: Any) -> pa.Array:  # noqa: ANN401 - likewise
        values = pa.RecordBatch.from_arrays([result], ["_0"]).column(0)  # or what Spark raises
        if values.type != self._in_utc:
            try:
                values = values.cast(self._in_utc)
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                mismatch = f"column '_0' (expected {self._in_utc}, actual {values.type})"
                raise error_of(
                    PySparkRuntimeError, "RESULT_COLUMN_TYPES_MISMATCH", mismatch=mismatch
                ) from None
        return relabelled(values, self.arrow_type)


def require_length(result: Any, rows: int, kind: str | None = None) -> None:  # noqa: ANN401 - anything may be returned
    """Raise Spark's error unless a result has so many rows; ``kind`` as in ``rows_mismatch``."""
    if len(result) != rows:
        raise rows_mismatch(len(result), rows, kind)


def require_length_of_output(result: Any, rows: int) -> None:  # noqa: ANN401 - likewise
    """Raise Spark's error for iterators, unless a result has so many rows."""
    if len(result) > rows:
        raise error_of(PySparkRuntimeError, "OUTPUT_EXCEEDS_INPUT_ROWS")
    require_length(result, rows)


def require_type(result: object, expected: type, wanted: str, actual: str) -> None:
    """Raise Spark's error, in its words, unless a result is of a class."""
    if not isinstance(result, expected):
        raise error_of(PySparkTypeError, "UDF_RETURN_TYPE", expected=wanted, actual=actual)
