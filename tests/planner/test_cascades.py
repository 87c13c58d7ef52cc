"""Cascades: what the proxy decides, whom the oracle is asked about, and that targets hold."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.pandas import functions as pandas_functions
from pyspark.sql.types import BooleanType, DoubleType

import eddyline
from eddyline.errors import FunctionForgottenError, FunctionPlaceError
from eddyline.planner.declare.cascade import CascadeUDF
from eddyline.planner.declare.declared_cascades import CASCADES

pytestmark = pytest.mark.slow(90)

ROWS = 3_000

vectors: Any = pandas_functions.pandas_udf


class Asked:
    """An oracle that accepts every fifth number, and counts whom it is asked about."""

    def __init__(self, answer: Callable[[int], bool | None] = lambda n: n % 5 == 0) -> None:
        self.answer = answer
        self.calls: Counter[int] = Counter()
        self._lock = threading.Lock()

    def __call__(self, number: int) -> bool | None:
        with self._lock:
            self.calls[number] += 1
        return self.answer(number)

    def taken(self) -> int:
        """How many calls there were, which are forgotten."""
        count, self.calls = self.calls.total(), Counter()
        return count


def scored(number: int) -> float:
    """A good score: accepted numbers have 1 or more, some of the others, too."""
    return (1.0 if number % 5 == 0 else 0.0) + (number * 7919 % 101) / 80


def even(number: int) -> bool:
    return number % 2 == 0


def cascade_of(asked: Callable[..., Any], **options: Any) -> CascadeUDF:  # noqa: ANN401
    chosen: dict[str, Any] = {"proxy": scored, "recall": 0.9, "seed": 1} | options
    oracle = eddyline.concurrent(asked, returns="boolean", max_in_flight=32)
    return eddyline.cascade(oracle, **chosen)


@pytest.fixture(scope="module")
def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 3).withColumnRenamed("id", "n")


def recall(rows: set[int]) -> float:
    assert all(number % 5 == 0 for number in rows)
    return len(rows) / (ROWS // 5)


def collected(df: DataFrame) -> set[int]:
    return {row.n for row in df.collect()}


def test_a_filter_keeps_the_recall_and_asks_each_number_once(numbers: DataFrame) -> None:
    asked = Asked()
    fast = eddyline.adapt(numbers.filter(cascade_of(asked)("n")))
    labels = asked.calls.total()
    assert recall(collected(fast)) >= 0.9
    assert 0 < labels < asked.calls.total() < 0.6 * ROWS
    assert set(asked.calls.values()) == {1}, "labels are not asked for again"


def test_thresholds_stand_for_the_adapted_frame(numbers: DataFrame) -> None:
    asked = Asked()
    fast = eddyline.adapt(numbers.filter(cascade_of(asked)("n")))
    labels = asked.taken()
    first, one = collected(fast), asked.taken()
    second, other = collected(fast), asked.taken()
    assert first == second
    assert one == other < ROWS / 2
    (found,) = eddyline.explain(fast).cascades
    assert (found.labels, found.rows) == (labels, ROWS)
    assert str(found) in str(eddyline.explain(fast))


@pytest.mark.parametrize("written", ["before", "after"])
def test_rows_that_others_drop_are_not_asked_about(numbers: DataFrame, written: str) -> None:
    asked, other = Asked(), F.udf(even, BooleanType())
    cascade = cascade_of(asked)
    both = cascade("n") & other("n") if written == "before" else other("n") & cascade("n")
    fast = eddyline.adapt(numbers.filter(both))
    asked.taken()
    rows = collected(fast)
    assert asked.calls
    assert all(number % 2 == 0 for number in {*asked.calls, *rows})
    assert len(rows) >= 0.9 * ROWS / 10
    (found,) = eddyline.explain(fast).cascades
    # The promise is about the rows that the other predicate accepts, wherever it is written.
    assert 0.9 * ROWS / 2 <= found.rows <= 1.1 * ROWS / 2


def test_the_promise_is_about_the_answer(numbers: DataFrame) -> None:
    """A predicate that keeps rows of low scores does not find them lost."""
    low = F.udf(lambda n: scored(n) < 1.3, BooleanType())
    asked = Asked()
    fast = eddyline.adapt(numbers.filter(cascade_of(asked)("n") & low("n")))
    wanted = {number for number in range(0, ROWS, 5) if scored(number) < 1.3}
    assert len(collected(fast)) >= 0.9 * len(wanted)
    (found,) = eddyline.explain(fast).cascades
    assert found.rows < 0.9 * ROWS


def test_a_costly_predicate_is_not_asked_for_drawn_rows(numbers: DataFrame) -> None:
    asked, other = Asked(), Asked(even)
    costly = eddyline.concurrent(other, returns="boolean")
    fast = eddyline.adapt(numbers.filter(cascade_of(asked)("n") & costly("n")))
    assert not other.calls
    asked.taken()
    assert all(number % 10 == 0 for number in collected(fast))
    assert set(other.calls.values()) == {1}


def test_two_cascades_in_a_filter(numbers: DataFrame) -> None:
    fifth, second = Asked(), Asked(even)
    both = cascade_of(fifth)("n") & cascade_of(second, proxy=lambda n: float(n % 2 == 0))("n")
    rows = collected(eddyline.adapt(numbers.filter(both)))
    assert rows <= set(range(0, ROWS, 10))
    assert len(rows) >= 0.8 * ROWS / 10
    assert fifth.calls.total() + second.calls.total() < ROWS


def test_precision_lets_the_proxy_accept(numbers: DataFrame) -> None:
    asked = Asked()
    fast = eddyline.adapt(numbers.filter(cascade_of(asked, precision=0.8, recall=0.8)("n")))
    labels = asked.calls.total()
    rows = collected(fast)
    right = {number for number in rows if number % 5 == 0}
    assert len(right) >= 0.8 * ROWS / 5
    assert len(right) >= 0.8 * len(rows)
    assert asked.calls.total() - labels < 0.3 * ROWS


PROXIES: dict[str, Callable[[], Any]] = {
    "function": lambda: scored,
    "udf": lambda: F.udf(scored, DoubleType()),
    "vectors": lambda: vectors(lambda n: n.map(scored), DoubleType()),
    "concurrent": lambda: eddyline.concurrent(scored, returns="double", batch=None),
}


@pytest.mark.parametrize("kind", PROXIES)
def test_proxies_of_any_kind(numbers: DataFrame, kind: str) -> None:
    asked = Asked()
    fast = eddyline.adapt(numbers.filter(cascade_of(asked, proxy=PROXIES[kind]())("n")))
    assert recall(collected(fast)) >= 0.9
    assert asked.calls.total() < 0.6 * ROWS
    assert set(asked.calls.values()) == {1}


def test_a_useless_proxy_decides_nothing_that_matters(numbers: DataFrame) -> None:
    asked = Asked()
    cascade = cascade_of(asked, proxy=lambda n: None if n % 3 else float("nan"))
    assert recall(collected(eddyline.adapt(numbers.filter(cascade("n"))))) == 1
    assert asked.calls == Counter(range(ROWS))


def test_few_rows_are_all_asked_about(spark: SparkSession) -> None:
    asked = Asked()
    fast = eddyline.adapt(spark.range(40).filter(cascade_of(asked)("id")))
    assert not asked.calls
    assert {row.id for row in fast.collect()} == set(range(0, 40, 5))
    assert "too few" in str(eddyline.explain(fast))


PLACES: dict[str, Callable[[DataFrame, CascadeUDF], DataFrame]] = {
    "select": lambda df, is_fifth: df.select("n", is_fifth("n").alias("kept")).where("kept"),
    "or": lambda df, is_fifth: df.where(is_fifth("n") | (F.col("n") < 0)),
    "not": lambda df, is_fifth: df.where(~is_fifth("n")).selectExpr("n"),
    "case": lambda df, is_fifth: df.where(F.when(F.col("n") >= 0, is_fifth("n"))),
    "function": lambda df, is_fifth: df.where(
        F.udf(lambda kept: kept, BooleanType())(is_fifth("n"))
    ),
    "arrow": lambda df, is_fifth: df.where(
        vectors(lambda kept: kept, BooleanType())(is_fifth("n"))
    ),
    "argument": lambda df, is_fifth: df.where(is_fifth(vectors(lambda n: n + 0, "bigint")("n"))),
    "aggregate": lambda df, is_fifth: (
        df.groupBy("n").agg(F.max(is_fifth("n").cast("int")).alias("kept")).where("kept = 1")
    ),
    "join": lambda df, is_fifth: df.join(df.selectExpr("n AS m"), F.col("n") == F.col("m")).where(
        is_fifth("n") & F.udf(lambda m: m >= 0, BooleanType())("m")
    ),
    "twice": lambda df, is_fifth: df.where(is_fifth("n")).select("n", is_fifth("n")),
    "union": lambda df, is_fifth: df.where((F.col("n") < 0) & is_fifth("n")).union(
        df.where(is_fifth("n"))
    ),
    "top": lambda df, is_fifth: df.where(is_fifth("n")).orderBy("n"),
}


@pytest.mark.parametrize("place", PLACES)
def test_it_stands_anywhere(numbers: DataFrame, place: str) -> None:
    asked = Asked()
    query = PLACES[place](numbers, cascade_of(asked))
    fast = eddyline.adapt(query)
    rows = collected(fast)
    assert fast.columns == query.columns
    if place == "not":
        rows = set(range(ROWS)) - rows
    assert recall(rows) >= (0.8 if place == "twice" else 0.9)
    assert asked.calls.total() < ROWS


def test_no_answer_is_no_acceptance(numbers: DataFrame) -> None:
    asked = Asked(lambda n: None if n % 10 == 0 else n % 5 == 0)
    rows = collected(eddyline.adapt(numbers.filter(cascade_of(asked)("n"))))
    assert all(number % 10 == 5 for number in rows)
    assert len(rows) >= 0.9 * ROWS / 10


def test_sql_knows_it_by_name(spark: SparkSession, numbers: DataFrame) -> None:
    asked = Asked()
    spark.udf.register("is_fifth", cascade_of(asked))
    numbers.createOrReplaceTempView("numbers")
    rows = collected(eddyline.adapt(spark.sql("SELECT n FROM numbers WHERE is_fifth(n)")))
    assert recall(rows) >= 0.9
    assert asked.calls.total() < 0.6 * ROWS


def test_each_call_has_thresholds_of_its_own(spark: SparkSession, numbers: DataFrame) -> None:
    asked = Asked()
    spark.udf.register("is_fifth", cascade_of(asked))
    numbers.createOrReplaceTempView("numbers")
    both = "SELECT n FROM numbers WHERE is_fifth(n) UNION ALL SELECT n FROM numbers WHERE "
    fast = eddyline.adapt(spark.sql(both + "n < 1000 AND is_fifth(n + 1)"))
    one, other = eddyline.explain(fast).cascades
    assert (one.rows, other.rows) == (ROWS, 1_000)
    assert one.thresholds != other.thresholds


def test_a_filter_on_both_sides_of_a_join_loses_no_row_twice(numbers: DataFrame) -> None:
    asked = Asked()
    counted = numbers.groupBy("n").count()
    fast = eddyline.adapt(numbers.join(counted, "n").filter(cascade_of(asked)("n")))
    assert recall(collected(fast)) >= 0.9
    found = eddyline.explain(fast).cascades
    assert len({each.thresholds for each in found}) == 1


def test_arguments_may_be_named(numbers: DataFrame) -> None:
    def fits(number: int, *, least: int) -> bool:
        return number % 5 == 0 and number >= least

    def likely(number: int, *, least: int) -> float:
        return scored(number) if number >= least else 0.0

    cascade = cascade_of(fits, proxy=likely)
    fast = eddyline.adapt(numbers.filter(cascade("n", least=F.lit(1_000))))
    rows = collected(fast)
    assert len(rows) >= 0.9 * 400
    assert min(rows) >= 1_000


def test_labels_are_kept_and_not_asked_for_again(numbers: DataFrame, tmp_path: Path) -> None:
    asked = Asked()
    oracle = eddyline.concurrent(asked, returns="boolean", keep=tmp_path, version="1")
    cascade = eddyline.cascade(oracle, proxy=scored, recall=0.9, seed=4)
    first = collected(eddyline.adapt(numbers.filter(cascade("n"))))
    assert asked.taken() > 0
    assert collected(eddyline.adapt(numbers.filter(cascade("n")))) == first
    assert not asked.calls


def test_other_rows_are_drawn_without_a_seed(numbers: DataFrame) -> None:
    asked = Asked()
    drawn = []
    for seed in (None, None, 3, 3):
        eddyline.adapt(numbers.filter(cascade_of(asked, seed=seed)("n")))
        drawn.append(frozenset(asked.calls))
        asked.taken()
    assert drawn[0] != drawn[1]
    assert drawn[2] == drawn[3]


def test_a_proxy_that_raises_is_heard(numbers: DataFrame) -> None:
    def fails(number: int) -> float:
        if number % 100 == 7:
            raise RuntimeError("no score for seven")
        return scored(number)

    fast = eddyline.adapt(numbers.filter(cascade_of(Asked(), proxy=fails)("n")))
    with pytest.raises(PythonException, match="no score for seven"):
        fast.collect()


def test_an_oracle_that_raises_fails_adapt(numbers: DataFrame) -> None:
    def fails(number: int) -> bool:
        raise RuntimeError(f"nothing about {number}")

    with pytest.raises(PythonException, match="nothing about"):
        eddyline.adapt(numbers.filter(cascade_of(fails)("n")))


def test_explain_asks_nobody(numbers: DataFrame) -> None:
    asked = Asked()
    text = str(eddyline.explain(numbers.filter(cascade_of(asked)("n"))))
    assert not asked.calls
    assert "nothing is asked before eddyline.adapt" in text


def test_a_session_that_adapts_all_asks_about_every_row(
    spark: SparkSession, numbers: DataFrame
) -> None:
    asked = Asked()
    with eddyline.enable(spark):
        assert recall(collected(numbers.filter(cascade_of(asked)("n")))) == 1
    assert asked.calls == Counter(range(ROWS))


def test_a_watch_asks_about_every_row(numbers: DataFrame) -> None:
    asked = Asked()
    parts = eddyline.watch(numbers.filter(cascade_of(asked)("n")))
    rows = [row for part in parts for row in part.rows["n"].to_pylist()]
    assert recall(set(rows)) == 1
    assert asked.calls == Counter(range(ROWS))


def test_without_adapt_it_says_what_to_do(numbers: DataFrame) -> None:
    with pytest.raises(PythonException, match=r"is a cascade.*through eddyline\.adapt"):
        numbers.filter(cascade_of(Asked())("n")).collect()


def test_a_stream_is_refused(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    with pytest.raises(FunctionPlaceError, match="foreachBatch"):
        eddyline.adapt(stream.filter(cascade_of(Asked())("value")))


def test_a_cascade_that_nobody_held_is_forgotten(
    numbers: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = numbers.filter(cascade_of(Asked())("n"))
    monkeypatch.setattr(CASCADES, "_held", {})
    with pytest.raises(FunctionForgottenError, match="is a cascade that is not known"):
        eddyline.adapt(query)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"recall": None}, ValueError, "recall= or precision="),
        ({"recall": 95}, ValueError, "between 0 and 1"),
        ({"delta": "5 %"}, TypeError, "delta"),
        ({"labels": 0}, ValueError, "labels"),
        ({"seed": -1}, ValueError, "seed"),
        ({"proxy": 0.5}, TypeError, "a proxy is a function"),
        ({"proxy": lambda n: n * random.random()}, ValueError, "calls random.random"),
        ({"proxy": F.udf(scored).asNondeterministic()}, ValueError, "deterministic"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        cascade_of(Asked(), **options)


def test_an_oracle_says_yes_or_no() -> None:
    with pytest.raises(TypeError, match="returns a boolean"):
        eddyline.cascade(eddyline.concurrent(scored, returns="double"), proxy=scored, recall=0.9)
    whole = cascade_of(Asked())
    with pytest.raises(TypeError, match="cannot be the oracle"):
        eddyline.cascade(whole, proxy=scored, recall=0.9)
    with pytest.raises(TypeError, match="gives no score"):
        cascade_of(Asked(), proxy=whole)
    with pytest.raises(TypeError, match="needs an argument"):
        whole()
    with pytest.raises(ValueError, match="must be deterministic"):
        whole.asNondeterministic()
