"""Limits over lookup joins: no more is asked for than somebody wants, or hardly more."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

import eddyline
from eddyline.blocks.join_block import JoinBlock
from eddyline.planner.adapt import adapted_blocks

pytestmark = pytest.mark.slow(25)

KEYS = 200
JOIN = "SELECT m.k, t.v FROM asking_limited m JOIN limited t ON m.k = t.k"
EXISTS = (
    "SELECT m.k, m.o, m.p FROM asking_limited m "
    "WHERE EXISTS (SELECT 1 FROM limited t WHERE t.k = m.k AND t.v > 0) LIMIT 5"
)
OUTER = "SELECT m.*, t.v FROM asking_limited m LEFT JOIN limited t ON m.k = t.k"
COMPUTED = "SELECT m.k, t.v FROM asking_limited m JOIN limited t ON t.k = m.k + 1 LIMIT 5"
WIDE = "SELECT m.*, t.v FROM asking_limited m JOIN limited t ON m.k = t.k"
ANTI = (
    "SELECT m.k FROM asking_limited m "
    "WHERE NOT EXISTS (SELECT 1 FROM limited t WHERE t.k = m.k AND t.v < 0)"
)
MARKED = (
    "SELECT m.k, EXISTS (SELECT 1 FROM limited t WHERE t.k = m.k AND t.v > 4) AS e "
    "FROM asking_limited m"
)
ACTIONS: tuple[tuple[int, Callable[[DataFrame], bool]], ...] = (
    (5, lambda df: len(df.take(5)) == 5),
    (6, lambda df: df.show(5) is None),  # is there one more?
    (5, lambda df: df.limit(5).count() == 5),
    (5, lambda df: len(df.limit(5).collect()) == 5),
    (1, lambda df: df.first() is not None),
    (1, lambda df: not df.isEmpty()),
)


class Counted:
    """A source that counts the keys that it is asked for."""

    def __init__(self) -> None:
        self.keys = 0
        self._lock = threading.Lock()

    def __call__(self, keys: list[int]) -> list[tuple[int, int]]:
        with self._lock:
            self.keys += len(keys)
        time.sleep(0.01)
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
        (EXISTS, 5, 5 + 10),
        (COMPUTED, 5, 5),
        ("SELECT * FROM limited WHERE k IN (SELECT k + 1 FROM asking_limited) LIMIT 5", 5, 5),
    ],
)
def test_as_many_keys_are_asked_for_as_rows_are_wanted(
    spark: SparkSession, source: Counted, sql: str, rows: int, most: int
) -> None:
    assert len(eddyline.adapt(spark.sql(sql.replace("@", JOIN))).collect()) == rows
    assert source.keys <= most


@pytest.mark.parametrize("sql", [JOIN, WIDE, OUTER, EXISTS, ANTI, MARKED])
def test_actions_on_an_adapted_frame_ask_for_the_rows_that_they_take(
    spark: SparkSession, source: Counted, sql: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for rows, action in ACTIONS:
        before = source.keys
        assert action(eddyline.adapt(spark.sql(sql.removesuffix(" LIMIT 5"))))
        # The second round of EXISTS, as the first key has no match that counts.
        assert source.keys - before <= (3 * rows if sql == EXISTS else rows)
    capsys.readouterr()


def test_what_is_derived_from_an_adapted_frame_is_limited_as_well(
    spark: SparkSession, source: Counted
) -> None:
    adapted = eddyline.adapt(spark.sql(JOIN))
    for derived, rows, most in (
        (adapted.selectExpr("v + 1 AS w", "k AS l"), 5, 5),
        (adapted.unionAll(eddyline.adapt(spark.sql(OUTER)).select("k", "v")), 3, 3),
        (adapted.offset(2), 3, 5),
        (adapted.limit(4), 6, 4),
        (adapted.groupBy("k").agg({"v": "max"}), 2, KEYS),
        (adapted.where("v >= 0"), 2, KEYS - 1),
    ):
        before = source.keys
        assert len(derived.take(rows)) == min(rows, most)
        assert source.keys - before <= most


def test_rows_behind_a_limit_are_right_where_something_above_drops_some(
    spark: SparkSession, source: Counted
) -> None:
    for sql in (JOIN, WIDE, OUTER):
        adapted = eddyline.adapt(spark.sql(sql))
        threes = adapted.where("v = 3").limit(KEYS // 10).collect()
        assert {row.k for row in threes} == set(range(3, KEYS, 10))
        exploded = adapted.selectExpr("v", "explode(array_repeat(k, int(k % 2))) AS e")
        assert {row.e for row in exploded.take(KEYS // 2)} == set(range(1, KEYS, 2))
    assert source.keys > 0


def test_a_report_of_a_limited_frame_knows_its_block(spark: SparkSession, source: Counted) -> None:
    few = eddyline.adapt(spark.sql(OUTER)).limit(5)
    assert len(few.collect()) == 5
    assert [each for each, _ in adapted_blocks(few)]
    assert source.keys == 5


@pytest.mark.parametrize("way", ["adapt", "enable"])
def test_concurrent_functions_are_called_for_the_rows_that_are_taken(
    spark: SparkSession, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[int] = []

    @eddyline.concurrent(returns="boolean", max_in_flight=4)
    def even(x: int) -> bool:
        called.append(x)
        return x % 2 == 0

    @eddyline.concurrent(returns="int", max_in_flight=2, batch=50)
    def negative(x: list[int]) -> list[int]:
        called.extend(x)
        return [-each for each in x]

    rows = spark.table("asking_limited")
    both = rows.where(even("k") | (negative("k") > 0)).select("k")
    cases = (
        rows.where(negative("k") <= 0),
        rows.where(even("k")).select("o"),
        rows.where(even("k")).selectExpr("k * 2 AS l").limit(9),
        rows.select("o", negative("k").alias("n")),
        both,
    )
    with eddyline.enable(spark) if way == "enable" else contextlib.nullcontext():
        for query in cases:
            adapted = query if way == "enable" else eddyline.adapt(query)
            for wanted, action in ACTIONS[::2]:
                called.clear()
                assert action(adapted)
                # One of two rows passes; a second round is a call's worth for either function.
                assert len(called) <= 2 * (wanted + 50), (way, wanted)
    capsys.readouterr()
    called.clear()
    assert eddyline.adapt(rows.where(even("k"))).count() == KEYS // 2
    assert len(called) == KEYS


def test_rules_come_and_go_and_limits_are_seen_all_the_same(
    spark: SparkSession, source: Counted
) -> None:
    adapted = eddyline.adapt(spark.sql(JOIN))
    with eddyline.enable(spark):
        assert len(adapted.take(4)) == 4
        with eddyline.disable(spark):
            assert len(adapted.take(3)) == 3
        assert not spark.sql(JOIN).isEmpty()
    assert len(adapted.take(2)) == 2
    assert source.keys == 4 + 3 + 1 + 2


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
