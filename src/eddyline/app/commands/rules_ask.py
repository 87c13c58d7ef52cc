"""``eddyline rules add``, ``drop``, ``pause``, ``resume`` and ``list``: asks a running job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.table import Table

from eddyline.app.endings import ExitCode, RunError, UsageError
from eddyline.app.file_errors import printing
from eddyline.app.invocation import RulesAskInvocation
from eddyline.app.rules_config import state_of
from eddyline.app.spark_errors import essence_of
from eddyline.app.terminal import chatter, results, show
from eddyline.errors import RequestRefusedError, StateError
from eddyline.standing.requests import ask

_WIDEST: Final = 10_000
"""Columns of a line in a pipe."""


def run(invocation: RulesAskInvocation) -> ExitCode:
    """Run the command."""
    state = state_of(invocation.where)
    console = chatter()
    try:
        with console.status("Asking the job"):
            answer = ask(state, invocation.request)
    except RequestRefusedError as error:
        raise UsageError(essence_of(str(error))) from error
    except StateError as error:
        raise RunError(str(error)) from error
    if invocation.request["do"] == "list":
        out = results()
        if not out.is_terminal:
            out.width = _WIDEST  # one line a query, for a program that reads them
        with printing():
            show(out, listed(answer))
    else:
        console.print("Done: from the next micro-batch on.")
    return ExitCode.DONE


def listed(queries: Sequence[Mapping[str, Any]]) -> Table:
    """Return queries as a table."""
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "state", "rows in", "results", "query"):
        right = heading in {"rows in", "results"}
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for query in queries:
        state = query["state"] if query["reason"] is None else f"failed: {query['reason']}"
        sql = " ".join(query["sql"].split())
        if query["keep"]:
            sql += f"  keep {query['keep']}"
        if query.get("backfill"):  # a job of an earlier version does not say
            sql += f"  backfill {query['backfill']}"
        if query["parameters"]:
            sql += f"  {query['parameters']}"
        table.add_row(query["name"], state, f"{query['rows_in']:,}", f"{query['results']:,}", sql)
    return table
