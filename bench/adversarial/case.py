"""What a case is: tables that nobody has analyzed, and a query over them."""

from __future__ import annotations

import abc
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

PARTS = 2
"""Files of a table, one for each core: Spark reads each in a task of its own."""

SEED = 0

Integers = npt.NDArray[np.int64]
Columns = Mapping[str, npt.NDArray[np.generic]]


class Case(abc.ABC):
    """A query; a case's docstring says why it is hard.

    ``size`` scales the rows of its tables; at 1 plain Spark takes 2 to 10 seconds.

    Its tables are Parquet files without a catalog, so Spark knows the size of
    the files and nothing else: neither rows nor distinct values nor matches.
    """

    compressed: ClassVar[frozenset[str]] = frozenset()
    """Tables whose numbers are stored as differences, so that their files are tiny."""

    asks_much: ClassVar[bool] = True
    """Whether it has predicates of 20 microseconds a row or more; else cheap ones or none."""

    def __init__(self, size: float = 1.0) -> None:
        self.size = size

    @abc.abstractmethod
    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return the columns of each table."""

    @abc.abstractmethod
    def query(self, spark: SparkSession) -> DataFrame:
        """Return the query over views with the tables' names, as a fresh DataFrame."""

    @classmethod
    def name(cls) -> str:
        """Return the name: the class's, in words.

        >>> from bench.adversarial.orders import BadFromOrder
        >>> BadFromOrder.name()
        'bad from order'
        """
        return re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower()

    @classmethod
    def why(cls) -> str:
        """Return what the docstring says, in one line."""
        return " ".join((cls.__doc__ or "").split())

    def rows(self, count: int, *, squared: bool = False) -> int:
        """Return how many rows a table of ``count`` rows has at this size: 40 at least.

        If ``squared``, what grows with the size is not the rows but the pairs of them.
        """
        return max(int(count * (self.size**0.5 if squared else self.size)), 40)

    def create(self, spark: SparkSession, folder: Path) -> None:
        """Write the tables below ``folder`` and let Spark's SQL see them."""
        draw = np.random.default_rng(SEED)
        for name, columns in self.columns(draw).items():
            into = folder / name
            into.mkdir(parents=True)
            table = pa.table(dict(columns))
            compressed = name in self.compressed
            for part in range(PARTS):
                # Every second row: each part runs through the table from its first
                # row to its last, and sees whatever changes on the way.
                pq.write_table(
                    table.take(np.arange(part, len(table), PARTS)),
                    into / f"part-{part}.parquet",
                    use_dictionary=not compressed,
                    column_encoding=dict.fromkeys(columns, "DELTA_BINARY_PACKED")
                    if compressed
                    else None,
                )
            spark.read.parquet(str(into)).createOrReplaceTempView(name)
