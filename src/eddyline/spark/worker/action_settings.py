"""The settings under which a user's function is called: those of the action that calls it.

Spark's own workers are told the settings of the session as they are when the action
begins, whenever the DataFrame was made. A block is made earlier, by ``adapt``. So its tasks
ask for the settings again: Spark hands all that were set to every task of an action, as the
task's local properties, which is a public way to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark import TaskContext

from eddyline.spark.blocks.filter_block import SessionSettings

TIME_ZONE: Final = "spark.sql.session.timeZone"

_ACTION: Final = "spark.sql.execution.id"
"""Local property of the tasks of an action on a DataFrame; they have its settings, too."""


def settings_from(value_of: Callable[[str], str | None], default_time_zone: str) -> SessionSettings:
    """Return what the settings mean for functions; ``value_of`` gives None for one not set."""

    def is_on(key: str, *, default: bool = False) -> bool:
        value = value_of(key)
        return default if value is None else value.lower() == "true"

    return SessionSettings(
        time_zone=value_of(TIME_ZONE) or default_time_zone,
        default_time_zone=default_time_zone,
        binary_as_bytes=is_on("spark.sql.execution.pyspark.binaryAsBytes", default=True),
        legacy_pandas_conversion=is_on(
            "spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled"
        ),
        assign_columns_by_name=is_on(
            "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName", default=True
        ),
        int_to_decimal_coercion=is_on(
            "spark.sql.execution.pythonUDF.pandas.intToDecimalCoercionEnabled"
        ),
        safe_arrow_conversion=is_on("spark.sql.execution.pandas.convertToArrowArraySafely"),
        integer_extension_types=is_on(
            "spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype"
        ),
        large_types=is_on("spark.sql.execution.arrow.useLargeVarTypes"),
    )


def settings_of_action(made_with: SessionSettings) -> SessionSettings:
    """Return the settings of the action that this task belongs to.

    ``made_with`` are those of the block. They hold where the task belongs to no action on
    a DataFrame, as in ``df.rdd.count()``.
    """
    task = TaskContext.get()
    if task is None or task.getLocalProperty(_ACTION) is None:
        return made_with
    return settings_from(task.getLocalProperty, made_with.default_time_zone)
