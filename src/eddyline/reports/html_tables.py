"""The tables of the HTML report, by columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from eddyline.reports import html_wording as wording
from eddyline.reports.asked_tables import AskedTable
from eddyline.reports.block_report import BlockReport, NumberedPredicate
from eddyline.reports.called_functions import CalledFunction
from eddyline.reports.html_wording import time
from eddyline.reports.records import Change, FunctionRecord, JoinRecord
from eddyline.reports.timeline import Timeline
from eddyline.reports.wording import NOTHING, count, one_line, percent, ratio, size

Kind: TypeAlias = Literal[
    "figures",  # at the right
    "words",  # at the left
    "code",  # likewise, cut where it is long and whole on hovering
]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table: its name, its cells from top to bottom, and how they look."""

    name: str
    cells: Sequence[str]
    kind: Kind = "figures"


Columns: TypeAlias = tuple[TableColumn, ...]
"""A table, by columns of one length."""


def left_columns(left: Sequence[tuple[str, str]]) -> Columns:
    """Return what was left to Spark, and why."""
    return (
        TableColumn("What", [what for what, _ in left], "code"),
        TableColumn("Why", [one_line(why) for _, why in left], "words"),
    )


def input_columns(block: BlockReport, join: JoinRecord) -> Columns:
    """Return the inputs of a join and what their SteMs did; rare events where there are any."""
    stems = join.stems
    labels = block.labels[-len(stems) :]
    lettered = labels != join.names
    copied = join.came != join.read
    killed = any(stem.killed for stem in stems)
    bounced = any(stem.bounced for stem in stems)
    return (
        *([TableColumn("", labels)] * lettered),
        TableColumn("Input", [stem.relation for stem in stems], "code"),
        TableColumn("Rows read", [count(rows) for rows in join.read]),
        *([TableColumn("Came", [count(rows) for rows in join.came])] * copied),
        TableColumn("In SteM", [count(stem.rows) for stem in stems]),
        TableColumn("Size", [size(stem.bytes) for stem in stems]),
        TableColumn("Built", [count(stem.builds) for stem in stems]),
        TableColumn("Probes", [count(stem.probes) for stem in stems]),
        TableColumn("Matches", [count(stem.matches) for stem in stems]),
        TableColumn("a probe", [ratio(stem.fanout) for stem in stems]),
        *([TableColumn("Killed", [count(stem.killed) for stem in stems])] * killed),
        *([TableColumn("Bounced", [count(stem.bounced) for stem in stems])] * bounced),
        TableColumn("Time", [time(stem.seconds) for stem in stems]),
    )


def predicate_columns(rows: Sequence[NumberedPredicate], *, joins: bool) -> Columns:
    """Return what came to each predicate of a block, and what became of it."""
    records = [row.record for row in rows]
    seen = [count(each.rows_in) if each.rows_in else "never reached" for each in records]
    costs = [each.seconds_per_row for each in records]
    # In a join block a row may come more than once, and what is not TRUE is one thing.
    alone = not joins
    return (
        TableColumn("#", [row.number for row in rows]),
        TableColumn("Predicate", [row.text for row in rows], "code"),
        TableColumn("Tuples seen" if joins else "Rows seen", seen),
        *(
            [TableColumn("of all", [percent(row.record.rows_in, row.within) for row in rows])]
            * alone
        ),
        TableColumn("TRUE", [percent(each.passed, each.rows_in) for each in records]),
        *(
            [TableColumn("FALSE", [percent(each.rejected, each.rows_in) for each in records])]
            * alone
        ),
        *([TableColumn("NULL", [percent(each.null, each.rows_in) for each in records])] * alone),
        TableColumn("Errors", [_errors(row, joins=joins) for row in rows]),
        TableColumn(
            "A tuple" if joins else "A row",
            [NOTHING if cost is None else time(cost) for cost in costs],
        ),
        TableColumn("Time", [time(each.seconds) for each in records]),
    )


def _errors(row: NumberedPredicate, *, joins: bool) -> str:
    held, dropped = row.record.errors_held, row.record.errors_dropped
    told = held and not row.nested and not joins
    return f"{count(held)} ({count(dropped)} dropped)" if told else count(held)


def order_columns(labels: Sequence[str], line: Timeline) -> Columns:
    """Return the shares of the orders over the run."""
    total = sum(line.rows)
    bins = zip(line.edges[1:], zip(*line.shares, strict=True), strict=True)
    return (
        TableColumn("Order", [wording.order(order, labels) for order in line.orders], "words"),
        TableColumn("Rows", [count(rows) for rows in line.rows]),
        TableColumn("Share", [percent(rows, total) for rows in line.rows]),
        *(
            TableColumn(f"to {time(edge)}", [f"{share:.0%}" if share else "" for share in shares])
            for edge, shares in bins
        ),
    )


def change_columns(changes: Sequence[Change], line: Timeline) -> Columns:
    """Return the changes by the marks that they have in the picture of the orders."""
    return (
        TableColumn("Mark", [str(place) for place, _ in enumerate(changes, start=1)]),
        TableColumn("After", [time(line.busy.at(each.when)) for each in changes]),
        TableColumn("Predicate", [str(each.predicate + 1) for each in changes]),
        TableColumn("Of its", [str(each.quantity) for each in changes]),
        TableColumn("From", [wording.quantity(each.quantity, each.old) for each in changes]),
        TableColumn("To", [wording.quantity(each.quantity, each.new) for each in changes]),
    )


def function_columns(functions: Sequence[FunctionRecord]) -> Columns:
    """Return the calls of the user's functions that were made, and those that were avoided."""
    shares = [percent(each.avoided, each.calls_possible) for each in functions]
    remembering = any(each.remembered for each in functions)
    remembered = (
        TableColumn("Remembered rows", [count(each.remembered) for each in functions]),
        TableColumn("Distinct arguments", [count(each.distinct) for each in functions]),
        TableColumn("Memory", [size(each.memory_bytes) for each in functions]),
    )
    shared = (TableColumn("Shared rows", [count(each.shared) for each in functions]),)
    return (
        TableColumn("Function", [each.name for each in functions], "code"),
        TableColumn("Calls made", [count(each.calls) for each in functions]),
        TableColumn("Calls avoided", [count(each.avoided) for each in functions]),
        TableColumn("avoided", shares),
        TableColumn("Time", [time(each.seconds) for each in functions]),
        TableColumn(
            "Time spared",
            [f"≈ {time(each.seconds_spared)}" if each.calls else NOTHING for each in functions],
        ),
        *(remembered if remembering else ()),
        *(shared if any(each.shared for each in functions) else ()),
    )


def asked_columns(tables: Sequence[AskedTable]) -> Columns:
    """Return what lookup tables were asked for, by whichever source."""
    several = any(len(each.by_source) > 1 for each in tables)
    strange = any(each.unmatched for each in tables)
    return (
        TableColumn("Table", [each.name for each in tables], "code"),
        TableColumn("Keys", [count(each.keys) for each in tables]),
        TableColumn("Requests", [count(each.requests) for each in tables]),
        TableColumn("Failed", [count(each.failures) for each in tables]),
        *([TableColumn("Unmatched rows", [count(each.unmatched) for each in tables])] * strange),
        TableColumn("At a time", [count(each.at_a_time) for each in tables]),
        *([TableColumn("Keys by source", [each.shares for each in tables], "words")] * several),
    )


def called_columns(functions: Sequence[CalledFunction]) -> Columns:
    """Return what the driver has called for tasks, and what that has cost."""
    calls = [time(each.seconds / each.calls) if each.calls else NOTHING for each in functions]
    money = any(each.unit for each in functions)
    return (
        TableColumn("Function", [each.name for each in functions], "code"),
        TableColumn("Values", [count(each.values) for each in functions]),
        TableColumn("Calls", [count(each.calls) for each in functions]),
        TableColumn("Failed", [count(each.failures) for each in functions]),
        TableColumn("A call", calls),
        *([TableColumn("Spent", [each.money or NOTHING for each in functions])] * money),
    )
