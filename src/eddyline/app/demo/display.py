"""What the demo shows: the question, and afterwards rows, times and calls."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from eddyline.app.demo.query import QUERY, QUESTION
from eddyline.app.demo.race import (
    Contestant,
    Difference,
    Lap,
    functions_of,
    seconds_of,
    speed_up,
)
from eddyline.app.rows import text_of
from eddyline.reports.wording import count, counted, duration, percent

_SHOWN_ROWS = 5


def introduction(flights: int) -> RenderableType:
    """Return the question, its query, and what is special about it."""
    query = Syntax(QUERY.strip(), "sql", theme="ansi_dark", background_color="default")
    return Group(
        Text(f"{QUESTION}", style="bold"),
        Text(f"Asked of {count(flights)} real flights that left New York City in 2013:"),
        Padding(query, (1, 2)),
        Text(
            "Four conditions call Python functions. Plain Spark calls all four for every row of "
            "the join; Eddyline finds out while it runs which to call first, and after which joins."
        ),
    )


def outcome(laps: Sequence[Lap], joined: int) -> RenderableType:
    """Return the answer, the times of both sides, the calls of each function, and the verdict.

    ``joined`` are the rows of the join, on each of which plain Spark calls every function.
    """
    rows = laps[0].rows
    factor = speed_up(laps)
    if factor >= 1:
        verdict = (f"Eddyline was {factor:.1f} times as fast", "bold green")
    else:
        verdict = (f"Plain Spark was {1 / factor:.1f} times as fast", "bold")
    return Group(
        _answer(laps),
        Text(),
        _times(laps),
        Text(),
        _calls(laps, joined),
        Text(),
        Text.assemble(
            verdict,
            f", with the same {counted(len(rows), 'row')} in every run.",
        ),
    )


def disagreement(found: Difference) -> str:
    """Return what is wrong when the two sides have different rows."""
    example = ", ".join(map(text_of, found.rows[0]))
    return (
        f"the rows differ: {len(found.rows)} come from {found.contestant} only, such as "
        f"({example}). This is a defect of Eddyline; please report it"
    )


def _answer(laps: Sequence[Lap]) -> Table:
    rows = laps[0].rows
    table = _table("Airline", "Flights", "Minutes late")
    for row in rows[:_SHOWN_ROWS]:
        table.add_row(*map(text_of, row))
    if len(rows) > _SHOWN_ROWS:
        table.add_row(f"and {len(rows) - _SHOWN_ROWS} more", style="dim")
    return table


def _times(laps: Sequence[Lap]) -> Table:
    runs = len(laps) // len(Contestant)
    table = _table("Time", *(f"Run {run}" for run in range(1, runs + 1)), "Median")
    for contestant in Contestant:
        seconds = seconds_of(laps, contestant)
        table.add_row(contestant, *map(duration, [*seconds, median(seconds)]))
    return table


def _calls(laps: Sequence[Lap], joined: int) -> Table:
    table = _table("Calls of", Contestant.PLAIN, Contestant.EDDYLINE, "Saved", "A call")
    last = next(lap for lap in reversed(laps) if lap.report is not None)
    for function in functions_of(last):
        table.add_row(
            function.name,
            count(joined),
            count(function.calls),
            percent(joined - function.calls, joined),
            duration(function.seconds / function.calls) if function.calls else "",
        )
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    table.add_column(first)
    for heading in others:
        table.add_column(heading[0].upper() + heading[1:], justify="right", no_wrap=True)
    return table
