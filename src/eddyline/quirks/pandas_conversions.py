"""PySpark's own conversions between columns and pandas, behind one interface for all its versions.

What becomes of nested values, time zones and NULLs on the way is PySpark's to
say, and it says so in its worker's code alone, which nothing public leads to.
PySpark 4.2 moved that code; until then it belonged to the serializer that talks
to the JVM. No other file needs to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeAlias

import pandas as pd
import pyarrow as pa
from pyspark.sql.pandas import serializers
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from eddyline.blocks.column_types import arrays_as_sent, arrow_type_of
from eddyline.blocks.filter_block import SessionSettings
from eddyline.quirks.pyspark_at_hand import MINOR

Pandas: TypeAlias = "pd.Series[Any] | pd.DataFrame"
"""A column in pandas: a DataFrame for structs, where a function over vectors sees it."""


class PandasConversion(Protocol):
    """Converts columns to pandas and results back, under the settings of a session."""

    def to_pandas(self, columns: Sequence[pa.Array]) -> list[Pandas]:
        """Return each column, named by its position and with a fresh index."""
        ...

    def to_column(self, result: Pandas, kind: DataType) -> pa.Array:
        """Return a result as a column of about the Arrow type of the declared type."""
        ...


def pandas_conversion(
    settings: SessionSettings, plain: Sequence[DataType] | None = None
) -> PandasConversion:
    """Return the conversion of the PySpark at hand.

    ``plain`` are the types of the columns if they are for a plain function, which
    sees structs as rows and arrays as lists. Any other sees DataFrames and NumPy's arrays.
    """
    if MINOR >= (4, 2):
        return _OfWorker(settings, plain)
    return _OfSerializer(settings, plain)


class _OfWorker:
    """The conversions of PySpark 4.2 and later."""

    def __init__(self, settings: SessionSettings, plain: Sequence[DataType] | None) -> None:
        self._settings = settings
        self._plain = plain is not None
        # Columns keep their types from call to call.
        self._schema = None if plain is None else _schema(plain)

    def to_pandas(self, columns: Sequence[pa.Array]) -> list[Pandas]:
        from pyspark.sql import conversion  # noqa: PLC0415 - PySpark 3.5 has none

        batch = _batch(columns, self._settings)
        if self._schema is None:
            self._schema = from_arrow_schema(batch.schema)
        return conversion.ArrowBatchTransformer.to_pandas(
            batch,
            timezone=self._settings.time_zone,
            schema=self._schema,
            struct_in_pandas="row" if self._plain else "dict",
            ndarray_as_list=self._plain,
            prefer_int_ext_dtype=self._settings.integer_extension_types,
            df_for_struct=not self._plain,
        )

    def to_column(self, result: Pandas, kind: DataType) -> pa.Array:
        from pyspark.sql import conversion  # noqa: PLC0415 - likewise

        settings = self._settings
        batch = conversion.PandasToArrowConversion.convert(
            [result],
            _schema([kind]),
            timezone=settings.time_zone,
            safecheck=settings.safe_arrow_conversion,
            arrow_cast=True,
            assign_cols_by_name=settings.assign_columns_by_name,
            int_to_decimal_coercion_enabled=settings.int_to_decimal_coercion,
        )
        return batch.column(0)


class _OfSerializer:
    """The conversions of PySpark 3.5 to 4.1."""

    def __init__(self, settings: SessionSettings, plain: Sequence[DataType] | None) -> None:
        serializer: Final[Any] = getattr(serializers, "ArrowStreamPandasUDFSerializer")  # noqa: B009 - unknown to mypy
        self._settings = settings
        self._plain = plain is not None
        self._converter = serializer(
            settings.time_zone,
            settings.safe_arrow_conversion,
            settings.assign_columns_by_name,
            df_for_struct=not self._plain,
            struct_in_pandas="row" if self._plain else "dict",
            ndarray_as_list=self._plain,
            **self._options(plain),
        )

    def _options(self, plain: Sequence[DataType] | None) -> dict[str, object]:
        if MINOR < (4, 1):
            return {"arrow_cast": self._plain}
        return {
            "arrow_cast": True,
            "input_types": None if plain is None else list(plain),
            "int_to_decimal_coercion_enabled": self._settings.int_to_decimal_coercion,
        }

    def to_pandas(self, columns: Sequence[pa.Array]) -> list[Pandas]:
        table = pa.Table.from_batches([_batch(columns, self._settings)])
        return [
            self._converter.arrow_to_pandas(column, *([number] if MINOR >= (4, 1) else []))
            for number, column in enumerate(table.itercolumns())
        ]

    def to_column(self, result: Pandas, kind: DataType) -> pa.Array:
        declared = [kind] if self._plain and MINOR >= (4, 1) else []
        wanted = (result, arrow_type_of(kind, "UTC"), *declared)
        return self._converter._create_batch([wanted]).column(0)  # noqa: SLF001 - no public way


def _batch(columns: Sequence[pa.Array], settings: SessionSettings) -> pa.RecordBatch:
    names = [f"_{i}" for i in range(len(columns))]
    sent = arrays_as_sent(columns, settings.time_zone, large=settings.large_types)
    return pa.RecordBatch.from_arrays(sent, names)


def _schema(kinds: Sequence[DataType]) -> StructType:
    return StructType([StructField(f"_{i}", kind) for i, kind in enumerate(kinds)])
