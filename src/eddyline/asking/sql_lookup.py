"""A database as the source of a table."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
import re
import sqlite3
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from eddyline.asking.lookup_source import Key, LookedUpTable, NoAnswerError, TryAgainError
from eddyline.asking.patience import Gate
from eddyline.asking.shared_threads import CALLS, ThreadShare
from eddyline.asking.source_rows import RowReader, failed, zone
from eddyline.asking.text_template import Template, hidden, read_secrets
from eddyline.checked_values import whole_number

KEYS_PER_CALL: Final = 500
"""Keys of one IN list: few enough for the parameters of every database."""

SCANNED: Final = 10_000
"""Rows of a batch of a scan."""


@dataclass(frozen=True, slots=True)
class SqlLookup:
    """A source of rows: a database table or view, asked for many keys at a time.

    ``url`` is SQLAlchemy's, such as ``postgresql+psycopg://reader:${PGPASSWORD}@db.example/app`` or
    ``sqlite:////data/app.db``; ``${NAME}`` stands for an environment variable, which must be set
    when the table is registered, and is read when the database is first asked. ``table`` is the
    table's name there, with its schema if need be (``schema.table``); by default that of the lookup
    table. Keys are bound parameters, never part of the SQL.

    A statement that takes too long is cancelled in the database, where its driver can. SQLite has
    no times: they are texts there, such as ``2024-06-01 10:00:00``.
    """

    url: str = field(repr=False)
    table: str = ""
    keys_per_call: int = KEYS_PER_CALL

    def __post_init__(self) -> None:
        """Check what was given; TypeError, ValueError."""
        if not isinstance(self.url, str | sa.URL):
            raise TypeError(f"url is a text, as 'postgresql://db.example/shop', not {self.url!r}")
        whole_number(self.keys_per_call, "keys_per_call", 1)
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
        url, _ = with_secrets(self.url)
        try:
            url.get_dialect().import_dbapi()
        except (ImportError, sa.exc.NoSuchModuleError) as error:
            raise ValueError(
                f"{self.label}, the source of {table.name}, needs a driver: {error}"
            ) from None

    def connect(self, table: LookedUpTable, gate: Gate) -> SqlConnection:
        """Make a pool of connections, which are opened when they are needed."""
        return SqlConnection(self.url, self.table, table, gate)

    def scan(
        self, table: LookedUpTable, rows_per_batch: int = SCANNED
    ) -> Generator[pa.RecordBatch, None, None]:
        """Give all rows of the table, batch by batch, by one connection of its own.

        No more than a batch is in memory where the database's driver can stream. To close the
        generator ends the statement and the connection. LookupFailedError where it fails.
        """
        url, secrets = with_secrets(self.url)
        engine = engine_for(url, table, poolclass=NullPool)
        statements, reader = Statements(engine.dialect, self.table, table), RowReader(table)
        options = {"stream_results": True, "max_row_buffer": rows_per_batch}
        try:
            with (
                engine.connect() as connection,
                connection.execution_options(**options).execute(statements.scan) as result,
            ):
                for rows in result.partitions(rows_per_batch):
                    yield reader.batch(rows, ())
        except (sa.exc.SQLAlchemyError, NoAnswerError) as error:
            why = str(error) if isinstance(error, NoAnswerError) else explained(error, secrets)
            raise failed(table, self.label, (), why) from None
        finally:
            engine.dispose()


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
    if isinstance(said, sqlite3.Error):  # to which every failure is an OperationalError
        # The low byte tells the kind, the others the details.
        return getattr(said, "sqlite_errorcode", 0) & 0xFF in _SQLITE_MAY_PASS
    return error.connection_invalidated or isinstance(
        error, sa.exc.OperationalError | sa.exc.InterfaceError
    )


_HAVE_ZONES: Final = frozenset({"mssql", "oracle"})
"""Dialects, besides those of PostgreSQL, whose times may have a zone."""

_OFFSET: Final = re.compile(r"[+-]\d\d:\d\d")


def with_secrets(text: str) -> tuple[sa.URL, dict[str, str]]:
    """Return a URL with its secrets, and these; MissingSecretError where one is not set."""
    secrets = read_secrets([Template(text)])

    def filled(part: str | None) -> str | None:
        return part if part is None else Template(part).filled({}, secrets)

    url = sa.make_url(text)
    return (
        sa.URL.create(
            url.drivername,
            filled(url.username),
            filled(url.password),
            filled(url.host),
            url.port,
            filled(url.database),
            {name: filled(v) if isinstance(v, str) else v for name, v in url.query.items()},  # type: ignore[misc]  # of a text comes a text
        ),
        secrets,
    )


def engine_for(url: sa.URL, table: LookedUpTable, **options: Any) -> sa.Engine:  # noqa: ANN401 - SQLAlchemy's
    """Return an engine whose sessions are in Spark's time zone, where the database has one.

    There a time with a zone may be compared to one without.
    """
    engine = sa.create_engine(url, **options)
    zones = [kind.tz for kind in table.types if pa.types.is_timestamp(kind) and kind.tz]
    if isinstance(engine.dialect, PGDialect) and zones:

        @sa.event.listens_for(engine, "connect")
        def _(connection: Any, _: object) -> None:  # noqa: ANN401 - of any driver
            cursor = connection.cursor()
            if _OFFSET.fullmatch(zones[0]):
                # PostgreSQL would read the sign of a text the other way round.
                cursor.execute(f"SET TIME ZONE INTERVAL '{zones[0]}' HOUR TO MINUTE")
            else:
                cursor.execute("SELECT set_config('TimeZone', %s, false)", (zones[0],))
            cursor.close()
            connection.commit()

    return engine


class Statements:
    """The statements for one table."""

    def __init__(self, dialect: Dialect, name: str, table: LookedUpTable) -> None:
        """Write them for a table of this ``name``, or the lookup table's where it is empty."""
        self._dialect = dialect
        schema, _, last = (name or table.name).rpartition(".")
        columns = [
            sa.column(column, _returned(kind))
            for column, kind in zip(table.columns, table.types, strict=True)
        ]
        source = sa.table(last, *columns, schema=schema or None)
        self.scan = sa.select(*source.c)
        self._kinds = [table.types[number] for number in table.bind]
        types = [_bound(kind, dialect) for kind in self._kinds]
        bind = [source.c[column] for column in table.bind_names]
        if len(bind) == 1:
            keys = sa.bindparam("keys", expanding=True, type_=types[0])
            self._lookup = self.scan.where(bind[0].in_(keys))
        else:
            keys = sa.bindparam("keys", expanding=True, type_=sa.types.TupleType(*types))
            self._lookup = self.scan.where(sa.tuple_(*bind).in_(keys))

    def lookup(self, keys: Sequence[Key]) -> tuple[sa.Select[Any], Mapping[str, object]] | None:
        """Return a statement for the rows of keys, and its parameters.

        None where no row can have such keys.
        """
        if isinstance(self._dialect, PGDialect):  # whose texts have no NUL
            keys = [key for key in keys if not any(isinstance(v, str) and "\0" in v for v in key)]
        if not keys:
            return None
        values = [tuple(map(self._value, key, self._kinds)) for key in keys]
        return self._lookup, {"keys": values if len(self._kinds) > 1 else [v for (v,) in values]}

    def _value(self, value: object, kind: pa.DataType) -> object:
        if not isinstance(value, dt.datetime):
            return value
        if kind.tz is not None and not _has_zones(self._dialect):
            value = value.astimezone(zone(kind.tz)).replace(tzinfo=None)
        return value.isoformat(" ") if self._dialect.name == "sqlite" else value


def _has_zones(dialect: Dialect) -> bool:
    return isinstance(dialect, PGDialect) or dialect.name in _HAVE_ZONES


def _bound(kind: pa.DataType, dialect: Dialect) -> sa.types.TypeEngine[Any]:
    """Return the type of a parameter; the database finds it out for texts, as of a UUID."""
    if pa.types.is_timestamp(kind) and dialect.name != "sqlite":
        return sa.DateTime(timezone=kind.tz is not None and _has_zones(dialect))
    if pa.types.is_decimal(kind):
        return sa.Numeric(kind.precision, kind.scale)
    for fits, of_kind in _BOUND.items():
        if fits(kind):
            return of_kind
    return sa.types.NULLTYPE


def _returned(kind: pa.DataType) -> sa.types.TypeEngine[Any]:
    """Return the type of a column that is read: where drivers differ, else what they have."""
    for fits in (pa.types.is_boolean, pa.types.is_binary, pa.types.is_large_binary):
        if fits(kind):
            return _BOUND[fits]
    return sa.types.NULLTYPE


_BOUND: Final[dict[Callable[[pa.DataType], bool], sa.types.TypeEngine[Any]]] = {
    pa.types.is_boolean: sa.Boolean(),
    pa.types.is_integer: sa.BigInteger(),
    pa.types.is_floating: sa.Double(),
    pa.types.is_date: sa.Date(),
    pa.types.is_binary: sa.LargeBinary(),
    pa.types.is_large_binary: sa.LargeBinary(),
}
