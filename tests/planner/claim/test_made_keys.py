"""Keys of joins that functions make are keys of the eddy's indexes, beside those that are there."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.blocks.decline import DeclineReason
from tests.planner.recording_source import RecordingSource

ROWS = 300
PAGES = 3
"""Different values of the key that is there: a hundred rows of each side have the same."""


@pytest.fixture
def joined(spark: SparkSession) -> DataFrame:
    """Two tables, by the number of pages and by what a function makes of each row."""
    code = F.udf(lambda text: text.split("::")[1], "string")
    alike = F.udf(lambda one, other: one[-1] == other[-1], "boolean")
    near = F.udf(lambda one, other: abs(one - other) < 2, "boolean")
    one, other = (
        spark.range(0, ROWS, 1, 1)
        .selectExpr("id", f"id % {PAGES} AS pages", f"concat('{prefix}::', id) AS funding")
        .alias(name)
        for name, prefix in (("one", "ec"), ("other", "nih"))
    )
    return one.join(
        other,
        (F.col("one.pages") == F.col("other.pages"))
        & (code("one.funding") == code("other.funding")),
    ).where(alike("one.funding", "other.funding") & near("one.id", "other.id"))


@pytest.mark.parametrize("joins", ["auto", "always"])
def test_few_rows_meet_where_a_function_makes_a_key(joined: DataFrame, joins: str) -> None:
    adapted = eddyline.adapt(joined, joins=joins)
    assert sorted(adapted.collect()) == sorted(joined.collect())
    records = [block.record for block in eddyline.report(adapted).blocks]
    (join,) = (record.join for record in records if record is not None and record.join is not None)
    assert sum(stem.matches for stem in join.stems) == ROWS  # by pages alone 30,000


def test_who_makes_the_keys_is_told(joined: DataFrame) -> None:
    left = eddyline.explain(joined).left
    assert [each.reason for each in left] == [DeclineReason.JOIN_KEY] * 2


LOOKED_UP = {
    "below a join that keeps rows": """SELECT r.id, a.x FROM kept r
        LEFT JOIN (made_names a JOIN made b ON a.x = b.id)
        ON r.id = a.k AND r.id = b.id AND code(b.text) = r.text""",
    "below the function": """SELECT r.id, a.x FROM (SELECT *, code(text) AS c FROM kept) r
        JOIN made b ON r.id = b.id AND r.c = b.text JOIN made_names a ON a.k = b.id""",
    "beside what a function is computed over": """SELECT r.id, r.x FROM (
            SELECT kept.id, a.k, a.x, code(kept.text) AS c FROM kept CROSS JOIN made_names a
        ) r JOIN made b ON r.id = b.id AND r.c = b.text AND r.k = b.id""",
    "with the function's value": """SELECT r.id, a.x FROM kept r
        JOIN made b ON r.id = b.id AND code(r.text) = b.text JOIN made_names a ON a.k = r.id""",
}


@pytest.mark.parametrize("sql", LOOKED_UP.values(), ids=LOOKED_UP)
def test_lookups_find_what_binds_them(spark: SparkSession, sql: str) -> None:
    session = spark.newSession()
    rows = [(number, number) for number in range(20)]
    session.createDataFrame(rows, "k bigint, x bigint").createOrReplaceTempView("plain_made_names")
    eddyline.lookup_table(
        session,
        "made_names",
        "k bigint, x bigint",
        ["k"],
        eddyline.PythonLookup(RecordingSource(rows, [0])),
    )
    for name in ("kept", "made"):
        texts = session.range(0, 30, 1, 1).selectExpr("id", "concat('t', id % 7) AS text")
        texts.createOrReplaceTempView(name)
    session.udf.register("code", F.udf(lambda text: text, "string"))
    plain = session.sql(sql.replace("made_names", "plain_made_names")).collect()
    assert sorted(eddyline.adapt(session.sql(sql)).collect()) == sorted(plain)
    assert plain
