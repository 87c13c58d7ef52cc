"""Rows as a source gives them, into columns of the table's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from eddyline.sources.conversions import conversion
from eddyline.sources.failures import LookupFailedError, NoAnswerError
from eddyline.sources.lookup_source import Key, LookedUpTable


def as_batch(table: LookedUpTable, rows: Iterable[object], keys: Sequence[Key]) -> pa.RecordBatch:
    """Return rows, which are mappings by column or sequences in the columns' order.

    A bind column that a mapping lacks has the value that was asked for, where that is one key. A
    time without a zone is one of the session's zone, as Spark's own readers have it. NoAnswerError
    where rows are not of the table.
    """
    found = [_values(table, row, keys) for row in rows]
    columns = []
    for number, (name, kind) in enumerate(zip(table.columns, table.types, strict=True)):
        convert = conversion(kind)
        values = [row[number] for row in found]
        try:
            if convert is not None:
                values = [None if value is None else convert(value) for value in values]
            columns.append(pa.array(values, kind))
        except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
            raise NoAnswerError(
                f"column {name} is {kind}, which an answer does not fit: {error}"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def failed(table: LookedUpTable, label: str, keys: Sequence[Key], why: str) -> LookupFailedError:
    """Return the error that users get for keys without an answer."""
    return LookupFailedError(f"{label}, asked for {table.name} {described(table, keys)}: {why}")


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


def _values(table: LookedUpTable, row: object, keys: Sequence[Key]) -> Sequence[Any]:
    if isinstance(row, Mapping):
        asked = dict(zip(table.bind_names, keys[0], strict=True)) if len(keys) == 1 else {}
        missing = [name for name in table.bind_names if name not in row and name not in asked]
        if missing:
            raise NoAnswerError(
                f"a row lacks {', '.join(missing)}, so that nobody knows which key it is for"
            )
        return [row.get(name, asked.get(name)) for name in table.columns]
    if isinstance(row, Sequence) and not isinstance(row, str | bytes):
        if len(row) == len(table.columns):
            return row
        raise NoAnswerError(f"a row has {len(row)} values, not {len(table.columns)}")
    raise NoAnswerError(f"a row is {type(row).__name__}, neither a mapping nor a sequence")
