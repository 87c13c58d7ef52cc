"""Types from what Spark's SQL says of columns (DDL)."""

from __future__ import annotations

from pyspark.sql.types import DataType, StructType

from eddyline.quirks.pyspark_at_hand import MINOR


def from_ddl(text: str) -> DataType:
    """Return what a text describes; PySpark 4.0 is the first with a public way to it."""
    if MINOR >= (4, 0):
        return StructType.fromDDL(text)
    from pyspark.sql.types import _parse_datatype_string  # noqa: PLC0415 - there alone

    parsed: DataType = _parse_datatype_string(text)
    return parsed
