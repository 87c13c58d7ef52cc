"""Makes a user's files readable as tables of Spark's SQL."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from eddyline.app.failures import UsageError
from eddyline.app.file_errors import file_errors_explained
from eddyline.app.invocation import TableSource
from eddyline.app.spark_errors import essence

# Files of a folder that are looked at to tell its kind: all of them, if there are no millions.
_LOOKED_AT = 10_000


class TableKind(StrEnum):
    """The kinds of file that can be read, by the names that Spark's readers have."""

    PARQUET = "parquet"
    CSV = "csv"  # with a header
    JSON = "json"  # one object a line, or one array of objects


_ENDINGS = {
    ".parquet": TableKind.PARQUET,
    ".csv": TableKind.CSV,
    ".json": TableKind.JSON,
    ".jsonl": TableKind.JSON,
    ".ndjson": TableKind.JSON,
}
_NO_SCHEMA = "UNABLE_TO_INFER_SCHEMA"  # Spark's name for files that are all empty
_COMPRESSIONS = frozenset({".bz2", ".gz"})  # that Spark opens by the ending


@dataclass(frozen=True, slots=True)
class Table:
    """A table that was found: ``path`` is absolute or an address, ``array`` tells JSON's form."""

    name: str
    path: str
    kind: TableKind
    array: bool = False


def find_table(source: TableSource) -> Table:
    """Return what a source stands for, without reading it.

    Raises :class:`UsageError` for what is missing or of no known kind. Whether
    an address (``s3a://…``) leads anywhere is left for Spark to find out.
    """
    if "://" in source.path:
        return Table(source.name, source.path, _only_kind(source, [Path(source.path)]))
    with file_errors_explained(f"table {source.name}: {source.path}", "read"):
        path = Path(os.path.expanduser(source.path)).absolute()  # noqa: PTH111 - may be no one's
        found = [path] if path.exists() else _matching(path)
        if not found:
            raise UsageError(f"table {source.name}: there is no file {source.path}")
        files = list(islice(_files(found), _LOOKED_AT))
        if not files:
            raise UsageError(f"table {source.name}: the folder {source.path} is empty")
        kind = _only_kind(source, files)
        files[0].open("rb").close()
        array = kind is TableKind.JSON and _starts_array(files[0])
        return Table(source.name, str(path), kind, array)


def create_view(spark: SparkSession, table: Table) -> None:
    """Let queries use a table by its name; raise :class:`UsageError` if it cannot be read."""
    try:
        frame = _read(spark, table)
    except (PySparkException, Py4JJavaError) as error:
        if isinstance(error, PySparkException) and error.getCondition() == _NO_SCHEMA:
            raise UsageError(_empty(table)) from error
        raise UsageError(
            f"table {table.name}: {table.path} cannot be read as {table.kind}: {essence(error)}"
        ) from error
    if not frame.columns:
        raise UsageError(_empty(table))
    if table.kind is TableKind.JSON and "_corrupt_record" in frame.columns:
        raise UsageError(
            f"table {table.name}: {table.path} holds something else than JSON objects, one a line "
            "or all in one array"
        )
    frame.createOrReplaceTempView(table.name)


def _empty(table: Table) -> str:
    return f"table {table.name}: {table.path} is empty, it has no columns"


def _matching(pattern: Path) -> list[Path]:
    try:
        return sorted(Path(pattern.anchor).glob(str(pattern)[len(pattern.anchor) :]))
    except ValueError:  # it is no pattern either
        return []


def _read(spark: SparkSession, table: Table) -> DataFrame:
    if table.kind is TableKind.PARQUET:
        return spark.read.parquet(table.path)
    if table.kind is TableKind.CSV:
        # A quote inside quotes is doubled, as everywhere but in Spark's default.
        return spark.read.csv(table.path, header=True, inferSchema=True, escape='"')
    return spark.read.json(table.path, multiLine=table.array)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """Return the files at some paths and below, but for those that Spark leaves out."""
    for path in paths:
        inside = (file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in inside:
            if not file.name.startswith(("_", ".")):
                yield file


def _only_kind(source: TableSource, files: Sequence[Path]) -> TableKind:
    kinds = {_kind(file) for file in files}
    kind = kinds.pop()
    if kinds or kind is None:
        what = "holds files of several kinds" if kinds else "is of no kind that can be read"
        raise UsageError(
            f"table {source.name}: {source.path} {what}; "
            f"the known endings are {', '.join(_ENDINGS)}"
        )
    return kind


def _kind(file: Path) -> TableKind | None:
    endings = [ending.lower() for ending in file.suffixes]
    while endings and endings[-1] in _COMPRESSIONS:
        endings.pop()
    return _ENDINGS.get(endings[-1]) if endings else None


def _starts_array(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(1_000).lstrip().startswith(b"[")
