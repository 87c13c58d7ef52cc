"""The modules of a predicate's terms, with an eddy for every AND and OR inside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from eddyline.engine.batch import Rows, TupleBatch, as_array
from eddyline.engine.clock import Clock
from eddyline.engine.eddy import Eddy, Learned, LearnedCosts
from eddyline.engine.modules.concurrent_nested import ConcurrentNested
from eddyline.engine.modules.concurrent_selection import ConcurrentSelection
from eddyline.engine.modules.nested import Nested
from eddyline.engine.modules.selection import (
    HeldErrors,
    RowScopes,
    Selection,
    SelectionStatistics,
)
from eddyline.engine.policies.policy import Policy, begin_with
from eddyline.engine.prior import NO_PRIORS, Prior, by_number, nested_priors
from eddyline.engine.quantum import Quantum
from eddyline.engine.routes import Routes
from eddyline.engine.routing import Instrument
from eddyline.engine.signature import ENTERING
from eddyline.engine.statistics import Spent
from eddyline.expressions import Expression
from eddyline.expressions.terms import Disjunction, Leaf, Term
from eddyline.expressions.vector import Scope

ROW_VISIT_COST = 15e-6
"""Guess of the seconds a visit costs a predicate that calls row by row; measured afterwards."""

VECTOR_VISIT_COST = 300e-6
"""The same for a predicate over whole vectors: building a pandas Series takes that long."""


TermModule: TypeAlias = Selection | Nested | ConcurrentSelection | ConcurrentNested
"""The module of a term: one that computes, or one that answers later."""


class TermModules:
    """Makes modules for terms, and the eddies among them.

    ``text_of`` names the terms within AND and OR for reports. ``learned`` is what the eddies of
    another one, made in the same order, knew at their end; ValueError where it is of fewer.
    """

    def __init__(
        self,
        source: RowScopes,
        make_policy: Callable[[], Policy],
        clock: Clock,
        generator: np.random.Generator,
        text_of: Callable[[Term], str],
        quantum: Quantum | None = None,
        learned: Learned | None = None,
    ) -> None:
        self._source = source
        self._make_policy = make_policy
        self._clock = clock
        self._generator = generator
        self._text_of = text_of
        self._quantum = quantum
        self._learned = learned
        self._eddies: list[Eddy] = []

    def module(
        self,
        position: int,
        term: Term,
        name: str,
        held: HeldErrors,
        *,
        inverted: bool,
        prior: Prior | None = None,
    ) -> Selection | Nested:
        """Make the module of a term, number ``position`` of its eddy, which is made later.

        ``prior`` is what is known of it beforehand: its terms begin with that.
        """
        if isinstance(term, Leaf):
            return Selection(position, name, term.expression, self._source, held, inverted=inverted)
        disjunction = isinstance(term, Disjunction)
        inner = HeldErrors()
        of_terms = nested_priors(prior, len(term.terms))
        modules = tuple(
            self.module(
                place, part, self._text_of(part), inner, inverted=disjunction, prior=of_terms[place]
            )
            for place, part in enumerate(term.terms)
        )
        return Nested(
            position,
            name,
            self.eddy(modules, None, priors=by_number(of_terms, inverted=disjunction)),
            inner,
            held,
            disjunction=disjunction,
            inverted=inverted,
        )

    def eddy(
        self,
        modules: Sequence[TermModule],
        instrument: Instrument | None,
        precedence: Mapping[int, int] | None = None,
        priors: Mapping[int, Prior] = NO_PRIORS,
    ) -> Eddy:
        """Make the eddy over the modules of one AND or OR; ``precedence`` as in its routes."""
        policy, costs = self.known()
        eddy = Eddy(
            modules,
            policy,
            self._clock,
            self._generator,
            routes=Routes(len(modules), precedence),
            quantum=self._quantum,
            visit_costs=[
                VECTOR_VISIT_COST if module.calls_functions_in_vectors else ROW_VISIT_COST
                for module in modules
            ],
            learned=costs,
            instrument=instrument,
        )
        self.add(eddy)
        if costs is None:
            begin_with(policy, priors)
        return eddy

    def known(self) -> tuple[Policy, LearnedCosts | None]:
        """Return the policy of the next eddy, and the costs that are known already."""
        if self._learned is None:
            return self._make_policy(), None
        if len(self._eddies) == len(self._learned.eddies):
            raise ValueError(
                f"what was learned is of {len(self._eddies)} eddies, and there are more"
            )
        return self._learned.eddies[len(self._eddies)]

    def require_all_known(self) -> None:
        """Raise ValueError where what was learned is of more eddies than have been made."""
        if self._learned is not None and len(self._learned.eddies) != len(self._eddies):
            raise ValueError(
                f"what was learned is of {len(self._learned.eddies)} eddies, "
                f"and there are {len(self._eddies)}"
            )

    def add(self, eddy: Eddy) -> None:
        """Take an eddy that was made elsewhere, as the next one."""
        self._eddies.append(eddy)

    def learned(self) -> Learned:
        """Return what the eddies know, in the order in which they were made."""
        return Learned(tuple((eddy.policy, eddy.costs()) for eddy in self._eddies))

    def renew(self, clock: Clock) -> None:
        """Go on with another clock."""
        self._clock = clock
        for eddy in self._eddies:
            eddy.renew(clock, None)


class TuplesInHand:
    """The tuples that a predicate is asked about now, by their places among these."""

    def __init__(self, is_vectorized: Callable[[Expression], bool]) -> None:
        self.is_vectorized = is_vectorized
        self.tuples: Scope | None = None

    def scope(self, rows: Rows) -> Scope:
        """Return the place where expressions find the values of some of them."""
        if self.tuples is None:
            raise ValueError("no tuples are asked about")
        return self.tuples if len(rows) == len(self.tuples) else self.tuples.narrow(as_array(rows))


class RoutedTerm:
    """Decides an AND or OR for tuples by routing them among its terms.

    The answer is that of :func:`~eddyline.expressions.terms.decide`, whatever the routing.
    """

    def __init__(
        self,
        term: Term,
        name: str,
        tuples: TuplesInHand,
        modules: TermModules,
        prior: Prior | None = None,
    ) -> None:
        self._tuples = tuples
        self._held = HeldErrors()
        self._module = modules.module(0, term, name, self._held, inverted=False, prior=prior)

    def decide(self, scope: Scope) -> tuple[npt.NDArray[np.bool_], dict[int, Exception]]:
        """Return for which tuples the term is TRUE, and the errors where that is unknown."""
        true = np.zeros(len(scope), np.bool_)
        if not len(scope):
            return true, {}
        self._tuples.tuples = scope
        self._held.by_row.clear()
        for batch in self._module.process(TupleBatch(ENTERING, (range(len(scope)),))):
            rows = batch.rows[0]
            if rows is not None:
                true[as_array(rows)] = True
        self._tuples.tuples = None
        errors = {row: error for row, [(_, error)] in self._held.by_row.items()}
        true[list(errors)] = False
        return true, errors

    def nested(self) -> tuple[SelectionStatistics, ...]:
        """Return what the terms did so far."""
        return self._module.statistics(Spent()).nested
