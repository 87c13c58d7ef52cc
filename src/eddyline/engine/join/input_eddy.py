"""The predicates over one input of a join, asked before its rows meet those of others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.batch import Rows, TupleBatch, as_array
from eddyline.engine.clock import Clock
from eddyline.engine.components import ColumnScope
from eddyline.engine.eddy import Learned
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.modules.selection import HeldErrors, SelectionStatistics
from eddyline.engine.policies.policy import Policy
from eddyline.engine.prior import by_number
from eddyline.engine.quantum import Quantum
from eddyline.engine.relation import (
    CallStatistics,
    Relation,
    require_answers_at_once,
    require_functions,
    require_lengths,
)
from eddyline.engine.signature import Signature
from eddyline.engine.statistics import EddyStatistics
from eddyline.engine.term_modules import TermModules
from eddyline.expressions import Call, Expression
from eddyline.expressions.terms import expression_of, terms_of
from eddyline.expressions.vector import Function


class Asked(NamedTuple):
    """Positions of the rows that no predicate rejects, in any order.

    Of those that have ``passed``, and of those for which a predicate has ``failed``.
    """

    passed: npt.NDArray[np.int64]
    failed: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class InputStatistics:
    """What was done so far with the rows of an input: ``predicates`` by their number."""

    predicates: dict[int, SelectionStatistics]
    calls: tuple[CallStatistics, ...]
    eddy: EddyStatistics


def predicates_with_calls(graph: JoinGraph, relation: int) -> tuple[int, ...]:
    """Return the numbers of the predicates over one relation alone that call functions.

    They are numbered as in :attr:`~eddyline.engine.join_graph.JoinGraph.predicates`.
    """
    return tuple(
        number
        for number, (predicate, mask) in enumerate(zip(graph.predicates, graph.masks, strict=True))
        if mask == 1 << relation and any(isinstance(node, Call) for node in predicate.walk())
    )


class InputEddy:
    """Routes the rows of one relation of a join among the predicates over it that call functions.

    It stands where rows are sent from, and the eddy where they arrive goes on with what it has
    left undone. So not every predicate need be asked: rows enter with the done bits of the others.
    Predicates are numbered as in :attr:`~eddyline.engine.join_graph.JoinGraph.predicates`.

    Adaptivity does not change answers: whether a predicate rejects a row depends on the row
    alone, and a row that a predicate failed for and none rejects is told apart. Whether its
    error counts depends on what it joins with.
    """

    def __init__(
        self,
        graph: JoinGraph,
        relation: int,
        functions: Sequence[Function],
        make_policy: Callable[[], Policy],
        clock: Clock,
        generator: np.random.Generator,
        *,
        quantum: Quantum | None = None,
        learned: Learned | None = None,
    ) -> None:
        """Make the eddy; calls in the predicates of ``graph`` name ``functions`` by position.

        ``learned`` is what another eddy over the same relation of the same query knew at its end.
        ValueError where it has other eddies or modules, where there is no such relation, for a
        call that names no function, and for functions that answer later: in a join they cannot.
        """
        if not 0 <= relation < len(graph.query.relations):
            raise ValueError(f"there is no relation {relation}")
        require_answers_at_once(functions)
        numbers = predicates_with_calls(graph, relation)
        self._places = {number: place for place, number in enumerate(numbers)}
        predicates = [graph.predicates[number] for number in numbers]
        require_functions(functions, predicates)
        self._relation = Relation(functions, predicates, clock)
        self._held = HeldErrors()
        self._terms = TermModules(
            _ColumnsOfQuery(self._relation, graph.query.offsets[relation]),
            make_policy,
            clock,
            generator,
            lambda term: graph.query.text_of(expression_of(term)),
            quantum,
            learned,
        )
        known_before = by_number(graph.query.priors)
        self._modules = tuple(
            self._terms.module(
                place,
                terms_of(predicate),
                graph.texts[number],
                self._held,
                inverted=False,
                prior=known_before.get(number),
            )
            for place, (number, predicate) in enumerate(zip(numbers, predicates, strict=True))
        )
        of_places = {self._places[n]: p for n, p in known_before.items() if n in self._places}
        self._eddy = self._terms.eddy(self._modules, None, priors=of_places)
        self._terms.require_all_known()

    def ask(self, columns: Sequence[pa.Array], rows: int, predicates: Collection[int]) -> Asked:
        """Ask some of the predicates, given by number, about ``rows`` rows.

        ValueError where one is none of :func:`predicates_with_calls`, or a column has not so
        many rows.
        """
        for predicate in predicates:
            self._place(predicate)
        require_lengths(columns, rows)
        numbers = self._relation.load(columns, rows)
        self._held.by_row.clear()
        left_out = sum(
            1 << place for number, place in self._places.items() if number not in predicates
        )
        finished = self._eddy.run(TupleBatch(Signature(done=left_out), (numbers,)))
        parts = [as_array(part) for batch in finished if (part := batch.rows[0]) is not None]
        alive = np.concatenate([np.empty(0, np.int64), *parts])
        failed = np.isin(alive, list(self._held.by_row))
        places = alive - numbers.start
        return Asked(places[~failed], places[failed])

    def cost(self, predicate: int) -> float | None:
        """Return the seconds that a predicate takes for a row of many; None if not known yet.

        ValueError where it is none of :func:`predicates_with_calls`.
        """
        return self._eddy.costs().models[self._place(predicate)].per_tuple

    def statistics_of(self, predicate: int) -> SelectionStatistics:
        """Return what one predicate, given by number, did so far.

        ValueError where it is none of :func:`predicates_with_calls`.
        """
        place = self._place(predicate)
        return self._modules[place].statistics(self._eddy.spent_in(place))

    def learned(self) -> Learned:
        """Return what this eddy and those inside it know, for the next one to start with."""
        return self._terms.learned()

    def statistics(self) -> InputStatistics:
        """Return what was done so far."""
        return InputStatistics(
            {number: self.statistics_of(number) for number in self._places},
            self._relation.statistics(),
            self._eddy.statistics(),
        )

    def _place(self, predicate: int) -> int:
        place = self._places.get(predicate)
        if place is None:
            raise ValueError(
                f"predicate {predicate} is none of {list(self._places)}, which call functions "
                f"over this relation alone"
            )
        return place


class _ColumnsOfQuery:
    """The rows of a relation, for expressions that number the columns of a whole query."""

    def __init__(self, relation: Relation, offset: int) -> None:
        self._relation = relation
        self._offset = offset

    def scope(self, rows: Rows) -> ColumnScope:
        """Return the place where expressions find the values of these rows."""
        return ColumnScope(self._relation, rows, self._offset)

    def is_vectorized(self, expression: Expression) -> bool:
        """Tell whether an expression calls a function that sees whole vectors."""
        return self._relation.is_vectorized(expression)
