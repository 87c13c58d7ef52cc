"""A database as the source of a table."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from eddyline.sources.failures import NoAnswerError, TryAgainError
from eddyline.sources.gate import Gate
from eddyline.sources.lookup_source import Key, LookedUpTable
from eddyline.sources.rows import RowReader
from eddyline.sources.template import Template, hidden, read_secrets

KEYS_PER_CALL: Final = 500
"""Keys of one IN list: few enough for the parameters of every database."""

_SQLITE_MAY_PASS: Final = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
)


@dataclass(frozen=True, slots=True)
class SqlLookup:
    """Asks a database for the rows of one of its tables or views, many keys at a time.

    ``url`` is SQLAlchemy's, as ``postgresql+psycopg://reader:${PGPASSWORD}@db.example/app`` or
    ``sqlite:////data/app.db``; ``${NAME}`` stands for an environment variable, which must be set
    when the table is registered, and is read when the database is first asked. ``table`` is the
    table's name there, as ``schema.table`` if need be; by default that of the lookup table. Keys
    are bound parameters, never part of the SQL.
    """

    url: str = field(repr=False)
    table: str = ""
    keys_per_call: int = KEYS_PER_CALL

    def __post_init__(self) -> None:
        """Check what was given; ValueError."""
        if self.keys_per_call < 1:
            raise ValueError(f"a call asks for 1 key at least, not {self.keys_per_call}")
        try:
            sa.make_url(self.url)
        except sa.exc.ArgumentError as error:
            raise ValueError(f"{self.url!r} is no URL of a database: {error}") from None

    @property
    def label(self) -> str:
        """The URL, without the password."""
        url = sa.make_url(self.url).render_as_string(hide_password=True)
        return f"{url} {self.table}".rstrip()

    def check(self, table: LookedUpTable) -> None:
        """Raise ValueError where the database's driver is not installed.

        MissingSecretError where a secret is not set.
        """
        url = Template(self.url)
        filled = sa.make_url(url.filled({}, read_secrets([url])))
        try:
            filled.get_dialect().import_dbapi()
        except ImportError as error:
            raise ValueError(
                f"{self.label}, the source of {table.name}, needs a driver: {error}"
            ) from None

    def connect(self, table: LookedUpTable, gate: Gate) -> SqlConnection:
        """Make a pool of connections, which are opened when they are needed."""
        return SqlConnection(self, table, gate)


class SqlConnection:
    """A pool of connections to a database, each used by a thread."""

    def __init__(self, source: SqlLookup, table: LookedUpTable, gate: Gate) -> None:
        """Read the secrets. MissingSecretError where one is not set."""
        self._source = source
        self._table = table
        self._reader = RowReader(table)
        self._gate = gate
        url = Template(source.url)
        self._secrets = read_secrets([url])
        self._engine = sa.create_engine(
            url.filled({}, self._secrets), pool_size=gate.width, max_overflow=0
        )
        self._threads = ThreadPoolExecutor(gate.width, "eddyline-sql")
        schema, _, name = (source.table or table.name).rpartition(".")
        columns: list[sa.ColumnClause[Any]] = [sa.column(column) for column in table.columns]
        self._from = sa.table(name, *columns, schema=schema or None)
        self._bind = [self._from.c[column] for column in table.bind_names]

    async def fetch(self, keys: Sequence[Key]) -> pa.RecordBatch:
        """Return the rows of keys, by one query."""
        if len(self._bind) == 1:
            wanted = self._bind[0].in_([key[0] for key in keys])
        else:
            wanted = sa.tuple_(*self._bind).in_(list(map(tuple, keys)))
        query = sa.select(*self._from.c).where(wanted)
        loop = asyncio.get_running_loop()
        async with self._gate.request():
            try:
                rows = await loop.run_in_executor(self._threads, self._rows, query)
            except DBAPIError as error:
                said = hidden(f"{type(error.orig).__name__}: {error.orig}", self._secrets)
                if _may_pass(error):
                    raise TryAgainError(said) from None
                raise NoAnswerError(said) from None
            except SQLAlchemyError as error:
                raise NoAnswerError(hidden(str(error), self._secrets)) from None
        return self._reader.batch(rows, keys)

    async def close(self) -> None:
        """Close the connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._engine.dispose()

    def _rows(self, query: sa.Select[Any]) -> list[tuple[Any, ...]]:
        with self._engine.connect() as connection:
            return [tuple(row) for row in connection.execute(query)]


def _may_pass(error: DBAPIError) -> bool:
    """Tell whether the statement may succeed another time."""
    said = error.orig
    if isinstance(said, sqlite3.Error):  # for which whatever goes wrong is an OperationalError
        # The low byte tells the kind, the others what of it.
        return getattr(said, "sqlite_errorcode", 0) & 0xFF in _SQLITE_MAY_PASS
    return error.connection_invalidated or isinstance(
        error, sa.exc.OperationalError | sa.exc.InterfaceError
    )
