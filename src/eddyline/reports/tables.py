"""The tables of a report: typed columns, and the rules which of them a table has.

A column stands here once for all faces of the report. How its figures are spelled and how it
looks is up to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeAlias

from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.reports.block_report import BlockReport, NumberedPredicate
from eddyline.reports.driver_records import AskedTable, CalledFunction, spent_in_all
from eddyline.reports.figures import Bytes, Count, Figure, Ratio, Reach, Seconds, Share
from eddyline.reports.records import Change, FunctionRecord, JoinRecord, TaskRecord
from eddyline.reports.wording import compacted, count, counted, one_line, size


class Room(IntEnum):
    """The room that there is for a table, or the least in which a column of it stands."""

    NARROW = 0
    """A narrow terminal."""
    WIDE = 1
    """A terminal of the usual width."""
    PAGE = 2
    """A page, which scrolls."""


ColumnKind: TypeAlias = Literal[
    "figures",  # at the right
    "label",  # at the left, short, never cut
    "code",  # at the left, one line, cut where it is too long
    "words",  # at the left, as long as it is
]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name and its cells, from top to bottom.

    It stands where there is ``room``. ``short`` is its name on a terminal, None where that is the
    same. ``meaning`` explains it where there is room for that.
    """

    name: str
    cells: tuple[Figure, ...]
    kind: ColumnKind = "figures"
    room: Room = Room.NARROW
    short: str | None = None
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class TableSection:
    """A table, by columns of one length: names first, then figures, the most important first.

    ``notes`` are sentences below it; ``in_words`` are further ones, for where the columns that
    say the same have no room.
    """

    heading: str
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()
    in_words: tuple[str, ...] = ()

    def standing(self, room: Room) -> tuple[Column, ...]:
        """Return the columns that there is room for."""
        return tuple(column for column in self.columns if column.room <= room)


def inputs_table(block: BlockReport, join: JoinRecord) -> TableSection:
    """Return the inputs of a join and what their SteMs did; rare events where there are any."""
    stems = join.stems
    labels = block.labels[-len(stems) :]
    columns = [] if labels == join.names else [Column("", labels, "label")]
    columns += [
        Column("Input", tuple(stem.relation for stem in stems), "code"),
        Column("Rows read", _counts(join.read), short="Rows"),
    ]
    if join.came != join.read:
        columns.append(
            Column(
                "Arrived",
                _counts(join.came),
                room=Room.WIDE,
                meaning="at a task that joins, without rows that a predicate dropped before, and "
                "once for each task that a row was copied to.",
            )
        )
    columns += [
        Column(
            "In SteM",
            _counts(stem.rows for stem in stems),
            meaning="rows in the task that held the most, with their size.",
        ),
        Column("Size", tuple(Bytes(stem.bytes) for stem in stems)),
        Column("Built", _counts(stem.builds for stem in stems), room=Room.WIDE),
        Column("Probes", _counts(stem.probes for stem in stems)),
        Column("Matches", _counts(stem.matches for stem in stems), room=Room.WIDE),
        Column("Per probe", tuple(Ratio(stem.fanout) for stem in stems)),
    ]
    if any(stem.killed for stem in stems):
        columns.append(
            Column(
                "Killed",
                _counts(stem.killed for stem in stems),
                room=Room.WIDE,
                meaning="built, and rejected by a predicate later.",
            )
        )
    if any(stem.bounced for stem in stems):
        bounced = _counts(stem.bounced for stem in stems)
        columns.append(Column("Bounced", bounced, room=Room.WIDE))
    columns.append(Column("Time", tuple(Seconds(stem.seconds) for stem in stems)))
    return TableSection("Inputs", tuple(columns))


def predicates_table(block: BlockReport, record: TaskRecord) -> TableSection:
    """Return what came to predicate predicate of a block, and what became of it."""
    rows = block.numbered()
    records = [row.record for row in rows]
    # In a join a row may come more than once, and whatever is not TRUE is one thing.
    joins = record.join is not None
    nulls = any(predicate.null for predicate in records)
    errors = any(predicate.errors_held for predicate in records)
    columns = [
        Column("#", tuple(row.number for row in rows), "label"),
        Column("Predicate", tuple(row.text for row in rows), "code"),
        Column(
            "Tuples seen" if joins else "Rows seen",
            tuple(_reach(row, joins=joins) for row in rows),
            short="Seen",
        ),
        Column("TRUE", tuple(Share(predicate.passed, predicate.rows_in) for predicate in records)),
    ]
    if not joins:
        false = tuple(Share(predicate.rejected, predicate.rows_in) for predicate in records)
        columns.append(Column("FALSE", false, room=Room.PAGE))
    if nulls:
        columns.append(
            Column("NULL", tuple(Share(predicate.null, predicate.rows_in) for predicate in records))
        )
    if errors:
        columns.append(Column("Errors", _counts(predicate.errors_held for predicate in records)))
    costs = tuple(
        None if predicate.seconds_per_row is None else Seconds(predicate.seconds_per_row)
        for predicate in records
    )
    columns += [
        Column("Per tuple" if joins else "Per row", costs),
        Column("Time", tuple(Seconds(predicate.seconds) for predicate in records)),
    ]
    notes = (_errors(record),) if errors and not joins else ()
    return TableSection("Predicates", tuple(columns), notes)


def _reach(row: NumberedPredicate, *, joins: bool) -> Reach:
    return Reach(row.record.rows_in, None if joins else row.within)


def _errors(record: TaskRecord) -> str:
    raised = sum(predicate.errors_held for predicate in record.predicates)
    dropped = sum(predicate.errors_dropped for predicate in record.predicates)
    return (
        f"{counted(raised, 'row')} raised an error, {count(dropped)} of them decided by "
        "another predicate"
    )


def functions_table(record: TaskRecord) -> TableSection:
    """Return the calls of the user's functions that were made, and those that were avoided."""
    functions = record.functions
    columns = [
        Column("Function", tuple(function.name for function in functions), "code"),
        Column("Calls made", _counts(function.calls for function in functions)),
        Column(
            "Calls avoided",
            _counts(function.avoided for function in functions),
            short="Avoided",
            meaning=_avoided_meaning(record),
        ),
        Column(
            "Share",
            tuple(Share(function.avoided, function.calls_possible) for function in functions),
            short="",
        ),
        Column("Time", tuple(Seconds(function.seconds) for function in functions), room=Room.PAGE),
        Column(
            "Time spared",
            tuple(
                Seconds(function.seconds_spared, about=True) if function.calls else None
                for function in functions
            ),
            short="Spared",
            meaning="the calls avoided, at the mean cost of the calls made.",
        ),
    ]
    if any(function.remembered for function in functions):
        columns += [
            Column(
                "From memory",
                _counts(function.remembered for function in functions),
                room=Room.PAGE,
                meaning="rows answered without a call.",
            ),
            Column(
                "Cached",
                _counts(function.distinct for function in functions),
                room=Room.PAGE,
                meaning="argument tuples in the process that held the most, with their size.",
            ),
            Column(
                "Size",
                tuple(Bytes(function.memory_bytes) for function in functions),
                room=Room.PAGE,
            ),
        ]
    if any(function.shared for function in functions):
        columns.append(
            Column(
                "Shared",
                _counts(function.shared for function in functions),
                room=Room.PAGE,
                meaning="rows answered by the call of another row.",
            )
        )
    return TableSection("User functions", tuple(columns), in_words=tuple(_without_calls(functions)))


def _avoided_meaning(record: TaskRecord) -> str:
    if record.join is None:
        return "compared with a fixed plan, which calls every function on every row."
    estimated = any(function.estimated for function in record.functions)
    return (
        "compared with a fixed plan, which calls functions over one input on each of its rows, "
        "and functions over several inputs on each joined row that none of these has rejected. "
    ) + (
        "How many joined rows that are is estimated from the shares that passed."
        if estimated
        else "How many joined rows that are is unknown here, so that none of their calls count as "
        "avoided."
    )


def _without_calls(functions: Sequence[FunctionRecord]) -> Iterator[str]:
    """Yield how many rows each function gave values for without a call, in sentences."""
    for function in functions:
        name = one_line(function.name)
        if function.remembered:
            rows = compacted(function.remembered, "row")
            cached = compacted(function.distinct, "argument tuple")
            memory = size(function.memory_bytes)
            yield f"{name}: {rows} answered from memory ({cached} cached, {memory})"
        if function.shared:
            yield f"{name}: {compacted(function.shared, 'row')} shared the call of another row"


def changes_table(
    heading: str, changes: Sequence[Change], after: tuple[Seconds, ...]
) -> TableSection:
    """Return changes by the marks that they have in a picture, ``after`` so much time at work."""
    return TableSection(
        heading,
        (
            Column("Mark", tuple(str(place + 1) for place in range(len(changes))), "label"),
            Column("After", after),
            Column("Predicate", tuple(str(change.predicate + 1) for change in changes)),
            Column("Quantity", tuple(str(change.quantity) for change in changes), "label"),
            Column("From", tuple(_quantity(change, change.old) for change in changes)),
            Column("To", tuple(_quantity(change, change.new) for change in changes)),
        ),
    )


def _quantity(change: Change, value: float) -> Figure:
    if change.quantity is ChangedQuantity.SELECTIVITY:
        return Share(value, 1.0)
    return Seconds(value)


def asked_table(tables: Sequence[AskedTable]) -> TableSection:
    """Return what lookup tables were asked for, by whichever source."""
    columns = [
        Column("Table", tuple(table.name for table in tables), "code"),
        Column("Keys", _counts(table.keys for table in tables)),
        Column("Requests", _counts(table.requests for table in tables)),
        Column("Failed", _counts(table.failures for table in tables)),
    ]
    if any(table.unmatched for table in tables):
        columns.append(Column("Unmatched rows", _counts(table.unmatched for table in tables)))
    columns.append(Column("At a time", _counts(table.at_a_time for table in tables)))
    if any(len(table.by_source) > 1 for table in tables):
        columns.append(
            Column("Keys by source", tuple(_by_source(table) for table in tables), "label")
        )
    return TableSection("Looked up at the driver", tuple(columns))


def _by_source(table: AskedTable) -> str | None:
    """Return the keys of each source, where there are several.

    >>> _by_source(AskedTable("zips", 5, 5, 0, 2, (("api", 3), ("database", 2))))
    'api 3, database 2'
    """
    if len(table.by_source) < 2:  # noqa: PLR2004 - several
        return None
    return ", ".join(f"{name} {count(keys)}" for name, keys in table.by_source)


def called_table(functions: Sequence[CalledFunction]) -> TableSection:
    """Return what the driver has called for tasks, and what that has cost."""
    columns = [
        Column("Function", tuple(function.name for function in functions), "code"),
        Column("Values", _counts(function.values for function in functions)),
        Column("Calls", _counts(function.calls for function in functions)),
    ]
    if any(function.failures for function in functions):
        columns.append(Column("Failed", _counts(function.failures for function in functions)))
    costs = tuple(
        Seconds(function.seconds / function.calls) if function.calls else None
        for function in functions
    )
    columns.append(Column("Per call", costs))
    if any(function.unit for function in functions):
        columns.append(Column("Spent", tuple(function.money or None for function in functions)))
    spent = spent_in_all(functions)
    notes = (f"Spent in all: {spent}",) if spent else ()
    return TableSection("Called at the driver", tuple(columns), notes)


def left_table(left: Sequence[tuple[str, str]]) -> TableSection:
    """Return what was left to Spark, and why."""
    return TableSection(
        "Left to Spark",
        (
            Column("What", tuple(what for what, _ in left), "code"),
            Column("Why", tuple(one_line(why) for _, why in left), "words"),
        ),
    )


def _counts(numbers: Iterable[int]) -> tuple[Count, ...]:
    return tuple(Count(number) for number in numbers)
