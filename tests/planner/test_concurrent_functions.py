"""Slow functions: the rows of plain UDFs, each distinct arguments once a job, within limits."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, assert_type

import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.pandas import functions as pandas_functions
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType
from pyspark.sql.udf import UserDefinedFunction

import eddyline
from eddyline.declaring.concurrent_udf import ConcurrentUDF
from eddyline.errors import FunctionPlaceError
from eddyline.quirks import arrow_columns

pytestmark = pytest.mark.slow(45)

WIDTH = 6


class Watched:
    """A function that writes down its calls, and how many were under way at a time."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        self.answer = answer
        self.calls: Counter[Any] = Counter()
        self.starts: list[float] = []
        self.inside = self.most = 0
        self._lock = threading.Lock()

    def enter(self, *arguments: Any) -> None:  # noqa: ANN401 - any user's
        with self._lock:
            self.starts.append(time.monotonic())
            self.calls[repr(arguments)] += 1
            self.inside += 1
            self.most = max(self.most, self.inside)

    def leave(self) -> None:
        with self._lock:
            self.inside -= 1

    def later(self, *arguments: Any, **named: Any) -> Awaitable[Any]:  # noqa: ANN401
        async def called() -> Any:  # noqa: ANN401
            self.enter(*arguments, *named.items())
            await asyncio.sleep(0.002)
            self.leave()
            return self.answer(*arguments, **named)

        return called()

    def now(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        self.enter(*arguments, *named.items())
        time.sleep(0.002)
        self.leave()
        return self.answer(*arguments, **named)

    def batch(self, given: list[Any]) -> list[Any]:
        self.enter(*given)
        self.leave()
        return [self.answer(*(each if isinstance(each, tuple) else (each,))) for each in given]


def even(number: int | None) -> bool | None:
    return None if number is None else number % 2 == 0


def score(number: int | None) -> float | None:
    return None if number is None else number * 1.5


def label(text: str | None, number: int | None) -> str:
    return f"{text}-{number}"


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    """600 rows of 41 distinct numbers, NULL among them, in five partitions."""
    frame = spark.range(0, 600, 1, 5).select(
        "id",
        F.when(F.col("id") % 41 != 40, (F.col("id") % 41).cast("int")).alias("n"),
        F.concat(F.lit("t"), F.col("id") % 3).alias("t"),
    )
    cached = frame.cache()
    yield cached
    cached.unpersist()


PLAIN: dict[str, Any] = {
    "even": F.udf(even, BooleanType()),
    "score": F.udf(score, DoubleType()),
    "label": F.udf(label, StringType()),
    "cheap": F.udf(lambda number: number is None or number > 10, BooleanType()),
}
TYPES: dict[str, tuple[Callable[..., Any], str]] = {
    "even": (even, "boolean"),
    "score": (score, "double"),
    "label": (label, "string"),
}


class Concurrent:
    """Concurrent functions of these names, watched."""

    def __init__(self, kind: str) -> None:
        self.watched = {name: Watched(answer) for name, (answer, _) in TYPES.items()}
        batch = 4 if kind == "batch" else None
        self.functions: dict[str, Any] = {"cheap": PLAIN["cheap"]}
        for name, each in self.watched.items():
            function = getattr(each, kind)
            self.functions[name] = eddyline.concurrent(
                function, returns=TYPES[name][1], max_in_flight=WIDTH, batch=batch
            )

    def require_limits(self) -> None:
        for watched in self.watched.values():
            assert watched.most <= WIDTH


Query = Callable[[DataFrame, dict[str, Any]], DataFrame]

QUERIES: dict[str, Query] = {
    "filter": lambda df, f: df.where(f["even"]("n")),
    "value": lambda df, f: df.where(f["score"]("n") > 20),
    "and": lambda df, f: df.where(f["even"]("n") & (f["score"]("n") > 20) & f["cheap"]("n")),
    "or": lambda df, f: df.where(f["even"]("n") | f["cheap"]("n")),
    "nest": lambda df, f: df.where(
        (f["even"]("n") & (f["score"]("n") < 30))
        | ((f["label"]("t", "n") == "t1-7") & ~f["cheap"]("n"))
    ),
    "not": lambda df, f: df.where(~f["even"]("n") & (F.col("id") > 30)),
    "select": lambda df, f: df.select("id", f["score"]("n").alias("s")),
    "several": lambda df, f: df.select(
        f["score"]("n").alias("s"), f["label"]("t", "n").alias("l"), f["even"]("n").alias("e")
    ),
    "column": lambda df, f: df.withColumn("s", f["score"]("n") + 1).where("s > 10 AND id < 500"),
    "both": lambda df, f: df.where(f["score"]("n") > 20).select("id", f["score"]("n").alias("s")),
    "nobody": lambda df, f: df.where(f["score"]("n") > 1e9).select("id", f["score"]("n")),
    "named": lambda df, f: df.select("id", f["label"](number=F.col("n"), text=F.col("t"))),
    "inner": lambda df, f: df.where(f["even"](f["score"]("n").cast("int"))),
    "plain over it": lambda df, f: df.where(f["cheap"](f["score"]("n")) & (F.col("id") > 5)),
    "it over plain": lambda df, f: df.where(f["even"](f["cheap"]("n").cast("int"))),
    "native over it": lambda df, f: df.where(F.sqrt(f["score"]("n")) > 3).select("id"),
    "case": lambda df, f: df.select(
        "id", F.when(f["even"]("n"), f["label"]("t", "n")).otherwise("odd").alias("c")
    ),
    "aggregate over it": lambda df, f: df.groupBy("t").agg(F.sum(f["score"]("n")).alias("s")),
    "grouped by it": lambda df, f: df.groupBy(f["even"]("n").alias("e")).count(),
    "sorted by it": lambda df, f: df.orderBy(f["score"]("n"), "id").limit(50),
    "distinct": lambda df, f: df.select(f["even"]("n").alias("e")).distinct(),
    "guarded": lambda df, f: df.where(f["score"]("n") > 5).select(
        "id", f["even"]((F.lit(100) / F.col("n")).cast("int")).alias("e")
    ),
    "random": lambda df, f: df.where((f["score"]("n") > 10) & (F.rand(3) < 2)),
    "union": lambda df, f: df.where(f["even"]("n")).union(df.where(~f["even"]("n"))),
    "exists": lambda df, f: df.where(
        F.col("n").isin([3, 4])
        & (f["score"]("n") > df.sparkSession.range(4).agg(F.min("id")).scalar())
    ),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "later") for name in QUERIES),
        *(
            (name, kind)
            for name in ("and", "nest", "several", "inner")
            for kind in ("now", "batch")
        ),
    ],
)
def test_the_rows_are_those_of_plain_functions(frame: DataFrame, name: str, kind: str) -> None:
    query = QUERIES[name]
    concurrent = Concurrent(kind)
    found = eddyline.adapt(query(frame, concurrent.functions))
    assert Counter(found.collect()) == Counter(query(frame, PLAIN).collect())
    concurrent.require_limits()
    if kind != "batch":
        for watched in concurrent.watched.values():
            assert max(watched.calls.values(), default=1) == 1


def test_each_distinct_arguments_are_asked_for_once_a_job(frame: DataFrame) -> None:
    concurrent = Concurrent("later")
    even_, score_ = concurrent.functions["even"], concurrent.functions["score"]
    query = frame.where(even_("n")).select("id", score_("n"), even_("n"))
    adapted = eddyline.adapt(query)
    adapted.collect()
    numbers = {row.n for row in frame.collect()}
    assert set(concurrent.watched["even"].calls) == {repr((n,)) for n in numbers}
    assert set(concurrent.watched["score"].calls) == {repr((n,)) for n in numbers if even(n)}
    adapted.collect()  # another job
    assert set(concurrent.watched["even"].calls.values()) == {2}


def test_as_many_calls_are_made_as_may_be(frame: DataFrame) -> None:
    """The calls wait for each other, so that nothing comes of fewer at a time."""
    barrier = threading.Barrier(WIDTH)

    def together(number: int) -> bool:
        barrier.wait(timeout=30)
        return number % 2 == 0

    accepts = eddyline.concurrent(together, returns="boolean", max_in_flight=WIDTH)
    # Each task has a multiple of the width: else some would wait for one that has no core yet.
    rows = frame.sparkSession.range(0, 12 * WIDTH, 1, 3).where(accepts("id"))
    assert eddyline.adapt(rows).count() == 6 * WIDTH


def test_calls_begin_at_the_rate_that_is_allowed(spark: SparkSession) -> None:
    watched = Watched(even)
    accepts = eddyline.concurrent(watched.now, returns="boolean", rate=200.0)
    eddyline.adapt(spark.range(0, 60, 1, 3).where(accepts("id"))).collect()
    assert watched.starts[-1] - watched.starts[0] >= 59 / 200 * 0.9


def test_a_plan_without_adapt_says_what_to_do(frame: DataFrame) -> None:
    accepts = eddyline.concurrent(even, returns="boolean")
    with pytest.raises(Exception, match=r"NotAdaptedError: even is a concurrent function.*adapt"):
        frame.where(accepts("n")).collect()


def test_a_function_is_registered_for_sql(frame: DataFrame) -> None:
    watched = Watched(score)
    spark = frame.sparkSession
    spark.udf.register("scored", eddyline.concurrent(watched.later, returns="double"))
    frame.createOrReplaceTempView("frame_for_scores")
    query = "SELECT id, scored(n) AS s FROM frame_for_scores WHERE scored(n) > 20 AND id < 100"
    found = eddyline.adapt(spark.sql(query)).collect()
    expected = [
        (r.id, score(r.n)) for r in frame.collect() if (score(r.n) or 0) > 20 and r.id < 100
    ]
    assert Counter(tuple(row) for row in found) == Counter(expected)
    assert max(watched.calls.values()) == 1


def test_a_udf_brings_its_type(frame: DataFrame) -> None:
    made = eddyline.concurrent(PLAIN["score"], max_in_flight=3)
    found = eddyline.adapt(frame.select(made("n").alias("s")))
    assert found.schema["s"].dataType == DoubleType()
    assert Counter(found.collect()) == Counter(frame.select(PLAIN["score"]("n")).collect())


def test_a_decorator(spark: SparkSession) -> None:
    @eddyline.concurrent(returns="int", max_in_flight=2)
    async def squared(number: int) -> int:
        """Multiply a number by itself."""
        return number * number

    assert squared.__doc__ == "Multiply a number by itself."
    found = eddyline.adapt(spark.range(4).select(squared(F.col("id")).alias("s"))).collect()
    assert [row.s for row in found] == [0, 1, 4, 9]


def test_a_decorator_needs_no_options_and_its_types_are_known(spark: SparkSession) -> None:
    def plain(number: int) -> int:
        return number * number

    @eddyline.concurrent
    @F.udf("int")
    def squared(number: int) -> int:
        return plain(number)

    assert_type(squared, ConcurrentUDF)
    again = assert_type(eddyline.concurrent(function=plain, returns="int"), ConcurrentUDF)
    later = assert_type(
        eddyline.concurrent(None, returns="int", max_in_flight=2),
        Callable[[Callable[..., Any]], ConcurrentUDF],
    )
    for function in (squared, again, later(plain)):
        found = eddyline.adapt(spark.range(3).select(function(F.col("id")).alias("s"))).collect()
        assert [row.s for row in found] == [0, 1, 4]
    with pytest.raises(TypeError, match="nonsense"):
        eddyline.concurrent(plain, nonsense=1)  # type: ignore[call-overload]  # no option


EVERY_TYPE = """SELECT CAST(id AS tinyint) a, CAST(id AS decimal(9, 3)) b, CAST(id AS float) c,
    timestamp_seconds(id * 86400) d, date_add(date'2024-01-01', CAST(id AS int)) e,
    array(id, NULL) f, map(CAST(id AS string), id) g, named_struct('x', id, 'y', 'z') h,
    CAST(CAST(id AS string) AS binary) i, id % 2 = 0 j,
    timestamp_ntz'2024-03-01 10:00:00' + make_dt_interval(CAST(id AS int)) k,
    IF(id = 1, NULL, -0.0D) l FROM range(3)"""


def test_values_of_every_type_are_those_that_plain_functions_see(spark: SparkSession) -> None:
    frame = spark.sql(EVERY_TYPE)

    def shown(*values: Any) -> str:  # noqa: ANN401 - of any type
        return repr(values)

    plain = frame.select(F.udf(shown, StringType())(*frame.columns).alias("s"))
    concurrent = frame.select(eddyline.concurrent(shown, returns="string")(*frame.columns))
    assert [r[0] for r in eddyline.adapt(concurrent).collect()] == [r[0] for r in plain.collect()]


@pytest.mark.parametrize("column", list("abcdefghijkl"))
def test_values_of_every_type_come_back(spark: SparkSession, column: str) -> None:
    frame = spark.sql(EVERY_TYPE)
    kind = frame.schema[column].dataType
    same = eddyline.concurrent(lambda value: value, returns=kind)
    found = eddyline.adapt(frame.select(same(column)))
    assert [row[0] for row in found.collect()] == [row[0] for row in frame.select(column).collect()]


# -- joins -------------------------------------------------------------------------------

JOINS: dict[str, Query] = {
    "one side": lambda df, f: (
        df.alias("a")
        .join(_other(df).alias("b"), "n")
        .where(f["even"]("b.k") & (F.col("a.id") > 10))
    ),
    "both sides": lambda df, f: (
        df.alias("a").join(_other(df).alias("b"), "n").where(f["even"]("b.k") & f["even"]("a.id"))
    ),
    "over both": lambda df, f: (
        df.alias("a")
        .join(_other(df).alias("b"), "n")
        .where(f["score"](F.col("a.id") - F.col("b.k")) > 5)
    ),
    "in the condition": lambda df, f: df.alias("a").join(
        _other(df).alias("b"), (F.col("a.n") == F.col("b.n")) & f["even"]("b.k")
    ),
    "key": lambda df, f: df.alias("a").join(
        _other(df).alias("b"), f["score"]("a.n") == F.col("b.k") * 1.5
    ),
    "with others": lambda df, f: (
        df.alias("a")
        .join(_other(df).alias("b"), "n")
        .where(f["even"]("b.k") & f["cheap"]("a.n") & f["cheap"]("b.k"))
    ),
    "outer": lambda df, f: df.alias("a").join(
        _other(df).where(f["even"]("k")).alias("b"), "n", "left"
    ),
    "above outer": lambda df, f: (
        df.alias("a").join(_other(df).alias("b"), "n", "left").select("id", f["score"]("k"))
    ),
    "semi": lambda df, f: df.join(_other(df).where(f["even"]("k")), "n", "semi"),
}


def _other(df: DataFrame) -> DataFrame:
    return df.sparkSession.range(30).select(
        F.col("id").cast("int").alias("n"), (F.col("id") % 7).cast("int").alias("k")
    )


@pytest.mark.parametrize("joins", ["auto", "always", "never"])
@pytest.mark.parametrize("name", JOINS)
def test_joins(frame: DataFrame, name: str, joins: str) -> None:
    concurrent = Concurrent("later")
    found = eddyline.adapt(JOINS[name](frame, concurrent.functions), joins=joins)
    assert Counter(found.collect()) == Counter(JOINS[name](frame, PLAIN).collect())
    for watched in concurrent.watched.values():
        assert max(watched.calls.values(), default=1) == 1


# -- errors ------------------------------------------------------------------------------


def failing(number: int | None) -> bool:
    if number is not None and number > 30:
        raise KeyError(f"no {number}")
    return True


def test_an_error_counts_only_where_everything_else_accepts_the_row(frame: DataFrame) -> None:
    fails = eddyline.concurrent(failing, returns="boolean")
    small = F.udf(lambda number: number is not None and number < 20, BooleanType())
    guarded = eddyline.adapt(frame.where(fails("n") & small("n")))
    assert guarded.count() == frame.where("n < 20").count()
    with pytest.raises(Exception, match=r"failing\(3\d\) raised KeyError: 'no 3\d'"):
        eddyline.adapt(frame.where(fails("n") & small(F.col("n") - 20))).collect()


def test_an_error_in_a_select_list_counts(frame: DataFrame) -> None:
    fails = eddyline.concurrent(failing, returns="boolean")
    assert eddyline.adapt(frame.where("n < 20").select(fails("n"))).count()
    with pytest.raises(Exception, match=r"failing\(3\d\) raised KeyError"):
        eddyline.adapt(frame.select(fails("n"))).collect()


class Unspeakable(Exception):  # noqa: N818 - it cannot say anything
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "text"), [(Unspeakable(), "Unspeakable"), (ValueError("half \ud800"), "ValueError")]
)
def test_an_error_that_cannot_be_shown_still_names_the_call(
    frame: DataFrame, error: Exception, text: str
) -> None:
    def fails(_: int) -> int:
        raise error

    fails_too = eddyline.concurrent(fails, returns="int")
    with pytest.raises(Exception, match=rf"fails\(3\) raised {text}"):
        eddyline.adapt(frame.where("n = 3").select(fails_too("n"))).collect()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("map<string,int>", [{"a": 1}, None]),
        ("array<map<string,int>>", [[None], None, [{"a": 1}, None]]),
        ("map<string,map<string,int>>", [{"a": None}, {"a": {"b": 1}}]),
    ],
)
def test_maps_may_be_null(spark: SparkSession, kind: str, values: list[object]) -> None:
    def value(number: int) -> object:
        return values[number]

    numbers = spark.range(len(values))
    found = eddyline.adapt(numbers.select(eddyline.concurrent(value, returns=kind)("id")))
    assert [row[0] for row in found.collect()] == values


@pytest.mark.parametrize("table", ["range", "cached"])
def test_subqueries_beside_functions(spark: SparkSession, table: str) -> None:
    """Their plans have no session in Spark's tasks, where those compare arguments."""
    cached = spark.range(6).cache()
    numbers = spark.range(6) if table == "range" else cached
    numbers.createOrReplaceTempView("numbers")
    half = eddyline.concurrent(lambda number: number / 2, returns="double")
    spark.udf.register("half", half)
    spark.udf.register("small", F.udf(lambda number: number < 5, BooleanType()))
    spark.udf.register("twice", F.udf(lambda number: number * 2, "long"))
    for sql, found in (
        ("SELECT id FROM numbers WHERE half(id) > (SELECT avg(id) FROM numbers) - 1", [4, 5]),
        (
            "SELECT id FROM numbers WHERE twice(id) > (SELECT avg(id) FROM numbers) AND small(id)",
            [2, 3, 4],
        ),
    ):
        assert sorted(row.id for row in eddyline.adapt(spark.sql(sql)).collect()) == found
    cached.unpersist()


def test_a_value_of_another_type_is_an_error(frame: DataFrame) -> None:
    wrong = eddyline.concurrent(lambda _: "text", returns="double")
    with pytest.raises(Exception, match=r"returned str, which is no double"):
        eddyline.adapt(frame.select(wrong("n"))).collect()


def test_a_call_that_takes_too_long_is_an_error(spark: SparkSession) -> None:
    async def waits(_: int) -> bool:
        await asyncio.sleep(30)
        return True

    slow = eddyline.concurrent(waits, returns="boolean", timeout=0.05, retries=1)
    with pytest.raises(Exception, match=r"waits\(0\) no answer in 0.05 s, tried 2 times"):
        eddyline.adapt(spark.range(1).where(slow("id"))).collect()


# -- what cannot be ----------------------------------------------------------------------


def test_a_stream_is_refused(spark: SparkSession) -> None:
    accepts = eddyline.concurrent(even, returns="boolean")
    stream = spark.readStream.format("rate").load().where(accepts("value"))
    with pytest.raises(FunctionPlaceError, match=r"even is a concurrent function.*foreachBatch"):
        eddyline.adapt(stream)


def test_a_free_predicate_that_is_written_after_a_concurrent_one_need_not_wait(
    spark: SparkSession,
) -> None:
    calls: list[int] = []

    def paid(number: int) -> float:
        calls.append(number)
        return float(number)

    accepts = eddyline.concurrent(paid, returns="double", cost=1.0, unit="USD")
    free = F.udf(lambda number: number % 2 == 0, BooleanType())
    rows = spark.range(4_000, numPartitions=1).where((accepts("id") >= 100) & free("id"))
    assert eddyline.adapt(rows).count() == 1_950
    assert len(calls) <= 2_200  # of 4,000, in the written order


def test_rows_without_a_value_go_another_way(spark: SparkSession) -> None:
    def inverse(number: int) -> float:
        return 1 / number

    kept = eddyline.concurrent(inverse, returns="double", on_error="keep")
    rows = eddyline.adapt(spark.range(3).select("id", kept("id").alias("v")))
    good = rows.filter("v.error IS NULL").select("id", "v.value").collect()
    assert sorted((row.id, row.value) for row in good) == [(1, 1.0), (2, 0.5)]
    bad = rows.filter("v.error IS NOT NULL").select("id", "v.error").collect()
    assert [(row.id, row.error) for row in bad] == [
        (0, "inverse(0) raised ZeroDivisionError: division by zero")
    ]
    null = eddyline.concurrent(inverse, returns="double", on_error="null")
    values = eddyline.adapt(spark.range(3).select(null("id").alias("v"))).collect()
    assert sorted((row.v for row in values), key=str) == [0.5, 1.0, None]
    assert eddyline.adapt(spark.range(3).where(null("id") > 0)).count() == 2


@pytest.mark.parametrize("returns", ["a bigint, b string", "struct<a: bigint, b: string>"])
def test_values_of_several_fields_are_kept_beside_errors(spark: SparkSession, returns: str) -> None:
    def both(number: int) -> tuple[int, str]:
        if number == 1:
            raise ValueError("no")
        return number, str(number)

    kept = eddyline.concurrent(both, returns=returns, on_error="keep")
    rows = eddyline.adapt(spark.range(2).select(kept("id").alias("v"))).collect()
    assert {(row.v.value, row.v.error) for row in rows} == {
        (Row(a=0, b="0"), None),
        (None, "both(1) raised ValueError: no"),
    }


def test_what_cannot_travel_is_refused_when_planned(spark: SparkSession) -> None:
    accepts = eddyline.concurrent(even, returns="boolean")
    frame = spark.sql("SELECT make_interval(1) AS i")
    with pytest.raises(FunctionPlaceError, match=r"even.*a type cannot be carried"):
        eddyline.adapt(frame.where(accepts("i")))


def test_an_order_that_is_pinned_is_kept(frame: DataFrame) -> None:
    concurrent = Concurrent("later")
    functions = concurrent.functions
    query = frame.where(functions["even"]("n") & (functions["score"]("n") > 20))
    found = eddyline.adapt(query, pin_order=True)
    assert Counter(found.collect()) == Counter(QUERIES["and"](frame, PLAIN).collect())
    numbers = {row.n for row in frame.collect()}
    assert set(concurrent.watched["even"].calls) == {repr((n,)) for n in numbers}
    assert set(concurrent.watched["score"].calls) == {repr((n,)) for n in numbers if even(n)}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: eddyline.concurrent(5, returns="int"), TypeError, "a function is expected"),  # type: ignore[call-overload]
        (lambda: eddyline.concurrent(even), TypeError, "returns= says the type"),
        (
            lambda: eddyline.concurrent(PLAIN["even"].asNondeterministic()),
            ValueError,
            "not deterministic",
        ),
        (
            lambda: eddyline.concurrent(UserDefinedFunction(len, LongType(), evalType=200)),
            TypeError,
            "a plain udf is expected",
        ),
        (
            lambda: eddyline.concurrent(eddyline.concurrent(even, returns="boolean")),
            TypeError,
            "concurrent already",
        ),
        (
            lambda: eddyline.concurrent(even, returns="boolean").asNondeterministic(),
            ValueError,
            "must be deterministic",
        ),
        (eddyline.concurrent(even, returns="boolean"), TypeError, "needs an argument"),
        (lambda: eddyline.concurrent(even, returns="int", batch=0), ValueError, "from 1 on"),
        (
            lambda: eddyline.concurrent(even, returns="int", max_in_flight=0),
            ValueError,
            "max_in_flight is a whole number from 1 on",
        ),
        (lambda: eddyline.concurrent(even, returns="int", rate=0), ValueError, "rate is"),
        (lambda: eddyline.concurrent(even, returns="int", retries=-1), ValueError, "retries is"),
        (lambda: eddyline.concurrent(even, returns="int", cost=1), ValueError, "a cost has a unit"),
        (
            lambda: eddyline.concurrent(even, returns="int", budget=1),
            ValueError,
            "needs a cost",
        ),
    ],
)
def test_what_is_no_concurrent_function(
    spark: SparkSession,  # noqa: ARG001 - Spark's own functions need a session
    make: Callable[[], object],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        make()


# -- money -------------------------------------------------------------------------------


def test_the_report_adds_up_calls_and_money(frame: DataFrame) -> None:
    paid = eddyline.concurrent(even, returns="boolean", cost=0.002, unit="USD", budget=1)
    tokens = eddyline.concurrent(label, returns="string", cost=lambda t, _: len(t), unit="tokens")
    adapted = eddyline.adapt(frame.where(paid("n")).select(tokens("t", "n").alias("l")))
    assert "even is called where the driver is" in str(eddyline.explain(adapted))
    assert "0.002 USD a call, up to 1 USD a job" in str(eddyline.explain(adapted))
    rows = frame.collect()
    values = {"even": {r.n for r in rows}, "label": {(r.t, r.n) for r in rows if even(r.n)}}
    for actions in (1, 2):
        adapted.collect()
        report = eddyline.report(adapted)
        by_name = {each.name: each for each in report.called}
        for name, distinct in values.items():
            assert by_name[name].values == by_name[name].calls == actions * len(distinct)
        assert by_name["even"].spent == pytest.approx(actions * 0.002 * len(values["even"]))
        assert by_name["label"].spent == actions * 2 * len(values["label"])
        assert by_name["label"].unit == "tokens"
        for text in (str(report), report._repr_html_()):
            assert by_name["even"].money in text
            assert f"{by_name['even'].money}, {by_name['label'].money}" in text
        assert report.to_dict()["called"][0]["spent"] in {each.spent for each in report.called}


def test_the_report_has_the_calls_of_the_driver(spark: SparkSession) -> None:
    """One number: in the comparison, in the blocks, and in the table of what the driver called."""
    watched = Watched(even)
    remote = eddyline.concurrent(watched.now, returns="boolean")
    frame = spark.range(0, 36, 1, 3).selectExpr("id", "id % 12 AS n")
    adapted = eddyline.adapt(frame.where(remote("n")).union(frame.where(~remote("n"))))
    for actions in (1, 2):
        assert adapted.count() == 36
        assert sum(watched.calls.values()) == 12 * actions
        report = eddyline.report(adapted)
        records = [block.record for block in report.blocks if block.record is not None]
        functions = [function for record in records for function in record.functions]
        assert sum(each.calls for each in functions) == 12
        assert sum(each.calls + each.shared for each in functions) == 72
        assert report.to_dict()["compared"]["calls"] == 12
        assert report.to_dict()["compared"]["plain_calls"] == 72
        assert "12 calls instead of 72" in str(report)
        assert "rows shared the call of another row" in " ".join(str(report).split())
        assert ">Shared<" in report._repr_html_()
        (called,) = report.called
        assert called.calls == called.values == 12 * actions
        every = eddyline.report(adapted, all=True)
        assert every.to_dict()["compared"]["calls"] == 12 * actions


def test_a_budget_ends_the_job(frame: DataFrame) -> None:
    watched = Watched(even)
    paid = eddyline.concurrent(watched.now, returns="boolean", cost=0.25, unit="USD", budget=2.5)
    adapted = eddyline.adapt(frame.where(paid("n")))
    message = r"BudgetSpentError: now has spent 2.5 of its budget of 2.5 USD.*costs 0.25 USD"
    with pytest.raises(Exception, match=message):
        adapted.collect()
    assert sum(watched.calls.values()) == 10
    assert eddyline.report(adapted).called[0].spent == 2.5
    with pytest.raises(Exception, match="BudgetSpentError"):
        adapted.collect()  # each job has the whole budget
    assert sum(watched.calls.values()) == 20


def test_a_budget_ends_the_job_though_another_predicate_would_reject_the_row(
    frame: DataFrame,
) -> None:
    paid = eddyline.concurrent(even, returns="boolean", cost=1, unit="USD", budget=3)
    nobody = F.udf(lambda _: False, BooleanType())
    with pytest.raises(Exception, match="BudgetSpentError"):
        eddyline.adapt(frame.where(paid("id") & nobody("id")), policy="static").collect()


def test_routing_heeds_money_as_much_as_it_is_worth(spark: SparkSession) -> None:
    """One predicate is quick and costs money, the other slow and free; each rejects most rows."""
    rows = spark.range(0, 1500, 1, 1)

    def paid_calls(worth: dict[str, float] | None) -> tuple[int, int]:
        quick = Watched(lambda number: number % 4 == 0)
        slow = Watched(lambda number: number % 4 == 1)

        async def at_once(number: int) -> bool:
            quick.enter(number)
            quick.leave()
            return bool(quick.answer(number))

        async def much_later(number: int) -> bool:  # ten times what a call takes besides
            await asyncio.sleep(0.02)
            return bool(await slow.later(number))

        paid = eddyline.concurrent(at_once, returns="boolean", cost=0.01, unit="USD")
        free = eddyline.concurrent(much_later, returns="boolean")
        adapted = eddyline.adapt(rows.where(paid("id") & free("id")), worth=worth)
        assert adapted.count() == 0
        return sum(quick.calls.values()), sum(slow.calls.values())

    most, half = 1200, 750
    paid, free = paid_calls(None)
    assert (paid > most, free < half) == (True, True)
    paid, free = paid_calls({"USD": 60.0})
    assert (free > most, paid < half) == (True, True)


@pytest.mark.parametrize(
    "worth", [5, {"USD": -1}, {"USD": float("nan")}, {"USD": "much"}, {"USD": None}]
)
def test_what_money_is_not_worth(frame: DataFrame, worth: Any) -> None:  # noqa: ANN401
    with pytest.raises((TypeError, ValueError), match="worth"):
        eddyline.adapt(frame, worth=worth)


def test_functions_of_the_same_kind_over_concurrent_ones(spark: SparkSession) -> None:
    """Spark would run them in one go, in a process that cannot make the calls."""
    asked: list[int] = []

    def doubled(number: int) -> int:
        asked.append(number)
        return 2 * number

    twice = eddyline.concurrent(doubled, returns="bigint")
    more = eddyline.concurrent(lambda number: number + 100, returns="bigint")
    vector: Any = pandas_functions.arrow_udf if arrow_columns.KNOWN else pandas_functions.pandas_udf
    if arrow_columns.KNOWN:
        plus = vector(lambda numbers: pc.add(numbers, 1), "bigint")
        odd = vector(lambda numbers: pc.equal(pc.bit_wise_and(numbers, 1), 1), "boolean")
    else:
        plus = vector(lambda numbers: numbers + 1, "bigint")
        odd = vector(lambda numbers: numbers % 2 == 1, "boolean")
    rows = spark.range(6)
    adapted = eddyline.adapt(rows.where(odd(plus(twice("id")))).select(plus(twice("id")), "id"))
    assert [tuple(row) for row in adapted.orderBy("id").collect()] == [
        (2 * number + 1, number) for number in range(6)
    ]
    assert sorted(asked) == list(range(6))
    nested = eddyline.adapt(rows.select(plus(twice(more(plus("id")))).alias("n"), twice("id")))
    assert [tuple(row) for row in nested.orderBy("n").collect()] == [
        (2 * (number + 101) + 1, 2 * number) for number in range(6)
    ]
