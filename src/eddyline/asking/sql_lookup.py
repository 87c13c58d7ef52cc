"""A database as the source of a table."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from eddyline.asking.checked_numbers import whole_number
from eddyline.asking.lookup_source import LookedUpTable
from eddyline.asking.no_answer import NoAnswerError
from eddyline.asking.patience import Gate
from eddyline.asking.source_rows import RowReader, failed
from eddyline.asking.sql_connection import SqlConnection, explained
from eddyline.asking.sql_statements import Statements, engine_for, with_secrets

KEYS_PER_CALL: Final = 500
"""Keys of one IN list: few enough for the parameters of every database."""

SCANNED: Final = 10_000
"""Rows of a batch of a scan."""


@dataclass(frozen=True, slots=True)
class SqlLookup:
    """Asks a database for the rows of one of its tables or views, many keys at a time.

    ``url`` is SQLAlchemy's, as ``postgresql+psycopg://reader:${PGPASSWORD}@db.example/app`` or
    ``sqlite:////data/app.db``; ``${NAME}`` stands for an environment variable, which must be set
    when the table is registered, and is read when the database is first asked. ``table`` is the
    table's name there, as ``schema.table`` if need be; by default that of the lookup table. Keys
    are bound parameters, never part of the SQL.

    A statement that takes too long is cancelled in the database, where its driver can. SQLite has
    no times: they are texts there, as ``2024-06-01 10:00:00``.
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
                connection.execution_options(**options).execute(statements.scan) as found,
            ):
                for rows in found.partitions(rows_per_batch):
                    yield reader.batch(rows, ())
        except (sa.exc.SQLAlchemyError, NoAnswerError) as error:
            why = str(error) if isinstance(error, NoAnswerError) else explained(error, secrets)
            raise failed(table, self.label, (), why) from None
        finally:
            engine.dispose()
