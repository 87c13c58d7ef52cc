"""The source of a lookup table in tests: answers from rows, and writes down what it was asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


class RecordingSource:
    """A function for ``PythonLookup`` over the rows of a table.

    One that is ``generous`` answers with all its rows where one of them was asked for. (Where none
    was, all would be rows that nobody asked for: that is an error, as of keys spelled otherwise.)
    """

    def __init__(
        self, rows: Sequence[tuple[Any, ...]], bind: Sequence[int], *, generous: bool = False
    ) -> None:
        self.rows = rows
        self.bind = tuple(bind)
        self.generous = generous
        self.keys: Counter[Any] = Counter()

    def __call__(self, keys: list[Any]) -> list[tuple[Any, ...]]:
        self.keys.update(keys)
        wanted = {key if len(self.bind) > 1 else (key,) for key in keys}
        found = [row for row in self.rows if tuple(row[c] for c in self.bind) in wanted]
        return list(self.rows) if self.generous and found else found
