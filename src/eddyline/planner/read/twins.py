"""Sides of joins that stand in a plan twice, as does a query named by WITH that is used twice.

Shuffled or broadcast, Spark computes such a side once, for all places. It does so as long as both
are the same to the last node: what is done with the functions of one has to be done with those of
the other, though more is known of one place than of the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from eddyline import catalyst
from eddyline.catalyst import Plan
from eddyline.planner.read.chains import ExpressionId, Tree


@dataclass(frozen=True, slots=True)
class Twin:
    """A side of a join that calls functions and stands in the plan once more."""

    join: Plan
    side: Plan


@dataclass(frozen=True, slots=True)
class Twins:
    """The pairs of sides of a plan that give the same rows."""

    pairs: tuple[tuple[Twin, Twin], ...]

    @property
    def joins(self) -> frozenset[Plan]:
        """The joins that they are sides of: an eddy that joins would read each side again."""
        return frozenset(twin.join for pair in self.pairs for twin in pair)

    @property
    def sides(self) -> frozenset[Plan]:
        """The sides themselves."""
        return frozenset(twin.side for pair in self.pairs for twin in pair)

    def columns_in_either(
        self, of_side: Mapping[Plan, frozenset[ExpressionId]]
    ) -> frozenset[ExpressionId]:
        """Return columns of sides, as given for each, with the same ones of its twin."""
        columns: set[ExpressionId] = set()
        for one, other in self.pairs:
            for same in zip(_outputs(one.side), _outputs(other.side), strict=True):
                if same[0] in of_side[one.side] or same[1] in of_side[other.side]:
                    columns.update(same)
        return frozenset(columns)


NO_TWINS: Final = Twins(())
"""Those of a plan without joins."""


def twins_of(plan: Plan) -> Twins:
    """Return the sides of joins of a plan, without its subqueries, that stand in it twice."""
    alike: dict[str, list[Twin]] = defaultdict(list)
    for twin in _sides(plan):
        alike[catalyst.class_name(twin.side)].append(twin)
    return Twins(tuple(pair for group in alike.values() for pair in _pairs(group)))


def _pairs(group: Iterable[Twin]) -> Iterator[tuple[Twin, Twin]]:
    for one, other in combinations(group, 2):
        if catalyst.same_rows(one.side, other.side):
            yield one, other


def _sides(plan: Plan) -> Iterator[Twin]:
    left = [plan]
    while left:
        node = left.pop()
        if not catalyst.has_join(node) or not catalyst.has_python_function(node):
            continue
        below = catalyst.children(node)
        if catalyst.class_name(node).endswith(".Join"):
            yield from (Twin(node, side) for side in below if catalyst.has_python_function(side))
        left.extend(below)


def _outputs(plan: Plan) -> tuple[ExpressionId, ...]:
    return tuple(Tree.of(attribute).identity for attribute in catalyst.outputs(plan))
