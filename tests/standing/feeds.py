"""Streams fed file by file, and what their queries must put out by plain Spark."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
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
        rows = [row for batch in self.batches.values() for row in batch]
        names: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            names[row["query"]] |= {name for name, value in row.items() if value is not None}
        found: Answers = defaultdict(Counter)
        for row in rows:
            own = sorted(names[row["query"]] - {"query"})
            found[row["query"]][tuple(hashable(row[name]) for name in own)] += 1
        return dict(found)


def expected(
    spark: SparkSession, tables: Mapping[str, DataFrame], queries: Mapping[str, str]
) -> Answers:
    """Return the rows of queries over tables, by plain Spark; those without any are left out."""
    for name, table in tables.items():
        table.createOrReplaceTempView(name)
    found: Answers = {}
    for name, sql in queries.items():
        rows = [row.asDict() for row in spark.sql(sql).collect()]
        own = sorted({n for row in rows for n, value in row.items() if value is not None})
        if rows:
            found[name] = Counter(tuple(hashable(row[n]) for n in own) for row in rows)
    return found


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
