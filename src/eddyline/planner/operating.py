"""What an operator sees of a Spark context: reports in its event log, counters in its metrics."""

from __future__ import annotations

import atexit
import logging
import re
import threading
import weakref
from collections.abc import Mapping
from typing import Final

from pyspark import SparkContext

from eddyline import catalyst
from eddyline.blocks.filter_block import FUSED_NAME
from eddyline.counters import (
    BUDGET_REFUSED,
    CALLBACKS_FAILED,
    CALLS_MADE,
    COUNTERS,
    LOOKUP_REQUESTS,
    QUOTA_REFUSED,
    Counter,
)
from eddyline.host.per_context import PerContext
from eddyline.planner.action_records import ActionRecords
from eddyline.planner.block_registry import registry_of
from eddyline.planner.declare.lookup_tables import lookup_tables_of
from eddyline.planner.read.lookup_leaves import CHOICE_NAME
from eddyline.quirks.classic_frames import ClassicDataFrame

REPORTS: Final = "spark.eddyline.eventLog"
"""Setting: whether an event log that is there keeps reports; true by default."""

METRICS: Final = "spark.eddyline.metrics"
"""Setting: whether Spark's metrics have our counters; by default while a session is enabled."""

_REDACTION: Final = ("spark.sql.redaction.string.regex", "spark.redaction.string.regex")
"""Settings: what Spark does not show of the texts of plans; the first that is set counts."""

_log: Final = logging.getLogger("eddyline")


class Operating:
    """What is shown of a context; begun once, however many sessions and queries it has."""

    def __init__(self, context: SparkContext) -> None:
        """Show nothing yet."""
        self._context: Final = weakref.ref(context)
        self._changing = threading.Lock()
        self._begun = False
        self._posted: catalyst.PostedReports | None = None
        self._shown: catalyst.ShownCounters | None = None
        self._redaction: re.Pattern[str] | None = None
        settings = dict(context.getConf().getAll())
        self._settings: Final[Mapping[str, str]] = {
            name: settings[name] for name in (REPORTS, METRICS, *_REDACTION) if name in settings
        }
        answers = catalyst.answers()
        self._unanswered_before = 0 if answers is None else answers.failed + answers.passed_over

    def begin(self) -> None:
        """Have actions reported in the event log from now on, where there is one.

        And show counters, where they are always to be shown.
        """
        with self._changing:
            context = self._context()
            if self._begun or context is None:
                return
            self._begun = True
            if self._chosen(REPORTS) is not False and catalyst.has_event_log(context):
                self._begin_reports(context)
            if self._chosen(METRICS):
                self._show()

    def enabled(self, *, any_session: bool) -> None:
        """Show counters while any session of the context is enabled, unless settings choose."""
        with self._changing:
            if self._chosen(METRICS) is not None:
                return
            if any_session:
                self._show()
            elif self._shown is not None:
                self._shown.end()
                self._shown = None

    def values(self) -> dict[Counter, int]:
        """Return what all counters say."""
        context = self._context()
        if context is None:
            return dict.fromkeys(COUNTERS, 0)
        counts, answers = self._counted(context), catalyst.answers()
        unanswered = 0 if answers is None else answers.failed + answers.passed_over
        counts[CALLBACKS_FAILED] = unanswered - self._unanswered_before
        return counts

    def settle(self) -> None:
        """Wait until reports are in the event log of what is over, some seconds at the most."""
        if self._posted is not None:
            self._posted.settle()

    def _counted(self, context: SparkContext) -> dict[Counter, int]:
        counts = registry_of(context).counts.values()
        tables = lookup_tables_of(context)
        counts[CALLS_MADE] += tables.books.calls
        counts[QUOTA_REFUSED] = tables.books.refusals + tables.refusals
        counts[BUDGET_REFUSED] = tables.books.refused
        counts[LOOKUP_REQUESTS] = tables.requests
        return counts

    def _show(self) -> None:
        if self._shown is None:
            names = [counter.name for counter in COUNTERS]
            self._shown = catalyst.show_counters(names, CALLBACKS_FAILED.name, self._shown_values)

    def _shown_values(self) -> list[int]:
        context = self._context()
        if context is None:
            return [0] * len(COUNTERS)
        counts = self._counted(context)
        return [counts[counter] for counter in COUNTERS]

    def _begin_reports(self, context: SparkContext) -> None:
        try:
            pattern = next(
                (self._settings[name] for name in _REDACTION if name in self._settings), ""
            )
            self._redaction = re.compile(pattern) if pattern else None
        except re.error as error:  # Java's patterns can say more
            _log.warning("The event log keeps no reports, as texts cannot be redacted: %s", error)
            return
        registry = registry_of(context)
        registry.actions = ActionRecords()
        names = FUSED_NAME, CHOICE_NAME
        self._posted = catalyst.post_reports(context, self._reported, named=names)
        if self._posted is None:
            registry.actions = None
            return
        atexit.register(_settle, weakref.ref(self))

    def _reported(self, action: catalyst.EndedAction) -> str | None:
        """Return the report of an action that is over, in JSON.

        None where no eddy ran in it, and no table was looked up or scanned.

        It takes 0.2 ms of this process's time for two predicates in two tasks, 2,000 characters,
        and 3 ms for 35,000. Queries of 200 ms took no longer with it: the median of 80 paired
        differences was -1.8 ms, on a machine that had other things to do as well.
        """
        context = self._context()
        registry = None if context is None else registry_of(context)
        if context is None or registry is None or registry.actions is None:
            return None
        records = registry.actions.over(action.number)
        recorded = tuple(registry.in_order(records, action.functions))
        choices = lookup_tables_of(context).choices_of(action.functions)
        if not recorded and not choices:
            return None
        # Only where an action has a report is that needed which draws tables: 0.05 s.
        from eddyline.planner.block_reports import routing_report  # noqa: PLC0415
        from eddyline.reports.kept_report import kept_json  # noqa: PLC0415

        whole, left = not action.joins, list[tuple[str, str]]()
        runs = (*(options.run for _, options, _ in recorded), *(choice.run for choice in choices))
        for run in dict.fromkeys(runs):
            adapted = registry.adapted(run)
            if adapted is None:
                continue
            left += adapted.left
            frame = adapted.frame()
            whole = whole and frame is not None and _executes(frame, action.execution)
        report = routing_report(
            context,
            recorded,
            tuple(left),
            whole=whole,
            every_action=False,
            action=action.number,
            choices=choices,
        )
        return kept_json(report, self._redaction)

    def _chosen(self, setting: str) -> bool | None:
        """Return what a setting says; None where it says nothing."""
        given = self._settings.get(setting, "").strip().lower()
        if given in {"true", "false"}:
            return given == "true"
        if given:
            _log.warning("%s is true or false, not %s", setting, given)
        return None


def _executes(frame: object, execution: int) -> bool:
    """Whether an execution is that of a DataFrame itself, with nothing added."""
    return isinstance(frame, ClassicDataFrame) and catalyst.execution_identity(frame) == execution


def _settle(operating: weakref.ref[Operating]) -> None:
    begun = operating()
    if begun is not None:
        begun.settle()


_operating: Final = PerContext(Operating)


def operating_of(context: SparkContext) -> Operating:
    """Return what is shown of a Spark context."""
    return _operating.of(context)
