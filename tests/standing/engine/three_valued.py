"""What an expression is over rows of several streams, node by node, in plain Python."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from eddyline.expressions import (
    And,
    Argument,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Comparison,
    ComparisonOperator,
    Expression,
    IsNull,
    Literal,
    Not,
    Or,
)
from eddyline.standing.engine.join_conditions import MOST_COLUMNS


class FailedError(Exception):
    """A value is an error."""


_ORDERS: Final[Mapping[ComparisonOperator, Callable[[Any, Any], bool]]] = {
    ComparisonOperator.EQUAL: operator.eq,
    ComparisonOperator.LESS: operator.lt,
    ComparisonOperator.LESS_OR_EQUAL: operator.le,
    ComparisonOperator.GREATER: operator.gt,
    ComparisonOperator.GREATER_OR_EQUAL: operator.ge,
}
_NUMBERS: Final[Mapping[ArithmeticOperator, Callable[[Any, Any], Any]]] = {
    ArithmeticOperator.ADD: operator.add,
    ArithmeticOperator.SUBTRACT: operator.sub,
    ArithmeticOperator.MULTIPLY: operator.mul,
}

Functions = Sequence[Callable[..., Any]]


def value_of(  # noqa: C901, PLR0911 - one a kind
    expression: Expression,
    rows: Mapping[int, Sequence[Any]],
    constants: Sequence[Any] = (),
    functions: Functions = (),
) -> Any:  # noqa: ANN401 - of any type
    """Return a value, None for NULL; FailedError where it is an error."""

    def inner(child: Expression) -> Any:  # noqa: ANN401 - of any type
        return value_of(child, rows, constants, functions)

    match expression:
        case Argument(index) if index < 0:
            return constants[-1 - index]
        case Argument(index):
            return rows[index // MOST_COLUMNS][index % MOST_COLUMNS]
        case Literal(value):
            return value
        case Comparison(how, left, right):
            sides = _in_turn(inner, left, right)
            return sides and _ORDERS[how](*map(_ordered, sides))
        case Arithmetic(how, (left, right)):
            sides = _in_turn(inner, left, right)
            return sides and _NUMBERS[how](*sides)
        case IsNull(operand):
            return inner(operand) is None
        case Not(operand):
            value = inner(operand)
            return None if value is None else not value
        case And(terms):
            return _first([_tried(inner, term) for term in terms], decisive=False)
        case Or(terms):
            return _first([_tried(inner, term) for term in terms], decisive=True)
        case Call(function, arguments):
            return functions[function](*map(inner, arguments))
    raise AssertionError(expression)


def _in_turn(
    value: Callable[[Expression], Any], left: Expression, right: Expression
) -> tuple[Any, Any] | None:
    """Return two values, None where one is NULL; behind a NULL the other is not tried."""
    first = value(left)
    if first is None:
        return None
    second = value(right)
    return None if second is None else (first, second)


def _ordered(value: Any) -> Any:  # noqa: ANN401 - of any type
    return (math.isnan(value), 0.0 if math.isnan(value) else value)


def _tried(value: Callable[[Expression], Any], term: Expression) -> Any:  # noqa: ANN401 - of any type
    try:
        return value(term)
    except FailedError as error:
        return error


def _first(values: Sequence[Any], *, decisive: bool) -> bool | None:
    """Return what AND (decisive: False) or OR (True) is; a value beside an error may decide."""
    if decisive in values:
        return decisive
    for value in values:
        if isinstance(value, FailedError):
            # What is unknown decides an AND for the one who asks only what is TRUE.
            if not decisive and None in values:
                return None
            raise value
    return None if None in values else not decisive
