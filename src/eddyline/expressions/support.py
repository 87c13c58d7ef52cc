"""Which expressions are evaluated exactly as Spark does, so may be taken from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

from eddyline.expressions.arithmetic import arithmetic_fault
from eddyline.expressions.casts import cast_fault
from eddyline.expressions.expression import (
    And,
    Argument,
    Arithmetic,
    Call,
    Case,
    Cast,
    Coalesce,
    Comparison,
    ComparisonOperator,
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
from eddyline.expressions.families import (
    has_equality,
    is_comparable,
    is_floating,
    is_text,
)
from eddyline.expressions.key_types import same_but_for_labels
from eddyline.expressions.strings import pattern_fault

Types: TypeAlias = tuple[pa.DataType, ...]

_BOOLEAN = pa.bool_()
_EQUALITIES = frozenset({ComparisonOperator.EQUAL, ComparisonOperator.NULL_SAFE_EQUAL})


def type_of(expression: Expression) -> pa.DataType:
    """Return the type of an expression's results."""
    match expression:
        case Argument() | Literal() | Call() | Failure():
            return expression.type
        case Arithmetic() | Case() | Coalesce() | Cast():
            return expression.type
        case _:
            return _BOOLEAN


def fault_of(expression: Expression) -> str | None:
    """Return None if an expression is evaluated exactly as Spark does, else a short reason.

    The arguments of calls are looked at too. The reason names the first thing
    found, parents before children, for ``explain`` to show.
    """
    for node in expression.walk():
        reason = _fault(node)
        if reason is not None:
            return reason
    return None


def _fault(node: Expression) -> str | None:
    """Return what is wrong with a node by itself, given the types of its children."""
    check = _CHECKS.get(type(node))
    if check is None:
        return f"the expression {type(node).__name__}"
    return check(node, tuple(type_of(child) for child in node.children))


def _no_fault(_: Expression, __: Types) -> None:
    return None


def _literal_fault(node: Literal, _: Types) -> str | None:
    try:
        pa.scalar(node.value, node.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return f"the literal {node.value!r} as {node.type}"
    return None


def _logic_fault(node: And | Or | Not, types: Types) -> str | None:
    if not types:
        return f"{type(node).__name__} of nothing"
    return None if set(types) == {_BOOLEAN} else f"{type(node).__name__} of what is not boolean"


def _comparison_fault(node: Comparison | In, types: Types) -> str | None:
    if len(types) == 1:
        return "IN without options"  # its value for NULL depends on a legacy setting
    others = (option for option in types if not same_but_for_labels(types[0], option))
    if (other := next(others, None)) is not None:
        return f"comparison of {types[0]} with {other}"
    equality = isinstance(node, Comparison) and node.operator in _EQUALITIES
    exact = has_equality(types[0]) if equality else is_comparable(types[0])
    return None if exact else f"comparison of {types[0]}"


def _nan_fault(_: IsNaN, types: Types) -> str | None:
    return None if is_floating(types[0]) else f"isnan of {types[0]}"


def _like_fault(node: Like, types: Types) -> str | None:
    if not is_text(types[0]):
        return f"LIKE of {types[0]}"
    return pattern_fault(node.pattern, node.escape)


def _string_match_fault(node: StringMatch, types: Types) -> str | None:
    return None if is_text(types[0]) else f"{node.test} of {types[0]}"


def _case_fault(node: Case, types: Types) -> str | None:
    conditions, values = types[:-1:2], (*types[1:-1:2], types[-1])
    if set(conditions) != {_BOOLEAN}:
        return "CASE without a boolean condition"
    return None if set(values) == {node.type} else "CASE of several types"


def _coalesce_fault(node: Coalesce, types: Types) -> str | None:
    return None if set(types) == {node.type} else "COALESCE of several types"


def _arithmetic_fault(node: Arithmetic, types: Types) -> str | None:
    return arithmetic_fault(node.operator, types, node.type)


def _cast_fault(node: Cast, types: Types) -> str | None:
    return cast_fault(types[0], node.type)


_CHECKS: dict[type[Expression], Callable[[Any, Types], str | None]] = {
    And: _logic_fault,
    Argument: _no_fault,
    Arithmetic: _arithmetic_fault,
    Call: _no_fault,
    Case: _case_fault,
    Cast: _cast_fault,
    Coalesce: _coalesce_fault,
    Failure: _no_fault,
    Comparison: _comparison_fault,
    In: _comparison_fault,
    IsNaN: _nan_fault,
    IsNull: _no_fault,
    Like: _like_fault,
    Literal: _literal_fault,
    Not: _logic_fault,
    Or: _logic_fault,
    StringMatch: _string_match_fault,
}
