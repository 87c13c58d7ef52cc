"""Writes the rows of a query into one file, however large, in their order.

Spark writes a folder of parts, one a task and many at the same time. They are
put together here piece by piece, so the rows never have to fit into memory.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from eddyline.app.endings import RunError, UsageError
from eddyline.app.file_errors import file_errors_explained
from eddyline.app.interrupts import temporary_folder
from eddyline.app.output_kind import OutputKind

# The standard type instead of a deprecated one of 96 bits, which would come back
# from here in nanoseconds and so for the years 1677 to 2262 only.
_TIMESTAMP_SETTING: Final = "spark.sql.parquet.outputTimestampType"
_TIMESTAMP_TYPE: Final = "TIMESTAMP_MICROS"


def check_columns(frame: DataFrame, path: Path) -> None:
    """Raise :class:`UsageError` if two columns have one name, for any kind of file."""
    exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    names = frame.columns if exact else [name.lower() for name in frame.columns]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"{path} cannot be written: there are two columns named {name}; rename one by AS"
            )


def write_rows(frame: DataFrame, path: Path, kind: OutputKind) -> None:
    """Run a query and write its rows; an existing file is replaced once all rows are there.

    Raises :class:`RunError` if the disk is full, or else refuses to take them.
    """
    folder = path.absolute().parent
    with (
        file_errors_explained(path, "written", RunError),
        temporary_folder(".eddyline-", folder) as draft,
    ):
        parts, whole = Path(draft, "parts"), Path(draft, "whole")
        match kind:
            case OutputKind.PARQUET:
                with _standard_timestamps(frame.sparkSession):
                    frame.write.parquet(str(parts))
                _join_parquet(_in_order(parts), whole)
            case OutputKind.CSV:
                frame.write.csv(
                    str(parts),
                    escape='"',
                    ignoreLeadingWhiteSpace=False,
                    ignoreTrailingWhiteSpace=False,
                )
                _join_text(_in_order(parts), whole, frame.columns)
            case OutputKind.JSON:
                frame.write.json(str(parts), ignoreNullFields=False)
                _join_text(_in_order(parts), whole, ())
        whole.replace(path)


@contextmanager
def _standard_timestamps(spark: SparkSession) -> Iterator[None]:
    before = str(spark.conf.get(_TIMESTAMP_SETTING))
    spark.conf.set(_TIMESTAMP_SETTING, _TIMESTAMP_TYPE)
    try:
        yield
    finally:
        spark.conf.set(_TIMESTAMP_SETTING, before)


def _in_order(parts: Path) -> list[Path]:
    return sorted(parts.glob("part-*"))  # numbered with leading zeros


def _join_parquet(parts: Sequence[Path], whole: Path) -> None:
    with pq.ParquetWriter(whole, pq.read_schema(parts[0])) as writer:
        for part in parts:
            with pq.ParquetFile(part) as file:
                for group in range(file.num_row_groups):
                    writer.write_table(file.read_row_group(group))


def _join_text(parts: Sequence[Path], whole: Path, header: Sequence[str]) -> None:
    with whole.open("w", newline="", encoding="utf-8") as file:
        if header:
            csv.writer(file, lineterminator="\n").writerow(header)
        file.flush()
        for part in parts:
            with part.open("rb") as text:
                shutil.copyfileobj(text, file.buffer)
