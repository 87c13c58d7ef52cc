"""What tests need to have inputs meet in a shuffle, however small they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"


@contextmanager
def broadcasting(spark: SparkSession, *, allowed: bool) -> Iterator[None]:
    """Let inputs be broadcast, or let none be."""
    if allowed:
        spark.conf.unset(THRESHOLD)
    else:
        spark.conf.set(THRESHOLD, "-1")
    try:
        yield
    finally:
        spark.conf.unset(THRESHOLD)
