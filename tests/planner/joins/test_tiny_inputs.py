"""Small inputs: by how many tasks they are gathered, and that each action gathers them anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.planner.rewrite import join_rewrite

PARTS = 3

agree = F.udf(lambda one, other: (one + other) % 3 != 0, BooleanType())
odd = F.udf(lambda one: one % 2 == 1, BooleanType())


def joined(spark: SparkSession) -> DataFrame:
    """Return a join of rows with two small inputs, of several partitions each."""
    rows = spark.range(0, 3_000, 1, PARTS).selectExpr("id", "id % 50 AS a", "id % 40 AS b")
    some = spark.range(0, 50, 1, PARTS).selectExpr("id AS a", "id * 7 % 11 AS x")
    others = spark.range(0, 40, 1, PARTS).selectExpr("id AS b", "id * 5 % 13 AS y")
    return rows.join(some, "a").join(others, "b").where(agree("x", "y"))


def gathering(adapted: DataFrame) -> str:
    """Return the plan of the subquery that gathers small inputs."""
    plan = adapted._jdf.queryExecution().optimizedPlan().toString()
    (rows,) = [line for line in plan.splitlines() if "Union" in line]
    return str(plan[: plan.index(rows)].splitlines()[-1])


def same(plain: DataFrame) -> DataFrame:
    adapted = eddyline.adapt(plain, joins="always")
    assert sorted(adapted.collect()) == sorted(plain.collect())
    return adapted


def repartitions(adapted: DataFrame) -> int:
    plan = adapted._jdf.queryExecution().optimizedPlan().toString()
    return str(plan).count("Repartition 1, false")


def functions(adapted: DataFrame) -> int:
    """Return how many functions send the rows of small inputs."""
    plan = adapted._jdf.queryExecution().optimizedPlan().toString()
    return str(plan).count("MapInArrow rows for an eddy")


def test_tiny_inputs_are_read_by_one_task_and_one_function(spark: SparkSession) -> None:
    adapted = same(joined(spark))
    assert repartitions(adapted) == functions(adapted) == 1
    assert "Repartition 1, false" in gathering(adapted)


def test_tiny_inputs_of_all_kinds_are_told_apart(spark: SparkSession) -> None:
    """Columns share places by type; there are keys that are NULL, no rows, no columns."""
    rows = spark.range(0, 300, 1, PARTS).selectExpr("id", "id % 9 AS a", "id % 7 AS b", "id AS z")
    given = {
        "numbers": "SELECT IF(id = 3, NULL, id) a, id * id x, id / 3 AS part FROM range(9)",
        "texts": "SELECT id b, repeat('x', id) text, IF(id > 2, 'é', NULL) other FROM range(7)",
        "dates": "SELECT id a, DATE'2020-01-01' + INT(id) day, id % 2 = 0 even FROM range(9)",
        "bytes": "SELECT id b, CAST(text AS binary) bytes, timestamp_seconds(id) time FROM "
        "(SELECT id, CAST(id AS string) text FROM range(7))",
        "empty": "SELECT id a, 'no' AS nothing FROM range(0)",
        "counted": "SELECT 1 FROM range(2)",
    }
    tables = {name: spark.sql(sql) for name, sql in given.items()}
    whole = rows.join(tables["numbers"], "a").join(tables["texts"], "b")
    whole = whole.join(tables["dates"], "a").join(tables["bytes"], "b")
    whole = whole.crossJoin(tables["counted"].select()).where(agree("x", "z"))
    adapted = same(whole)
    assert adapted.count() > 100
    assert functions(adapted) == 1
    without = eddyline.adapt(whole.join(tables["empty"], "a"), joins="always")
    assert without.collect() == []


def test_nested_columns_of_tiny_inputs_have_a_function_of_their_own(spark: SparkSession) -> None:
    nested = spark.sql("SELECT id b, array(id, NULL) list, struct(id AS one) s FROM range(40)")
    more = joined(spark).join(nested, "b")
    adapted = same(more)
    assert (repartitions(adapted), functions(adapted)) == (3, 2)


def test_functions_that_look_at_a_tiny_input_are_called_side_by_side(spark: SparkSession) -> None:
    adapted = same(joined(spark).where(odd("x")))
    assert repartitions(adapted) == 1
    assert "Repartition" not in gathering(adapted)


def test_larger_inputs_are_read_by_several_tasks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_rewrite, "TINY", 10)
    assert not repartitions(same(joined(spark)))


def test_each_action_sees_the_rows_of_its_own_time(spark: SparkSession, tmp_path: Path) -> None:
    """Also one on a DataFrame that was derived, whose plan shares its parts with the first."""
    (tmp_path / "names.csv").write_text("0,1\n1,3\n")
    names = spark.read.csv(str(tmp_path), "a long, x long")
    rows = spark.range(0, 40, 1, 2).selectExpr("id", "id % 2 AS a", "id AS y")
    adapted = eddyline.adapt(rows.join(names, "a").where(agree("x", "y")), joins="always")
    first = adapted.agg(F.sum("x")).collect()
    (tmp_path / "names.csv").write_text("0,5\n1,8\n")
    again = adapted.agg(F.sum("x"), F.count("*")).collect()
    kept = [(y, x) for y in range(40) for x in [(5, 8)[y % 2]] if (x + y) % 3 != 0]
    assert first != again
    assert [tuple(row) for row in again] == [(sum(x for _, x in kept), len(kept))]
