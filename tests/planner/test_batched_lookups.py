"""Lookups of many keys a call: calls are full, by whichever way and however they are asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.asking import filling
from eddyline.asking.filling import Filling

KEYS = 2_000
A_CALL = 200
IDEAL = KEYS // A_CALL


class Batches:
    """A source that remembers how many keys each call had."""

    def __init__(self, row: Callable[[Any], tuple[Any, ...]]) -> None:
        self.sizes: list[int] = []
        self._row = row
        self._lock = threading.Lock()

    def __call__(self, keys: list[Any]) -> list[tuple[Any, ...]]:
        with self._lock:
            self.sizes.append(len(keys))
        time.sleep(0.1)
        return [self._row(key) for key in keys]


@pytest.fixture(scope="module", autouse=True)
def asking(spark: SparkSession) -> None:
    rows = spark.range(0, KEYS, 1, 2).selectExpr("id AS k", "concat('o', id) AS o")
    rows.createOrReplaceTempView("asking_in_batches")


def batched(spark: SparkSession, *, several: bool) -> tuple[Batches, Batches]:
    """Register a table, with one way to its rows or two."""
    by_k = Batches(lambda k: (k, f"o{k}", 2 * k))
    by_o = Batches(lambda o: (int(o[1:]), o, 2 * int(o[1:])))
    ways: dict[str, Any] = {}
    if several:
        source = eddyline.PythonLookup(by_o, keys_per_call=A_CALL)
        ways = {"key": ["k"], "also": [eddyline.LookupMethod(["o"], source, max_in_flight=4)]}
    eddyline.lookup_table(
        spark,
        "batched",
        "k long, o string, v long",
        ["k"],
        eddyline.PythonLookup(by_k, keys_per_call=A_CALL),
        max_in_flight=4,
        **ways,
    )
    return by_k, by_o


@pytest.mark.parametrize("several", [False, True], ids=["one way", "two ways"])
@pytest.mark.parametrize("watched", [False, True], ids=["adapt", "watch"])
def test_calls_are_as_few_as_can_be(spark: SparkSession, several: bool, watched: bool) -> None:  # noqa: FBT001 - parameters
    """A machine with other work may bring keys so slowly that some calls go half full."""
    by_k, by_o = batched(spark, several=several)
    sql = "SELECT g.k, t.v FROM asking_in_batches g JOIN batched t ON g.k = t.k"
    if several:
        sql += " AND g.o = t.o"
    frame = spark.sql(sql)
    if watched:
        rows = sum(part.rows.num_rows for part in eddyline.watch(frame))
    else:
        rows = eddyline.adapt(frame).count()
    assert rows == KEYS
    assert sum(by_k.sizes) + sum(by_o.sizes) == KEYS
    calls = len(by_k.sizes) + len(by_o.sizes)
    assert IDEAL <= calls <= 2 * IDEAL, (by_k.sizes, by_o.sizes)


def test_keys_that_other_lookups_bring_go_together(spark: SparkSession) -> None:
    """What a table's rows bind is asked for in full calls as well."""
    first, _ = batched(spark, several=False)
    second = Batches(lambda v: (v, v + 1))
    eddyline.lookup_table(
        spark,
        "batched_next",
        "v long, w long",
        ["v"],
        eddyline.PythonLookup(second, keys_per_call=A_CALL),
        max_in_flight=4,
    )
    sql = (
        "SELECT g.k, n.w FROM asking_in_batches g JOIN batched t ON g.k = t.k "
        "JOIN batched_next n ON t.v = n.v"
    )
    assert eddyline.adapt(spark.sql(sql)).count() == KEYS
    assert len(first.sizes) + len(second.sizes) <= 4 * IDEAL
    assert sum(first.sizes) == sum(second.sizes) == KEYS


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g.k, t.v FROM asking_in_batches g LEFT JOIN batched t ON g.k = t.k",
        "SELECT k FROM asking_in_batches g WHERE EXISTS (SELECT 1 FROM batched t WHERE g.k = t.k)",
        "SELECT t.v FROM batched t WHERE t.k IN (SELECT k FROM asking_in_batches)",
    ],
)
def test_other_joins_ask_in_full_calls(spark: SparkSession, sql: str) -> None:
    by_k, _ = batched(spark, several=False)
    assert len(eddyline.adapt(spark.sql(sql)).collect()) == KEYS
    assert sum(by_k.sizes) == KEYS
    assert IDEAL <= len(by_k.sizes) <= 2 * IDEAL, by_k.sizes


class Tens:
    """A source of up to ten keys a call."""

    def __init__(self, spark: SparkSession) -> None:
        self.sizes: list[int] = []
        source = eddyline.PythonLookup(self, keys_per_call=10)
        eddyline.lookup_table(spark, "tens", "k int, v int", ["k"], source)

    def __call__(self, keys: list[int]) -> list[tuple[int, int]]:
        self.sizes.append(len(keys))
        return [(key, 2 * key) for key in keys]


def test_constants_go_in_full_calls(spark: SparkSession) -> None:
    """All are known before the first call."""
    tens = Tens(spark)
    for many, sizes in ((2, [2]), (3, [3]), (10, [10]), (25, [5, 10, 10])):
        rows = spark.table("tens").where(F.col("k").isin(*range(many)))
        for frame in (rows, rows.orderBy("v")):
            tens.sizes.clear()
            found = eddyline.adapt(frame).collect()
            assert sorted(row.v for row in found) == [2 * key for key in range(many)]
            assert sorted(tens.sizes) == sizes


def test_few_keys_of_several_tasks_go_together(spark: SparkSession) -> None:
    """A further task cannot begin before others have ended."""
    tens = Tens(spark)
    for tasks, step in ((2, 5), (2, 1), (4, 2)):
        rows = spark.range(0, 10, 1, tasks).where(f"id % {step} = 0")
        rows = rows.selectExpr("cast(id AS int) k", "id")
        for join in ("inner", "left"):
            tens.sizes.clear()
            found = eddyline.adapt(rows.join(spark.table("tens"), "k", join)).collect()
            assert sorted((row.id, row.v) for row in found) == [
                (key, 2 * key) for key in range(0, 10, step)
            ]
            assert sum(tens.sizes) == len(found)
            assert len(tens.sizes) <= tasks // 2, (tasks, step, join)


@pytest.mark.parametrize("shuffled", [False, True])
def test_nobody_waits_for_tasks_without_rows(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    shuffled: bool,  # noqa: FBT001 - a parameter
) -> None:
    """They say that they have nothing to ask for: no call leaves while a task still begins."""
    begin: list[int] = []
    leave = Filling.leave
    monkeypatch.setattr(filling, "BEGINNING", 30.0)

    def noted(each: Filling) -> None:
        begin.append(each.beginning)
        leave(each)

    monkeypatch.setattr(Filling, "leave", noted)
    tens = Tens(spark)
    rows = spark.range(0, 10, 1, 4).where("id = 9").selectExpr("cast(id AS int) k", "id")
    if shuffled:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", -1)
        other = spark.range(0, 10, 1, 2).selectExpr("id", "cast(id AS int) j")
        rows = rows.join(other, "id")
    try:
        for join in ("inner",) if shuffled else ("inner", "left"):
            tens.sizes.clear()
            found = eddyline.adapt(rows.join(spark.table("tens"), "k", join), joins="always")
            assert [(row.id, row.v) for row in found.collect()] == [(9, 18)]
            assert tens.sizes == [1]
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert begin
    assert not any(begin)
