"""The selections of all queries on a stream: what an index knows, and what is evaluated.

A conjunct that is about ranges of attributes goes into the grouped filter, one about patterns of a
text into that text's. Any other is evaluated by itself: one that calls a function or may fail, and
one with too many alternatives. Queries that ask for the same share its answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from eddyline.expressions import Expression, Literal
from eddyline.expressions.terms import Conjunction, Term, expression_of, terms_of
from eddyline.expressions.vector import Scope
from eddyline.standing.engine.grouped_filter import GroupedFilter
from eddyline.standing.engine.lineage import Lineages, LineageSets, alike
from eddyline.standing.engine.pattern_clauses import (
    PatternClause,
    PatternClauses,
    clauses_of,
    without_implied,
)
from eddyline.standing.engine.pattern_filter import PatternFilter
from eddyline.standing.engine.ranges import MOST_BOXES, Box, all_of, boxes_of

TRUE = Literal(value=True, type=pa.bool_())

_EVERYTHING: tuple[Box, ...] = ({},)


class SplitSelection(NamedTuple):
    """A selection as boxes, clauses of patterns, and conjuncts that are neither; all must be TRUE.

    Clauses may be about several texts.
    """

    boxes: tuple[Box, ...]
    rest: tuple[Expression, ...]
    patterns: PatternClauses = ()


Selection: TypeAlias = "Expression | SplitSelection | None"
"""A predicate over the columns of a stream, None for all tuples; or one that was split before."""


def split(selection: Selection) -> SplitSelection:
    """Split a selection into what an index can know and what it cannot."""
    return selection if isinstance(selection, SplitSelection) else _split(selection)


@lru_cache(maxsize=1 << 12)
def _split(predicate: Expression | None) -> SplitSelection:
    term = terms_of(TRUE if predicate is None else predicate)
    conjuncts: Sequence[Term] = term.terms if isinstance(term, Conjunction) else (term,)
    rest, parts = [], []
    patterns: list[PatternClause] = []
    for conjunct in conjuncts:
        clauses = clauses_of(conjunct)
        if clauses is not None:
            patterns += clauses
            continue
        boxes = boxes_of(conjunct)
        if boxes is None:
            rest.append(expression_of(conjunct))
        else:
            parts.append((conjunct, boxes))
    indexed: list[tuple[Box, ...]] = []
    alternatives = 1
    # Those with the fewest alternatives first: AND multiplies them.
    for conjunct, boxes in sorted(parts, key=lambda part: len(part[1])):
        alternatives *= len(boxes)
        if alternatives > MOST_BOXES:
            rest.append(expression_of(conjunct))
        else:
            indexed.append(boxes)
    common_boxes = all_of(indexed)
    if common_boxes is None:
        raise AssertionError(f"{predicate} has more alternatives together than its parts")
    clauses = tuple(patterns)
    boxes = tuple(without_implied(box, clauses) for box in common_boxes)
    return SplitSelection(boxes, tuple(rest), clauses)


class Selections:
    """The selections of queries on one stream."""

    def __init__(self) -> None:
        self._filter = GroupedFilter()
        self._patterns: dict[Expression, PatternFilter] = {}
        self._unasked: set[int] = set()
        self._unasked_number: tuple[int, int] | None = None
        self._queries: dict[int, Selection] = {}
        self.evaluated: dict[Expression, set[int]] = {}
        """What is evaluated by itself, and the queries that ask for it."""

    @property
    def attributes(self) -> tuple[Expression, ...]:
        """What the indexes compute of a tuple, once for all queries."""
        return (*self._filter.attributes, *self._patterns)

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self._queries)

    def add(self, selections: Mapping[int, Selection]) -> None:
        """Take further queries; ValueError for one that is here already."""
        parts = {query: split(predicate) for query, predicate in selections.items()}
        indexed = {q: part.boxes for q, part in parts.items() if part.boxes != _EVERYTHING}
        self._filter.add(indexed)
        patterns: dict[Expression, dict[int, list[PatternClause]]] = {}
        for query, part in parts.items():
            for clause in part.patterns:
                of_text = patterns.setdefault(clause.operand, {})
                of_text.setdefault(query, []).append(clause)
            for expression in part.rest:
                self.evaluated.setdefault(expression, set()).add(query)
        for operand, clauses in patterns.items():
            if operand not in self._patterns:
                self._patterns[operand] = PatternFilter(operand)
            self._patterns[operand].add({q: tuple(own) for q, own in clauses.items()})
        self._unasked.update(parts.keys() - indexed.keys())
        self._unasked_number = None
        self._queries |= selections

    def remove(self, queries: Collection[int]) -> None:
        """Forget queries; ValueError for one that is not here."""
        self._filter.remove([query for query in queries if query not in self._unasked])
        self._unasked.difference_update(queries)
        self._unasked_number = None
        for operand, of_text in list(self._patterns.items()):
            of_text.remove([query for query in queries if query in of_text])
            if not len(of_text):
                del self._patterns[operand]
        for query in queries:
            for expression in split(self._queries.pop(query)).rest:
                asking = self.evaluated[expression]
                asking.discard(query)
                if not asking:
                    del self.evaluated[expression]

    def predicate(self, query: int) -> Term:
        """Return the whole selection of a query."""
        predicate = self._queries[query]
        if isinstance(predicate, SplitSelection):
            raise TypeError("what was split before is not evaluated as a whole")
        return terms_of(TRUE if predicate is None else predicate)

    def lineages(self, scope: Scope, sets: LineageSets) -> Lineages:
        """Return the sets of queries that want tuples, as far as the indexes know."""
        lineages = self._in_boxes(scope, sets)
        for of_text in self._patterns.values():
            lineages = of_text.among(lineages, scope, sets)
        return lineages

    def _in_boxes(self, scope: Scope, sets: LineageSets) -> Lineages:
        if not self._unasked:
            return self._filter.lineages(scope, sets)
        known = self._unasked_number
        if known is None or known[0] != sets.generation:
            known = self._unasked_number = sets.generation, sets.number(self._unasked)
        unasked = alike(known[1], len(scope))
        if not len(self._filter):
            return unasked
        return sets.either(self._filter.lineages(scope, sets), unasked)
