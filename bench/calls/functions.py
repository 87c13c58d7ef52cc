"""Functions that count for how many rows they are called, one of each kind that Spark knows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

VECTORIZED: Final[Any] = F  # of which the type checker does not know all


class Kind(StrEnum):
    """How a function is made known to Spark, and how its values travel."""

    PICKLED = "pickled"  # row by row, rows pickled
    ROW = "row"  # row by row, rows in Arrow
    PANDAS = "pandas"  # over series
    ARROW = "arrow"  # over arrays


def _scatter(n: int | None) -> int | None:
    return None if n is None else n * 7 % 41


def _few(n: int | None) -> int | None:
    return None if n is None or n % 11 == 5 else n % 5


def _odd(n: int | None) -> bool | None:
    return None if n is None else n % 3 != 1


def _near(n: int | None, m: int | None) -> bool | None:
    return None if n is None or m is None else (n - m) % 4 != 2


def _word(n: int | None) -> str | None:
    return None if n is None else "abcd"[n % 4] * (n % 3)


def _pair(n: int | None) -> dict[str, Any] | None:
    return None if n is None else {"x": n % 6, "y": str(n % 4)}


def _some(n: int | None) -> list[int] | None:
    return None if n is None else [n % 5, n % 2][: n % 3]


@dataclass(frozen=True)
class Function:
    """A function of numbers: its name, what it does with a row, and what it returns."""

    name: str
    of_row: Callable[..., Any]
    arguments: int
    returns: str

    def arrow_type(self) -> pa.DataType:
        """Return the type of the values, for arrays of them."""
        return _ARROW[self.returns]


FUNCTIONS: Final = (
    Function("f", _scatter, 1, "long"),
    Function("g", _few, 1, "long"),
    Function("p", _odd, 1, "boolean"),
    Function("q", _near, 2, "boolean"),
    Function("w", _word, 1, "string"),
    Function("pair", _pair, 1, "struct<x:long,y:string>"),
    Function("some", _some, 1, "array<long>"),
)

_ARROW: Final = {
    "long": pa.int64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "struct<x:long,y:string>": pa.struct([("x", pa.int64()), ("y", pa.string())]),
    "array<long>": pa.list_(pa.int64()),
}

VECTORS: Final = frozenset({"long", "boolean", "string"})
"""What functions over series and arrays return here; the others are row by row."""


class Counters:
    """The functions of a session, registered as ``f_row``, and how often each was called.

    A function over vectors counts the rows that it is handed. Counts go to files, a process each:
    of a task that a limit cuts off no accumulator comes back, though it has called functions.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        """Register all functions, in all kinds; they count in an empty folder."""
        self._folder = folder
        self._read: dict[Path, int] = {}  # bytes
        for function in FUNCTIONS:
            for kind in kinds_of(function):
                name = f"{function.name}_{kind}"
                spark.udf.register(name, _counted(function, kind, name, str(folder)))

    def taken(self) -> Mapping[str, int]:
        """Return the calls since the last time, by registered name."""
        calls: Counter[str] = Counter()
        for path in self._folder.iterdir():
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                content = file.read()
            self._read[path] = self._read.get(path, 0) + len(content)
            for line in content.decode().splitlines():
                name, rows = line.split()
                calls[name] += int(rows)
        return calls


def kinds_of(function: Function) -> Sequence[Kind]:
    """Return the kinds in which there is a function."""
    return tuple(Kind) if function.returns in VECTORS else (Kind.PICKLED, Kind.ROW)


def _counted(function: Function, kind: Kind, name: str, folder: str) -> Any:  # noqa: ANN401 - a UDF
    of_row, returns, arrow = function.of_row, function.returns, function.arrow_type()

    def count(rows: int) -> None:
        with open(f"{folder}/{os.getpid()}", "ab", buffering=0) as file:  # noqa: PTH123 - for speed
            file.write(f"{name} {rows}\n".encode())

    def over_rows(*values: int | None) -> object:
        count(1)
        return of_row(*values)

    def over_series(*columns: pd.Series) -> pd.Series:
        count(len(columns[0]))
        rows = zip(*columns, strict=True)
        found = [of_row(*(None if pd.isna(v) else int(v) for v in row)) for row in rows]
        return pd.Series(found, dtype=object)

    def over_arrays(*columns: pa.Array) -> pa.Array:
        count(len(columns[0]))
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return pa.array([of_row(*row) for row in rows], arrow)

    if kind in {Kind.PICKLED, Kind.ROW}:
        over_rows.__name__ = name
        return F.udf(over_rows, returns, useArrow=kind is Kind.ROW)
    if kind is Kind.PANDAS:
        return _named(VECTORIZED.pandas_udf, over_series, pd.Series, function, name)
    return _named(VECTORIZED.arrow_udf, over_arrays, pa.Array, function, name)


def _named(
    make: Callable[..., Any],
    over: Callable[..., Any],
    hint: type,
    function: Function,
    name: str,
) -> Any:  # noqa: ANN401 - a UDF
    """Return a function over vectors, whose kind Spark tells by its hints."""

    def one(first: Any) -> Any:  # noqa: ANN401 - as the hints say
        return over(first)

    def two(first: Any, second: Any) -> Any:  # noqa: ANN401 - likewise
        return over(first, second)

    made = one if function.arguments == 1 else two
    made.__name__ = name
    names = ("first", "second")[: function.arguments]
    made.__annotations__ = dict.fromkeys((*names, "return"), hint)
    return make(made, function.returns)
