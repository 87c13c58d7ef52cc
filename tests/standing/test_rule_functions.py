"""Functions of rules are called once for each tuple of arguments, for as long as events come."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas import functions as vectorized

import eddyline
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all

pytestmark = pytest.mark.slow(20)

SCHEMA = "text string, other string, number int, time timestamp"
START = dt.datetime(2026, 1, 1, 12, 0)  # noqa: DTZ001 - in the session's zone, as Spark takes it
VECTORIZED: Any = vectorized  # its overloads take no local function
BATCHES, EVENTS = 3, 40
TEXTS = [None, *(f"text {number}" for number in range(11))]


def feed(spark: SparkSession, directory: Path, seed: int) -> Feed:
    chance = random.Random(seed)
    found = Feed(spark, directory, SCHEMA, ("time", "10 seconds"))
    for batch in range(BATCHES):
        found.give(
            [
                (
                    chance.choice(TEXTS),
                    chance.choice("ab"),
                    chance.randrange(5),
                    START + dt.timedelta(seconds=60 * batch + chance.randrange(60)),
                )
                for _ in range(EVENTS)
            ]
        )
    return found


class Called:
    """Where functions write down what they were called with, in whatever process."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def noting(self) -> Callable[..., None]:
        file = str(self._file)

        def note(name: str, *values: object) -> None:
            line = f"{os.getpid()} {name} {values!r}\n".encode()
            to = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(to, line)
            os.close(to)

        return note

    def take(self) -> dict[str, Counter[str]]:
        """Return the calls since the last time by function: process and arguments."""
        found: dict[str, Counter[str]] = {}
        for line in self._file.read_text().splitlines():
            process, name, values = line.split(" ", 2)
            found.setdefault(name, Counter())[f"{process} {values}"] += 1
        self._file.unlink()
        return found


def register(spark: SparkSession, note: Callable[..., None]) -> None:  # noqa: C901 - one after the other
    """Register functions of all kinds that note their calls."""

    def near(text: str | None, marker: str) -> float | None:
        note("near", text, marker)
        return None if text is None else len(set(text) & set(marker)) / 4

    def long_enough(text: str | None) -> int:
        note("long_enough", text)
        return 0 if text is None else len(text)

    def digits(texts: pd.Series, number: pd.Series) -> pd.Series:
        for pair in zip(texts, number, strict=True):
            note("digits", *pair)
        return texts.str.count(r"\d").fillna(0).astype(int) + number

    def doubled(number: pa.Array) -> pa.Array:
        for value in number.to_pylist():
            note("doubled", value)
        return pa.array([2 * value for value in number.to_pylist()], pa.int32())

    def picky(text: str | None, marker: str) -> bool:
        note("picky", text, marker)
        if text is None or text.endswith("3"):
            raise ValueError("no such text")
        return marker in text

    @eddyline.forgetful
    def watched(text: str | None) -> bool:
        note("watched", text)
        return text is not None

    for function, kind in (
        (near, "double"),
        (long_enough, "int"),
        (picky, "boolean"),
        (watched, "boolean"),
    ):
        spark.udf.register(function.__name__, function, kind)
    spark.udf.register("digits", VECTORIZED.pandas_udf(digits, "int"))
    spark.udf.register("doubled", VECTORIZED.arrow_udf(doubled, "int"))


TEMPLATES = {
    "near": "SELECT text, :topic AS topic FROM texts WHERE near(text, :topic) > :least",
    "long": "SELECT text FROM texts WHERE long_enough(text) > :size",
    "series": "SELECT text FROM texts WHERE digits(text, number) > :size AND doubled(number) > 2",
    "picky": """SELECT text FROM texts WHERE picky(text, :topic) AND text NOT LIKE '%3'
                AND text IS NOT NULL""",
}
JOINED = {
    "pairs": """SELECT t.text, u.other FROM texts t JOIN more u ON t.other = u.other
                AND u.time BETWEEN t.time AND t.time + INTERVAL 20 SECONDS
                WHERE near(t.text, u.text) > 0.5 AND long_enough(u.text) > 4""",
    "counted": """SELECT window.start, count(*) AS many FROM texts WHERE near(text, 'text') > 0.5
                  GROUP BY window(time, '1 minute')""",
}
RULES = pd.DataFrame(
    [(f"topic {n % 5}", n % 4 / 8, 4 + n % 3) for n in range(12)],
    columns=["topic", "least", "size"],
)


def filled(sql: str, row: tuple[str, float, int]) -> str:
    topic, least, size = row
    return (
        sql.replace(":topic", f"'{topic}'")
        .replace(":least", f"{least}D")
        .replace(":size", str(size))
    )


def test_each_function_is_called_once_for_its_arguments(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts, more = (
        feed(spark, tmp_path / name, seed) for seed, name in enumerate(["texts", "more"])
    )
    called = Called(tmp_path / "calls")
    register(spark, called.noting())
    streams = {"texts": texts.stream(), "more": more.stream()}
    rules = {
        f"{kind}-{n}": filled(sql, row)
        for kind, sql in TEMPLATES.items()
        for n, row in enumerate(RULES.itertuples(index=False))
    }
    found = []
    for remember in (True, False):
        sink = Gathered()
        with StandingQueries(
            spark, streams=streams, state=tmp_path / f"state {remember}", remember=remember
        ) as queries:
            for name, sql in TEMPLATES.items():
                queries.add_many(sql, RULES, name=name)
            queries.add("SELECT text FROM texts WHERE watched(text)", name="watched")
            for name, sql in JOINED.items() if remember else ():
                queries.add(sql, name=name)
            run_all(queries, sink)
        found.append((sink.answers(), called.take()))
    (answers, calls), (others, without) = found
    rules |= {"watched": "SELECT text FROM texts WHERE watched(text)", **JOINED}
    wanted = expected(spark, {"texts": texts.rows(), "more": more.rows()}, rules)
    windows = answers.pop("counted")
    assert windows <= wanted.pop("counted")
    assert windows.total() == BATCHES - 1  # the last one is open
    assert answers == wanted
    assert others == {name: rows for name, rows in wanted.items() if name not in JOINED}
    watched = calls.pop("watched")
    assert watched.total() == without["watched"].total() == BATCHES * EVENTS
    assert calls.keys() == {"near", "long_enough", "digits", "doubled", "picky"}
    for name, of_function in calls.items():
        assert set(of_function.values()) == {1}, name
    for name, of_function in without.items():
        assert max(of_function.values()) > 1, name
    assert any("None" in arguments for arguments in calls["near"])


def test_accumulators_of_functions_count_in_every_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts = feed(spark, tmp_path / "texts", 0)
    calls = spark.sparkContext.accumulator(0)

    @eddyline.forgetful
    def counting(_: Any) -> bool:  # noqa: ANN401 - whatever comes
        calls.add(1)
        return True

    spark.udf.register("counting", counting, "boolean")
    spark.udf.register("again", counting, "int")
    sink = Gathered()
    with StandingQueries(
        spark, streams={"texts": texts.stream()}, state=tmp_path / "state"
    ) as queries:
        queries.add("SELECT text FROM texts WHERE counting(number)", name="rule")
        queries.add("SELECT text FROM texts WHERE again(number) IS NULL", name="other")
        run_all(queries, sink)
    assert calls.value == 2 * BATCHES * EVENTS
    assert sink.answers()["rule"].total() == BATCHES * EVENTS


def test_a_function_is_called_for_rows_that_are_joined(spark: SparkSession, tmp_path: Path) -> None:
    times = [START + dt.timedelta(milliseconds=number) for number in range(2_000)]
    texts = Feed(spark, tmp_path / "texts", SCHEMA, ("time", "10 seconds"))
    others = Feed(spark, tmp_path / "others", SCHEMA, ("time", "10 seconds"))
    texts.give([(f"text {n}", "a", n % 5, time) for n, time in enumerate(times)])
    others.give([(f"text {n}", "b", n % 5, times[n]) for n in range(0, 2_000, 350)])
    calls = spark.sparkContext.accumulator(0)

    def costly(text: str) -> bool:
        calls.add(1)
        return not text.endswith("7")

    spark.udf.register("costly", costly, "boolean")
    sql = """SELECT t.text, o.number FROM texts t JOIN others o ON t.text = o.text
             AND o.time BETWEEN t.time - INTERVAL 1 MINUTE AND t.time + INTERVAL 1 MINUTE
             WHERE costly(t.text)"""
    sink = Gathered()
    streams = {"texts": texts.stream(), "others": others.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        queries.add(sql, name="rule")
        run_all(queries, sink)
    assert calls.value == 6
    assert sink.answers() == expected(
        spark, {"texts": texts.rows(), "others": others.rows()}, {"rule": sql}
    )
