"""An attribute of joined tuples that queries have ranges for: evaluated once for all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expressions import type_of
from eddyline.expressions.expression import Argument, Call, Expression
from eddyline.standing.engine.asked_by import AskedBy, Undecided
from eddyline.standing.engine.grouped_filter import GroupedFilter
from eddyline.standing.engine.join_conditions import JoinCondition
from eddyline.standing.engine.joined_scope import JoinedScope
from eddyline.standing.engine.lineage import Lineages, LineageSets, alike


class RangedCondition:
    """Finds by the value of an expression, in an index, the queries that want a tuple.

    The expression is evaluated for the tuples that are alive for a query that asks for it, once
    for each. Time grows with the tuples, and not with the queries.
    """

    def __init__(self, expression: Expression) -> None:
        """Start without queries."""
        self.expression = expression
        self._value = Argument(0, type_of(expression))
        self._filter = GroupedFilter()
        self.asking = AskedBy()

    def add(self, conditions: Mapping[int, JoinCondition]) -> None:
        """Take the ranges of further queries."""
        self._filter.add(
            {n: [{self._value: r} for r in asked.ranges] for n, asked in conditions.items()}
        )
        self.asking.add(conditions)

    def remove(self, queries: Collection[int]) -> None:
        """Forget queries."""
        self._filter.remove(queries)
        self.asking.remove(queries)

    def among(
        self, scope: JoinedScope, lineages: Lineages, sets: LineageSets, undecided: Undecided
    ) -> Lineages:
        """Return the queries, among these, that still want each tuple."""
        asking = self.asking.number(sets)
        asked = self.asking.positions(lineages, sets)
        if not len(asked):
            return lineages
        here = scope if len(asked) == len(scope) else scope.narrow(asked)
        vector = undecided.evaluated(self.expression, here, asked)
        within = self._filter.lineages(_Values(vector.values), sets)
        out = sets.without(alike(asking, len(asked)), within)
        left = np.array(lineages)
        left[asked] = sets.without(left[asked], out)
        for at, error in vector.errors.items():
            place = int(asked[at])
            kept = set(sets.members(int(lineages[place])).tolist())
            lost = {q for q in kept & self.asking.queries if not undecided.wants(q, place, error)}
            left[place] = sets.number(kept - lost)
        return left


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of an attribute as the scope of what is asked of it."""

    values: pa.Array

    def argument(self, index: int) -> pa.Array:  # noqa: ARG002 - there is one
        return self.values

    def call(self, call: Call) -> NoReturn:
        raise ValueError(f"{call} is no value")

    def narrow(self, positions: npt.NDArray[np.int64]) -> _Values:
        return _Values(self.values.take(pa.array(positions)))

    def __len__(self) -> int:
        return len(self.values)
