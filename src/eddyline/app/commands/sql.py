"""``eddyline sql``: runs a query over files in eddies, and prints or writes its rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from rich.console import Console
from rich.text import Text

import eddyline
from eddyline.app.endings import ExitCode, RunError
from eddyline.app.file_errors import check_output, file_errors_explained, printing
from eddyline.app.invocation import SqlInvocation
from eddyline.app.output import check_columns, write_rows
from eddyline.app.output_kind import OutputKind
from eddyline.app.prepared_query import prepared_query
from eddyline.app.row_lines import table_lines
from eddyline.app.terminal import chatter, show
from eddyline.monitor.progress import ProgressDisplay
from eddyline.reports.block_report import BlockReport
from eddyline.reports.routing_report import RoutingReport
from eddyline.reports.sections import NO_BLOCKS

RUNNING: Final = "Running the query"


def run(invocation: SqlInvocation) -> ExitCode:
    """Run the command: rows go to stdout or into a file, the report to stderr."""
    for path in (invocation.output, invocation.report):
        if path is not None:
            check_output(path)
    console = chatter()
    with prepared_query(invocation.query, console) as frame:
        if invocation.output is not None:
            check_columns(frame, invocation.output)
        wanted = frame if invocation.plain else eddyline.adapt(frame, policy=invocation.policy)
        if invocation.output is not None:
            cut, told = _write(wanted, invocation.limit, invocation.output, console)
        else:
            cut, told = _print(wanted, invocation.limit, console)
        if not invocation.plain:
            report = eddyline.report(wanted)
            if cut:
                report = replace(report, blocks=tuple(_fuller(report.blocks, told)))
            console.print()
            _show(report, frame, console, cut=cut)
            _write_page(report, invocation.report, console)
    return ExitCode.DONE


def _print(
    frame: DataFrame, limit: int | None, console: Console
) -> tuple[bool, Sequence[BlockReport]]:
    """Print the rows; return whether there are more, and what tasks have reported of themselves."""
    with ProgressDisplay(frame.sparkSession, console, RUNNING) as progress:
        rows = frame.collect() if limit is None else frame.take(limit + 1)
    more = limit is not None and len(rows) > limit
    width = console.width if sys.stdout.isatty() else None
    with printing():
        for line in table_lines(frame.schema, rows[:limit], width):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()  # before the report, if both go to one terminal
    if more:
        these = "This is the first row" if limit == 1 else f"These are the first {limit:,} rows"
        console.print(f"{these}; --limit 0 prints all.")
    return more, _told(progress)


def _write(
    frame: DataFrame, limit: int | None, path: Path, console: Console
) -> tuple[bool, Sequence[BlockReport]]:
    """Write the rows; return whether there may be more, and what tasks have reported."""
    kind = OutputKind.of(path)
    assert kind is not None  # noqa: S101 - the parser let no other through
    with ProgressDisplay(frame.sparkSession, console, RUNNING) as progress:
        write_rows(frame if limit is None else frame.limit(limit), path, kind)
    console.print(f"Rows: {path}", soft_wrap=True)
    return limit is not None, _told(progress)


def _told(progress: ProgressDisplay) -> Sequence[BlockReport]:
    last = progress.last()
    return () if last is None else last.blocks


def _fuller(blocks: Sequence[BlockReport], told: Sequence[BlockReport]) -> Iterator[BlockReport]:
    """Yield blocks with what their tasks have reported so far, if that is more than they recorded.

    A task that is ended by a limit records nothing, but it may have reported before.
    """
    for block in blocks:
        records = [block.record] + [
            report.record for report in told if replace(report, record=block.record) == block
        ]
        yield replace(
            block,
            record=max(records, key=lambda record: -1 if record is None else record.rows_in),
        )


def _show(report: RoutingReport, frame: DataFrame, console: Console, *, cut: bool) -> None:
    """Print a report, and what to do where it says little; ``cut`` if a limit ended the query."""
    if not report.blocks:
        console.print(NO_BLOCKS)
        show(console, Text(_why_nothing_runs(frame)))
        return
    silent = [block.record is None for block in report.blocks]
    if not all(silent):
        show(console, report)
    if cut and not any(silent):
        console.print("This is of what ran until these rows were there; --limit 0 runs all.")
    elif cut:
        console.print(
            "Too few rows were worked on to tell how they were routed: the first were there "
            "before any task had ended. --limit 0 runs the whole query."
        )
    elif any(silent):
        console.print(
            "No rows came to an eddy, or the LIMIT in the query was reached before any task had "
            "ended, so there is nothing to tell of how they were routed."
        )


def _why_nothing_runs(frame: DataFrame) -> str:
    return str(eddyline.explain(frame))


def _write_page(report: RoutingReport, path: Path | None, console: Console) -> None:
    if path is not None:
        with file_errors_explained(path, "written", RunError):
            report.to_html(path)
        console.print(f"Report: {path}", soft_wrap=True)
