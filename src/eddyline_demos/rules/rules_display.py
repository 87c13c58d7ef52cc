"""What the demo of standing queries shows: the rules, how they fare, and what it proves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from eddyline.reports.terminal_tables import FittingTable
from eddyline.reports.wording import count, duration
from eddyline.standing.introspection import Progress
from eddyline_demos.rules.flights_and_rules import TEMPLATE


@dataclass(frozen=True, slots=True)
class BatchesSeen:
    """What can be seen of the rules at some time."""

    progress: Progress
    standing: int
    changed: bool
    found: int
    busiest: Sequence[tuple[str, int]]
    seconds: float
    batches: int


def introduction(rules: int, changed: int, batches: int) -> RenderableType:
    """Return what is asked."""
    text = TEMPLATE.replace(" FROM", "\nFROM").replace(" WHERE", "\nWHERE")
    query = Syntax(text, "sql", theme="ansi_dark", background_color="default", word_wrap=True)
    return Group(
        Text(
            f"{count(rules)} people wait for late flights. One Spark job tells all of them.",
            style="bold",
        ),
        Text("Each has a rule, with an airport and a delay of their own:"),
        Padding(query, (1, 2)),
        Text(
            f"The flights that left New York City in 2013 come as a stream of {batches} "
            f"micro-batches. After half of them {count(changed)} rules are dropped and as many "
            "others added, without a restart."
        ),
    )


def picture(seen: BatchesSeen) -> RenderableType:
    """Return how the rules fare."""
    done = seen.progress
    table = FittingTable(
        ["Micro-batches"], ["Flights", "Matches", "Flights/s", "Matches/s", "Last batch"]
    )
    rate = 1 / max(seen.seconds, 1e-9)
    table.add_row(
        f"{done.batches} of {seen.batches}" + (", rules changed" if seen.changed else ""),
        count(done.rows_in),
        count(seen.found),
        count(round(done.rows_in * rate)),
        count(round(seen.found * rate)),
        duration(done.seconds) if done.batches else "",
    )
    if not seen.busiest:
        return table
    busy = FittingTable(["Busiest rules"], ["Matches"])
    for name, matches in seen.busiest:
        busy.add_row(name, count(matches))
    return Group(table, Text(), busy)


def outcome(rules: int, matches: int, seconds: float) -> RenderableType:
    """Return what was proved."""
    return Text.assemble(
        (f"{count(matches)} matches of {count(rules)} rules, each once", "bold green"),
        f", in {duration(seconds)} with the start of Spark's workers. A batch query over the same "
        "flights, each rule for the micro-batches in which it stood, finds exactly these.",
    )
