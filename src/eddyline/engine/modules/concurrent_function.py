"""Functions whose calls are made by somebody else, who answers later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeGuard

import pyarrow as pa

from eddyline.engine.agenda import Agenda
from eddyline.engine.modules.callers import Caller
from eddyline.expressions import Call, Expression, calls_in
from eddyline.expressions.vector import Function, Vector


class AnswersLater(Function, Protocol):
    """A function whose calls somebody else makes; the eddy goes on meanwhile."""

    @property
    def agenda(self) -> Agenda:
        """Where it says that calls are done, if nobody wishes otherwise."""
        ...

    def connect(self, agenda: Agenda) -> Caller:
        """Return who makes the calls of one module, and says so in ``agenda``.

        ValueError where that cannot be.
        """
        ...


class ConcurrentFunction:
    """A function with a single caller: of one module, which says so where the caller does."""

    vectorized = False

    def __init__(self, caller: Caller) -> None:
        """Let ``caller`` make the calls."""
        self._caller = caller
        self._connected = False

    @property
    def agenda(self) -> Agenda:
        """The caller's agenda."""
        return self._caller.agenda

    def connect(self, agenda: Agenda) -> Caller:
        """Return the caller, once; ValueError for another agenda, or a second module."""
        if self._connected or agenda is not self._caller.agenda:
            raise ValueError(
                "a function with a single caller can only stand in one conjunct, and in no OR"
            )
        self._connected = True
        return self._caller

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Raise TypeError: whoever calls this would have to wait."""
        raise TypeError(f"cannot be called on {rows} rows of {len(columns)} columns: answers later")


def answers_later(function: Function) -> TypeGuard[AnswersLater]:
    """Tell whether calls of a function are made by somebody else."""
    return hasattr(function, "connect")


def later_calls(functions: Sequence[Function], expressions: Iterable[Expression]) -> list[Call]:
    """Return the distinct calls in expressions that are answered later, inner ones first."""
    found: dict[Call, None] = {}
    for expression in expressions:
        for call in calls_in(expression):
            if call.function < len(functions) and answers_later(functions[call.function]):
                found.setdefault(call)
    return list(found)
