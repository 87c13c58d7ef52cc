"""Rows as a source gives them, into columns of the table's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from eddyline.asking.conversions import conversion, key_conversion
from eddyline.asking.lookup_source import Key, LookedUpTable
from eddyline.asking.no_answer import NoAnswerError
from eddyline.errors import LookupFailedError


class RowReader:
    """Makes columns of a table's rows."""

    def __init__(self, table: LookedUpTable) -> None:
        """Find out how each column's values are read."""
        self._columns = table.columns
        self._bind = table.bind_names
        self._schema = table.schema
        self._reads = [
            (name, kind, key_conversion(kind) if number in table.bind else conversion(kind))
            for number, (name, kind) in enumerate(zip(table.columns, table.types, strict=True))
        ]

    def batch(self, rows: Iterable[object], keys: Sequence[Key]) -> pa.RecordBatch:
        """Return rows, which are mappings by column or sequences in the columns' order.

        Those of PySpark's ``Row`` and named tuples go by their names, if all are columns.

        A bind column that a mapping lacks has the value that was asked for, where that is one
        key. A time without a zone is one of the session's zone, as Spark's own readers have it.
        NoAnswerError where rows are not of the table.
        """
        found = [self._values(row, keys) for row in rows]
        columns = []
        for number, (name, kind, convert) in enumerate(self._reads):
            values = [row[number] for row in found]
            try:
                if convert is not None:
                    values = [None if value is None else convert(value) for value in values]
                columns.append(pa.array(values, kind))
            except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
                raise NoAnswerError(
                    f"column {name} is {kind}, which an answer does not fit: {error}"
                ) from error
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _values(self, row: object, keys: Sequence[Key]) -> Sequence[Any]:
        names = getattr(row, "__fields__", getattr(row, "_fields", None))  # a Row, a named tuple
        if isinstance(row, tuple) and names and set(self._columns).issuperset(names):
            row = dict(zip(names, row, strict=True))
        if isinstance(row, Mapping):
            asked = dict(zip(self._bind, keys[0], strict=True)) if len(keys) == 1 else {}
            missing = [name for name in self._bind if name not in row and name not in asked]
            if missing:
                raise NoAnswerError(
                    f"a row lacks {', '.join(missing)}, so that nobody knows which key it is for"
                )
            return [row.get(name, asked.get(name)) for name in self._columns]
        if isinstance(row, Sequence) and not isinstance(row, str | bytes):
            if len(row) == len(self._columns):
                return row
            raise NoAnswerError(f"a row has {len(row)} values, not {len(self._columns)}")
        raise NoAnswerError(f"a row is {type(row).__name__}, neither a mapping nor a sequence")


def failed(table: LookedUpTable, label: str, keys: Sequence[Key], why: str) -> LookupFailedError:
    """Return the error that users get for keys without an answer; without keys for the table."""
    asked = f"{table.name} {described(table, keys)}".rstrip()
    return LookupFailedError(f"{label}, asked for {asked}: {why}")


def described(table: LookedUpTable, keys: Sequence[Key]) -> str:
    """Return what was asked for, as people read it.

    >>> described(LookedUpTable("t", ("a",), (pa.int64(),), (0,)), [(1,), (2,), (3,), (4,)])
    'a=1, a=2, a=3 and 1 more'
    """
    shown = [
        " and ".join(
            f"{name}={_short(value)}" for name, value in zip(table.bind_names, key, strict=True)
        )
        for key in keys[:3]
    ]
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""  # noqa: PLR2004 - those shown
    return ", ".join(shown) + more


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - fits a line
