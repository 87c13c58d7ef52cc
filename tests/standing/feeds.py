"""Streams fed file by file, and what their queries must put out by plain Spark."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from eddyline.standing.sinks import Batch, Sink
from eddyline.standing.standing_queries import StandingQueries

Answers = dict[str, Counter[tuple[Any, ...]]]
"""Rows by query, each as often as it came."""


_WRITTEN: dict[str, pa.Table] = {}
"""Batches as Spark makes tables of them."""


@dataclass
class Feed:
    """A directory of files, each of them a micro-batch of a stream."""

    spark: SparkSession
    directory: Path
    schema: str
    watermark: tuple[str, str] | None = None
    batches: list[list[tuple[Any, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True)

    def give(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add a batch of rows."""
        self.batches.append(list(rows))
        # Many tests of a file begin with the same batches.
        key = f"{self.schema} {self.spark.conf.get('spark.sql.session.timeZone')} {rows}"
        if key not in _WRITTEN:
            _WRITTEN[key] = self.spark.createDataFrame(list(rows), self.schema).toArrow()
        self.write(_WRITTEN[key])

    def write(self, table: pa.Table) -> None:
        """Add a batch of rows that are not to be remembered."""
        number = len(list(self.directory.iterdir()))
        # Spark takes the files in the order of their times.
        hidden = self.directory / f".{number}.parquet"
        pq.write_table(_plain(table), hidden)
        os.utime(hidden, (1_000_000 + number, 1_000_000 + number))
        hidden.rename(self.directory / f"{number:05}.parquet")

    def stream(self) -> DataFrame:
        """Return the stream."""
        reader = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        stream = reader.parquet(str(self.directory))
        return stream.withWatermark(*self.watermark) if self.watermark else stream

    def rows(self, batches: Iterable[int] | None = None) -> DataFrame:
        """Return the rows of some batches, of all by default."""
        chosen = range(len(self.batches)) if batches is None else batches
        rows = [row for number in chosen for row in self.batches[number]]
        return self.spark.createDataFrame(rows, self.schema)


def _plain(table: pa.Table) -> pa.Table:
    return table.replace_schema_metadata(None)


class Gathered:
    """A sink that remembers what it was given, batch by batch; a batch again replaces itself."""

    def __init__(self) -> None:
        self.batches: dict[Batch, list[dict[str, Any]]] = {}

    def __call__(self, results: DataFrame, batch: Batch) -> None:
        self.batches[batch] = [row.asDict() for row in results.collect()]

    def answers(self) -> Answers:
        """Return the rows of each query, without columns that are NULL in all of them."""
        return answers_in([row for batch in self.batches.values() for row in batch])


def answers_in(rows: Iterable[Mapping[str, Any]]) -> Answers:
    """Return rows by the query that each names, without columns that are NULL in all of its."""
    of_query: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        of_query[row["query"]].append(row)
    answers = {}
    for query, own in of_query.items():
        names = {name for row in own for name, value in row.items() if value is not None}
        shown = sorted(names - {"query"})
        answers[query] = Counter(tuple(hashable(row[name]) for name in shown) for row in own)
    return answers


TOGETHER = 25
"""Queries that plain Spark runs as one."""

PLAINLY = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
}
"""In few tasks: of the JVM's time in tests of ranks, 18 % went into reading tasks."""


def expected(
    spark: SparkSession, tables: Mapping[str, DataFrame], queries: Mapping[str, str]
) -> Answers:
    """Return the rows of queries over tables, by plain Spark; those without any are left out.

    Columns of one name have one type in all of them, as in standing queries.
    """
    for name, table in tables.items():
        table.createOrReplaceTempView(name)
    names, rows = list(queries), []
    with _plainly(spark):
        for first in range(0, len(names), TOGETHER):
            some = names[first : first + TOGETHER]
            rows += _rows_of(spark, {name: queries[name] for name in some})
    return answers_in(rows)


@contextmanager
def _plainly(spark: SparkSession) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in PLAINLY}
    for key, value in PLAINLY.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, known in before.items():
            if known is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, known)


def _rows_of(spark: SparkSession, queries: Mapping[str, str]) -> list[dict[str, Any]]:
    columns: list[list[str]] = []
    for number, sql in enumerate(queries.values()):
        frame = spark.sql(sql)
        frame.createOrReplaceTempView(f"wanted_{number}")
        columns.append(frame.columns)
    shown = {name.casefold(): f"`{name}`" for own in columns for name in own}
    parts = []
    for number, own in enumerate(columns):
        has = {name.casefold() for name in own}
        items = [quoted if name in has else f"NULL AS {quoted}" for name, quoted in shown.items()]
        parts.append(f"SELECT {number} AS query, {', '.join(items)} FROM wanted_{number}")  # noqa: S608 - ours
    rows = spark.sql(" UNION ALL ".join(parts)).collect()
    names = list(queries)
    return [row.asDict() | {"query": names[row["query"]]} for row in rows]


def hashable(value: object) -> object:
    """Return a value, or a tuple of what it has."""
    if isinstance(value, list | tuple):
        return tuple(map(hashable, value))
    if isinstance(value, dict):
        return tuple((hashable(k), hashable(v)) for k, v in value.items())
    return bytes(value) if isinstance(value, bytearray) else value


def run_all(queries: StandingQueries, sink: Sink) -> None:
    """Run the queries over all that is there."""
    queries.start(sink, availableNow=True)
    queries.await_termination()


def given_shares(*shares: float) -> Callable[[str, float], Any]:
    """Return what stands for a controller of overload, and has batches take these shares.

    The last one holds from then on; one batch after the other of any job.
    """

    class GivenShares:
        def __init__(self, _policy: str, _target: float) -> None:
            self._left = list(shares)

        @property
        def kept(self) -> float:
            return self._left[0]

        def took(self, events: int, *_: float, **__: bool) -> None:
            if events and len(self._left) > 1:
                del self._left[0]

    return GivenShares
