"""Constants as Connect sends them, and the types in which Spark compares and computes with them."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

import pyarrow as pa

from eddyline import expressions as ex
from eddyline.blocks.column_types import arrow_type
from eddyline.blocks.decline import not_understood
from eddyline.connect.messages import Expression

LITERALS: Final = {
    "boolean": '"boolean"',
    "byte": '"byte"',
    "short": '"short"',
    "integer": '"integer"',
    "long": '"long"',
    "float": '"float"',
    "double": '"double"',
    "string": '"string"',
    "binary": '"binary"',
    "date": '"date"',
    "timestamp": '"timestamp"',
    "timestamp_ntz": '"timestamp_ntz"',
}
"""Kinds of literals whose type says itself, with Spark's type as JSON."""

_EXACT_IN_DOUBLE: Final = 1 << 53
"""Whole numbers below that, and above its negative, are doubles as they are."""


def widened(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type in which Spark computes with two numbers, where that loses nothing unseen.

    Of whole numbers it is the wider one; with a double it is a double. What Spark makes of a float
    and a whole number depends on its mode.
    """
    if left == right:
        return left
    whole = [kind for kind in (left, right) if ex.is_integer(kind)]
    if len(whole) == 2:  # noqa: PLR2004 - both
        return max(whole, key=lambda kind: int(kind.bit_width))
    if pa.float64() in (left, right) and all(
        ex.is_integer(kind) or ex.is_floating(kind) for kind in (left, right)
    ):
        return pa.float64()
    raise not_understood(f"{left} beside {right}")


def as_type(operand: ex.Expression, kind: pa.DataType) -> ex.Expression:
    """Return an operand in a type that it can be widened to."""
    if ex.type_of(operand) == kind:
        return operand
    if isinstance(operand, ex.Literal) and (made := same_constant(operand, kind)):
        return made
    return ex.Cast(operand, kind, ansi=True)


def one_type(values: Sequence[ex.Expression]) -> pa.DataType:
    """Return the type of values, one of which is no constant; DeclinedError where they differ."""
    kinds = [ex.type_of(value) for value in values if not isinstance(value, ex.Literal)]
    kind = kinds[0] if kinds else ex.type_of(values[0])
    if any(other != kind for other in kinds):
        raise not_understood(f"a choice among values of several types, {kind} being one")
    return kind


def constant_or_same(value: ex.Expression, kind: pa.DataType) -> ex.Expression:
    """Return a value of a choice of a type; DeclinedError for a constant of another one."""
    if not isinstance(value, ex.Literal) or value.type == kind:
        return value
    # A wider constant would widen the others.
    if value.value is None:
        return ex.Literal(None, kind)
    raise not_understood(f"a choice of {value.type} beside {kind}")


def constant(option: ex.Expression, kind: pa.DataType) -> ex.Expression:
    """Return an option of IN in the type that is searched for it; DeclinedError for none."""
    made = same_constant(option, kind) if isinstance(option, ex.Literal) else None
    if made is None:
        raise not_understood(f"IN of {kind} among {ex.type_of(option)}")
    return made


def same_constant(literal: ex.Literal, kind: pa.DataType) -> ex.Literal | None:
    """Return a constant in another type in which it has the same value; None where it has none."""
    value, own = literal.value, literal.type
    if own == kind:
        return literal
    whole = isinstance(value, int) and ex.is_integer(own)
    same: object = None
    if pa.types.is_decimal128(kind) and (whole or isinstance(value, Decimal)):
        same = _same_decimal(Decimal(str(value)), kind)
    elif whole and ex.is_integer(kind):
        most = 1 << (int(kind.bit_width) - 1)
        same = value if -most <= int(str(value)) < most else None
    elif whole and pa.types.is_float64(kind):
        exact = abs(int(str(value))) < _EXACT_IN_DOUBLE
        same = float(str(value)) if exact else None
    elif pa.types.is_float64(kind) and pa.types.is_float32(own):
        same = value
    return None if same is None else ex.Literal(same, kind)


def _same_decimal(value: Decimal, kind: pa.DataType) -> Decimal | None:
    try:
        scaled = value.quantize(Decimal(1).scaleb(-kind.scale))
    except InvalidOperation:
        return None
    fits = scaled == value and len(scaled.as_tuple().digits) <= kind.precision
    return scaled if fits else None


def own_literal(expression: Expression, time_zone: str) -> ex.Literal:
    """Return a constant in its own type."""
    literal = expression.literal
    kind = literal.WhichOneof("literal_type")
    if kind == "decimal":
        value = Decimal(literal.decimal.value)
        sign, digits, exponent = value.as_tuple()
        del sign
        if not isinstance(exponent, int):
            raise not_understood("a decimal that is no number")
        scale = max(-exponent, 0)
        return ex.Literal(value, pa.decimal128(max(len(digits), scale, 1), scale))
    if kind is None or kind not in LITERALS:
        raise not_understood(f"a constant of the kind {kind}")
    found: object = getattr(literal, kind)
    if kind == "date":
        found = dt.date(1970, 1, 1) + dt.timedelta(days=literal.date)
    return ex.Literal(found, arrow_type(LITERALS[kind], time_zone))


_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def day(expression: Expression) -> dt.date | None:
    """Return the day that a constant text stands for; None for another expression."""
    cast = expression.cast
    to_date = cast.type.HasField("date") or cast.type_str.lower() == "date"
    if not to_date or not cast.expr.literal.HasField("string"):
        return None
    text = cast.expr.literal.string
    with contextlib.suppress(ValueError):  # then it is Spark's matter
        return dt.date.fromisoformat(text) if _DAY.fullmatch(text) else None
    return None


def constant_text(expression: Expression) -> str:
    """Return a text that an expression stands for; DeclinedError where it is no constant."""
    if not expression.HasField("literal") or not expression.literal.HasField("string"):
        raise not_understood("a pattern that is not constant")
    return expression.literal.string
