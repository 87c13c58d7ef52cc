"""Whether Spark would push all conditions of a run to the same place, or each to its own.

A condition goes below a join where all that it looks at comes from one side, and below a window or
an ``explode`` where it looks at nothing that these make. A block of several conditions can only go
where all of them go: conditions with different ways go into blocks of their own, and what a client
cannot see through (views, text of SQL) is left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from eddyline.connect.messages import Expression, Relation, own_messages, relations_in

Way: TypeAlias = tuple[str, ...]
"""Where a condition goes, step by step; the empty one stays where it is."""

Resolves: TypeAlias = Callable[[Relation], bool]
"""Whether all that a condition looks at is there in a relation."""

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


def way_of(below: Relation, resolves: Resolves, parts: Parts) -> Way | None:
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
            sides = {"left": inputs[0], "right": inputs[1]}
            found = [side for side, relation in sides.items() if resolves(relation)]
            if len(found) != 1:
                return None
            way.append(found[0])
            below = sides[found[0]]
            continue
        if len(inputs) > 1:  # a union, whose inputs all get it, and what nobody has thought of
            alike = {way_of(one, resolves, parts) for one in inputs}
            return tuple(way) if alike == {()} else None
        if kind == "aggregate" or _makes_its_own(below):
            if not resolves(inputs[0]):
                return tuple(way)
            way.append(kind)
        below = inputs[0]


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
