"""A database that is asked: threads, a pool of connections, and what errors mean."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from eddyline.asking.lookup_source import Key, LookedUpTable
from eddyline.asking.no_answer import NoAnswerError, TryAgainError
from eddyline.asking.patience import Gate
from eddyline.asking.shared_threads import CALLS, ThreadShare
from eddyline.asking.source_rows import RowReader
from eddyline.asking.sql_statements import Statements, engine_for, with_secrets
from eddyline.asking.text_template import hidden

CLOSING: Final = 10.0
"""Seconds for statements that were cancelled to end, before their connections are left."""

_SQLITE_MAY_PASS: Final = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
)


class SqlConnection:
    """A pool of connections to a database, as many as requests may be on their way."""

    def __init__(self, text: str, name: str, table: LookedUpTable, gate: Gate) -> None:
        """Read the secrets. MissingSecretError where one is not set."""
        self._reader = RowReader(table)
        self._gate = gate
        url, self._secrets = with_secrets(text)
        waits: dict[str, Any] = {}
        if issubclass(url.get_dialect(), PGDialect) and math.isfinite(gate.timeout):
            waits = {"connect_args": {"connect_timeout": math.ceil(gate.timeout)}}
        self._engine = engine_for(
            url, table, poolclass=QueuePool, pool_size=gate.width, max_overflow=0, **waits
        )
        self._statements = Statements(self._engine.dialect, name, table)
        self._threads = ThreadShare(CALLS, gate.width)
        self._ends = ThreadShare(CALLS, gate.width + 1)

    async def fetch(self, keys: Sequence[Key]) -> pa.RecordBatch:
        """Return the rows of keys, by one statement."""
        asked = self._statements.lookup(keys)
        if asked is None:
            return self._reader.batch((), keys)
        statement = _Statement(self._engine, *asked)
        loop = asyncio.get_running_loop()
        async with self._gate.request():
            try:
                rows = await loop.run_in_executor(self._threads, statement.rows)
            except asyncio.CancelledError:
                loop.run_in_executor(self._ends, statement.cancel)
                raise
            except SQLAlchemyError as error:
                said = explained(error, self._secrets)
                if isinstance(error, DBAPIError) and _may_pass(error):
                    raise TryAgainError(said) from None
                raise NoAnswerError(said) from None
        return self._reader.batch(rows, keys)

    async def close(self) -> None:
        """Close the connections, when the statements that were cancelled have ended."""
        loop = asyncio.get_running_loop()
        self._threads.shutdown(wait=False, cancel_futures=True)
        ended = loop.run_in_executor(self._ends, self._threads.shutdown)
        await asyncio.wait([ended], timeout=CLOSING)
        self._ends.shutdown(wait=False)
        self._engine.dispose()


class _Statement:
    """A statement that runs in one thread and may be cancelled from another."""

    def __init__(
        self, engine: sa.Engine, query: sa.Select[Any], parameters: Mapping[str, object]
    ) -> None:
        self._engine = engine
        self._query = query
        self._parameters = parameters
        self._lock = threading.Lock()
        self._driver: Any = None
        self._cancelled = threading.Event()

    def rows(self) -> list[tuple[Any, ...]]:
        """Return what it has found; none where it was cancelled before."""
        with self._engine.connect() as connection:
            with self._lock:
                if self._cancelled.is_set():
                    return []
                self._driver = connection.connection.dbapi_connection
            try:
                return [tuple(row) for row in connection.execute(self._query, self._parameters)]
            finally:
                with self._lock:
                    self._driver = None
                if self._cancelled.is_set():
                    connection.invalidate()  # it might be the next statement that is cancelled

    def cancel(self) -> None:
        """End it in the database, where the driver knows how."""
        with self._lock:
            self._cancelled.set()
            # psycopg; psycopg2 and oracledb; sqlite3 and duckdb
            for name in ("cancel_safe", "cancel", "interrupt"):
                method = getattr(self._driver, name, None)
                if method is not None:
                    with suppress(Exception):  # whatever the driver says: there is no other way
                        method()
                    return


def explained(error: SQLAlchemyError, secrets: Mapping[str, str]) -> str:
    """Return what a driver says, without statement and secrets."""
    origin = error.orig if isinstance(error, DBAPIError) else None
    text = f"{type(origin).__name__}: {origin}" if origin is not None else str(error)
    return hidden(text.strip(), secrets)


def _may_pass(error: DBAPIError) -> bool:
    """Tell whether the statement may succeed another time."""
    said = error.orig
    if isinstance(said, sqlite3.Error):  # for which whatever goes wrong is an OperationalError
        # The low byte tells the kind, the others what of it.
        return getattr(said, "sqlite_errorcode", 0) & 0xFF in _SQLITE_MAY_PASS
    return error.connection_invalidated or isinstance(
        error, sa.exc.OperationalError | sa.exc.InterfaceError
    )
