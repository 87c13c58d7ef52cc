"""Rows as a table of text, as ``DataFrame.show`` prints them, but never cut in a pipe."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_NULL = "NULL"
_GAP = 2  # columns of the terminal between two columns of the table
_WIDEST = 40  # of a column on a terminal where it shares the width with others


class RowTable:
    """Rows under their names as a rich renderable.

    On a terminal long values are cut, and columns that do not fit side by side
    follow below. In a pipe every row is one line, whatever its length.
    """

    def __init__(
        self, names: Sequence[str], rows: Sequence[Sequence[object]], *, numeric: Sequence[bool]
    ) -> None:
        """Take the rows, and for each column whether it holds numbers."""
        self._names = names
        self._rows = [[text_of(value) for value in row] for row in rows]
        self._numeric = numeric

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield one table, or several where the columns do not fit side by side."""
        widths = [
            max(len(text) for text in (name, *(row[place] for row in self._rows)))
            for place, name in enumerate(self._names)
        ]
        if not console.is_terminal:
            yield self._table(range(len(self._names)), widths)
            return
        widths = [min(width, max(_WIDEST, len(name)))]
