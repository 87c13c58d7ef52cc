"""Strings that are not valid UTF-8, as the JVM reads them.

A string in Spark may hold any bytes. Comparisons, keys, prefixes and the like go by these. Where
Spark needs characters, for LIKE or for rows that it pickles, it takes Java's text of them, in
which U+FFFD stands for what is malformed.
"""

from __future__ import annotations

import codecs
from typing import Final

import pyarrow as pa

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_AS_IN_JAVA: Final = "eddyline.as_in_java"
_SURROGATE: Final = 0xED  # first of the three bytes that would make a surrogate


def text_as_in_java(data: bytes) -> str:
    r"""Return the text that Java makes of bytes.

    Java and Python replace the same parts, but for surrogates: the bytes of one are one
    replacement in Java and three in Python.

    >>> text_as_in_java(b"\xffA \xed\xa0\x80B")
    '\ufffdA \ufffdB'
    """
    return data.decode("utf-8", _AS_IN_JAVA)


def with_valid_text(values: pa.Array) -> pa.Array:
    """Return a string column with Java's text in place of what is not valid UTF-8."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        wide = pa.types.is_large_string(values.type)
        data = values.cast(pa.large_binary() if wide else pa.binary()).to_pylist()
        texts = [None if each is None else text_as_in_java(each) for each in data]
        return pa.array(texts, values.type)
    return values


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    first, second, third = (error.object[error.start : error.start + 3] + b"\0\0")[:3]
    if first != _SURROGATE or not _continues(second):
        return _REPLACEMENT, error.end
    return _REPLACEMENT, error.start + (3 if _continues(third) else 2)


def _continues(byte: int) -> bool:
    """Whether a byte may stand after the first of a character."""
    return byte & 0xC0 == 0x80  # noqa: PLR2004  # the two highest bits are 10


codecs.register_error(_AS_IN_JAVA, _replaced)
