"""What nobody looks at in the end is not called, though it was adapted: joins in eddies as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from pyspark import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from eddyline.blocks.join_block import JoinBlock
from eddyline.planner.adapt import adapted_blocks

ROWS, OTHERS = 60, 40
LIMIT = 3

Action = Callable[[DataFrame], Sequence[object]]

ACTIONS: dict[str, Action] = {
    "rows": lambda df: sorted(map(tuple, df.collect())),
    "count": lambda df: [df.count()],
    "a column": lambda df: sorted(map(tuple, df.select("a").collect())),
    "without columns": lambda df: sorted(map(tuple, df.drop("r", "s").collect())),
    "a filter": lambda df: sorted(map(tuple, df.where("a < 20").select("a", "s").collect())),
    "groups": lambda df: sorted(map(tuple, df.groupBy("a").count().collect())),
}


@pytest.fixture(scope="module")
def calls(spark: SparkSession) -> Iterator[dict[str, Accumulator[int]]]:
    """How often functions are called: ``f``, ``g`` give values, ``p`` is a predicate."""
    made = {name: spark.sparkContext.accumulator(0) for name in "fgp"}

    def f(value: int) -> int:
        made["f"].add(1)
        return value * 3 % 50

    def g(value: int) -> int:
        made["g"].add(1)
        return value % 11

    def p(one: int, other: int) -> bool:
        made["p"].add(1)
        return (one + other) % 3 > 0

    spark.udf.register("f", F.udf(f, "long"))
    spark.udf.register("g", F.udf(g, "long", useArrow=False))
    spark.udf.register("p", F.udf(p, "boolean"))
    spark.range(0, ROWS, 1, 2).selectExpr("id AS a", "id % 7 AS k").createOrReplaceTempView("t")
    spark.range(0, OTHERS, 1, 2).selectExpr("id AS b", "id % 5 AS k").createOrReplaceTempView("u")
    source = eddyline.PythonLookup(lambda keys: [(key, key * 2) for key in keys])
    eddyline.lookup_table(spark, "w", "n long, v long", ["n"], source)
    spark.range(50).selectExpr("id AS n", "id * 2 AS v").createOrReplaceTempView("w_rows")
    yield made
    for name in ("t", "u", "w_rows"):
        spark.catalog.dropTempView(name)


ALONE = {
    "used twice": "SELECT a, r, g(r) AS s FROM (SELECT a, f(a) AS r FROM t) AS n",
    "in CASE": "SELECT a, 1 AS r, IF(r < 9, g(r), r) AS s FROM (SELECT a, f(a) AS r FROM t) AS n",
    "thrice": "SELECT a, f(f(r) + r) AS r, f(r) + r AS s FROM (SELECT a, f(a) AS r FROM t) AS n",
    "deciding on each other over a limit": (
        "SELECT a, g(f(a) + 1) AS r, CASE WHEN f(a + 1) > 20 THEN f(a + 2) ELSE a END AS s "
        "FROM t WHERE a < 9 LIMIT 12"
    ),
    "filtered": "SELECT a, r, g(r + 1) AS s FROM (SELECT a, f(a) AS r FROM t WHERE g(a) > 2)",
}

QUERIES = {
    "a nest": "SELECT t.a, f(t.a) AS r, f(g(u.b)) AS s FROM t JOIN u ON t.k = u.k WHERE p(a, b)",
    "of a result": (
        "SELECT a, r, r + g(r + 1) AS s FROM "
        "(SELECT t.a, u.b, f(t.a + u.b) AS r FROM t JOIN u ON t.k = u.k WHERE p(a, b)) AS j"
    ),
    "in CASE": (
        "SELECT t.a, CASE WHEN t.a < 30 THEN f(u.b) ELSE 0 END AS r, f(u.b) AS s "
        "FROM t JOIN u ON t.k = u.k AND p(a, b)"
    ),
    "what a predicate asks": (
        "SELECT t.a, f(t.a) AS r, g(t.a) AS s FROM t JOIN u ON t.k = u.k WHERE f(t.a) > u.b"
    ),
    "of all rows": "SELECT t.a, f(t.a) AS r, g(u.b) AS s FROM t JOIN u ON t.k = u.k",
}


KEYS = {
    "over a side that keeps its rows": (
        "SELECT n.r, w.b FROM (SELECT a, k, f(a) AS r FROM t) AS n "
        "LEFT JOIN u AS v ON g(n.k) <=> v.b JOIN u AS w ON n.r = w.b"
    ),
    "over EXISTS": (
        "SELECT n.r, w.b FROM (SELECT a, k, f(a) AS r FROM t) AS n JOIN u AS w ON n.r = w.b "
        "WHERE NOT EXISTS (SELECT 1 FROM u AS v WHERE v.k = n.k AND g(v.b) > 7)"
    ),
    "over both": (
        "SELECT w.k FROM (SELECT a, k, f(a) AS r FROM t) AS n "
        "LEFT JOIN u AS v ON g(n.k) <=> v.b JOIN u AS w ON n.r = g(w.b) "
        "WHERE NOT EXISTS (SELECT 1 FROM u AS v WHERE v.k = n.k AND g(v.b) > 7)"
    ),
    "over groups": (
        "SELECT r, s, b FROM (SELECT r, count(*) AS s FROM (SELECT f(a) AS r FROM t) GROUP BY r) "
        "JOIN u ON r = b"
    ),
    "over a union": (
        "SELECT r, u.k FROM (SELECT f(a) AS r FROM t UNION ALL SELECT g(b) FROM u) JOIN u ON r = b"
    ),
    "over a window": (
        "SELECT r, s, b FROM (SELECT r, sum(a) OVER (PARTITION BY r) AS s "
        "FROM (SELECT a, f(a) AS r FROM t)) JOIN u ON r = b"
    ),
}

TWICE = {
    "joined": (
        "WITH c AS (SELECT t.a, v.n FROM t "
        "JOIN (SELECT b, k, f(b) AS n FROM u WHERE g(b) > 2) AS v "
        "ON t.k = v.k) SELECT x.a, y.n FROM c AS x JOIN c AS y ON x.a = y.n WHERE p(y.a, y.n)"
    ),
    "with a condition on one": (
        "WITH c AS (SELECT /*+ BROADCAST(n) */ n.a, IF(n.s < 9, u.k, n.r) AS r FROM "
        "(SELECT a, f(a) AS r, f(k) AS s FROM t WHERE g(a) > 2) AS n JOIN u ON n.a = u.b) "
        "SELECT x.a, x.r, y.r AS q FROM c AS x JOIN c AS y ON x.a = y.a WHERE x.r < 21"
    ),
    "with a key of one above": (
        "WITH c AS (SELECT /*+ BROADCAST(n) */ n.a, IF(n.s < 9, u.k, n.r) AS r, n.s FROM "
        "(SELECT a, f(a) AS r, f(k) AS s FROM t WHERE g(a) > 2) AS n JOIN u ON n.a = u.b) "
        "SELECT x.a, x.r, y.r AS q, y.s AS z, w.k FROM c AS x JOIN c AS y ON x.a = y.a "
        "LEFT JOIN u AS w ON x.s <=> w.b"
    ),
    "needed for some rows in one": (
        "WITH c AS (SELECT /*+ BROADCAST(n) */ n.a, IF(n.s < u.k, n.s, n.r) AS r FROM "
        "(SELECT a, f(a) AS r, f(k) AS s FROM t WHERE g(a) > 2) AS n JOIN u ON n.a = u.b) "
        "SELECT x.a, IF(x.a < 9, x.r, 0) AS r, y.r AS q FROM c AS x JOIN c AS y ON x.a = y.a"
    ),
}


def taken(calls: dict[str, Accumulator[int]]) -> dict[str, int]:
    found = {name: count.value for name, count in calls.items()}
    for count in calls.values():
        count.value = 0
    return found


def require_no_more_calls(
    calls: dict[str, Accumulator[int]], action: Action, given: DataFrame, adapted: DataFrame
) -> None:
    """Fail unless an action gives the same, and calls no function more often than plain Spark."""
    taken(calls)
    expected = action(given)
    plain = taken(calls)
    assert action(adapted) == expected
    made = taken(calls)
    assert all(made[name] <= plain[name] for name in plain), (made, plain)


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_dropped_after_a_join_in_an_eddy_is_not_called(
    spark: SparkSession, calls: dict[str, Accumulator[int]], query: str
) -> None:
    text = QUERIES[query]
    adapted = eddyline.adapt(spark.sql(text), joins="always")
    assert any(isinstance(block, JoinBlock) for block, _ in adapted_blocks(adapted))
    for name, action in ACTIONS.items():
        if name != "a filter":  # which Spark cannot push below a join that is not its own
            require_no_more_calls(calls, action, spark.sql(text), adapted)


@pytest.mark.parametrize("query", ALONE)
def test_what_other_functions_are_called_with_is_not_called_where_these_are_dropped(
    spark: SparkSession, calls: dict[str, Accumulator[int]], query: str
) -> None:
    adapted = eddyline.adapt(spark.sql(ALONE[query]))
    for action in ACTIONS.values():
        require_no_more_calls(calls, action, spark.sql(ALONE[query]), adapted)


def test_values_are_computed_for_the_rows_that_are_shown(
    spark: SparkSession, calls: dict[str, Accumulator[int]]
) -> None:
    adapted = eddyline.adapt(spark.sql(QUERIES["of all rows"]), joins="always")
    taken(calls)
    assert len(adapted.take(LIMIT)) == LIMIT
    made = taken(calls)
    assert made["f"] <= LIMIT
    assert made["g"] <= LIMIT


def test_values_over_what_was_looked_up_are_computed_where_they_are_wanted(
    spark: SparkSession, calls: dict[str, Accumulator[int]]
) -> None:
    text = "SELECT t.a, f(x.v) AS r, g(f(x.v) + t.a) AS s FROM t JOIN {} AS x ON x.n = t.k + 1"
    adapted = eddyline.adapt(spark.sql(text.format("w")))
    for action in ACTIONS.values():
        require_no_more_calls(calls, action, spark.sql(text.format("w_rows")), adapted)


@pytest.mark.parametrize("query", KEYS)
def test_keys_that_are_values_are_called_for_as_often_as_in_plain_spark(
    spark: SparkSession, calls: dict[str, Accumulator[int]], query: str
) -> None:
    adapted = eddyline.adapt(spark.sql(KEYS[query]))
    require_no_more_calls(calls, ACTIONS["rows"], spark.sql(KEYS[query]), adapted)


@pytest.mark.parametrize("query", TWICE)
@pytest.mark.parametrize("joins", ["auto", "always"])
def test_a_query_that_stands_twice_is_computed_as_often_as_in_plain_spark(
    spark: SparkSession, calls: dict[str, Accumulator[int]], query: str, joins: str
) -> None:
    taken(calls)
    expected = sorted(spark.sql(TWICE[query]).collect(), key=repr)
    plain = taken(calls)
    adapted = eddyline.adapt(spark.sql(TWICE[query]), joins=joins)
    assert sorted(adapted.collect(), key=repr) == expected
    made = taken(calls)
    assert all(made[name] <= plain[name] for name in "fg"), (made, plain)


class Valued:
    """Rows in no order, a value of each, and a join that makes ten of one; calls are counted."""

    def __init__(self, spark: SparkSession) -> None:
        self.calls = calls = {name: spark.sparkContext.accumulator(0) for name in ("val", "both")}
        left = spark.range(0, 3_000, 1, 2).selectExpr("id", "id % 7 AS k", "hash(id) AS h")
        right = spark.range(0, 70, 1, 2).selectExpr("id % 7 AS l", "id AS r")

        def val(number: int) -> str:
            calls["val"].add(1)
            sum(range(2_000))  # what costs little need not be remembered
            return f"v{number}"

        def both(one: int, other: int) -> bool:
            calls["both"].add(1)
            return (one * 31 + other * 7) % 10 < 8

        self.val = val
        self.left = left.orderBy("h").localCheckpoint()
        self.right = right.localCheckpoint()
        self.both = F.udf(both, "boolean")("id", "r")

    def rows(self, how: Callable[[DataFrame], DataFrame], val: Callable[[int], str]) -> list[str]:
        """Return the rows of the query; the calls begin anew."""
        for calls in self.calls.values():
            calls.value = 0
        valued = self.left.withColumn("v", F.udf(val)("id"))
        joined = valued.join(self.right, (F.col("k") == F.col("l")) & self.both)
        return sorted(map(str, how(joined).collect()))

    @property
    def counts(self) -> dict[str, int]:
        return {name: calls.value for name, calls in self.calls.items()}


@pytest.mark.parametrize("how", ["remembers", "does not", "forgets"])
def test_a_value_of_one_input_is_not_called_for_each_joined_row(
    spark: SparkSession, how: str
) -> None:
    valued = Valued(spark)
    val = eddyline.forgetful(valued.val) if how == "forgets" else valued.val
    expected = valued.rows(lambda df: df, val)
    plainly = valued.counts
    rows = valued.rows(lambda df: eddyline.adapt(df, remember=how != "does not"), val)
    assert rows == expected
    assert plainly["val"] == 3_000
    assert valued.counts["val"] <= plainly["val"]
    assert sum(valued.counts.values()) <= sum(plainly.values())


def test_joins_without_functions_run_in_eddies_that_are_asked_for(spark: SparkSession) -> None:
    valued = Valued(spark)
    joined = valued.left.join(valued.right, F.col("k") == F.col("l"))
    fast = eddyline.adapt(joined, joins="always")
    assert sorted(map(str, fast.collect())) == sorted(map(str, joined.collect()))
    assert any(isinstance(block, JoinBlock) for block, _ in adapted_blocks(fast))
