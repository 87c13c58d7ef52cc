"""Values of Catalyst's literals, from JSON's text or as Catalyst keeps them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa

from eddyline.expressions import Literal

_REPLACEMENT_CHARACTER = "\ufffd"


class UnreadableValueError(ValueError):
    """A literal whose exact value is not known from the text at hand."""


def literal(value: object, arrow_type: pa.DataType) -> Literal:
    """Return a literal of a supported type; ``value`` may be the text that JSON shows.

    Raises :class:`UnreadableValueError` where that text may not be the exact value.

    >>> literal("-Infinity", pa.float64()).value, literal("1.50", pa.decimal128(3, 2)).value
    (-inf, Decimal('1.50'))
    """
    return Literal(None if value is None else _value(value, arrow_type), arrow_type)


def text_of(value: object) -> str:
    """Return the text of a string literal.

    Spark shows bytes that are not UTF-8 as U+FFFD, so a text with that character
    may stand for another one.
    """
    text = str(value)
    if _REPLACEMENT_CHARACTER in text:
        raise UnreadableValueError("a string that may hold bytes other than UTF-8")
    return text


def _value(value: object, arrow_type: pa.DataType) -> object:  # noqa: PLR0911  # one a type
    if pa.types.is_boolean(arrow_type):
        return value in (True, "true")
    if pa.types.is_integer(arrow_type):
        return int(str(value))
    if pa.types.is_floating(arrow_type):
        return float(str(value))  # Java's NaN and Infinity are Python's too
    if pa.types.is_decimal(arrow_type):
        return Decimal(str(value))
    if pa.types.is_string(arrow_type):
        return text_of(value)
    if pa.types.is_date(arrow_type):
        return value if isinstance(value, int) else _date(str(value))
    if pa.types.is_timestamp(arrow_type):
        return _microseconds(value)
    if pa.types.is_binary(arrow_type) and isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise UnreadableValueError(f"a literal of type {arrow_type}")


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:  # a year before 1 or after 9999
        raise UnreadableValueError(f"the date {text}") from None


def _microseconds(value: object) -> int:
    try:
        return int(str(value))
    except ValueError:  # a local time
        raise UnreadableValueError(f"the timestamp {value}") from None
