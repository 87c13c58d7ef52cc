"""The casts that are computed exactly as Spark computes them, and no others.

Left to Spark are those that read or write text other than integers and
booleans, those that need a time zone, and those that round decimals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions.catalyst_classes import (
    FLOATS,
    NUMBERS,
    CatalystClass,
    EvaluationMode,
    Ingredients,
    NotTranslatedError,
    SparkOperator,
    is_ansi,
    mode_of,
    yes,
)
from eddyline.expressions.expression import Expression, Names, OfOne, Types, type_of
from eddyline.expressions.program import Errors, Program, Run, UnaryKernel, unary
from eddyline.expressions.value_types import is_floating, is_integer, is_text
from eddyline.expressions.vector import NO_ERRORS, ArithmeticFailure, ErrorCondition

_INT_BITS = 32
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}  # decimal digits of a signed integer, by its width


@dataclass(frozen=True, slots=True)
class Cast(OfOne):
    """CAST to ``type``; what does not fit raises with ``ansi``, and is NULL or cut without it."""

    type: pa.DataType
    ansi: bool

    def fault(self, types: Types) -> str | None:
        """Refuse a cast that is not computed here."""
        (source,), target = types, self.type
        if source == target or cast_never_fails(source, target):
            return None
        if is_integer(target) and (is_integer(source) or is_floating(source)):
            return None
        return f"cast of {source} to {target}"

    @property
    def may_fail(self) -> bool:
        """Whether some value does not fit, and the mode makes that raise."""
        return self.ansi and not cast_never_fails(type_of(self.operand), self.type)

    def run(self, operands: tuple[Program, ...]) -> Run:
        """Return the cast."""
        (operand,), target, ansi = operands, self.type, self.ansi
        source = operand.type
        if source == target:
            return operand.run
        unknown = pa.types.is_null(source)  # is NULL in any type
        if is_integer(target) and not unknown:
            if is_floating(source):
                return unary(operand, _truncation(target, ansi=ansi))
            if ansi and not cast_never_fails(source, target):
                return unary(operand, lambda values: _narrowed(values, target))
        if pa.types.is_boolean(target) and not unknown:
            zero = pa.scalar(0, source)
            return unary(operand, lambda values: (pc.not_equal(values, zero), NO_ERRORS))
        if pa.types.is_decimal128(source) and pa.types.is_float64(target):
            # By way of text, which rounds to the nearest double as Spark does; Arrow's
            # direct cast multiplies by an inexact power of ten.
            return unary(
                operand, lambda values: (pc.cast(pc.cast(values, pa.string()), target), NO_ERRORS)
            )
        return unary(operand, lambda values: (pc.cast(values, target, safe=False), NO_ERRORS))

    def text(self, names: Names) -> str:
        """Return the cast."""
        return f"CAST({self.operand.text(names)} AS {self.type})"


def cast_never_fails(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether a cast is computed here and has a result for every value in every mode."""
    if source == target or pa.types.is_null(source):
        return True
    if is_integer(source):
        return (
            is_floating(target)
            or pa.types.is_boolean(target)
            or is_text(target)
            or (is_integer(target) and source.bit_width <= target.bit_width)
            or (
                pa.types.is_decimal128(target)
                and target.precision - target.scale >= _DIGITS[source.bit_width]
            )
        )
    if pa.types.is_boolean(source):
        return is_integer(target) or is_floating(target) or is_text(target)
    if is_floating(source):
        return is_floating(target) or pa.types.is_boolean(target)
    if pa.types.is_decimal128(source):
        return bool(pa.types.is_float64(target)) or (
            pa.types.is_decimal128(target)
            and 0 <= source.scale <= target.scale
            and source.precision - source.scale <= target.precision - target.scale
        )
    return False


# ---------------------------------------------------------------- over vectors


def _narrowed(values: pa.Array, target: pa.DataType) -> tuple[pa.Array, Errors]:
    """Cast integers to fewer bits; what does not fit fails."""
    try:
        return pc.cast(values, target), NO_ERRORS
    except pa.ArrowInvalid:
        wrapped = pc.cast(values, target, safe=False)
        failed = pc.not_equal(pc.cast(wrapped, values.type), values)
        return _failing(wrapped, values, failed)


def _truncation(target: pa.DataType, *, ansi: bool) -> UnaryKernel:
    """Return the kernel from floating point to integers, which drops the fraction.

    Out of ANSI mode Spark does as Java: the value is clamped to an int (a long
    for a long), NaN is 0, and of an int the low bits make a short or a byte.
    """
    bounds = np.iinfo(target.to_pandas_dtype())
    clamp = np.iinfo(np.int64 if target.bit_width > _INT_BITS else np.int32)

    def kernel(values: pa.Array) -> tuple[pa.Array, Errors]:
        null = values.is_null().to_numpy(zero_copy_only=False)
        filled = pc.fill_null(values, pa.scalar(0.0, values.type)) if null.any() else values
        numbers = filled.to_numpy().astype(np.float64)
        result = pa.array(_clamped(numbers, clamp).astype(bounds.dtype), target, mask=null)
        if not ansi:
            return result, NO_ERRORS
        # Spark compares with the bounds as doubles: 2^63 passes for a long, and is clamped.
        fits = (np.floor(numbers) <= float(bounds.max)) & (np.ceil(numbers) >= float(bounds.min))
        if fits.all():
            return result, NO_ERRORS
        return _failing(result, values, pa.array(~fits, mask=null))

    return kernel


def _clamped(numbers: npt.NDArray[np.float64], width: np.iinfo) -> npt.NDArray[np.int64]:
    """Truncate to the range of an integer type, NaN to 0."""
    high = numbers >= float(width.max)
    low = numbers <= float(width.min)
    within = ~(high | low | np.isnan(numbers))
    result = np.trunc(np.where(within, numbers, 0.0)).astype(np.int64)
    result[high] = width.max
    result[low] = width.min
    return result


def _failing(values: pa.Array, operand: pa.Array, failed: pa.Array) -> tuple[pa.Array, Errors]:
    """Return the values with NULL where the cast failed, and an error for each of those."""
    errors: dict[int, Exception] = {
        int(row): ArithmeticFailure(
            ErrorCondition.CAST_OVERFLOW,
            f"the value {operand[int(row)]} of type {operand.type} does not fit {values.type}",
        )
        for row in np.flatnonzero(pc.fill_null(failed, fill_value=False))
    }
    if not errors:
        return values, NO_ERRORS
    return pc.if_else(failed, pa.scalar(None, values.type), values), errors


# ---------------------------------------------------------------- of Spark's expressions


def _cast(given: Ingredients) -> Expression:
    operand = given.operand()
    target = given.declared_type()
    if type_of(operand) == target:
        return operand
    if cast_never_fails(type_of(operand), target):
        return Cast(operand, target, ansi=False)
    mode = mode_of(given)
    if mode is EvaluationMode.TRY:
        raise NotTranslatedError(f"try_cast to {target}")
    return Cast(operand, target, ansi=mode is EvaluationMode.ANSI)


_MOMENTS: Final = frozenset({'"timestamp"', '"timestamp_ntz"', '"date"'})


def _may_raise(node: SparkOperator) -> bool:
    return not _always_casts(node) and is_ansi(node)


def _always_casts(node: SparkOperator) -> bool:
    """Whether a cast has a result for every value in every mode, computed here or not."""
    if node.always_casts():
        return True
    source, target = node.operand_kind(0), node.kind
    if source.startswith('"decimal'):
        return target in FLOATS
    if target == '"boolean"':
        return source in NUMBERS
    return (
        (source in _MOMENTS and target in _MOMENTS)
        or (source == '"boolean"' and target in NUMBERS)
        or (source in NUMBERS and target in FLOATS)
    )


def _condition(node: SparkOperator) -> ErrorCondition:
    of_text = node.operand_kind(0) == '"string"'
    return ErrorCondition.CAST_INVALID_INPUT if of_text else ErrorCondition.CAST_OVERFLOW


CATALYST: Final = (CatalystClass("Cast", _cast, _may_raise, is_strict=yes, condition=_condition),)
