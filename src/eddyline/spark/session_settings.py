"""The settings of a session that a filter block must know, or cannot live with."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from eddyline.spark.filter_block import SessionSettings

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
