"""Values of functions over pandas Series, by PySpark's own conversions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.errors import PySparkTypeError, PySparkValueError
from pyspark.sql.types import BinaryType, DataType, StringType, StructType

from eddyline.blocks.column_types import arrow_type_of
from eddyline.blocks.filter_block import SessionSettings
from eddyline.expressions.value_types import relabelled
from eddyline.quirks.pandas_conversions import Pandas, pandas_conversion
from eddyline.quirks.pyspark_errors import error_of
from eddyline.quirks.returned_iterators import COUNTED_FIRST
from eddyline.tasks.calling.row_function import Reader, call_rows, write_one_by_one
from eddyline.tasks.calling.vector_function import (
    require_length,
    require_length_of_output,
    require_type,
)


class PandasArguments:
    """Columns to Series: structs become DataFrames, integers with NULLs float64 with NaN."""

    def __init__(self, settings: SessionSettings) -> None:
        """Convert under the session's settings."""
        self._conversion = pandas_conversion(settings)

    def __call__(self, columns: Sequence[pa.Array]) -> list[Pandas]:
        """Return a Series for each column, named by its position and with a fresh index."""
        return self._conversion.to_pandas(columns) if columns else []


class PandasResults:
    """Series (or DataFrames, for structs) to a column of the declared type."""

    def __init__(self, kind: DataType, settings: SessionSettings, *, plain: bool = False) -> None:
        """Convert results of a function, plain or over Series, declared to return ``kind``."""
        self.arrow_type = arrow_type_of(kind, settings.time_zone)
        self._kind = kind
        self._conversion = pandas_conversion(settings, [] if plain else None)
        self._iterated_type = pd.DataFrame if isinstance(kind, StructType) else pd.Series
        self.iterated = f"iterator of pandas.{self._iterated_type.__name__}"

    def of_batch(self, result: Any, rows: int) -> pa.Array:  # noqa: ANN401 - anything may be returned
        """Convert what a function over Series returned."""
        is_struct = isinstance(self._kind, StructType)
        if not hasattr(result, "__len__"):
            expected = "pandas.DataFrame" if is_struct else "pandas.Series"
            raise error_of(
                PySparkTypeError, "UDF_RETURN_TYPE", expected=expected, actual=type(result).__name__
            )
        require_length(result, rows, "pandas_udf")
        if is_struct and not isinstance(result, pd.DataFrame):
            raise PySparkValueError(
                "Invalid return type. Please make sure that the UDF returns a pandas.DataFrame "
                "when the specified return type is StructType."
            )
        return self.convert(result)

    def of_iterator(self, result: Any, rows: int) -> pa.Array:  # noqa: ANN401 - likewise
        """Convert what an iterator over Series yielded."""
        # Where SPARK_TESTING is set, a driver that imports this module of PySpark's fails.
        from pyspark.worker import verify_pandas_result  # noqa: PLC0415

        actual = f"iterator of {type(result).__name__}"
        require_type(result, self._iterated_type, self.iterated, actual)
        verify_pandas_result(
            result, self._kind, assign_cols_by_name=True, truncate_return_schema=True
        )
        if COUNTED_FIRST and len(result) > rows:
            require_length_of_output(result, rows)
        values = self.convert(result)
        require_length_of_output(values, rows)
        return values

    def convert(self, result: Pandas) -> pa.Array:
        """Convert a Series or DataFrame that is known to have the right shape."""
        return relabelled(self._conversion.to_column(result, self._kind), self.arrow_type)


def _unless_null(coerce: type[str | bytes], result: Any) -> Any:  # noqa: ANN401 - likewise
    return None if result is None else coerce(result)


def legacy_reader(kind: DataType, settings: SessionSettings) -> Reader:
    """Return what turns a column into Python values by way of a Series.

    That is how plain functions over Arrow got their rows before Spark 4.1, and
    still do under ``spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled``.
    """
    conversion = pandas_conversion(settings, [kind])

    def read(column: pa.Array) -> list[Any]:
        series: Any
        (series,) = conversion.to_pandas([column])
        return list(series.tolist())

    return read


class LegacyWriter:
    """Results of plain functions to a column, likewise by way of a Series."""

    def __init__(self, kind: DataType, settings: SessionSettings) -> None:
        """Write results of a function declared to return ``kind``."""
        self._results = PandasResults(kind, settings, plain=True)
        self._coerce: type[str | bytes] | None = None
        if isinstance(kind, StringType):
            self._coerce = str
        elif isinstance(kind, BinaryType):
            self._coerce = bytes

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the column."""
        return self._results.arrow_type

    def __call__(self, results: list[Any], errors: dict[int, Exception]) -> pa.Array:
        """Return the column; see :class:`~eddyline.tasks.calling.row_function.Writer`."""
        coerce = self._coerce
        if coerce is not None:
            convert = partial(_unless_null, coerce)
            results = call_rows(convert, [results], len(results), errors)
        # Failed rows stay out: a None among integers would make floats of them.
        good = [row for row in range(len(results)) if row not in errors]
        try:
            values = self._results.convert(pd.Series([results[row] for row in good]))
        except Exception:  # noqa: BLE001 - each row is looked at below
            return write_one_by_one(results, errors, self._write_one, self.arrow_type)
        if not errors:
            return values
        places: list[int | None] = [None] * len(results)
        for place, row in enumerate(good):
            places[row] = place
        return values.take(pa.array(places, pa.int64()))

    def _write_one(self, result: Any) -> pa.Array:  # noqa: ANN401 - likewise
        return self._results.convert(pd.Series([result]))
