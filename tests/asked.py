"""Sources asked for keys, as the server of lookups asks them, and one call alone."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import threading
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa

from eddyline.asking.access_method import AccessMethod, SharedTable
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import Key, LookedUpTable, LookupSource
from eddyline.asking.patience import Gate
from eddyline.asking.shared_statistics import SharedLookupStatistics
from eddyline.errors import LookupFailedError

Rows: TypeAlias = list[tuple[Any, ...]]


class Latch(threading.Event):
    """What a function waits for, on its own loop, until a test on another one says go on."""

    async def passed(self) -> None:
        """Wait until it is set."""
        while not self.is_set():  # noqa: ASYNC110 - an Event of asyncio is of one loop
            await asyncio.sleep(0.001)


def called(
    source: LookupSource, table: LookedUpTable, keys: Sequence[Key], limits: Limits | None = None
) -> list[dict[str, Any]]:
    """Return the rows that a source gives in one call; or raise what the call raises."""

    async def call() -> pa.RecordBatch:
        connection = source.connect(table, Gate(limits or Limits()))
        try:
            return await connection.fetch(keys)
        finally:
            await connection.close()

    source.check(table)
    rows: list[dict[str, Any]] = asyncio.run(call()).to_pylist()
    return rows


async def rows_of(lookup: SharedTable, keys: Sequence[Key]) -> list[Rows | str]:
    """Return for each key its rows, or the error's text."""
    found = await asyncio.gather(*lookup.rows(keys), return_exceptions=True)
    rows: list[Rows | str] = []
    for each in found:
        if isinstance(each, BaseException):
            assert isinstance(each, LookupFailedError), each
            rows.append(str(each))
        else:
            rows.append([tuple(row.values()) for row in each.rows.to_pylist()])
    return rows


def answered(
    source: LookupSource, table: LookedUpTable, keys: Sequence[Key], limits: Limits | None = None
) -> tuple[list[Rows | str], SharedLookupStatistics]:
    """Return for each key its rows, or the error's text; and what it took."""

    async def ask() -> tuple[list[Rows | str], SharedLookupStatistics]:
        method = AccessMethod(table, source, limits or Limits(retries=0))
        lookup = method.shared("1", Random(0), time.monotonic)
        try:
            rows = await rows_of(lookup, keys)
        finally:
            await lookup.close()
        return rows, lookup.statistics()

    source.check(table)
    return asyncio.run(ask())


def why(source: LookupSource, table: LookedUpTable, key: Key, limits: Limits | None = None) -> str:
    """Return the error's text for a key that has no answer."""
    (found,), _ = answered(source, table, [key], limits)
    assert isinstance(found, str), found
    return found


def canonical(value: Any) -> Any:  # noqa: ANN401 - of any type
    """Return a value that is equal to itself."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) and value.tzinfo else value


def until(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait until something holds that others bring about; tell whether it does in the end."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()
