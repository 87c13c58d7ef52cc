"""An expression over joined tuples with constants of each query in it: evaluated for pairs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expressions.expression import Expression
from eddyline.standing.engine.asked_by import AskedBy, Undecided
from eddyline.standing.engine.join_conditions import JoinAttribute, JoinCondition
from eddyline.standing.engine.joined_scope import JoinedScope
from eddyline.standing.engine.lineage import Lineages, LineageSets
from eddyline.standing.engine.satisfied import Satisfied

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

    def __init__(self, attribute: JoinAttribute) -> None:
        """Start without queries."""
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
