"""Actions on DataFrames, as Spark keeps account of them for its own pages."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from eddyline.catalyst.gateway import GONE, java_session, static


@dataclass(frozen=True, slots=True)
class ActionState:
    """What Spark knows of an action: times are seconds since the epoch.

    ``ended`` is None while it runs, ``error`` where none has ended it.
    """

    description: str
    started: float
    ended: float | None
    error: str | None


def is_running(action: int) -> bool:
    """Whether an action runs, by its number."""
    running = static("org.apache.spark.sql.execution.SQLExecution", "getQueryExecution")
    return running(action) is not None


def action_state(spark: SparkSession, action: int) -> ActionState | None:
    """Return the state of an action by its number; None where Spark does not know it (any more).

    Spark hears of its own actions some milliseconds late, and keeps the last
    ``spark.sql.ui.retainedExecutions``.
    """
    try:
        execution = java_session(spark).sharedState().statusStore().execution(action)
        if execution.isEmpty():
            return None
        known = execution.get()
        ended, error = known.completionTime(), known.errorMessage()
        return ActionState(
            str(known.description()),
            known.submissionTime() / 1000,
            None if ended.isEmpty() else ended.get().getTime() / 1000,
            None if error.isEmpty() or not error.get() else str(error.get()),
        )
    except GONE:
        return None
