"""Answers that are kept: no action, session or application asks for them again."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.declaring.concurrent_udf import ConcurrentUDF
from eddyline.errors import BudgetSpentError, LedgerError
from eddyline.keeping import answer_store, kept_answers
from eddyline.keeping.answer_store import AnswerStore, KeptEntry
from eddyline.keeping.key_bytes import key_of


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "answers")
    close_all()


def close_all() -> None:
    """Let go of all ledgers, as the end of an application does."""
    while kept_answers._opened:
        kept_answers._opened.popitem()[1].store.close()


class Counted:
    """A function that knows what it was called for; the count is no part of its version."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.asked: list[tuple[Any, ...]] = []
        self.__name__ = "counted"

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401 - any function
        self.asked.append(arguments)
        return self.function(*arguments)


def doubled(folder: str, **options: Any) -> tuple[Counted, ConcurrentUDF]:  # noqa: ANN401 - of concurrent
    counted = Counted(lambda number: None if number is None else 2 * number)
    return counted, eddyline.concurrent(counted, returns="bigint", keep=folder, **options)


def collected(frame: DataFrame) -> list[Row]:
    return eddyline.adapt(frame).collect()


def test_a_second_action_asks_for_nothing(spark: SparkSession, folder: str) -> None:
    counted, twice = doubled(folder, cost=0.5, unit="USD")
    rows = spark.range(20).selectExpr("IF(id = 3, NULL, id % 10) AS n").select("n", twice("n"))
    first = collected(rows)
    assert len(counted.asked) == 11
    frame = eddyline.adapt(rows)
    assert frame.collect() == first
    assert len(counted.asked) == 11
    (kept,) = eddyline.ledger(folder).functions
    assert (kept.entries, kept.hits, kept.saved, kept.spent) == (11, 11, 5.5, 5.5)
    (block,) = eddyline.report(frame).to_dict()["called"]
    assert (block["calls"], block["kept"], block["spent"]) == (0, 11, 0.0)


def test_only_what_is_new_is_asked_for(spark: SparkSession, folder: str) -> None:
    counted, twice = doubled(folder)
    collected(spark.range(5).select(twice("id")))
    rows = collected(spark.range(8).where(twice("id") > 5).select(twice("id").alias("d")))
    assert sorted(row.d for row in rows) == [6, 8, 10, 12, 14]
    assert sorted(counted.asked) == [(n,) for n in range(8)]


def test_the_same_function_declared_anew(spark: SparkSession, folder: str) -> None:
    one, first = doubled(folder)
    other, second = doubled(folder)
    collected(spark.range(4).select(first("id")))
    close_all()  # as in another application
    collected(spark.range(4).select(second("id")))
    assert (len(one.asked), len(other.asked)) == (4, 0)


def test_versions_are_kept_apart(spark: SparkSession, folder: str) -> None:
    asked = []
    for version in ("prompt-1", "prompt-2", "prompt-1"):
        counted, twice = doubled(folder, version=version)
        collected(spark.range(4).select(twice("id")))
        asked.append(len(counted.asked))
    assert asked == [4, 4, 0]


def test_answers_that_are_too_old_are_asked_for_anew(
    spark: SparkSession, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, twice = doubled(folder, valid="30 days")
    rows = spark.range(4).select(twice("id"))
    now = time.time()
    for days, calls in ((0, 4), (29, 4), (31, 8), (-400, 8), (32, 8)):
        monkeypatch.setattr(kept_answers, "now", lambda days=days: now + days * 86_400)
        collected(rows)
        assert len(counted.asked) == calls


def test_failures_are_not_kept(spark: SparkSession, folder: str) -> None:
    healthy = False

    def unsteady(number: int) -> int | str:
        if not healthy and number == 2:
            raise ValueError("no answer")
        return "no number" if not healthy and number == 3 else number

    counted = Counted(unsteady)
    same = eddyline.concurrent(counted, returns="bigint", keep=folder, version="1")
    for limit in (3, 4):
        with pytest.raises(Exception, match=r"no answer|no number"):
            collected(spark.range(limit - 1, limit).select(same("id")))
    collected(spark.range(2).select(same("id")))
    healthy = True
    assert [row[0] for row in collected(spark.range(4).select(same("id")))] == [0, 1, 2, 3]
    assert sorted(counted.asked) == [(0,), (1,), (2,), (2,), (3,), (3,)]


def test_what_a_budget_ended_goes_on_where_it_was(spark: SparkSession, folder: str) -> None:
    counted, twice = doubled(folder, cost=1.0, unit="USD", budget=4, max_in_flight=1)
    rows = spark.range(10).select(twice("id").alias("d"))
    for _ in range(2):
        with pytest.raises(Exception, match=BudgetSpentError.__name__):
            collected(rows)
    assert sorted(row.d for row in collected(rows)) == [2 * n for n in range(10)]
    assert len(counted.asked) == len(set(counted.asked)) == 10


VALUES: dict[str, Sequence[object]] = {
    "string": ["", "a", "\0", "ß" * 5_000, None],
    "boolean": [True, False, None],
    "tinyint": [-128, None],
    "bigint": [-(2**63), 2**63 - 1, None],
    "float": [1.5, math.nan, -0.0, None],
    "double": [1e300, math.nan, math.inf, -0.0, None],
    "decimal(38, 3)": [Decimal("1.500"), Decimal(10) ** 34, None],
    "binary": [b"", b"\0\xff", None],
    "date": [dt.date(1, 1, 1), dt.date(2026, 1, 1), None],
    "timestamp": [dt.datetime(2026, 7, 1, 12, 30, 0, 123456), None],  # noqa: DTZ001
    "timestamp_ntz": [dt.datetime(2026, 7, 1, 12, 30), None],  # noqa: DTZ001
    "array<struct<a: int, b: string>>": [[Row(a=1, b=None)], [], None],
    "map<string, double>": [{"a": 1.0}, {}, None],
    "struct<a: array<bigint>>": [Row(a=[1, None]), None],
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_every_type(spark: SparkSession, folder: str, kind: str) -> None:
    values = VALUES[kind]
    rows = spark.createDataFrame([(value,) for value in values], f"v {kind}")
    counted = Counted(lambda value: value)
    same = eddyline.concurrent(counted, returns=kind, keep=folder)
    asked = rows.select("v", same("v").alias("w"))
    first = collected(asked)
    calls = len(counted.asked)
    assert calls == len(values)
    second = collected(asked)
    assert len(counted.asked) == calls
    assert sorted(map(repr, second)) == sorted(map(repr, first))
    assert all(repr(row.v) == repr(row.w) for row in second)


def test_rows_of_a_lookup_table_also_where_there_are_none(spark: SparkSession, folder: str) -> None:
    asked: list[int] = []

    def tens(keys: Sequence[int]) -> list[tuple[int, str, list[int]]]:
        asked.extend(keys)
        return [(key, f"v{part}", [part]) for key in keys for part in range(key % 3)]

    spark.range(9).createOrReplaceTempView("wanted")
    rows = []
    for _ in range(2):
        eddyline.lookup_table(
            spark,
            "parts",
            "k bigint, v string, w array<int>",
            ["k"],
            eddyline.PythonLookup(tens, keys_per_call=4),
            keep=folder,
            version="1",
            valid="1 day",
        )
        rows.append(collected(spark.sql("SELECT * FROM wanted JOIN parts ON id = k ORDER BY k, v")))
        assert sorted(asked) == list(range(9))
    assert rows[0] == rows[1]
    assert len(rows[0]) == 9
    (table,) = eddyline.ledger(folder).functions
    assert (table.name, table.entries, table.hits) == ("parts", 9, 9)


@pytest.mark.parametrize("rows_of_a_key", [0, 1, 2])
def test_a_table_of_keys_alone(spark: SparkSession, folder: str, rows_of_a_key: int) -> None:
    def known(keys: Sequence[tuple[str]]) -> list[tuple[str]]:
        return [(key,) for key in keys for _ in range(rows_of_a_key)]  # type: ignore[misc]

    spark.range(4).selectExpr("string(id) AS name").createOrReplaceTempView("named")
    for _ in range(2):
        eddyline.lookup_table(
            spark,
            "known",
            "k string",
            ["k"],
            eddyline.PythonLookup(known),
            keep=folder,
            version=str(rows_of_a_key),
        )
        rows = collected(spark.sql("SELECT k FROM named JOIN known ON name = k"))
        assert len(rows) == 4 * rows_of_a_key


def test_an_answer_that_is_damaged_is_asked_for_anew(spark: SparkSession, folder: str) -> None:
    counted = Counted(lambda number: number / 2)
    half = eddyline.concurrent(counted, returns="double", keep=folder)
    rows = spark.range(4).select(half("id").alias("h"))
    first = collected(rows)
    store = kept_answers.opened(folder).store
    assert isinstance(store, AnswerStore)
    store._connection.execute("UPDATE answers SET answer = substr(answer, 1, 9)")
    assert collected(rows) == first
    assert len(counted.asked) == 8
    assert collected(rows) == first
    assert len(counted.asked) == 8


def test_an_answer_that_cannot_be_kept_is_one_all_the_same(
    spark: SparkSession, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, twice = doubled(folder)
    collected(spark.range(1).select(twice("id")))

    def refuse(_values: object) -> bytes:
        raise TypeError("no key")

    monkeypatch.setattr(kept_answers, "key_of", refuse)
    rows = collected(spark.range(4).select(twice("id").alias("d")))
    assert sorted(row.d for row in rows) == [0, 2, 4, 6]


def test_whoever_waits_on_another_loop_is_no_longer_waited_for(folder: str) -> None:
    """As after a context was stopped with calls under way."""
    ledger = kept_answers.opened(folder)
    number = ledger.store.function("f", "1", "", "")

    async def leave() -> None:
        tasks = [
            asyncio.create_task(ledger.keep([(number, key_of([n]), KeptEntry(n, 0.0, 0.0))]))
            for n in range(5)
        ]
        await asyncio.sleep(0)
        for task in tasks[1:]:
            task.cancel()

    async def keep() -> None:
        await ledger.keep([(number, key_of([9]), KeptEntry(9, 0.0, 0.0))])

    with contextlib.suppress(RuntimeError):
        asyncio.run(leave())
    asyncio.run(asyncio.wait_for(keep(), 20))
    assert ledger.store.find(number, [key_of([9])])


def test_a_ledger_that_cannot_be_written_costs_no_answer(
    spark: SparkSession, folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    counted, twice = doubled(folder)
    collected(spark.range(1).select(twice("id")))
    store = kept_answers.opened(folder).store
    assert isinstance(store, AnswerStore)
    store._connection.execute("PRAGMA query_only=1")
    with caplog.at_level(logging.WARNING):
        assert len(collected(spark.range(5).select(twice("id")))) == 5
    assert [record.message for record in caplog.records if "kept any more" in record.message]
    store._connection.execute("PRAGMA query_only=0")
    collected(spark.range(5).select(twice("id")))
    collected(spark.range(5).select(twice("id")))
    assert sorted(counted.asked) == sorted([(0,), *((n,) for n in range(1, 5) for _ in range(2))])


@pytest.mark.parametrize(
    ("options", "error", "what"),
    [
        ({"keep": 5}, TypeError, "keep is a folder"),
        ({"keep": ""}, ValueError, "keep is a folder"),
        ({"keep": Path("s3a://bucket/answers")}, ValueError, "a URL is a text"),
        ({"version": "1"}, ValueError, "need keep="),
        ({"keep": "a", "version": 1}, TypeError, "version is a text"),
        ({"keep": "a", "valid": "soon"}, ValueError, "30 days"),
        ({"keep": "a", "valid": "-1 day"}, ValueError, "30 days"),
        ({"keep": "a", "valid": 5}, TypeError, "30 days"),
    ],
)
def test_what_is_no_way_to_keep(options: dict[str, Any], error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        eddyline.concurrent(abs, returns="bigint", **options)


def test_a_ledger_is_shown_and_answers_are_removed(spark: SparkSession, folder: str) -> None:
    with pytest.raises(LedgerError, match="no ledger"):
        eddyline.ledger(folder)
    counted, twice = doubled(folder, cost=0.5, unit="USD")
    collected(spark.range(4).select(twice("id")))
    ledger = eddyline.ledger(folder)
    assert "counted" in str(ledger)
    assert "2 USD" in str(ledger)
    assert "counted" in ledger._repr_html_()
    data = ledger.to_dict()
    assert data["size"] == sum(
        Path(folder, name).stat().st_size for name in ("answers.sqlite", "answers.sqlite-wal")
    )
    assert [(each["name"], each["entries"]) for each in data["functions"]] == [("counted", 4)]
    assert ledger.remove("counted", keys=[1, (2,), 99]) == 2
    collected(spark.range(4).select(twice("id")))
    assert sorted(counted.asked) == [(0,), (1,), (1,), (2,), (2,), (3,)]
    assert ledger.remove(older_than="1 day") == 0
    with pytest.raises(ValueError, match="say what to remove"):
        ledger.remove()
    with pytest.raises(ValueError, match="those of: counted"):
        ledger.remove("other")
    assert ledger.remove("counted") == 4
    assert str(ledger) == "The ledger is empty."
    ledger.close()


def test_a_stream_asks_each_key_once_in_all_its_batches(
    spark: SparkSession, folder: str, tmp_path: Path
) -> None:
    counted, twice = doubled(folder)
    source = tmp_path / "source"
    source.mkdir()
    for batch in range(3):
        lines = "\n".join(f'{{"x": {number % 20}}}' for number in range(50))
        (source / f"{batch}.json").write_text(lines)
    stream = spark.readStream.schema("x bigint").option("maxFilesPerTrigger", 1)
    query = stream.json(str(source)).select("x", twice("x").alias("y")).where("y > 3")
    written = (
        eddyline.adapt(query)
        .writeStream.format("memory")
        .queryName("doubled")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    written.awaitTermination(60)
    rows = spark.table("doubled").collect()
    assert len(rows) == 3 * 44
    assert {(row.x, row.y) for row in rows} == {(x, 2 * x) for x in range(2, 20)}
    assert len(counted.asked) == 20


def test_a_session_keeps_the_answers_of_what_names_no_folder(
    spark: SparkSession, folder: str
) -> None:
    calls: list[int] = []

    def plus(number: int) -> int:
        calls.append(number)
        return number + 1

    function = eddyline.concurrent(plus, returns="bigint")

    def looked_up(keys: list[int]) -> list[tuple[int, int]]:
        calls.extend(keys)
        return [(key, 2 * key) for key in keys]

    with eddyline.enable(spark, keep=folder):
        source = eddyline.PythonLookup(looked_up)
        table = eddyline.lookup_table(spark, "kept_table", "k bigint, v bigint", ["k"], source)
        for _ in range(2):
            rows = spark.range(9).select(function("id").alias("y")).collect()
            assert sorted(row.y for row in rows) == list(range(1, 10))
            assert spark.range(5).join(table, F.col("id") == F.col("k")).count() == 5
    assert len(calls) == 9 + 5  # the block has ended, and what it kept
    eddyline.adapt(spark.range(9).select(function("id").alias("y"))).collect()
    assert len(calls) == 9 + 5 + 9


def test_kept_is_a_decorator(spark: SparkSession, folder: str) -> None:
    calls: list[str] = []

    @eddyline.kept(folder, version="1", returns="int", on_error="null")
    def length(text: str) -> int:
        calls.append(text)
        return len(text)

    frame = spark.createDataFrame([("a",), ("bb",), (None,)], "t string")
    for asked in (3, 4):  # None is a failure, which is not kept
        rows = collected(frame.select(length("t").alias("n")))
        assert sorted((row.n for row in rows), key=str) == [1, 2, None]
        assert len(calls) == asked


def test_a_ledger_that_another_application_holds_stops_no_query(
    spark: SparkSession, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_store, "_PATIENCE", 0.2)
    counted, twice = doubled(folder)
    collected(spark.range(1).select(twice("id")))
    store = kept_answers.opened(folder).store
    assert isinstance(store, AnswerStore)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert len(collected(spark.range(30).select(twice("id")))) == 30
    other.execute("ROLLBACK")
    other.close()
    assert len(counted.asked) == 30
