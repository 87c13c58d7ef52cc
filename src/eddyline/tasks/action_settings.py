"""The settings under which a user's function is called: those of the action that calls it.

Spark's own workers are told the settings of the session as they are when the action
begins, whenever the DataFrame was made. A block is made earlier, by ``adapt``. So its tasks
ask for the settings again: Spark hands all that were set to every task of an action, as the
task's local properties, which is a public way to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark import TaskContext

from eddyline.blocks.filter_block import JavaRuntime, SessionSettings
from eddyline.quirks.without_settings import ALWAYS_OFF, ALWAYS_ON

TIME_ZONE: Final = "spark.sql.session.timeZone"

ACTION: Final = "spark.sql.execution.id"
"""Local property of the tasks of an action on a DataFrame; they have its settings, too."""


_SWITCHES: Final = {
    "binary_as_bytes": "spark.sql.execution.pyspark.binaryAsBytes",
    "legacy_pandas_conversion": "spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled",
    "assign_columns_by_name": "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName",
    "int_to_decimal_coercion": "spark.sql.execution.pythonUDF.pandas.intToDecimalCoercionEnabled",
    "safe_arrow_conversion": "spark.sql.execution.pandas.convertToArrowArraySafely",
    "integer_extension_types": "spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype",
    "large_types": "spark.sql.execution.arrow.useLargeVarTypes",
}

KEYS: Final = (TIME_ZONE, *_SWITCHES.values())
"""What is asked for; not all of them are known to every Spark."""


def settings_from(
    value_of: Callable[[str], str | None], defaults: Mapping[str, str], java: JavaRuntime
) -> SessionSettings:
    """Return what the settings mean for functions.

    ``value_of`` gives None for one that is not set; then the running Spark's default counts. It may
    differ from what PySpark's workers assume of a setting that they are not told: Spark tells them
    to check conversions of Arrow arrays; by themselves they do not.
    """

    def text(key: str) -> str:
        value = value_of(key)
        return defaults.get(key, "") if value is None else value

    return SessionSettings(
        time_zone=text(TIME_ZONE),
        defaults=tuple(defaults.items()),
        java=java,
        **{
            field: field in ALWAYS_ON or (field not in ALWAYS_OFF and text(key).lower() == "true")
            for field, key in _SWITCHES.items()
        },
    )


def settings_of_action(made_with: SessionSettings) -> SessionSettings:
    """Return the settings of the action that this task belongs to.

    ``made_with`` are those of the block. They hold where the task belongs to no action on
    a DataFrame, as in ``df.rdd.count()``.
    """
    task = TaskContext.get()
    if task is None or task.getLocalProperty(ACTION) is None:
        return made_with
    return settings_from(task.getLocalProperty, dict(made_with.defaults), made_with.java)
