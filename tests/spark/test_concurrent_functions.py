"""Slow functions: the rows of plain UDFs, each distinct arguments once a job, within limits."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BooleanType, DoubleType, StringType

import eddyline

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

    def later(self, *arguments: Any) -> Awaitable[Any]:  # noqa: ANN401
        async def called() -> Any:  # noqa: ANN401
            self.enter(*arguments)
            await asyncio.sleep(0.002)
            self.leave()
            return self.answer(*arguments)

        return called()

    def now(self, *arguments: Any) -> Any:  # noqa: ANN401
        self.enter(*arguments)
        time.sleep(0.002)
        self.leave()
        return self.answer(*arguments)

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
        F.col("n").isin([3, 4]) & (f["score"]("n") > df.agg(F.min("n")).scalar())
    ),
}


@pytest.mark.parametrize("kind", ["later", "now", "batch"])
@pytest.mark.parametrize("name", QUERIES)
def test_the_rows_are_those_of_plain_functions(frame: DataFrame, name: str, kind: str) -> None:
    query = QUERIES[name]
    if name == "named" and kind == "batch":
        pytest.skip("a batch is passed by position")
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
    rows = frame.sparkSession.range(0, 8 * WIDTH, 1, 3).where(accepts("id"))
    assert eddyline.adapt(rows).count() == 4 * WIDTH


def test_calls_begin_at_the_rate_that_is_allowed(spark: SparkSession) -> None:
    watched = Watched(even)
    accepts = eddyline.concurrent(watched.now, returns="boolean", rate=200.0)
    eddyline.adapt(spark.range(0, 60, 1, 3).where(accepts("id"))).collect()
    assert watched.starts[-1] - watched.starts[0] >= 59 / 200 * 0.9


def test_a_plan_without_adapt_says_what_to_do(frame: DataFrame) -> None:
    accepts = eddyline.concurrent(even, returns="boolean")
    with pytest.raises(Exception, match=r"NotAdaptedError: even is a concurrent function.*adapt"):
        frame.where(accepts("n")).collect()
