"""From expressions to programs, and the one function that most callers need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eddyline.errors import UnsupportedExpressionError
from eddyline.expressions import (
    arithmetic,
    casts,
    choice,
    comparison,
    leaves,
    logic,
    membership,
    strings,
)
from eddyline.expressions.expression import (
    And,
    Argument,
    Arithmetic,
    Call,
    Case,
    Cast,
    Coalesce,
    Comparison,
    Expression,
    Failure,
    In,
    IsNaN,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    StringMatch,
)
from eddyline.expressions.program import Program, Run
from eddyline.expressions.support import fault_of, type_of
from eddyline.expressions.vector import Scope, Vector

# Programs by the identity of their expression, which is kept alive with it, as
# hashing a large expression for every vector would cost more than running it.
_prepared: dict[int, tuple[Expression, Program]] = {}
_PREPARED_LIMIT = 1 << 14
"""Programs that are kept; a block of a thousand terms has some thousand, so this bounds a leak."""


def evaluate(expression: Expression, scope: Scope) -> Vector:
    """Return one result per row of ``scope``, as Spark would compute it, errors kept by row.

    The vector has ``type_of(expression)``. Raises :class:`UnsupportedExpressionError`
    for an expression that :func:`supported` refuses.
    """
    entry = _prepared.get(id(expression))
    if entry is None:
        if len(_prepared) >= _PREPARED_LIMIT:
            _prepared.clear()
        entry = _prepared[id(expression)] = (expression, prepare(expression))
    return entry[1].run(scope)


def forget_programs() -> None:
    """Forget the programs of expressions that will not come again, as at the end of a task."""
    _prepared.clear()


def prepare(expression: Expression) -> Program:
    """Return the program of an expression.

    Raises :class:`UnsupportedExpressionError` for what :func:`supported` refuses.
    """
    reason = fault_of(expression)
    if reason is not None:
        raise UnsupportedExpressionError(
            f"{reason} is not evaluated exactly as Spark does; leave the expression to Spark."
        )
    return _program(expression)


def _program(expression: Expression) -> Program:
    match expression:
        case Argument():
            return leaves.argument(expression)
        case Literal():
            return leaves.literal(expression)
        case Failure():
            return leaves.failure(expression)
        case Call():
            return leaves.call(expression)  # its arguments are the scope's to evaluate
    children = tuple(_program(child) for child in expression.children)
    run = _OPERATORS[type(expression)](expression, children)
    calls = any(child.calls for child in children)
    return Program(run, type_of(expression), calls)


def _in(node: In, children: tuple[Program, ...]) -> Run:
    literals = tuple(option for option in node.options if isinstance(option, Literal))
    if len(literals) == len(node.options):
        return membership.among_literals(children[0], literals)
    return membership.among(children[0], children[1:])


def _case(_: Case, children: tuple[Program, ...]) -> Run:
    branches = tuple(zip(children[:-1:2], children[1:-1:2], strict=True))
    return choice.case(branches, children[-1])


_OPERATORS: dict[type[Expression], Callable[[Any, tuple[Program, ...]], Run]] = {
    And: lambda _, terms: logic.conjunction(terms),
    Or: lambda _, terms: logic.disjunction(terms),
    Not: lambda _, children: logic.negation(children[0]),
    IsNull: lambda _, children: logic.null_test(children[0]),
    IsNaN: lambda _, children: logic.nan_test(children[0]),
    Comparison: lambda node, children: comparison.comparison(node.operator, *children),
    Arithmetic: lambda node, children: arithmetic.arithmetic(
        node.operator, children, ansi=node.ansi
    ),
    In: _in,
    Like: lambda node, children: strings.like(children[0], node.pattern, node.escape),
    StringMatch: lambda node, children: strings.string_match(node.test, children[0], node.needle),
    Case: _case,
    Coalesce: lambda _, children: choice.coalesce(children),
    Cast: lambda node, children: casts.cast(children[0], node.type, ansi=node.ansi),
}
