"""Comparison as Spark orders values.

Arrow's kernels agree with Spark on integers, decimals of one type, dates,
timestamps, booleans (FALSE first), and on strings and binary (bytewise). They
differ on floating point: for Spark NaN equals NaN and is above every number,
while -0.0 equals 0.0 for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.catalyst_classes import CatalystClass, Ingredients, Recipe, yes
from eddyline.expressions.expression import Expression, Names, Types
from eddyline.expressions.program import (
    Operand,
    Program,
    Run,
    binary,
    merged,
    with_nulls,
    without_errors,
)
from eddyline.expressions.value_types import (
    has_equality,
    is_comparable,
    is_floating,
    same_but_for_labels,
)
from eddyline.expressions.vector import Scope, Vector

_Kernel = Callable[[Operand, Operand], pa.Array]


class ComparisonOperator(StrEnum):
    """How two values of one type are compared."""

    EQUAL = "="
    NULL_SAFE_EQUAL = "<=>"  # never NULL: two NULLs are equal
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="

    @property
    def mirrored(self) -> ComparisonOperator:
        """The operator that says the same with the operands exchanged."""
        return _MIRRORED.get(self, self)


_MIRRORED: Final = {
    ComparisonOperator.LESS: ComparisonOperator.GREATER,
    ComparisonOperator.LESS_OR_EQUAL: ComparisonOperator.GREATER_OR_EQUAL,
    ComparisonOperator.GREATER: ComparisonOperator.LESS,
    ComparisonOperator.GREATER_OR_EQUAL: ComparisonOperator.LESS_OR_EQUAL,
}
_EQUALITIES: Final = frozenset({ComparisonOperator.EQUAL, ComparisonOperator.NULL_SAFE_EQUAL})


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """Two operands of one type, compared as Spark compares them."""

    operator: ComparisonOperator
    left: Expression
    right: Expression
    is_compound: ClassVar[bool] = True

    @property
    def children(self) -> tuple[Expression, ...]:
        """Left, then right."""
        return (self.left, self.right)

    def fault(self, types: Types) -> str | None:
        """Refuse operands of several types, or of one that is not compared as in Spark."""
        return fault_of_comparison(types, only_equality=self.operator in _EQUALITIES)

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the comparison."""
        left, right = operands
        if self.operator is ComparisonOperator.NULL_SAFE_EQUAL:
            return _null_safe_equality(left, right)
        return binary(left, right, without_errors(_kernel(self.operator, left, right)))

    def text(self, names: Names) -> str:
        """Return the operands with the operator between them."""
        return f"{self.left.part(names)} {self.operator} {self.right.part(names)}"


def fault_of_comparison(types: Types, *, only_equality: bool) -> str | None:
    """Return why the first of some values is not compared with the others here, None if it is."""
    others = (option for option in types if not same_but_for_labels(types[0], option))
    if (other := next(others, None)) is not None:
        return f"comparison of {types[0]} with {other}"
    exact = has_equality(types[0]) if only_equality else is_comparable(types[0])
    return None if exact else f"comparison of {types[0]}"


# ---------------------------------------------------------------- over vectors

_ARROW_KERNELS: dict[ComparisonOperator, _Kernel] = {
    ComparisonOperator.EQUAL: pc.equal,
    ComparisonOperator.LESS: pc.less,
    ComparisonOperator.LESS_OR_EQUAL: pc.less_equal,
    ComparisonOperator.GREATER: pc.greater,
    ComparisonOperator.GREATER_OR_EQUAL: pc.greater_equal,
}


def equality(operand_type: pa.DataType) -> _Kernel:
    """Return the kernel of ``=`` over two arrays of a type."""
    if pa.types.is_struct(operand_type):
        return _equal_structs
    return _equal if is_floating(operand_type) else pc.equal


def _null_safe_equality(left: Program, right: Program) -> Run:
    equal = equality(left.type)

    def run(scope: Scope) -> Vector:
        # Unlike the other comparisons this one looks at both operands of every row.
        first, second = left.run(scope), right.run(scope)
        values = equal(first.values, second.values)
        if values.null_count:
            both_null = pc.and_(first.values.is_null(), second.values.is_null())
            values = pc.coalesce(values, both_null)
        errors = merged(first.errors, second.errors)
        return Vector(with_nulls(values, errors) if errors else values, errors)

    return run


def _kernel(operator: ComparisonOperator, left: Program, right: Program) -> _Kernel:
    """Choose the kernel, for floating point by what is known of a constant operand."""
    if pa.types.is_struct(left.type):
        return _equal_structs
    if not is_floating(left.type):
        return _ARROW_KERNELS[operator]
    if _is_number(right.constant):
        return _against_number(operator)
    if _is_number(left.constant):
        mirrored = _against_number(operator.mirrored)
        return lambda first, second: mirrored(second, first)
    return _FLOATING_KERNELS[operator]


def _is_number(constant: pa.Scalar | None) -> bool:
    return constant is not None and not math.isnan(constant.as_py())


def _against_number(operator: ComparisonOperator) -> _Kernel:
    """Return the kernel of a floating column against a constant that is not NaN.

    IEEE's comparisons are all FALSE for NaN, which is right for =, < and <=; the
    other two are the opposites of those.
    """
    if operator is ComparisonOperator.GREATER:
        return lambda values, number: pc.invert(pc.less_equal(values, number))
    if operator is ComparisonOperator.GREATER_OR_EQUAL:
        return lambda values, number: pc.invert(pc.less(values, number))
    return _ARROW_KERNELS[operator]


def _equal(left: Operand, right: Operand) -> pa.Array:
    return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))


def _equal_structs(left: Operand, right: Operand) -> pa.Array:
    """Compare field by field; inside a struct two NULLs are equal, as Spark orders structs."""
    result: pa.Array | pa.Scalar = pa.scalar(True)  # noqa: FBT003 - of no fields all are equal
    for index, field in enumerate(left.type):
        one, other = pc.struct_field(left, index), pc.struct_field(right, index)
        both = pc.and_(pc.is_null(one), pc.is_null(other))
        same = pc.coalesce(equality(field.type)(one, other), both)
        result = pc.and_(result, same)
    # With Kleene's AND a FALSE would hide that a whole struct is NULL.
    valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
    return pc.if_else(valid, result, pa.scalar(None, pa.bool_()))


def _less(left: Operand, right: Operand) -> pa.Array:
    # NOT (left >= right) is TRUE for every NaN; a NaN on the left is less than nothing.
    return pc.and_(pc.invert(pc.greater_equal(left, right)), pc.invert(pc.is_nan(left)))


_FLOATING_KERNELS: dict[ComparisonOperator, _Kernel] = {
    ComparisonOperator.EQUAL: _equal,
    ComparisonOperator.LESS: _less,
    ComparisonOperator.LESS_OR_EQUAL: lambda left, right: pc.invert(_less(right, left)),
    ComparisonOperator.GREATER: lambda left, right: _less(right, left),
    ComparisonOperator.GREATER_OR_EQUAL: lambda left, right: pc.invert(_less(left, right)),
}


# ---------------------------------------------------------------- of Spark's expressions


def _comparison(operator: ComparisonOperator) -> Recipe:
    def build(given: Ingredients) -> Expression:
        left, right = given.operands()
        return Comparison(operator, left, right)

    return build


CATALYST: Final = (
    CatalystClass("EqualNullSafe", _comparison(ComparisonOperator.NULL_SAFE_EQUAL)),
    CatalystClass("EqualTo", _comparison(ComparisonOperator.EQUAL), is_strict=yes),
    CatalystClass("GreaterThan", _comparison(ComparisonOperator.GREATER), is_strict=yes),
    CatalystClass(
        "GreaterThanOrEqual", _comparison(ComparisonOperator.GREATER_OR_EQUAL), is_strict=yes
    ),
    CatalystClass("LessThan", _comparison(ComparisonOperator.LESS), is_strict=yes),
    CatalystClass("LessThanOrEqual", _comparison(ComparisonOperator.LESS_OR_EQUAL), is_strict=yes),
)
