"""Programs of the leaves: columns, literals, and calls of user functions."""

from __future__ import annotations

import pyarrow as pa

from eddyline.expressions.expression import Argument, Call, Failure, Literal
from eddyline.expressions.labels import relabelled
from eddyline.expressions.program import Program
from eddyline.expressions.row_errors import ArithmeticFailure, ErrorCondition
from eddyline.expressions.vector import Scope, Vector


def argument(expression: Argument) -> Program:
    """Prepare a column that the host hands in.

    The host's array may differ in type where only labels differ, as a timestamp in the
    session's time zone from one in UTC; it gets the declared ones.
    """
    index, declared = expression.index, expression.type

    def run(scope: Scope) -> Vector:
        return Vector(relabelled(scope.argument(index), declared))

    return Program(run, declared)


def literal(expression: Literal) -> Program:
    """Prepare a constant."""
    scalar = pa.scalar(expression.value, expression.type)

    def run(scope: Scope) -> Vector:
        return Vector(pa.repeat(scalar, len(scope)))

    return Program(run, expression.type, constant=scalar if scalar.is_valid else None)


def failure(expression: Failure) -> Program:
    """Prepare what fails for each row that comes to it."""
    error = ArithmeticFailure(ErrorCondition(expression.condition), expression.detail)

    def run(scope: Scope) -> Vector:
        rows = len(scope)
        return Vector(pa.nulls(rows, expression.type), dict.fromkeys(range(rows), error))

    return Program(run, expression.type)


def call(expression: Call) -> Program:
    """Prepare a call: the scope makes it, and remembers what it has called."""
    declared = expression.type

    def run(scope: Scope) -> Vector:
        vector = scope.call(expression)
        if vector.values.type == declared:
            return vector
        return Vector(relabelled(vector.values, declared), vector.errors)

    return Program(run, declared, calls=True)
