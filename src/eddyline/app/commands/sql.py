"""``eddyline sql``: runs a query over files in eddies, and prints or writes its rows."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame
from rich.console import Console

import eddyline
from eddyline.app.failures import ExitCode, RunError
from eddyline.app.file_errors import file_errors_explained, printing
from eddyline.app.invocation import SqlInvocation
from eddyline.app.output import check_columns, check_output, write_rows
from eddyline.app.output_kind import OutputKind
from eddyline.app.prepared_query import prepared_query
from eddyline.app.rows import table_lines
from eddyline.app.terminal import chatter, show


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
            _write(wanted, invocation.limit, invocation.output, console)
        else:
            _print(wanted, invocation.limit, console)
        if not invocation.plain:
            _report(wanted, invocation.report, console)
    return ExitCode.DONE


def _print(frame: DataFrame, limit: int | None, console: Console) -> None:
    with console.status("Running the query"):
        rows = frame.collect() if limit is None else frame.take(limit + 1)
    more = limit is not None and len(rows) > limit
    width = console.width if sys.stdout.isatty() else None
    with printing():
        for line in table_lines(frame.schema, rows[:limit], width):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()  # before the report, if both go to one terminal
    if more:
        console.print(f"These are the first {limit:,} rows; --limit 0 prints all.")


def _write(frame: DataFrame, limit: int | None, path: Path, console: Console) -> None:
    kind = OutputKind.of(path)
    assert kind is not None  # noqa: S101 - the parser let no other through
    with console.status("Running the query"):
        write_rows(frame if limit is None else frame.limit(limit), path, kind)
    console.print(f"Rows: {path}", soft_wrap=True)


def _report(frame: DataFrame, path: Path | None, console: Console) -> None:
    report = eddyline.report(frame)
    console.print()
    if report.blocks and all(block.record is None for block in report.blocks):
        console.print(
            "The first rows were there before any task had ended, so there is nothing to report "
            "of their routing; --limit 0 runs the whole query."
        )
    else:
        show(console, report)
    if path is not None:
        with file_errors_explained(path, "written", RunError):
            report.to_html(path)
        console.print(f"Report: {path}", soft_wrap=True)
