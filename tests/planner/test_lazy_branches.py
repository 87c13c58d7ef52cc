"""Functions are called where their branch is taken: rows of plain Spark, and counted calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark import Accumulator
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from tests.without_arrow_udf import INTEGERS_AS_THEY_ARE

ROWS = 400

VECTORIZED: Any = F  # of which the type checker does not know all


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    """``d``: ``u`` is a number of its own in each row, ``have`` one where there is one already."""
    d = spark.range(0, ROWS, numPartitions=2).selectExpr(
        # Never NULL: functions over integers that may be are left to PySpark 4.0.
        "id",
        "coalesce(id % 7, 0) AS b",
        "IF(id % 4 = 0, NULL, id) AS have",
        "id AS u",
    )
    o = spark.range(20).selectExpr("id AS k", "id * 2 AS v")
    d.cache().createOrReplaceTempView("d")
    o.cache().createOrReplaceTempView("o")
    yield
    d.unpersist()
    o.unpersist()


class Counted:
    """Functions ``f``, ``g`` and ``h`` of SQL, which count the rows that they are called for.

    All are of one kind, or each of its own.
    """

    def __init__(self, spark: SparkSession, *kinds: str) -> None:
        self._counts = {name: spark.sparkContext.accumulator(0) for name in "fgh"}
        f, g, h = kinds * (3 // len(kinds))
        for name, function in {
            "f": made(f, lambda value: value * 2, "long", self._counts["f"]),
            "g": made(g, lambda value: value % 2 == 0, "boolean", self._counts["g"]),
            "h": made(h, lambda value: f"s{value % 5}", "string", self._counts["h"]),
        }.items():
            spark.udf.register(name, function)

    def calls(self) -> dict[str, int]:
        return {name: count.value for name, count in self._counts.items()}


ARROW = {"long": pa.int64(), "boolean": pa.bool_(), "string": pa.string()}


def made(
    kind: str, answer: Callable[[int], Any], returns: str, calls: Accumulator[int]
) -> Callable[..., Any]:
    def of_row(value: int) -> Any:  # noqa: ANN401 - any function's
        calls.add(1)
        return answer(value)

    def of_series(values: pd.Series) -> pd.Series:
        calls.add(len(values))
        return values.map(answer)

    def of_array(values: pa.Array) -> pa.Array:
        calls.add(len(values))
        return pa.array(map(answer, values.to_pylist()), ARROW[returns])

    if kind == "pandas":
        return VECTORIZED.pandas_udf(of_series, returns)  # type: ignore[no-any-return]
    if kind == "arrow":
        return VECTORIZED.arrow_udf(of_array, returns)  # type: ignore[no-any-return]
    return F.udf(of_row, returns, useArrow=kind == "row")


def of_values(statement: str) -> str:
    """Return a statement over values ``q`` of ``f``, computed below what looks at them."""
    return statement.replace("@", "(SELECT id, b, f(u) AS q FROM d)")


# Of each function the rows that need it. One that remembers may be called for fewer.
QUERIES: dict[str, tuple[str, dict[str, int]]] = {
    "case": (
        "SELECT id, CASE WHEN id < 20 THEN f(u) WHEN id < 30 THEN f(id + 1) ELSE -1 END FROM d",
        {"f": 30},
    ),
    "if": ("SELECT IF(id < 20, f(u), 0) FROM d", {"f": 20}),
    "coalesce": ("SELECT coalesce(have, f(u)), nvl(have, f(u)) FROM d", {"f": 100}),
    "nvl2": ("SELECT nvl2(have, 1, f(u)), nullif(have, 5) FROM d", {"f": 100}),
    "decode": ("SELECT decode(b, 1, f(u), 2, f(id + 1)) FROM d", {"f": 114}),
    "and, or": (
        "SELECT id < 20 AND g(u), id > 20 OR g(id + 1), NOT (g(id + 2) AND id < 5) FROM d",
        {"g": 20 + 21 + ROWS},
    ),
    "nested": (
        "SELECT CASE WHEN id < 100 THEN coalesce(have, IF(b = 1, f(u), 0)) END FROM d",
        {"f": 4},
    ),
    "where a filter below has asked some": (
        "SELECT id, g(u) FROM d WHERE coalesce(have > 50, g(u))",
        {},
    ),
    "a filter's value, if another function says so": (
        of_values("SELECT IF(g(id), IF(id < 50, q, 0), b) FROM @ WHERE IF(id < 100, q, b) > 9"),
        {"f": 100, "g": 95},
    ),
    "a filter's value, if two others say so": (
        of_values(
            """SELECT IF(h(id) = 's1', IF(g(id), q, 0), b) FROM @ WHERE IF(id < 100, q, b) > 9"""
        ),
        {"f": 100, "g": 19, "h": 95},
    ),
    "decided by a subquery": (
        "SELECT IF(id < (SELECT max(k) FROM o), f(u), 0) FROM d",
        {"f": 19},
    ),
    "several places": (
        "SELECT IF(id < 20, f(u), 0), CASE WHEN id > 389 THEN f(u) END FROM d",
        {"f": 30},
    ),
    "also without a guard": ("SELECT f(u), IF(id < 20, f(u), 0) FROM d", {"f": ROWS}),
    "through names": (
        "SELECT IF(p > 390, q, 0), id FROM (SELECT id, id + 1 AS p, f(u) AS q FROM d) WHERE p > 5",
        {"f": 10},
    ),
    "in an argument": (
        "SELECT f(IF(id < 20, f(u), 0)) FROM d WHERE id >= 10",
        {"f": ROWS},
    ),
    "aggregate": ("SELECT b, sum(IF(id < 20, f(u), 0)) FROM d GROUP BY b", {"f": 20}),
    "filter clause": ("SELECT b, sum(f(u)) FILTER (WHERE id < 20) FROM d GROUP BY b", {"f": 20}),
    "group": ("SELECT IF(id < 20, h(u), 'x') AS k, count(*) FROM d GROUP BY 1", {"h": 20}),
    "window": ("SELECT id, sum(IF(id < 20, f(u), 0)) OVER (PARTITION BY b) FROM d", {"f": 20}),
    "filter": ("SELECT id FROM d WHERE CASE WHEN id < 20 THEN g(u) ELSE true END", {"g": 20}),
    "filter of a value": ("SELECT id FROM d WHERE coalesce(have, f(u)) > 300", {"f": 100}),
    "join": (
        "SELECT id, v FROM d JOIN o ON id = k AND CASE WHEN id < 10 THEN g(u) ELSE true END",
        {"g": 10},
    ),
    "key of a join": ("SELECT id, v FROM d JOIN o ON coalesce(have, f(u)) = k", {"f": 100}),
    "above a join with predicates": (
        "SELECT id, IF(v < 30, f(u), 0) FROM d JOIN o ON id = k WHERE g(u) AND h(v) < 's4'",
        {"f": 6},
    ),
    "above an outer join": (
        "SELECT id, IF(v < 10, f(u), 0) FROM d LEFT JOIN o ON id = k",
        {"f": 5},
    ),
    "union": (
        "SELECT IF(id < 20, f(u), 0) FROM d UNION ALL SELECT IF(k < 5, f(v), 0) FROM o",
        {"f": 25},
    ),
    "not needed": ("SELECT max(a) FROM (SELECT IF(id < 9, f(u), 0) AS a, h(u) FROM d)", {"f": 9}),
    "decided by a function": (
        "SELECT CASE WHEN g(b) THEN f(u) WHEN h(b) = 's1' THEN f(id + 5) END FROM d",
        {"f": 286, "g": ROWS, "h": 171},
    ),
    "decided in Spark": ("SELECT IF(upper(h(b)) = 'S1', f(u), 0) FROM d", {"f": 114, "h": ROWS}),
    "decided by each other": (
        "SELECT IF(id < 9, IF(g(u), f(u), 0), IF(f(u) > 9, IF(g(u), 1, 2), 3)) FROM d",
        {"f": 396, "g": ROWS},
    ),
    "other spellings": (
        """SELECT nanvl(IF(id % 4 = 0, double('nan'), double(id)), f(u)), ifnull(have, f(u)),
           zeroifnull(nvl(have, f(u))), CASE id % 4 WHEN 0 THEN f(u) END FROM d""",
        {"f": 100},
    ),
    "of a distinct": (of_values("SELECT DISTINCT IF(id < 20, q, 0) FROM @"), {"f": 20}),
    "having": (
        "SELECT b, max(f(u)) FILTER (WHERE id < 20) AS m FROM d GROUP BY b HAVING m > 1",
        {"f": 20},
    ),
    "above a top": (
        of_values("SELECT IF(id < 3, q, 0) FROM (SELECT * FROM @ ORDER BY id LIMIT 9)"),
        {"f": 3},
    ),
    "in a subquery": ("SELECT k, (SELECT max(IF(id < 5, f(u), 0)) FROM d) FROM o", {"f": 5}),
    "a value IN": (
        "SELECT k FROM o WHERE k IN (SELECT id FROM d WHERE IF(id < 9, f(u) > 3, true)) OR k > 18",
        {"f": 9},
    ),
    "a side that is left out": (
        of_values("SELECT k FROM o LEFT SEMI JOIN @ ON k = id AND IF(id < 10, q > k, true)"),
        {"f": 10},
    ),
    "decided by a subquery that calls functions": (
        """SELECT IF(id < (SELECT max(h) FROM (SELECT IF(k < 3, f(k), 9) AS h FROM o)), g(u), true)
           FROM d""",
        {"g": ROWS},
    ),
    "below a window": (
        of_values(
            """SELECT IF(id < 20, q, s)
               FROM (SELECT *, sum(id) OVER (PARTITION BY b) AS s FROM @) WHERE s > 9"""
        ),
        {"f": 20},
    ),
    # Of these all rows count: what decides is not there yet, may raise, or is by chance.
    "decided by the other side": (
        "SELECT id, v FROM d LEFT JOIN o ON id = k AND IF(v < 10, f(u) > v, true)",
        {"f": ROWS},
    ),
    "decided by what may raise": (
        of_values("SELECT IF(100 DIV (id - 30) > -9, q, 0) FROM @ JOIN o ON id = k"),
        {"f": ROWS},
    ),
    "decided by the name of what may raise": (
        of_values(
            """SELECT IF(p > -9, q, p)
               FROM (SELECT 100 DIV (id - 30) AS p, q FROM @ JOIN o ON id = k)"""
        ),
        {"f": ROWS},
    ),
    "decided by chance": (
        of_values("SELECT IF(rand(3) < 0.5, q, 0) FROM @"),
        {"f": ROWS},
    ),
    "decided by elements": (
        of_values("SELECT transform(sequence(1, 3), x -> IF(x > 1, q, id)) FROM @ WHERE id < 9"),
        {"f": 9},
    ),
    "one function on both sides": (
        of_values(
            """WITH c AS (SELECT * FROM @)
               SELECT x.id, IF(x.id < 20, x.q, 0), y.q FROM c x JOIN c y ON x.id = y.id"""
        ),
        {},
    ),
    "what a window looks at": (
        of_values(
            """SELECT IF(id < 20, q, 0), s
               FROM (SELECT *, sum(q) OVER (PARTITION BY b) AS s FROM @)"""
        ),
        {"f": ROWS},
    ),
}


def rows(df: DataFrame) -> list[str]:
    return sorted(map(repr, df.collect()))


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tables: None) -> dict[str, tuple[list[str], dict[str, int]]]:  # noqa: ARG001
    """Rows of plain Spark and its calls, by query."""
    found = {}
    for query, (statement, _) in QUERIES.items():
        counted = Counted(spark, "row")
        found[query] = rows(spark.sql(statement)), counted.calls()
    return found


@pytest.mark.parametrize("query", QUERIES)
def test_a_function_is_called_where_its_branch_is_taken(
    spark: SparkSession, plain: dict[str, tuple[list[str], dict[str, int]]], query: str
) -> None:
    statement, needed = QUERIES[query]
    expected, of_plain = plain[query]
    counted = Counted(spark, "row")
    assert rows(eddyline.adapt(spark.sql(statement), remember=False)) == expected
    calls = counted.calls()
    assert {name: calls[name] for name in needed} == needed
    assert all(calls[name] <= often for name, often in of_plain.items())


@pytest.mark.parametrize("kind", ["pickled", "pandas", "arrow"])
def test_functions_of_all_kinds_are_called_where_needed(
    spark: SparkSession, plain: dict[str, tuple[list[str], dict[str, int]]], kind: str
) -> None:
    for query in ("filter of a value", "decided by a function"):
        statement, needed = QUERIES[query]
        counted = Counted(spark, kind)
        with eddyline.enable(spark):
            assert rows(spark.sql(statement)) == plain[query][0]
        calls = counted.calls()
        assert all(calls[name] <= needed.get(name, 0) for name in calls)
        assert calls["f"] > 0


@pytest.mark.usefixtures("tables")
def test_functions_of_several_kinds_decide_on_each_other(spark: SparkSession) -> None:
    """Each kind is evaluated in a node of its own, where the others' values may not be there."""
    strict = F.udf(lambda value: value + 1, "long").asNondeterministic()  # of NULL it raises
    spark.udf.register("strict", strict)
    around = "SELECT IF(g(b), f(u), 0), IF(f(b) > 3, h(u), 'x'), IF(h(b) = 's1', g(u), true) FROM d"
    for statement in (around, of_values("SELECT id < 20 AND strict(q) > 7, id FROM @")):
        counted = Counted(spark, "pandas", "row", "arrow")
        expected, of_plain = rows(spark.sql(statement)), counted.calls()
        counted = Counted(spark, "pandas", "row", "arrow")
        assert rows(eddyline.adapt(spark.sql(statement), remember=False)) == expected
        assert all(calls <= of_plain[name] for name, calls in counted.calls().items())


# Plain Spark calls their functions for rows that are gone before, or below joins of an eddy.
HEDGED = {
    "functions that decide on each other above a top": """
        SELECT id AS o, f(u) > 9 OR g(u) FROM d WHERE g(id) ORDER BY o LIMIT 3""",
    "values above joins": """
        SELECT x.id, f(y.u) FROM d x JOIN d y ON x.b = y.u AND x.id = y.b WHERE g(y.u)""",
}


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("query", HEDGED)
def test_the_report_does_not_claim_to_have_counted_what_it_has_not(
    spark: SparkSession, query: str
) -> None:
    counted = Counted(spark, "row")
    expected, of_plain = rows(spark.sql(HEDGED[query])), counted.calls()
    adapted = eddyline.adapt(spark.sql(HEDGED[query]), joins="always")
    assert rows(adapted) == expected
    told = eddyline.report(adapted).to_dict()["compared"]
    assert told["plain_calls"] != sum(of_plain.values())
    assert told["estimated"] or (told["least"] and told["plain_calls"] < sum(of_plain.values()))


@pytest.mark.usefixtures("tables")
def test_a_part_of_what_a_filter_has_asked_decides(spark: SparkSession) -> None:
    """The struct is there from below, and what it decides on is called in a node above it."""
    spark.udf.register(
        "pair", F.udf(lambda value: (value if value % 3 else None, 1), "x long, y int")
    )
    statement = """SELECT id FROM (SELECT id, b, pair(u) AS q FROM d) AS n
                   WHERE g(coalesce(q.x, 2)) AND coalesce(q.x, f(f(b))) >=
                   (SELECT min(v) FROM o WHERE o.k = n.id)"""
    kind = "row" if INTEGERS_AS_THEY_ARE else "pickled"  # those of f(b) may be NULL
    counted = Counted(spark, kind)
    expected, of_plain = rows(spark.sql(statement)), counted.calls()
    counted = Counted(spark, kind)
    assert rows(eddyline.adapt(spark.sql(statement))) == expected
    made = counted.calls()
    assert made["g"] <= of_plain["g"]
    assert made["f"] < of_plain["f"]
    with eddyline.enable(spark):
        assert rows(spark.sql(statement)) == expected


@pytest.mark.usefixtures("tables")
def test_what_fails_behind_a_guard_does_not_fail(spark: SparkSession) -> None:
    spark.udf.register("inverse", F.udf(lambda value: 100 // value, "long"))
    spark.udf.register("is_small", F.udf(lambda value: value < 5, "boolean"))
    statement = "SELECT id, CASE WHEN id > 0 THEN inverse(u) END AS r FROM d WHERE id < 50"
    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        spark.sql(statement).collect()
    expected = [(n, 100 // n if n else None) for n in range(50)]
    adapted = eddyline.adapt(spark.sql(statement))
    assert sorted(adapted.collect()) == expected
    # So does what Spark computes for a function.
    native = "SELECT id, IF(id > 0, inverse(100 DIV id), NULL) AS r FROM d WHERE id < 50"
    expected = [(n, 100 // (100 // n) if n else None) for n in range(50)]
    assert sorted(eddyline.adapt(spark.sql(native)).collect()) == expected
    # Where none stands before it, the error is raised.
    unguarded = "SELECT IF(id > 0, inverse(u), inverse(id - 3)) AS r FROM d WHERE id = 3 OR id = 0"
    assert sorted(eddyline.adapt(spark.sql(unguarded)).collect()) == [(-34,), (33,)]
    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        eddyline.adapt(spark.sql(unguarded.replace("id > 0", "id = 0"))).collect()
