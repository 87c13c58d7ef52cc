"""What queries have put out lately, kept for those who ask later."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StringType, StructField, StructType

from eddyline.standing.outputs import QUERY, quoted
from eddyline.standing.plain_paths import as_plain
from eddyline.standing.sinks import Batch

BATCH: Final = "batch"
"""The column that says with which batch a result came, as under a path."""

_TABLE: Final = """CREATE TABLE IF NOT EXISTS results (
    turn INTEGER PRIMARY KEY AUTOINCREMENT, query TEXT NOT NULL, batch TEXT NOT NULL,
    rows INTEGER NOT NULL, content BLOB NOT NULL, UNIQUE (query, batch))"""

_MISSING: Final = "PATH_NOT_FOUND"
"""What Spark says of a path where nothing is."""


class RecentResults:
    """The latest results of each query, in a file of SQLite; any thread may ask and add.

    At least the latest ``most`` of each are there, and no more than that beside those of the batch
    with which it is reached. A batch that is run again replaces what it has put out.
    """

    def __init__(self, path: Path, most: int) -> None:
        """Open the file, which is made if it is not there."""
        self._most = most
        self._using = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute(_TABLE)

    def close(self) -> None:
        """Close the file."""
        with self._using:
            self._file.close()

    def take(
        self, results: DataFrame, batch: Batch, columns_of: Callable[[str], Sequence[str]]
    ) -> None:
        """Take in the results of a batch; ``columns_of`` gives those of each query."""
        each = Window.partitionBy(QUERY).orderBy(F.lit(1))
        turn = "eddyline_turn"
        latest = results.withColumn(turn, F.row_number().over(each)).where(
            F.col(turn) <= self._most
        )
        table = latest.drop(turn).toArrow()
        written = {column.casefold(): column for column in table.column_names}
        names = table[QUERY]
        rows = []
        for name in pc.unique(names).to_pylist():
            own = table.filter(pc.equal(names, name))
            columns = list(columns_of(name))
            own = own.select([written[column.casefold()] for column in columns])
            own = own.rename_columns(columns)
            rows.append((name, str(batch), len(own), _packed(own)))
        with self._using:
            self._file.execute("BEGIN")
            self._file.execute("DELETE FROM results WHERE batch = ?", (str(batch),))
            self._file.executemany(
                "INSERT INTO results (query, batch, rows, content) VALUES (?, ?, ?, ?)", rows
            )
            for name, *_ in rows:
                self._file.execute(_FORGET, (name, name, self._most))
            self._file.execute("COMMIT")

    def forget(self, names: Iterable[str]) -> None:
        """Forget the results of queries that are gone."""
        with self._using:
            gone = [(name,) for name in names]
            self._file.executemany("DELETE FROM results WHERE query = ?", gone)

    def of(self, name: str, fields: Sequence[StructField]) -> pa.Table:
        """Return these columns of the results of a query, and with which batch each came.

        The oldest first. NULL where there was no such column yet, or one of another type.
        """
        columns = [field.name for field in fields]
        with self._using:
            found = self._file.execute(
                "SELECT batch, content FROM results WHERE query = ? ORDER BY turn", (name,)
            ).fetchall()
        types = dict.fromkeys(columns, pa.null()) | {BATCH: pa.string()}
        tables = []
        for batch, content in found:
            table = _unpacked(content)
            tables.append(table.append_column(BATCH, pa.array([batch] * len(table), pa.string())))
            types |= {n: table.schema.field(n).type for n in columns if n in table.column_names}
        schema = pa.schema(types)
        return pa.concat_tables([_in_columns(table, schema) for table in tables] or [_no(schema)])


_FORGET: Final = """DELETE FROM results WHERE query = ? AND turn IN (
    SELECT turn FROM (
        SELECT turn, sum(rows) OVER (ORDER BY turn DESC) - rows AS later
        FROM results WHERE query = ?)
    WHERE later >= ?)"""
"""Forgets the batches after which enough results came."""


def recent_frame(spark: SparkSession, table: pa.Table, columns: Sequence[StructField]) -> DataFrame:
    """Return results as they were kept, in columns of a query."""
    rows = spark.createDataFrame(table)
    typed = [F.col(quoted(field.name)).cast(field.dataType).alias(field.name) for field in columns]
    return rows.select(*typed, F.col(BATCH))


def results_under(
    spark: SparkSession, path: str, name: str, columns: Sequence[StructField]
) -> DataFrame:
    """Return what there is of a query under the path that results are written to, in columns."""
    files = spark.read.schema(StructType([*columns, _QUERY_FIELD, _BATCH_FIELD]))
    try:
        return files.parquet(as_plain(path)).where(F.col(QUERY) == name).drop(QUERY)
    except AnalysisException as error:
        if error.getCondition() != _MISSING:
            raise
        return spark.createDataFrame([], StructType([*columns, _BATCH_FIELD]))


_QUERY_FIELD: Final = StructField(QUERY, StringType())
_BATCH_FIELD: Final = StructField(BATCH, StringType())


def _in_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        table[field.name]
        if field.name in table.column_names and table.schema.field(field.name).type == field.type
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _no(schema: pa.Schema) -> pa.Table:
    return schema.empty_table()


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpacked(content: bytes) -> pa.Table:
    with pa.ipc.open_stream(content) as stream:
        return stream.read_all()
