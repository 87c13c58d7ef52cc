"""Actions as data for the live page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from eddyline.monitor.live_query import LiveQuery
from eddyline.reports.as_dict import as_dict
from eddyline.reports.block_report import BlockReport


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
            block | {"labels": list(report.labels), "steps": _steps(report)}
            for report, block in zip(query.blocks, as_dict(query.blocks, ())["blocks"], strict=True)
        ],
    }


def _steps(block: BlockReport) -> list[dict[str, Any]]:
    """Return the steps of a block: its predicates, and the SteMs after them.

    ``came`` and ``went`` are tuples; what goes on with an error held has not been dropped.
    """
    record = block.record
    if record is None:
        return []
    found: Sequence[tuple[int, int, float, int]] = [
        (each.rows_in, each.passed + each.errors_held, each.seconds, each.errors_held)
        for each in record.predicates
    ]
    if record.join is not None:
        found = [
            *found,
            *((each.probes, each.matches, each.seconds, 0) for each in record.join.stems),
        ]
    return [
        {
            "label": label,
            "text": block.text_of(position),
            "came": came,
            "went": went,
            "seconds": seconds,
            "errors": errors,
            "stem": position >= len(record.predicates),
        }
        for position, (label, (came, went, seconds, errors)) in enumerate(
            zip(block.labels, found, strict=False)
        )
    ]
