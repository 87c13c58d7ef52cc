"""Which inputs of a region are related by what: the edges of its join graph, as Spark has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from eddyline.catalyst import CatalystExpression
from eddyline.planner.claim.join_terms import Inputs
from eddyline.planner.read.chains import FilterLink, Tree
from eddyline.planner.read.definitions import Definitions
from eddyline.planner.read.regions import Region

_EQUALITIES: Final = frozenset({"EqualTo", "EqualNullSafe"})


@dataclass(frozen=True)
class KeyEquality:
    """An equality of two inputs: the value of each, by its number; NULL equals NULL or nothing."""

    sides: dict[int, CatalystExpression]
    null_safe: bool


@dataclass(frozen=True)
class Edge:
    """All that relates two inputs: their conditions, and which of these are equalities."""

    inputs: frozenset[int]
    conditions: tuple[CatalystExpression, ...]
    keys: tuple[KeyEquality, ...]

    def other(self, number: int) -> int:
        """Return the input at the other end."""
        (other,) = self.inputs - {number}
        return other


@dataclass(frozen=True)
class JoinEdges:
    """The edges of a region; ``exhaustive`` if nothing else relates its inputs natively."""

    edges: tuple[Edge, ...]
    exhaustive: bool
    definitions: Definitions = field(repr=False)

    def of(self, number: int) -> tuple[Edge, ...]:
        """Return the edges of an input that have a key."""
        return tuple(edge for edge in self.edges if number in edge.inputs and edge.keys)


def join_edges(region: Region) -> JoinEdges:
    """Read the edges of a region; conditions with functions are none.

    A condition that may raise an error is left alone, too: in the query it is computed for rows
    that others have passed. It grows with the conjuncts of the region.
    """
    definitions = Definitions({})
    inputs = Inputs(region, definitions)
    conditions: dict[frozenset[int], list[CatalystExpression]] = {}
    keys: dict[frozenset[int], list[KeyEquality]] = {}
    exhaustive = True
    for link in region.links:
        if not isinstance(link, FilterLink):
            definitions.define(link, guarded=True)
            continue
        for conjunct in link.conjuncts:
            mask = inputs.mask(conjunct)
            if definitions.is_dependent(conjunct) or mask.bit_count() <= 1:
                continue
            if mask.bit_count() != 2 or definitions.may_throw(conjunct):  # noqa: PLR2004 - a pair
                exhaustive = False
                continue
            pair = frozenset(n for n in range(mask.bit_length()) if mask >> n & 1)
            conditions.setdefault(pair, []).append(definitions.over_base(conjunct))
            if (key := _key(conjunct, inputs, definitions)) is not None:
                keys.setdefault(pair, []).append(key)
    edges = (
        Edge(pair, tuple(conjuncts), tuple(keys.get(pair, ())))
        for pair, conjuncts in conditions.items()
    )
    return JoinEdges(tuple(edges), exhaustive, definitions)


def _key(conjunct: Tree, inputs: Inputs, definitions: Definitions) -> KeyEquality | None:
    """Return an equality of two inputs, None where a condition is none."""
    if conjunct.name not in _EQUALITIES:
        return None
    masks = [inputs.mask(child) for child in conjunct.children]
    if any(mask.bit_count() != 1 for mask in masks) or masks[0] == masks[1]:
        return None
    sides = {
        mask.bit_length() - 1: definitions.over_base(child)
        for mask, child in zip(masks, conjunct.children, strict=True)
    }
    return KeyEquality(sides, conjunct.name == "EqualNullSafe")
