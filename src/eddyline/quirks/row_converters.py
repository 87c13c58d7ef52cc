"""PySpark's own converters between values of Arrow's and those that a user's function sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from eddyline.quirks.pyspark_at_hand import MINOR

Converter: TypeAlias = Callable[[Any], Any] | None
"""Converts a value; None where each stays as it is."""

_ROWS, _VALUES = None, None
if MINOR >= (4, 0):
    from pyspark.sql.conversion import ArrowTableToRowsConversion, LocalDataToArrowConversion

    _ROWS, _VALUES = ArrowTableToRowsConversion, LocalDataToArrowConversion

to_pylist: Final[Callable[[pa.Array], list[Any]]] = getattr(
    _ROWS,
    "_to_pylist",  # quicker on nested columns while pyarrow is older than 25.0.1
    pa.Array.to_pylist,
)


def to_python(kind: DataType, *, binary_as_bytes: bool) -> Converter:
    """Return what makes Python's value of one of Arrow's, in ``to_pylist``'s form."""
    rows: Any = _ROWS
    if MINOR < (4, 0):
        return _to_python(kind)
    if MINOR >= (4, 1):
        made: Converter = rows._create_converter(  # noqa: SLF001 - no public way
            kind, none_on_identity=True, binary_as_bytes=binary_as_bytes
        )
        return made
    if not rows._need_converter(kind):  # noqa: SLF001 - likewise
        return None
    convert: Converter = rows._create_converter(kind)  # noqa: SLF001 - likewise
    return convert


def to_arrow(kind: DataType, *, integers_as_decimals: bool) -> Converter:
    """Return what makes of Python's value one that Arrow takes."""
    values: Any = _VALUES
    if MINOR < (4, 0):
        return _to_arrow(kind)
    if MINOR >= (4, 1):
        made: Converter = values._create_converter(  # noqa: SLF001 - no public way
            kind, none_on_identity=True, int_to_decimal_coercion_enabled=integers_as_decimals
        )
        return made
    if not values._need_converter(kind, True):  # noqa: FBT003, SLF001 - likewise
        return None
    convert: Converter = values._create_converter(kind)  # noqa: SLF001 - likewise
    return convert


# PySpark 3.5 has such converters for Spark Connect only, behind a package that few have (grpc).


def _or_none(convert: Callable[[Any], Any]) -> Converter:
    return lambda value: None if value is None else convert(value)


def _each(convert: Converter) -> Callable[[Any], Any]:
    return (lambda value: value) if convert is None else convert


def _to_python(kind: DataType) -> Converter:
    """Return what does as later versions do."""
    if isinstance(kind, StructType):
        names = kind.names
        parts = [_each(_to_python(field.dataType)) for field in kind.fields]

        def row(value: dict[str, Any]) -> Row:
            made = Row(*(part(value[name]) for part, name in zip(parts, names, strict=True)))
            made.__fields__ = names
            return made

        return _or_none(row)
    if isinstance(kind, ArrayType):
        element = _to_python(kind.elementType)
        return None if element is None else _or_none(lambda value: [element(v) for v in value])
    if isinstance(kind, MapType):
        key, held = _each(_to_python(kind.keyType)), _each(_to_python(kind.valueType))
        return _or_none(lambda value: {key(k): held(v) for k, v in value})
    if isinstance(kind, BinaryType):
        return _or_none(bytearray)
    if isinstance(kind, TimestampType):
        return _or_none(lambda value: value.astimezone().replace(tzinfo=None))
    return None


def _to_arrow(kind: DataType) -> Converter:
    if isinstance(kind, StructType):
        return _or_none(_struct_to_arrow(kind))
    if isinstance(kind, ArrayType):
        element = _each(_to_arrow(kind.elementType))
        return _or_none(lambda value: [element(v) for v in value])
    if isinstance(kind, MapType):
        key, held = _each(_to_arrow(kind.keyType)), _each(_to_arrow(kind.valueType))
        return _or_none(lambda value: [(key(k), held(v)) for k, v in value.items()])
    convert = _FLAT_TO_ARROW.get(type(kind))
    return None if convert is None else _or_none(convert)


_FLAT_TO_ARROW: Final[Mapping[type[DataType], Callable[[Any], Any]]] = {
    BinaryType: bytes,
    DecimalType: lambda value: None if value.is_nan() else value,
    StringType: lambda value: str(value).lower() if isinstance(value, bool) else str(value),
    TimestampType: lambda value: value.astimezone(UTC),
}


def _struct_to_arrow(kind: StructType) -> Callable[[Any], Any]:
    names = kind.names
    parts = [_each(_to_arrow(field.dataType)) for field in kind.fields]

    def struct(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a row, a tuple, a dict, an object
        if not isinstance(value, tuple) and hasattr(value, "__dict__"):
            value = value.__dict__
        given = map(value.get, names) if isinstance(value, dict) else value
        return {name: part(v) for name, part, v in zip(names, parts, given, strict=True)}

    return struct
