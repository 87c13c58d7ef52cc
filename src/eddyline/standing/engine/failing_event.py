"""What an error was about: the values that an expression was evaluated over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from eddyline.expressions import Argument, Case, Expression, Failure, IsNull, Not
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


def unless_failed(event: Argument, value: Argument, failure: Failure) -> Case:
    """Return the value of a column that was computed elsewhere, for rows where that went well.

    For others ``event`` has what the failure was about, and is NULL for no other.
    """
    return Case(((Not(IsNull(event)), failure),), value, value.type)


def _values(
    expressions: Iterable[Expression], scope: Scope, row: int, first: int
) -> dict[int, object]:
    nodes = [node for expression in expressions for node in expression.walk()]
    numbers = {node.index for node in nodes if isinstance(node, Argument) and node.index >= 0}
    values = {number: scope.argument(number)[row].as_py() for number in sorted(numbers)}
    for node in nodes:
        match node:
            case Case(((Not(IsNull(Argument(event))), Failure()),), Argument(value)):
                # Of a value that is NULL as it failed, what it was made of says more.
                values.pop(event if values.get(event) is None else value, None)
    return {first + number: value for number, value in values.items()}
