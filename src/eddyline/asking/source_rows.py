"""Rows as a source gives them, into columns of the table's types."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

import pyarrow as pa

from eddyline.asking.lookup_source import Key, LookedUpTable, NoAnswerError
from eddyline.errors import LookupFailedError

Conversion: TypeAlias = Callable[[Any], object]
"""Of a value, which is not NULL; TypeError, ValueError or ArithmeticError where it is no such."""

_OFFSET: Final = re.compile(r"([+-])(\d\d):(\d\d)")
_TRUTH: Final = {"true": True, "false": False}
_NO_NUMBERS: Final = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "-Infinity": -math.inf,
}
"""What JSON has no numbers for."""


@lru_cache(maxsize=1024)
def conversion(kind: pa.DataType) -> Conversion | None:
    """Return how a value becomes one that Arrow takes for a type; None where it takes all as is.

    >>> conversion(pa.timestamp("us", tz="Europe/Paris"))("2024-06-01T10:00").utcoffset().seconds
    7200
    >>> conversion(pa.decimal128(5, 2))("0.125"), conversion(pa.binary())("aGk=")
    (Decimal('0.13'), b'hi')
    """
    if pa.types.is_timestamp(kind):
        return _local if kind.tz is None else _Instant(zone(kind.tz))
    if pa.types.is_decimal(kind):
        return _Decimal(kind.precision, kind.scale)
    for fits, convert in _PLAIN:
        if fits(kind):
            return convert
    return _nested(kind)


@lru_cache(maxsize=1024)
def key_conversion(kind: pa.DataType) -> Conversion | None:
    """Return how a value of a bind column becomes one of its type.

    As by :func:`conversion`, and further: it is more common for services to write numeric keys as
    texts, and texts that are numbers as numbers, than to answer with keys that nobody asked for.

    >>> key_conversion(pa.int64())("0042"), key_conversion(pa.string())(42)
    (42, '42')
    """
    convert = conversion(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text_of
    if pa.types.is_integer(kind):
        return lambda value: _whole(decimal.Decimal(value) if isinstance(value, str) else value)
    if pa.types.is_floating(kind):
        return lambda value: _floating(_number(value) if isinstance(value, str) else value)
    if pa.types.is_boolean(kind):
        return lambda value: _TRUTH.get(value.lower(), value) if isinstance(value, str) else value
    return convert


def zone(name: str) -> dt.tzinfo:
    """Return the time zone of a name as Spark and Arrow have them.

    >>> zone("-02:30").utcoffset(None), zone("Asia/Tokyo")
    (datetime.timedelta(days=-1, seconds=77400), zoneinfo.ZoneInfo(key='Asia/Tokyo'))
    """
    offset = _OFFSET.fullmatch(name)
    if offset is None:
        return ZoneInfo(name)
    difference = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3]))
    return dt.timezone(-difference if offset[1] == "-" else difference)


class _Instant:
    """Into a moment: a time without a zone is in the session's; a whole number counts seconds."""

    def __init__(self, session: dt.tzinfo) -> None:
        self._session = session

    def __call__(self, value: object) -> object:
        if isinstance(value, str):
            value = dt.datetime.fromisoformat(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            return dt.datetime.fromtimestamp(value, dt.UTC)
        moment = _time(value)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=self._session)


def _local(value: object) -> object:
    """Into a time without a zone, which is no moment: another place has it at another one."""
    moment = _time(dt.datetime.fromisoformat(value) if isinstance(value, str) else value)
    if moment.tzinfo is not None:
        raise ValueError(f"{value} has a zone")
    return moment


def _time(value: object) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.date):
        return dt.datetime.combine(value, dt.time())
    raise TypeError(f"{value!r} is no time")


def _date(value: object) -> object:
    if isinstance(value, str):
        return dt.datetime.fromisoformat(value).date()
    if isinstance(value, dt.date):
        return value
    raise TypeError(f"{value!r} is no date")


class _Decimal:
    """Into a decimal of so many digits, rounded as Spark does."""

    def __init__(self, precision: int, scale: int) -> None:
        self._unit = decimal.Decimal(1).scaleb(-scale)
        self._context = decimal.Context(precision, decimal.ROUND_HALF_UP)

    def __call__(self, value: object) -> object:
        if isinstance(value, float):
            value = repr(value)  # the shortest that means this number
        if isinstance(value, bool) or not isinstance(value, str | int | decimal.Decimal):
            raise TypeError(f"{value!r} is no decimal")
        try:
            return decimal.Decimal(value).quantize(self._unit, context=self._context)
        except decimal.InvalidOperation:
            raise ValueError(f"{value} is no decimal of that many digits") from None


def _binary(value: object) -> object:
    return base64.b64decode(value, validate=True) if isinstance(value, str) else value


def _floating(value: object) -> object:
    if isinstance(value, str):
        return _NO_NUMBERS.get(value, value)
    return float(value) if isinstance(value, int | decimal.Decimal) else value


def _whole(value: object) -> object:
    if isinstance(value, float | decimal.Decimal):
        if value != value // 1:
            raise ValueError(f"{value} is no whole number")
        return int(value)
    return value


def _text(value: object) -> object:
    return str(value) if isinstance(value, uuid.UUID) else value


def _text_of(value: object) -> object:
    """Into a text: a number and a truth value as JSON writes them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float | decimal.Decimal) else _text(value)


def _number(text: str) -> object:
    return _NO_NUMBERS[text] if text in _NO_NUMBERS else float(text)


_PLAIN: Final[tuple[tuple[Callable[[pa.DataType], bool], Conversion], ...]] = (
    (pa.types.is_integer, _whole),
    (pa.types.is_date, _date),
    (pa.types.is_floating, _floating),
    (pa.types.is_string, _text),
    (pa.types.is_large_string, _text),
    (pa.types.is_binary, _binary),
    (pa.types.is_large_binary, _binary),
)


def _nested(kind: pa.DataType) -> Conversion | None:
    """Return what converts the values in a value."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        of_item = conversion(kind.value_type)
        return None if of_item is None else lambda items: [_each(of_item, item) for item in items]
    if pa.types.is_struct(kind):
        of_fields = {field.name: conversion(field.type) for field in kind}
        return lambda value: _fields(of_fields, value)
    if pa.types.is_map(kind):
        of_key, of_item = conversion(kind.key_type), conversion(kind.item_type)
        return lambda value: [
            (_each(of_key, key), _each(of_item, item))
            for key, item in (value.items() if isinstance(value, Mapping) else value)
        ]
    return None


def _each(convert: Conversion | None, value: object) -> object:
    return value if value is None or convert is None else convert(value)


def _fields(of_fields: Mapping[str, Conversion | None], value: object) -> object:
    if not isinstance(value, Mapping):
        return value  # Arrow says what is wrong
    return {name: _each(convert, value.get(name)) for name, convert in of_fields.items()}


class RowReader:
    """Makes columns of a table's rows."""

    def __init__(self, table: LookedUpTable) -> None:
        """Find out how each column's values are read."""
        self._columns = table.columns
        self._bind = table.bind_names
        self._schema = table.schema
        self._reads = [
            (name, kind, key_conversion(kind) if number in table.bind else conversion(kind))
            for number, (name, kind) in enumerate(zip(table.columns, table.types, strict=True))
        ]

    def batch(self, rows: Iterable[object], keys: Sequence[Key]) -> pa.RecordBatch:
        """Return rows, which are mappings by column or sequences in the columns' order.

        Those of PySpark's ``Row`` and named tuples go by their names, if all are columns.

        A bind column that a mapping lacks has the value that was asked for, where there is only one
        key. A time without a zone is in the session's zone, as with Spark's own readers.
        NoAnswerError where rows are not of the table.
        """
        records = [self._values(row, keys) for row in rows]
        columns = []
        for number, (name, kind, convert) in enumerate(self._reads):
            values = [row[number] for row in records]
            try:
                if convert is not None:
                    values = [None if value is None else convert(value) for value in values]
                columns.append(pa.array(values, kind))
            except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
                raise NoAnswerError(
                    f"column {name} is {kind}, which an answer does not fit: {error}"
                ) from error
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _values(self, row: object, keys: Sequence[Key]) -> Sequence[Any]:
        names = getattr(row, "__fields__", getattr(row, "_fields", None))  # a Row, a named tuple
        if isinstance(row, tuple) and names and set(self._columns).issuperset(names):
            row = dict(zip(names, row, strict=True))
        if isinstance(row, Mapping):
            asked = dict(zip(self._bind, keys[0], strict=True)) if len(keys) == 1 else {}
            missing = [name for name in self._bind if name not in row and name not in asked]
            if missing:
                raise NoAnswerError(
                    f"a row lacks {', '.join(missing)}, so that nobody knows which key it is for"
                )
            return [row.get(name, asked.get(name)) for name in self._columns]
        if isinstance(row, Sequence) and not isinstance(row, str | bytes):
            if len(row) == len(self._columns):
                return row
            raise NoAnswerError(f"a row has {len(row)} values, not {len(self._columns)}")
        raise NoAnswerError(f"a row is {type(row).__name__}, neither a mapping nor a sequence")


def failed(table: LookedUpTable, label: str, keys: Sequence[Key], why: str) -> LookupFailedError:
    """Return the error that users get for keys without an answer; without keys for the table."""
    asked = f"{table.name} {described(table, keys)}".rstrip()
    return LookupFailedError(f"{label}, asked for {asked}: {why}")


def described(table: LookedUpTable, keys: Sequence[Key]) -> str:
    """Return what was asked for, as people read it.

    >>> described(LookedUpTable("t", ("a",), (pa.int64(),), (0,)), [(1,), (2,), (3,), (4,)])
    'a=1, a=2, a=3 and 1 more'
    """
    shown = [
        " and ".join(
            f"{name}={_short(value)}" for name, value in zip(table.bind_names, key, strict=True)
        )
        for key in keys[:3]
    ]
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""  # noqa: PLR2004 - those shown
    return ", ".join(shown) + more


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - fits a line
