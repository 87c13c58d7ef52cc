"""Tables that can be looked up and scanned: `adapt` finds out which, and the rows are the same."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline import catalyst
from tests.asked import until
from tests.planner.recording_source import RecordingSource

pytestmark = pytest.mark.slow(40)

PARTS = [(n, n % 3, f"part {n}") for n in range(400) if n % 10] + [(22, 0, "another")]
"""Some numbers are missing, and one stands twice."""

SCHEMA = "part int, kind int, name string"
NEVER, SOON = 1_000.0, 2.0
"""Seconds of a scan that none of these queries waits for, and of one that is soon sooner."""

Register = Callable[..., RecordingSource]

PATTERNS = {
    "inner": "SELECT o.id, p.name FROM orders o JOIN parts p ON o.part = p.part",
    "with conditions": "SELECT o.id, p.name FROM orders o JOIN parts p ON o.part = p.part "
    "AND p.kind < o.id WHERE p.name LIKE '%1%' AND o.id % 2 = 0",
    "computed": "SELECT o.id, p.name FROM orders o JOIN parts p ON p.part = o.id + 1",
    "left": "SELECT o.id, p.name FROM orders o LEFT JOIN parts p ON o.part = p.part",
    "right": "SELECT o.id, p.name FROM parts p RIGHT JOIN orders o ON o.part = p.part",
    "semi": "SELECT o.id, 's' FROM orders o WHERE o.part IN (SELECT part FROM parts)",
    "anti": "SELECT o.id, 'a' FROM orders o "
    "WHERE NOT EXISTS (SELECT 1 FROM parts p WHERE p.part = o.part)",
    "of parts": "SELECT p.kind, p.name FROM parts p WHERE p.part IN (SELECT part FROM orders)",
    "aggregate": "SELECT count(1), string(p.kind) FROM orders o JOIN parts p ON o.part = p.part "
    "GROUP BY p.kind",
    "subquery": "SELECT o.id, 'x' FROM orders o WHERE o.id < "
    "(SELECT max(p.part) FROM orders o2 JOIN parts p ON o2.part = p.part)",
    "one": "SELECT p.kind, p.name FROM parts p WHERE p.part = 401 - 350",
    "some": "SELECT p.kind, p.name FROM parts p WHERE p.part IN (3, 22, 30, 999) AND p.kind < 2",
    "no key": "SELECT o.id, p.name FROM (SELECT max(id) AS id, max(part) AS part FROM orders "
    "WHERE id < 0) o LEFT JOIN parts p ON o.part = p.part",
    "no groups": "SELECT o.id, p.name FROM (SELECT id, max(part) AS part FROM orders WHERE id < 0 "
    "GROUP BY id) o LEFT JOIN parts p ON o.part = p.part",
    "no rows": "SELECT o.id, p.name FROM orders o JOIN parts p ON o.part = p.part WHERE o.id < 0",
}
SCANNED_AT_ONCE = {
    "all": "SELECT p.part, p.name FROM parts p WHERE p.kind = 1 OR p.part = 3",
    "full": "SELECT o.id, p.name FROM orders o FULL JOIN parts p ON o.part = p.part",
    "null-aware": "SELECT o.id, 'n' FROM orders o WHERE o.part NOT IN (SELECT part FROM parts)",
    "not of parts": "SELECT p.kind, p.name FROM parts p "
    "WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE p.part = o.part)",
    "with itself": "SELECT p.kind, q.name FROM parts p JOIN parts q ON p.part = q.part",
    "unbound": "SELECT o.id, p.name FROM orders o JOIN parts p ON o.part = p.kind",
}


@pytest.fixture(scope="module", autouse=True)
def plain_tables(spark: SparkSession) -> None:
    """The table as an ordinary one, and the rows that it is joined with."""
    spark.createDataFrame(PARTS, SCHEMA).cache().createOrReplaceTempView("plain_parts")
    part = F.when(F.col("id") % 7 != 0, (F.col("id") % 430).cast("int"))
    orders = spark.range(0, 600, 1, 3).select(F.col("id").cast("int"), part.alias("part"))
    orders.createOrReplaceTempView("orders")


@pytest.fixture
def register(spark: SparkSession) -> Register:
    """Registers the table, and returns what is asked."""

    def registered(
        scan_seconds: float | None,
        *,
        pause: float = 0.0,
        fails: Callable[[int], bool] = lambda _: False,
        scan: DataFrame | None = None,
        **options: Any,  # noqa: ANN401 - those of lookup_table
    ) -> RecordingSource:
        source = RecordingSource(PARTS, [0])

        def look(keys: list[int]) -> list[tuple[Any, ...]]:
            found = source(keys)
            time.sleep(pause)
            if any(map(fails, keys)):
                raise ValueError("no answer")
            return found

        eddyline.lookup_table(
            spark,
            "parts",
            SCHEMA,
            ["part"],
            eddyline.PythonLookup(look),
            key=["part"],
            scan=spark.table("plain_parts") if scan is None else scan,
            scan_seconds=scan_seconds,
            **options,
        )
        return source

    return registered


def both(spark: SparkSession, sql: str) -> tuple[DataFrame, Counter[Any]]:
    """Return the adapted query, and the rows that it must have."""
    plain = spark.sql(sql.replace("parts p", "plain_parts p").replace("M parts)", "M plain_parts)"))
    return eddyline.adapt(spark.sql(sql)), Counter(plain.collect())


def unreadable(spark: SparkSession) -> DataFrame:
    """Return a scan that fails if anything of it is read."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows >= 0:
                raise ValueError("the scan was read")
            yield batch

    return spark.table("plain_parts").mapInArrow(read, SCHEMA)


def all_of(patterns: dict[str, str]) -> str:
    return " UNION ALL ".join(
        f"SELECT '{name}', * FROM ({sql})"  # noqa: S608 - our own
        for name, sql in patterns.items()
    )


def keys_of(sql: str, spark: SparkSession) -> set[int]:
    return {row[0] for row in spark.sql(sql).collect()}


def test_keys_are_looked_up_where_that_is_sooner(spark: SparkSession, register: Register) -> None:
    asked = register(NEVER, scan=unreadable(spark))
    adapted, expected = both(spark, all_of(PATTERNS))
    assert Counter(adapted.collect()) == expected
    wanted = keys_of("SELECT part FROM orders UNION SELECT id + 1 FROM orders", spark) - {None}
    wanted |= {51, 3, 22, 30, 999}
    assert asked.keys == Counter(wanted), "each key once, whatever has it"


def jobs_for_outcomes(df: DataFrame) -> int:
    """Return how many broadcasts a query has made of all rows of something, to find out."""
    stages = df._jdf.queryExecution().executedPlan().context().stageCache().valuesIterator()
    plans = []
    while stages.hasNext():
        plans.append(stages.next().plan().toString())
    return sum("IdentityBroadcastMode" in plan for plan in plans)


@pytest.fixture
def without_gates(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the optimizer without our rule, as where nothing can be compiled."""
    monkeypatch.setattr(catalyst, "open_gates", lambda *_: None)
    methods = spark._jsparkSession.experimental()
    before = methods.extraOptimizations()
    getattr(methods, "extraOptimizations_$eq")(before.take(0))
    yield
    getattr(methods, "extraOptimizations_$eq")(before)


@pytest.mark.parametrize("scanned", [False, True])
def test_no_job_finds_out_whether_a_small_side_has_few_keys(
    spark: SparkSession,
    register: Register,
    scanned: bool,  # noqa: FBT001 - a case
) -> None:
    asked = register(
        SOON if scanned else NEVER,
        pause=0.05 if scanned else 0.0,
        max_in_flight=1,
        scan=None if scanned else unreadable(spark),
    )
    adapted, expected = both(spark, PATTERNS["inner"])
    assert Counter(adapted.collect()) == expected
    assert not jobs_for_outcomes(adapted)
    assert asked.keys


@pytest.mark.parametrize("scanned", [False, True])
@pytest.mark.usefixtures("without_gates")
def test_without_a_rule_a_job_more_finds_out(
    spark: SparkSession,
    register: Register,
    scanned: bool,  # noqa: FBT001 - a case
) -> None:
    asked = register(
        SOON if scanned else NEVER,
        pause=0.05 if scanned else 0.0,
        max_in_flight=1,
        scan=None if scanned else unreadable(spark),
    )
    adapted, expected = both(spark, PATTERNS["inner"])
    assert Counter(adapted.collect()) == expected
    assert jobs_for_outcomes(adapted) == (not scanned)
    assert asked.keys


def test_they_are_scanned_where_that_is_sooner(spark: SparkSession, register: Register) -> None:
    asked = register(SOON, pause=0.05, max_in_flight=2)
    adapted, expected = both(spark, all_of(PATTERNS))
    assert Counter(adapted.collect()) == expected
    assert 0 < len(asked.keys) < 100
    assert set(asked.keys.values()) == {1}


def test_a_table_that_no_key_binds_is_scanned(spark: SparkSession, register: Register) -> None:
    asked = register(NEVER)
    adapted, expected = both(
        spark, all_of(SCANNED_AT_ONCE).replace("JOIN parts q", "JOIN plain_parts q")
    )
    del adapted
    sql = all_of(SCANNED_AT_ONCE)
    assert Counter(eddyline.adapt(spark.sql(sql)).collect()) == expected
    assert not asked.keys


@pytest.mark.parametrize("on_error", ["fail", "null", "skip"])
def test_a_key_without_an_answer_leaves_the_table_to_the_scan(
    spark: SparkSession, register: Register, on_error: str
) -> None:
    register(NEVER, fails=lambda key: key == 33, on_error=on_error, retries=0)
    adapted, expected = both(spark, PATTERNS["left"])
    assert Counter(adapted.collect()) == expected
    assert "no answer" in " ".join(str(eddyline.report(adapted)).split())  # however it is wrapped


def test_a_scan_that_is_chosen_and_fails_is_said(spark: SparkSession, register: Register) -> None:
    register(SOON, pause=0.05, max_in_flight=1, scan=unreadable(spark))
    with pytest.raises(Exception, match="the scan was read"):
        both(spark, PATTERNS["inner"])[0].collect()


def test_nothing_of_a_scan_that_shuffles_is_read(spark: SparkSession, register: Register) -> None:
    grouped = (
        unreadable(spark)
        .groupBy("part")
        .agg(F.max("kind").alias("kind"), F.max("name").alias("name"))
    )
    asked = register(NEVER, scan=grouped)
    rows = eddyline.adapt(spark.sql(PATTERNS["inner"] + " WHERE o.id = 22")).collect()
    assert sorted(row.name for row in rows) == ["another", "part 22"]
    assert set(asked.keys) == {22}


def test_a_limit_above_takes_rows_of_the_join(spark: SparkSession, register: Register) -> None:
    register(NEVER, scan=unreadable(spark))
    adapted, expected = both(spark, PATTERNS["inner"])
    taken = Counter(adapted.take(5))
    assert taken.total() == 5
    assert taken <= expected


def test_without_adaptive_execution_and_as_an_rdd_it_is_scanned(
    spark: SparkSession, register: Register
) -> None:
    asked = register(NEVER)
    adapted, expected = both(spark, PATTERNS["inner"])
    assert adapted.rdd.count() == expected.total()
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        assert Counter(both(spark, PATTERNS["inner"])[0].collect()) == expected
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "true")
    assert not asked.keys


def test_functions_on_the_other_side_are_not_called_twice(
    spark: SparkSession, register: Register
) -> None:
    asked = register(NEVER)
    called = spark.sparkContext.accumulator(0)

    @F.udf("boolean")
    def odd(number: int) -> bool:
        called.add(1)
        return number % 2 == 1

    joined = spark.table("orders").where(odd("id")).join(spark.table("parts"), "part")
    plain = spark.table("orders").where("id % 2 = 1").join(spark.table("plain_parts"), "part")
    assert Counter(eddyline.adapt(joined).collect()) == Counter(plain.collect())
    assert called.value <= 600
    assert not asked.keys


def test_a_session_under_enable_chooses_as_well(spark: SparkSession, register: Register) -> None:
    asked = register(NEVER, scan=unreadable(spark))
    _, expected = both(spark, PATTERNS["left"])
    with eddyline.enable(spark):
        assert Counter(spark.sql(PATTERNS["left"]).collect()) == expected
    assert asked.keys
    assert set(asked.keys.values()) == {1}


def test_it_says_what_will_be_and_what_was(spark: SparkSession, register: Register) -> None:
    register(NEVER)
    adapted, _ = both(spark, PATTERNS["inner"])
    what = (
        "parts is looked up by part, unless the keys of the query take longer than a scan "
        "(1,000 s, as declared): then it is scanned"
    )
    assert what in str(eddyline.explain(adapted))
    assert what in str(eddyline.explain(spark.sql(PATTERNS["inner"])))
    adapted.collect()
    report = eddyline.report(adapted)
    assert "parts was looked up: in " in str(report)
    (table,) = report.asked
    keys = len(keys_of("SELECT DISTINCT part FROM orders WHERE part IS NOT NULL", spark))
    assert (table.name, table.keys, table.requests) == ("parts", keys, keys)
    assert table.choice.endswith("a scan takes 1,000 s")


def test_what_a_scan_takes_is_known_by_its_size_or_said(
    spark: SparkSession, register: Register
) -> None:
    """A small one begins at once, and no stage comes before it."""
    asked = register(None, scan=spark.range(400).selectExpr("int(id) part", "0 kind", "'x' name"))
    sql = PATTERNS["inner"]
    assert "Looked up or scanned" not in str(eddyline.explain(spark.sql(sql)))
    assert eddyline.adapt(spark.sql(sql)).count()
    assert not asked.keys
    large = spark.range(100_000_000).selectExpr("int(id) part", "0 kind", "'x' name")
    register(None, scan=large)
    assert "by its size" in str(eddyline.explain(spark.sql(sql)))
    with pytest.raises(ValueError, match="scan_seconds is a number above 0"):
        register(-1.0)
    source = eddyline.PythonLookup(len)
    with pytest.raises(ValueError, match="there is no scan"):
        eddyline.lookup_table(spark, "t", "a int", ["a"], source, scan_seconds=3.0)


def test_money_counts_where_its_worth_is_said(spark: SparkSession, register: Register) -> None:
    """Some 370 keys for half a dollar each; a scan costs one."""
    asked = register(NEVER, cost=0.5, unit="USD", scan_cost=1.0)
    sql = PATTERNS["inner"]
    _, expected = both(spark, sql)
    free = eddyline.adapt(spark.sql(sql))
    assert Counter(free.collect()) == expected
    (table,) = eddyline.report(free).asked
    assert table.keys == table.requests == len(asked.keys)
    assert table.money == f"{len(asked.keys) / 2:g} USD"
    assert table.money in str(eddyline.report(free))
    asked.keys.clear()
    weighed = eddyline.adapt(spark.sql(sql), worth={"USD": 3_600.0})
    assert Counter(weighed.collect()) == expected
    assert not asked.keys
    said = "parts is looked up by part (a call costs money worth 1,800 s), unless the keys"
    assert said in " ".join(str(eddyline.explain(weighed)).split())
    (table,) = eddyline.report(weighed).asked
    assert table.choice.startswith("scanned: the keys would take money worth ")
    assert table.choice.endswith("; a scan takes 1,000 s and money worth 3,600 s")
    with pytest.raises(ValueError, match="there is no scan"):
        eddyline.lookup_table(
            spark, "t", "a int", ["a"], eddyline.PythonLookup(len), scan_cost=3.0, unit="USD"
        )
    with pytest.raises(TypeError, match="the cost of a request is a number"):
        register(NEVER, cost=len, unit="USD")


BY_KIND = "SELECT o.id, p.name FROM orders o JOIN parts p ON o.part = p.part AND p.kind = o.id % 3"


@pytest.mark.parametrize("scanned", [False, True])
def test_ways_by_other_columns_compete(
    spark: SparkSession,
    register: Register,
    scanned: bool,  # noqa: FBT001 - a case
) -> None:
    """There are three kinds of parts, and many numbers."""
    by_kind = RecordingSource(PARTS, [1])

    def look(keys: list[int]) -> list[tuple[Any, ...]]:
        if scanned:
            raise ValueError("no answer by kind")
        return by_kind(keys)

    also = [eddyline.LookupMethod(["kind"], eddyline.PythonLookup(look), retries=0)]
    asked = register(
        NEVER,
        also=also,
        fails=lambda _: scanned,
        retries=0,
        scan=None if scanned else unreadable(spark),
    )
    adapted, expected = both(spark, BY_KIND)
    assert "looked up by part, or by kind if that is sooner" in str(eddyline.explain(adapted))
    assert Counter(adapted.collect()) == expected
    said = " ".join(str(eddyline.report(adapted)).split())
    if scanned:
        assert "no answer" in said
    else:
        assert by_kind.keys == Counter(range(3))
        assert not asked.keys
        assert "parts(kind) was looked up: in " in said
    alone, expected = both(spark, PATTERNS["left"])
    assert Counter(alone.collect()) == expected


def test_what_a_scan_has_taken_is_known_to_the_next_query(
    spark: SparkSession, register: Register
) -> None:
    """Nothing is known of it at first: it is taken to need 10 s."""

    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        time.sleep(0.5)
        yield from batches

    eddyline.forget()
    plain = spark.range(400).join(spark.table("plain_parts"), F.col("id") == F.col("part"))
    scan = plain.select("part", "kind", "name").mapInArrow(slowly, SCHEMA)
    register(None, fails=lambda _: True, retries=0, scan=scan)
    sql = PATTERNS["inner"]
    assert "10 s, as nothing is known of it" in str(eddyline.explain(spark.sql(sql)))
    adapted, expected = both(spark, sql)
    assert len(adapted.take(3)) == 3  # which says nothing of a whole scan
    assert Counter(adapted.collect()) == expected
    assert until(lambda: bool(eddyline.learned(spark).scans))
    (learned,) = eddyline.learned(spark).scans
    assert learned.table == "parts"
    assert 0.4 < learned.seconds < 60.0
    again = str(eddyline.explain(spark.sql(sql)))
    assert ("as the last one did" in again) is (learned.seconds > 2.0)  # else it is scanned at once
    assert "nothing is known" not in again
