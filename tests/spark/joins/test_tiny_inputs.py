"""Small inputs: by how many tasks they are gathered, and that each action gathers them anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.spark.rewriting import join_rewrite

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


def test_tiny_inputs_are_read_by_one_task(spark: SparkSession) -> None:
    adapted = same(joined(spark))
    assert repartitions(adapted) == 3  # of each input, and of both together
    assert "Repartition 1, false" in gathering(adapted)


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
