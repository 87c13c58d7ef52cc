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
        """Start without errors."""
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
        if self._told:
            return "".join(traceback.format_exception_only(error)).strip()
        self._told = True
        return "".join(traceback.format_exception(error)).strip()
