"""Makes a user's files readable as tables of Spark's SQL."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from eddyline.app.endings import UsageError
from eddyline.app.file_errors import UnsuitableFileError, file_errors_explained
from eddyline.app.invocation import TableSource
from eddyline.app.parquet_nanoseconds import (
    HOW_TO_WRITE,
    NanosecondColumn,
    nanosecond_columns,
    read_parquet,
    speaks_of_nanoseconds,
)
from eddyline.app.spark_errors import essence
from eddyline.app.text_files import (
    RECORDS,
    beginning_of,
    delimiter_of,
    one_delimiter,
    peculiarities,
)
from eddyline.quirks.pyspark_errors import condition_of

# Files of a folder that are looked at to tell its kind: all of them, if there are no millions.
_LOOKED_AT = 10_000

# Files of those that are opened to find out a delimiter.
_LOOKED_INTO = 100


class TableKind(StrEnum):
    """The kinds of file that can be read, by the names that Spark's readers have."""

    PARQUET = "parquet"
    CSV = "csv"  # with a header; the delimiter is found out
    JSON = "json"  # one object a line, or one array of objects


_ENDINGS = {
    ".parquet": TableKind.PARQUET,
    ".csv": TableKind.CSV,
    ".tsv": TableKind.CSV,
    ".json": TableKind.JSON,
    ".jsonl": TableKind.JSON,
    ".ndjson": TableKind.JSON,
}
_NO_SCHEMA = "UNABLE_TO_INFER_SCHEMA"  # Spark's name for files that are all empty
_COMPRESSIONS = frozenset({".bz2", ".gz"})  # that Spark opens by the ending


@dataclass(frozen=True, slots=True)
class Table:
    """A table that was found: ``path`` is absolute or an address, ``found`` what Spark is to read.

    ``array`` tells JSON's form, ``delimiter`` separates the fields of CSV (None where only Spark
    can look), whose lines may be ``broken`` within quotes, and ``nanoseconds`` are columns of
    Parquet that become timestamps of microseconds. ``misread`` is a file of text that is not in
    UTF-8. ``label`` goes before what is said of the table.
    """

    name: str
    path: str
    found: tuple[str, ...]
    kind: TableKind
    label: str
    array: bool = False
    delimiter: str | None = None
    broken: bool = False
    nanoseconds: tuple[NanosecondColumn, ...] = ()
    misread: Path | None = None

    def remarks(self) -> Iterator[str]:
        """Yield what the user should know about how the table is read."""
        if self.nanoseconds:
            columns = ", ".join(column.name for column in self.nanoseconds)
            yield (
                f"{self.name}: {columns}: nanoseconds are cut to microseconds, the most that "
                "Spark's timestamps have."
            )
        if self.misread is not None:
            yield (
                f"{self.name}: {self.misread.name} is not in UTF-8: letters that are none there "
                "are read as \ufffd."
            )


def find_table(source: TableSource) -> Table:
    """Return what a source stands for, from a look at how its files begin.

    Raises :class:`UsageError` for what is missing, of no known kind, or not what its name says.
    Whether an address (``s3a://…``) leads anywhere is left for Spark to find out.
    """
    if "://" in source.path:
        kind = _only_kind(source, [Path(source.path)])
        return Table(source.name, source.path, (source.path,), kind, source.label)
    with file_errors_explained(f"{source.label}{source.path}", "read"):
        path = Path(os.path.expanduser(source.path)).absolute()  # noqa: PTH111 - may be no one's
        roots = [path] if path.exists() else _matching(path)
        if not roots:
            raise UsageError(f"{source.label}there is no file {source.path}")
        files = list(islice(_files(roots), _LOOKED_AT))
        if not files:
            raise UsageError(f"{source.label}{_nothing_in(source.path, roots)}")
        if any(":" in part for file in files for part in _below(file, roots)):
            raise UsageError(
                f"{source.label}{source.path}: Spark reads no file with a colon in its name"
            )
        kind = _only_kind(source, files)
        files[0].open("rb").close()
        paths = tuple(map(_literal, roots))
        table = Table(source.name, str(path), paths, kind, source.label)
        try:
            return _looked_into(table, files)
        except UnsuitableFileError as error:
            raise UsageError(
                f"{source.label}{source.path} cannot be read as {kind}: {error}"
            ) from error


def _looked_into(table: Table, files: Sequence[Path]) -> Table:
    """Return what the files themselves tell about how to read them."""
    match table.kind:
        case TableKind.PARQUET:
            return replace(table, nanoseconds=nanosecond_columns(files[0]))
        case TableKind.CSV:
            delimiter = one_delimiter(files[:_LOOKED_INTO], _likely(files[0]))
            flaws = peculiarities(files)
            return replace(table, delimiter=delimiter, broken=flaws.broken, misread=flaws.misread)
        case TableKind.JSON:
            return replace(table, array=beginning_of(files[0]).lstrip().startswith("["))


def _likely(file: Path) -> str:
    """Return the delimiters by how likely they are, as far as the name tells."""
    return "\t,;|" if ".tsv" in map(str.lower, file.suffixes) else ",\t;|"


def create_view(spark: SparkSession, table: Table) -> None:
    """Let queries use a table by its name; raise :class:`UsageError` if it cannot be read."""
    try:
        frame = _read(spark, table)
        if not frame.columns:
            raise UsageError(_empty(table))
    except (PySparkException, Py4JJavaError) as error:
        if _is_empty(table.path) or (
            isinstance(error, PySparkException) and condition_of(error) == _NO_SCHEMA
        ):
            raise UsageError(_empty(table)) from error
        why = essence(error)
        if speaks_of_nanoseconds(why):  # at an address that nobody has looked at before
            why += f"; {HOW_TO_WRITE}"
        raise UsageError(
            f"{table.label}{table.path} cannot be read as {table.kind}: {why}"
        ) from error
    if table.kind is TableKind.JSON and "_corrupt_record" in frame.columns:
        raise UsageError(
            f"{table.label}{table.path} holds something else than JSON objects, one a line "
            "or all in one array"
        )
    frame.createOrReplaceTempView(f"`{table.name.replace('`', '``')}`")


def _is_empty(path: str) -> bool:
    """Whether there is one file with nothing in it: PySpark 4.0 only says it cannot be read."""
    file = Path(path)
    return file.is_file() and file.stat().st_size == 0


def _empty(table: Table) -> str:
    return f"{table.label}{table.path} is empty, it has no columns"


def _nothing_in(path: str, found: Sequence[Path]) -> str:
    if any(file.is_file() for file in found):
        return f"{path} has a name that begins with _ or ., and Spark leaves such files out"
    return f"the folder {path} is empty"


def _below(file: Path, found: Sequence[Path]) -> tuple[str, ...]:
    """Return the part of a file's path that Spark finds by itself: its name, and folders below."""
    above = next((folder for folder in found if folder in file.parents), file.parent)
    return file.relative_to(above).parts


def _literal(path: Path) -> str:
    """Return a path as Spark takes it, with brackets and other signs of a pattern escaped."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path))


def _matching(pattern: Path) -> list[Path]:
    try:
        return sorted(Path(pattern.anchor).glob(str(pattern)[len(pattern.anchor) :]))
    except ValueError:  # not a pattern either
        return []


def _read(spark: SparkSession, table: Table) -> DataFrame:
    if table.kind is TableKind.PARQUET:
        return read_parquet(spark, table.found, table.nanoseconds)
    if table.kind is TableKind.CSV:
        # A quote inside quotes is doubled, as everywhere but in Spark's default.
        return spark.read.csv(
            list(table.found),
            sep=table.delimiter or _delimiter_at(spark, table.path),
            header=True,
            inferSchema=True,
            escape='"',
            multiLine=table.broken,  # which lets one task alone read a file
        )
    return spark.read.json(list(table.found), multiLine=table.array)


def _delimiter_at(spark: SparkSession, address: str) -> str:
    likely = _likely(Path(address))
    lines = spark.read.text(address).take(RECORDS)
    return delimiter_of("\n".join(line.value for line in lines), likely) or likely[0]


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """Return the files at some paths and below, except those that Spark leaves out."""
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
            f"{source.label}{source.path} {what}; the known endings are {', '.join(_ENDINGS)}"
        )
    return kind


def _kind(file: Path) -> TableKind | None:
    endings = [ending.lower() for ending in file.suffixes]
    while endings and endings[-1] in _COMPRESSIONS:
        endings.pop()
    return _ENDINGS.get(endings[-1]) if endings else None
