"""Actions as data for the live page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from eddyline.monitor.live_query import LiveQuery
from eddyline.reports.as_dict import as_dict


def summary(query: LiveQuery) -> dict[str, Any]:
    """Return what a list says of an action."""
    return {
        "number": query.number,
        "description": query.description,
        "about": query.about,
        "state": query.state.value,
        "started": query.started,
        "ended": query.ended,
        "tasks": query.tasks,
        "tasks_done": query.tasks_done,
        **asdict(query.totals),
    }


def detail(query: LiveQuery) -> dict[str, Any]:
    """Return all that is known of an action.

    ``blocks`` are as in :meth:`~eddyline.reports.routing_report.RoutingReport.to_dict`, with the
    ``labels`` by which orders call their steps, and the time ``spent`` in each step.
    """
    return summary(query) | {
        "error": query.error,
        "blocks": [
            block
            | {"labels": list(report.labels), "steps": [asdict(step) for step in report.steps()]}
            for report, block in zip(query.blocks, as_dict(query.blocks, ())["blocks"], strict=True)
        ],
    }
