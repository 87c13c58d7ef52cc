"""The contestants: the same query, run in different ways."""

from __future__ import annotations

import functools
from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from bench.predicates.workload import PARTITIONS, Workload
from eddyline import adapt

NO_REORDERING = (
    "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates",
    "org.apache.spark.sql.catalyst.optimizer.CombineFilters",
    "org.apache.spark.sql.catalyst.optimizer.PushPredicateThroughNonJoin",
)
"""Optimizer rules that would pull a hand-made chain of filters together into one."""


@functools.lru_cache(maxsize=2)
def rows(spark: SparkSession, workload: Workload) -> DataFrame:
    """Return the rows of a workload, as a table in the JVM's memory.

    Were the columns computed in the query, the optimizer would copy their formulas
    into the arguments of every predicate, and all contestants would be timed at
    planning and evaluating these.
    """
    frame = spark.range(workload.rows, numPartitions=PARTITIONS)
    columns = (f"{sql} AS {name}" for name, sql in workload.sql_columns().items())
    return frame.selectExpr("id", *columns).localCheckpoint()


def predicates(workload: Workload) -> list[Column]:
    """Return the predicates as a user would write them."""
    return [
        F.udf(workload.function(i), "boolean")(F.col(f"u{i}"), F.col("place"))
        for i in range(len(workload.costs))
    ]


def natural(spark: SparkSession, workload: Workload) -> DataFrame:
    """Return the query in the written order."""
    frame = rows(spark, workload)
    for predicate in predicates(workload):
        frame = frame.filter(predicate)
    return frame


def count(frame: DataFrame) -> tuple[int, int]:
    """Run a query; return its number of rows and the sum of their ids, which tells them apart."""
    counted = frame.agg(F.count("*"), F.sum("id")).first()
    return (0, 0) if counted is None else (int(counted[0]), int(counted[1] or 0))


def plain(spark: SparkSession, workload: Workload) -> Callable[[], tuple[int, int]]:
    """Return plain Spark: every predicate on every row."""
    return lambda: count(natural(spark, workload))


def adapted(spark: SparkSession, workload: Workload) -> Callable[[], tuple[int, int]]:
    """Return the same query through ``eddyline.adapt``."""
    return lambda: count(adapt(natural(spark, workload)))


def barriers(
    spark: SparkSession, workload: Workload, order: tuple[int, ...]
) -> Callable[[], tuple[int, int]]:
    """Return the hand-ordered query: one filter after the other, each a stage of its own.

    Spark would evaluate all predicates before the first filter. An expert keeps
    it from doing so; here by switching off the rules that combine filters.
    """

    def run() -> tuple[int, int]:
        functions = predicates(workload)
        before = spark.conf.get("spark.sql.optimizer.excludedRules", "")
        spark.conf.set("spark.sql.optimizer.excludedRules", ",".join(NO_REORDERING))
        try:
            frame = rows(spark, workload)
            for predicate in order:
                frame = frame.filter(functions[predicate])
            return count(frame)
        finally:
            spark.conf.set("spark.sql.optimizer.excludedRules", before or "")

    return run
