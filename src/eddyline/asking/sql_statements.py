"""What a database is asked, in its own dialect, and with values as it has them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.engine.interfaces import Dialect

from eddyline.asking.conversions import zone
from eddyline.asking.lookup_source import Key, LookedUpTable
from eddyline.asking.text_template import Template, read_secrets

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
                # As a text PostgreSQL would read its sign the other way round.
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
