"""What an error was about: the values that an expression was evaluated over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from eddyline.expressions import Argument, Expression
from eddyline.expressions.vector import Scope

FailingEvent: TypeAlias = "Callable[[], Mapping[int, object]]"
"""Gives the values, by the numbers that arguments have in conditions on several streams.

Asked at once or never: of a million errors of a query only the first is shown.
"""


def failing_event(
    expressions: Iterable[Expression], scope: Scope, row: int = 0, first: int = 0
) -> FailingEvent:
    """Return what gives the columns that expressions are about, of one row of a scope.

    ``first`` is added to their numbers; those below 0 are constants, and left out.
    """
    return partial(_values, expressions, scope, row, first)


def _values(
    expressions: Iterable[Expression], scope: Scope, row: int, first: int
) -> dict[int, object]:
    numbers = {
        node.index
        for expression in expressions
        for node in expression.walk()
        if isinstance(node, Argument) and node.index >= 0
    }
    return {first + number: scope.argument(number)[row].as_py() for number in sorted(numbers)}
