"""What the JVM makes of values that a plain function returned in pickled rows.

Spark's ``EvaluatePython`` takes what fits the declared type, bends what nearly
fits, and makes NULL of everything else. Here the same is done in Python, with
values that pyarrow then takes for the declared type: numbers for dates and
times, pairs for maps, tuples for structs.
"""

from __future__ import annotations

import datetime as dt
import re
from array import array
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from types import NoneType
from typing import Any, Final, TypeAlias

from pyspark.sql import types

from eddyline.errors import EddylineError

Value: TypeAlias = Any
"""Whatever a user's function returns, and what becomes of it."""

Converter = Callable[[Value], Value]


class ResultNotTransferableError(EddylineError, TypeError):
    """A function returned what Spark cannot take from a pickled row, so Spark fails too."""


def jvm_converter(kind: types.DataType) -> Converter:
    """Return what turns a value into the JVM's for a declared type: itself, its like, or None.

    The value must have been through ``kind.toInternal``. The converter raises
    where Spark fails, :class:`ResultNotTransferableError` for a value that
    cannot even be sent.
    """
    match kind:
        case types.ArrayType():
            return _array(jvm_converter(kind.elementType))
        case types.MapType():
            return _map(jvm_converter(kind.keyType), jvm_converter(kind.valueType))
        case types.StructType():
            return _struct([jvm_converter(field.dataType) for field in kind.fields])
        case types.DecimalType():
            return _decimal(kind)
    return _ATOMIC.get(type(kind), _null)


def _null(value: Value) -> Value:
    """Return None for a value that does not fit the declared type."""
    _require_transferable(value)
    return None


def _require_transferable(value: Value) -> None:
    kind = type(value)
    if kind in {list, tuple, set, frozenset}:
        for item in value:
            _require_transferable(item)
    elif kind is dict:
        for key, item in value.items():
            _require_transferable(key)
            _require_transferable(item)
    elif kind not in _TRANSFERABLE or getattr(value, "tzinfo", None) is not None:
        raise ResultNotTransferableError(
            f"The function returned {value!r} of {kind.__module__}.{kind.__qualname__}, which "
            "Spark cannot take over from a plain Python function. Return a plain Python value: "
            "for example value.item() for a NumPy number."
        )


_TRANSFERABLE: Final = frozenset(
    {
        NoneType,
        array,
        bool,
        bytearray,
        bytes,
        complex,
        dt.date,
        dt.datetime,
        dt.time,
        dt.timedelta,
        Decimal,
        float,
        int,
        str,
    }
)


def _integer(bits: int) -> Converter:
    half = 1 << bits - 1

    def convert(value: Value) -> Value:
        if type(value) is not int:
            return _null(value)
        if -half <= value < half:
            return value
        if not -(1 << 63) <= value < 1 << 63:
            return None
        return (value + half) % (2 * half) - half  # the JVM cuts a long down to the lower bits

    return convert


def _float(value: Value) -> Value:
    if type(value) is float:
        return value
    if type(value) is Decimal and value.is_nan():
        return float("nan")
    return _null(value)


def _decimal(kind: types.DecimalType) -> Converter:
    unit = Decimal(1).scaleb(-kind.scale)
    context = Context(prec=kind.precision + 1, rounding=ROUND_HALF_UP)  # 9.99 may become 10.0

    def convert(value: Value) -> Value:
        if type(value) is not Decimal or value.is_nan():
            return _null(value)
        if value.is_infinite():
            raise ResultNotTransferableError(
                "The function returned an infinite Decimal, which no SQL decimal can hold. "
                "Return None for it, or declare the function to return double."
            )
        if not value or value.adjusted() < kind.precision - kind.scale:
            rounded = value.quantize(unit, context=context)
            if len(rounded.as_tuple().digits) <= kind.precision:
                return rounded
        raise ArithmeticError(
            f"[NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION] {value}, rounded half up, cannot be "
            f"represented as Decimal({kind.precision}, {kind.scale})."
        )

    return convert


def _binary(value: Value) -> Value:
    if type(value) is str:
        return _without_surrogates(value).encode()
    if type(value) in {bytes, bytearray}:
        return bytes(value)
    return _null(value)


def _array(convert_element: Converter) -> Converter:
    def convert(value: Value) -> Value:
        if type(value) in {bytearray, bytes}:
            value = memoryview(value).cast("b")  # Java's bytes have a sign
        elif type(value) not in {array, list, tuple}:
            return _null(value)
        return [convert_element(element) for element in value]

    return convert


def _map(convert_key: Converter, convert_value: Converter) -> Converter:
    def convert(value: Value) -> Value:
        if type(value) is dict:
            return [(convert_key(key), convert_value(item)) for key, item in value.items()]
        return _null(value)

    return convert


def _struct(convert_fields: list[Converter]) -> Converter:
    def convert(value: Value) -> Value:
        if type(value) is not tuple:
            return _null(value)
        if len(value) != len(convert_fields):
            raise ValueError(
                "[STRUCT_ARRAY_LENGTH_MISMATCH] Input row doesn't have expected number of values "
                f"required by the schema. {len(convert_fields)} fields are required while "
                f"{len(value)} values are provided."
            )
        return tuple(
            convert_field(item) for convert_field, item in zip(convert_fields, value, strict=True)
        )

    return convert


def _boolean(value: Value) -> Value:
    return value if type(value) is bool else _null(value)


def _java_text(value: Value) -> Value:
    """Return ``toString()`` of what a value is in the JVM."""
    if value is None:
        return None
    if type(value) is str:
        return _without_surrogates(value)
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int or (type(value) is Decimal and value.is_finite()):
        return str(value)
    if type(value) is float or (type(value) is Decimal and value.is_nan()):
        return _java_float_text(float(value))
    if type(value) is list:
        parts = map(_java_text, value)
        return f"[{', '.join('null' if part is None else part for part in parts)}]"
    _require_transferable(value)
    kind = type(value)
    raise ResultNotTransferableError(
        f"The function is declared to return string but returned a {kind.__qualname__}, of which "
        "Spark makes a text of Java's with no fixed form. Return str(value), or declare the "
        "function's real return type."
    )


def _without_surrogates(text: str) -> str:
    """Return a text as the JVM unpickles it, to which surrogates are malformed."""
    return text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def _java_float_text(value: float) -> str:
    if value != value:  # noqa: PLR0124 - NaN
        return "NaN"
    if value in {float("inf"), float("-inf")}:
        return "Infinity" if value > 0 else "-Infinity"
    shortest = Decimal(repr(value))
    if value == 0 or 1e-3 <= abs(value) < 1e7:  # noqa: PLR2004 - where Java's exponent begins
        text = f"{shortest:f}"
        return text if "." in text else f"{text}.0"
    sign, digits, _ = shortest.as_tuple()
    significant = "".join(map(str, digits)).rstrip("0")
    rest = significant[1:] or "0"
    return f"{'-' if sign else ''}{significant[0]}.{rest}E{shortest.adjusted()}"


_ATOMIC: Final[dict[type[types.DataType], Converter]] = {
    types.BooleanType: _boolean,
    types.ByteType: _integer(8),
    types.ShortType: _integer(16),
    types.IntegerType: _integer(32),
    types.LongType: _integer(64),
    types.DateType: _integer(32),  # days
    types.TimestampType: _integer(64),  # microseconds
    types.TimestampNTZType: _integer(64),
    types.DayTimeIntervalType: _integer(64),
    types.FloatType: _float,
    types.DoubleType: _float,
    types.StringType: _java_text,
    types.BinaryType: _binary,
}
