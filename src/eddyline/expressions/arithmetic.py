"""Arithmetic as Spark's, in ANSI mode and out of it.

Integers overflow: in ANSI mode the row fails, else the result wraps around.
Division and remainder by zero fail in ANSI mode for floating point too, and are
NULL otherwise. Decimals are added, subtracted and multiplied only where the
result cannot overflow, so the mode does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.catalyst_classes import (
    FLOATS,
    CatalystClass,
    EvaluationMode,
    Ingredients,
    NotTranslatedError,
    Recipe,
    SparkOperator,
    is_ansi,
    mode_of,
    yes,
)
from eddyline.expressions.expression import Expression, Names, Types, type_of
from eddyline.expressions.program import (
    Errors,
    Operand,
    Program,
    Run,
    binary,
    true_mask,
    unary,
    without_errors,
)
from eddyline.expressions.value_types import is_floating, is_integer
from eddyline.expressions.vector import NO_ERRORS, ArithmeticFailure, ErrorCondition


class ArithmeticOperator(StrEnum):
    """Arithmetic on two values of one type, or, for NEGATE and ABSOLUTE, on one."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"
    NEGATE = "negate"
    ABSOLUTE = "abs"


UNARY: Final = frozenset({ArithmeticOperator.NEGATE, ArithmeticOperator.ABSOLUTE})
_DIVIDING: Final = frozenset({ArithmeticOperator.DIVIDE, ArithmeticOperator.REMAINDER})
_SMALL_BITS: Final = 16  # Spark computes these in 32 bits and names their overflow differently
_MOST_DIGITS: Final = 38  # of a decimal, in Spark and in Arrow's decimal128


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """Arithmetic in ``type``.

    ``ansi`` says what happens on overflow and on division by zero: True raises,
    False wraps around or gives NULL, as Spark's ``spark.sql.ansi.enabled``.
    """

    operator: ArithmeticOperator
    operands: tuple[Expression, ...]
    type: pa.DataType
    ansi: bool

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operands."""
        return self.operands

    def fault(self, types: Types) -> str | None:
        """Refuse operands whose result is not Spark's."""
        if len(types) != (1 if self.operator in UNARY else 2):
            return f"{self.operator} of {len(types)} operands"
        computed = arithmetic_type(self.operator, types)
        if computed is not None and computed == self.type:
            return None
        return f"{self.operator} of {', '.join(map(str, types))} as {self.type}"

    @property
    def may_fail(self) -> bool:
        """Whether the mode matters, and says so."""
        return self.ansi and _needs_a_mode(self.operator, self.type)

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the computation."""
        operator, ansi = self.operator, self.ansi
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
                right,
                left,
                lambda divisor, dividend: _divided(operator, dividend, divisor, ansi=ansi),
            )
        if checked:
            return binary(left, right, lambda first, second: _checked(operator, first, second))
        return binary(left, right, without_errors(_WRAPPING[operator]))

    def text(self, names: Names) -> str:
        """Return the operator between the operands, or before the one."""
        if self.operator is ArithmeticOperator.ABSOLUTE:
            return f"abs({self.operands[0].text(names)})"
        parts = [operand.part(names) for operand in self.operands]
        if self.operator is ArithmeticOperator.NEGATE:
            return f"-{parts[0]}"
        return "(" + f" {self.operator} ".join(parts) + ")"


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


def _needs_a_mode(operator: ArithmeticOperator, result: pa.DataType) -> bool:
    """Whether an operator has no result of its type for some values."""
    return operator in _DIVIDING or is_integer(result)


# ---------------------------------------------------------------- over vectors

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


# ---------------------------------------------------------------- overflow

Integers = npt.NDArray[Any]


def overflows(
    operator: ArithmeticOperator, left: Integers, right: Integers, wrapped: Integers
) -> npt.NDArray[np.bool_]:
    """Return where ``left operator right`` is not ``wrapped``, its result modulo the width.

    All three are of one signed integer type; the operator is ADD, SUBTRACT or MULTIPLY.
    """
    if operator is ArithmeticOperator.ADD:
        return np.asarray(((wrapped ^ left) & (wrapped ^ right)) < 0)
    if operator is ArithmeticOperator.SUBTRACT:
        return np.asarray(((left ^ right) & (wrapped ^ left)) < 0)
    lowest = np.iinfo(wrapped.dtype).min
    # A wrapped product is off by a multiple of 2^width, which dividing by a factor
    # shows, except for lowest * -1: there the division itself wraps around.
    divisor = np.where(left == 0, 1, left)
    with np.errstate(over="ignore"):
        differs = (left != 0) & (wrapped // divisor != right)
    negated_lowest = ((left == -1) & (right == lowest)) | ((left == lowest) & (right == -1))
    return np.asarray(differs | negated_lowest)


def overflows_alone(operand: Integers) -> npt.NDArray[np.bool_]:
    """Return where the negative or the absolute value of an integer does not fit its width."""
    return np.asarray(operand == np.iinfo(operand.dtype).min)


# ---------------------------------------------------------------- of Spark's expressions


def _arithmetic(operator: ArithmeticOperator) -> Recipe:
    def build(given: Ingredients) -> Expression:
        operands = given.operands()
        types = tuple(map(type_of, operands))
        result = arithmetic_type(operator, types)
        if result is None:
            raise NotTranslatedError(f"{operator} of {', '.join(map(str, types))}")
        ansi = _needs_a_mode(operator, result) and _raises(given, operator)
        return Arithmetic(operator, operands, result, ansi)

    return build


def _raises(given: Ingredients, operator: ArithmeticOperator) -> bool:
    """Whether arithmetic raises where it has no result."""
    mode = mode_of(given)
    if mode is EvaluationMode.TRY and operator not in _DIVIDING:
        raise NotTranslatedError(f"try_{given.name.lower()} of integers")
    return mode is EvaluationMode.ANSI  # division by zero is NULL in the other two


# Overflow is an infinity in floating point.
_SAFE_ON_FLOATS: Final = frozenset({"Abs", "Add", "Multiply", "Subtract", "UnaryMinus"})
# A remainder always fits, and so does a quotient of whole numbers, except one by -1.
_SAFE_BY_CONSTANTS: Final = frozenset({"Remainder", "Pmod", "IntegralDivide"})


def _may_raise(node: SparkOperator) -> bool:
    on_floats = node.name in _SAFE_ON_FLOATS or (
        node.name == "Divide" and _divides_by_a_constant(node)
    )
    if on_floats and node.kind in FLOATS:
        return False
    if node.name in _SAFE_BY_CONSTANTS and _divides_by_a_constant(node):
        return False
    return is_ansi(node)


def _divides_by_a_constant(node: SparkOperator) -> bool:
    """Whether the divisor is a constant by which every number can be divided."""
    value = node.constant(1)
    try:
        return value is not None and float(value) not in {0.0, -1.0}
    except ValueError:
        return False


def _class(
    name: str,
    operator: ArithmeticOperator | None = None,
    condition: ErrorCondition = ErrorCondition.ARITHMETIC_OVERFLOW,
) -> CatalystClass:
    recipe = None if operator is None else _arithmetic(operator)
    return CatalystClass(name, recipe, _may_raise, is_strict=yes, condition=lambda _: condition)


CATALYST: Final = (
    _class("Abs", ArithmeticOperator.ABSOLUTE),
    _class("Add", ArithmeticOperator.ADD),
    _class("Divide", ArithmeticOperator.DIVIDE, ErrorCondition.DIVIDE_BY_ZERO),
    _class("IntegralDivide", condition=ErrorCondition.DIVIDE_BY_ZERO),
    _class("Multiply", ArithmeticOperator.MULTIPLY),
    _class("Pmod", condition=ErrorCondition.REMAINDER_BY_ZERO),
    _class("Remainder", ArithmeticOperator.REMAINDER, ErrorCondition.REMAINDER_BY_ZERO),
    _class("Subtract", ArithmeticOperator.SUBTRACT),
    _class("UnaryMinus", ArithmeticOperator.NEGATE),
)
