"""Asks joined tuples for the conditions of queries: part of probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from eddyline.engine.batch import TupleBatch, as_array
from eddyline.engine.clock import Clock
from eddyline.engine.settling import cause
from eddyline.expressions import Expression, evaluate
from eddyline.expressions.terms import decide, expression_of
from eddyline.expressions.vector import CollectiveFailure, Scope, Vector
from eddyline.standing.engine.asked_conditions import AskedCondition, AskedConditions
from eddyline.standing.engine.delayed_calls import DelayedCalls
from eddyline.standing.engine.failing_event import failing_event
from eddyline.standing.engine.joined_scope import JoinedScope
from eddyline.standing.engine.lineage import DEAD, Lineages
from eddyline.standing.engine.operators import SharedOperator, lineage_of
from eddyline.standing.engine.shared_conditions import Undecided


class ConditionCheck:
    """Takes from the lineage of joined tuples the queries whose conditions are not TRUE.

    A probe asks before it makes a tuple, so that what no query wants is never made (PS2 of
    Krishnamurthy et al., 2004, Section 3). What may fail is asked last, where all else that a
    query asks is known to be TRUE.
    """

    def __init__(
        self, shared: SharedOperator, asked: AskedConditions, delayed: DelayedCalls, clock: Clock
    ) -> None:
        self._shared = shared
        self._asked = asked
        self._delayed = delayed
        self._clock = clock
        self._called = 0.0  # seconds for delayed calls, since tuples were made

    def by_probe(self, batch: TupleBatch, newest: int) -> Lineages:
        """Return the lineage of tuples that have got a component of a stream just now."""
        spanned = batch.signature.spanned
        lineages = self._among(batch, lineage_of(batch), self._asked.due(spanned, newest))
        return self._among(batch, lineages, self._asked.at_last(spanned))

    def _selected(
        self, batch: TupleBatch, lineages: Lineages, condition: AskedCondition, stream: int
    ) -> Lineages:
        """Ask a component of tuples for what it was not asked for when its row was stored."""
        rows = batch.rows[stream]
        if rows is None:
            raise ValueError(f"{batch.signature} does not span stream {stream}")
        held, sets = self._shared.streams[stream], self._shared.sets
        asked = np.flatnonzero(lineages != DEAD)
        places = as_array(rows)[asked] - held.built.store.first
        undecided = self._delayed.undecided(stream, held.arrivals[places])
        asked, places = asked[undecided], places[undecided]
        if not len(asked):
            return lineages
        started = self._clock.now()
        scope = JoinedScope.of(self._shared.streams, batch).narrow(asked)
        deciding = _Deciding(self._shared, self._asked, batch, scope)
        before = lineages[asked]
        after = condition.among(scope, before, sets, deciding)
        left = np.array(lineages)
        left[asked] = after
        # A row that has failed is stored for these queries no longer: it meets nobody else.
        failed = np.flatnonzero((after != before) & ~deciding.in_doubt)
        _, firsts = np.unique(places[failed], return_index=True)
        failed = failed[firsts]
        gone = sets.without(before[failed], after[failed])
        held.lineages[places[failed]] = sets.without(held.lineages[places[failed]], gone)
        seconds = self._clock.now() - started
        self._called += seconds
        self._delayed.took(stream, seconds, int(np.count_nonzero(after == DEAD)))
        return left

    def made(self, tuples: int, seconds: float) -> None:
        """Take how long it has taken to find and make so many tuples, and to ask them."""
        self._delayed.made(tuples, seconds - self._called)
        self._called = 0.0

    def _among(
        self, batch: TupleBatch, lineages: Lineages, conditions: Sequence[AskedCondition]
    ) -> Lineages:
        if not conditions:
            return lineages
        scope = JoinedScope.of(self._shared.streams, batch)
        deciding = self._deciding(batch, scope)
        delayed = []
        for condition in conditions:
            if condition.selecting is None:
                lineages = condition.among(scope, lineages, self._shared.sets, deciding)
            else:
                delayed.append((condition, condition.selecting))
        for condition, stream in delayed:
            lineages = self._selected(batch, lineages, condition, stream)
        return lineages

    def _deciding(self, batch: TupleBatch, scope: JoinedScope) -> Undecided:
        return _Deciding(self._shared, self._asked, batch, scope)


@dataclass(frozen=True, slots=True)
class _Deciding:
    """Decides about single tuples of a batch, query by query.

    An error counts for a query only where all else that it asks of the tuple is TRUE, as in a
    query that runs alone. It stops that query, and no other.
    """

    shared: SharedOperator
    asked: AskedConditions
    batch: TupleBatch
    scope: JoinedScope
    told: set[int] = field(default_factory=set)
    """Queries that have been told of an error in this batch already."""
    doubted: set[int] = field(default_factory=set)
    """Positions of tuples that have led to an error, whatever became of it."""

    @property
    def in_doubt(self) -> npt.NDArray[np.bool_]:
        """Which tuples have led to an error."""
        doubt = np.zeros(len(self.scope), np.bool_)
        doubt[list(self.doubted)] = True
        return doubt

    def evaluated(
        self,
        expression: Expression,
        scope: Scope,
        positions: npt.NDArray[np.int64],  # noqa: ARG002 - of the tuples, for who counts them
        constants: npt.NDArray[np.int64] | None = None,  # noqa: ARG002 - the same
    ) -> Vector:
        """Return an expression's values in a scope: see Undecided."""
        return evaluate(expression, scope)

    def wants(self, query: int, position: int, error: Exception) -> bool:
        """Tell whether a query wants a tuple after all; tell of its error where that counts."""
        self.doubted.add(position)
        undecided = self.shared.on_undecided
        if query in self.told and undecided is None and not isinstance(error, CollectiveFailure):
            return False  # whatever else it asks
        predicate, constants = self.asked.predicate(query, self.batch.signature.spanned)
        one = self.scope.asked(np.array([position]), constants)
        self._forget(one)
        true, errors = decide(predicate, one)
        if errors:
            self.told.add(query)
            event = failing_event([expression_of(predicate)], one)
            self.shared.on_error(query, cause(errors[0]), event)
            if undecided is not None:
                undecided(query, self.batch, position)
        return bool(true[0])

    def _forget(self, one: JoinedScope) -> None:
        """Let calls that have failed only together with others be made again."""
        for expression in self.asked.calling:
            for holder, rows in one.holders():
                holder.forget_collective_failures(expression, rows)
