"""A PostgreSQL server as a source: values of all types, hostile ones, and all that goes wrong."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import math
import threading
import time
import uuid
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.asking.access_method import AccessMethod
from eddyline.asking.limits import Limits, OnError
from eddyline.asking.lookup_source import LookedUpTable
from eddyline.asking.patience import Gate
from eddyline.asking.sql_lookup import SqlLookup
from eddyline.errors import LookupFailedError
from tests.asked import answered, canonical, rows_of, until, why
from tests.postgres import PASSWORD, Postgres

NAMES = itertools.count()
HOSTILE = "it's \"; DROP TABLE people; -- %s %(x)s :x ? \\ \u2019 ${PG_PASSWORD} {name} \U0001f512"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with Postgres() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PG_PASSWORD", PASSWORD)
        yield server


@pytest.fixture(autouse=True)
def no_connection_is_left(server: Postgres) -> Iterator[None]:
    yield
    assert until(lambda: not server.others())


def made(server: Postgres, columns: str, rows: list[dict[str, Any]]) -> str:
    """Make a table with rows, which name their columns; return its name."""
    name = f"t{next(NAMES)}"
    server.run(f"CREATE TABLE {name} ({columns})")
    if rows:
        names = ", ".join(rows[0])
        places = ", ".join(f":{each}" for each in rows[0])
        server.run(f"INSERT INTO {name} ({names}) VALUES ({places})", rows=rows)  # noqa: S608 - the tests' own
    return name


ZONED = pa.timestamp("us", tz="Europe/Paris")
LOCAL = pa.timestamp("us")
NOON = dt.datetime(2024, 6, 1, 10, tzinfo=dt.UTC)

KINDS: list[tuple[str, pa.DataType, list[Any]]] = [
    ("text", pa.string(), ["a", "", "'", HOSTILE, "\u00e9", "e\u0301", "x" * 10_000]),
    ("varchar(20)", pa.string(), ["a", "A", "\u6771\u4eac"]),
    ("uuid", pa.string(), [str(uuid.UUID(int=n)) for n in (0, 7, 2**128 - 1)]),
    ("smallint", pa.int16(), [-(2**15), 0, 2**15 - 1]),
    ("integer", pa.int32(), [-(2**31), 0, 2**31 - 1]),
    ("integer", pa.int64(), [0, 7]),
    ("bigint", pa.int64(), [-(2**63), 0, 2**63 - 1]),
    ("bigint", pa.int8(), [-128, 127]),
    (
        "numeric(10, 2)",
        pa.decimal128(10, 2),
        [Decimal("-1.50"), Decimal(0), Decimal("99999999.99")],
    ),
    ("numeric", pa.decimal128(38, 18), [Decimal("12345678901234567890.123456789012345678")]),
    ("double precision", pa.float64(), [0.0, -1.5, 1e300, math.inf, -math.inf, math.nan, 0.1]),
    ("real", pa.float32(), [0.5, math.nan]),
    ("boolean", pa.bool_(), [True, False]),
    ("date", pa.date32(), [dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]),
    (
        "timestamptz",
        ZONED,
        [NOON, NOON.replace(microsecond=1), dt.datetime(1900, 1, 1, tzinfo=dt.UTC)],
    ),
    ("timestamp", LOCAL, [NOON.replace(tzinfo=None), dt.datetime(1, 1, 1, microsecond=5)]),  # noqa: DTZ001 - local
    ("bytea", pa.binary(), [b"", b"\x00\xff'\\", bytes(range(256))]),
]


@pytest.mark.parametrize(("column", "kind", "values"), KINDS)
@pytest.mark.parametrize("keys_per_call", [1, 500])
def test_a_key_of_any_type_finds_its_rows(
    server: Postgres, column: str, kind: pa.DataType, values: list[Any], keys_per_call: int
) -> None:
    rows = [{"k": value, "n": n} for value in values for n in (1, 2)]
    rows.append({"k": None, "n": 3})
    name = made(server, f"k {column}, n int", rows)
    table = LookedUpTable(name, ("k", "n"), (kind, pa.int64()), (0,))
    source = SqlLookup(server.url, keys_per_call=keys_per_call)
    found, asked = answered(source, table, [(value,) for value in values])
    for value, each in zip(values, found, strict=True):
        assert isinstance(each, list), each
        assert sorted((canonical(k), n) for k, n in each) == [
            (canonical(value), 1),
            (canonical(value), 2),
        ]
    assert asked.calls == (len(values) if keys_per_call == 1 else 1)


def test_a_time_in_spark_and_one_without_a_zone_there_are_compared_in_sparks_zone(
    server: Postgres,
) -> None:
    local = NOON.replace(tzinfo=None) + dt.timedelta(hours=2)
    for zone in ("Europe/Paris", "+02:00"):
        name = made(server, "k timestamp, n int", [{"k": local, "n": 1}])
        table = LookedUpTable(name, ("k", "n"), (pa.timestamp("us", tz=zone), pa.int64()), (0,))
        (found,), _ = answered(SqlLookup(server.url), table, [(NOON,)])
        assert not isinstance(found, str)
        assert [(canonical(k), n) for k, n in found] == [(NOON, 1)]


def test_keys_of_several_columns_of_several_types(server: Postgres) -> None:
    day = dt.date(2024, 6, 1)
    rows: list[dict[str, Any]] = [
        {"a": f"{n % 3}'", "b": n % 5, "c": day + dt.timedelta(days=n % 2), "n": n}
        for n in range(30)
    ]
    rows += [{"a": None, "b": 1, "c": day, "n": 98}, {"a": "0'", "b": None, "c": day, "n": 99}]
    name = made(server, "a text, b int, c date, n int", rows)
    table = LookedUpTable(
        name, ("a", "b", "c", "n"), (pa.string(), pa.int32(), pa.date32(), pa.int64()), (2, 0, 1)
    )
    days = [day, day + dt.timedelta(days=1), day + dt.timedelta(days=2)]
    keys = list(itertools.product(days, ["0'", "1'", "9'"], range(6)))
    found, asked = answered(SqlLookup(server.url), table, keys)
    assert asked.requests == 1
    for key, each in zip(keys, found, strict=True):
        expected = [r["n"] for r in rows if (r["c"], r["a"], r["b"]) == key]
        assert sorted(row[3] for row in each) == expected


def test_rows_have_nulls_and_values_of_all_types(server: Postgres) -> None:
    columns = ", ".join(f"c{n} {column}" for n, (column, _, _) in enumerate(KINDS))
    full = {f"c{n}": values[0] for n, (_, _, values) in enumerate(KINDS)}
    rows = [{"k": 1, **full}, {"k": 2, **dict.fromkeys(full)}]
    name = made(server, f"k int, {columns}", rows)
    table = LookedUpTable(name, ("k", *full), (pa.int64(), *(kind for _, kind, _ in KINDS)), (0,))
    found, _ = answered(SqlLookup(server.url), table, [(1,), (2,)])
    assert [list(map(canonical, each[0])) for each in found] == [
        [canonical(value) for value in row.values()] for row in rows
    ]


@pytest.fixture(scope="module")
def people(server: Postgres) -> str:
    rows = [{"name": text, "year": n} for n, text in enumerate([HOSTILE, "ada", "", "'"])]
    return made(server, "name text, year int", rows)


@given(texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=40), min_size=1, unique=True))
def test_no_key_is_read_as_sql(server: Postgres, people: str, texts: list[str]) -> None:
    stored = {HOSTILE: 0, "ada": 1, "": 2, "'": 3}
    table = LookedUpTable(people, ("name", "year"), (pa.string(), pa.int64()), (0,))
    keys = [(text,) for text in dict.fromkeys([*texts, *stored])]
    found, _ = answered(SqlLookup(server.url), table, keys)
    assert found == [[(text, stored[text])] if text in stored else [] for (text,) in keys]
    left = server.run(f"SELECT name, year FROM {people}")  # noqa: S608 - the tests' own
    assert dict(left) == stored


def test_what_cannot_be_in_the_database_has_no_rows(server: Postgres, people: str) -> None:
    table = LookedUpTable(people, ("name", "year"), (pa.string(), pa.int64()), (0,))
    found, asked = answered(SqlLookup(server.url), table, [("a\0b",), ("ada",), ("\0",)])
    assert found == [[], [("ada", 1)], []]
    assert asked.requests == 1


@pytest.mark.parametrize("on_error", OnError)
def test_a_key_that_the_database_refuses_takes_no_other_along(
    server: Postgres, on_error: OnError
) -> None:
    rows: list[dict[str, Any]] = [{"k": uuid.UUID(int=n), "n": n} for n in range(20)]
    name = made(server, "k uuid, n int", rows)
    table = LookedUpTable(name, ("k", "n"), (pa.string(), pa.int64()), (0,))
    keys = [(str(uuid.UUID(int=n)),) for n in range(20)]
    keys[3], keys[11] = ("no uuid",), ("nor this",)
    source = SqlLookup(server.url)
    found, asked = answered(source, table, keys, Limits(on_error=on_error))
    for n, each in enumerate(found):
        if n not in {3, 11}:
            assert each == [(keys[n][0], n)]
        elif on_error is OnError.FAIL:
            assert f"asked for {name} k={keys[n][0]!r}: InvalidTextRepresentation" in each
            assert PASSWORD not in each
        else:
            assert each == ([(keys[n][0], None)] if on_error is OnError.NULL else [])
    assert asked.tries <= 2 * len(keys) - 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("DROP TABLE {}", "UndefinedTable"),
        ("ALTER TABLE {} DROP COLUMN n", "UndefinedColumn"),
        ("ALTER TABLE {} ALTER n TYPE text USING 'x'", "column n is int64"),
        ("ALTER TABLE {} ALTER n TYPE numeric USING 0.5", "column n is int64"),
    ],
)
def test_statements_that_fail_name_source_and_key(
    server: Postgres, change: str, message: str
) -> None:
    name = made(server, "k int, n int", [{"k": 1, "n": 1}])
    server.run(change.format(name))
    table = LookedUpTable(name, ("k", "n"), (pa.int64(), pa.int64()), (0,))
    source = SqlLookup(server.url)
    said = why(source, table, (1,), Limits(retries=3))
    assert said.startswith(f"{source.label}, asked for {name} k=1: {message}")
    assert PASSWORD not in said


def test_a_wrong_password_and_a_server_that_is_not_there_are_said(
    server: Postgres, people: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = LookedUpTable(people, ("name", "year"), (pa.string(), pa.int64()), (0,))
    nobody = SqlLookup("postgresql+psycopg://eddyline:${PG_PASSWORD}@127.0.0.1:1/postgres")
    assert "OperationalError" in why(nobody, table, ("ada",))
    monkeypatch.setenv("PG_PASSWORD", "wr/ong@pass")
    said = why(SqlLookup(server.url), table, ("ada",))
    assert "password authentication failed" in said
    assert "wr/ong@pass" not in said


def slow(server: Postgres, seconds: float, n: str = "7") -> LookedUpTable:
    """Return a view whose rows take time, with an expression as its column ``n``."""
    name = f"v{next(NAMES)}"
    slept = f"pg_sleep({seconds})::text AS slept"
    server.run(
        f"CREATE VIEW {name} AS SELECT k::bigint, {n} AS n, {slept} FROM generate_series(1, 100) k"  # noqa: S608 - the tests' own
    )
    columns, kinds = ("k", "n", "slept"), (pa.int64(), pa.int64(), pa.string())
    return LookedUpTable(name, columns, kinds, (0,))


def test_a_connection_that_is_lost_is_replaced(server: Postgres) -> None:
    table = slow(server, 0.5)
    busy = f"state = 'active' AND query LIKE '%{table.name}%'"

    async def work() -> None:
        method = AccessMethod(table, SqlLookup(server.url), Limits(max_in_flight=1))
        lookup = method.shared("1", Random(0), time.monotonic)
        asking = asyncio.create_task(rows_of(lookup, [(1,)]))
        await asyncio.to_thread(until, lambda: bool(server.others(busy)))
        others = f"FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND {busy}"
        server.run(f"SELECT pg_terminate_backend(pid) {others}")
        assert await asking == [[(1, 7, "")]]
        assert lookup.statistics().tries == 2
        await lookup.close()

    asyncio.run(work())


def test_a_statement_that_takes_too_long_is_cancelled_in_the_database(server: Postgres) -> None:
    table = slow(server, 60)
    running = f"state = 'active' AND query LIKE '%{table.name}%'"

    async def work() -> None:
        limits = Limits(max_in_flight=2, timeout=0.5, retries=1)
        lookup = AccessMethod(table, SqlLookup(server.url), limits).shared(
            "1", Random(0), time.monotonic
        )
        (error,) = await rows_of(lookup, [(1,)])
        assert isinstance(error, str)
        assert error.endswith("k=1: no answer in 0.5 s, tried 2 times")
        assert await asyncio.to_thread(until, lambda: not server.others(running))
        await lookup.close()

    asyncio.run(work())


def test_a_lookup_that_is_closed_leaves_no_statement_and_no_connection(server: Postgres) -> None:
    table = slow(server, 60)
    running = f"state = 'active' AND query LIKE '%{table.name}%'"

    async def work() -> None:
        source = SqlLookup(server.url, keys_per_call=1)
        lookup = AccessMethod(table, source, Limits(max_in_flight=3)).shared(
            "1", Random(0), time.monotonic
        )
        futures = lookup.rows([(key,) for key in range(1, 21)])
        assert await asyncio.to_thread(until, lambda: server.others(running) == 3)
        await lookup.close()
        assert [future for future in futures if not future.cancelled()] == []
        assert await asyncio.to_thread(until, lambda: not server.others())

    asyncio.run(work())


def test_there_are_as_many_connections_as_requests_may_be_on_their_way(server: Postgres) -> None:
    table = slow(server, 0.05, "pg_backend_pid()")
    most = 0
    over = threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.is_set():
            most = max(most, server.others(f"query LIKE '%{table.name}%'"))

    async def work() -> None:
        limits = Limits(max_in_flight=4)
        source = SqlLookup(server.url, keys_per_call=1)
        lookup = AccessMethod(table, source, limits).shared("1", Random(0), time.monotonic)
        watching = asyncio.get_running_loop().run_in_executor(None, watch)
        found = await rows_of(lookup, [(key,) for key in range(1, 41)])
        over.set()
        rows = [row for each in found if isinstance(each, list) for row in each]
        assert [key for key, _, _ in rows] == list(range(1, 41))
        assert len({process for _, process, _ in rows}) == 4  # none was opened a second time
        await watching
        assert most == 4
        await lookup.close()

    asyncio.run(work())


def test_all_rows_of_a_table_can_be_scanned(server: Postgres) -> None:
    name = made(server, "k int, n text", [])
    server.run(f"INSERT INTO {name} SELECT k, 'n' || k FROM generate_series(1, 2500) k")  # noqa: S608 - the tests' own
    table = LookedUpTable(name, ("n", "k"), (pa.string(), pa.int64()), (0,))
    source = SqlLookup(server.url)
    batches = list(source.scan(table, rows_per_batch=1000))
    assert [batch.num_rows for batch in batches] == [1000, 1000, 500]
    found = pa.Table.from_batches(batches)
    assert found.schema == table.schema
    assert sorted(found.column("k").to_pylist()) == list(range(1, 2501))
    scan = source.scan(table, rows_per_batch=10)
    next(scan)
    assert server.others()
    scan.close()
    server.run(f"DROP TABLE {name}")
    with pytest.raises(LookupFailedError, match=rf"{name}: UndefinedTable"):
        list(source.scan(table))


def test_what_was_never_asked_opens_nothing(server: Postgres, people: str) -> None:
    table = LookedUpTable(people, ("name", "year"), (pa.string(), pa.int64()), (0,))

    async def work() -> None:
        connection = SqlLookup(server.url).connect(table, Gate(Limits()))
        assert not server.others()
        await connection.close()

    asyncio.run(work())
