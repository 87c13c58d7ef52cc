"""Actions on DataFrames, as Spark keeps account of them for its own pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from eddyline.catalyst.gateway import GONE, in_python, java_session, static


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


_CUT_SHORT: Final = re.compile(r"\b(?:CollectLimit|GlobalLimit|CollectTail)\b")
"""What in a plan's text tells that rows may be left unread.

A ``LocalLimit`` alone is Spark's own, of what a semijoin without a condition looks at.
"""

LATE: Final = 0.05
"""Seconds by which Spark's clock may be behind, which counts in milliseconds."""


def seconds_of_reading(spark: SparkSession, action: int, since: float) -> float | None:
    """Return how long an action has read its sources that it began to read after a moment.

    The action is over, ``since`` is in seconds since the epoch. It is the time from the first to
    begin of the stages that have read rows of a source to the last to end. None where there are
    none, where a limit may have cut them short, or Spark does not know them any more.
    """
    try:
        execution = java_session(spark).sharedState().statusStore().execution(action)
        if execution.isEmpty() or _CUT_SHORT.search(str(execution.get().physicalPlanDescription())):
            return None
        stages = in_python(execution.get().stages().toSeq())
        store = spark.sparkContext._jsc.sc().statusStore()
        read = [
            times
            for stage in stages
            if (times := _times_of_reading(store, stage)) is not None and times[0] >= since - LATE
        ]
    except GONE:
        return None
    return max(end for _, end in read) - min(begin for begin, _ in read) if read else None


def _times_of_reading(store: Any, stage: int) -> tuple[float, float] | None:  # noqa: ANN401 - Py4J
    """Return when a stage has begun and ended that was read to its end; None for another."""
    try:
        known = store.lastStageAttempt(stage)
    except GONE:  # it was left out, as its rows were there
        return None
    begun, ended = known.submissionTime(), known.completionTime()
    if str(known.status()) != "COMPLETE" or not int(known.inputRecords()) or begun.isEmpty():
        return None
    return begun.get().getTime() / 1000, ended.get().getTime() / 1000
