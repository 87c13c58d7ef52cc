"""Values of plain functions whose rows travel by Arrow (``ARROW_BATCHED``).

The Python values are those of PySpark's own converters. Columns of the common
flat types take a shorter way to the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import chain
from types import NoneType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import types

from eddyline.blocks.column_types import arrow_type_of
from eddyline.blocks.filter_block import SessionSettings
from eddyline.quirks.row_converters import to_arrow, to_pylist, to_python
from eddyline.tasks.calling.local_time import FIRST, LAST, instants_of, local_times
from eddyline.tasks.calling.row_function import Reader, call_rows, write_one_by_one

_NUMBERS: Final = (
    types.ByteType,
    types.ShortType,
    types.IntegerType,
    types.LongType,
    types.FloatType,
    types.DoubleType,
)
_TIMES: Final = (types.DateType, types.TimestampNTZType, types.DayTimeIntervalType)


def arrow_reader(kind: types.DataType, *, binary_as_bytes: bool) -> Reader:
    """Return what turns a column of a Spark type into Python values as Spark's worker does.

    Timestamps become naive datetimes in the local time zone of the process, as
    in Spark, whatever the session's time zone is.
    """
    convert = to_python(kind, binary_as_bytes=binary_as_bytes)

    def read(column: pa.Array) -> Sequence[Any]:
        values = to_pylist(column)
        return values if convert is None else [convert(value) for value in values]

    if isinstance(kind, types.ArrayType) and convert is not None:
        return _reader_of_lists(kind, read, binary_as_bytes=binary_as_bytes)
    if isinstance(kind, types.StructType):
        return _reader_of_rows(kind, read, binary_as_bytes=binary_as_bytes)
    if type(kind) is types.BinaryType and binary_as_bytes:
        return to_pylist  # PySpark's converter gives back what it is given, in 60 ns
    return _flat_reader(kind, read)


def _flat_reader(kind: types.DataType, read: Reader) -> Reader:
    """Return what reads a type that holds no others; ``read`` is PySpark's way."""
    if isinstance(kind, _NUMBERS):
        return lambda column: read(column) if column.null_count else column.to_numpy().tolist()
    if isinstance(kind, _TIMES):
        return lambda column: _times(column) or read(column)
    if isinstance(kind, types.TimestampType):
        return lambda column: local_times(column) or read(column)
    if isinstance(kind, types.DecimalType):  # 180 ns a value, with `to_pylist` 590
        return lambda column: list(column.to_numpy(zero_copy_only=False).tolist())
    return read


def _reader_of_lists(kind: types.ArrayType, read: Reader, *, binary_as_bytes: bool) -> Reader:
    """Return what reads all elements at once, and cuts them into lists; ``read`` is PySpark's way.

    Only for elements that PySpark converts one by one: others it reads as quickly.
    """
    read_elements = arrow_reader(kind.elementType, binary_as_bytes=binary_as_bytes)

    def read_lists(column: pa.Array) -> Sequence[Any]:
        if not pa.types.is_list(column.type):
            return read(column)
        elements = list(read_elements(column.flatten()))
        sizes = column.value_lengths().fill_null(0).to_numpy()
        ends = np.cumsum(sizes)
        lists: list[Any] = [
            elements[start:end]
            for start, end in zip((ends - sizes).tolist(), ends.tolist(), strict=True)
        ]
        for missing in np.flatnonzero(column.is_null()).tolist() if column.null_count else ():
            lists[missing] = None
        return lists

    return read_lists


def _reader_of_rows(kind: types.StructType, read: Reader, *, binary_as_bytes: bool) -> Reader:
    """Return what reads structs field by field, 300 ns a row of two; PySpark's way takes 1,600."""
    names = kind.names
    readers = [arrow_reader(each.dataType, binary_as_bytes=binary_as_bytes) for each in kind.fields]
    simple = bool(names) and len(names) == len(set(names))

    def read_rows(column: pa.Array) -> Sequence[Any]:
        if not simple or [field.name for field in column.type] != names:
            return read(column)
        # Flattened, a field is NULL where its struct is: what stands there otherwise is not read.
        fields = [read(part) for read, part in zip(readers, column.flatten(), strict=True)]
        rows: list[Any] = [tuple.__new__(types.Row, values) for values in zip(*fields, strict=True)]
        for row in rows:
            row.__fields__ = names
        for missing in np.flatnonzero(column.is_null()).tolist() if column.null_count else ():
            rows[missing] = None
        return rows

    return read_rows


def _times(column: pa.Array) -> list[Any] | None:
    """Return dates, naive datetimes or timedeltas; None if some are beyond Python's.

    NumPy's `tolist` makes a date in 30 ns, pyarrow's `to_pylist` in 1,300 ns.
    """
    times = column.to_numpy(zero_copy_only=False)
    nulls = np.isnat(times)  # become None in the list
    if np.count_nonzero(nulls) > column.null_count:  # the smallest number is no NULL to Spark
        return None
    if times.dtype.kind == "M":
        first, last = FIRST.astype(times.dtype), LAST.astype(times.dtype)
        if not (nulls | ((times >= first) & (times <= last))).all():
            return None
    return list(times.tolist())


class ArrowWriter:
    """Results to a column, with PySpark's converter and Arrow's own checks.

    Spark falls back from Arrow's strict conversion to a cast for a whole batch
    at once. Here a row's value decides alone, so the answer does not depend on
    which rows happen to share a batch: where Spark refuses a batch of mixed
    types, the rows that convert by themselves do.
    """

    def __init__(self, kind: types.DataType, settings: SessionSettings) -> None:
        """Write results of a function declared to return ``kind``."""
        self.arrow_type = arrow_type_of(kind, settings.time_zone)
        self._safe = settings.safe_arrow_conversion
        self._convert = to_arrow(kind, integers_as_decimals=settings.int_to_decimal_coercion)
        self._as_they_are = _AS_THEY_ARE.get(type(kind), frozenset())
        self._quick = _quick_writer(kind, settings)

    def __call__(self, results: list[Any], errors: dict[int, Exception]) -> pa.Array:
        """Return the column; see :class:`~eddyline.tasks.calling.row_function.Writer`."""
        if self._quick is not None and results:
            try:
                column = self._quick(results)
            except Exception:  # noqa: BLE001 - whatever it is comes up again below, by row
                column = None
            if column is not None:
                return column
        # Looking at the types takes 30 ns a row, the converter 70 ns.
        if self._convert is not None and not self._as_they_are.issuperset(map(type, results)):
            results = call_rows(self._convert, [results], len(results), errors)
        try:
            return pa.array(results, type=self.arrow_type)
        except Exception as error:  # noqa: BLE001 - of many classes; each row is looked at below
            if isinstance(error, pa.ArrowInvalid) and len({*map(type, results)} - {NoneType}) == 1:
                try:
                    return self._cast(results)
                except Exception:  # noqa: BLE001, S110 - likewise
                    pass
        return write_one_by_one(results, errors, self._write_one, self.arrow_type)

    def _cast(self, results: list[Any]) -> pa.Array:
        return pa.array(results).cast(target_type=self.arrow_type, safe=self._safe)

    def _write_one(self, result: Any) -> pa.Array:  # noqa: ANN401 - anything may be returned
        try:
            return pa.array([result], type=self.arrow_type)
        except pa.ArrowInvalid:
            return self._cast([result])


_AS_THEY_ARE: Final[dict[type[types.DataType], frozenset[type]]] = {
    types.StringType: frozenset({str, NoneType}),
    types.BinaryType: frozenset({bytes, NoneType}),
}
"""What PySpark's converter gives back unchanged."""

_Quick = Callable[[Sequence[Any]], "pa.Array | None"]
"""Writes results of the expected types only: else it returns None, or raises."""


def _quick_writer(kind: types.DataType, settings: SessionSettings) -> _Quick | None:
    """Return what writes usual results as PySpark's converter would; None where that is quick."""
    stored = arrow_type_of(kind, settings.time_zone)
    if isinstance(kind, types.TimestampType):
        return lambda results: instants_of(results, stored)
    if isinstance(kind, types.DecimalType):
        # Arrow refuses what PySpark would round, and what is no number: 160 ns, not 500.
        return lambda results: _if_all(_DECIMALS, results, results, stored)
    if isinstance(kind, types.ArrayType):
        unchanged = _AS_THEY_ARE.get(type(kind.elementType), frozenset())
        if kind.containsNull and unchanged:
            return lambda results: _lists_of(unchanged, results, stored)
    if isinstance(kind, types.StructType) and kind.fields:
        return _row_writer(kind, settings)
    return None


_DECIMALS: Final[frozenset[type]] = frozenset({Decimal, NoneType})
_LISTS: Final[frozenset[type]] = frozenset({list, NoneType})
_ROWS: Final[frozenset[type]] = frozenset({tuple, types.Row, NoneType})


def _if_all(
    expected: frozenset[type],
    values: Iterable[Any],
    results: Sequence[Any],
    stored: pa.DataType,
) -> pa.Array | None:
    """Return results as they are if all values are of the expected types."""
    return pa.array(results, stored) if expected.issuperset(map(type, values)) else None


def _lists_of(
    expected: frozenset[type], results: Sequence[Any], stored: pa.DataType
) -> pa.Array | None:
    """Return lists as they are if all elements are of the expected types."""
    if not _LISTS.issuperset(map(type, results)):
        return None
    return _if_all(expected, chain.from_iterable(filter(None, results)), results, stored)


def _row_writer(kind: types.StructType, settings: SessionSettings) -> _Quick:
    """Return what writes rows and tuples field by field; 350 ns a row of two, not 1,100."""
    stored = arrow_type_of(kind, settings.time_zone)
    writers = [_field_writer(field, settings) for field in kind.fields]
    blank = (None,) * len(writers)

    def write(results: Sequence[Any]) -> pa.Array | None:
        found = set(map(type, results))
        if not found <= _ROWS:
            return None
        mask = None
        if NoneType in found:
            mask = pa.array([result is None for result in results])
            results = [blank if result is None else result for result in results]
        if set(map(len, results)) != {len(writers)}:
            return None
        columns = [
            write(values) for write, values in zip(writers, zip(*results, strict=True), strict=True)
        ]
        if any(column is None for column in columns):
            return None
        return pa.StructArray.from_arrays(columns, fields=list(stored), mask=mask)

    return write


def _field_writer(field: types.StructField, settings: SessionSettings) -> _Quick:
    """Return what writes the values of one field of rows."""
    kind = field.dataType
    stored = arrow_type_of(kind, settings.time_zone)
    quick = _quick_writer(kind, settings)
    unchanged = _AS_THEY_ARE.get(type(kind), frozenset())
    convert = to_arrow(kind, integers_as_decimals=settings.int_to_decimal_coercion)

    def write(values: Sequence[Any]) -> pa.Array | None:
        found = set(map(type, values))
        if not field.nullable and NoneType in found:
            return None
        column = None if quick is None else quick(values)
        if column is None and convert is not None and not found <= unchanged:
            values = [convert(value) for value in values]
        return pa.array(values, stored) if column is None else column

    return write
