"""Functions that look non-deterministic, though nobody says so, are called for every row."""

from __future__ import annotations

import functools
import itertools
import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.blocks.join_block import JoinBlock
from eddyline.planner.adapt import adapted_blocks

ROWS, DISTINCT = 50, 10
VECTORIZED: Any = F  # whose stubs do not know its functions of Arrow and pandas
ADVICE = "declare it with asNondeterministic(), or mark it with @eddyline.deterministic"


def make_id(_: object) -> str:
    return str(uuid.uuid4())


def make_ids(values: pd.Series) -> pd.Series:
    return values.map(lambda _: uuid.uuid4().hex)


def draw_all(values: pa.Array) -> pa.Array:
    return pa.array([random.random() for _ in values])


tallies: dict[str, int] = {"rows": 0}
known: dict[int, str] = {}


def tallied(_: object) -> int:
    tallies["rows"] += 1
    return tallies["rows"]


def listed(few: int, rows: list[int] = []) -> int:  # noqa: B006 - as people do
    rows.append(few)
    return len(rows)


def again(few: int) -> str:
    if few in known:
        return f"again {few}"
    known[few] = "seen"
    return f"new {few}"


class Keeping:
    def __init__(self) -> None:
        self.rows: list[int] = []
        self.names: dict[int, str] = {}

    def grows(self, few: int) -> int:
        self.rows.append(few)
        return len(self.rows)

    def remembers(self, few: int) -> str:
        if few not in self.names:
            self.names[few] = f"number {few}"
        return self.names[few]


class Salted:
    def __init__(self, large: bytes) -> None:
        self.large = large

    def __call__(self, value: int) -> str:
        return f"{self.large[value]}-{uuid.uuid4()}"


@pytest.fixture(scope="module")
def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 1).selectExpr("id", f"id % {DISTINCT} AS few")


@contextmanager
def enabled(spark: SparkSession) -> Iterator[None]:
    eddyline.enable(spark)
    try:
        yield
    finally:
        eddyline.disable(spark)


def test_each_row_gets_its_own(spark: SparkSession, numbers: DataFrame) -> None:
    """Also from what PySpark broadcasts, of which only a worker sees what it calls."""
    salted = F.udf(Salted(bytes(random.Random(3).randbytes(3 << 20))), "string")

    kinds = (
        F.udf(make_id, "string"),
        VECTORIZED.pandas_udf(make_ids, "string"),
        VECTORIZED.arrow_udf(draw_all, "double"),
    )

    def build() -> DataFrame:
        return (
            numbers.withColumn("one", kinds[0]("few"))
            .withColumn("two", kinds[1]("few"))
            .withColumn("three", kinds[2]("few"))
            .withColumn("four", salted("few"))
            .withColumn("ten", F.udf(lambda few: few * 3, "long")("few"))
        )

    fast = eddyline.adapt(build())
    with enabled(spark):
        for rows in (fast.collect(), build().collect()):
            columns = zip(*rows, strict=True)
            assert [len(set(each)) for each in columns] == [50, 10, 50, 50, 50, 50, 10]
    said = str(eddyline.explain(fast))
    for call, source in (
        ("make_id(few)", "uuid.uuid4"),
        ("make_ids(few)", "uuid.uuid4"),
        ("draw_all(few)", "random.random"),
    ):
        why = f"looks non-deterministic: calls {source}; {ADVICE}"
        assert f"{call}: it is called for every row ({why})" in said


def test_each_row_gets_its_own_by_whatever_way(spark: SparkSession, numbers: DataFrame) -> None:
    generator, numbered = random.Random(5), itertools.count()
    ways: dict[str, Callable[..., object]] = {
        "another version": lambda _: str(uuid.uuid1()),
        "a generator outside": lambda _: str(generator.random()),
        "the system's": lambda _: str(random.SystemRandom().random()),
        "a counter": lambda _: str(next(numbered)),
        "a part": functools.partial(make_id),
        "a helper": lambda few: make_id(few).upper(),
        "an inner function": lambda few: max("ab", key=lambda _: random.random()) + make_id(few),
    }

    def build() -> DataFrame:
        return numbers.select(*(F.udf(way, "string")("few") for way in ways.values()))

    with enabled(spark):
        for rows in (eddyline.adapt(build()).collect(), build().collect()):
            different = [len(set(column)) for column in zip(*rows, strict=True)]
            assert dict(zip(ways, different, strict=True)) == dict.fromkeys(ways, ROWS)


def test_what_outlives_a_call_is_called_for_every_row(
    spark: SparkSession, numbers: DataFrame
) -> None:
    """And a cache of people's own does not count as such."""
    cached = spark.sparkContext.accumulator(0)
    keeping = Keeping()

    def remembered(few: int) -> str:
        cached.add(1)
        return keeping.remembers(few)

    functions = {
        "tallied": F.udf(tallied, "long"),
        "listed": F.udf(listed, "long"),
        "grows": F.udf(keeping.grows, "long"),
        "again": F.udf(again, "string"),
        "cached": F.udf(remembered, "string"),
    }
    frame = numbers.select(*[made("few").alias(name) for name, made in functions.items()])
    plain = frame.collect()
    before = cached.value
    fast = eddyline.adapt(frame)
    found = fast.collect()
    assert found == plain
    assert before == ROWS
    assert cached.value - before == DISTINCT
    assert [len(set(each)) for each in zip(*found, strict=True)] == [50, 50, 50, 20, 10]
    said = str(eddyline.explain(fast))
    for call, place in (
        ("tallied(few)", "tallies['rows']"),
        ("listed(few)", "rows"),
        ("grows(few)", "self.rows"),
        ("again(few)", "known[…]"),
    ):
        why = f"looks non-deterministic: changes {place}, which outlives the call; {ADVICE}"
        assert f"{call}: it is called for every row ({why})" in said
    assert "remembered(few): it" not in said


def test_an_eddy_asks_once_for_a_row(spark: SparkSession, numbers: DataFrame) -> None:
    calls = spark.sparkContext.accumulator(0)

    @F.udf("double")
    def drawn(_: object) -> float:
        calls.add(1)
        return random.random()

    even = F.udf(lambda number: number % 2 == 0, "boolean")
    frame = numbers.filter((drawn("few") < 0.9) & even("id")).select("id", drawn("few").alias("d"))
    fast = eddyline.adapt(frame)
    rows = fast.collect()
    assert all(row.d < 0.9 and row.id % 2 == 0 for row in rows)
    assert len({row.d for row in rows}) == len(rows) > DISTINCT
    assert calls.value <= ROWS
    (block,) = eddyline.explain(fast).blocks
    assert "drawn is called for every row that comes to it: looks non-deterministic" in str(block)


@pytest.mark.parametrize("joins", ["auto", "always"])
def test_a_join_draws_for_each_row_of_its_input(
    spark: SparkSession, numbers: DataFrame, joins: str
) -> None:
    even = F.udf(lambda number: number % 2 == 0, "boolean")
    twice = spark.range(0, 2 * DISTINCT).selectExpr(f"id % {DISTINCT} AS other", "id AS place")
    frame = (
        numbers.withColumn("made", F.udf(make_id, "string")("few"))
        .join(twice, F.col("few") == F.col("other"))
        .filter(even("place") & F.udf(lambda few: few >= 0, "boolean")("few"))
        .union(
            numbers.filter(VECTORIZED.arrow_udf(draw_all, "double")("few") < 2)
            .withColumn("made", F.lit(""))
            .join(twice, F.expr("few = other"))
            .filter(even("place"))
        )
    )
    fast = eddyline.adapt(frame, joins=joins)
    joining = [block for block, _ in adapted_blocks(fast) if isinstance(block, JoinBlock)]
    assert not {"make_id", "draw_all"} & {
        each.name for block in joining for each in block.functions
    }
    plain, found = frame.collect(), fast.collect()
    for rows in (plain, found):
        made: dict[int, set[str]] = {}
        for row in rows:
            made.setdefault(row.id, set()).add(row.made)
        assert all(len(each - {""}) <= 1 for each in made.values())
        assert len(set.union(*made.values())) == len({row.id for row in rows if row.made}) + 1
    assert sorted((row.id, row.place) for row in plain) == sorted(
        (row.id, row.place) for row in found
    )
    assert "looks non-deterministic" in str(eddyline.explain(fast))


def marked(function: Callable[..., Any]) -> Callable[..., Any]:
    return F.udf(eddyline.deterministic(function), "string")


def test_a_mark_says_that_it_is_deterministic(numbers: DataFrame) -> None:
    def salted(value: int) -> str:
        return f"{value} {uuid.uuid4()}"

    fast = eddyline.adapt(numbers.select(marked(salted)("few").alias("one")))
    assert len(set(fast.collect())) == DISTINCT
    assert adapted_blocks(fast)
    assert "looks" not in str(eddyline.explain(fast))


def test_what_is_declared_is_left_as_it_was(numbers: DataFrame) -> None:
    declared = F.udf(lambda _: str(uuid.uuid4()), "string").asNondeterministic()
    frame = numbers.select(declared("few").alias("one"))
    assert eddyline.adapt(frame) is frame
    assert len(set(eddyline.adapt(frame).collect())) == ROWS
    assert "looks" not in str(eddyline.explain(frame))
