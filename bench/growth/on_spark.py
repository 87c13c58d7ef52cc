"""Filters of many terms on Spark: from the DataFrame to the answer, plain and adapted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import udf

import eddyline
from bench.growth.terms import PART
from bench.turns import Turns, take_turns

ROWS: Final = 10_000

_runs = count()


def query(spark: SparkSession, connective: str, terms: int, rows: int = ROWS) -> DataFrame:
    """Return a filter of so many terms; each time with functions that no worker has seen."""
    run = next(_runs)
    parts = [_term(connective, number, run)("id") for number in range(terms)]
    while len(parts) > 1:  # a balanced tree: in a deep one Spark's analyzer overflows its stack
        pairs = zip(parts[::2], parts[1::2], strict=False)
        joined = [left & right if connective == "AND" else left | right for left, right in pairs]
        parts = [*joined, *parts[len(joined) * 2 :]]
    return spark.range(rows).filter(parts[0])


def _term(connective: str, number: int, run: int) -> Callable[[str], Column]:
    decisive = connective == "OR"
    # `run` makes no difference but to the function, whose block is then a new one.
    return udf(lambda x, _=run: ((x * 31 + number) % PART == 0) is decisive, "boolean")


def measure(
    spark: SparkSession, connective: str, terms: int, turns: int, progress: Callable[[], None]
) -> Turns:
    """Return the seconds of both, ``adapt`` included; AssertionError where they disagree."""
    # Making the DataFrames is not measured: it takes both the same time.
    plain, adapted = ([query(spark, connective, terms) for _ in range(turns + 1)] for _ in range(2))
    contestants = {
        "plain": lambda: plain.pop().count(),
        "adapted": lambda: eddyline.adapt(adapted.pop()).count(),
    }
    return take_turns(contestants, turns=turns, progress=progress)
