"""Databases as sources: keys are parameters, whatever is in them."""

from __future__ import annotations

import datetime as dt
import sqlite3
import threading
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import Key, LookedUpTable
from eddyline.asking.sql_lookup import SqlLookup
from eddyline.errors import LookupFailedError, MissingSecretError
from tests.asked import answered, called, why

TABLE = LookedUpTable(
    "people", ("name", "year", "note"), (pa.string(), pa.int64(), pa.string()), (0,)
)
BOTH = LookedUpTable("people", TABLE.columns, TABLE.types, (0, 1))
HOSTILE = [
    "'",
    "' OR 1=1 --",
    '"; DROP TABLE people; --',
    "%",
    "_",
    "\\",
    ":name",
    "?",
    "\u2019",
    "",
]


def fetched(source: SqlLookup, table: LookedUpTable, keys: Sequence[Key]) -> list[Any]:
    return [tuple(row.values()) for row in called(source, table, keys)]


@pytest.fixture
def url(tmp_path: Path) -> str:
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (name TEXT, year INTEGER, note TEXT)")
        rows = [("ada", 1815, "a"), ("ada", 1900, "b"), ("bob", 1900, None)]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        hostile = [(text, 1, "hostile") for text in HOSTILE]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", hostile)
    connection.close()
    return f"sqlite:///{path}"


def test_rows_of_several_keys_come_by_one_query(url: str) -> None:
    source = SqlLookup(url)
    assert sorted(fetched(source, TABLE, [("ada",), ("bob",), ("eve",)]), key=str) == [
        ("ada", 1815, "a"),
        ("ada", 1900, "b"),
        ("bob", 1900, None),
    ]


def test_keys_of_several_columns(url: str) -> None:
    found = fetched(SqlLookup(url), BOTH, [("ada", 1900), ("bob", 1815)])
    assert found == [("ada", 1900, "b")]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_key_is_a_key(url: str, text: str) -> None:
    source = SqlLookup(url)
    assert fetched(source, TABLE, [(text,)]) == [(text, 1, "hostile")]
    assert fetched(source, BOTH, [(text, 1)]) == [(text, 1, "hostile")]
    assert len(fetched(source, TABLE, [("ada",)])) == 2


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
def test_no_key_is_read_as_sql(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "app.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (name TEXT, year INTEGER, note TEXT)")
        connection.execute("INSERT INTO people VALUES (?, 1, 'own')", (text,))
        connection.execute("INSERT INTO people VALUES (?, 2, 'other')", (text + "x",))
    connection.close()
    found = fetched(SqlLookup(f"sqlite:///{path}"), TABLE, [(text,)])
    assert found == [(text, 1, "own")]


def test_a_table_that_is_not_there_fails_with_source_and_key(url: str) -> None:
    source = SqlLookup(url, table="nobody")
    (said,), asked = answered(source, TABLE, [("ada",)], Limits(retries=3))
    assert said == (
        f"{source.label}, asked for people name='ada': OperationalError: no such table: nobody"
    )
    assert asked.tries == 1


def test_a_password_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_PASSWORD", "s3cret")
    source = SqlLookup("postgresql+psycopg://me:${TINY_PASSWORD}@127.0.0.1:1/app")
    assert "s3cret" not in source.label + repr(source)
    monkeypatch.delenv("TINY_PASSWORD")
    with pytest.raises(MissingSecretError, match="TINY_PASSWORD is not set"):
        source.check(TABLE)
    open_ = SqlLookup("postgresql+psycopg://me:literal@127.0.0.1:1/app")
    assert "literal" not in open_.label + repr(open_)


@pytest.mark.parametrize("text", ["", "no url", "/data/app.db"])
def test_what_is_no_url_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no URL of a database"):
        SqlLookup(text)


def test_a_driver_that_is_not_there_is_missed_at_once() -> None:
    source = SqlLookup("oracle+cx_oracle://me:secret@127.0.0.1:1/app")
    with pytest.raises(ValueError, match=r"people, needs a driver: .*cx_Oracle") as raised:
        source.check(TABLE)
    assert "secret" not in str(raised.value)


PARIS = pa.timestamp("us", tz="Europe/Paris")
NOON = dt.datetime(2024, 6, 1, 12, tzinfo=ZoneInfo("Europe/Paris"))


@pytest.mark.parametrize(
    ("column", "kind", "stored", "key"),
    [
        ("TEXT", pa.string(), "'", "'"),
        ("TEXT", pa.string(), "a\0b", "a\0b"),
        ("INTEGER", pa.int64(), -(2**63), -(2**63)),
        ("BOOLEAN", pa.bool_(), 1, True),
        ("REAL", pa.float64(), 0.1, 0.1),
        ("NUMERIC", pa.decimal128(10, 2), 1.5, Decimal("1.50")),
        ("BLOB", pa.binary(), b"\0'\xff", b"\0'\xff"),
        ("TEXT", pa.date32(), "2024-06-01", dt.date(2024, 6, 1)),
        ("TEXT", pa.timestamp("us"), "2024-06-01 12:00:00", NOON.replace(tzinfo=None)),
        ("TEXT", PARIS, "2024-06-01 12:00:00", NOON),
        ("TEXT", PARIS, "2024-06-01 12:00:00", NOON.astimezone(dt.UTC)),
        ("TEXT", PARIS, "2024-06-01 12:00:00.500000", NOON.replace(microsecond=500_000)),
    ],
)
def test_a_key_of_any_type_finds_its_rows(
    tmp_path: Path, column: str, kind: pa.DataType, stored: object, key: object
) -> None:
    path = tmp_path / "types.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE t (k {column}, n INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(stored, 1), (None, 2)])
    connection.close()
    table = LookedUpTable("t", ("k", "n"), (kind, pa.int64()), (0,))
    both = LookedUpTable("t", ("k", "n"), (kind, pa.int64()), (1, 0))
    source = SqlLookup(f"sqlite:///{path}")
    for found in (answered(source, table, [(key,)])[0], answered(source, both, [(1, key)])[0]):
        assert found == [[(key, 1)]]


def test_a_statement_that_takes_too_long_is_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "slow.db"
    endless = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n) SELECT k FROM n"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE VIEW t AS {endless}")
    connection.close()
    table = LookedUpTable("t", ("k",), (pa.int64(),), (0,))
    before = threading.active_count()
    said = why(SqlLookup(f"sqlite:///{path}"), table, (-1,), Limits(timeout=0.3, retries=0))
    assert said.endswith("t k=-1: no answer in 0.3 s, tried once")
    assert threading.active_count() <= before + 1  # who has interrupted it may wait for more work


def test_all_rows_can_be_scanned(url: str) -> None:
    batches = list(SqlLookup(url).scan(TABLE, rows_per_batch=4))
    assert [batch.num_rows for batch in batches] == [4, 4, 4, 1]
    rows = pa.Table.from_batches(batches).to_pylist()
    assert {(row["name"], row["note"]) for row in rows} >= {("ada", "a"), ("bob", None)}
    with pytest.raises(LookupFailedError, match="asked for people: OperationalError: no such"):
        list(SqlLookup(url, table="nobody").scan(TABLE))


def test_one_bad_key_takes_no_other_along(url: str) -> None:
    source = SqlLookup(url)
    numbers = LookedUpTable("people", TABLE.columns, TABLE.types, (1,))
    found, asked = answered(source, numbers, [(1815,), (2**70,), (1900,), (7,)])
    assert found[0] == [("ada", 1815, "a")]
    said = str(found[1])
    assert "OverflowError" in said
    assert f"year={2**70}" in said
    assert sorted(found[2], key=str) == [("ada", 1900, "b"), ("bob", 1900, None)]
    assert found[3] == []
    assert asked.tries == 5  # four keys, two of them, these two alone, the other two
