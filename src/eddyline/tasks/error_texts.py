"""Errors of rows as text, for rows that travel on because joins above may drop them."""

from __future__ import annotations

import traceback
from collections.abc import Mapping

import pyarrow as pa


class ErrorTexts:
    """The errors of one task; the first comes with its traceback, the others with their message.

    A predicate may fail on every row, and a traceback has a kilobyte.
    """

    def __init__(self) -> None:
        self._told = False

    def column(self, failed: Mapping[int, Exception], rows: int) -> pa.Array:
        """Return a column of texts, NULL for the rows for which nothing failed."""
        if not failed:
            return pa.nulls(rows, pa.string())
        texts: list[str | None] = [None] * rows
        for row, error in failed.items():
            texts[row] = self._text(error)
        return pa.array(texts, pa.string())

    def _text(self, error: Exception) -> str:
        parts = traceback.format_exception_only if self._told else traceback.format_exception
        self._told = True
        return writable("".join(parts(error)).strip())


def writable(text: str) -> str:
    r"""Return a text with what is no valid UTF-8 in it escaped.

    >>> writable("a\ud800b")
    'a\\ud800b'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
