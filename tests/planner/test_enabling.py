"""A session for which Eddyline is switched on gives the rows that it gave before."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import pandas as pd
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.errors import FunctionPlaceError, UnboundLookupError
from tests.fresh_process import printed_lines
from tests.planner.jvm_calls import counted_calls

pytestmark = pytest.mark.slow(90)

SIMPLIFIED: Final = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"

VECTORIZED: Any = F  # whose stubs do not know its functions of Arrow and pandas


def is_even(number: int | None) -> bool | None:
    return None if number is None else number % 2 == 0


def is_short(text: str | None) -> bool | None:
    return None if text is None else len(text) < 5


def shown(number: int | None) -> str:
    return f"<{number}>"


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with some views and with functions of three kinds under names of SQL."""
    items = [(n, n % 7 if n % 5 else None, "abcdefgh"[: n % 9], n / 4) for n in range(60)]
    spark.createDataFrame(items, "id long, k long, text string, x double").createOrReplaceTempView(
        "items"
    )
    others = [(n, n % 3 if n % 4 else None, chr(97 + n)) for n in range(20)]
    spark.createDataFrame(others, "id long, k long, text string").createOrReplaceTempView("others")
    spark.createDataFrame(
        [(n, list(range(n % 4)), (n, str(n))) for n in range(12)],
        "id long, list array<long>, pair struct<a: long, b: string>",
    ).createOrReplaceTempView("nested")
    for name, function in (
        ("even", F.udf(is_even, "boolean")),
        ("short", F.udf(is_short, "boolean")),
        ("shown", F.udf(shown, "string")),
        ("odd", VECTORIZED.pandas_udf(lambda s: s.fillna(0) % 2 == 1, "boolean")),
        ("next", VECTORIZED.pandas_udf(lambda s: s + 1, "long")),
    ):
        spark.udf.register(name, function)
    yield spark
    for name in ("even", "short", "shown", "odd", "next"):
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


QUERIES: Final = """
SELECT * FROM items WHERE {0} AND {1}
SELECT id FROM items WHERE {0} OR x > 9
SELECT id, {0} AS yes, text FROM items WHERE {1}
SELECT DISTINCT {0} AS yes FROM items
SELECT k, count(*) AS n, sum(x) AS s FROM items WHERE {0} GROUP BY k
SELECT {0} AS yes, count(*) AS n FROM items GROUP BY {0}
SELECT k, count_if({0}) AS n FROM items GROUP BY k HAVING count_if({0}) > 1
SELECT k, {2} AS shown, count(*) AS n FROM items WHERE {0} GROUP BY ROLLUP (k, {2})
SELECT id FROM items WHERE {0} ORDER BY x DESC, id LIMIT 5
SELECT id, {2} AS shown FROM items ORDER BY id LIMIT 7 OFFSET 3
SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS place FROM items WHERE {0}
SELECT id, sum(CASE WHEN {0} THEN 1 ELSE 0 END) OVER (ORDER BY id) AS so_far FROM items
SELECT a.id, b.text FROM items a JOIN others b ON a.k = b.k WHERE {3} AND {4}
SELECT a.id, b.id AS other FROM items a JOIN others b ON a.k = b.k AND {3} AND a.id > b.id
SELECT a.id, b.id AS other FROM items a LEFT JOIN others b ON a.k = b.k AND {4} WHERE {3}
SELECT a.id, b.id AS other FROM items a FULL JOIN others b ON a.id = b.id WHERE {3} OR a.id IS NULL
SELECT a.id FROM items a LEFT SEMI JOIN others b ON a.k = b.k WHERE {3}
SELECT a.id FROM items a LEFT ANTI JOIN (SELECT * FROM others b WHERE {4}) b ON a.id = b.id
SELECT a.id FROM items a, others b, items c WHERE a.id = b.id AND b.id = c.k AND {3} AND {4}
SELECT id FROM items WHERE id IN (SELECT id FROM others b WHERE {4}) AND {0}
SELECT id FROM items a WHERE EXISTS (SELECT 1 FROM others b WHERE b.k = a.k AND {4}) OR {3}
SELECT id, (SELECT max(b.id) FROM others b WHERE {4}) AS most FROM items a WHERE {3}
SELECT id FROM items WHERE {0} UNION ALL SELECT id FROM others b WHERE {4}
SELECT k FROM items WHERE {0} INTERSECT SELECT k FROM others b WHERE {4}
SELECT k FROM items EXCEPT SELECT k FROM others b WHERE {4}
WITH some AS (SELECT * FROM items WHERE {0}) SELECT a.id FROM some a JOIN some b ON a.id = b.k
SELECT id, each FROM nested LATERAL VIEW explode(list) AS each WHERE {5}
SELECT id, pair.b FROM nested WHERE {5} AND pair.a > 2
SELECT id, filter(list, each -> each > 0) AS some FROM nested WHERE {5}
SELECT * FROM (SELECT k, {0} AS yes, x FROM items) PIVOT (sum(x) FOR yes IN (true, false))
SELECT id FROM items WHERE {0} AND id IN (1, 2, 3, 4) AND text LIKE '%b%'
SELECT * FROM VALUES (1, 2), (3, NULL) AS t(id, k) WHERE {0}
SELECT id FROM items WHERE {0} AND false
SELECT coalesce(string({2}), 'none') || text AS both FROM items WHERE NOT {0}
SELECT id FROM items WHERE {0} = {1}
""".strip().splitlines()

KINDS: Final = {
    "row": ("even(id)", "short(text)", "shown(k)", "even(a.id)", "short(b.text)", "even(id)"),
    "vector": ("odd(k)", "odd(id)", "next(k)", "odd(a.k)", "odd(b.id)", "odd(id)"),
    "both": (
        "odd(next(id))",
        "even(k)",
        "shown(next(k))",
        "even(next(a.id))",
        "short(b.text)",
        "even(pair.a)",
    ),
}


def bag(rows: list[Any]) -> Counter[str]:
    return Counter(map(repr, rows))


def described(df: DataFrame) -> Any:  # noqa: ANN401 - JSON
    return df.schema.jsonValue()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_same_rows_and_schema(tables: SparkSession, number: int, kind: str) -> None:
    sql = QUERIES[number].format(*KINDS[kind])
    before = tables.sql(sql)
    rows, schema = bag(before.collect()), described(before)
    with eddyline.enable(tables):
        for _ in range(3):  # the third time as the second, whose columns have other identities
            found = tables.sql(sql)
            assert described(found) == schema
            assert bag(found.collect()) == rows


def is_adapted(df: DataFrame) -> bool:
    plan = df._jdf.queryExecution().optimizedPlan().toString()
    return "eddy" in plan or "remembered" in plan


def test_most_of_these_are_adapted(tables: SparkSession) -> None:
    """Else the rows would be the same anyway."""
    with eddyline.enable(tables):
        adapted = [is_adapted(tables.sql(sql.format(*KINDS["row"]))) for sql in QUERIES]
    assert sum(adapted) > 0.8 * len(QUERIES)
    assert not any(is_adapted(tables.sql(sql.format(*KINDS["row"]))) for sql in QUERIES)


WANTED: Final = "SELECT id, k FROM items WHERE even(id) AND short(text)"


def saved(df: DataFrame, path: Path) -> int:
    df.write.parquet(str(path / "saved"))
    return df.sparkSession.read.parquet(str(path / "saved")).count()


def inserted(df: DataFrame, path: Path) -> int:
    spark = df.sparkSession
    spark.sql(f"CREATE TABLE kept (id long, k long) USING parquet LOCATION '{path / 'kept'}'")
    try:
        df.createOrReplaceTempView("wanted")
        spark.sql("INSERT INTO kept SELECT * FROM wanted")
        return spark.table("kept").count()
    finally:
        spark.sql("DROP TABLE kept")


ACTIONS: Final[dict[str, Callable[[DataFrame, Path], int]]] = {
    "collect": lambda df, _: len(df.collect()),
    "count": lambda df, _: df.count(),
    "toPandas": lambda df, _: len(df.toPandas()),
    "toArrow": lambda df, _: len(df.toArrow()),
    "toLocalIterator": lambda df, _: len(list(df.toLocalIterator())),
    "rdd": lambda df, _: df.rdd.count(),
    "sorted": lambda df, _: len(df.orderBy("id").collect()),
    "aggregated": lambda df, _: int(df.agg(F.count("*")).collect()[0][0]),
    "write": saved,
    "insert": inserted,
}


@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_is_adapted(tables: SparkSession, tmp_path: Path, name: str) -> None:
    wanted = tables.sql(WANTED).count()
    with eddyline.enable(tables):
        df = tables.sql(WANTED)
        assert ACTIONS[name](df, tmp_path) == wanted
        report = eddyline.report(df)
    assert sum(block.record.rows_in for block in report.blocks if block.record) >= 60


def test_another_session_is_left_alone(tables: SparkSession) -> None:
    other = tables.newSession()
    asked = other.range(9).filter(F.udf(is_even, "boolean")("id"))
    with eddyline.enable(tables):
        assert asked.count() == 5
        assert not is_adapted(asked)
    with eddyline.enable(other):
        assert not is_adapted(tables.sql(WANTED))


def test_what_is_cached_is_found(tables: SparkSession) -> None:
    plain = tables.sql(WANTED).cache()
    try:
        rows = bag(plain.collect())
        with eddyline.enable(tables):
            again = tables.sql(WANTED)
            assert "InMemoryRelation" in again._jdf.queryExecution().withCachedData().toString()
            assert bag(again.collect()) == rows
            more = again.filter(F.udf(is_even, "boolean")("k"))
            assert is_adapted(more)
            assert bag(more.collect()) <= rows
    finally:
        plain.unpersist()


def test_what_was_adapted_by_hand_keeps_its_choices(tables: SparkSession) -> None:
    with eddyline.enable(tables, policy="lottery"):
        by_hand = eddyline.adapt(tables.sql(WANTED), policy="static", seed=7)
        assert by_hand.count() == tables.sql(WANTED).count()
        report = str(eddyline.report(by_hand))
    assert "static" in report
    assert "lottery" not in report


def test_the_last_choice_counts(tables: SparkSession) -> None:
    def policy() -> str:
        df = tables.sql(WANTED)
        df.collect()
        return str(eddyline.report(df)).partition("policy ")[2].partition(",")[0]

    outer = eddyline.enable(tables, policy="lottery")
    with eddyline.enable(tables, policy="static") as inner:
        assert policy() == "static"
    assert policy() == "lottery"
    inner.__exit__(None, None, None)  # which has ended already
    assert policy() == "lottery"
    with outer:
        eddyline.disable(tables)
        assert not is_adapted(tables.sql(WANTED))
        eddyline.disable(tables)  # once more
    assert not is_adapted(tables.sql(WANTED))


def test_blocks_may_end_in_any_order_and_begin_again(tables: SparkSession) -> None:
    first = eddyline.enable(tables)
    second = eddyline.enable(tables, policy="static")
    first.__exit__(None, None, None)
    assert is_adapted(tables.sql(WANTED))  # the second goes on
    second.__exit__(None, None, None)
    assert not is_adapted(tables.sql(WANTED))
    for _ in range(2):
        with first:
            assert is_adapted(tables.sql(WANTED))
            with first:
                assert is_adapted(tables.sql(WANTED))
            assert is_adapted(tables.sql(WANTED))
        assert not is_adapted(tables.sql(WANTED))


def test_a_block_may_be_left_to_spark(tables: SparkSession) -> None:
    with eddyline.disable(tables):
        assert not is_adapted(tables.sql(WANTED))
    assert not is_adapted(tables.sql(WANTED))  # it was not enabled before
    with eddyline.enable(tables):
        with eddyline.disable(tables) as off:
            assert not is_adapted(tables.sql(WANTED))
        assert is_adapted(tables.sql(WANTED))
        off.__exit__(None, None, None)  # once more
        with eddyline.disable(tables), eddyline.enable(tables, policy="static"):
            assert is_adapted(tables.sql(WANTED))
        assert is_adapted(tables.sql(WANTED))
    assert not is_adapted(tables.sql(WANTED))


def test_a_session_that_was_stopped_has_nothing_to_enable() -> None:
    code = """
        import eddyline
        spark = eddyline.session()
        with eddyline.enable(spark):
            spark.stop()
        eddyline.disable(spark)
        try:
            eddyline.enable(spark)
        except RuntimeError as error:
            print(error)
    """
    assert printed_lines(dedent(code)) == ["This Spark session has been stopped; create a new one."]


def test_the_session_is_the_active_one(tables: SparkSession) -> None:
    with eddyline.enable():
        assert is_adapted(tables.sql(WANTED))
    assert not is_adapted(tables.sql(WANTED))


def test_a_query_that_ran_before_is_adapted_by_hand_as_it_was_written(tables: SparkSession) -> None:
    with eddyline.enable(tables, policy="lottery"):
        df = tables.sql(WANTED)
        df.collect()
        by_hand = eddyline.adapt(df, policy="static")
        assert by_hand is not df
        by_hand.collect()
        assert "policy static" in str(eddyline.report(by_hand))


def test_a_part_that_is_used_twice_and_not_twice_the_same(tables: SparkSession) -> None:
    sql = """WITH some AS (SELECT id, k, rand() r FROM items WHERE even(id))
             SELECT a.id FROM some a JOIN some b ON a.id = b.id WHERE a.r = b.r AND short('a')"""
    with eddyline.enable(tables, joins="always"):
        assert tables.sql(sql).count() == 30


def test_standing_and_watched_queries_are_read_as_they_are_written(
    tables: SparkSession, tmp_path: Path
) -> None:
    with eddyline.enable(tables):
        parts = list(eddyline.watch(tables.sql(WANTED), every=0.0))
        assert sum(len(part.rows) for part in parts) == tables.sql(WANTED).count()
        (tmp_path / "in").mkdir()
        stream = tables.readStream.schema("id long, k long, text string").json(str(tmp_path / "in"))
        with eddyline.StandingQueries(
            tables, streams={"given": stream}, state=str(tmp_path / "state")
        ) as queries:
            queries.add("SELECT id FROM given WHERE even(id) AND short(text)", name="some")


def test_threads(tables: SparkSession) -> None:
    wanted = tables.sql(WANTED).count()
    found: list[tuple[int, bool]] = []

    def ask() -> None:
        df = tables.sql(WANTED)
        found.append((df.count(), is_adapted(df)))

    with eddyline.enable(tables):
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [(wanted, True)] * 4


def test_a_stream(tables: SparkSession, tmp_path: Path) -> None:
    tables.range(50).write.parquet(str(tmp_path / "in"))
    with eddyline.enable(tables):
        rows = tables.readStream.schema("id long").parquet(str(tmp_path / "in"))
        stream = (
            rows.filter("even(id) AND odd(next(id))")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "state"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        stream.awaitTermination()
        plan = stream._jsq.explainInternal(True)  # noqa: FBT003 - Java has no names
    assert "eddy" in plan
    assert tables.read.parquet(str(tmp_path / "out")).count() == 25


@contextmanager
def simplified_tracebacks(spark: SparkSession) -> Iterator[None]:
    """Have tracebacks as users have them by default, but not where tests run."""
    spark.conf.set(SIMPLIFIED, "true")
    try:
        yield
    finally:
        spark.conf.unset(SIMPLIFIED)


def test_models_are_fitted_to_the_same_rows(tables: SparkSession) -> None:
    from pyspark.ml import Pipeline  # noqa: PLC0415 - takes a second
    from pyspark.ml.classification import LogisticRegression  # noqa: PLC0415
    from pyspark.ml.feature import StringIndexer, VectorAssembler  # noqa: PLC0415

    pipeline = Pipeline(
        stages=[
            StringIndexer(inputCol="shown", outputCol="kind"),
            VectorAssembler(inputCols=["id", "x", "kind"], outputCol="features"),
            LogisticRegression(maxIter=5, regParam=0.1),
        ]
    )

    def fitted() -> tuple[list[Any], list[float]]:
        rows = tables.sql(
            "SELECT id, x, shown(k) AS shown, double(even(k)) AS label FROM items "
            "WHERE (short(text) OR odd(id)) AND k IS NOT NULL"
        )
        model: Any = pipeline.fit(rows)
        told = model.transform(rows).select("id", "prediction", "features", "probability")
        answers = sorted(told.collect(), key=lambda row: row.id)
        numbers = [*model.stages[-1].coefficients, *(row.probability[0] for row in answers)]
        return [row[:3] for row in answers], numbers

    expected, numbers = fitted()
    assert len(expected) > 20
    with eddyline.enable(tables):
        assert is_adapted(tables.sql("SELECT id FROM items WHERE short(text) OR odd(id)"))
        same, close = fitted()
    assert same == expected
    assert close == pytest.approx(numbers)  # gradients are added up in the order of the tasks' ends


def test_errors_are_those_of_the_functions(tables: SparkSession) -> None:
    def fails(_: int) -> bool:
        raise LookupError("no such number")

    with simplified_tracebacks(tables), eddyline.enable(tables):
        df = tables.table("items").filter(F.udf(fails, "boolean")("id"))
        with pytest.raises(PythonException, match="LookupError: no such number") as enabled:
            df.collect()
    # Without a frame of ours: Spark leaves its own out, too.
    with simplified_tracebacks(tables), pytest.raises(PythonException) as plain:
        tables.table("items").filter(F.udf(fails, "boolean")("id")).collect()
    assert python_traceback(enabled.value) == python_traceback(plain.value)
    assert "/pyspark/" not in python_traceback(plain.value)


def python_traceback(error: PythonException) -> str:
    """Return what the worker said; PySpark 4.0 adds the stack of the JVM."""
    _, _, said = str(error).partition("Traceback (most recent call last):")
    return said.partition("\n\n")[0]


def test_a_vector_function_with_too_few_results_fails_as_without(tables: SparkSession) -> None:
    first = VECTORIZED.pandas_udf(lambda values: values.head(1), "long")
    df = tables.table("items").filter((first("id") >= 0) & F.udf(is_even, "boolean")("id"))
    for enabled in (False, True):
        with eddyline.enable(tables) if enabled else nullcontext():
            again = df.select("id")  # which has no plan yet
            # The latter in PySpark 4.0.
            with pytest.raises(
                PythonException, match=r"RESULT_ROWS_MISMATCH|SCHEMA_MISMATCH_FOR_PANDAS_UDF"
            ):
                again.collect()


def test_what_only_eddyline_can_call_is_called(tables: SparkSession) -> None:
    def half(number: int) -> float:
        return number / 2

    asked = eddyline.concurrent(half, returns="double", max_in_flight=2)
    rows = tables.range(10)
    with eddyline.enable(tables):
        assert rows.filter(asked("id") > 2).count() == 5
        assert rows.agg(F.sum(asked("id"))).collect() == [(22.5,)]
        interval = tables.sql("SELECT make_interval(1) AS i")
        with pytest.raises(FunctionPlaceError, match=r"half.*a type cannot be carried"):
            interval.where(asked("i") > 2).collect()


def test_tables_that_are_looked_up_are(tables: SparkSession) -> None:
    def towns(keys: list[int]) -> list[tuple[int, str]]:
        return [(key, f"town {key}") for key in keys]

    source = eddyline.PythonLookup(towns)
    eddyline.lookup_table(tables, "towns", "k long, town string", ["k"], source)
    sql = "SELECT id, town FROM items JOIN towns ON items.k = towns.k WHERE id < 9"
    with eddyline.enable(tables):
        assert set(tables.sql(sql).collect()) == {(n, f"town {n % 7}") for n in range(9) if n % 5}
        with pytest.raises(UnboundLookupError, match="towns"):
            tables.sql("SELECT * FROM towns").collect()


def test_where_nothing_can_be_compiled_it_is_said(
    tables: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: str) -> None:
        raise TypeError("'JavaPackage' object is not callable")

    monkeypatch.setattr("eddyline.catalyst.optimizer_rules.new_alone", fails)
    with pytest.raises(RuntimeError, match="Janino"):
        eddyline.enable(tables)


def test_wrong_choices_are_told_at_once(tables: SparkSession) -> None:
    with pytest.raises(ValueError, match="joins is one of"):
        eddyline.enable(tables, joins="some")
    for memory in ("much", 0, -1, 1023, "1 B"):
        with pytest.raises(ValueError, match="memory is a size"):
            eddyline.enable(tables, memory=memory)
    with eddyline.enable(tables, memory="200 MB"):
        assert is_adapted(tables.sql(WANTED))
    with pytest.raises(TypeError, match=r"A pyspark\.sql\.SparkSession is expected, not str"):
        eddyline.enable("spark")  # type: ignore[arg-type]
    assert not is_adapted(tables.sql(WANTED))


def test_plans_without_python_are_not_asked_about(
    tables: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(
        "eddyline.planner.enabling.adapted_plan", lambda *given: asked.append(given)
    )
    with eddyline.enable(tables):
        assert tables.table("items").filter("id > 3").count() == 56
        assert not asked
        assert tables.sql(WANTED).count() > 0
    assert asked


def test_a_query_that_cannot_be_adapted_runs(
    tables: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise AssertionError("of a test")

    wanted = tables.sql(WANTED).count()
    for part in (
        "planner.enabling.rewritten",
        "planner.enabling.fused_commands",
        "catalyst.optimizer_rules.maker",
    ):
        with monkeypatch.context() as patched, eddyline.enable(tables):
            patched.setattr(f"eddyline.{part}", fails)
            assert tables.sql(WANTED).count() == wanted
        assert caplog.text.count("could not be adapted") == 1  # though it was tried twice or more
        caplog.clear()


def test_an_interrupt_reaches_the_caller(
    tables: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with eddyline.enable(tables):
        with monkeypatch.context() as patched:
            patched.setattr("eddyline.planner.enabling.rewritten", interrupted)
            with pytest.raises(KeyboardInterrupt):
                tables.sql(WANTED).count()
        assert is_adapted(tables.sql(WANTED))


def test_mapped_in_pandas(tables: SparkSession) -> None:
    def same(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield from frames

    def ask() -> Counter[str]:
        mapped = tables.table("items").mapInPandas(same, "id long, k long, text string, x double")
        return bag(mapped.filter("even(id) AND short(text)").collect())

    wanted = ask()
    with eddyline.enable(tables):
        assert ask() == wanted


FEW_CALLS = {
    "SELECT id FROM few_rows WHERE is_even(n) AND is_small(id)": 8,
    "SELECT id FROM few_rows WHERE is_even(n) OR n = 3": 13,
    "SELECT next_one(id) FROM few_rows": 6,
    "SELECT CASE WHEN is_even(n) THEN next_one(id) END FROM few_rows": 7,
    "SELECT n, count(*) FROM few_rows WHERE is_even(id) GROUP BY n": 6,
    "SELECT a.id FROM few_rows a JOIN few_rows b ON a.id = next_one(b.n)": 14,
    """SELECT a.id FROM few_rows a JOIN few_rows b ON a.id = b.id
       WHERE is_even(a.n) AND is_small(b.n)""": 22,
    "SELECT id FROM few_rows WHERE id > 2": 0,
}
"""Calls into the JVM that a query is adapted with the second time, when its functions are known."""


def test_a_small_query_is_adapted_in_few_calls(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where a session knows concurrent functions or lookup tables, plans are asked about these.
    monkeypatch.setattr("eddyline.planner.adapt.any_declared", lambda: False)
    monkeypatch.setattr("eddyline.planner.passes.any_declared", lambda: False)
    monkeypatch.setattr("eddyline.planner.adapt.table_of_session", lambda _: None)
    spark.range(0, 6, 1, 1).selectExpr("id", "id AS n").createOrReplaceTempView("few_rows")
    spark.udf.register("is_even", F.udf(lambda number: number % 2 == 0, "boolean"))
    spark.udf.register("is_small", F.udf(lambda number: number < 9, "boolean"))
    spark.udf.register("next_one", F.udf(lambda number: number + 1, "long"))
    for text, most in FEW_CALLS.items():
        run = partial(lambda sql: spark.sql(sql).collect(), text)
        run()
        plain = counted_calls(monkeypatch, run)
        with eddyline.enable(spark):
            run()
            assert counted_calls(monkeypatch, run) - plain <= most, text
            assert counted_calls(monkeypatch, run) == plain, text  # what became of it is known
