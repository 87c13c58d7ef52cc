"""What the demo shows: the question, and afterwards rows, times and calls."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from eddyline.app.row_lines import text_of
from eddyline.reports.terminal_tables import FittingTable
from eddyline.reports.wording import count, counted, duration, percent
from eddyline_demos.race import (
    Contestant,
    Lap,
    RowDifference,
    functions_of,
    seconds_of,
    speed_up,
)
from eddyline_demos.race_query import QUERY, QUESTION

_SHOWN_ROWS = 5


def introduction(flights: int) -> RenderableType:
    """Return the question, its query, and what is special about it."""
    query = Syntax(
        QUERY.strip(), "sql", theme="ansi_dark", background_color="default", word_wrap=True
    )
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


def disagreement(found: RowDifference) -> str:
    """Return what is wrong when the two sides have different rows."""
    example = ", ".join(map(text_of, found.rows[0]))
    return (
        f"the rows differ: {len(found.rows)} come from {found.contestant} only, such as "
        f"({example}). This is a defect of Eddyline; please report it"
    )


def _answer(laps: Sequence[Lap]) -> RenderableType:
    rows = laps[0].rows
    table = FittingTable(["Airline"], ["Flights", "Minutes late"])
    for row in rows[:_SHOWN_ROWS]:
        table.add_row(*map(text_of, row))
    if len(rows) <= _SHOWN_ROWS:
        return table
    return Group(table, Text(f"and {len(rows) - _SHOWN_ROWS} more", style="dim"))


def _times(laps: Sequence[Lap]) -> FittingTable:
    runs = len(laps) // len(Contestant)
    table = FittingTable(["Time"], ["Median", *(f"Run {run}" for run in range(1, runs + 1))])
    for contestant in Contestant:
        seconds = seconds_of(laps, contestant)
        table.add_row(contestant, *map(duration, [median(seconds), *seconds]))
    return table


def _calls(laps: Sequence[Lap], joined: int) -> FittingTable:
    plain, adaptive = (f"{each[0].upper()}{each[1:]}" for each in Contestant)
    table = FittingTable(["Calls of"], [plain, adaptive, "Saved", "A call"])
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
