"""Arguments as bytes: the same in every process, on every machine, for ever.

What a function cannot tell apart is one key, and nothing else is: 1 and 1.0 are two keys, as are
0.0 and -0.0; any NaN is the same. Pickles would not do: two texts of one value, or one text twice,
are pickled differently.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

DIGEST: Final = 16
"""Bytes of a key: among ten million the odds of two that meet are 1 to 10^24."""


def key_of(values: Sequence[object]) -> bytes:
    """Return the key of arguments, or of values of bind columns: 16 bytes.

    TypeError for what no column of Spark's can hold.

    >>> key_of((1,)) == key_of((1.0,)), key_of(("a", None)) == key_of(("a", None))
    (False, True)
    """
    return hashlib.blake2b(encoded(tuple(values)), digest_size=DIGEST).digest()


def encoded(value: object) -> bytes:
    """Return bytes that tell a value from all others, its type included.

    >>> encoded(-0.0) == encoded(0.0), encoded([1, "x"]) == encoded((1, "x"))
    (False, True)
    """
    for kinds, tag, write in _WAYS:
        if isinstance(value, kinds):
            content = write(value)
            return tag + len(content).to_bytes(8, "big") + content
    raise TypeError(f"no key: {type(value).__name__}")


def _float(value: float) -> bytes:
    return struct.pack(">d", math.nan if math.isnan(value) else value)


def _moment(value: dt.datetime) -> bytes:
    if value.tzinfo is not None:  # a moment, however its clock shows it
        return b"z" + value.astimezone(dt.UTC).isoformat().encode()
    return b"n" + value.isoformat().encode() + bytes([value.fold])


def _number(value: Decimal) -> bytes:
    """Return a number without the zeros at its end; of any length, which no context rounds."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or not value:
        return (str(value) if not isinstance(exponent, int) else "0").encode()
    text = "".join(map(str, digits)).lstrip("0")
    short = text.rstrip("0")
    return f"{'-' * sign}{short}e{exponent + len(text) - len(short)}".encode()


def _items(value: Sequence[object]) -> bytes:
    return b"".join(map(encoded, value))


def _pairs(value: Mapping[object, object]) -> bytes:
    return b"".join(encoded(pair) for pair in value.items())


_WAYS: Final[tuple[tuple[type | tuple[type, ...], bytes, Callable[[Any], bytes]], ...]] = (
    (type(None), b"N", lambda _: b""),
    (bool, b"B", lambda value: b"1" if value else b"0"),
    (int, b"I", lambda value: str(value).encode()),
    (float, b"F", _float),
    (str, b"S", lambda value: value.encode("utf-8", "surrogatepass")),
    ((bytes, bytearray, memoryview), b"Y", bytes),
    (Decimal, b"D", _number),
    (dt.datetime, b"T", _moment),
    (dt.date, b"A", lambda value: value.isoformat().encode()),
    (dt.time, b"C", lambda value: value.isoformat().encode()),
    (dt.timedelta, b"U", lambda value: str(value // dt.timedelta(microseconds=1)).encode()),
    ((list, tuple), b"L", _items),
    (Mapping, b"M", _pairs),
)
"""Types, the byte that stands for them, and how a value is written; the first that fits counts."""
