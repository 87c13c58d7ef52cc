"""Rows as a source gives them, into columns of the table's types."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from eddyline.sources.failures import LookupFailedError
from eddyline.sources.lookup_source import Key, LookedUpTable

_FROM_TEXT: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[str], object]], ...]] = (
    (pa.types.is_date, dt.date.fromisoformat),
    (pa.types.is_timestamp, dt.datetime.fromisoformat),
    (pa.types.is_decimal, decimal.Decimal),
)
"""Types that JSON has only as text."""


def as_batch(
    table: LookedUpTable, label: str, rows: Iterable[object], keys: Sequence[Key]
) -> pa.RecordBatch:
    """Return rows, which are mappings by column or sequences in the columns' order.

    A bind column that a mapping lacks has the value that was asked for, where that is one
    key. LookupFailedError where rows are not of the table.
    """
    found = [_values(table, label, row, keys) for row in rows]
    columns = []
    for number, (name, kind) in enumerate(zip(table.columns, table.types, strict=True)):
        values = [_converted(row[number], kind) for row in found]
        try:
            columns.append(pa.array(values, kind))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise LookupFailedError(
                f"{label}, asked for {table.name} {described(table, keys)}: column {name} is "
                f"{kind}, which an answer does not fit: {error}"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


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


def _values(table: LookedUpTable, label: str, row: object, keys: Sequence[Key]) -> Sequence[Any]:
    if isinstance(row, Mapping):
        asked = dict(zip(table.bind_names, keys[0], strict=True)) if len(keys) == 1 else {}
        missing = [name for name in table.bind_names if name not in row and name not in asked]
        if missing:
            raise LookupFailedError(
                f"{label}, asked for {table.name} {described(table, keys)}: a row lacks "
                f"{', '.join(missing)}, so that nobody knows which key it is for"
            )
        return [row.get(name, asked.get(name)) for name in table.columns]
    if isinstance(row, Sequence) and not isinstance(row, str | bytes):
        if len(row) == len(table.columns):
            return row
        raise LookupFailedError(
            f"{label}, asked for {table.name} {described(table, keys)}: a row has {len(row)} "
            f"values, not {len(table.columns)}"
        )
    raise LookupFailedError(
        f"{label}, asked for {table.name} {described(table, keys)}: a row is "
        f"{type(row).__name__}, neither a mapping nor a sequence"
    )


def _converted(value: object, kind: pa.DataType) -> object:
    if isinstance(value, str):
        for fits, convert in _FROM_TEXT:
            if fits(kind):
                try:
                    return convert(value)
                except (ValueError, ArithmeticError):
                    return value  # pyarrow says what is wrong
    return value
