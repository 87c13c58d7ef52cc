"""Where results go: a function, Parquet files by query, and callbacks of single queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from eddyline.standing.outputs import QUERY


class Batch(NamedTuple):
    """The job and the number of a micro-batch: the same if the batch is run again.

    A sink that remembers the batches that it has taken can leave those out that come again.
    """

    job: str
    number: int

    def __str__(self) -> str:
        """Return both as one text."""
        return f"{self.job} {self.number}"


Sink: TypeAlias = "Callable[[DataFrame, Batch], object]"
"""Takes the results of a micro-batch: whose row it is (``query``), and the queries' columns."""

Callback: TypeAlias = "Callable[[pa.Table, Batch], object]"
"""Takes the results of one query from a micro-batch, in its own columns."""


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """Files under ``path``, in a directory for each micro-batch.

    A batch that is run again replaces its files, so that each result is there once. ``by_query``
    puts a directory for each query above those of its batches: with thousands of queries most of
    the time goes into files.
    """

    path: str
    by_query: bool = False

    def __call__(self, results: DataFrame, batch: Batch) -> None:
        """Write the results of a batch."""
        above = [QUERY] if self.by_query else []
        (
            results.withColumn("batch", F.lit(str(batch)))
            .write.partitionBy(*above, "batch")
            .option("partitionOverwriteMode", "dynamic")
            .mode("overwrite")
            .parquet(self.path)
        )


def as_sink(sink: Sink | str | Path, *, by_query: bool = False) -> Sink:
    """Return a sink: a function as it is, files for a path; TypeError for anything else."""
    if isinstance(sink, str | Path):
        return ParquetSink(str(sink), by_query)
    if by_query:
        raise TypeError("by_query is about files: a function gets the column query")
    if not callable(sink):
        raise TypeError(f"a sink is a function of a DataFrame and a batch, or a path, not {sink!r}")
    return sink


def tell(
    results: DataFrame,
    batch: Batch,
    callbacks: Mapping[str, Sequence[Callback]],
    columns: Mapping[str, Sequence[str]],
) -> None:
    """Hand the results of single queries to their callbacks; those without results are not told.

    ``columns`` are those of each query, whatever the letters in which others write them.
    """
    wanted = results.where(F.col(QUERY).isin(*callbacks))
    table = wanted.toArrow()
    names = table[QUERY].combine_chunks()
    written = {column.casefold(): column for column in table.column_names}
    for name, told in callbacks.items():
        own = table.filter(pa.compute.equal(names, name))
        own = own.select([written[column.casefold()] for column in columns[name]])
        own = own.rename_columns(list(columns[name]))
        if own.num_rows:
            for callback in told:
                callback(own, batch)
