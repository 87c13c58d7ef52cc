"""Lookup tables whose source spells keys in another way than it was asked for them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

import eddyline
from eddyline.errors import LookupFailedError

TABLE = "respelled"


@pytest.fixture(scope="module", autouse=True)
def given(spark: SparkSession) -> None:
    rows = [("a", 1, "o1"), ("b", 2, "o2"), ("x", 3, "o3")]
    spark.createDataFrame(rows, "k string, n long, o string").createOrReplaceTempView("asking")


def upper(keys: list[str]) -> list[dict[str, Any]]:
    return [
        {"k": key.upper(), "o": f"O{ord(key) - 96}", "v": ord(key)} for key in keys if key < "x"
    ]


def by_o(keys: list[str]) -> list[dict[str, Any]]:
    return [{"k": chr(64 + int(o[1:])), "o": o.upper(), "v": 96 + int(o[1:])} for o in keys]


def respelled(spark: SparkSession, keys_per_call: int = 1, **options: Any) -> None:  # noqa: ANN401 - those of lookup_table
    eddyline.lookup_table(
        spark,
        TABLE,
        "k string, o string, v long",
        ["k"],
        eddyline.PythonLookup(upper, keys_per_call=keys_per_call),
        **options,
    )


QUERIES: dict[str, list[tuple[Any, ...]]] = {
    "SELECT g.k, w.k wk, v FROM asking g LEFT JOIN respelled w ON g.k = w.k": [
        ("a", "A", 97),
        ("b", "B", 98),
        ("x", None, None),
    ],
    "SELECT w.k wk, g.k, w.* FROM asking g JOIN respelled w ON g.k = w.k WHERE w.v > 97": [
        ("B", "b", "B", "O2", 98)
    ],
    "SELECT v FROM asking g JOIN respelled w ON g.k = w.k": [(97,), (98,)],
    "SELECT * FROM respelled WHERE k IN ('a', 'x') OR k = 'b'": [
        ("A", "O1", 97),
        ("B", "O2", 98),
    ],
    "SELECT g.k FROM asking g WHERE EXISTS (SELECT 1 FROM respelled w WHERE w.k = g.k)": [
        ("a",),
        ("b",),
    ],
    "SELECT g.k FROM asking g LEFT ANTI JOIN respelled w ON w.k = g.k AND w.k < 'B'": [
        ("b",),
        ("x",),
    ],
    "SELECT g.k, lower(w.k) lk FROM asking g LEFT JOIN respelled w ON w.k = g.k AND w.k > g.o": [
        ("a", None),
        ("b", None),
        ("x", None),
    ],
    # What one table has looked up binds the next: by what it was asked for.
    "SELECT g.k, w.k wk, y.k yk FROM asking g JOIN respelled w ON g.k = w.k JOIN respelled y "
    "ON w.k = y.k": [("a", "A", "A"), ("b", "B", "B")],
}


def test_the_row_keeps_its_own_key_and_is_joined_by_the_one_asked_for(spark: SparkSession) -> None:
    respelled(spark)
    for sql, expected in QUERIES.items():
        adapted = eddyline.adapt(spark.sql(sql))
        assert Counter(map(tuple, adapted.collect())) == Counter(expected), sql
    (asked,) = eddyline.report(adapted).asked[:1]
    assert (asked.keys, asked.failures, asked.unmatched) == (3, 0, 0)
    rows = spark.sql("SELECT w.k, g.n FROM asking g JOIN respelled w ON g.k = w.k")
    watch = eddyline.watch(rows)
    watch.prefer("k = 'B'")
    seen = [row for part in watch for row in part.rows.to_pylist()]
    assert sorted(map(repr, seen)) == ["{'k': 'A', 'n': 1}", "{'k': 'B', 'n': 2}"]


def test_of_several_keys_a_call_unmatched_rows_are_counted_or_the_query_fails(
    spark: SparkSession,
) -> None:
    sql = "SELECT g.k, w.v FROM asking g LEFT JOIN respelled w ON g.k = w.k"
    respelled(spark, 10)
    with pytest.raises(Exception, match="none has a key that was asked for") as raised:
        eddyline.adapt(spark.sql(sql)).collect()
    assert LookupFailedError.__name__ in str(raised.value)
    respelled(spark, 10, on_error="skip")
    adapted = eddyline.adapt(spark.sql(sql))
    assert set(adapted.collect()) == {Row(k=k, v=None) for k in "abx"}
    report = eddyline.report(adapted)
    (asked,) = report.asked
    assert asked.unmatched == 2
    assert asked.failures > 0
    assert "Unmatched rows" in str(report)
    assert "Unmatched rows" in report._repr_html_()
    assert report.to_dict()["asked"][0]["unmatched"] == 2


def test_by_which_way_rows_are_looked_up_makes_no_difference(spark: SparkSession) -> None:
    """By one way the answer belongs to the key; where there are two, only what both find."""
    also = [eddyline.LookupMethod(["o"], eddyline.PythonLookup(by_o))]
    respelled(spark, key=["k"], also=also)
    one = eddyline.adapt(
        spark.sql("SELECT w.o, w.k FROM asking g JOIN respelled w ON w.o = g.o WHERE g.n < 3")
    )
    assert set(one.collect()) == {Row(o="O1", k="A"), Row(o="O2", k="B")}
    sql = "SELECT w.* FROM asking g JOIN respelled w ON w.o = g.o AND w.k = g.k"
    for policy in ("naive", "adaptive"):
        both = eddyline.adapt(spark.sql(sql), policy=policy)
        assert both.collect() == []
        assert sum(each.unmatched for each in eddyline.report(both).asked) > 0
