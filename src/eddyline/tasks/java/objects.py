"""Values of the JVM: their texts (``toString``), hash codes, and what tells two of them apart."""

from __future__ import annotations

import re
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from typing import Any, Final, TypeAlias

from eddyline.tasks.java.number_texts import SHORTEST_FROM, double_text

Value: TypeAlias = Any
"""A value of the JVM, as the package's head says, or a :class:`JavaObject`."""


class JavaObject(ABC):
    """An object of the JVM that has no counterpart in Python.

    By default one is equal to itself only. Its text and its hash code depend on its content, where
    Java's depend on its place in memory.
    """

    @abstractmethod
    def text(self, version: int) -> str:
        """Return ``toString()`` of a version of Java."""

    def hash_code(self) -> int:
        """Return ``hashCode()``, a signed number of 32 bits."""
        return place_of(self)

    def equality(self) -> Hashable:
        """Return what is equal for objects that ``equals`` says are equal, and for no others."""
        return ("place", id(self))

    def __repr__(self) -> str:
        return f"<{self.text(SHORTEST_FROM)}>"


def text_of(value: Value, version: int) -> str:
    """Return ``String.valueOf(value)`` of a version of Java: they write numbers differently.

    >>> text_of([None, True, 2.0, 'x'], 17)
    '[null, true, 2.0, x]'
    """
    kind = type(value)
    if kind is float:
        return double_text(value, version)
    if kind is list:
        inner = (_IN_ITSELF if item is value else text_of(item, version) for item in value)
        return joined(inner)
    return _TEXTS[kind](value) if kind in _TEXTS else str(value.text(version))


_IN_ITSELF: Final = "(this Collection)"


def hash_of(value: Value) -> int:
    """Return ``Objects.hashCode(value)``, a signed number of 32 bits.

    >>> hash_of('hello'), hash_of(1.5), hash_of(True)
    (99162322, 1073217536, 1231)
    """
    return _HASHES[type(value)](value) if type(value) in _HASHES else int(value.hash_code())


def equality_of(value: Value) -> Hashable:
    """Return what is equal for two values that ``equals`` says are equal, and for no others.

    >>> equality_of(1) == equality_of(True), equality_of(float('nan')) == equality_of(float('nan'))
    (False, True)
    """
    kind = type(value)
    if kind is float:
        return (kind, _bits(value))
    if kind is Decimal:
        return (kind, value.as_tuple())
    if kind is list:
        return (kind, tuple(map(equality_of, value)))
    if kind in {tuple, bytes}:
        return ("place", id(value))
    equality: Hashable = value.equality() if isinstance(value, JavaObject) else (kind, value)
    return equality


def signed(number: int) -> int:
    """Return the lower 32 bits of a number as Java's ``int``."""
    return ((number + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000


def place_of(value: Value) -> int:
    """Return a number for an object whose hash code Java takes from its place in memory.

    Java's differs each time. This one is always the same for the same content, so
    that an answer does not depend on which worker gave it.
    """
    try:
        told = repr(value)
    except RecursionError:  # a list in itself by way of a map
        told = type(value).__name__
    return zlib.crc32(told.encode(errors="replace")) & 0x7FFF_FFFF


def placed_text(class_name: str, value: Value) -> str:
    """Return the text of an object that has only its class and its hash code to show."""
    return f"{class_name}@{place_of(value):x}"


def joined(parts: Iterable[str]) -> str:
    """Return what ``AbstractCollection.toString()`` makes of the texts of its elements."""
    return f"[{', '.join(parts)}]"


def without_surrogates(text: str) -> str:
    """Return a text as the JVM decodes it, to which surrogates are malformed."""
    return text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


_SURROGATES: Final = re.compile("[\ud800-\udfff]")


_WRITTEN: Final = 2000
"""Bits of an integer that Python writes at once, however it is set up."""


def _int_text(value: int) -> str:
    # Of a longer one Python writes at most 4,300 digits, of a decimal all.
    return str(value) if value.bit_length() < _WRITTEN else str(Decimal(value))


_TEXTS: Final[dict[type, Callable[[Any], str]]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: _int_text,
    str: without_surrogates,
    Decimal: str,
    tuple: lambda value: placed_text("[Ljava.lang.Object;", value),
    bytes: lambda value: placed_text("[B", value),
}


def _bits(value: float) -> int:
    """Return ``Double.doubleToLongBits``, which is the same for every NaN."""
    if value != value:  # noqa: PLR0124 - NaN
        return 0x7FF8_0000_0000_0000
    return int.from_bytes(struct.pack(">d", value))


_INT_BITS: Final = 32
_LONG_BITS: Final = 64


def long_hash(value: int) -> int:
    """Return ``Long.hashCode``."""
    unsigned = value & 0xFFFF_FFFF_FFFF_FFFF
    return signed(unsigned ^ unsigned >> 32)


def _int_hash(value: int) -> int:
    size = value.bit_length() if value >= 0 else (~value).bit_length()
    if size < _INT_BITS:
        return value
    if size < _LONG_BITS:
        return long_hash(value)
    return _big_integer_hash(value)


def _big_integer_hash(value: int) -> int:
    size, code = abs(value), 0
    for place in reversed(range(0, size.bit_length(), 32)):
        code = 31 * code + (size >> place & 0xFFFF_FFFF)
    return signed(code if value > 0 else -code)


def _string_hash(value: str) -> int:
    encoded = without_surrogates(value).encode("utf-16-be")
    units = struct.unpack(f">{len(encoded) // 2}H", encoded)
    return signed(sum_of_powers(units))


def sum_of_powers(items: Iterable[int]) -> int:
    """Return ``s[0]*31^(n-1) + … + s[n-1]`` in 32 bits."""
    code = 0
    for item in items:
        code = (31 * code + item) & 0xFFFF_FFFF
    return code


def _decimal_hash(value: Decimal) -> int:
    sign, digits, exponent = value.as_tuple()
    unscaled = int(Decimal((0, digits, 0)))
    if unscaled.bit_length() < _LONG_BITS:
        code = 31 * (unscaled >> 32) + (unscaled & 0xFFFF_FFFF)
        code = signed(-code if sign else code)
    else:
        code = _big_integer_hash(-unscaled if sign else unscaled)
    return signed(31 * code - int(exponent))


def _list_hash(value: list[Value]) -> int:
    code = 1
    for item in value:
        code = 31 * code + hash_of(item)
    return signed(code)


_HASHES: Final[dict[type, Callable[[Any], int]]] = {
    type(None): lambda _: 0,
    bool: lambda value: 1231 if value else 1237,
    int: _int_hash,
    float: lambda value: long_hash(_bits(value)),
    str: _string_hash,
    Decimal: _decimal_hash,
    list: _list_hash,
    tuple: place_of,
    bytes: place_of,
}
