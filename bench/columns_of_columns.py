"""``python -m bench columns``: columns that functions make of columns that functions made.

A text is cleaned, its words are taken, they are counted and rated, each step a column: a few lines
with ``withColumn``, as people write them. To Spark the last is ``rate(words(clean(text)))``, and
each column calls all the functions inside it again. All texts differ, so no memory helps. The
functions take next to nothing (``cheap``), or 15 µs more each. The opponents are plain Spark and,
by hand, one function that makes a struct of all the columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from bench.against_plain import (
    AUTO,
    BY_HAND,
    CORES,
    PLAIN,
    Query,
    Target,
    argument_parser,
    run,
    start,
)

ROWS: Final = 100_000

COSTS: Final[Mapping[str, float]] = {"cheap": 0.0, "15 µs": 15e-6}
"""Seconds that each function works beside what it does."""

TARGETS: Final = (Target(PLAIN, greatest=1.03),)


def clean(text: str) -> str:
    """Return a text as others are written."""
    return text.strip().lower()


def rate(words: list[str]) -> float:
    """Return about how long the words are."""
    return sum(map(len, words)) / (1 + len(words))


def working(function: Callable[[Any], Any], seconds: float) -> Callable[[Any], Any]:
    """Return a function that works for so long, and then does what the given one does."""
    clock = time.perf_counter

    @eddyline.deterministic
    def worked(value: object) -> object:
        end = clock() + seconds
        while clock() < end:
            pass
        return function(value)

    return worked if seconds else function


@dataclass(frozen=True, slots=True)
class Steps:
    """The functions, of a cost."""

    clean: Callable[[str], str]
    words: Callable[[str], list[str]]
    count: Callable[[list[str]], int]
    rate: Callable[[list[str]], float]

    @classmethod
    def costing(cls, seconds: float) -> Steps:
        """Return functions that work for so long, and do what they are for."""
        return cls(*(working(function, seconds) for function in (clean, str.split, len, rate)))

    def columns(self, texts: DataFrame) -> DataFrame:
        """Return the columns, each made of one before."""
        return (
            texts.withColumn("clean", F.udf(self.clean, "string")("text"))
            .withColumn("words", F.udf(self.words, "array<string>")("clean"))
            .withColumn("count", F.udf(self.count, "int")("words"))
            .withColumn("rate", F.udf(self.rate, "double")("words"))
        )

    def by_hand(self, texts: DataFrame) -> DataFrame:
        """Return the same columns, as one function makes them."""

        def all_of_them(text: str) -> dict[str, Any]:
            cleaned = self.clean(text)
            words = self.words(cleaned)
            return {
                "clean": cleaned,
                "words": words,
                "count": self.count(words),
                "rate": self.rate(words),
            }

        made = F.udf(
            all_of_them, "clean string, words array<string>, count int, rate double"
        ).asNondeterministic()
        return texts.withColumn("made", made("text")).select("id", "text", "made.*")


QUERIES: Final[Mapping[str, Callable[[DataFrame], DataFrame]]] = {
    "two columns": lambda made: made.select("id", "clean", "words"),
    "all four": lambda made: made.drop("text"),
    "a filter on the third": lambda made: made.where("count > 6").select("id", "clean", "count"),
    "filters on two": lambda made: made.where("count > 4 AND rate > 3.5").drop("text"),
    "an aggregate": lambda made: made.groupBy("count").agg(F.avg("rate"), F.max("clean")),
    "the last only": lambda made: made.select("id", "rate"),
}
"""What becomes of the columns."""


def texts(spark: SparkSession) -> DataFrame:
    """Return texts of three to nine words, no two of them the same."""
    words = "repeat(concat(' word', id % 89), 2 + CAST(id % 7 AS INT))"
    frame = spark.range(0, ROWS, numPartitions=CORES).selectExpr(
        "id", f"concat('  Text ', id, {words}, ' ') AS text"
    )
    frame.cache().count()
    return frame


def queries(spark: SparkSession, only: str) -> Iterator[Query]:
    """Return the queries one by one."""
    rows = texts(spark)
    for cost, seconds in COSTS.items():
        steps = Steps.costing(seconds)
        for name, ask in QUERIES.items():
            if only in f"{name}, {cost}":
                yield Query(
                    f"{name}, {cost}",
                    partial(_asked, ask, steps.columns, rows),
                    group=cost,
                    opponents={BY_HAND: partial(_asked, ask, steps.by_hand, rows)},
                )


def _asked(
    ask: Callable[[DataFrame], DataFrame],
    columns: Callable[[DataFrame], DataFrame],
    rows: DataFrame,
) -> DataFrame:
    return ask(columns(rows))


def main(arguments: Sequence[str]) -> int:
    """Measure the queries that the command line asks for."""
    parser = argument_parser("columns", __doc__, joins=(AUTO,))
    parser.add_argument("--only", default="", help="only queries whose name contains this")
    options = parser.parse_args(arguments)
    names = [f"{name}, {cost}" for cost in COSTS for name in QUERIES]
    count = sum(options.only in name for name in names)
    if not count:
        parser.error(f"no query has {options.only!r} in its name")
    spark = start()
    run(
        queries(spark, options.only),
        name="columns",
        title="Columns of columns",
        count=count,
        options=options,
        setting={"rows": ROWS},
        targets=TARGETS,
        opponents=1,
    )
    spark.stop()
    return 0
