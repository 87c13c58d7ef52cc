"""The tables of a report: typed columns, and the rules for which of them a table has.

A column stands here once for all faces of the report. They decide how its figures are spelled and
how it looks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal, TypeAlias

from eddyline.cascades.calibration import Calibration
from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.reports.block_report import BlockReport, MeasuredInput
from eddyline.reports.driver_records import AskedTable, CalledFunction, spent_in_all
from eddyline.reports.figures import Bytes, Count, Figure, Ratio, Reach, Seconds, Share
from eddyline.reports.records import Change, FunctionRecord, JoinRecord, TaskRecord
from eddyline.reports.wording import brief_count, count, counted, one_line, size

_REFUSED: Final = "Refused for quota: asked for again, and not counted as calls."

_WAITED: Final = "How long nobody was let through, since a quota was spent."


class Room(IntEnum):
    """The room for a table, or the least room in which a column of it appears."""

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

    It appears where there is ``room``; a ``rare`` one only if it has something to show. ``short``
    is its name on a terminal, None where that is the same. ``meaning`` explains it in a page.
    """

    name: str
    cells: tuple[Figure, ...]
    kind: ColumnKind = "figures"
    room: Room = Room.NARROW
    short: str | None = None
    meaning: str = ""
    rare: bool = False

    def stands(self, room: Room) -> bool:
        """Whether it has room and content."""
        return self.room <= room and (not self.rare or any(map(_tells, self.cells)))


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
        """Return the columns that appear in so much room."""
        return tuple(column for column in self.columns if column.stands(room))


def inputs_table(block: BlockReport, join: JoinRecord) -> TableSection:
    """Return the inputs of a join and what their SteMs did."""
    stems = join.stems
    labels = block.labels[-len(stems) :]
    arrived = Column(
        "Arrived",
        _counts(join.came),
        room=Room.WIDE,
        meaning="at a task that joins, without rows that a predicate dropped before, and once for "
        "each task that a row was copied to.",
    )
    killed = "built, and rejected by a predicate later."
    held = "rows in the task that held the most, with their size."
    columns = (
        *([Column("", labels, "label")] * (labels != join.names)),
        Column("Input", tuple(stem.relation for stem in stems), "code"),
        Column("Rows read", _counts(join.read), short="Rows"),
        *([arrived] * (join.came != join.read)),
        Column("In SteM", _counts(stem.rows for stem in stems), meaning=held),
        Column("Size", tuple(Bytes(stem.bytes) for stem in stems)),
        Column("Built", _counts(stem.builds for stem in stems), room=Room.WIDE),
        Column("Probes", _counts(stem.probes for stem in stems)),
        Column("Matches", _counts(stem.matches for stem in stems), room=Room.WIDE),
        Column("Per probe", tuple(Ratio(stem.fanout) for stem in stems)),
        _rare("Killed", (stem.killed for stem in stems), Room.WIDE, killed),
        _rare("Bounced", (stem.bounced for stem in stems), Room.WIDE),
        Column("Time", tuple(Seconds(stem.seconds) for stem in stems)),
    )
    return TableSection("Inputs", columns)


def measured_table(inputs: Sequence[MeasuredInput]) -> TableSection:
    """Return the inputs that waited until the rows left for them had been measured."""
    rows = tuple(None if one.rows is None else Count(one.rows) for one in inputs)
    waited = tuple(None if one.seconds is None else Seconds(one.seconds) for one in inputs)
    columns = (
        Column("Input", tuple(one.input for one in inputs), "code"),
        Column("Rows left for it", rows, short="Rows left"),
        Column("Size", tuple(Bytes(one.bytes) for one in inputs), meaning="of these, in memory."),
        Column("Joined", tuple(str(one.joined) for one in inputs), "label"),
        Column(
            "Waited", waited, meaning="from the beginning of the action, until these were there."
        ),
    )
    return TableSection("Read when rows had been measured", columns)


def predicates_table(block: BlockReport, record: TaskRecord) -> TableSection:
    """Return what came to each predicate of a block, and the outcome."""
    rows = block.numbered()
    records = [row.record for row in rows]
    # In a join a row may come more than once, and all that is not TRUE counts as one.
    joins = record.join is not None
    seen = tuple(Reach(row.record.rows_in, None if joins else row.within) for row in rows)
    rejected = _shares((predicate.rejected, predicate.rows_in) for predicate in records)
    nulls = _shares((predicate.null, predicate.rows_in) for predicate in records)
    columns = (
        Column("#", tuple(row.number for row in rows), "label"),
        Column("Predicate", tuple(row.text for row in rows), "code"),
        Column("Tuples seen" if joins else "Rows seen", seen, short="Seen"),
        Column("TRUE", _shares((predicate.passed, predicate.rows_in) for predicate in records)),
        *([Column("FALSE", rejected, room=Room.PAGE)] * (not joins)),
        Column("NULL", nulls, rare=True),
        _rare("Errors", (predicate.errors_held for predicate in records)),
        Column(
            "Per tuple" if joins else "Per row",
            _costs((predicate.seconds, predicate.rows_in) for predicate in records),
        ),
        Column("Time", tuple(Seconds(predicate.seconds) for predicate in records)),
    )
    return TableSection("Predicates", columns, () if joins else tuple(_errors(record)))


def _errors(record: TaskRecord) -> Iterator[str]:
    raised = sum(predicate.errors_held for predicate in record.predicates)
    dropped = sum(predicate.errors_dropped for predicate in record.predicates)
    if raised:
        decided = f"{count(dropped)} of them decided by another predicate"
        yield f"{counted(raised, 'row')} raised an error, {decided}"


def functions_table(record: TaskRecord) -> TableSection:
    """Return the calls of the user's functions that were made, and those that were avoided."""
    functions = record.functions
    avoided = _counts(function.avoided for function in functions)
    spared = tuple(
        Seconds(function.seconds_spared, about=True) if function.calls else None
        for function in functions
    )
    columns = (
        Column("Function", tuple(function.name for function in functions), "code"),
        Column("Calls made", _counts(function.calls for function in functions)),
        Column("Calls avoided", avoided, short="Avoided", meaning=_avoided_meaning(record)),
        Column(
            "Share",
            _shares((function.avoided, function.calls_possible) for function in functions),
            short="",
        ),
        Column("Time", tuple(Seconds(function.seconds) for function in functions), room=Room.PAGE),
        Column(
            "Time spared",
            spared,
            short="Spared",
            meaning="the calls avoided, at the mean cost of the calls made.",
        ),
        _rare(
            "From memory",
            (function.remembered for function in functions),
            Room.PAGE,
            "rows answered without a call.",
        ),
        _rare(
            "Cached",
            (function.distinct if function.remembered else 0 for function in functions),
            Room.PAGE,
            "argument tuples in the process that held the most, with their size.",
        ),
        Column(
            "Size",
            tuple(
                Bytes(function.memory_bytes if function.remembered else 0) for function in functions
            ),
            room=Room.PAGE,
            rare=True,
        ),
        _rare(
            "Shared",
            (function.shared for function in functions),
            Room.PAGE,
            "rows answered by the call of another row.",
        ),
    )
    return TableSection("User functions", columns, in_words=tuple(_without_calls(functions)))


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
            rows = brief_count(function.remembered, "row")
            cached = brief_count(function.distinct, "argument tuple")
            memory = size(function.memory_bytes)
            yield f"{name}: {rows} answered from memory ({cached} cached, {memory})"
        if function.shared:
            yield f"{name}: {brief_count(function.shared, 'row')} shared the call of another row"


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
    """Return what lookup tables were asked for, over all sources."""
    columns = (
        Column("Table", tuple(table.name for table in tables), "code"),
        Column("Keys", _counts(table.keys for table in tables)),
        Column("Requests", _counts(table.requests for table in tables)),
        Column("Failed", _counts(table.failures for table in tables)),
        _rare("Kept", (table.kept for table in tables)),
        _rare("Refused", (table.refusals for table in tables), meaning=_REFUSED),
        _waited(table.waited for table in tables),
        _rare("Unmatched rows", (table.unmatched for table in tables)),
        Column("At a time", _counts(table.at_a_time for table in tables)),
        Column("Spent", tuple(table.money or None for table in tables), rare=True),
        Column("Keys by source", tuple(map(_by_source, tables)), "label", rare=True),
    )
    notes = tuple(f"{table.name} was {table.choice}." for table in tables if table.choice)
    return TableSection("Looked up at the driver", columns, notes)


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
    columns = (
        Column("Function", tuple(function.name for function in functions), "code"),
        Column("Values", _counts(function.values for function in functions)),
        _rare("Kept", (function.kept for function in functions)),
        Column("Calls", _counts(function.calls for function in functions)),
        _rare("Failed", (function.failures for function in functions)),
        _rare("Refused", (function.refusals for function in functions), meaning=_REFUSED),
        _waited(function.waited for function in functions),
        Column("Per call", _costs((function.seconds, function.calls) for function in functions)),
        _rare("Tokens", (round(function.tokens) for function in functions)),
        Column("Spent", tuple(function.money or None for function in functions), rare=True),
        Column("Saved", tuple(function.money_saved or None for function in functions), rare=True),
    )
    spent = spent_in_all(functions)
    notes = (f"Spent in all: {spent}",) if spent else ()
    return TableSection("Called at the driver", columns, notes)


def cascades_table(cascades: Sequence[Calibration]) -> TableSection:
    """Return the thresholds of cascades, and what they rest on."""
    cuts = [cascade.thresholds for cascade in cascades]
    columns = (
        Column("Cascade", tuple(cascade.name for cascade in cascades), "code"),
        Column("Target", tuple(str(cascade.targets) for cascade in cascades), "words", Room.PAGE),
        Column("Labels", _counts(cascade.labels for cascade in cascades)),
        Column("Accepted", _counts(cascade.accepted for cascade in cascades)),
        Column("Dropped below", tuple(_cut(cut.low) for cut in cuts), rare=True),
        Column(
            "Accepted above", tuple(_cut(cut.high, all_at=-math.inf) for cut in cuts), rare=True
        ),
        Column(
            "By proxy",
            _shares((cascade.spared * cascade.labels, cascade.labels) for cascade in cascades),
            meaning="the share of the labelled rows that the thresholds decide",
        ),
    )
    return TableSection("Cascades", columns)


def _cut(score: float, all_at: float = math.inf) -> str | None:
    """Return a threshold; None where it cuts nothing off. ``all_at`` it cuts off everything."""
    if math.isinf(score):
        return "any" if score == all_at else None
    return f"{score:.6g}"


def left_table(left: Sequence[tuple[str, str]]) -> TableSection:
    """Return what was left to Spark, and why."""
    parts = Column("What", tuple(what for what, _ in left), "code")
    reasons = Column("Why", tuple(one_line(why) for _, why in left), "words")
    return TableSection("Left to Spark", (parts, reasons))


def _tells(figure: Figure) -> bool:
    match figure:
        case None | Count(0) | Bytes(0) | Share(0):
            return False
    return True


def _counts(numbers: Iterable[int]) -> tuple[Count, ...]:
    return tuple(map(Count, numbers))


def _shares(shares: Iterable[tuple[float, float]]) -> tuple[Share, ...]:
    return tuple(Share(part, whole) for part, whole in shares)


def _costs(costs: Iterable[tuple[float, int]]) -> tuple[Seconds | None, ...]:
    return tuple(Seconds(seconds / number) if number else None for seconds, number in costs)


def _waited(seconds: Iterable[float]) -> Column:
    """Return a column of times in which calls waited for quota, if they did."""
    waits = tuple(Seconds(wait) if wait else None for wait in seconds)
    return Column("Waited", waits, meaning=_WAITED, rare=True)


def _rare(name: str, numbers: Iterable[int], room: Room = Room.NARROW, meaning: str = "") -> Column:
    """Return a column of counts that appears if there are any."""
    return Column(name, _counts(numbers), room=room, meaning=meaning, rare=True)
