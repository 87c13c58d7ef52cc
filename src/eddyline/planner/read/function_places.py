"""Where a pickled function was written, and what a lambda says, without unpickling what it holds.

A function's pickle names its file and line, and for each instruction the columns that it was
compiled from. All else that it refers to, even a model of a gigabyte, is never made here.
"""

from __future__ import annotations

import linecache
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePath
from types import CodeType, FunctionType
from typing import Final

from eddyline.chance.inert_pickle import load_inert
from eddyline.digest import digest
from eddyline.latest import Latest
from eddyline.reports.wording import one_line, shortened

LAMBDA: Final = "<lambda>"
"""What Python calls a function without a name."""

_SOURCE_MOST: Final = 40  # letters of a lambda's source
_PICKLE_MOST: Final = 1 << 20  # bytes; PySpark broadcasts longer ones
_REMEMBERED: Final = 1_000  # functions whose place is known


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """The file and line where a function begins, and the source of a lambda where it is known."""

    file: str
    line: int
    source: str = ""

    def __str__(self) -> str:
        """The last part of the file's path, and the line.

        >>> str(SourcePlace("/home/me/job.py", 5))
        'job.py:5'
        """
        return f"{PurePath(self.file).name}:{self.line}"


_places: Final = Latest[bytes, tuple[SourcePlace | None]](_REMEMBERED)


def place_of(command: bytes) -> SourcePlace | None:
    """Return where a pickled function was written; None where its pickle does not tell.

    Some 50 us for a function that is new, and a microsecond for one that is known.
    """
    key = digest(command)
    known = _places.get(key)
    if known is None:
        known = (_place_of_code(_code_of(command)),)
        _places.put(key, known)
    return known[0]


def lambda_name(place: SourcePlace | None) -> str:
    """Return what to call a lambda: by its source, else by its place.

    >>> lambda_name(SourcePlace("/home/me/job.py", 5, "n % 10 == 0"))
    '<lambda> line 5: n % 10 == 0'
    >>> lambda_name(SourcePlace("/home/me/job.py", 5)), lambda_name(SourcePlace("<stdin>", 1))
    ('<lambda> at job.py:5', '<lambda>')
    """
    if place is None:
        return LAMBDA
    if place.source:
        return f"{LAMBDA} line {place.line}: {place.source}"
    return LAMBDA if place.file.startswith("<") else f"{LAMBDA} at {place}"


def _code_of(command: bytes) -> CodeType | None:
    """Return the code of the function in a pair of function and type, as PySpark pickles it."""
    if len(command) > _PICKLE_MOST:
        return None
    with suppress(Exception):  # a pickle may be of any form; its function is then called as before
        loaded = load_inert(command)
        function = loaded[0] if isinstance(loaded, tuple) else loaded
        return function.__code__ if isinstance(function, FunctionType) else None
    return None


def _place_of_code(code: CodeType | None) -> SourcePlace | None:
    if code is None:
        return None
    source = _body_of(code) if code.co_name == LAMBDA else ""
    return SourcePlace(code.co_filename, code.co_firstlineno, source)


def _body_of(code: CodeType) -> str:
    """Return what a lambda returns, as it is written; empty where that is not known."""
    # Python 3.11 gives an instruction without columns, as the return, an empty stretch in column 0.
    starts, ends = [], []
    for line, end_line, column, end_column in code.co_positions():
        if line and end_line and column is not None and end_column:
            starts.append((line, column))
            ends.append((end_line, end_column))
    lines = linecache.getlines(code.co_filename)
    if not starts or not max(ends)[0] <= len(lines):
        return ""
    (first, start), (last, end) = min(starts), max(ends)
    if "lambda" not in "".join(lines[code.co_firstlineno - 1 : first]):  # the file has changed
        return ""
    before, after = lines[first - 1].encode()[:start], lines[last - 1].encode()[end:]
    text = "".join(lines[first - 1 : last]).encode()
    body = text[start : len(text) - len(after)]
    around = (piece.decode(errors="replace") for piece in (before, body, after))
    return shortened(_balanced(*around), _SOURCE_MOST)


def _balanced(before: str, body: str, after: str) -> str:
    """Return a text with the parentheses around it that belong to it; no code is made of them.

    >>> _balanced("lambda n: (", "n > 1 or n < 0) and n", " + 2)")
    '(n > 1 or n < 0) and n'
    """
    open_, missing = 0, 0
    for letter in body:
        open_ += {"(": 1, ")": -1}.get(letter, 0)
        if open_ < 0:
            open_, missing = 0, missing + 1
    while missing and before.rstrip().endswith("("):
        before, body, missing = before.rstrip()[:-1], "(" + body, missing - 1
    while open_ and after.lstrip().startswith(")"):
        after, body, open_ = after.lstrip()[1:], body + ")", open_ - 1
    return one_line(body)
