"""What a case is: tables that nobody has analyzed, and a query over them."""

from __future__ import annotations

import abc
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

import eddyline

PARTS = 2
"""Files of a table, one for each core: Spark reads each in a task of its own."""

SEED = 0

SQL = Path(__file__).with_name("sql")

Integers = npt.NDArray[np.int64]
Columns = Mapping[str, npt.NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class CostlyFunction:
    """A Python predicate by its name in SQL: keeps its core busy for a time, and answers."""

    name: str
    test: Callable[..., bool]
    microseconds: float

    def busy(self) -> Callable[..., bool]:
        """Return it as a function.

        >>> CostlyFunction("is_large", lambda number: number > 2, microseconds=5).busy()(3)
        True
        """
        seconds, test, clock = self.microseconds * 1e-6, self.test, time.perf_counter

        @eddyline.deterministic
        def predicate(*values: int) -> bool:
            end = clock() + seconds
            while clock() < end:
                pass
            return test(*values)

        return predicate


class Case(abc.ABC):
    """A query, whose text is a file with the case's name; a docstring says why it is hard.

    ``size`` scales the rows of its tables; at 1 plain Spark takes 2 to 10 seconds.

    Its tables are Parquet files without a catalog, so Spark knows the size of
    the files and nothing else: neither rows nor distinct values nor matches.
    """

    compressed: ClassVar[frozenset[str]] = frozenset()
    """Tables whose numbers are stored as differences, so that their files are tiny."""

    functions: ClassVar[Sequence[CostlyFunction]] = ()
    """The Python predicates of the query."""

    tables: Sequence[str] = ()
    """The names of its tables, each a folder of that name; known when they have been written."""

    asks_much: ClassVar[bool] = True
    """Whether it has predicates of 20 microseconds a row or more; else cheap ones or none."""

    def __init__(self, size: float = 1.0) -> None:
        self.size = size

    def known(self) -> Mapping[str, int]:
        """Return what the plan by hand is told about the data, by its name there."""
        return {}

    @abc.abstractmethod
    def columns(self, draw: np.random.Generator) -> Mapping[str, Columns]:
        """Return the columns of each table."""

    def query(self, spark: SparkSession) -> DataFrame:
        """Return the query over views with the tables' names, as a fresh DataFrame."""
        self.offer_inputs(spark)
        for function in self.functions:
            spark.udf.register(function.name, function.busy(), "boolean")
        return spark.sql(self._text(SQL))

    def by_hand(self, spark: SparkSession) -> DataFrame:
        """Return the same rows as somebody asks for them who knows all about the data.

        The fastest plan that was found by trying: joins in the best order, small sides
        broadcast, each predicate where it is called least. To Spark the functions are not
        deterministic, so it neither moves a predicate from its place nor calls it twice.
        """
        self.offer_inputs(spark)
        for function in self.functions:
            typed = udf(function.busy(), "boolean").asNondeterministic()
            spark.udf.register(function.name, typed)
        return spark.sql(self._text(SQL / "by_hand"), args=dict(self.known()))

    def offer_inputs(self, spark: SparkSession) -> None:  # noqa: B027 - most cases have none
        """Make views over the tables that are no tables themselves, where the case has any."""

    def _text(self, folder: Path) -> str:
        path = folder / f"{self.name().replace(' ', '_')}.sql"
        return path.read_text(encoding="utf-8")

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
        drawn = self.columns(np.random.default_rng(SEED))
        self.tables = tuple(drawn)
        for name, columns in drawn.items():
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
