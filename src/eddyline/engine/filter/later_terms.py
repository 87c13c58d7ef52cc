"""The modules of terms that need functions which answer later."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eddyline.engine.callers import Agenda, AnswersLater, answers_later, later_calls
from eddyline.engine.modules.calls_in_rounds import CallsInRounds
from eddyline.engine.modules.concurrent_nested import ConcurrentNested, NestedAgenda
from eddyline.engine.modules.concurrent_selection import CallAlone, ConcurrentSelection
from eddyline.engine.modules.nested import Nested
from eddyline.engine.modules.selection import HeldErrors, Selection
from eddyline.engine.prior import Prior
from eddyline.engine.relation import Relation
from eddyline.engine.term_modules import TermModule, TermModules
from eddyline.expressions import Call, Expression
from eddyline.expressions.terms import Disjunction, Leaf, Term, expression_of
from eddyline.expressions.vector import Function


class LaterTerms:
    """Makes the modules of terms, as TermModules does, also of those that answer later."""

    def __init__(
        self,
        functions: Sequence[Function],
        relation: Relation,
        modules: TermModules,
        text_of: Callable[[Term], str],
    ) -> None:
        """``functions`` are those of ``relation``; ``modules`` makes what answers at once."""
        self._functions = tuple(functions)
        self._relation = relation
        self._modules = modules
        self._text_of = text_of

    def module(
        self, position: int, term: Term, name: str, held: HeldErrors, prior: Prior | None = None
    ) -> TermModule:
        """Make module number ``position`` of the eddy; ValueError where a function cannot be.

        ``prior`` is what is known of the term beforehand, where it answers at once.
        """
        return self._made(position, term, name, held, self.agenda, inverted=False, prior=prior)

    @property
    def agenda(self) -> Agenda | None:
        """The agenda of the eddy; None where no function answers later."""
        later = (function.agenda for function in self._functions if answers_later(function))
        return next(later, None)

    def calls(self, expressions: Sequence[Expression], agenda: Agenda) -> CallsInRounds | None:
        """Return the maker of the calls in expressions that are answered later; None for none."""
        calls = later_calls(self._functions, expressions)
        if not calls:
            return None
        by = {call: self._function(call).connect(agenda) for call in calls}
        return CallsInRounds(calls, self._relation, by, expressions)

    def _made(
        self,
        position: int,
        term: Term,
        name: str,
        held: HeldErrors,
        agenda: Agenda | None,
        *,
        inverted: bool,
        prior: Prior | None = None,
    ) -> TermModule:
        expression = expression_of(term)
        if agenda is None or not later_calls(self._functions, [expression]):
            return self._modules.module(position, term, name, held, inverted=inverted, prior=prior)
        if isinstance(term, Leaf):
            return self._leaf(position, expression, name, held, agenda, inverted=inverted)
        disjunction = isinstance(term, Disjunction)
        inner, inner_agenda = HeldErrors(), NestedAgenda(agenda)
        modules = [
            self._made(place, part, self._text_of(part), inner, inner_agenda, inverted=disjunction)
            for place, part in enumerate(term.terms)
        ]
        nested = Nested(
            position,
            name,
            self._modules.eddy(modules, None),
            inner,
            held,
            disjunction=disjunction,
            inverted=inverted,
        )
        return ConcurrentNested(nested, inner_agenda)

    def _leaf(
        self,
        position: int,
        expression: Expression,
        name: str,
        held: HeldErrors,
        agenda: Agenda,
        *,
        inverted: bool,
    ) -> TermModule:
        relation = self._relation
        calls = later_calls(self._functions, [expression])
        alone = isinstance(expression, Call) and calls == [expression]
        selection = Selection(position, name, expression, relation, held, inverted=inverted)
        if alone and not inverted and not relation.is_remembered(calls[0]):
            caller = self._function(calls[0]).connect(self._of(calls[0], agenda))
            return ConcurrentSelection(selection, CallAlone(name, calls[0], relation, caller))
        by = {call: self._function(call).connect(agenda) for call in calls}
        return ConcurrentSelection(selection, CallsInRounds(calls, relation, by, [expression]))

    def _function(self, call: Call) -> AnswersLater:
        function = self._functions[call.function]
        if not answers_later(function):
            raise AssertionError(f"function {call.function} answers at once")
        return function

    def _of(self, call: Call, agenda: Agenda) -> Agenda:
        """Return the agenda to speak to: a caller with one of its own has no choice.

        Where these differ the eddy says so.
        """
        own = self._function(call).agenda
        return agenda if isinstance(agenda, NestedAgenda) else own
