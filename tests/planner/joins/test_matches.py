"""Rows that stay in the JVM, whose matches come back as arrays."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.blocks.filter_block import SessionSettings
from eddyline.blocks.join_block import JoinBlock
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.expressions import Argument, Call, Comparison, ComparisonOperator
from eddyline.tasks.matches import MOST_MATCHES, left_behind, matches_type

LONG, TEXT = pa.int64(), pa.string()
WIDE, SMALL = 1, 0


def block(*outputs: int, predicates: tuple[Call, ...] = ()) -> JoinBlock:
    """Join small (key, name) with wide (a, key, text, b), the columns numbered 0 to 5."""
    types = (LONG, TEXT, LONG, LONG, TEXT, LONG)
    small = JoinRelation("small", types[:2])
    wide = JoinRelation("wide", types[2:])
    query = JoinQuery((small, wide))
    joins = Comparison(ComparisonOperator.EQUAL, query.column(SMALL, 0), query.column(WIDE, 1))
    whole = JoinQuery(
        (small, wide), (joins, *predicates), tuple(Argument(n, types[n]) for n in outputs)
    )
    texts = {LONG: '"long"', TEXT: '"string"'}
    settings = SessionSettings(time_zone="UTC")
    names = (("key", "name"), ("a", "key", "text", "b"))
    return JoinBlock(
        "", whole, (), settings, (1, 9), tuple(texts[types[n]] for n in outputs), names
    )


def test_only_what_is_looked_at_travels() -> None:
    left = left_behind(block(2, 1, 4), WIDE)
    assert left is not None
    assert left.columns == (1,)
    assert left.block.query.relations[WIDE].types == (LONG, LONG)  # the key, the row's number
    assert left.block.query.relations[SMALL].types == (LONG, TEXT)
    assert left.block.query.outputs == (Argument(3, LONG), Argument(1, TEXT))
    assert left.outputs == (0, -1, 2)
    assert left.block.column_names[WIDE] == ("key", "row")


def test_the_columns_of_inputs_behind_the_wide_one_are_numbered_anew() -> None:
    three = JoinRelation("first", (LONG,)), JoinRelation("wide", (LONG, TEXT, LONG))
    last = JoinRelation("last", (LONG, LONG))
    query = JoinQuery((*three, last))
    equal = ComparisonOperator.EQUAL
    predicates = (
        Comparison(equal, query.column(0, 0), query.column(1, 2)),
        Comparison(equal, query.column(1, 2), query.column(2, 0)),
    )
    whole = JoinQuery(query.relations, predicates, (query.column(1, 1), query.column(2, 1)))
    names = (("x",), ("a", "text", "x"), ("x", "y"))
    given = JoinBlock("", whole, (), block(0).settings, (1, 9, 1), ('"string"', '"long"'), names)
    left = left_behind(given, 1)
    assert left is not None
    new = left.block.query
    assert new.predicates == (
        Comparison(equal, new.column(0, 0), new.column(1, 0)),
        Comparison(equal, new.column(1, 0), new.column(2, 0)),
    )
    assert new.outputs == (new.column(1, 1), new.column(2, 1))
    assert left.outputs == (1, -1)


def test_a_column_of_a_predicate_travels_and_stays() -> None:
    predicate = Call(0, (Argument(5, LONG),), pa.bool_())
    left = left_behind(block(5, 4, predicates=(predicate,)), WIDE)
    assert left is not None
    assert left.columns == (1, 3)
    assert left.outputs == (3, 2)
    assert left.block.query.predicates[1] == Call(0, (Argument(3, LONG),), pa.bool_())


def test_matches_without_columns_are_counted_by_the_number_of_their_row() -> None:
    left = left_behind(block(2, 4), WIDE)
    assert left is not None
    assert matches_type(left.block).simpleString() == "array<struct<m0:bigint>>"


@pytest.mark.parametrize("outputs", [(1,), (1, 2)])
def test_little_that_the_result_wants_is_not_worth_it(outputs: tuple[int, ...]) -> None:
    assert left_behind(block(*outputs), WIDE) is None


@pytest.fixture
def orders(spark: SparkSession) -> DataFrame:
    """Return wide rows of which some have no key, and some a key that nothing matches."""
    number = F.col("id")
    return spark.range(3_000, numPartitions=3).select(
        F.when(number % 11 > 0, number % 7).alias("key"),
        (number * 3).alias("amount"),
        F.concat(F.lit("order "), number).alias("text"),
        F.array(number, number + 1).alias("list"),
        F.struct(number, (number % 2 == 0).alias("even")).alias("pair"),
        F.timestamp_seconds(number).alias("at"),
    )


@pytest.fixture
def kinds(spark: SparkSession) -> DataFrame:
    """Return kinds: none for key 6, three for key 2."""
    rows = [(0, "zero", 0.5), (1, "one", None), *[(2, f"two {n}", float(n)) for n in range(3)]]
    return spark.createDataFrame([*rows, (5, None, 1.0)], "key long, name string, weight double")


def stays(df: DataFrame) -> bool:
    """Whether rows of a plan stay in the JVM while their matches are looked for."""
    return "inline(matches" in df._jdf.queryExecution().optimizedPlan().toString()


def same_rows(plain: DataFrame, adapted: DataFrame) -> None:
    assert adapted.schema == plain.schema
    assert sorted(map(str, adapted.collect())) == sorted(map(str, plain.collect()))


def test_rows_that_stay_join_as_in_spark(orders: DataFrame, kinds: DataFrame) -> None:
    plain = orders.join(kinds, "key")
    adapted = eddyline.adapt(plain, joins="always")
    assert stays(adapted)
    same_rows(plain, adapted)


def test_predicates_over_rows_that_stay(orders: DataFrame, kinds: DataFrame) -> None:
    @F.udf("boolean")
    def is_odd(number: int) -> bool:
        return number % 2 == 1

    @F.udf("boolean")
    def are_close(amount: int, weight: float | None) -> bool:
        return weight is not None and amount % 10 < 4 * weight

    plain = orders.join(kinds, "key").where(is_odd("amount") & are_close("amount", "weight"))
    adapted = eddyline.adapt(plain, joins="always")
    assert stays(adapted)
    same_rows(plain, adapted)


def test_rows_without_any_match(orders: DataFrame, kinds: DataFrame) -> None:
    plain = orders.join(kinds.where("name = 'nobody'"), "key")
    adapted = eddyline.adapt(plain, joins="always")
    assert stays(adapted)
    assert adapted.collect() == []


def test_rows_with_many_matches_go_fewer_at_a_time(spark: SparkSession, orders: DataFrame) -> None:
    copies = 7 * MOST_MATCHES // 500  # twice as many a row as a thousand rows may have
    many = spark.range(copies).select((F.col("id") % 7).alias("key"), F.col("id").alias("number"))
    plain = orders.join(many, "key").groupBy("text").agg(F.sum("number"), F.count("list"))
    adapted = eddyline.adapt(plain, joins="always")
    assert stays(adapted)
    same_rows(plain, adapted)
