"""Answers that spell a key in another way than it was asked for are lost nowhere without a word."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from eddyline.asking.access_method import AccessMethod
from eddyline.asking.http_lookup import HttpLookup
from eddyline.asking.limits import Limits, OnError
from eddyline.asking.lookup_source import Key, LookedUpTable
from eddyline.asking.python_lookup import PythonLookup
from eddyline.asking.sql_lookup import SqlLookup
from tests.asked import answered, rows_of
from tests.http_service import HttpService, Reply

TABLE = LookedUpTable("t", ("k", "v"), (pa.string(), pa.int64()), (0,))
UPPER = [("a", "A"), ("b ", "b"), ("c", "C")]
"""Keys as they are asked for, and as the source has them."""


def of(kind: pa.DataType) -> LookedUpTable:
    return replace(TABLE, types=(kind, pa.int64()))


def respelling(keys: list[str]) -> list[tuple[str, int]]:
    return [(dict(UPPER)[key], n) for n, key in enumerate(keys)]


def test_the_answer_to_a_single_key_belongs_to_it_and_keeps_its_own() -> None:
    found, done = answered(PythonLookup(respelling), TABLE, [(key,) for key, _ in UPPER])
    assert found == [[("A", 0)], [("b", 0)], [("C", 0)]]
    assert (done.unmatched, done.failures) == (0, 0)


def test_it_makes_no_difference_which_keys_happen_to_go_together() -> None:
    (first, second), _ = answered(PythonLookup(respelling, 2), TABLE, [("a",), ("c",)])
    (alone,), done = answered(PythonLookup(respelling, 2), TABLE, [("a",)])
    assert first == second
    assert isinstance(alone, str)
    assert "keys_per_call=1" in alone
    assert done.unmatched == 1


def test_where_the_key_itself_is_there_rows_spelled_otherwise_are_not_its() -> None:
    source = PythonLookup(lambda keys: [(keys[0].upper(), 1), (keys[0], 2), (None, 3)])
    (rows,), done = answered(source, TABLE, [("a",)])
    assert rows == [("a", 2)]
    assert done.unmatched == 2


def test_rows_of_several_other_keys_are_no_answer_to_one() -> None:
    source = PythonLookup(lambda _: [("x", 1), ("y", 2)])
    found, done = answered(source, TABLE, [("a",)])
    assert found == [[]]
    assert (done.unmatched, done.failures) == (2, 0)


@pytest.mark.parametrize(
    ("kind", "asked", "given", "other"),
    [
        (pa.int64(), 5, "5", 0),
        (pa.int32(), 7, "007", 0),
        (pa.string(), "5", 5, "0"),
        (pa.string(), "true", True, "0"),
        (pa.float64(), 1.5, "1.50", 0.0),
        (pa.decimal128(6, 2), Decimal("1.50"), "1.5", Decimal("0.00")),
        (pa.decimal128(6, 2), Decimal("1.50"), 1.4999, Decimal("0.00")),
        (pa.date32(), dt.date(2024, 6, 1), "2024-06-01T00:00:00", dt.date(2024, 6, 2)),
        (pa.bool_(), True, "True", False),
    ],
)
def test_keys_of_another_type_are_read_also_among_several(
    kind: pa.DataType, asked: object, given: object, other: object
) -> None:
    source = PythonLookup(lambda keys: [(given, 1) for key in keys if key == asked], 2)
    found, done = answered(source, of(kind), [(asked,), (other,)])
    assert [len(rows) for rows in found] == [1, 0]
    assert done.unmatched == 0


def test_of_several_bind_columns_one_may_be_spelled_otherwise() -> None:
    table = LookedUpTable("t", ("k", "n", "v"), (pa.string(), pa.int64(), pa.int64()), (0, 1))
    source = PythonLookup(lambda keys: [{"k": k.upper(), "v": n} for k, n in keys])
    found, _ = answered(source, table, [("a", 1), ("b", 2)])
    assert found == [[("A", 1, 1)], [("B", 2, 2)]]


def test_a_key_within_the_json_of_an_answer() -> None:
    with HttpService(
        lambda request: Reply([{"id": {"code": request.path[1:].upper()}, "v": 1}])
    ) as s:
        for path, own in (("id.code", "A"),):
            source = HttpLookup(s.url + "/{k}", columns={"k": path})
            assert answered(source, TABLE, [("a",)])[0] == [[(own, 1)]]


# --- Several keys a call


def test_rows_of_no_key_are_counted_and_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    def source(keys: list[str]) -> list[tuple[str, int]]:
        return [(key.upper() if key in "bd" else key, 1) for key in keys]

    with caplog.at_level(logging.WARNING):
        found, done = answered(PythonLookup(source, 2), TABLE, [(key,) for key in "abcd"])
    assert [len(rows) for rows in found] == [1, 0, 1, 0]
    assert (done.unmatched, done.failures) == (2, 0)
    (message,) = caplog.messages
    assert "rows came (1) with keys that were not asked for" in message
    assert "k='B'" in message
    assert "keys_per_call=1" in message


def asked_in(on_error: OnError, sources: Sequence[Callable[[list[Any]], object]]) -> list[Any]:
    """Return what two keys have that are asked for together."""
    limits = Limits(retries=0, on_error=on_error)

    async def ask() -> list[Any]:
        methods = [AccessMethod(TABLE, PythonLookup(each, 5), limits) for each in sources]
        method = replace(methods[0], mirrors=tuple(methods[1:]))
        lookup = method.shared("1", Random(0), time.monotonic)
        try:
            found = await rows_of(lookup, [("a",), ("c",)])
            assert lookup.statistics().unmatched == 2
            assert lookup.statistics().failures >= 1
            return found
        finally:
            await lookup.close()

    return asyncio.run(ask())


def test_a_call_of_whose_rows_none_has_its_key_has_no_answer() -> None:
    (first, second) = asked_in(OnError.FAIL, [respelling])
    assert first == second
    assert "function respelling, asked for t k='a', k='c': of the rows that came (2) none" in first
    assert "keys_per_call=1" in first
    assert asked_in(OnError.NULL, [respelling]) == [[("a", None)], [("c", None)]]
    assert asked_in(OnError.SKIP, [respelling]) == [[], []]


def test_a_mirror_that_spells_keys_as_they_were_asked_for_answers_for_one_that_does_not() -> None:
    async def slow(keys: list[str]) -> list[tuple[str, int]]:
        await asyncio.sleep(0.05)
        return [(key, 7) for key in keys]

    assert asked_in(OnError.FAIL, [respelling, slow]) == [[("a", 7)], [("c", 7)]]


def test_a_column_of_a_database_that_tells_no_cases_apart(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.db") as database:
        database.execute("CREATE TABLE t (k TEXT COLLATE NOCASE, v INT)")
        database.executemany("INSERT INTO t VALUES (?, ?)", [("A", 1), ("b", 2)])
    url = f"sqlite:///{tmp_path}/t.db"
    keys: list[Key] = [("a",), ("b",)]
    found, done = answered(SqlLookup(url, "t", keys_per_call=1), TABLE, keys)
    assert found == [[("A", 1)], [("b", 2)]]
    assert done.unmatched == 0
    found, done = answered(SqlLookup(url, "t"), TABLE, keys)
    assert found == [[], [("b", 2)]]
    assert done.unmatched == 1


def test_who_may_look_rows_up_by_another_way_gets_none_that_are_spelled_otherwise() -> None:
    async def ask() -> None:
        method = AccessMethod(TABLE, PythonLookup(respelling), Limits())
        lookup = method.shared("1", Random(0), time.monotonic)
        (exact,) = await asyncio.gather(*lookup.rows([("a",)], exact=True))
        (again,) = await asyncio.gather(*lookup.rows([("a",)], exact=True))
        (other,) = await asyncio.gather(*lookup.rows([("a",)]))
        assert [each.rows.num_rows for each in (exact, again, other)] == [0, 0, 1]
        assert lookup.statistics().unmatched == 1
        await lookup.close()

    asyncio.run(ask())
