"""The nodes of a plan that aggregate in windows of time, as Spark's analyzer makes them.

``window(time, size, slide)`` becomes a struct of arithmetic over the time, in a ``Project`` below
the ``Aggregate``, or, where windows overlap, in an ``Expand`` with a projection for each window
that a row may be in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple

from eddyline import catalyst
from eddyline.blocks.decline import not_understood
from eddyline.catalyst import Plan
from eddyline.planner.read.chains import Link, ProjectLink, Tree, read_link
from eddyline.standing.engine.aggregation.time_window import SessionWindow, TimeWindow

_IN_WINDOW: Final = {"GreaterThanOrEqual": "start", "LessThan": "end"}


@dataclass(frozen=True)
class AggregateNodes:
    """An ``Aggregate``, and the links of the chain over it from the bottom up."""

    aggregate: Plan
    above: tuple[Link, ...]

    @property
    def below(self) -> Plan:
        """What is aggregated."""
        return catalyst.children(self.aggregate)[0]


class Windowed(NamedTuple):
    """Windows or sessions, and the attribute that gives their time."""

    window: TimeWindow | SessionWindow
    time: Tree


def aggregate_in(plan: Plan) -> AggregateNodes | None:
    """Return the aggregate that a plan is made of; None where it has none, or not on top."""
    above: list[Link] = []
    while catalyst.class_name(plan).rpartition(".")[2] != "Aggregate":
        link, deterministic = read_link(plan)
        if link is None or not deterministic:
            return None
        above.append(link)
        plan = catalyst.children(plan)[0]
    return AggregateNodes(plan, tuple(reversed(above)))


def sliding_windows(plan: Plan) -> ProjectLink:
    """Return what an ``Expand`` defines, with the first of its windows for all of them.

    DeclinedError for one that makes groups of several kinds.
    """
    items = [
        Tree.of(catalyst.attribute_like(output, value))
        for output, value in catalyst.expanded(plan)
        if catalyst.identity_number(output) != _number_of(Tree.of(value))
    ]
    if len(items) != 1 or items[0].children[0].name != "CreateNamedStruct":
        raise not_understood(
            "ROLLUP, CUBE and GROUPING SETS: add a query for each of their groupings"
        )
    return ProjectLink(plan, tuple(items))


def windowed(tree: Tree, zone: str) -> Windowed | None:
    """Return the windows that a value is in; None where it is none.

    Its struct has the start, ``time - (time - first) % slide - several slides``, and the end,
    which is later by the size. For a session these are the time, and what is later by the gap.
    DeclinedError for a computed time, and for a gap that is not always as long.
    """
    if tree.name != "CreateNamedStruct" or len(tree.children) != 4:  # noqa: PLR2004 - start and end
        return None
    _, start, _, end = tree.children
    if not any(node.name == "PreciseTimestampConversion" for node in _nodes(tree)):
        return None
    time = next((node for node in _nodes(start) if node.name == "AttributeReference"), None)
    if time is None or time.parent is None or time.parent.name != "PreciseTimestampConversion":
        raise not_understood(
            "windows of a computed time: write window(time, …) of the event time itself, or make "
            "what is computed a column with a watermark"
        )
    remainder = next((node for node in _nodes(start) if node.name == "Remainder"), None)
    if remainder is None:
        return Windowed(SessionWindow(_gap(end, time, zone)), time)
    since, slide = remainder.children
    plus = next(node for node in _nodes(end) if node.name == "Add")
    first = since.children[1] if since.name == "Subtract" else None
    window = TimeWindow(
        _number(plus.children[1]), _number(slide), 0 if first is None else _number(first)
    )
    return Windowed(window, time)


def _gap(end: Tree, time: Tree, zone: str) -> int:
    """Return the gap of a session in microseconds, which its end is later by than its time."""
    later = (node.children for node in _nodes(end) if len(node.children) == 2)  # noqa: PLR2004
    gap = next((gap for of, gap in later if _is_attribute(of, time)), None)
    if gap is not None and gap.name != "Literal":
        raise not_understood(
            "a session with a gap that differs from row to row: write a constant, as in "
            "session_window(time, '5 minutes'), and a query for each gap with its rows in WHERE"
        )
    length = 0 if gap is None else _microseconds(str(gap.node.fields.get("value")), zone)
    if length <= 0:
        raise not_understood(
            "a session with a gap that is not always as long, or none: write one of seconds, "
            "minutes or hours, as in session_window(time, '24 hours')"
        )
    return length


def _microseconds(interval: str, zone: str) -> int:
    """Return how long an interval is in Spark's words, 0 for one that is not always as long.

    >>> _microseconds("1 hours -30 minutes 1.5 seconds", "Europe/Paris")
    1801500000
    >>> _microseconds("1 days", "Europe/Paris"), _microseconds("1 days", "UTC")
    (0, 86400000000)
    """
    words = interval.split()
    units = _LENGTHS | ({"days": _DAY} if _WITHOUT_OFFSET.fullmatch(zone) else {})
    if len(words) % 2 or not units.keys() >= set(words[1::2]):
        return 0
    numbers = zip(words[::2], words[1::2], strict=True)
    return int(sum(Decimal(number) * units[unit] for number, unit in numbers))


def _is_attribute(tree: Tree, other: Tree) -> bool:
    return tree.name == "AttributeReference" and tree.identity == other.identity


def truncated(tree: Tree, zone: str) -> Windowed | None:
    """Return the windows that a truncated time is in; None where it is something else.

    ``date_trunc('hour', time)`` is where a window begins, in a time zone without an offset: its
    days and hours are those of windows, which are counted in UTC.
    """
    if not _WITHOUT_OFFSET.fullmatch(zone):
        return None
    size = _DAY
    if tree.name == "TruncTimestamp" and tree.children[0].name == "Literal":
        unit = str(tree.children[0].node.fields.get("value")).upper()
        size, time = _UNITS.get(unit, 0), tree.children[1]
    elif tree.name == "Cast" and tree.node.fields.get("dataType") == "date":
        time = tree.children[0]
    else:
        return None
    of_time = time.name == "AttributeReference" and time.node.fields["dataType"] == "timestamp"
    return Windowed(TimeWindow(size, size), time) if size and of_time else None


_DAY: Final = 86_400_000_000

_UNITS: Final = {
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": _DAY,
    "DD": _DAY,
}
"""Microseconds of the units that are always as long."""

_LENGTHS: Final = {"seconds": 1_000_000, "minutes": 60_000_000, "hours": 3_600_000_000}
"""Microseconds of what Spark says intervals in, beside days, weeks, months and years."""

_WITHOUT_OFFSET: Final = re.compile(r"Z|(Etc/)?(UTC|GMT|Universal|Zulu)", re.IGNORECASE)


def is_in_window(tree: Tree, named: Callable[[Tree], Tree], zone: str) -> bool:
    """Tell whether a condition says no more than that a time is in its window.

    Spark sets it above an ``Expand`` whose projections are not all windows of every row.
    """
    if tree.name == "IsNotNull":
        return _field_of_window(tree.children[0], named, zone) is not None
    if tree.name not in _IN_WINDOW:
        return False
    time, bound = tree.children
    window = _field_of_window(bound, named, zone)
    if window is None or time.name != "AttributeReference":
        return False
    which = ("start", "end")[int(str(bound.node.fields["ordinal"]))]
    return which == _IN_WINDOW[tree.name] and time.identity == window.time.identity


def _field_of_window(tree: Tree, named: Callable[[Tree], Tree], zone: str) -> Windowed | None:
    return windowed(named(tree.children[0]), zone) if tree.name == "GetStructField" else None


def _nodes(tree: Tree) -> Iterator[Tree]:
    yield tree
    for child in tree.children:
        yield from _nodes(child)


def _number(literal: Tree) -> int:
    return int(str(literal.node.fields["value"]))


def _number_of(tree: Tree) -> int | None:
    return tree.identity[0] if tree.name == "AttributeReference" else None
