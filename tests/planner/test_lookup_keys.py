"""Keys of all types, several bind columns, and all layouts: the rows are those of plain tables."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline

UTC = dt.UTC
KEYS: dict[str, list[Any]] = {
    "string": ["a", "", "é'; DROP", "x\ty"],
    "boolean": [True, False],
    "byte": [1, -128],
    "short": [1, -300],
    "int": [1, -(2**31)],
    "long": [1, 2**62],
    "float": [0.5, -0.0, math.nan, math.inf],
    "double": [0.1, 0.0, math.nan, -math.inf],
    "decimal(10,2)": [Decimal("1.10"), Decimal("-0.01")],
    "date": [dt.date(2020, 2, 29), dt.date(1582, 10, 4)],
    "timestamp": [dt.datetime(2020, 3, 29, 1, 30, tzinfo=UTC), dt.datetime(1969, 1, 1, tzinfo=UTC)],
    "timestamp_ntz": [dt.datetime(2020, 3, 29, 2, 30), dt.datetime(1900, 1, 1)],  # noqa: DTZ001 - no zone on purpose
    "binary": [b"", b"\x00\xff"],
}


def canonical(value: Any) -> Any:  # noqa: ANN401 - of any column
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, float) and value == 0.0:
        return 0.0
    return bytes(value) if isinstance(value, bytearray) else value


def bag(df: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(canonical, row)) for row in df.collect())


class Table:
    """A source over collected rows, which finds keys as Spark compares them."""

    def __init__(self, rows: Sequence[Sequence[Any]], bind: Sequence[int]) -> None:
        self.rows = rows
        self.bind = tuple(bind)
        self.asked: Counter[Any] = Counter()

    def __call__(self, keys: list[Any]) -> list[tuple[Any, ...]]:
        found = []
        for key in keys:
            values = key if len(self.bind) > 1 else (key,)
            wanted = tuple(map(self._comparable, values))
            self.asked[wanted] += 1
            found += [
                tuple(row)
                for row in self.rows
                if tuple(self._comparable(row[c]) for c in self.bind) == wanted
            ]
        return found

    @staticmethod
    def _comparable(value: Any) -> Any:  # noqa: ANN401 - of any column
        if isinstance(value, dt.datetime) and value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None)
        return canonical(value)


@pytest.fixture(params=["broadcast", "shuffle", "spill"])
def layout(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[dict[str, Any]]:
    """How the inputs meet: without a shuffle, by one, and by one that spills."""
    if request.param == "broadcast":
        yield {}
        return
    key = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(key)
    spark.conf.set(key, "-1")
    yield {"memory": "100KB"} if request.param == "spill" else {}
    spark.conf.set(key, str(before))


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_may_be_of_any_type_that_spark_compares(spark: SparkSession, kind: str) -> None:
    keys = KEYS[kind]
    table = [(key, n) for n, key in enumerate(keys[1:])]
    schema = f"k {kind}, n int"
    plain = spark.createDataFrame(table, schema)
    source = Table([tuple(row) for row in plain.collect()], [0])
    eddyline.lookup_table(spark, "by_key", schema, ["k"], eddyline.PythonLookup(source))
    rows = [(n, key) for n, key in enumerate([*keys, None, *keys])]
    frame = spark.createDataFrame(rows, f"id int, v {kind}").repartition(3)

    def joined(other: DataFrame) -> DataFrame:
        return frame.join(other, frame["v"] == other["k"]).select("id", "v", "k", "n")

    assert bag(eddyline.adapt(joined(spark.table("by_key")))) == bag(joined(plain))
    assert set(source.asked.values()) == {1}


def test_several_bind_columns_and_inputs_in_all_layouts(
    spark: SparkSession, layout: dict[str, Any]
) -> None:
    table = [(n % 5, f"s{n % 7}", n) for n in range(0, 35, 2)]
    schema = "a long, b string, n long"
    plain = spark.createDataFrame(table, schema)
    source = Table(table, [0, 1])
    eddyline.lookup_table(
        spark, "by_two", schema, ["b", "a"], eddyline.PythonLookup(lambda keys: source(swap(keys)))
    )
    left = spark.range(2000).selectExpr("id", "id % 6 AS a", "cast(id % 11 AS string) AS c")
    right = spark.range(60).selectExpr(
        "cast(id % 11 AS string) AS c", "if(id % 9 = 0, NULL, concat('s', id % 8)) AS b"
    )

    def joined(other: DataFrame) -> DataFrame:
        return (
            left.join(right, "c")
            .join(other.alias("t"), (F.col("t.a") == left["a"]) & (F.col("t.b") == right["b"]))
            .select("id", "c", "t.a", "t.b", "n")
        )

    found = eddyline.adapt(joined(spark.table("by_two")), **layout)
    assert bag(found) == bag(joined(plain))
    assert set(source.asked.values()) == {1}


def swap(keys: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Keys come with their values in the order of ``bind``."""
    return [(a, b) for b, a in keys]


def test_nothing_is_asked_for_where_there_is_no_key(spark: SparkSession) -> None:
    source = Table([(1, 2)], [0])
    eddyline.lookup_table(spark, "pairs", "a long, b long", ["a"], eddyline.PythonLookup(source))
    pairs = spark.table("pairs")
    nulls = spark.range(5).selectExpr("if(id > 9, id, NULL) AS v")
    empty = spark.range(0).selectExpr("id AS v")
    for frame in (nulls, empty):
        assert eddyline.adapt(frame.join(pairs, F.col("v") == F.col("a"))).collect() == []
    for where in ("a IN (NULL)", "a = NULL", "a IN (1) AND a IN (2)", "a = 1 AND b = 3"):
        assert eddyline.adapt(pairs.where(where)).collect() == []
    assert set(source.asked) <= {(1,), (2,)}


def test_a_second_action_asks_anew_and_a_retried_task_does_not(spark: SparkSession) -> None:
    source = Table([(n, n) for n in range(20)], [0])
    eddyline.lookup_table(spark, "twenty", "a long, b long", ["a"], eddyline.PythonLookup(source))
    df = eddyline.adapt(
        spark.range(100).join(spark.table("twenty"), F.col("id") % 20 == F.col("a")).select("b")
    )
    for turn in (1, 2):
        assert len(df.collect()) == 100
        assert set(source.asked.values()) == {turn}
