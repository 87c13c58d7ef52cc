"""The functions: busy for a time, then a number that depends on the argument."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import eddyline
from bench.remembered import remembered

_runs = itertools.count()


class Kind(StrEnum):
    """How a function is made known to Spark."""

    ROW = "udf"
    PANDAS = "pandas_udf"
    ARROW = "arrow_udf"


def busy(microseconds: float, salt: int) -> Callable[[int], int]:
    """Return a function of a number that takes a time and gives a number from 0 to 99.

    Functions of another ``salt`` give other numbers. Each is new, by a number that it holds: what
    a worker may have kept from another run's is of no use.
    """
    seconds, clock, run = microseconds * 1e-6, time.perf_counter, next(_runs)

    @eddyline.deterministic
    def score(x: int) -> int:
        end = clock() + seconds
        while clock() < end:
            pass
        return (x * 2_654_435_761 + salt + 0 * run) % 4_294_967_291 % 100

    return score


def as_udf(kind: Kind, microseconds: float, *, salt: int = 0, cached: bool = False) -> Any:  # noqa: ANN401 - a UDF
    """Return the function as a UDF that gives a ``bigint``; ``cached`` as people do that."""
    score = busy(microseconds, salt)
    if cached:
        score = remembered(score)
    if kind is Kind.ROW:
        return F.udf(score, "bigint")
    if kind is Kind.PANDAS:

        def over_series(x: pd.Series) -> pd.Series:
            return x.map(score)

        return F.pandas_udf(over_series, "bigint")  # type: ignore[attr-defined]  # PySpark's own lists no such name

    def over_array(x: pa.Array) -> pa.Array:
        return pa.array([score(each) for each in x.to_pylist()], pa.int64())

    return F.arrow_udf(over_array, "bigint")  # type: ignore[attr-defined]  # likewise
