"""Reads Parquet files whose timestamps are in nanoseconds, as pandas writes them.

Spark has timestamps of microseconds, and refuses these files. With a setting it hands the
nanoseconds over as numbers; here they become timestamps again, the rest of a microsecond cut off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everywhere

from eddyline.app.file_errors import UnsuitableFileError

HOW_TO_WRITE: Final = (
    'write microseconds instead; in pandas: to_parquet(…, coerce_timestamps="us", '
    "allow_truncated_timestamps=True)"
)

_AS_NUMBERS: Final = "spark.sql.legacy.parquet.nanosAsLong"


@dataclass(frozen=True, slots=True)
class NanosecondColumn:
    """A column of timestamps in nanoseconds: moments, or times on a clock without a zone."""

    name: str
    has_zone: bool


def nanosecond_columns(file: Path) -> tuple[NanosecondColumn, ...]:
    """Return the columns of a file that hold nanoseconds; none where the file cannot be read.

    Raises :class:`UnsuitableFileError` if some are within structs, lists or maps, where they are
    not converted back.
    """
    try:
        with pq.ParquetFile(file) as opened:
            columns = tuple(_columns(opened.schema))
    except (pa.ArrowException, OSError):  # which Spark tells
        return ()
    return columns


def speaks_of_nanoseconds(message: str) -> bool:
    """Whether an error of Spark's is about timestamps in nanoseconds.

    Spark 4.3 is to have such timestamps one day, and PySpark does not know them.

    >>> speaks_of_nanoseconds("Illegal Parquet type: INT64 (TIMESTAMP(NANOS,false))")
    True
    >>> speaks_of_nanoseconds("Unable to parse datatype. timestamp_ntz(9)")
    True
    """
    return re.search(r"TIMESTAMP\(NANOS|timestamp_[nl]tz\(9\)", message) is not None


def read_parquet(
    spark: SparkSession, paths: Sequence[str], nanoseconds: tuple[NanosecondColumn, ...]
) -> DataFrame:
    """Return a table of Parquet; all timestamps have microseconds."""
    if not nanoseconds:
        return spark.read.parquet(*paths)
    spark.conf.set(_AS_NUMBERS, "true")
    frame = spark.read.parquet(*paths)
    has_zone: Mapping[str, bool] = {column.name: column.has_zone for column in nanoseconds}
    return frame.select(
        *(
            _timestamp(name, has_zone=has_zone[name]) if name in has_zone else F.col(_quoted(name))
            for name in frame.columns
        )
    )


def _columns(schema: pq.ParquetSchema) -> Iterator[NanosecondColumn]:
    for place in range(len(schema)):
        column = schema.column(place)
        kind = json.loads(column.logical_type.to_json())
        if kind.get("Type") == "Timestamp" and kind["timeUnit"] == "nanoseconds":
            if column.path != column.name:
                raise UnsuitableFileError(
                    f"{column.path} holds timestamps in nanoseconds, which Spark cannot read; "
                    f"{HOW_TO_WRITE}"
                )
            yield NanosecondColumn(column.name, kind["isAdjustedToUTC"])


def _timestamp(name: str, *, has_zone: bool) -> Column:
    number = _quoted(name)
    microseconds = f"({number} - pmod({number}, 1000)) div 1000"  # rounds down, before 1970 too
    if has_zone:
        sql = f"timestamp_micros({microseconds})"
    else:
        sql = f"timestampadd(MICROSECOND, {microseconds}, timestamp_ntz '1970-01-01')"
    return F.expr(sql).alias(name)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
