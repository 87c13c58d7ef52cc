"""DataFrames of every shape, each with the predicates that should run in blocks.

A shape says what is claimed, one set of predicates a block; whatever is
claimed, its rows must be those of plain Spark.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everyone writes it
from pyspark.sql.functions import col, lit, udf
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from pyspark.sql.window import Window

import eddyline
from eddyline.quirks.pyspark_at_hand import MINOR
from tests.data_sources import DataSource, DataSourceReader
from tests.validated import SETTINGS
from tests.without_arrow_udf import INTEGERS_AS_THEY_ARE, WITH_ARROW_UDF, over_series

# Workers cannot import the tests, so the functions travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Shape:
    """A DataFrame, and the predicates that should be claimed of it, a set for each block.

    ``guarded`` functions are in no such block, and are called for some rows only all the same.
    """

    build: Callable[[SparkSession], DataFrame]
    blocks: tuple[frozenset[str], ...]
    guarded: int = 0

    @property
    def name(self) -> str:
        return self.build.__name__


SHAPES: list[Shape] = []


def shape(
    *blocks: set[str],
    guarded: int = 0,
) -> Callable[[Callable[[SparkSession], DataFrame]], Callable[[SparkSession], DataFrame]]:
    """Add a shape; each set holds the predicates of one block, as text."""

    def add(build: Callable[[SparkSession], DataFrame]) -> Callable[[SparkSession], DataFrame]:
        SHAPES.append(Shape(build, tuple(frozenset(block) for block in blocks), guarded))
        return build

    return add


def session() -> SparkSession:
    """Return the session in which the shapes are built."""
    spark = SparkSession.getActiveSession() or eddyline.session(master="local[2]", config=SETTINGS)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark


# ---------------------------------------------------------------- functions


def vectorized(
    kind: str, result: DataType
) -> Callable[[Callable[..., object]], Callable[..., Column]]:
    """Return Spark's decorator ``pandas_udf`` or ``arrow_udf``, with types.

    Up to PySpark 4.0 the latter is the former, of a function that makes arrays of the Series.
    """

    def decorate(function: Callable[..., object]) -> Callable[..., Column]:
        if kind == "arrow_udf" and not WITH_ARROW_UDF:
            return vectorized("pandas_udf", result)(over_series(function))
        made: Callable[..., Column] = getattr(F, kind)(function, result)
        return made

    return decorate


@udf(DoubleType(), useArrow=INTEGERS_AS_THEY_ARE)
def score(x: int | None) -> float | None:
    return None if x is None or x % 7 == 0 else (x * 37 % 100) / 100


@udf(BooleanType(), useArrow=INTEGERS_AS_THEY_ARE)
def good(x: int | None) -> bool | None:
    return None if x is None else x % 3 != 0


@udf(BooleanType(), useArrow=True)
def short(text: str | None) -> bool | None:
    return None if text is None else len(text) < 6


@udf(IntegerType(), useArrow=False)
def plus(x: int | None) -> int | None:
    return None if x is None else x + 1


@udf(BooleanType(), useArrow=False)
def even(x: int | None) -> bool | None:
    return None if x is None else x % 2 == 0


@udf(StringType(), useArrow=INTEGERS_AS_THEY_ARE)
def label(x: int | None) -> str | None:
    return None if x is None else f"label-{x % 5}"


@udf(BooleanType(), useArrow=INTEGERS_AS_THEY_ARE)
def within(x: int | None, low: int | None = 3, high: int | None = 30) -> bool | None:
    return None if x is None or low is None or high is None else low <= x <= high


@udf(BooleanType(), useArrow=True)
def late(moment: dt.datetime | None) -> bool | None:
    return None if moment is None else moment.hour >= 6


@udf(TimestampType(), useArrow=True)
def hour_later(moment: dt.datetime | None) -> dt.datetime | None:
    return None if moment is None else moment + dt.timedelta(hours=1)


@udf(DecimalType(10, 2), useArrow=True)
def price(amount: Decimal | None) -> Decimal | None:
    return None if amount is None else amount * 2


@udf(DateType(), useArrow=True)
def next_day(day: dt.date | None) -> dt.date | None:
    return None if day is None else day + dt.timedelta(days=1)


@udf(ArrayType(IntegerType()), useArrow=INTEGERS_AS_THEY_ARE)
def digits(x: int | None) -> list[int] | None:
    return None if x is None else [int(digit) for digit in str(x)]


@udf(StructType().add("a", "integer").add("b", "string"), useArrow=INTEGERS_AS_THEY_ARE)
def pair(x: int | None) -> tuple[int, str] | None:
    return None if x is None else (x % 4, f"b{x}")


@udf(BooleanType(), useArrow=True)
def has(items: list[int] | None) -> bool | None:
    return None if items is None else 3 in items


@udf(BooleanType(), useArrow=True)
def named(record: Any) -> bool | None:  # noqa: ANN401  # a Row
    return None if record is None else record.n % 2 == 0


@udf(DoubleType(), useArrow=INTEGERS_AS_THEY_ARE)
def noise(x: int) -> float:
    return float(x) / 50


noise = noise.asNondeterministic()


@udf(BooleanType(), useArrow=True)
def always() -> bool:
    return True


@udf(BooleanType(), useArrow=True)
def positive(x: float) -> bool:
    return x > 0


@vectorized("pandas_udf", DoubleType())
def halved(xs: pd.Series) -> pd.Series:
    return xs / 2


@vectorized("pandas_udf", BooleanType())
def small(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    for xs in batches:
        yield xs < 35


@vectorized("arrow_udf", LongType())
def doubled(xs: pa.Array) -> pa.Array:
    return pc.multiply(xs, 2)


@vectorized("arrow_udf", BooleanType())
def big(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    for xs in batches:
        yield pc.greater(xs, 5)


@vectorized("pandas_udf", DoubleType())
def mean_of(xs: pd.Series) -> float:
    return float(xs.mean())


# ---------------------------------------------------------------- tables

_COLUMNS = (
    "id long, n int, x double, text string, day date, moment timestamp, amount decimal(10,2), "
    "items array<int>, record struct<n:int,s:string>, local timestamp_ntz, raw binary"
)


@cache
def table(spark: SparkSession) -> DataFrame:
    """Return a table with a column of each kind and NULLs in most of them.

    It is the same DataFrame each time: to make one takes as long as a small query. What caches
    something of it begins with a new one, or else the others would read from the cache.
    """
    return new_table(spark)


def new_table(spark: SparkSession, rows: int = 48) -> DataFrame:
    """Return such a table that nobody else reads."""
    start = dt.datetime(2024, 3, 30, 20, 0, tzinfo=dt.UTC)

    def row(i: int) -> tuple[object, ...]:
        moment = start + dt.timedelta(minutes=37 * i)
        return (
            i,
            None if i % 11 == 0 else i % 13,
            None if i % 10 == 1 else float("nan") if i % 10 == 2 else i / 4,
            None if i % 9 == 0 else "ab" * (i % 5),
            None if i % 8 == 0 else moment.date(),
            None if i % 12 == 0 else moment,
            None if i % 6 == 0 else Decimal(i) / 4,
            None if i % 7 == 0 else [i % 4, i % 5],
            None if i % 10 == 0 else (i, "s"),
            None if i % 5 == 0 else moment.replace(tzinfo=None),
            None if i % 4 == 0 else bytes([i]),
        )

    return spark.createDataFrame([row(i) for i in range(rows)], _COLUMNS)


@cache
def other(spark: SparkSession) -> DataFrame:
    """Return a second, smaller table to join with."""
    return spark.createDataFrame(
        [(i, i % 6, f"o{i}") for i in range(0, 40, 2)], "key long, grade int, note string"
    )


class Numbers(DataSource):
    """A Python data source; Spark plans its scan while it optimizes."""

    @classmethod
    def name(cls) -> str:
        return "numbers_of_tests"

    def schema(self) -> str:
        return "id long, n int"

    def reader(self, schema: object) -> DataSourceReader:  # noqa: ARG002  # the protocol's
        return NumbersReader()


class NumbersReader(DataSourceReader):
    """Reads thirty rows."""

    def read(self, partition: object) -> object:  # type: ignore[override]  # noqa: ARG002
        return iter([(i, i % 5) for i in range(30)])


# ---------------------------------------------------------------- filters


@shape({"score(id) > 0.3", "good(id)"})
def two_filters(spark: SparkSession) -> DataFrame:
    return table(spark).filter(score("id") > 0.3).filter(good("id"))


@shape({"score(id) > 0.3", "good(id)", "short(text)"})
def one_conjunction(spark: SparkSession) -> DataFrame:
    return table(spark).filter((score("id") > 0.3) & good("id") & short("text"))


@shape({"score(id) > 0.3", "plus(n) < 9", "halved(x) < 5.0", "doubled(id) > 8"})
def four_kinds(spark: SparkSession) -> DataFrame:
    return table(spark).filter(
        (score("id") > 0.3) & (plus("n") < 9) & (halved("x") < 5) & (doubled("id") > 8)
    )


@shape({"small(id)", "big(id)"})
def iterators(spark: SparkSession) -> DataFrame:
    return table(spark).filter(small("id") & big("id"))


@shape({"good(id) OR short(text)"})
def a_disjunction(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good("id") | short("text"))


@shape({"(id < 10) OR good(id)"})
def native_or_function(spark: SparkSession) -> DataFrame:
    return table(spark).filter((col("id") < 10) | good("id"))


@shape({"((id < 10) OR good(id)) OR (n IS NULL)"})
def natives_of_one_or(spark: SparkSession) -> DataFrame:
    return table(spark).filter((col("id") < 10) | good("id") | col("n").isNull())


@shape({"(score(id) > 0.3) OR ((id > 20) AND short(text))", "even(id)"})
def and_inside_or(spark: SparkSession) -> DataFrame:
    either = (score("id") > 0.3) | ((col("id") > 20) & short("text"))
    return table(spark).filter(either & even("id"))


@shape({"NOT good(id)", "NOT short(text)"})
def negations(spark: SparkSession) -> DataFrame:
    return table(spark).filter(~(good("id") | short("text")))


@shape({"good(id)", "short(text)"})
def a_native_conjunct_too(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good("id") & (col("id") > 12) & short("text"))


@shape({"score(id) IS NOT NULL", "good(n) IS NULL"})
def nulls(spark: SparkSession) -> DataFrame:
    return (
        table(spark)
        .filter(score("id").isNotNull() & good("n").isNull())
        .filter(score("id").isNotNull())
    )


@shape({"score(id) > halved(x)", "plus(n) > n"})
def functions_compared(spark: SparkSession) -> DataFrame:
    return table(spark).filter(score("id") > halved("x")).filter(plus("n") > col("n"))


@shape({"((score(id) * 2.0) + 1.0) > 1.5", "good(id)"})
def arithmetic(spark: SparkSession) -> DataFrame:
    return table(spark).filter((score("id") * 2 + 1 > 1.5) & good("id"))


@shape({"label(id) IN (label-1, label-2)", "good(id)"})
def membership(spark: SparkSession) -> DataFrame:
    return table(spark).filter(label("id").isin("label-1", "label-2") & good("id"))


@shape({"plus(n) IN (11, 14, 17, 2, 20, 23, 26, 29, 32, 35, 38, 5, 8)", "good(id)"})
def membership_in_many(spark: SparkSession) -> DataFrame:
    return table(spark).filter(plus("n").isin(*range(2, 40, 3)) & good("id"))


@shape({"coalesce(good(n), true)", "CASE WHEN even(id) THEN true ELSE short(text) END"})
def conditionals(spark: SparkSession) -> DataFrame:
    certain = F.lit(1) == 1
    first = F.coalesce(good("n"), certain)
    return table(spark).filter(first & F.when(even("id"), certain).otherwise(short("text")))


@shape({"endswith(label(id), -3) OR startswith(label(n), label-2)"})
def patterns(spark: SparkSession) -> DataFrame:
    return table(spark).filter(label("id").like("%-3") | label("n").startswith("label-2"))


@shape({"next_day(day) > DATE '2024-03-31'", "good(id)"})
def dates(spark: SparkSession) -> DataFrame:
    return table(spark).filter((next_day("day") > dt.date(2024, 3, 31)) & good("id"))


@shape({"good(id)", "good(n)"})
def one_function_two_columns(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good("id") & good("n"))


@shape()
def one_function_one_column(spark: SparkSession) -> DataFrame:
    return table(spark).filter((score("id") > 0.2) & (score("id") < 0.8))


@shape()
def one_predicate(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good("id"))


@shape()
def no_filter(spark: SparkSession) -> DataFrame:
    return table(spark).select("id", score("id"), good("id"))


@shape()
def no_function(spark: SparkSession) -> DataFrame:
    return table(spark).filter("id > 3")


# ---------------------------------------------------------------- arguments and results


@shape({"good(plus(n))", "short(text)"})
def nested_kinds(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good(plus("n")) & short("text"))


@shape({"even(plus(n))", "short(text)"})
def nested_of_one_kind(spark: SparkSession) -> DataFrame:
    return table(spark).filter(even(plus("n")) & short("text"))


@shape({"even(plus(n))", "plus(n) > 4"})
def nested_and_alone(spark: SparkSession) -> DataFrame:
    return table(spark).filter(even(plus("n")) & (plus("n") > 4)).withColumn("p", plus("n"))


@shape({"good((plus(n) + 1))", "short(text)"})
def arithmetic_between(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good(plus("n") + 1) & short("text"))


@shape({"good((id + 1))", "short(concat(text, c))"})
def native_arguments(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good(col("id") + 1) & short(F.concat("text", lit("c"))))


@shape({"within(id, 5, 20)", "good(id)"})
def literal_arguments(spark: SparkSession) -> DataFrame:
    return table(spark).filter(within("id", lit(5), lit(20)) & good("id"))


TAKES_KEYWORDS: Final = MINOR >= (4, 0)
"""Whether functions take arguments by keyword in this PySpark."""


@shape(
    {"within(id, high => 20, low => n)" if TAKES_KEYWORDS else "within(id, n, 20)", "within(id)"}
)
def keywords_and_defaults(spark: SparkSession) -> DataFrame:
    by_name: Callable[..., Column] = within
    one = (
        by_name("id", high=lit(20), low=col("n")) if TAKES_KEYWORDS else by_name("id", "n", lit(20))
    )
    return table(spark).filter(one & within("id"))


@shape({"always()", "good(id)"})
def no_argument(spark: SparkSession) -> DataFrame:
    return table(spark).filter(always() & good("id"))


@shape({"late(moment)", "hour_later(moment) > TIMESTAMP '2024-03-31 02:00:00'"})
def timestamps(spark: SparkSession) -> DataFrame:
    moments = table(spark).filter(late("moment"))
    later = hour_later("moment")
    return moments.filter(later > F.to_timestamp(lit("2024-03-31 02:00:00"))).select("id", later)


@shape({"price(amount) > 4.00", "good(id)"})
def decimals(spark: SparkSession) -> DataFrame:
    return (
        table(spark)
        .filter((price("amount") > Decimal("4.00")) & good("id"))
        .select("id", price("amount"))
    )


@shape({"has(items) OR has(digits(id))"})
def arrays(spark: SparkSession) -> DataFrame:
    return table(spark).filter(has("items") | has(digits("id"))).select("id", digits("id"))


@shape({"named(record)", "good(record.n)"})
def structs(spark: SparkSession) -> DataFrame:
    return table(spark).filter(named("record") & good("record.n"))


@shape({"good(id)", "short(text)"})
def a_struct_comes_back(spark: SparkSession) -> DataFrame:
    both = table(spark).withColumn("p", pair("id")).filter(good("id") & short("text"))
    return both.select("id", "p.a", "p.b")


@shape({"good(id)", "short(text)"})
def field_of_a_result(spark: SparkSession) -> DataFrame:
    return (
        table(spark)
        .filter((pair("id").a > 1) & good("id") & short("text"))
        .select("id", pair("id").b)
    )


@shape({"size(raw) > 12", "first(raw) > X'10'"})
def bytes_(spark: SparkSession) -> DataFrame:
    @udf(IntegerType(), useArrow=True)
    def size(raw: bytes | None) -> int | None:
        return None if raw is None else len(raw) + raw[0]

    @udf(BinaryType(), useArrow=True)
    def first(raw: bytes | None) -> bytes | None:
        return None if raw is None else raw[:1]

    return table(spark).filter((size("raw") > 12) & (first("raw") > lit(b"\x10")))


@shape({"shift(local) IS NOT NULL", "good(id)"})
def local_times(spark: SparkSession) -> DataFrame:
    @udf(TimestampNTZType(), useArrow=True)
    def shift(moment: dt.datetime | None) -> dt.datetime | None:
        return None if moment is None else moment + dt.timedelta(hours=1)

    return table(spark).filter(shift("local").isNotNull() & good("id")).select(shift("local"))


@shape({"score(id) > 0.3", "good(id)"})
def value_used_above(spark: SparkSession) -> DataFrame:
    kept = table(spark).filter((score("id") > 0.3) & good("id"))
    return kept.select("id", score("id").alias("s"), (score("id") + 1).alias("t"), label("id"))


@shape({"(score(id) * 2.0) > 0.6", "plus(n) > 4"})
def columns_added_on_the_way(spark: SparkSession) -> DataFrame:
    added = table(spark).withColumn("s", score("id")).withColumn("u", col("s") * 2)
    more = added.filter("u > 0.6").withColumn("k", plus("n")).filter("k > 4")
    return more.withColumn("v", col("k") + col("u"))


@shape({"sql_good(id)", "sql_short(text)"})
def functions_of_sql(spark: SparkSession) -> DataFrame:
    spark.udf.register("sql_good", good)
    spark.udf.register("sql_short", short)
    table(spark).createOrReplaceTempView("shaped")
    return spark.sql(
        "SELECT id, text FROM shaped WHERE sql_good(id) AND sql_short(text) AND id > 2"
    )


@shape({"known(n)", "also(n)"})
def broadcast_variable(spark: SparkSession) -> DataFrame:
    numbers = spark.sparkContext.broadcast({1, 3, 5, 7, 9})
    others = spark.sparkContext.broadcast({2, 3, 4, 5})

    @udf(BooleanType(), useArrow=INTEGERS_AS_THEY_ARE)
    def known(n: int) -> bool:
        return n in numbers.value

    @udf(BooleanType(), useArrow=INTEGERS_AS_THEY_ARE)
    def also(n: int) -> bool:
        return n in others.value

    return table(spark).filter(known("n") & also("n"))


@shape({"count(id)", "good(id)"})
def accumulator(spark: SparkSession) -> DataFrame:
    calls = spark.sparkContext.accumulator(0)

    def count(x: int) -> bool:
        calls.add(1)
        return x > 3

    return table(spark).filter(
        udf(count, BooleanType(), useArrow=INTEGERS_AS_THEY_ARE)("id") & good("id")
    )


# ---------------------------------------------------------------- the plan around


@shape({"even(key)", "good(grade) OR (note = o4)"})
def over_a_join(spark: SparkSession) -> DataFrame:
    joined = table(spark).join(other(spark), col("id") == col("key"))
    return joined.filter(good("grade") & short("text") | (col("note") == "o4")).filter(even("id"))


@shape({"even(id)", "good(id)", "short(text)"}, {"even(key)", "short(note)", "good(key)"})
def under_a_join(spark: SparkSession) -> DataFrame:
    left = table(spark).filter(good("id") & short("text"))
    return left.join(other(spark).filter(even("key") & short("note")), col("id") == col("key"))


@shape({"even(grade)", "short(note)", "good(key)"})
def filters_of_both_sides_above(spark: SparkSession) -> DataFrame:
    joined = table(spark).join(other(spark), col("id") == col("key"))
    return joined.filter(good("id")).filter(short("note")).filter(even("grade"))


@shape({"good(id)", "short(text)"})
def outer_join(spark: SparkSession) -> DataFrame:
    left = table(spark).filter(good("id") & short("text"))
    return left.join(other(spark), col("id") == col("key"), "left").select("id", "note")


@shape({"even(id)", "good(id)"}, {"even(key)", "good(key)"})
def semi_join(spark: SparkSession) -> DataFrame:
    right = other(spark).filter(good("key") & even("key"))
    return table(spark).join(right, col("id") == col("key"), "left_semi")


@shape({"within(id, key)", "within(key, id, 99)"})
def join_condition(spark: SparkSession) -> DataFrame:
    few = other(spark).filter("key < 6")
    return table(spark).limit(20).join(few, within("id", "key") & within("key", "id", lit(99)))


@shape({"good(id)", "even(id)"})
def joined_with_itself(spark: SparkSession) -> DataFrame:
    kept = table(spark).filter(good("id") & even("id")).select("id", "n")
    return kept.alias("a").join(kept.alias("b"), col("a.n") == col("b.n")).select("a.id", "b.id")


@shape({"sql_good(id)", "sql_even(id)"})
def common_table_expression(spark: SparkSession) -> DataFrame:
    table(spark).createOrReplaceTempView("shaped")
    spark.udf.register("sql_good", good)
    spark.udf.register("sql_even", even)
    return spark.sql(
        "WITH kept AS (SELECT id, n FROM shaped WHERE sql_good(id) AND sql_even(id)) "
        "SELECT a.id, b.n FROM kept a JOIN kept b ON a.n = b.n + 1"
    )


@shape({"good(id)", "short(text)"}, {"even(id)", "short(text)"})
def union(spark: SparkSession) -> DataFrame:
    rows = table(spark)
    return rows.filter(good("id") & short("text")).union(rows.filter(even("id") & short("text")))


@shape({"good(id)", "short(text)"})
def aggregated(spark: SparkSession) -> DataFrame:
    kept = table(spark).filter(good("id") & short("text"))
    return kept.groupBy("text").agg(F.count("*"), F.sum("id"), F.max(score("id")))


@shape({"good(total)", "even(total)"})
def having(spark: SparkSession) -> DataFrame:
    totals = table(spark).groupBy("text").agg(F.sum("id").alias("total"), F.max("x"))
    return totals.filter(good("total") & even("total"))


@shape({"good(id)", "short(text)"})
def grouped_by_function(spark: SparkSession) -> DataFrame:
    kept = table(spark).filter(good("id") & short("text"))
    return kept.groupBy(label("id")).count()


@shape({"good(id)", "short(text)"})
def window_above(spark: SparkSession) -> DataFrame:
    kept = table(spark).filter(good("id") & short("text"))
    return kept.withColumn("r", F.row_number().over(Window.partitionBy("text").orderBy("id")))


@shape({"good(r)", "even(r)"})
def window_below(spark: SparkSession) -> DataFrame:
    ranks = F.row_number().over(Window.partitionBy("text").orderBy("id"))
    return table(spark).withColumn("r", ranks).filter(good("r") & even("r"))


@shape({"good(id)", "short(text)"})
def limit_below(spark: SparkSession) -> DataFrame:
    return table(spark).orderBy("id").limit(20).filter(good("id") & short("text"))


@shape({"good(id)", "short(text)"})
def sorted_and_limited(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good("id") & short("text")).orderBy(col("id").desc()).limit(5)


@shape({"good(id)", "even(id)"}, {"short(text)", "score(id) > 0.2"})
def two_blocks_around_a_limit(spark: SparkSession) -> DataFrame:
    some = table(spark).filter(good("id") & even("id")).orderBy("id").limit(12)
    return some.filter(short("text") & (score("id") > 0.2))


@shape({"good(n)", "even(n)"})
def distinct(spark: SparkSession) -> DataFrame:
    return table(spark).select("n").distinct().filter(good("n") & even("n"))


@shape({"good(id)", "short(text)"})
def exploded_above(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good("id") & short("text")).select("id", F.explode("items"))


@shape()
def exploded_below(spark: SparkSession) -> DataFrame:
    return (
        table(spark)
        .select("id", "text", F.explode("items").alias("item"))
        .filter(good("item") & short("text"))
    )


@shape({"good(id)", "short(text)"})
def subtracted(spark: SparkSession) -> DataFrame:
    kept = table(spark).filter(good("id") & short("text")).select("id")
    return kept.exceptAll(spark.range(10))


@shape({"sql_good(id)", "sql_even(id)"})
def scalar_subquery(spark: SparkSession) -> DataFrame:
    table(spark).createOrReplaceTempView("shaped")
    spark.udf.register("sql_good", good)
    spark.udf.register("sql_even", even)
    return spark.sql(
        "SELECT id FROM shaped WHERE id < "
        "(SELECT max(id) - 3 FROM shaped WHERE sql_good(id) AND sql_even(id))"
    )


@shape({"sql_good(id)", "sql_plus(n) > scalarsubquery()"})
def compared_with_a_subquery(spark: SparkSession) -> DataFrame:
    table(spark).createOrReplaceTempView("shaped")
    spark.udf.register("sql_good", good)
    spark.udf.register("sql_plus", plus)
    return spark.sql(
        "SELECT id FROM shaped WHERE sql_good(id) AND sql_plus(n) > (SELECT min(n) + 2 FROM shaped)"
    )


@shape({"sql_good(key)", "sql_even(grade)"})
def exists(spark: SparkSession) -> DataFrame:
    table(spark).createOrReplaceTempView("shaped")
    other(spark).createOrReplaceTempView("others")
    spark.udf.register("sql_good", good)
    spark.udf.register("sql_even", even)
    return spark.sql(
        "SELECT id FROM shaped WHERE EXISTS "
        "(SELECT 1 FROM others WHERE key = id AND sql_good(key) AND sql_even(grade))"
    )


@shape({"sql_good(key)", "sql_even(grade)"})
def exists_or_something_else(spark: SparkSession) -> DataFrame:
    table(spark).createOrReplaceTempView("shaped")
    other(spark).createOrReplaceTempView("others")
    spark.udf.register("sql_good", good)
    spark.udf.register("sql_even", even)
    return spark.sql(
        "SELECT id FROM shaped WHERE id < 5 OR EXISTS "
        "(SELECT 1 FROM others WHERE key = id AND sql_good(key) AND sql_even(grade))"
    )


@shape({"good(p)", "short(text)"})
def over_a_cache(spark: SparkSession) -> DataFrame:
    cached = new_table(spark).withColumn("p", plus("n")).cache()
    return cached.filter(good("p") & short("text"))


@shape({"good(id)", "short(text)"})
def repartitioned(spark: SparkSession) -> DataFrame:
    return table(spark).repartition(3, "text").filter(good("id") & short("text"))


@shape({"good(id)", "short(text)"})
def sampled(spark: SparkSession) -> DataFrame:
    return table(spark).coalesce(1).sample(fraction=0.7, seed=3).filter(good("id") & short("text"))


@shape({"good(id)", "short(text)"})
def mapped_in_arrow(spark: SparkSession) -> DataFrame:
    kept = table(spark).select("id", "text").filter(good("id") & short("text"))
    return kept.mapInArrow(lambda batches: batches, "id long, text string")


@shape({"good(id)", "short(text)"})
def aggregated_in_pandas(spark: SparkSession) -> DataFrame:
    kept = table(spark).filter(good("id") & short("text"))
    return kept.groupBy("text").agg(mean_of("id"))


@shape({"good(key)", "even(grade)"})
def hinted(spark: SparkSession) -> DataFrame:
    kept = other(spark).filter(good("key") & even("grade"))
    return table(spark).join(F.broadcast(kept), col("id") == col("key"))


# ---------------------------------------------------------------- columns and tables


@shape({"good(id)", "short(text)"})
def names_twice(spark: SparkSession) -> DataFrame:
    rows = table(spark).filter(good("id") & short("text"))
    return rows.select("id", "text", col("n").alias("id"), col("x").alias("text"))


@shape({"good(id)", "short(text)", "named(record)"})
def names_with_dots(spark: SparkSession) -> DataFrame:
    rows = table(spark).select(col("id").alias("a.b"), col("text").alias("c d"), "record")
    return rows.filter(good("`a.b`") & short("`c d`") & named("record"))


# In ANSI mode abs and - of an integer may overflow: they are tried.
@shape({"good(id)", "even(id)", "plus(id) > abs(id)", "plus(id) > negative(id)"})
def absolute_and_negative(spark: SparkSession) -> DataFrame:
    either = good("id") & even("id") & (F.abs("x") > 0.1) & (-col("x") < 5)
    return table(spark).filter(either & (plus("id") > F.abs("id")) & (plus("id") > -col("id")))


@shape({"good(id)", "even(id)"})
def a_thousand_columns(spark: SparkSession) -> DataFrame:
    wide = spark.range(20).select("id", *(lit(i).alias(f"c{i}") + col("id") for i in range(1000)))
    return wide.filter(good("id") & even("id") & (col("id") > 3))


@shape({"good(id)", "short(text)"})
def no_rows(spark: SparkSession) -> DataFrame:
    return (
        table(spark)
        .filter(col("id") > F.monotonically_increasing_id() + 10**12)
        .filter(good("id") & short("text"))
    )


@shape({"good(id)", "even(id)"})
def a_table_known_to_be_empty(spark: SparkSession) -> DataFrame:
    return spark.range(0).filter(good("id") & even("id"))


@shape({"good(col1)", "even(col1)"})
def inline_table(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b'), (4, NULL), (NULL, 'c')").filter(
        good("col1") & even("col1")
    )


@shape({"good(id)", "even(id)"})
def no_column_needed(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good("id") & even("id")).select(lit(1).alias("one"))


@shape({"good(id)", "even(id)"})
def counted(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good("id") & even("id")).groupBy().count()


@shape({"good(id)", "even(id)"})
def aliased(spark: SparkSession) -> DataFrame:
    return table(spark).alias("t").filter(good("t.id") & even("t.id")).select("t.*", "t.record.s")


@shape({"good(id)", "even(id)"})
def partitioned_away(spark: SparkSession) -> DataFrame:
    """Return a DataFrame whose rows sit in one of many partitions."""
    return spark.range(0, 64, 1, 8).filter("id < 8").filter(good("id") & even("id"))


# ---------------------------------------------------------------- left to Spark, in part or wholly


@shape()
def not_deterministic(spark: SparkSession) -> DataFrame:
    return table(spark).filter(noise("id") > 0.2)


@shape({"good(id)", "even(id)"})
def deterministic_beside_not(spark: SparkSession) -> DataFrame:
    return table(spark).filter((noise("id") > 0.2) & good("id") & even("id"))


@shape(guarded=0 if INTEGERS_AS_THEY_ARE else 1)  # pickled, they gain by a block that filters not
def random_condition(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good("id") & even("id") & (F.rand(3) > 0.2))


@shape({"good(id)", "score(id) IS NOT NULL"})
def not_understood_beside(spark: SparkSession) -> DataFrame:
    not_understood = F.upper(label("id")) > "LABEL-2"
    return table(spark).filter(good("id") & score("id").isNotNull() & not_understood)


@shape(
    *(
        ({"good(id)", "score(id) IS NOT NULL"}, {"even(id)", "plus(n) < 9"})
        if INTEGERS_AS_THEY_ARE
        else ({"good(id)", "score(id) IS NOT NULL", "even(id)", "plus(n) < 9"},)
    )
)
def a_barrier_between(spark: SparkSession) -> DataFrame:
    """Return filters of two kinds, which Spark evaluates one after the other; else of one."""
    barrier = F.upper(label("id")) > "LABEL-2"
    kept = table(spark).filter(good("id") & score("id").isNotNull() & barrier)
    return kept.filter(even("id") & (plus("n") < 9)).withColumn("s", score("id"))


@shape({"good(id) OR ((40.0 / (id + 1)) > 2.0)"})
def guarded_division(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good("id") | (lit(40) / (col("id") + 1) > 2))


@shape({"good((id + 1))", "short(text)"})
def arguments_that_may_throw(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good(col("id") + 1) & short("text"))


@shape({"even(cast((10.0 / (n + 1)) as int))", "good(id)"})
def arguments_that_may_throw_above_a_filter(spark: SparkSession) -> DataFrame:
    return table(spark).filter(good("id") & even((10 / (col("n") + 1)).cast("int")))


@shape(guarded=1)  # short is called only for the rows that span accepts
def intervals(spark: SparkSession) -> DataFrame:
    span = udf(lambda d: d.seconds > 1, BooleanType(), useArrow=True)
    gap = F.make_dt_interval(col("id"))
    return table(spark).filter(span(gap) & short("text"))


@shape({"good(id)", "even(id)"})
def collated(spark: SparkSession) -> DataFrame:
    text = F.collate(F.coalesce("text", lit("x")), "UTF8_LCASE")
    return table(spark).filter(good("id") & even("id") & (text != "ABAB"))
