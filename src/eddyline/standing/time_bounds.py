"""Windows of stream joins: how far apart times are, and so for how long rows are stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from pyspark.sql.types import StructType

from eddyline.blocks.decline import not_understood
from eddyline.errors import NotShareableError
from eddyline.expressions import Expression
from eddyline.planner.read.chains import Tree
from eddyline.standing.engine.shared_query import NEVER, Absence, Presence, TimeBound
from eddyline.standing.engine.windows import farthest, kept_until_known, waits_for
from eddyline.standing.query_registry import WATERMARK
from eddyline.standing.query_template import QueryTemplate

_A_DAY: Final = 86_400_000_000
"""Microseconds. From a day on Spark counts by the calendar, so that summer time matters."""

_ALWAYS_ALIKE: Final = re.compile(r"Z|UTC|GMT|(Etc/)?(UTC|GMT|Universal|Zulu).*|[+-]\d\d?(:?\d\d)?")
"""Time zones without summer time, as far as their names say so."""

_OPERATORS: Final = frozenset(
    {"LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "EqualTo"}
)

_TIMES: Final = frozenset({"timestamp", "timestamp_ntz"})


@dataclass(frozen=True, slots=True)
class Sides:
    """What is known of the sides of a condition.

    ``place`` gives the input and the column of an attribute, ``named`` what it is a name for,
    ``is_event_time`` whether a column of an input says when an event happened.
    """

    place: Callable[[Tree], tuple[int, int] | None]
    named: Callable[[Tree], Tree]
    is_event_time: Callable[[int, int], bool]


@dataclass(frozen=True, slots=True)
class _Time:
    """The event time of an input, and microseconds more."""

    input: int
    more: int


def time_bound(tree: Tree, sides: Sides) -> TimeBound | None:
    """Return the window that a condition is about; None where it is about something else.

    DeclinedError for one that depends on the calendar.
    """
    if tree.name not in _OPERATORS:
        return None
    left, right = (sides.named(child) for child in tree.children)
    difference = _difference(left, right, sides)
    if difference is None:
        mirrored = _difference(right, left, sides)
        if mirrored is None:
            if not _of_two((left, right), sides):
                return None
            one, other = _time(left, sides), _time(right, sides)
            if one is None or other is None:
                return None
            # one + a <= other + b says that one - other <= b - a.
            return _bound(tree.name, one.input, other.input, other.more - one.more)
        late, early, most = mirrored
        return _bound(_MIRRORED[tree.name], late, early, most)
    late, early, most = difference
    return _bound(tree.name, late, early, most)


_MIRRORED: Final = {
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "EqualTo": "EqualTo",
}


def _bound(operator: str, late: int, early: int, apart: int) -> TimeBound:
    """Return the bound that ``late`` minus ``early`` compares so with ``apart`` microseconds."""
    match operator:
        case "LessThan":
            return TimeBound(early, late, greatest=apart - 1)
        case "LessThanOrEqual":
            return TimeBound(early, late, greatest=apart)
        case "GreaterThan":
            return TimeBound(early, late, least=apart + 1)
        case "GreaterThanOrEqual":
            return TimeBound(early, late, least=apart)
    return TimeBound(early, late, apart, apart)


def _difference(value: Tree, constant: Tree, sides: Sides) -> tuple[int, int, int] | None:
    """Return minuend, subtrahend and microseconds of ``t - s`` against a constant interval."""
    if value.name != "SubtractTimestamps" or constant.name != "Literal":
        return None
    if not _of_two(value.children, sides):
        return None
    minuend, subtrahend = (_time(child, sides) for child in value.children)
    if minuend is None or subtrahend is None:
        return None
    zone = str(value.node.fields.get("timeZoneId", ""))
    kind = str(sides.named(value.children[0]).node.fields.get("dataType", ""))
    if kind == "timestamp" and not _ALWAYS_ALIKE.fullmatch(zone):
        raise not_understood(
            f"a difference of times, which in {zone} depends on summer time; "
            "write t <= s + INTERVAL … instead of t - s <= INTERVAL …"
        )
    apart = _interval(constant) + subtrahend.more - minuend.more
    return minuend.input, subtrahend.input, apart


def _of_two(values: Sequence[Tree], sides: Sides) -> bool:
    """Tell whether two values are of one input each, and not of the same."""
    inputs = [
        {place[0] for part in _attributes(sides.named(tree), sides) if (place := sides.place(part))}
        for tree in values
    ]
    return all(len(numbers) == 1 for numbers in inputs) and inputs[0] != inputs[1]


def _attributes(tree: Tree, sides: Sides) -> Iterator[Tree]:
    if tree.name == "AttributeReference":
        named = sides.named(tree)
        yield from _attributes(named, sides) if named is not tree else (tree,)
    for child in tree.children:
        yield from _attributes(child, sides)


def _time(tree: Tree, sides: Sides) -> _Time | None:
    tree = sides.named(tree)
    place = sides.place(tree)
    if place is not None:
        if tree.node.fields.get("dataType") not in _TIMES:
            return None
        return _Time(_checked(tree, place, sides), 0)
    if tree.name not in {"TimestampAddInterval", "TimeAdd"} or len(tree.children) != 2:  # noqa: PLR2004 - start and interval
        return None
    start, interval = (sides.named(child) for child in tree.children)
    place = sides.place(start)
    if place is None or interval.name != "Literal":
        return None
    more = _interval(interval)
    zone = str(tree.node.fields.get("timeZoneId", ""))
    local = start.node.fields.get("dataType") == "timestamp_ntz"
    if abs(more) >= _A_DAY and not local and not _ALWAYS_ALIKE.fullmatch(zone):
        raise not_understood(
            f"an interval of a day or more, which in {zone} depends on summer time; "
            "set spark.sql.session.timeZone to UTC, or take TIMESTAMP_NTZ"
        )
    return _Time(_checked(start, place, sides), more)


def _checked(tree: Tree, place: tuple[int, int], sides: Sides) -> int:
    """Return the input of an event time; DeclinedError for a time that is none."""
    if not sides.is_event_time(*place):
        raise not_understood(
            f"a window on {tree.node.fields['name']}, which is no event time: windows are between "
            "the columns that the streams have watermarks on"
        )
    return place[0]


def event_time(schema: StructType) -> int | None:
    """Return the column of a stream that it has a watermark on; None where there is none."""
    for number, column in enumerate(schema.fields):
        if WATERMARK in column.metadata:
            return number
    return None


def no_farther_apart(keep: int | None, streams: Sequence[int]) -> list[TimeBound]:
    """Return bounds by which rows of several inputs meet only within ``keep`` microseconds.

    None and :data:`~eddyline.standing.engine.shared_query.NEVER` say nothing of them.
    """
    if keep is None or keep == NEVER:
        return []
    return [TimeBound(one, other, -keep, keep) for one, other in combinations(streams, 2)]


def absence_of(
    absent: int | None,
    streams: Sequence[int],
    bounds: Sequence[TimeBound],
    conditions: Sequence[Expression],
    *,
    found: bool,
) -> Absence | None:
    """Return what a query waits for, to be ``found`` or not.

    By the stream with which that is known the soonest.
    """
    if absent is None:
        return None
    waits = {
        stream: waits_for(bounds, frozenset(streams), stream, absent)
        for stream in streams
        if stream != absent
    }
    if not waits:
        raise not_understood(
            "EXISTS or IN about events, asked of rows of a table: ask about events of a stream"
        )
    anchor = min(waits, key=lambda stream: waits[stream])
    kind = Presence if found else Absence
    return kind(absent, anchor, min(waits[anchor], NEVER), conditions)


def check_bounded(template: QueryTemplate, schemas: Mapping[str, StructType]) -> None:
    """Raise NotShareableError where nothing says for how long rows of a query are stored.

    Its windows do, or ``keep``: then each stream needs an event time.
    """
    streams = {n: name for n, name in enumerate(template.inputs) if name not in template.tables}
    timeless = [name for name in streams.values() if event_time(schemas[name]) is None]
    if template.keep is not None:
        if len(streams) == 1:
            raise NotShareableError(
                f"a query that joins no streams stores no rows to keep: {template.sql}"
            )
        if template.keep < NEVER and timeless:
            raise NotShareableError(
                f"keep= is about event times, and {timeless[0]} has no watermark: {template.sql}"
            )
        return
    absence, bounds = template.query.absence, template.query.bounds
    widest = farthest(bounds, frozenset(streams))
    if absence is not None:
        widest = kept_until_known(bounds, frozenset(streams), absence.anchor, absence.waits)
    endless = [streams[number] for number, most in widest.items() if most >= NEVER]
    if not endless:
        return
    remedy = "give the query a window between the event times of its streams, as"
    if timeless:
        remedy = f"make {timeless[0]} with withWatermark(time, delay), and {remedy}"
    raise NotShareableError(
        f"rows of {endless[0]} would be stored for ever, since rows of any later time may meet "
        f"them: {remedy} AND b.time BETWEEN a.time - INTERVAL 1 HOUR AND a.time + INTERVAL 1 "
        "HOUR; or add it with keep='1 hour', by which rows meet whose event times are no farther "
        f"apart; or with keep='forever', if the stream is finite: {template.sql}"
    )


def _check_absence(template: QueryTemplate, look_back: int | None, *, samples: bool) -> None:
    """Raise NotShareableError where what a query must not find may have been lost."""
    if samples:
        raise NotShareableError(
            "with on_overload='sample' an event that was dropped would look as if it had not come; "
            f"NOT FOLLOWED BY needs on_overload='block': {template.sql}"
        )
    if look_back is not None:
        raise NotShareableError(
            "NOT FOLLOWED BY, EXISTS and IN about events take no backfill, as what followed may "
            "not be stored any more: "
            f"{template.sql}"
        )


def check_whole(template: QueryTemplate, look_back: int | None, *, samples: bool) -> None:
    """Raise NotShareableError where events are missing that a query has to see all of."""
    if template.query.absence is not None:
        _check_absence(template, look_back, samples=samples)
    if template.aggregated is None or not template.aggregated.in_sessions:
        return
    if samples:
        raise NotShareableError(
            "with on_overload='sample' a session would be two where events between were dropped: "
            f"sessions need on_overload='block', or group by window(time, …): {template.sql}"
        )
    if look_back is not None:
        raise NotShareableError(
            "sessions take no backfill, as no part of the old events ends where none of them is "
            "cut: leave it out, and ask a batch query for old sessions; or group by "
            f"window(time, …): {template.sql}"
        )


def _interval(tree: Tree) -> int:
    """Return the microseconds of a constant interval; DeclinedError for one of months."""
    kind = str(tree.node.fields.get("dataType", ""))
    value = tree.node.fields.get("value")
    months = "month" in kind or "year" in kind or kind == "interval" or value is None
    if months or not kind.startswith("interval"):
        raise not_understood(f"a window of the type {kind}; it takes days, hours, minutes, seconds")
    return int(str(value))
