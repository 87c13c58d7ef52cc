"""The settings of a session that a filter block must know, or cannot live with."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from eddyline.spark import catalyst
from eddyline.spark.filter_block import SessionSettings
from eddyline.spark.fused import DEFAULT_MEMORY
from eddyline.spark.session import local_cores

# With these, columns reach user functions in other types than a block hands them in.
_UNSUPPORTED: Final = (
    "spark.sql.execution.arrow.useLargeVarTypes",
    "spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype",
)


def session_settings(spark: SparkSession) -> SessionSettings:
    """Return the settings as they are now; they are what a block adapted now will use."""

    def is_on(key: str, default: str = "false") -> bool:
        return str(spark.conf.get(key, default)).lower() == "true"

    return SessionSettings(
        time_zone=str(spark.conf.get("spark.sql.session.timeZone")),
        binary_as_bytes=is_on("spark.sql.execution.pyspark.binaryAsBytes", "true"),
        legacy_pandas_conversion=is_on(
            "spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled"
        ),
        assign_columns_by_name=is_on(
            "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName", "true"
        ),
        int_to_decimal_coercion=is_on(
            "spark.sql.execution.pythonUDF.pandas.intToDecimalCoercionEnabled"
        ),
        safe_arrow_conversion=is_on("spark.sql.execution.pandas.convertToArrowArraySafely"),
    )


def unsupported_setting(spark: SparkSession) -> str | None:
    """Return a setting that is on and that no block can run under, or None."""
    for key in _UNSUPPORTED:
        if str(spark.conf.get(key, "false")).lower() == "true":
            return key
    return None


def task_memory(spark: SparkSession, asked: int | str | None) -> int:
    """Return the bytes that a task of a join block may use.

    ``asked`` is a number of bytes or a text as Spark's settings have it, ``"200MB"``. Else it
    is the memory that Spark gives its Python workers (``spark.executor.pyspark.memory``)
    divided by the tasks that run at once, else 512 MB. ValueError for what is no such size.
    """
    if asked is not None:
        try:
            size = catalyst.bytes_of(str(asked))
        except Exception as error:
            raise ValueError(f"memory is a size such as 200MB, not {asked!r}") from error
        if size <= 0:
            raise ValueError(f"memory is a size above 0, not {asked!r}")
        return size
    given = str(spark.conf.get("spark.executor.pyspark.memory", "") or "")
    if not given:
        return DEFAULT_MEMORY
    cores = local_cores(str(spark.sparkContext.master))
    if cores is None:
        cores = int(str(spark.conf.get("spark.executor.cores", "1")))
    return max(catalyst.bytes_of(given + "m" if given.isdigit() else given) // cores, 1)
