"""Actions that run, as lines of a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from eddyline.monitor.live_query import LiveQuery
from eddyline.reports.block_report import BlockReport
from eddyline.reports.wording import (
    brief_count,
    compact,
    duration,
    order_name,
    percent,
    shortened,
)

BAR = 12
"""Signs of a bar."""

NAMES = 40
"""Letters of the text of a predicate."""


class ProgressLines:
    """What rich shows of actions: three lines each, cut where the terminal ends.

    What matters less stands further right, so that it is what a narrow terminal leaves out.
    """

    def __init__(self, queries: Sequence[LiveQuery], now: float) -> None:
        """Take the actions that run, and the time in seconds since the epoch."""
        self._queries = queries
        self._now = now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines."""
        for query in self._queries:
            for text in lines_of(
                query, self._now, options.max_width, unicode=not options.ascii_only
            ):
                text.truncate(options.max_width, overflow="ellipsis")
                yield text


def lines_of(query: LiveQuery, now: float, width: int, *, unicode: bool = True) -> list[Text]:
    """Return the lines of one action."""
    seconds = max((query.ended or now) - query.started, 0.0)
    totals = query.totals
    rate = totals.rows_in / seconds if seconds else 0.0
    lines = [Text(query.name, style="bold")]
    parts = [
        f"{tasks_bar(query.tasks_done, query.tasks, unicode=unicode)}",
        brief_count(totals.rows_in, "row"),
        duration(seconds),
        f"{compact(rate)} rows/s",
    ]
    if totals.calls_possible:
        spared = max(totals.calls_possible - totals.calls, 0)
        parts.append(f"{percent(spared, totals.calls_possible)} of calls spared")
    if totals.errors:
        parts.append(f"{brief_count(totals.errors, 'error')} held")
    lines.append(Text("  " + fitting(parts, width - 2)))
    if query.waiting:
        lines.append(Text("  " + query.waiting, style="yellow"))
    lines += [
        Text("  " + line, style="dim") for block in query.blocks if (line := order_now(block))
    ]
    return lines


def order_now(block: BlockReport) -> str:
    """Say in which order most rows went lately, and what the first of it is; empty if unknown."""
    record = block.record
    if record is None or not record.orders:
        return ""
    latest = record.orders[-1]
    order = max(latest.shares, key=lambda share: share[1], default=((), 0))[0]
    if not order:
        return ""
    first = shortened(block.text_of(order[0]), NAMES)
    name = order_name(order, labels=block.labels)
    return f"order {name}, first {first}" if len(order) > 1 else first


def tasks_bar(done: int, tasks: int, *, unicode: bool) -> str:
    """Return a bar of tasks, with their numbers.

    >>> tasks_bar(3, 12, unicode=False)
    '###......... 3/12 tasks'
    """
    part = round(BAR * done / tasks) if tasks else 0
    full, empty = "█░" if unicode else "#."
    return f"{full * part}{empty * (BAR - part)} {done:,}/{tasks:,} tasks"


def fitting(parts: Sequence[str], width: int) -> str:
    """Join as many parts as there is room for, the first one always."""
    line = parts[0]
    for part in parts[1:]:
        if len(line) + 2 + len(part) > width:
            break
        line += "  " + part
    return line
