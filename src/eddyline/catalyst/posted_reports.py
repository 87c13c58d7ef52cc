"""Reports of actions that are over, posted as events that Spark's event log keeps."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError
from pyspark import SparkContext

from eddyline.catalyst.gateway import GONE, execution_of, static
from eddyline.catalyst.pipeline import new_alone
from eddyline.catalyst.python_side import lasting_reporter, python_side
from eddyline.quirks.classic_frames import ClassicDataFrame

_log: Final = logging.getLogger("eddyline")


@dataclass(frozen=True, slots=True)
class EndedAction:
    """An action that is over: its number, and what there is to say of its plan.

    ``execution`` is as :func:`execution_identity` has it, ``joins`` tells whether Spark joins
    anything, and ``functions`` are digests of the functions in question, in the order of the plan.
    """

    number: int
    execution: int
    joins: bool
    functions: tuple[bytes, ...]


Report = Callable[[EndedAction], str | None]
"""From an action to its report in JSON; None where there is none."""


class PostedReports:
    """The reports of the actions of a context on their way into its event log."""

    def __init__(self, poster: Any) -> None:  # noqa: ANN401 - Py4J has no types
        """Take what posts them, in the JVM."""
        self._poster: Final = poster

    def settle(self) -> None:
        """Wait for the reports of actions that are over, some seconds at the most.

        Does nothing where the context, or the JVM, has ended.
        """
        if SparkContext._active_spark_context is None:
            return
        with contextlib.suppress(*GONE):
            self._poster.settle()


def has_event_log(context: SparkContext) -> bool:
    """Whether an application has an event log."""
    return bool(cast("Any", context)._jsc.sc().eventLogger().isDefined())


def post_reports(
    context: SparkContext, report: Report, *, named: Sequence[str]
) -> PostedReports | None:
    """Have every action of a context reported when it is over; None where that is not possible.

    ``report`` is called in threads of its own, after the action, and is told of the functions whose
    names begin with one of ``named``.
    """
    if not isinstance(SparkContext._gateway, ClientServer):
        _log.info("The event log keeps no reports with PYSPARK_PIN_THREAD=false.")
        return None
    try:
        side = python_side()
        poster = new_alone("ReportPoster")
        asked = lasting_reporter(_Asked(report))  # Py4J keeps it as long as the JVM does
        if asked is None:  # a process before this one has begun
            return PostedReports(poster)
        pattern = "|".join(map(re.escape, named))
        begun = poster.begin(cast("Any", context)._jsc.sc(), side, asked, pattern)
    except (Py4JError, TypeError) as error:  # TypeError: no such class
        _log.info("The event log keeps no reports: %s", error)
        return None
    return PostedReports(poster) if begun else None


def execution_identity(df: ClassicDataFrame) -> int:
    """Return the identity of the execution that is a DataFrame's own."""
    return int(static("java.lang.System", "identityHashCode")(execution_of(df)))


class _Asked:
    def __init__(self, report: Report) -> None:
        self._report = report

    def apply(self, action: int, plan: str) -> str | None:
        """Return the report of an action."""
        execution, joins, *functions = plan.split()
        ended = EndedAction(
            action, int(execution), joins == "join", tuple(map(bytes.fromhex, functions))
        )
        try:
            return self._report(ended)
        except Exception:  # noqa: BLE001 - whatever it raises: the query is over and well
            _log.exception("The event log has no report of an action")
            return None

    class Java:
        """The interface of Java that this implements, as Py4J wants it told."""

        implements = ("java.util.function.BiFunction",)
