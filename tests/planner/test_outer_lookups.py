"""Joins that keep the rows of one side, with lookup tables on the other."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.errors import UnboundLookupError
from eddyline.quirks.pyspark_at_hand import MINOR
from tests.planner.recording_source import RecordingSource

pytestmark = pytest.mark.slow(20)

SCHEMA = "k int, name string, x int"
NAMES = [(1, "one", 10), (2, "two", None), (2, "zwei", 2), (4, "four", 40), (7, "none asks", 1)]


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession) -> None:
    """Rows whose keys have no, one and two matches, or are NULL, also ones of odd types."""
    spark.createDataFrame(NAMES, SCHEMA).createOrReplaceTempView("plain_names")
    rows = [(n, n % 6 if n % 7 else None, f"row {n}") for n in range(40)]
    frame = spark.createDataFrame(rows, "id int, k int, text string").repartition(3).cache()
    frame.createOrReplaceTempView("rows")
    frame.selectExpr(
        "*", "map(text, k) AS m", "array(struct(k)) AS s", "INTERVAL 1 DAY AS i", "X'00FF' AS b"
    ).createOrReplaceTempView("odd_rows")


@pytest.fixture
def names(spark: SparkSession) -> RecordingSource:
    """The table ``names``, which answers for values of ``k``."""
    source = RecordingSource(NAMES, [0])
    eddyline.lookup_table(spark, "names", SCHEMA, ["k"], eddyline.PythonLookup(source))
    return source


def adapted_like_plain(spark: SparkSession, sql: str) -> DataFrame:
    adapted = eddyline.adapt(spark.sql(sql))
    plain = spark.sql(re.sub(r"\bnames\b", "plain_names", sql))
    assert adapted.schema == plain.schema
    assert Counter(map(str, adapted.collect())) == Counter(map(str, plain.collect()))
    return adapted


QUERIES = {
    "left": "SELECT r.*, n.* FROM rows r LEFT JOIN names n ON r.k = n.k",
    "right": "SELECT * FROM names n RIGHT JOIN rows r ON r.k = n.k",
    "semi": "SELECT * FROM rows r LEFT SEMI JOIN names n ON r.k = n.k",
    "anti": "SELECT * FROM rows r LEFT ANTI JOIN names n ON r.k = n.k",
    "exists": """
        SELECT id FROM rows r WHERE EXISTS (SELECT 1 FROM names n WHERE n.k = r.k AND x > 5)""",
    "not exists": """
        SELECT id FROM rows r WHERE NOT EXISTS (SELECT 1 FROM names n WHERE n.k = r.k AND x > 5)""",
    "in": "SELECT id FROM rows r WHERE k IN (SELECT k FROM names)",
    "exists or something else": """
        SELECT id FROM rows r WHERE id < 3 OR
        EXISTS (SELECT 1 FROM names n WHERE n.k = r.k AND x > 5)""",
    "in, as a value": """
        SELECT id, k IN (SELECT k FROM names) AS known FROM rows WHERE k IS NOT NULL""",
    "a condition on the rows": """
        SELECT r.id, n.name FROM rows r LEFT JOIN names n ON r.k = n.k AND r.id > 20""",
    "a condition on the matches": """
        SELECT r.id, n.name FROM rows r LEFT JOIN names n ON r.k = n.k AND n.x > 5""",
    "a condition on both": """
        SELECT r.id, n.name FROM rows r LEFT JOIN names n ON r.k = n.k AND n.x < r.id""",
    "computed of the matches": """
        SELECT r.id, n.c, n.y FROM rows r
        LEFT JOIN (SELECT k, coalesce(x, -1) AS c, 5 AS y FROM names) n ON r.k = n.k""",
    "computed of the join": """
        SELECT r.id, coalesce(n.name, 'none') AS c FROM rows r LEFT JOIN names n ON r.k = n.k""",
    "no match wanted": """
        SELECT r.id, n.name FROM rows r LEFT JOIN names n ON r.k = n.k WHERE n.k IS NULL""",
    "nothing but rows": "SELECT count(*) FROM rows r LEFT JOIN names n ON r.k = n.k",
    "odd columns": "SELECT r.i, r.m, r.s, r.b, n.x FROM odd_rows r LEFT JOIN names n ON r.k = n.k",
    "one after the other": """
        SELECT r.id, a.name, b.name FROM rows r
        LEFT JOIN names a ON r.k = a.k LEFT JOIN names b ON a.x = b.k""",
    "two that meet": """
        SELECT r.id, a.name, b.x FROM rows r
        LEFT JOIN (names a JOIN names b ON a.x = b.k) ON r.k = a.k""",
    "over an inner join": """
        SELECT r.id, a.name, b.x FROM rows r JOIN names a ON r.k = a.k
        LEFT JOIN names b ON a.x = b.k""",
    "below an inner join": """
        SELECT a.id, a.name, b.x FROM (SELECT * FROM rows r LEFT JOIN names a USING (k)) a
        JOIN names b ON a.k = b.k""",
    "constants": "SELECT r.id, n.name FROM rows r LEFT JOIN names n ON n.k = 2 AND r.id > n.x",
    "no constant for any": "SELECT r.id FROM rows r LEFT JOIN names n ON n.k IN (5, 6)",
    "beside a scan": """
        SELECT r.id, a.name, b.id FROM rows r LEFT JOIN
        (names a JOIN (SELECT * FROM range(20)) b ON a.x = b.id) ON r.k = a.k""",
    "no rows": "SELECT * FROM (SELECT * FROM rows WHERE id < 0) r LEFT JOIN names n ON r.k = n.k",
    "aggregated and ordered": """
        SELECT n.name, count(*) AS c FROM rows r LEFT JOIN names n ON r.k = n.k
        GROUP BY n.name HAVING count(*) > 1 ORDER BY c DESC, name LIMIT 3""",
    "a union": """
        SELECT n.k, r.k FROM names n RIGHT JOIN rows r ON r.k = n.k
        UNION ALL SELECT r.k, n.k FROM rows r LEFT JOIN names n ON r.k = n.k""",
    "chosen by a subquery": "SELECT n.* FROM names n WHERE n.k IN (SELECT k FROM rows)",
    "chosen by more than equalities": """
        SELECT n.* FROM names n WHERE n.k IN (1, 2) AND EXISTS
        (SELECT 1 FROM rows r WHERE r.k = n.k AND r.id > n.x)""",
    "chosen by one that is looked up": """
        SELECT n.* FROM names n WHERE n.k IN (SELECT b.k FROM names b WHERE b.k IN (2, 4))""",
    "no match of what a join has brought": """
        SELECT r.id, a.name FROM rows r JOIN names a ON r.k = a.k
        WHERE NOT EXISTS (SELECT 1 FROM names b WHERE b.k = a.x)""",
    "a match of what a join has brought": """
        SELECT r.id, a.x + 1 AS y FROM rows r JOIN names a ON r.k = a.k
        WHERE a.x > 1 AND EXISTS (SELECT 1 FROM names b WHERE b.k = a.x AND b.x < r.id)""",
    "no row of another table for what a join has brought": """
        SELECT r.id, a.name FROM rows r JOIN names a ON r.k = a.k
        WHERE NOT EXISTS (SELECT 1 FROM odd_rows o WHERE o.id = a.x AND o.k > a.k)""",
    "semi after semi": """
        SELECT * FROM rows r LEFT SEMI JOIN names a ON r.k = a.k LEFT SEMI JOIN names b
        ON r.id = b.k""",
    "semi after anti": """
        SELECT * FROM rows r LEFT ANTI JOIN names a ON r.id = a.k LEFT SEMI JOIN names b
        ON r.k = b.k""",
    "semi after left": """
        SELECT r.id, a.name FROM rows r LEFT JOIN names a ON r.k = a.k LEFT SEMI JOIN names b
        ON a.x = b.k""",
    "chosen, and by others": """
        SELECT r.id, n.name FROM rows r JOIN names n ON r.k = n.k
        WHERE n.x IN (SELECT id FROM rows)""",
}


OF_ITSELF = {"no match of what a join has brought", "a match of what a join has brought"}
"""Where a table that is looked up is also what its own rows are chosen by."""

OUT_OF_REACH = pytest.mark.xfail(
    MINOR < (4, 0),
    raises=UnboundLookupError,
    reason="Spark 3.5 gives both uses of such a table one identity, and an alias above one",
)


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(sql, id=name, marks=OUT_OF_REACH if name in OF_ITSELF else ())
        for name, sql in QUERIES.items()
    ],
)
def test_rows_are_as_of_an_ordinary_table(
    spark: SparkSession, names: RecordingSource, sql: str
) -> None:
    adapted_like_plain(spark, sql)
    assert set(names.keys.values()) <= {1}
    assert None not in names.keys


def test_only_keys_of_rows_that_may_match_are_asked_for(
    spark: SparkSession, names: RecordingSource
) -> None:
    adapted_like_plain(
        spark, "SELECT r.id, n.x FROM rows r LEFT JOIN names n ON r.k = n.k AND r.id < 3"
    )
    assert set(names.keys) <= {0, 1, 2}


@pytest.mark.usefixtures("names")
def test_functions_over_matches(spark: SparkSession) -> None:
    loud = F.udf(lambda name: None if name is None else name.upper(), "string")
    spark.udf.register("loud", loud)
    adapted_like_plain(
        spark,
        "SELECT r.id, n.l FROM rows r LEFT JOIN (SELECT k, loud(name) AS l FROM names) n "
        "ON r.k = n.k",
    )


def test_many_rows_and_matches(spark: SparkSession) -> None:
    many = [(key, f"{key}/{n}", n) for key in range(50) for n in range(key)]
    source = RecordingSource(many, [0])
    eddyline.lookup_table(spark, "many", SCHEMA, ["k"], eddyline.PythonLookup(source))
    spark.createDataFrame(many, SCHEMA).createOrReplaceTempView("plain_many")
    sql = """
        SELECT r.id, m.name FROM (SELECT id, cast(id % 60 AS int) AS k FROM range(20000)) r
        LEFT JOIN {many} m ON r.k = m.k"""
    found = eddyline.adapt(spark.sql(sql.format(many="many"))).groupBy("name").count()
    wanted = spark.sql(sql.format(many="plain_many")).groupBy("name").count()
    assert Counter(found.collect()) == Counter(wanted.collect())
    assert set(source.keys) == set(range(60))
    assert set(source.keys.values()) == {1}


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT * FROM rows r FULL JOIN names n ON r.k = n.k", "no values for k.*outer join"),
        ("SELECT * FROM names n LEFT JOIN rows r ON r.k = n.k", "no values for k.*outer join"),
        ("SELECT n.k FROM rows r LEFT JOIN names n ON r.id > n.x", "no values for k"),
        ("SELECT id FROM rows WHERE k NOT IN (SELECT k FROM names)", "no values for k"),
        (
            "SELECT * FROM rows r LEFT JOIN names n ON r.k = n.k AND upper(n.name) = 'TWO'",
            "LEFT OUTER join.*upper",
        ),
    ],
)
def test_what_cannot_be_bound_says_why(spark: SparkSession, sql: str, why: str) -> None:
    with pytest.raises(UnboundLookupError, match=f"names.*{why}"):
        eddyline.adapt(spark.sql(sql))


@pytest.mark.usefixtures("names")
def test_scans_beside_matches_must_be_small(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        with pytest.raises(UnboundLookupError, match="autoBroadcastJoinThreshold"):
            eddyline.adapt(spark.sql(QUERIES["beside a scan"]))
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


@pytest.mark.usefixtures("names")
def test_explain_names_the_join(spark: SparkSession) -> None:
    assert "LEFT OUTER join" in str(eddyline.explain(spark.sql(QUERIES["left"])))
