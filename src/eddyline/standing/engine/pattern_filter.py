"""Grouped filters of patterns: one index over what all queries look for in a text.

What :class:`~eddyline.standing.engine.grouped_filter.GroupedFilter` is to ranges, for LIKE, RLIKE
and the like (``docs/decisions/0082-patterns-are-grouped.md``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa

from eddyline.distinct_values import distinct
from eddyline.expressions import Expression, evaluate
from eddyline.expressions.strings import TextTest
from eddyline.expressions.vector import Scope
from eddyline.standing.engine.lineage import DEAD, AskedBy, Lineages, LineageSets, Satisfied, alike
from eddyline.standing.engine.literal_index import Integers, LiteralIndex, Pairs, Spread, joined
from eddyline.standing.engine.pattern_clauses import PatternClauses


class PatternFilter:
    """What queries ask of one text by patterns.

    Queries are known by number and may come and go between vectors. Those that come are indexed by
    themselves, and together with others once these are no more than they: a query is indexed again
    a logarithmic number of times, and a search looks into a logarithmic number of indexes.

    Equal texts of a vector are looked at once, and equal tests of an index. Nothing is kept for
    pairs of a row and a query.
    """

    def __init__(self, operand: Expression) -> None:
        self._operand = operand
        self._segments: list[PatternSegment] = []
        self._clauses: dict[int, PatternClauses] = {}
        self._asking = AskedBy()
        self._by_default = AskedBy()  # queries that want a text unless something is found in it

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self._clauses)

    def __contains__(self, query: object) -> bool:
        """Tell whether a query is here."""
        return query in self._clauses

    def add(self, clauses: Mapping[int, PatternClauses]) -> None:
        """Take what further queries ask; ValueError for one that is here already."""
        if both := clauses.keys() & self._clauses.keys():
            raise ValueError(f"queries {sorted(both)} are here already")
        if not clauses:
            return
        self._clauses |= clauses
        self._asking.add(clauses)
        self._by_default.add(query for query, own in clauses.items() if wanted_by_default(own))
        together = dict(clauses)
        while self._segments and len(self._segments[-1]) <= len(together):
            queries = self._segments.pop().queries.tolist()
            together |= {q: self._clauses[q] for q in queries if q in self._clauses}
        self._segments.append(PatternSegment(together))

    def remove(self, queries: Collection[int]) -> None:
        """Forget queries; ValueError for one that is not here.

        They stay in their index, without effect, until they are more than half of it.
        """
        if unknown := set(queries) - self._clauses.keys():
            raise ValueError(f"there are no queries {sorted(unknown)}")
        for query in queries:
            del self._clauses[query]
        self._asking.remove(queries)
        self._by_default.remove(queries)
        kept = []
        for segment in self._segments:
            segment.remove(queries)
            if 2 * segment.alive >= len(segment):
                kept.append(segment)
            elif segment.alive:
                left = [q for q in segment.queries.tolist() if q in self._clauses]
                kept.append(PatternSegment({q: self._clauses[q] for q in left}))
        self._segments = kept

    def among(self, lineages: Lineages, scope: Scope, sets: LineageSets) -> Lineages:
        """Return the queries, among these, that want each row, by its text."""
        asked = self._asking.positions(lineages, sets)
        if not len(asked):
            return lineages
        here = scope if len(asked) == len(scope) else scope.narrow(asked)
        wanted = self.lineages(evaluate(self._operand, here).values, sets)
        asking = alike(self._asking.number(sets), len(asked))
        own = lineages[asked]
        left = np.array(lineages)
        left[asked] = sets.either(sets.without(own, asking), sets.common(own, wanted))
        return left

    def lineages(self, values: pa.Array, sets: LineageSets) -> Lineages:
        """Return the numbers of the sets of queries here that want rows with these texts."""
        encoded = values.dictionary_encode()
        texts = encoded.dictionary
        found = [segment.found(texts) for segment in self._segments]
        of_texts = _numbers(joined([won for won, _ in found]), len(texts), sets)
        default = self._by_default.number(sets)
        if default != DEAD:
            lost = _numbers(joined([lost for _, lost in found]), len(texts), sets)
            of_texts = sets.either(of_texts, sets.without(alike(default, len(texts)), lost))
        of_all = np.append(of_texts, np.int32(DEAD))  # NULL comes last
        lineages: Lineages = of_all[encoded.indices.fill_null(len(texts)).to_numpy()]
        return lineages


def wanted_by_default(clauses: PatternClauses) -> bool:
    """Tell whether clauses hold for a text that passes no test."""
    return all(clause.negated for clause in clauses)


class PatternSegment:
    """What some queries ask of one text, indexed together."""

    def __init__(self, clauses: Mapping[int, PatternClauses]) -> None:
        self.queries = np.array(sorted(clauses), np.int64)
        """Their numbers, ascending, those among them that were removed included."""
        self._removed = np.zeros(len(self.queries), np.bool_)
        numbers: dict[TextTest, int] = {}
        positive: list[tuple[int, int]] = []
        negated: list[tuple[int, int]] = []
        query_of: list[int] = []
        negations: list[int] = []
        for own, query in enumerate(self.queries.tolist()):
            for clause in clauses[query]:
                number = len(query_of)
                query_of.append(own)
                negations.append(len(clause.negated))
                for tests, pairs in (clause.positive, positive), (clause.negated, negated):
                    pairs += [(numbers.setdefault(t, len(numbers)), number) for t in tests]
        self._query_of = np.array(query_of, np.int64)
        self._negations = np.array(negations, np.int64)
        self._needed = np.bincount(
            self._query_of[self._negations == 0], minlength=len(self.queries)
        )
        self._positive = Spread.of(positive, len(numbers))
        self._negated = Spread.of(negated, len(numbers)) if negated else None
        self._index = LiteralIndex(tuple(numbers))

    def __len__(self) -> int:
        """Return the number of queries that are indexed."""
        return len(self.queries)

    @property
    def alive(self) -> int:
        """The number of queries that were not removed."""
        return len(self) - int(self._removed.sum())

    def remove(self, queries: Collection[int]) -> None:
        """Let queries have no effect any more; it does not matter whether they are here."""
        self._removed |= np.isin(self.queries, np.array(sorted(queries), np.int64))

    def found(self, texts: pa.Array) -> tuple[Pairs, Pairs]:
        """Return pairs of a text and a query that wants it, and of one that does not after all.

        The latter are of queries that want a text unless something is found in it, which the
        former are not of. Pairs are ordered by text; the texts are not NULL.
        """
        passed = self._index.passed(texts)
        keys = _keys(self._positive.pairs(*passed), len(self._query_of))
        at, clauses = np.divmod(keys, len(self._query_of))
        alone = self._negations[clauses] == 0
        won, met = np.unique(
            at[alone] * len(self) + self._query_of[clauses[alone]], return_counts=True
        )
        won = won[met == self._needed[won % len(self)]]
        if self._negated is None:
            return self._of_queries(won), self._of_queries(won[:0])
        failing, count = np.unique(
            _key(self._negated.pairs(*passed), len(self._query_of)), return_counts=True
        )
        failing = failing[count == self._negations[failing % len(self._query_of)]]
        at, clauses = np.divmod(
            np.setdiff1d(failing, keys, assume_unique=True), len(self._query_of)
        )
        lost = distinct(at * len(self) + self._query_of[clauses])
        won = np.setdiff1d(won, lost, assume_unique=True)
        return self._of_queries(won), self._of_queries(lost[self._needed[lost % len(self)] == 0])

    def _of_queries(self, keys: Integers) -> Pairs:
        at, own = np.divmod(keys, len(self))
        alive = ~self._removed[own]
        return at[alive], self.queries[own[alive]]


def _key(pairs: Pairs, numbers: int) -> Integers:
    at, number = pairs
    return at * numbers + number


def _keys(pairs: Pairs, numbers: int) -> Integers:
    return distinct(_key(pairs, numbers))


def _numbers(pairs: Pairs, texts: int, sets: LineageSets) -> Lineages:
    """Return the numbers of the sets of queries that texts are paired with."""
    at, queries = pairs
    order = np.lexsort((queries, at))
    sizes = np.bincount(at, minlength=texts)
    return sets.numbers(Satisfied.of_sizes(sizes, queries[order].astype(np.int32)))
