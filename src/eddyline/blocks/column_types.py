"""Spark's column types, as far as a block can carry them, and their Arrow types."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types
from pyspark.sql.pandas.types import to_arrow_type

from eddyline.expressions.value_types import relabelled

# Exactly these: subclasses (CHAR, VARCHAR) and the rest (user-defined types, VARIANT,
# intervals, NULL) are converted by Spark in ways of their own.
_ATOMIC: Final = frozenset(
    {
        types.BinaryType,
        types.BooleanType,
        types.ByteType,
        types.DateType,
        types.DecimalType,
        types.DoubleType,
        types.FloatType,
        types.IntegerType,
        types.LongType,
        types.ShortType,
        types.TimestampNTZType,
        types.TimestampType,
    }
)

VARIABLE: Final = 32
"""Bytes that a value of no fixed width counts as; Arrow needs some work for each of them."""


@lru_cache(maxsize=1_000)
def spark_type(text: str) -> types.DataType:
    """Return the type that its JSON (``DataType.json()``) describes; nobody may change it."""
    described = json.loads(text)
    wrapper = {"type": "struct", "fields": [_field(described)]}
    return types.StructType.fromJson(wrapper).fields[0].dataType


def _field(described: object) -> dict[str, object]:
    return {"name": "it", "type": described, "nullable": True, "metadata": {}}


def can_travel(text: str) -> bool:
    """Whether a block can carry values of a type, given as JSON.

    >>> can_travel('"long"'), can_travel('"decimal(10,2)"'), can_travel('"interval"')
    (True, True, False)
    """
    try:
        return _can_travel(spark_type(text))
    except (KeyError, TypeError, ValueError):  # what PySpark does not know either
        return False


def _can_travel(kind: types.DataType) -> bool:
    if isinstance(kind, types.ArrayType):
        return _can_travel(kind.elementType)
    if isinstance(kind, types.MapType):
        return _can_travel(kind.keyType) and _can_travel(kind.valueType)
    if isinstance(kind, types.StructType):
        names = kind.fieldNames()
        return len(names) == len(set(names)) and all(_can_travel(f.dataType) for f in kind.fields)
    if type(kind) is types.StringType:
        return kind == types.StringType()  # a collated string is not equal
    return type(kind) in _ATOMIC


def arrow_type(text: str, time_zone: str) -> pa.DataType:
    """Return the Arrow type in which Spark sends a column of a type, given as JSON.

    >>> arrow_type('"timestamp"', "Europe/Paris")
    TimestampType(timestamp[us, tz=Europe/Paris])
    """
    return arrow_type_of(spark_type(text), time_zone)


# PySpark 4.1 knows UTC only, later versions want a time zone.
_IN_UTC: Final[dict[str, Any]] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}
)


def arrow_type_of(kind: types.DataType, time_zone: str) -> pa.DataType:
    """Return the Arrow type in which Spark sends a column of a type."""
    return as_sent(to_arrow_type(kind, **_IN_UTC), time_zone)


def as_sent(a_type: pa.DataType, time_zone: str, *, large: bool = False) -> pa.DataType:
    """Return an Arrow type as Spark sends it in a time zone, with ``large`` texts and binaries.

    Likewise the types in it. A timestamp without a time zone stays without.

    >>> as_sent(pa.list_(pa.timestamp("us", tz="UTC")), "Europe/Paris")
    ListType(list<item: timestamp[us, tz=Europe/Paris]>)
    >>> as_sent(pa.string(), "UTC", large=True)
    DataType(large_string)
    """

    def inner(field: pa.Field) -> pa.Field:
        return field.with_type(as_sent(field.type, time_zone, large=large))

    if large and a_type in _LARGE:
        return _LARGE[a_type]
    if pa.types.is_timestamp(a_type) and a_type.tz is not None:
        return pa.timestamp(a_type.unit, tz=time_zone)
    if pa.types.is_list(a_type):
        return pa.list_(inner(a_type.value_field))
    if pa.types.is_map(a_type):
        return pa.map_(inner(a_type.key_field), inner(a_type.item_field))
    if pa.types.is_struct(a_type):
        return pa.struct([inner(field) for field in a_type.fields])
    return a_type


def arrays_as_sent(
    columns: Sequence[pa.Array], time_zone: str, *, large: bool = False
) -> list[pa.Array]:
    """Return columns in the Arrow types in which Spark sends them; see :func:`as_sent`."""
    return [relabelled(column, as_sent(column.type, time_zone, large=large)) for column in columns]


def returned_type(kind: types.DataType) -> pa.DataType:
    """Return the Arrow type that Spark's worker wants of a function declared to return a type.

    The time zone is always UTC there. Whatever differs the worker casts, and Arrow's cast
    refuses NULL in a field declared NOT NULL even where the struct around it is NULL itself.

    >>> returned_type(types.TimestampType())
    TimestampType(timestamp[us, tz=UTC])
    """
    return to_arrow_type(kind, **_IN_UTC)


_LARGE: Final = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def width(a_type: pa.DataType) -> int:
    """Return the bytes of a value, about."""
    try:
        return max(int(a_type.bit_width) // 8, 1)
    except ValueError:
        return VARIABLE
