"""What Spark makes of the JVM's values that a plain function returned in pickled rows.

Spark's ``EvaluatePython`` takes what fits the declared type, bends what nearly
fits, and makes NULL of everything else; every value has a text for a string.
Here the same is done with the values of :mod:`eddyline.tasks.java`; it
gives values that pyarrow then takes for the declared type: numbers for dates and
times, pairs for maps, tuples for structs.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

from pyspark.sql import types

from eddyline.tasks.java import JavaMap, PrimitiveArray, Single, Value, text_of
from eddyline.tasks.java.objects import without_surrogates

Converter = Callable[[Value], Any]


def jvm_converter(kind: types.DataType, version: int) -> Converter:
    """Return what turns a value of the JVM's into a declared type's: itself, its like, or None.

    ``version`` is Java's. The converter raises where Spark fails.
    """
    match kind:
        case types.ArrayType():
            return _array(_part(kind.elementType, version, nullable=kind.containsNull))
        case types.MapType():
            of_key, of_value = kind.keyType, kind.valueType
            of_item = _part(of_value, version, nullable=kind.valueContainsNull)
            return _map(_part(of_key, version, nullable=False), of_item)
        case types.StructType():
            fields = kind.fields
            return _struct([_part(f.dataType, version, nullable=f.nullable) for f in fields])
        case types.DecimalType():
            return _decimal(kind)
        case types.StringType():
            return lambda value: None if value is None else text_of(value, version)
    return _ATOMIC.get(type(kind), _null)


def _part(kind: types.DataType, version: int, *, nullable: bool) -> Converter:
    """Return the converter of a part of a value.

    Where a number that is never to be NULL is missing, the JVM reads its zero.
    """
    convert = jvm_converter(kind, version)
    zero = None if nullable else _ZEROS.get(type(kind))
    if zero is None:
        return convert

    def convert_or_zero(value: Value) -> Value:
        result = convert(value)
        return zero if result is None else result

    return convert_or_zero


def _null(_: Value) -> None:
    """Return None for a value that does not fit the declared type."""


def _integer(bits: int) -> Converter:
    half = 1 << bits - 1

    def convert(value: Value) -> Value:
        if type(value) is not int:
            return None
        if -half <= value < half:
            return value
        if not -(1 << 63) <= value < 1 << 63:
            return None
        return (value + half) % (2 * half) - half  # the JVM cuts a long down to the lower bits

    return convert


def _float(value: Value) -> Value:
    if type(value) is float:
        return value
    return value.value if type(value) is Single else None


def _decimal(kind: types.DecimalType) -> Converter:
    unit = Decimal(1).scaleb(-kind.scale)
    context = Context(prec=kind.precision + 1, rounding=ROUND_HALF_UP)  # 9.99 may become 10.0

    def convert(value: Value) -> Value:
        if type(value) is not Decimal:
            return None
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
        return without_surrogates(value).encode()
    return value if type(value) is bytes else None


def _array(convert_element: Converter) -> Converter:
    def convert(value: Value) -> Value:
        if type(value) is bytes:
            value = memoryview(value).cast("b")  # Java's bytes have a sign
        elif type(value) is PrimitiveArray:
            value = value.items
        elif type(value) not in {list, tuple}:
            return None
        return [convert_element(element) for element in value]

    return convert


def _map(convert_key: Converter, convert_value: Converter) -> Converter:
    def convert(value: Value) -> Value:
        if isinstance(value, JavaMap):
            return [(convert_key(key), convert_value(item)) for key, item in value.table]
        return None

    return convert


def _struct(convert_fields: list[Converter]) -> Converter:
    def convert(value: Value) -> Value:
        if type(value) is not tuple:
            return None
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
    return value if type(value) is bool else None


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
    types.BinaryType: _binary,
}

_ZEROS: Final[dict[type[types.DataType], Value]] = {
    types.BooleanType: False,
    **dict.fromkeys((types.FloatType, types.DoubleType), 0.0),
    **dict.fromkeys((types.ByteType, types.ShortType, types.IntegerType, types.LongType), 0),
    **dict.fromkeys((types.DateType, types.TimestampType, types.TimestampNTZType), 0),
    types.DayTimeIntervalType: 0,
}
