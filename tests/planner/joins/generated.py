"""Generated join queries with rows of every key type, and what a nested loop makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.modules.scan_access import ScanAccess
from eddyline.expressions import Comparison, ComparisonOperator
from tests.keys import TYPES, same, values_of
from tests.oracle.plain_values import plain

Row = tuple[Any, ...]
Equality = tuple[tuple[int, int], tuple[int, int]]
"""Two places: a relation and a column of it."""


@dataclass(frozen=True)
class Case:
    """A query whose predicates are equalities of columns, and the rows of its relations.

    Each relation has one more column, its last one, with the number of the row.
    """

    types: tuple[tuple[pa.DataType, ...], ...]
    equalities: tuple[Equality, ...]
    rows: tuple[tuple[Row, ...], ...]

    @property
    def graph(self) -> JoinGraph:
        """The join graph."""
        relations = tuple(JoinRelation(f"r{n}", types) for n, types in enumerate(self.types))
        query = JoinQuery(relations)
        predicates = tuple(
            Comparison(ComparisonOperator.EQUAL, query.column(*left), query.column(*right))
            for left, right in self.equalities
        )
        return JoinGraph(JoinQuery(relations, predicates))

    def batch(self, relation: int, start: int = 0, stop: int | None = None) -> pa.RecordBatch:
        """Return some rows of a relation."""
        rows = self.rows[relation][start:stop]
        types = self.types[relation]
        arrays = [pa.array([row[c] for row in rows], kind) for c, kind in enumerate(types)]
        return pa.record_batch(arrays, names=[f"c{c}" for c in range(len(types))])

    def joined(self) -> Counter[Row]:
        """Return which rows join, by their numbers."""
        return Counter(joined_rows(self.rows, self.equalities))


def joined_rows(
    rows: Sequence[Iterable[Row]], equalities: Sequence[Equality]
) -> Iterable[tuple[int, ...]]:
    """Yield the numbers of the rows that join, as a nested loop finds them."""
    for found in product(*rows):
        if all(same(found[r][c], found[s][d]) for (r, c), (s, d) in equalities):
            yield tuple(row[-1] for row in found)


def rows_of(inputs: Sequence[ScanAccess]) -> list[list[Row]]:
    """Return all rows that inputs give."""
    found = []
    for source in inputs:
        rows: list[Row] = []
        while (arrival := source.poll()) is not None:
            rows += zip(*(column.to_pylist() for column in arrival.columns), strict=True)
        assert source.ended
        found.append(rows)
    return found


def comparable(rows: Iterable[Row]) -> Counter[Row]:
    """Return rows as a bag; keys that are equal look alike."""
    return Counter(tuple(map(plain, row)) for row in rows)


@st.composite
def cases(draw: st.DrawFn, most_relations: int = 4, most_rows: int = 6) -> Case:
    """Draw a query over two relations or more; some of them may have no equality."""
    count = draw(st.integers(2, most_relations))
    kinds = draw(st.lists(TYPES, min_size=1, max_size=3))
    types = tuple(
        (*draw(st.lists(st.sampled_from(kinds), max_size=3)), pa.int64()) for _ in range(count)
    )
    places = [(r, c) for r, own in enumerate(types) for c in range(len(own) - 1)]
    pairs = [
        (left, right)
        for left, right in product(places, places)
        if left[0] < right[0] and types[left[0]][left[1]] == types[right[0]][right[1]]
    ]
    equalities = draw(st.lists(st.sampled_from(pairs), max_size=4, unique=True)) if pairs else []
    rows = tuple(
        tuple(
            (*(draw(values_of(kind)) for kind in own[:-1]), number)
            for number in range(draw(st.integers(0, most_rows)))
        )
        for own in types
    )
    return Case(types, tuple(equalities), rows)


def two_of_integers(left: Sequence[int | None], right: Sequence[int | None]) -> Case:
    """Return two relations of a key each, with these keys."""
    own = (pa.int64(), pa.int64())
    rows = tuple(tuple((key, n) for n, key in enumerate(keys)) for keys in (left, right))
    return Case((own, own), (((0, 0), (1, 0)),), rows)
