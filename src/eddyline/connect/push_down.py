"""Whether Spark would push all conditions of a run to the same place, or each to its own.

A condition goes below a join where all that it looks at comes from one side, and below a window or
an ``explode`` where it looks at nothing that these make. One that looks at both sides of an inner
join Spark may make part of the join, but takes functions out again. A block of several conditions
can only go where all of them go: conditions with different ways go into blocks of their own, and
what a client cannot see through (views, text of SQL) is left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeAlias

from pyspark.sql.connect import proto

from eddyline.connect.messages import (
    Expression,
    Relation,
    everything,
    own_messages,
    relations_in,
)

Way: TypeAlias = tuple[str, ...]
"""Where a condition goes, step by step; the empty one stays where it is."""

Resolves: TypeAlias = Callable[[Relation], bool]
"""Whether all that a condition looks at is there in a relation."""

Sides: TypeAlias = Callable[[Relation], frozenset[str] | None]
"""Which sides of a join a condition looks at; None where that is not certain."""

LEFT, RIGHT = "left", "right"

BOTH: Final = frozenset({LEFT, RIGHT})

Parts: TypeAlias = Callable[[Relation], bool]
"""Whether the server says of a leaf that it has something in it by which conditions part."""

_JOINS: Final = frozenset({"join", "as_of_join", "lateral_join", "nearest_by_join", "zip"})
_KEEPS_ALL_ABOVE: Final = frozenset({"limit", "offset", "tail", "sample"})
_OPAQUE: Final = frozenset({"catalog", "extension", "ml_relation", "read", "sql", "unknown"})
GENERATORS: Final = frozenset(
    {
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
        "stack",
    }
)
"""Functions that make several rows of one."""


_INNER: Final = frozenset(
    {proto.Join.JoinType.JOIN_TYPE_INNER, proto.Join.JoinType.JOIN_TYPE_CROSS}
)


def way_of(below: Relation, sides_of: Sides, resolves: Resolves, parts: Parts) -> Way | None:
    """Return the way of a condition over a relation; None where a client cannot tell."""
    way: list[str] = []
    while True:
        kind = str(below.WhichOneof("rel_type"))
        inputs = list(relations_in(below))
        if kind in _OPAQUE:
            return None if parts(below) else tuple(way)
        if kind in _KEEPS_ALL_ABOVE or not inputs:
            return tuple(way)
        if kind in _JOINS:
            found = _found(below, sides_of, resolves)
            if len(found) != 1:
                return tuple(way) if below.join.join_type in _INNER and found == BOTH else None
            (side,) = found
            way.append(side)
            below = inputs[0] if side == LEFT else inputs[1]
            continue
        if len(inputs) > 1:  # a union, whose inputs all get it, and what nobody has thought of
            alike = {way_of(one, sides_of, resolves, parts) for one in inputs}
            return tuple(way) if alike == {()} else None
        if kind == "aggregate" or _makes_its_own(below):
            if not resolves(inputs[0]):
                return tuple(way)
            way.append(kind)
        below = inputs[0]


def _found(join: Relation, sides_of: Sides, resolves: Resolves) -> frozenset[str]:
    """Return the sides of a join that a condition looks at, and none where that is not certain."""
    found = sides_of(join) if join.HasField("join") else None
    if found is None:
        left, right = list(relations_in(join))[:2]
        found = frozenset(side for side, one in ((LEFT, left), (RIGHT, right)) if resolves(one))
        found = found if len(found) == 1 else frozenset()
    return found


def sides_looked_at(
    columns: Iterable[Expression], join: Relation, names_of: Callable[[Relation], Collection[str]]
) -> frozenset[str] | None:
    """Return from which sides of a join columns come; None where that is not certain of one.

    It is where a relation of that number is, or else where a column has this name.
    """
    sides = {LEFT: join.join.left, RIGHT: join.join.right}
    numbers = {side: _numbers_in(relation) for side, relation in sides.items()}
    found: set[str] = set()
    for column in columns:
        looked_at = column.unresolved_attribute
        number, name = looked_at.plan_id, looked_at.unparsed_identifier.lower()
        there = {
            side for side in sides if looked_at.HasField("plan_id") and number in numbers[side]
        }
        if not there and name.isidentifier():
            named = {side: {one.lower() for one in names_of(sides[side])} for side in sides}
            there = {side for side in sides if name in named[side]}
        if len(there) != 1:
            return None
        found |= there
    return frozenset(found) or None


def _numbers_in(relation: Relation) -> set[int]:
    return {one.common.plan_id for one in everything(relation) if isinstance(one, Relation)}


def _makes_its_own(relation: Relation) -> bool:
    """Whether a relation has columns below whose making a condition may go, or not."""
    for message in own_messages(relation):
        if not isinstance(message, Expression):
            continue
        kind = message.WhichOneof("expr_type")
        name = message.unresolved_function.function_name if kind == "unresolved_function" else ""
        if kind in {"window", "expression_string"} or name.lower() in GENERATORS:
            return True
    return False


def by_way(ways: Mapping[int, Way | None]) -> dict[Way, list[int]]:
    """Return the conditions that go the same way, by their numbers; without those of no known way.

    >>> by_way({0: ("left",), 1: None, 2: ("left",), 3: ()})
    {('left',): [0, 2], (): [3]}
    """
    groups: dict[Way, list[int]] = {}
    for number, way in ways.items():
        if way is not None:
            groups.setdefault(way, []).append(number)
    return groups
