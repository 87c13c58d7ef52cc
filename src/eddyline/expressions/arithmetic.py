"""Arithmetic as Spark's, in ANSI mode and out of it.

Integers overflow: in ANSI mode the row fails, else the result wraps around.
Division and remainder by zero fail in ANSI mode for floating point too, and are
NULL otherwise. Decimals are added, subtracted and multiplied only where the
result cannot overflow, so the mode does not matter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.expression import ArithmeticOperator
from eddyline.expressions.families import is_floating, is_integer
from eddyline.expressions.overflow import overflows, overflows_alone
from eddyline.expressions.program import Errors, Program, Run, true_mask
from eddyline.expressions.row_errors import ArithmeticFailure, ErrorCondition
from eddyline.expressions.strict import Operand, binary, unary, without_errors
from eddyline.expressions.vector import NO_ERRORS

_Kernel = Callable[..., pa.Array]

_WRAPPING: dict[ArithmeticOperator, _Kernel] = {
    ArithmeticOperator.ADD: pc.add,
    ArithmeticOperator.SUBTRACT: pc.subtract,
    ArithmeticOperator.MULTIPLY: pc.multiply,
    ArithmeticOperator.NEGATE: pc.negate,
    ArithmeticOperator.ABSOLUTE: pc.abs,
}
_CHECKED: dict[ArithmeticOperator, _Kernel] = {
    ArithmeticOperator.ADD: pc.add_checked,
    ArithmeticOperator.SUBTRACT: pc.subtract_checked,
    ArithmeticOperator.MULTIPLY: pc.multiply_checked,
    ArithmeticOperator.NEGATE: pc.negate_checked,
    ArithmeticOperator.ABSOLUTE: pc.abs_checked,
}
UNARY = frozenset({ArithmeticOperator.NEGATE, ArithmeticOperator.ABSOLUTE})
_DIVIDING = frozenset({ArithmeticOperator.DIVIDE, ArithmeticOperator.REMAINDER})
_SMALL_BITS = 16  # Spark computes these in 32 bits and names their overflow differently
_MOST_DIGITS = 38  # of a decimal, in Spark and in Arrow's decimal128


def arithmetic(operator: ArithmeticOperator, operands: tuple[Program, ...], *, ansi: bool) -> Run:
    """Prepare an operator over operands of types that :func:`arithmetic_fault` accepts."""
    checked = ansi and is_integer(operands[0].type)
    if operator in UNARY:
        kernel = _WRAPPING[operator]
        if checked:
            return unary(operands[0], lambda values: _checked(operator, values))
        return unary(operands[0], lambda values: (kernel(values), NO_ERRORS))
    left, right = operands
    if operator in _DIVIDING:
        # Spark looks at the divisor first.
        return binary(
            right, left, lambda divisor, dividend: _divided(operator, dividend, divisor, ansi=ansi)
        )
    if checked:
        return binary(left, right, lambda first, second: _checked(operator, first, second))
    return binary(left, right, without_errors(_WRAPPING[operator]))


def arithmetic_fault(
    operator: ArithmeticOperator, operands: tuple[pa.DataType, ...], result: pa.DataType
) -> str | None:
    """Return why an operator over some types is not computed here, or None if it is."""
    if len(operands) != (1 if operator in UNARY else 2):
        return f"{operator} of {len(operands)} operands"
    computed = arithmetic_type(operator, operands)
    if computed is not None and computed == result:
        return None
    return f"{operator} of {', '.join(map(str, operands))} as {result}"


def arithmetic_type(
    operator: ArithmeticOperator, operands: tuple[pa.DataType, ...]
) -> pa.DataType | None:
    """Return Spark's type of a result, or None for operand types that are left to Spark."""
    first = operands[0]
    if all(pa.types.is_decimal128(operand) for operand in operands):
        return _decimal_type(operator, operands)
    if set(operands) != {first}:
        return None
    if operator is ArithmeticOperator.DIVIDE and not pa.types.is_float64(first):
        return None  # Spark divides doubles and decimals only
    return first if is_integer(first) or is_floating(first) else None


def _decimal_type(
    operator: ArithmeticOperator, operands: tuple[pa.DataType, ...]
) -> pa.DataType | None:
    """Return the type of a decimal result that always fits, or None if it might not."""
    if operator in UNARY:
        return operands[0]
    left, right = operands
    if operator is ArithmeticOperator.MULTIPLY:
        precision = left.precision + right.precision + 1
        scale = left.scale + right.scale
    elif operator in (ArithmeticOperator.ADD, ArithmeticOperator.SUBTRACT):
        scale = max(left.scale, right.scale)
        whole = max(left.precision - left.scale, right.precision - right.scale)
        precision = whole + scale + 1
    else:
        return None
    return pa.decimal128(precision, scale) if precision <= _MOST_DIGITS else None


def _checked(operator: ArithmeticOperator, *operands: Operand) -> tuple[pa.Array, Errors]:
    """Compute on integers; rows that overflow fail."""
    try:
        return _CHECKED[operator](*operands), NO_ERRORS
    except pa.ArrowInvalid:
        pass  # at least one row overflows: compute all, then find which
    wrapped = _WRAPPING[operator](*operands)
    numbers = [_numbers(operand) for operand in operands]
    failed = (
        overflows_alone(numbers[0])
        if operator in UNARY
        else overflows(operator, numbers[0], numbers[1], _numbers(wrapped))
    )
    failed &= wrapped.is_valid().to_numpy(zero_copy_only=False)
    small = len(operands) > 1 and wrapped.type.bit_width <= _SMALL_BITS
    condition = (
        ErrorCondition.BINARY_ARITHMETIC_OVERFLOW if small else ErrorCondition.ARITHMETIC_OVERFLOW
    )
    return _failing(wrapped, failed, condition, operator, operands)


def _divided(
    operator: ArithmeticOperator, dividend: Operand, divisor: Operand, *, ansi: bool
) -> tuple[pa.Array, Errors]:
    """Divide, or take the remainder with the dividend's sign, as in Java."""
    zero = pc.equal(divisor, pa.scalar(0, divisor.type))
    if isinstance(divisor, pa.Scalar):
        if zero.as_py():
            divisor, zero = pa.repeat(divisor, len(dividend)), pa.repeat(zero, len(dividend))
        else:
            return _quotient(operator, dividend, divisor), NO_ERRORS
    if not zero.true_count:
        return _quotient(operator, dividend, divisor), NO_ERRORS
    safe = pc.if_else(zero, pa.scalar(None, divisor.type), divisor)
    values = _quotient(operator, dividend, safe)
    if not ansi:
        return values, NO_ERRORS
    failed = true_mask(zero) & _valid(dividend)
    dividing = operator is ArithmeticOperator.DIVIDE
    condition = ErrorCondition.DIVIDE_BY_ZERO if dividing else ErrorCondition.REMAINDER_BY_ZERO
    return _failing(values, failed, condition, operator, (dividend, divisor))


def _quotient(operator: ArithmeticOperator, dividend: Operand, divisor: Operand) -> pa.Array:
    """Divide by what is not zero, or is NULL."""
    if operator is ArithmeticOperator.DIVIDE:
        return pc.divide(dividend, divisor)
    # Arrow has no remainder. NULL divisors stand as 1 here, for integers' sake.
    with np.errstate(invalid="ignore"):  # infinity % 2.0 is NaN, as in Java
        numbers = np.fmod(_numbers(dividend), _numbers(divisor, null=1))
    null = ~(_valid(dividend) & _valid(divisor))
    result_type = dividend.type
    return pa.array(numbers, result_type, mask=np.broadcast_to(null, numbers.shape))


def _numbers(operand: Operand, null: int = 0) -> npt.NDArray[np.generic]:
    """Return the values as NumPy's, of the same width, with ``null`` in place of NULL."""
    if isinstance(operand, pa.Scalar):
        return np.asarray(operand.as_py(), dtype=operand.type.to_pandas_dtype())
    if operand.null_count:
        operand = pc.fill_null(operand, pa.scalar(null, operand.type))
    numbers: npt.NDArray[np.generic] = operand.to_numpy(zero_copy_only=False)
    return numbers


def _valid(operand: Operand) -> npt.NDArray[np.bool_]:
    if isinstance(operand, pa.Scalar):
        return np.asarray(operand.is_valid)
    valid: npt.NDArray[np.bool_] = operand.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _failing(
    values: pa.Array,
    failed: npt.NDArray[np.bool_],
    condition: ErrorCondition,
    operator: ArithmeticOperator,
    operands: tuple[Operand, ...],
) -> tuple[pa.Array, Errors]:
    """Return the values with NULL where the rows failed, and an error for each of those."""
    values = pc.if_else(pa.array(failed), pa.scalar(None, values.type), values)
    errors: dict[int, Exception] = {}
    for row in np.flatnonzero(failed):
        shown = [
            str(operand if isinstance(operand, pa.Scalar) else operand[int(row)])
            for operand in operands
        ]
        text = f"{operator}({shown[0]})" if operator in UNARY else f" {operator} ".join(shown)
        errors[int(row)] = ArithmeticFailure(condition, f"{text} in {values.type}")
    return values, errors
