"""Conditions on joined tuples that many queries ask: by ranges of an attribute, or by pairs.

See ``docs/decisions/0031-conditions-are-ranges-or-pairs.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expressions import Argument, Call, Expression, type_of
from eddyline.expressions.vector import Scope, Vector
from eddyline.standing.engine.grouped_filter import GroupedFilter
from eddyline.standing.engine.join_conditions import JoinAttribute, JoinCondition
from eddyline.standing.engine.joined_scope import JoinedScope
from eddyline.standing.engine.lineage import AskedBy, Lineages, LineageSets, Satisfied, alike


class Undecided(Protocol):
    """Evaluates for tuples of a batch, and decides about one for which that was an error."""

    def evaluated(
        self,
        expression: Expression,
        scope: Scope,
        positions: npt.NDArray[np.int64],
        constants: npt.NDArray[np.int64] | None = None,
    ) -> Vector:
        """Return an expression's values in a scope, which has the tuples at these positions.

        Each with the constants of that number, where there are any in the expression.
        """
        ...

    def wants(self, query: int, position: int, error: Exception) -> bool:
        """Tell whether a query wants a tuple after all; tell of its error where that counts."""
        ...


class RangedCondition:
    """Finds by the value of an expression, in an index, the queries that want a tuple.

    The expression is evaluated for the tuples that are alive for a query that asks for it, once
    for each. Time grows with the tuples, and not with the queries.
    """

    selecting: int | None
    """The stream that it is a delayed selection of."""

    def __init__(self, expression: Expression, selecting: int | None = None) -> None:
        self.expression = expression
        self.selecting = selecting
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


MOST_PAIRS: Final = 1 << 18
"""Pairs of a tuple and a query that are evaluated together: some megabytes a column."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Variants:
    """Distinct constants: those of query q have the number ``of[q]``, below ``count``.

    ``columns`` has for each argument below 0 its values by that number. ``shared`` says whether
    some queries have the same.
    """

    of: Numbers
    columns: Mapping[int, pa.Array]
    count: int
    shared: bool


class PairedCondition:
    """Evaluates an expression for a tuple and the constants of the queries that it is alive for.

    Queries with equal constants share one evaluation. Time grows with the pairs of a tuple and a
    query that it is alive for; they are evaluated together, as vectors.
    """

    selecting: int | None = None

    def __init__(self, attribute: JoinAttribute) -> None:
        self.expression: Expression = attribute.expression
        self._arguments = attribute.constants
        self._constants: dict[int, tuple[object, ...]] = {}
        self._variants: _Variants | None = None
        self.asking = AskedBy()

    def add(self, conditions: Mapping[int, JoinCondition]) -> None:
        """Take the constants of further queries."""
        places = [-1 - argument.index for argument in self._arguments]
        for query, condition in conditions.items():
            self._constants[query] = tuple([condition.constants[place] for place in places])
        self._variants = None
        self.asking.add(conditions)

    def remove(self, queries: Collection[int]) -> None:
        """Forget queries."""
        for query in queries:
            del self._constants[query]
        self._variants = None
        self.asking.remove(queries)

    def among(
        self, scope: JoinedScope, lineages: Lineages, sets: LineageSets, undecided: Undecided
    ) -> Lineages:
        """Return the queries, among these, that still want each tuple."""
        asked = self.asking.positions(lineages, sets)
        if not len(asked):
            return lineages
        left = np.array(lineages)
        asking = sets.within(lineages[asked], self.asking.number(sets))
        for part in _parts(sets.sizes(asking)):
            positions, queries = sets.spread(asking[part])
            places = asked[part][positions]
            out = ~self._true(scope, places, queries, undecided)
            sizes = np.bincount(positions[out], minlength=len(asking[part]))
            lost = sets.numbers(Satisfied.of_sizes(sizes, queries[out].astype(np.int32)))
            left[asked[part]] = sets.without(left[asked[part]], lost)
        return left

    def _true(
        self, scope: JoinedScope, places: Numbers, queries: Numbers, undecided: Undecided
    ) -> npt.NDArray[np.bool_]:
        """Return for which pairs of a tuple and a query the expression is TRUE."""
        variants = self._compiled()
        tuples, chosen, back = places, variants.of[queries], np.arange(len(places))
        if variants.shared:
            pairs, back = np.unique(places * variants.count + chosen, return_inverse=True)
            tuples, chosen = np.divmod(pairs, variants.count)
        constants = {
            index: column.take(pa.array(chosen)) for index, column in variants.columns.items()
        }
        here = scope.asked(tuples, constants)
        vector = undecided.evaluated(self.expression, here, tuples, chosen)
        values = vector.values.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
        true: npt.NDArray[np.bool_] = values[back]
        if vector.errors:
            for pair in np.flatnonzero(np.isin(back, list(vector.errors))).tolist():
                error = vector.errors[int(back[pair])]
                true[pair] = undecided.wants(int(queries[pair]), int(places[pair]), error)
        return true

    def _compiled(self) -> _Variants:
        if self._variants is None:
            numbers: dict[str, int] = {}  # as written: 0.0 is not -0.0
            distinct: list[tuple[object, ...]] = []
            of = np.zeros(max(self._constants) + 1, np.int64)
            for query, constants in self._constants.items():
                number = numbers.setdefault(repr(constants), len(distinct))
                if number == len(distinct):
                    distinct.append(constants)
                of[query] = number
            columns = {
                argument.index: pa.array([row[at] for row in distinct], argument.type)
                for at, argument in enumerate(self._arguments)
            }
            shared = len(distinct) < len(self._constants)
            self._variants = _Variants(of, columns, len(distinct), shared)
        return self._variants


def _parts(sizes: Numbers) -> Iterator[slice]:
    """Yield parts of tuples that have some pairs together, but not too many; one tuple at least."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + MOST_PAIRS, "right")), start + 1)
        yield slice(start, stop)
        start = stop
