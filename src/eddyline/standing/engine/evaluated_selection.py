"""A selection that is evaluated by itself, once for all queries that ask for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddyline.engine.batch import Rows, TupleBatch, pick
from eddyline.engine.relation import Relation
from eddyline.engine.settling import cause
from eddyline.expressions import Expression
from eddyline.expressions.terms import decide, expression_of
from eddyline.standing.engine.delayed_calls import DelayedCalls
from eddyline.standing.engine.failing_event import failing_event
from eddyline.standing.engine.join_conditions import MOST_COLUMNS
from eddyline.standing.engine.lineage import DEAD, Lineages
from eddyline.standing.engine.operators import SharedOperator, lineage_of
from eddyline.standing.engine.selections import Selections


class EvaluatedSelection:
    """Evaluates an expression for the tuples that are alive for a query that asks for it.

    An error counts for a query only where all else that it asks of the tuple is TRUE, as in a
    query that runs alone. It stops that query, and no other.
    """

    def __init__(
        self,
        shared: SharedOperator,
        stream: int,
        number: int,
        expression: Expression,
        selections: Selections,
        delayed: DelayedCalls,
    ) -> None:
        self._shared = shared
        self._stream = stream
        self._number = number
        self._expression = expression
        self._selections = selections
        self._delayed = delayed
        self._asking: tuple[int, int, int] | None = None
        self._failed: tuple[Exception, set[int]] | None = None

    @property
    def name(self) -> str:
        """The stream, and the expression."""
        stream = self._shared.streams[self._stream].stream.name
        return f"evaluate {self._expression} of {stream}"

    def process(self, batch: TupleBatch) -> Sequence[TupleBatch]:
        """Let tuples go that no query wants any more; all where they are asked when joined."""
        lineages = lineage_of(batch)
        asking = self._selections.evaluated[self._expression]
        if not self._delayed.is_late(self._stream, self._expression, asking):
            lineages = self.among(batch, lineages)
        return self._shared.selected(batch, lineages, self._number)

    def among(self, batch: TupleBatch, lineages: Lineages) -> Lineages:
        """Return the queries, among these, that still want each tuple."""
        shared, sets = self._shared, self._shared.sets
        asking = self._asking_set()
        asked = np.flatnonzero(sets.within(lineages, asking) != DEAD)
        rows = batch.rows[self._stream]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span stream {self._stream}")
        if not len(asked):
            return lineages
        relation = shared.streams[self._stream].of(batch)
        vector = shared.evaluated(batch, self._stream, self._expression, asked)
        true = vector.values.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
        left = np.array(lineages)
        false = asked[~true]
        left[false] = sets.without(left[false], np.full(len(false), asking, np.int32))
        for position in vector.errors:
            place = int(asked[position])
            row = pick(rows, np.array([place]))
            error = vector.errors[position]
            left[place] = self._after_error(int(lineages[place]), row, relation, error)
        return left

    def _after_error(self, lineage: int, row: Rows, relation: Relation, error: Exception) -> int:
        """Return what a tuple that has led to an error is still alive for.

        Each query that asks for the expression is decided by itself, with all that it asks; not
        again where it has failed by the same error, as of a function that is called no more.
        """
        if self._failed is None or self._failed[0] is not error:
            self._failed = error, set()
        shared, sets = self._shared, self._shared.sets
        kept = set(sets.members(lineage).tolist())
        asking = kept & self._selections.evaluated[self._expression]
        kept -= asking & self._failed[1]
        for query in asking - self._failed[1]:
            relation.forget_collective_failures(self._expression, row)
            scope = relation.scope(row)
            predicate = self._selections.predicate(query)
            true, errors = decide(predicate, scope)
            if errors:
                self._failed[1].add(query)
                first = self._stream * MOST_COLUMNS
                event = failing_event([expression_of(predicate)], scope, first=first)
                shared.on_error(query, cause(errors[0]), event)
            if not true[0]:
                kept.discard(query)
        return sets.number(kept)

    def _asking_set(self) -> int:
        """Return the number of the set of queries that ask for the expression."""
        queries = self._selections.evaluated[self._expression]
        known = self._asking
        if known is None or known[:2] != (self._shared.sets.generation, len(queries)):
            number = self._shared.sets.number(queries)
            known = self._asking = self._shared.sets.generation, len(queries), number
        return known[2]
