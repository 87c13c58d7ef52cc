"""Lookups by what Spark can compute first: the rows are those of ordinary tables.

Many queries are one action, each with a number as its first column.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.errors import UnboundLookupError
from tests.planner.recording_source import RecordingSource

NAMES = [(1, "one", 10), (2, "two", None), (2, "zwei", 2), (4, "four", 40), (9, "none asks", 1)]
HOURS = [(dt.datetime(2020, 1, 1, hour, tzinfo=dt.UTC), hour * 1.5) for hour in range(0, 24, 2)]
SCHEMAS = {"names": "k bigint, name string, x int", "small": "k smallint, name string, x int"}
HOURLY = "hour timestamp, wind double"

Sources = dict[str, RecordingSource]


@pytest.fixture(scope="module")
def sources(spark: SparkSession) -> Sources:
    """Three lookup tables, each beside an ordinary one whose name begins with ``plain_``."""
    found = {name: RecordingSource(NAMES, [0]) for name in SCHEMAS}
    found["hourly"] = RecordingSource(HOURS, [0])
    for name, schema in {**SCHEMAS, "hourly": HOURLY}.items():
        spark.createDataFrame(found[name].rows, schema).createOrReplaceTempView(f"plain_{name}")
        bind = schema.split()[0]
        eddyline.lookup_table(spark, name, schema, [bind], eddyline.PythonLookup(found[name]))
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    rows = [
        (n, n % 6 if n % 7 else None, f"row {n}", start + dt.timedelta(minutes=31 * n))
        for n in range(24)
    ]
    frame = spark.createDataFrame(rows, "id int, k int, text string, ts timestamp").coalesce(2)
    frame.createOrReplaceTempView("rows")
    others = [(n, n % 3, n * 40_000) for n in range(9)]
    spark.createDataFrame(others, "id int, a bigint, large bigint").createOrReplaceTempView("other")
    spark.udf.register("is_odd", F.udf(lambda value: value % 2 == 1, "boolean"))
    return found


JOINS = (
    "SELECT r.id, n.name FROM rows r JOIN names n ON n.k = r.k + 1",
    "SELECT r.id, w.wind FROM rows r JOIN hourly w ON w.hour = date_trunc('hour', ts)",
    "SELECT r.id, w.wind FROM rows r LEFT JOIN hourly w ON w.hour = date_trunc('hour', ts)",
    "SELECT r.id, n.name FROM rows r LEFT JOIN names n ON n.k = r.k + 1 AND n.x < r.id",
    "SELECT r.id, n.name FROM names n RIGHT JOIN rows r ON n.k = 12 div (r.k + 1)",
    "SELECT r.id, n.name FROM rows r JOIN names n ON n.k = substr(r.text, 5)",
    "SELECT r.id, n.name FROM rows r JOIN other o ON r.id = o.id JOIN names n ON n.k = r.k + o.a",
    "SELECT a.name, b.name FROM names a JOIN names b ON b.k = a.k * 2 WHERE a.k IN (1, 2)",
    "SELECT r.id, b.name FROM rows r JOIN names a ON a.k = r.k - 1 JOIN names b ON b.k = a.x - 8",
    "SELECT r.id, n.name FROM rows r JOIN names n ON n.k = r.k + 1 WHERE is_odd(r.id) AND n.x > 2",
    "SELECT o.id, s.name FROM other o JOIN small s ON s.k = o.large",
    "SELECT o.id, s.name FROM other o LEFT JOIN small s ON s.k = o.a + 1",
    "SELECT r.id, n.name FROM rows r JOIN names n ON n.k = r.k AND n.x = r.k + n.k * 9",
    "SELECT r.id, n.x FROM rows r JOIN names n ON n.k = r.k AND CAST(n.x AS boolean) = (r.id > 3)",
    "SELECT r.id, n.x FROM rows r JOIN names n ON CAST(n.k AS decimal(20)) = CAST(r.k AS decimal)",
)
SUBQUERIES = (
    "SELECT id, 0 FROM rows r WHERE k + 1 IN (SELECT k FROM names)",
    "SELECT id, 0 FROM rows r WHERE EXISTS (SELECT 1 FROM names n WHERE n.k = r.k + 1 AND x > 5)",
    "SELECT id, 0 FROM rows r WHERE NOT EXISTS (SELECT 1 FROM names n WHERE n.k = r.k + 1)",
    "SELECT id, k + 1 IN (SELECT k FROM names) FROM rows r WHERE k IS NOT NULL",
    "SELECT n.k, n.name FROM names n WHERE n.k IN (SELECT k + 1 FROM rows)",
    "SELECT n.k, n.name FROM names n WHERE EXISTS (SELECT 1 FROM rows r WHERE n.k = r.k * 2)",
    "SELECT n.k, n.name FROM names n WHERE n.k = (SELECT max(k) - 1 FROM rows)",
    "SELECT n.k, n.name FROM names n WHERE n.k = (SELECT max(k) FROM rows WHERE k < 3) AND x > 1",
    "SELECT s.k, s.name FROM small s WHERE s.k = (SELECT max(a) FROM other)",
    "SELECT n.k, n.name FROM names n WHERE n.k = (SELECT max(k) FROM rows WHERE id < 0)",
)
CORRELATED = (
    "SELECT id, (SELECT max(x) FROM names n WHERE n.k = r.k) FROM rows r",
    "SELECT id, (SELECT sum(x) FROM names n WHERE n.k = r.k + 1) FROM rows r",
    "SELECT id, (SELECT max_by(name, x) FROM names n WHERE n.k = r.k) FROM rows r WHERE id > 3",
    "SELECT id, 0 FROM rows r WHERE id > (SELECT max(x) FROM names n WHERE n.k = r.k)",
    "SELECT id, l.m FROM rows r, LATERAL (SELECT max(x) AS m FROM names n WHERE n.k = r.k) l",
    "SELECT id, l.name FROM rows r, LATERAL (SELECT name FROM names n WHERE n.k = r.k + 1) l",
    "SELECT id, m FROM rows r LEFT JOIN (SELECT k, sum(x) AS m FROM names GROUP BY k) l USING (k)",
    "SELECT id, l.name FROM rows r JOIN (SELECT DISTINCT k, name FROM names) l ON l.k = r.k",
    """SELECT id, l.name FROM rows r JOIN (SELECT k, name, row_number() OVER (PARTITION BY k
       ORDER BY x) AS place FROM names) l ON l.k = r.k WHERE place = 1""",
    """SELECT o.id, l.name FROM other o, LATERAL (SELECT name, x FROM names n WHERE n.k = o.a
       ORDER BY x LIMIT 1) l""",
    """SELECT o.id, l.name FROM other o LEFT JOIN LATERAL (SELECT name, x FROM names n
       WHERE n.k = o.a ORDER BY x DESC LIMIT 2) l""",
    "SELECT id, (SELECT name FROM names n WHERE n.k = o.a ORDER BY x LIMIT 1) FROM other o",
    """SELECT r.id, n.name FROM rows r JOIN (SELECT k, name FROM names
       UNION ALL SELECT k, upper(name) FROM small) n ON n.k = r.k""",
    """SELECT id, (SELECT max(x) FROM names n WHERE n.k = r.k)
       + (SELECT min(x) FROM small s WHERE s.k = r.k) FROM rows r""",
    """SELECT r.id, l.name FROM rows r JOIN (SELECT n.k, n.name, o.a FROM names n
       LEFT JOIN other o ON o.id = n.x) l ON l.k = r.k""",
    """SELECT id + int(odd), (SELECT max(x) FROM names n WHERE n.k = r.k)
       FROM (SELECT id, k + 1 AS k, is_odd(id) AS odd FROM rows) r""",
    "SELECT id, m FROM (SELECT k, max(x) AS m FROM names GROUP BY k) RIGHT JOIN rows USING (k)",
    "SELECT k, m FROM (SELECT k, max(x) AS m FROM names GROUP BY k) SEMI JOIN rows USING (k)",
    "SELECT id, k FROM (SELECT k FROM names EXCEPT SELECT a FROM other) RIGHT JOIN rows USING (k)",
)


def together(queries: Sequence[str], prefix: str = "") -> str:
    numbered = (
        f"SELECT {n}, CAST(q.c0 AS STRING), CAST(q.c1 AS STRING) FROM ({query}) q(c0, c1)"  # noqa: S608 - made here
        for n, query in enumerate(queries)
    )
    return re.sub(r"\b(names|small|hourly)\b", rf"{prefix}\1", "\nUNION ALL\n".join(numbered))


@pytest.mark.parametrize("queries", [JOINS, SUBQUERIES, CORRELATED], ids=["joins", "in", "by row"])
def test_rows_are_those_of_ordinary_tables(
    spark: SparkSession, sources: Sources, queries: Sequence[str]
) -> None:
    for source in sources.values():
        source.keys.clear()
    plain = Counter(spark.sql(together(queries, "plain_")).collect())
    found = Counter(eddyline.adapt(spark.sql(together(queries))).collect())
    assert found == plain, differing(queries, found, plain)
    assert len({row[0] for row in plain}) >= len(queries) - 2
    for source in sources.values():
        assert set(source.keys.values()) <= {1}
        assert None not in source.keys


def test_rows_without_a_match_are_counted_as_none(spark: SparkSession, sources: Sources) -> None:
    assert sources
    checked = "spark.sql.planChangeValidation"  # which Spark's own plan of this does not pass
    before = str(spark.conf.get(checked))
    spark.conf.set(checked, "false")
    try:
        counted = ["SELECT id, (SELECT count(*) FROM names n WHERE n.k = r.k + 1) FROM rows r"]
        plain = Counter(spark.sql(together(counted, "plain_")).collect())
        assert Counter(eddyline.adapt(spark.sql(together(counted))).collect()) == plain
    finally:
        spark.conf.set(checked, before)


def differing(queries: Sequence[str], found: Counter[Any], plain: Counter[Any]) -> str:
    numbers = {row[0] for row in (found - plain) + (plain - found)}
    return "\n".join(queries[n] for n in numbers)


def test_only_keys_that_are_wanted_are_asked_for(spark: SparkSession, sources: Sources) -> None:
    asked = sources["names"].keys
    for sql, keys in {
        "SELECT * FROM rows r JOIN names n ON n.k = r.k + 1 WHERE r.id < 3": {2, 3},
        "SELECT id, (SELECT max(x) FROM names n WHERE n.k = r.k) FROM rows r WHERE id < 3": {1, 2},
        "SELECT * FROM names WHERE k = (SELECT max(k) FROM rows)": {5},
        "SELECT * FROM other o JOIN small s ON s.k = o.large + 1": set(),
    }.items():
        asked.clear()
        eddyline.adapt(spark.sql(sql)).collect()
        assert set(asked) == keys, sql


def test_correlated_subqueries_below_a_limit_are_those_of_ordinary_tables(
    spark: SparkSession, sources: Sources
) -> None:
    """Spark pushes the limit to the rows that have the keys, and these are read twice."""
    assert sources
    for sql in (
        "SELECT id, (SELECT max(x) FROM {0} n WHERE n.k = r.k) AS m FROM rows r LIMIT 24",
        """SELECT id, (SELECT max(x) FROM {0} n WHERE n.k = r.k) AS m,
           (SELECT min(x) FROM {0} n WHERE n.k = r.k + 1) AS l FROM rows r LIMIT 30""",
        """SELECT id, l.name FROM rows r LEFT JOIN LATERAL (SELECT max(name) AS name FROM {0} n
           WHERE n.k = r.k) l LIMIT 25 OFFSET 1""",
    ):
        plain = spark.sql(sql.format("plain_names"))
        adapted = eddyline.adapt(spark.sql(sql.format("names")))
        assert Counter(adapted.collect()) == Counter(plain.collect()), sql
        assert len(adapted.take(3)) == 3


def test_a_key_that_cannot_be_computed_fails_as_in_an_ordinary_join(
    spark: SparkSession, sources: Sources
) -> None:
    assert sources
    wrong = "SELECT * FROM rows r JOIN other o ON r.id = o.id JOIN {} n ON n.k = 12 div r.k"
    for table in ("plain_names", "names"):
        with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
            eddyline.adapt(spark.sql(wrong.format(table))).collect()
    guarded = f"{wrong} WHERE r.k > 0"
    plain, found = (
        Counter(eddyline.adapt(spark.sql(guarded.format(table))).collect())
        for table in ("plain_names", "names")
    )
    assert found == plain != Counter()


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT * FROM rows r JOIN names n ON n.k + 1 = r.k", r"gives none: .*k \+ .*as k = a"),
        ("SELECT * FROM names WHERE k + 1 IN (SELECT k FROM rows)", r"\(k \+ .*as k = a - 1"),
        ("SELECT * FROM names WHERE k > (SELECT max(k) FROM rows)", "gives none: .*k > "),
        ("SELECT * FROM rows r JOIN names n ON n.k = r.k OR n.k = r.id", "gives none: .* OR "),
        (
            "SELECT * FROM rows r, LATERAL (SELECT name FROM names n WHERE n.k = r.k LIMIT 1)",
            r"below a LIMIT.*name the key in a subquery.*row_number\(\)",
        ),
        (
            "SELECT id, (SELECT max(x) FROM names n WHERE n.k = r.k) FROM rows r WHERE is_odd(id)",
            "read again.*localCheckpoint",
        ),
        (
            """SELECT r.id, m FROM rows r JOIN other o ON o.id = r.id AND is_odd(o.a)
               LEFT JOIN (SELECT k, max(x) AS m FROM names GROUP BY k) l ON l.k = r.k""",
            "read again.*localCheckpoint",
        ),
        # Rows that are not joined count as well: in the result, or in what is said of the others.
        ("SELECT * FROM names n LEFT JOIN rows r ON n.k = r.k + 1", ""),
        ("SELECT * FROM (SELECT k, max(x) FROM names GROUP BY k) l LEFT JOIN other ON k = a", ""),
        ("SELECT * FROM (SELECT k, max(x) FROM names GROUP BY k) l FULL JOIN other ON k = a", ""),
        ("SELECT * FROM (SELECT k, max(x) FROM names GROUP BY k) l ANTI JOIN other ON k = a", ""),
        ("SELECT * FROM rows JOIN (SELECT k, rank() OVER (ORDER BY x) FROM names) USING (k)", ""),
        ("SELECT * FROM rows JOIN (SELECT k, max(k) OVER(PARTITION BY x) FROM names) USING(k)", ""),
        (
            """SELECT * FROM rows r JOIN (SELECT b, rank() OVER (PARTITION BY b ORDER BY x)
               FROM (SELECT boolean(k) AS b, x FROM names)) l ON l.b = (r.k > 1)""",
            "",
        ),
        ("SELECT * FROM other JOIN names ON CAST(k AS decimal(3)) = CAST(a AS decimal(3))", ""),
    ],
)  # fmt: skip
def test_what_gives_no_values_is_named_with_a_way_round(
    spark: SparkSession, sql: str, why: str
) -> None:
    with pytest.raises(UnboundLookupError, match=f"names.*{why}"):
        eddyline.adapt(spark.sql(sql))
