"""The settings of a session that a block is made with."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.blocks.filter_block import JavaRuntime, SessionSettings
from eddyline.blocks.routing_options import DEFAULT_MEMORY
from eddyline.checked_values import memory_size
from eddyline.host.session import local_cores
from eddyline.tasks.action_settings import KEYS, settings_from

PROFILER: Final = "spark.sql.pyspark.udf.profiler"
"""Which of Spark's profilers watches functions; not set where none does."""


def session_settings(spark: SparkSession) -> SessionSettings:
    """Return the settings as they are now."""
    given = catalyst.settings_of(spark, (*KEYS, PROFILER))
    java = JavaRuntime(**catalyst.java_facts())
    settings = settings_from(given.get, catalyst.default_settings(KEYS), java)
    return _shared(replace(settings, profiled=bool(given.get(PROFILER))))


@lru_cache(16)
def _shared(settings: SessionSettings) -> SessionSettings:
    """Return equal settings for equal ones: blocks keep them, and take 0.3 kB less."""
    return settings


def task_memory(spark: SparkSession, asked: int | str | None) -> int:
    """Return the bytes that a task of a join block may use.

    ``asked`` is a number of bytes or a text as Spark's settings have it, ``"200MB"``. Else it
    is the memory that Spark gives its Python workers (``spark.executor.pyspark.memory``)
    divided by the tasks that run at once, else 512 MB. ValueError for what is no such size, or
    one in which nothing could be done.
    """
    if asked is not None:
        return memory_size(asked)
    given = str(spark.conf.get("spark.executor.pyspark.memory", "") or "")
    if not given:
        return DEFAULT_MEMORY
    cores = local_cores(str(spark.sparkContext.master))
    if cores is None:
        cores = int(str(spark.conf.get("spark.executor.cores", "1")))
    return max(catalyst.bytes_of(given + "m" if given.isdigit() else given) // cores, 1)
