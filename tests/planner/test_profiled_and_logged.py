"""Spark's profilers and its log of workers show the user's functions, whoever calls them."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.planner.adapt import adapted_blocks

VECTORIZED: Any = F  # whose stubs do not know its functions of Arrow and pandas
PROFILER = "spark.sql.pyspark.udf.profiler"
LOGGING = "spark.sql.pyspark.worker.logging.enabled"


def is_even(number: int) -> bool:
    logging.getLogger("mine").warning("even")
    print("printed")  # noqa: T201 - as people do
    return number % 2 == 0


def is_small(numbers: pd.Series) -> pd.Series:
    logging.getLogger("mine").warning("small")
    return numbers < 90


def is_natural(numbers: pa.Array) -> pa.Array:
    _said("natural")
    return pa.array([each >= 0 for each in numbers.to_pylist()])


def _said(text: str) -> None:
    logging.getLogger("mine").warning(text)


class Above:
    def __init__(self, least: int) -> None:
        self.least = least

    def __call__(self, number: int) -> bool:
        logging.getLogger("mine").warning("above")
        return number > self.least


def query(spark: SparkSession) -> DataFrame:
    """Return one of functions of all kinds, all of which an eddy asks as well as plain Spark."""
    return spark.range(0, 6, 1, 1).filter(
        F.udf(is_even, "boolean")("id")
        & F.udf(Above(-1), "boolean")("id")
        & VECTORIZED.pandas_udf(is_small, "boolean")("id")
        & VECTORIZED.arrow_udf(is_natural, "boolean")("id")
    )


def chosen(spark: SparkSession) -> DataFrame:
    """Return a select list of these functions, which are remembered."""
    functions = (
        F.udf(is_even, "boolean"),
        F.udf(Above(-1), "boolean"),
        VECTORIZED.pandas_udf(is_small, "boolean"),
        VECTORIZED.arrow_udf(is_natural, "boolean"),
    )
    return spark.range(0, 6, 1, 1).select(*(function("id") for function in functions))


@contextmanager
def setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.unset(key)


def test_functions_are_profiled_as_in_plain_spark(spark: SparkSession) -> None:
    profiles: Any = spark.profile
    runs: list[tuple[Callable[[SparkSession], int], int]] = [
        (_adapted, 3),
        (_enabled, 3),
        (lambda spark: len(eddyline.adapt(chosen(spark)).collect()), 6),
        (lambda spark: RUNS["joined"](spark).count(), 7),
    ]
    for run, rows in runs:
        profiles.clear()
        with setting(spark, PROFILER, "perf"):
            assert run(spark) == rows
            said = str(eddyline.explain(query(spark)))
        collector: Any = spark
        stats = collector._profiler_collector._perf_profile_results.values()
        seen = {name for each in stats for _, _, name in each.stats}
        files = {file for each in stats for file, _, _ in each.stats}
        assert {"is_even", "__call__", "is_small", "is_natural"} <= seen
        assert not {"filter_task.py", "filter_eddy.py", "remembered_call.py"} & files
        assert "the whole query: a profiler of Spark's is on" in said
    profiles.clear()
    for other in (query(spark), chosen(spark)):
        with setting(spark, PROFILER, "memory"):  # which would show nothing of what a block calls
            assert not adapted_blocks(eddyline.adapt(other, joins="always"))
            assert "a profiler of Spark's is on" in str(eddyline.explain(other))
        assert adapted_blocks(eddyline.adapt(other, joins="always"))


def _adapted(spark: SparkSession) -> int:
    return eddyline.adapt(query(spark)).count()


def _enabled(spark: SparkSession) -> int:
    eddyline.enable(spark)
    try:
        return query(spark).count()
    finally:
        eddyline.disable(spark)


def test_concurrent_functions_are_called_under_a_profiler(spark: SparkSession) -> None:
    asked = eddyline.concurrent(lambda number: number * 2, returns="long")
    with setting(spark, PROFILER, "perf"):
        rows = eddyline.adapt(spark.range(3).select(asked("id").alias("d"))).collect()
    assert sorted(row.d for row in rows) == [0, 2, 4]


RUNS: dict[str, Callable[[SparkSession], DataFrame]] = {
    "plain": query,
    "in an eddy": lambda spark: eddyline.adapt(query(spark)),
    "remembered": lambda spark: eddyline.adapt(chosen(spark)),
    "joined": lambda spark: eddyline.adapt(
        query(spark).join(spark.range(3).withColumnRenamed("id", "other"), F.expr("id >= other")),
        joins="always",
    ),
}

WRITTEN = {
    ("above", "__call__", "Above"),
    ("even", "is_even", None),
    ("natural", "is_natural", None),
    ("printed", "is_even", None),
    ("small", "is_small", None),
}


@pytest.mark.parametrize("run", RUNS)
def test_lines_name_the_function_that_wrote_them(spark: SparkSession, run: str) -> None:
    """All lines of the session are looked at: what was written before, too."""
    with setting(spark, LOGGING, "true"):
        frame = RUNS[run](spark)
        assert bool(adapted_blocks(frame)) == (run != "plain")
        before = logged(spark)
        frame.collect()
        for _ in range(300):  # a worker's lines come a little later than its rows
            lines = logged(spark)
            if all(lines[line] > before[line] for line in WRITTEN):
                break
            time.sleep(0.1)
        assert lines.keys() == WRITTEN


def logged(spark: SparkSession) -> Counter[tuple[str, str | None, str | None]]:
    """Return how often which line was written by what function of what class."""
    logs: Any = spark.tvf
    return Counter(
        (line.msg, (line.context or {}).get("func_name"), (line.context or {}).get("class_name"))
        for line in logs.python_worker_logs().collect()
    )
