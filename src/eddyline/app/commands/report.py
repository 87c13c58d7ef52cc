"""``eddyline report``: prints the reports of an application that is over, from its event log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from eddyline.app.endings import ExitCode, RunError, UsageError
from eddyline.app.event_log import EventLog, LoggedAction, read_event_log
from eddyline.app.file_errors import check_output, file_errors_explained, printing
from eddyline.app.invocation import ReportInvocation
from eddyline.app.terminal import chatter, results, show
from eddyline.reports.figures import TERMINAL, Seconds
from eddyline.reports.routing_report import reports_page
from eddyline.reports.wording import JAVA_CALLER, counted, one_line


def run(invocation: ReportInvocation) -> ExitCode:
    """Run the command: reports go to stdout, or into the files that are named."""
    for path in (invocation.html, invocation.json):
        if path is not None:
            check_output(path)
    log = read_event_log(invocation.event_log)
    actions = _chosen(log, invocation)
    console = chatter()
    if invocation.html is not None:
        with file_errors_explained(invocation.html, "written", RunError):
            titled = [(_title(action), _when(action), action.report) for action in actions]
            invocation.html.write_text(reports_page(titled), encoding="utf-8")
        console.print(f"Report: {invocation.html}", soft_wrap=True)
    if invocation.json is not None:
        with file_errors_explained(invocation.json, "written", RunError):
            text = json.dumps(_as_data(log, actions), indent=1, allow_nan=False)
            invocation.json.write_text(text + "\n", encoding="utf-8")
        console.print(f"Report: {invocation.json}", soft_wrap=True)
    if invocation.html is None and invocation.json is None:
        _print(actions)
    if log.unread:
        unread = counted(log.unread, "report")
        console.print(f"{unread} of another version of Eddyline left out.")
    if log.cut:
        console.print("The log ends early: its application still runs, or was killed.")
    return ExitCode.DONE


def _chosen(log: EventLog, invocation: ReportInvocation) -> Sequence[LoggedAction]:
    path, number = invocation.event_log, invocation.action
    if not log.actions and not log.unread:
        raise UsageError(
            f"{path} has no reports: no query of {log.application or 'its application'} ran in an "
            f"eddy, or it used a version of Eddyline that kept none"
        )
    if number is None:
        return log.actions
    actions = [action for action in log.actions if action.number == number]
    if not actions:
        known = ", ".join(str(action.number) for action in log.actions)
        raise UsageError(f"{path} has no report of action {number}, only of {known}")
    return actions


def _print(actions: Sequence[LoggedAction]) -> None:
    console = results()
    with printing():
        for place, action in enumerate(actions):
            if place:
                console.print()
            show(console, Text(_title(action), style="bold"))
            about = _when(action)
            if about:
                show(console, Text(about))
            console.print()
            show(console, action.report)


def _title(action: LoggedAction) -> str:
    description = one_line(action.description.removesuffix(JAVA_CALLER))
    return f"Action {action.number}: {description}".removesuffix(": ")


def _when(action: LoggedAction) -> str:
    if action.started is None:
        return ""
    text = f"{datetime.fromtimestamp(action.started, UTC):%Y-%m-%d %H:%M:%S} UTC"
    if action.seconds is not None:
        text += f", {TERMINAL.figure(Seconds(action.seconds))}"
    return f"{text}, failed: {one_line(action.error)}" if action.error else text


def _as_data(log: EventLog, actions: Sequence[LoggedAction]) -> dict[str, Any]:
    return {
        "application": log.application,
        "id": log.identity,
        "actions": [
            {
                "action": action.number,
                "description": action.description,
                "started": action.started,
                "ended": action.ended,
                "error": action.error or None,
                "report": action.report.to_dict(),
            }
            for action in actions
        ],
    }
