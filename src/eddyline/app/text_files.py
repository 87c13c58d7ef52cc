"""How a file of text begins, whether it is one at all, and what separates its fields."""

from __future__ import annotations

import bz2
import codecs
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from eddyline.app.file_errors import UnsuitableFileError

_BEGINNING: Final = 64 * 1024
"""Bytes of a file that are looked at."""

LOOKED_THROUGH: Final = 1 << 28
"""Bytes of a table's files that are looked through for what changes how it must be read."""

_CHUNK: Final = 1 << 20

_QUOTE, _LINE_END = b'"\n'

RECORDS: Final = 50
"""Records that are looked at to tell the delimiter."""

# Quotes begin a field and end it, whatever separates these; inside they are doubled.
_QUOTED: Final = re.compile(r'(?:^|(?<=[,\t;|]))"(?:[^"]|"")*"(?=[,\t;|\r\n]|\Z)', re.MULTILINE)

_LEAST_ALIKE: Final = 0.5
"""Share of the records that a delimiter must cut like the heading; some are malformed."""

# No text holds these; a page feed and the escapes of a terminal may stray into one.
_NEVER_IN_TEXT: Final = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))

_COMPRESSED: Final = {b"\x1f\x8b": ".gz", b"BZh": ".bz2"}
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")


def beginning_of(file: Path) -> str:
    """Return the first 64 KB of a text in UTF-8, unpacked.

    Raises :class:`UnsuitableFileError` for what is no text, and OSError for what cannot be read.
    """
    try:
        with _opened(file) as opened:
            content = opened.read(_BEGINNING)
    except (EOFError, zlib.error) as error:
        raise OSError("it is damaged, or not all of it is there") from error
    _require_text(content)
    if len(content) == _BEGINNING:  # the last line is cut, and so may be a letter of it
        content = content[: content.rfind(b"\n") + 1] or content
    return content.decode("utf-8-sig", errors="replace")


def delimiter_of(text: str, order: str = ",\t;|") -> str | None:
    r"""Return what separates the fields of a CSV file, None if it seems to have one column.

    It is the one that cuts most records into as many fields as the heading; among several, the one
    that makes more fields of the heading, and then the first in ``order``.

    >>> delimiter_of('name;price\n"a, b";1,5\nc;2,25\n'), delimiter_of("name\na\n")
    (';', None)
    """
    lines = [line for line in _QUOTED.sub("", text).splitlines() if line][:RECORDS]
    best = (_LEAST_ALIKE, 0)
    chosen = None
    for delimiter in order:
        widths = [line.count(delimiter) for line in lines]
        if not widths or not widths[0]:
            continue
        alike = sum(width == widths[0] for width in widths) / len(widths)
        if (alike, widths[0]) > best:
            best, chosen = (alike, widths[0]), delimiter
    return chosen


@dataclass(frozen=True, slots=True)
class Peculiarities:
    """What changes how texts must be read: lines that end within quotes, letters not in UTF-8."""

    broken: bool
    misread: Path | None  # the first such file


def peculiarities(files: Iterable[Path]) -> Peculiarities:
    """Return those in the first :data:`LOOKED_THROUGH` bytes of some files together.

    Each is read once. Raises OSError for what cannot be read.
    """
    left = LOOKED_THROUGH
    broken, misread = False, None
    for file in files:
        quotes = 0  # so far; odd within quotes
        decoder = codecs.getincrementaldecoder("utf-8")()
        for chunk in _chunks(file):
            broken = broken or _breaks(chunk, quotes)
            quotes += chunk.count(b'"')
            if misread is None and not _decodes(decoder, chunk):
                misread = file
            left -= len(chunk)
            if left <= 0:
                return Peculiarities(broken, misread)
        if misread is None and not _decodes(decoder, b"", final=True):
            misread = file  # which ends within a letter
    return Peculiarities(broken, misread)


def _breaks(chunk: bytes, quotes: int) -> bool:
    """Whether a line ends within quotes, after so many quotes before."""
    if b'"' not in chunk:
        return quotes % 2 == 1 and b"\n" in chunk
    content = np.frombuffer(chunk, np.uint8)
    marks = np.flatnonzero(content == _QUOTE)
    before = np.searchsorted(marks, np.flatnonzero(content == _LINE_END))
    return bool(np.any((before + quotes) % 2))


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


def _chunks(file: Path) -> Iterator[bytes]:
    try:
        with _opened(file) as opened:
            while chunk := opened.read(_CHUNK):
                yield chunk
    except (EOFError, zlib.error) as error:
        raise OSError("it is damaged, or not all of it is there") from error


def one_delimiter(files: Iterable[Path], order: str) -> str:
    """Return the delimiter of some files, the first in ``order`` if nothing shows it.

    Raises as :func:`beginning_of` does, and :class:`UnsuitableFileError` if several differ.
    """
    delimiters: dict[str, Path] = {}
    for file in files:
        delimiter = delimiter_of(beginning_of(file), order)
        if delimiter is not None:
            delimiters.setdefault(delimiter, file)
    if len(delimiters) > 1:
        said = " and ".join(
            f"{delimiter!r} in {file.name}" for delimiter, file in delimiters.items()
        )
        raise UnsuitableFileError(f"its files have different delimiters, {said}")
    return next(iter(delimiters), order[0])


def _opened(file: Path) -> BinaryIO | gzip.GzipFile | bz2.BZ2File:
    match file.suffix.lower():
        case ".gz":
            return gzip.GzipFile(file)
        case ".bz2":
            return bz2.BZ2File(file)
        case _:
            return file.open("rb")


def _require_text(found: bytes) -> None:
    for signature, ending in _COMPRESSED.items():
        if found.startswith(signature):
            raise UnsuitableFileError(f"it is compressed, so its name must end in {ending}")
    if found.startswith(_UTF_16):
        raise UnsuitableFileError("its text is in UTF-16; save it in UTF-8")
    if len(found.translate(None, _NEVER_IN_TEXT)) < len(found):
        raise UnsuitableFileError("it is no text but binary")
