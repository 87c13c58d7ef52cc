"""Values as sources give them, into what Arrow takes for a column of Spark's.

JSON has no times, decimals or bytes, drivers of databases have classes of their own. What a text
or a number then means is what Spark's own JSON reader says; where that has NULL, since a value
does not fit, there is an error here.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
import re
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

import pyarrow as pa

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

    As by :func:`conversion`, and further: services write keys that are numbers as texts, and
    texts that are numbers as numbers, more often than they write other keys than they were
    asked for.

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
    """Into a moment: what names no zone is in the session's, and a whole number counts seconds."""

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
