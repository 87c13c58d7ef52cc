"""Limits over lookup joins: no more is asked for than somebody wants, or hardly more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

import eddyline
from eddyline.spark.adapt import adapted_blocks
from eddyline.spark.blocks.join_block import JoinBlock

KEYS = 400
JOIN = "SELECT m.k, t.v FROM asking_limited m JOIN limited t ON m.k = t.k"
EXISTS = (
    "SELECT m.k, m.o, m.p FROM asking_limited m "
    "WHERE EXISTS (SELECT 1 FROM limited t WHERE t.k = m.k AND t.v > 0) LIMIT 5"
)
OUTER = "SELECT m.*, t.v FROM asking_limited m LEFT JOIN limited t ON m.k = t.k"
COMPUTED = "SELECT m.k, t.v FROM asking_limited m JOIN limited t ON t.k = m.k + 1 LIMIT 5"
ACTIONS: tuple[Callable[[DataFrame], bool], ...] = (
    lambda df: len(df.take(5)) == 5,
    lambda df: df.limit(5).count() == 5,
    lambda df: df.first() is not None,
    lambda df: not df.isEmpty(),
)


class Counted:
    """A source that counts the keys that it is asked for."""

    def __init__(self) -> None:
        self.keys = 0
        self._lock = threading.Lock()

    def __call__(self, keys: list[int]) -> list[tuple[int, int]]:
        with self._lock:
            self.keys += len(keys)
        time.sleep(0.03)
        return [(key, key % 10) for key in keys]


@pytest.fixture(scope="module", autouse=True)
def asking(spark: SparkSession) -> None:
    rows = spark.range(0, KEYS, 1, 1).selectExpr("id AS k", "concat('o', id) AS o", "'x' AS p")
    rows.createOrReplaceTempView("asking_limited")


@pytest.fixture
def source(spark: SparkSession) -> Counted:
    counted = Counted()
    eddyline.lookup_table(
        spark, "limited", "k long, v long", ["k"], eddyline.PythonLookup(counted), max_in_flight=8
    )
    return counted


@pytest.mark.parametrize(
    ("sql", "rows", "most"),
    [
        ("@ LIMIT 5", 5, 5),
        ("SELECT v + 1 AS w FROM (@) LIMIT 3", 3, 3),
        ("@ WHERE t.v = 3 LIMIT 2", 2, 2 + 4 + 8 + 16),
        ("@ LIMIT 3 OFFSET 2", 3, 5),
        ("@ AND t.v < 0 LIMIT 5", 0, KEYS),
        ("SELECT * FROM (@ LIMIT 4) x JOIN asking_limited m ON x.k = m.k", 4, 4),
        (f"{OUTER} LIMIT 5", 5, 5),
        (EXISTS, 5, 200),
        (COMPUTED, 5, 5),
        ("SELECT * FROM limited WHERE k IN (SELECT k + 1 FROM asking_limited) LIMIT 5", 5, 5),
    ],
)
def test_as_many_keys_are_asked_for_as_rows_are_wanted(
    spark: SparkSession, source: Counted, sql: str, rows: int, most: int
) -> None:
    assert len(eddyline.adapt(spark.sql(sql.replace("@", JOIN))).collect()) == rows
    assert source.keys <= most


def test_a_limit_that_comes_later_ends_the_task(spark: SparkSession, source: Counted) -> None:
    """Whoever takes a few rows of an adapted DataFrame: first rows come first."""
    asked = []
    for sql in (JOIN, OUTER):
        for action in ACTIONS:
            adapted = eddyline.adapt(spark.sql(sql))
            before = source.keys
            assert action(adapted)
            asked.append(source.keys - before)
    # On a machine with other work Spark may be slow to end a task, but not every time.
    assert sorted(asked)[len(asked) // 2] < KEYS // 2, asked


def test_enable_sees_every_limit(spark: SparkSession, source: Counted) -> None:
    with eddyline.enable(spark):
        assert len(spark.sql(JOIN).take(5)) == 5
    assert source.keys == 5


def test_a_limit_counts_where_nothing_between_drops_rows(
    spark: SparkSession, source: Counted
) -> None:
    for sql, expected in (
        ("@ LIMIT 5", (5, True)),
        ("SELECT v, count(*) FROM (@) GROUP BY v LIMIT 5", (0, False)),
        ("@ ORDER BY t.v LIMIT 5", (0, False)),
        ("@", (0, False)),
        (EXISTS, (5, True)),
        (COMPUTED, (5, True)),
        ("@ WHERE t.k IS NOT NULL AND t.v IS NOT NULL LIMIT 5", (5, False)),
    ):
        adapted = eddyline.adapt(spark.sql(sql.replace("@", JOIN)))
        blocks = [each for each, _ in adapted_blocks(adapted) if isinstance(each, JoinBlock)]
        assert [(each.limit, each.stops) for each in blocks] == [expected], sql
    assert source.keys == 0
