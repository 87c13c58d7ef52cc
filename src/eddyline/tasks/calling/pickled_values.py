"""Values of plain functions whose rows travel pickled (``PICKLED``).

Spark converts such values three times: PySpark's types (``toInternal``) turn dates
and structs into numbers and tuples, the JVM's unpickler makes objects of Java's of
them, and Spark (``EvaluatePython``) takes what fits the declared type and makes NULL
of everything else. The second step is :mod:`eddyline.tasks.java`'s, the third
:mod:`eddyline.tasks.calling.jvm_values`'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types

from eddyline.blocks.column_types import arrow_type_of
from eddyline.blocks.filter_block import SessionSettings
from eddyline.expressions.strings import text_as_in_java
from eddyline.tasks.calling.arrow_values import arrow_reader
from eddyline.tasks.calling.jvm_values import jvm_converter
from eddyline.tasks.calling.row_function import Reader, call_rows, write_one_by_one
from eddyline.tasks.java import Transfer


class _LocalTimestamp(types.UserDefinedType):
    """Timestamps as numbers of microseconds; PySpark's own type makes them datetimes.

    By Arrow a timestamp becomes a datetime in another way, which forgets
    whether a local time that comes twice is the second one (``fold``).
    """

    @classmethod
    def sqlType(cls) -> types.DataType:  # noqa: N802 - PySpark's name
        return types.LongType()

    def deserialize(self, datum: Any) -> Any:  # noqa: ANN401 - PySpark's signature
        return types.TimestampType().fromInternal(datum)


class _JavaText(types.UserDefinedType):
    """Strings as bytes, read as the text that the JVM makes of them before it pickles."""

    @classmethod
    def sqlType(cls) -> types.DataType:  # noqa: N802 - PySpark's name
        return types.BinaryType()

    def deserialize(self, datum: Any) -> Any:  # noqa: ANN401 - PySpark's signature
        return text_as_in_java(bytes(datum))


Carried = Callable[[types.DataType], types.DataType]
"""Gives the type as which values of a type that holds no others are read."""


def pickled_reader(kind: types.DataType, *, binary_as_bytes: bool) -> Reader:
    """Return what turns a column into the Python values that come out of Spark's pickled rows."""
    read = _reader_by_way_of(_carried(kind, _with_numbers), kind, binary_as_bytes=binary_as_bytes)
    by_bytes = _carried(kind, _with_numbers_and_bytes)
    read_any = _reader_by_way_of(by_bytes, kind, binary_as_bytes=binary_as_bytes)

    def read_text(column: pa.Array) -> Sequence[Any]:
        try:
            return read(column)
        except UnicodeDecodeError:  # rare, and to read all by way of bytes takes longer
            return read_any(column)

    return read_text


def _reader_by_way_of(
    carried: types.DataType, kind: types.DataType, *, binary_as_bytes: bool
) -> Reader:
    """Return what reads a column of one type cast to another."""
    read = arrow_reader(carried, binary_as_bytes=binary_as_bytes)
    if carried == kind:
        return read
    stored = arrow_type_of(carried, "UTC")
    return lambda column: read(column.cast(stored))


def _with_numbers(kind: types.DataType) -> types.DataType:
    return _LocalTimestamp() if isinstance(kind, types.TimestampType) else kind


def _with_numbers_and_bytes(kind: types.DataType) -> types.DataType:
    return _JavaText() if isinstance(kind, types.StringType) else _with_numbers(kind)


def _carried(kind: types.DataType, of: Carried) -> types.DataType:
    if isinstance(kind, types.ArrayType):
        return types.ArrayType(_carried(kind.elementType, of), kind.containsNull)
    if isinstance(kind, types.MapType):
        return types.MapType(
            _carried(kind.keyType, of), _carried(kind.valueType, of), kind.valueContainsNull
        )
    if isinstance(kind, types.StructType):
        return types.StructType(
            [
                types.StructField(
                    field.name, _carried(field.dataType, of), field.nullable, field.metadata
                )
                for field in kind.fields
            ]
        )
    return of(kind)


class PickledWriter:
    """Results to a column as ``toInternal``, the JVM's unpickler and Spark convert them."""

    def __init__(self, kind: types.DataType, settings: SessionSettings) -> None:
        """Write results of a function declared to return ``kind``."""
        self.arrow_type = arrow_type_of(kind, settings.time_zone)
        convert = jvm_converter(kind, settings.java.version)
        send, to_internal = Transfer(settings.java), kind.toInternal
        self._convert: Callable[[Any], Any] = lambda value: convert(send(value))
        if kind.needConversion():
            self._convert = lambda value: convert(send(to_internal(value)))
        # A declared type's own values stay as they are; to look at the types takes
        # 30 ns a row, to convert each value 100 ns.
        self._own = _OWN_TYPES.get(type(kind), frozenset())

    def __call__(self, results: list[Any], errors: dict[int, Exception]) -> pa.Array:
        """Return the column; see :class:`~eddyline.tasks.calling.row_function.Writer`."""
        if self._own.issuperset(map(type, results)):
            try:
                return pa.array(results, type=self.arrow_type)
            except Exception:  # noqa: BLE001, S110 - e.g. an integer too large, which is cut below
                pass
        converted = call_rows(self._convert, [results], len(results), errors)
        try:
            return pa.array(converted, type=self.arrow_type)
        except Exception:  # noqa: BLE001 - e.g. a map with a NULL key
            return write_one_by_one(converted, errors, self._write_one, self.arrow_type)

    def _write_one(self, result: Any) -> pa.Array:  # noqa: ANN401 - anything may be returned
        return pa.array([result], type=self.arrow_type)


_OWN_TYPES: Final[dict[type[types.DataType], frozenset[type]]] = {
    types.BooleanType: frozenset({bool, NoneType}),
    types.ByteType: frozenset({int, NoneType}),
    types.ShortType: frozenset({int, NoneType}),
    types.IntegerType: frozenset({int, NoneType}),
    types.LongType: frozenset({int, NoneType}),
    types.FloatType: frozenset({float, NoneType}),
    types.DoubleType: frozenset({float, NoneType}),
    types.StringType: frozenset({str, NoneType}),
    types.BinaryType: frozenset({bytes, NoneType}),
}
