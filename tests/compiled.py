"""Spark with the code that it compiles for queries, as users have it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


@contextmanager
def compiled(spark: SparkSession) -> Iterator[SparkSession]:
    """Let the session compile, and then be as before."""
    before = {key: spark.conf.get(key) for key in COMPILED}
    for key, value in COMPILED.items():
        spark.conf.set(key, value)
    yield spark
    for key, given in before.items():
        spark.conf.set(key, str(given))
