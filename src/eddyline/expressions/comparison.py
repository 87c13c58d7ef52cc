"""Comparison as Spark orders values.

Arrow's kernels agree with Spark on integers, decimals of one type, dates,
timestamps, booleans (FALSE first), and on strings and binary (bytewise). They
differ on floating point: for Spark NaN equals NaN and is above every number,
while -0.0 equals 0.0 for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.expression import ComparisonOperator
from eddyline.expressions.families import is_floating
from eddyline.expressions.program import Program, Run, with_nulls
from eddyline.expressions.strict import Operand, binary, merged, without_errors
from eddyline.expressions.vector import Scope, Vector

_Kernel = Callable[[Operand, Operand], pa.Array]

_ARROW_KERNELS: dict[ComparisonOperator, _Kernel] = {
    ComparisonOperator.EQUAL: pc.equal,
    ComparisonOperator.LESS: pc.less,
    ComparisonOperator.LESS_OR_EQUAL: pc.less_equal,
    ComparisonOperator.GREATER: pc.greater,
    ComparisonOperator.GREATER_OR_EQUAL: pc.greater_equal,
}
_MIRRORED = {
    ComparisonOperator.EQUAL: ComparisonOperator.EQUAL,
    ComparisonOperator.LESS: ComparisonOperator.GREATER,
    ComparisonOperator.LESS_OR_EQUAL: ComparisonOperator.GREATER_OR_EQUAL,
    ComparisonOperator.GREATER: ComparisonOperator.LESS,
    ComparisonOperator.GREATER_OR_EQUAL: ComparisonOperator.LESS_OR_EQUAL,
}


def comparison(operator: ComparisonOperator, left: Program, right: Program) -> Run:
    """Prepare a comparison of two operands of one comparable type."""
    if operator is ComparisonOperator.NULL_SAFE_EQUAL:
        return _null_safe_equality(left, right)
    return binary(left, right, without_errors(_kernel(operator, left, right)))


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
        mirrored = _against_number(_MIRRORED[operator])
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
