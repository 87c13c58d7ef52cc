"""Keys that a condition gives which says more: the rows are those of a plain table."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

import eddyline
from eddyline.errors import UnboundLookupError

ROWS = [(k, k % 7, f"v{k}", k % 3) for k in range(12)] + [(3, 9, "again", 0)]
SCHEMA = "k int, x int, name string, j int"


class Rows:
    """A source that remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def by_k(self, keys: list[int]) -> list[tuple[Any, ...]]:
        self.asked += keys
        return [row for row in ROWS if row[0] in keys]

    def by_both(self, keys: list[tuple[int, int]]) -> list[tuple[Any, ...]]:
        self.asked += [tuple(key) for key in keys]
        return [row for row in ROWS if (row[0], row[3]) in self.asked]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> Rows:
    found = Rows()
    one = eddyline.PythonLookup(found.by_k, keys_per_call=10)
    two = eddyline.PythonLookup(found.by_both, keys_per_call=10)
    eddyline.lookup_table(spark, "implied", SCHEMA, ["k"], one)
    eddyline.lookup_table(spark, "implied_both", SCHEMA, ["k", "j"], two)
    spark.createDataFrame(ROWS, SCHEMA).createOrReplaceTempView("implied_plain")
    given = spark.createDataFrame(
        [(n, n % 5 if n % 4 else None) for n in range(9)], "id int, k int"
    )
    given.createOrReplaceTempView("implied_given")
    return found


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        ("k = 3 OR (k = 5 AND x > 2)", [3, 5]),
        ("(k IN (3, 4) AND x > 2 AND name <> 'v4') OR (upper(name) = 'V5' AND 5 = k)", [3, 4, 5]),
        ("(k IN (1, 2, 3) AND (k = 2 OR (k = 3 AND x = 9))) OR k = 99", [2, 3, 99]),
        ("k <=> 4 OR (k = 5 AND (x IS NULL OR x < 9))", [4, 5]),
        ("(x = 1 AND k = 8) OR (x = 2 AND k = 9)", [8, 9]),
        ("k = 3 OR (k = NULL AND x > 2) OR (k = 7 AND rand() < 2)", [3, 7]),
    ],
)
def test_each_branch_of_an_or_gives_keys(
    spark: SparkSession, rows: Rows, condition: str, asked: list[int]
) -> None:
    rows.asked.clear()
    found = eddyline.adapt(spark.table("implied").where(condition)).collect()
    assert Counter(found) == Counter(spark.table("implied_plain").where(condition).collect())
    assert sorted(rows.asked) == asked


def test_several_columns_and_other_joins(spark: SparkSession, rows: Rows) -> None:
    both = "(k = 3 AND j = 0 AND x > 1) OR (k = 5 AND j = 2 AND name LIKE 'v%')"
    rows.asked.clear()
    found = eddyline.adapt(spark.table("implied_both").where(both)).collect()
    assert Counter(found) == Counter(spark.table("implied_plain").where(both).collect())
    assert sorted(rows.asked) == [(3, 0), (3, 2), (5, 0), (5, 2)]
    on = "g.id < w.x AND (w.k = 3 OR (w.k = 5 AND w.x > 4))"
    given = "FROM implied_given g"
    r = "SELECT r.id, w.name FROM (SELECT cast(id AS int) id FROM range(3)) r"
    for sql, keys in (
        (f"SELECT g.id, w.name {given} LEFT JOIN W w ON {on}", {3, 5}),
        (f"SELECT g.id {given} LEFT ANTI JOIN W w ON {on}", {3, 5}),
        (f"SELECT g.id, w.name {given} JOIN W w ON g.k = w.k AND {on}", {0, 1, 2, 3}),
        (f"{r} JOIN W w ON w.k <=> r.id", {0, 1, 2}),
        (f"{r} LEFT JOIN W w ON w.k IS NOT DISTINCT FROM r.id", {0, 1, 2}),
    ):
        rows.asked.clear()
        plain = spark.sql(sql.replace("W w", "implied_plain w")).collect()
        found = eddyline.adapt(spark.sql(sql.replace("W w", "implied w"))).collect()
        assert Counter(found) == Counter(plain), sql
        assert set(rows.asked) <= keys, sql
        assert len(set(rows.asked)) == len(rows.asked)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM implied WHERE k = 3 OR (j = 5 AND x > 2)", r"\(k = 3\) OR \(\(j = 5\)"),
        ("SELECT * FROM implied WHERE k = 3 OR k IS NULL", "gives none"),
        ("SELECT * FROM implied w JOIN implied_given g ON g.k <=> w.k", "<=>.*write = instead"),
        (
            "SELECT * FROM implied_given g LEFT JOIN implied w ON g.k IS NOT DISTINCT FROM w.k",
            "IS NOT DISTINCT FROM.*write = instead",
        ),
    ],
)
@pytest.mark.usefixtures("rows")
def test_what_gives_no_keys_is_refused(spark: SparkSession, query: str, said: str) -> None:
    with pytest.raises(UnboundLookupError, match=said):
        eddyline.adapt(spark.sql(query))


@pytest.mark.usefixtures("rows")
def test_what_the_optimizer_puts_around_floats_is_not_shown(spark: SparkSession) -> None:
    given = "SELECT r.a, w.name FROM VALUES (1D), (2.5D) r(a)"
    with pytest.raises(UnboundLookupError, match=r"none: a = \(k \+ 0.5\)\. ") as raised:
        eddyline.adapt(spark.sql(f"{given} JOIN implied w ON w.k + 0.5D = r.a"))
    assert "cast these to the column's" in str(raised.value)
