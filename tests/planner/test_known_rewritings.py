"""What became of a plan becomes of every equal one, and of no other."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline

pytestmark = pytest.mark.slow(15)

FILTER: Final = "SELECT id, k FROM numbers WHERE few(id) AND large(k)"


def few(number: int | None) -> bool | None:
    return None if number is None else number % 3 == 0


def large(number: int | None) -> bool | None:
    return None if number is None else number > 1


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of files."""
    path = tmp_path_factory.mktemp("known") / "numbers"
    spark.range(0, 40, 1, 2).selectExpr("id", "id % 5 AS k").write.parquet(str(path))
    return path


@pytest.fixture
def session(spark: SparkSession, files: Path) -> Iterator[SparkSession]:
    """An enabled session of its own, which knows the table, and where nothing else is known yet."""
    own = spark.newSession()
    own.read.parquet(str(files)).createOrReplaceTempView("numbers")
    own.udf.register("few", F.udf(few, "boolean"))
    own.udf.register("large", F.udf(large, "boolean"))
    with eddyline.enable(own):
        eddyline.forget()
        yield own


def reused() -> int:
    return eddyline.status().reused


def reused_by(run: Callable[[], object]) -> int:
    """Return how often a stored decision was used while something ran."""
    before = reused()
    run()
    return reused() - before


def rows_of(df: DataFrame) -> Counter[str]:
    return Counter(map(repr, df.collect()))


def known_twice(spark: SparkSession, sql: str) -> Counter[str]:
    """Run a query until what becomes of it is reused; return its rows."""
    rows = rows_of(spark.sql(sql))
    assert rows_of(spark.sql(sql)) == rows  # rewritten again, knowing what its functions cost
    assert reused_by(lambda: spark.sql(sql).collect()) == 1
    return rows


SAME: Final = (
    FILTER,
    "SELECT large(k) AS yes, count(*) FROM numbers GROUP BY large(k)",
    "SELECT a.id, b.k FROM numbers a JOIN numbers b ON a.id = b.k WHERE few(a.id) AND large(b.id)",
    "SELECT id FROM numbers WHERE few(id) AND id > (SELECT avg(k) FROM numbers WHERE large(k))",
    "SELECT id FROM numbers a WHERE few(id) OR EXISTS (SELECT 1 FROM numbers b WHERE b.k = a.id)",
    "SELECT CASE WHEN k = 1 THEN 'one' WHEN few(k) THEN 'few' END AS text FROM numbers",
    "SELECT id, filter(array(id, k), each -> each > 3) AS more FROM numbers WHERE few(id)",
    "SELECT * FROM VALUES (1, 2), (3, NULL) AS t(id, k) WHERE few(id) OR large(k)",
)


@pytest.mark.parametrize("number", range(len(SAME)))
def test_equal_plans_have_the_same_rows(session: SparkSession, number: int) -> None:
    with eddyline.disable(session):
        rows = rows_of(session.sql(SAME[number]))
    assert known_twice(session, SAME[number]) == rows


def test_a_report_covers_what_was_reused(session: SparkSession) -> None:
    known_twice(session, FILTER)
    again = session.sql(FILTER)
    assert reused_by(again.collect) == 1
    (block,) = eddyline.report(again).blocks
    assert block.record is not None
    assert block.record.rows_in == 40


@pytest.mark.parametrize(
    "other",
    [
        "SELECT id, k FROM numbers WHERE large(id) AND few(k)",
        "SELECT id, k FROM numbers WHERE few(id) AND large(k) AND k < 4",
        "SELECT id, k AS other FROM numbers WHERE few(id) AND large(k)",
        "SELECT k, id FROM numbers WHERE few(id) AND large(k)",
        "SELECT id, k FROM numbers WHERE few(k) AND large(k)",
        "SELECT id, k FROM numbers WHERE few(id) OR large(k)",
        "SELECT DISTINCT id, k FROM numbers WHERE few(id) AND large(k)",
    ],
)
def test_other_plans_are_rewritten(session: SparkSession, other: str) -> None:
    known_twice(session, FILTER)
    with eddyline.disable(session):
        plain = session.sql(other)
        rows, names = rows_of(plain), plain.columns
    adapted = session.sql(other)
    assert adapted.columns == names
    assert reused_by(lambda: rows_of(adapted)) == 0
    assert rows_of(session.sql(other)) == rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, shown({0}) AS text, {0} AS zero FROM numbers WHERE few(id) AND large(k)",
        "SELECT id, shown(array({0})[0]) AS text FROM numbers WHERE few(id) AND large(k)",
        """SELECT id, shown(x) AS text, x FROM numbers JOIN VALUES (3L, {0}) v(n, x) ON id = n
           WHERE few(id) AND large(n)""",
    ],
)
def test_zeros_that_are_equal_and_not_the_same(session: SparkSession, sql: str) -> None:
    session.udf.register("shown", F.udf(repr, "string"))
    for _ in range(3):
        assert "'0.0'" in str(session.sql(sql.format("0.0D")).collect())
    assert "'-0.0'" in str(session.sql(sql.format("-0.0D")).collect())


def test_another_function_of_the_same_name(session: SparkSession) -> None:
    known_twice(session, FILTER)
    session.udf.register("large", F.udf(lambda number: number == 4, "boolean"))
    rows: list[Row] = []
    assert reused_by(lambda: rows.extend(session.sql(FILTER).collect())) == 0
    assert {row.k for row in rows} == {4}


def test_another_setting(session: SparkSession) -> None:
    known_twice(session, FILTER)
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert reused_by(lambda: session.sql(FILTER).collect()) == 0


def test_other_files(session: SparkSession, files: Path, tmp_path: Path) -> None:
    shutil.copytree(files, tmp_path / "numbers")
    session.read.parquet(str(tmp_path / "numbers")).createOrReplaceTempView("numbers")
    rows = known_twice(session, FILTER)
    (tmp_path / "numbers" / "again.parquet").write_bytes(next(files.glob("*.parquet")).read_bytes())
    session.read.parquet(str(tmp_path / "numbers")).createOrReplaceTempView("numbers")
    more: list[Row] = []
    assert reused_by(lambda: more.extend(session.sql(FILTER).collect())) == 0
    assert Counter(map(repr, more)) > rows


def test_the_same_files_read_again(session: SparkSession, files: Path) -> None:
    """Each reading is another relation, with columns of other identities."""

    def wanted() -> DataFrame:
        read = session.read.parquet(str(files))
        return read.filter("few(id)").filter("large(k)").select("k", "id")

    rows = rows_of(wanted())
    wanted().collect()
    again: list[Row] = []
    assert reused_by(lambda: again.extend(wanted().collect())) == 1
    assert Counter(map(repr, again)) == rows


def test_other_rows_that_are_held(session: SparkSession) -> None:
    def over(*numbers: int) -> list[int]:
        pairs = [(number, 2) for number in numbers]
        session.createDataFrame(pairs, "id long, k long").createOrReplaceTempView("numbers")
        return [row.id for row in session.sql(FILTER).collect()]

    assert over(3, 4, 6) == [3, 6]
    assert over(3, 4, 9) == [3, 9]
    assert over(3, 4, 6) == [3, 6]


def test_cached_rows_until_they_are_released(session: SparkSession) -> None:
    table = session.table("numbers").cache()
    table.count()
    rows = known_twice(session, FILTER)
    table.unpersist()
    assert reused_by(lambda: session.sql(FILTER).collect()) == 0
    assert known_twice(session, FILTER) == rows


def test_what_is_wanted_when_a_session_is_enabled(session: SparkSession) -> None:
    known_twice(session, FILTER)
    with eddyline.enable(session, policy="static"):
        df = session.sql(FILTER)
        assert reused_by(df.collect) == 0
        assert "static" in str(eddyline.report(df))


def test_nothing_is_kept_after_forgetting(session: SparkSession) -> None:
    known_twice(session, FILTER)
    assert eddyline.status().kept.plans > 0
    eddyline.forget()
    assert eddyline.status().kept.plans == 0
    assert reused_by(lambda: session.sql(FILTER).collect()) == 0


def test_as_many_plans_are_kept_as_was_said(session: SparkSession) -> None:
    for number in range(140):
        query = session.table("numbers").filter("few(id)").filter(F.col("k") != number)
        query._jdf.queryExecution().optimizedPlan()
    assert eddyline.status().kept.plans == 128
