"""Where verdicts and oracles stand in a plan, and for which rows thresholds are asked for."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention
from pyspark.sql.types import BooleanType, LongType
from pyspark.sql.udf import UserDefinedFunction

import eddyline
from eddyline import catalyst
from eddyline.catalyst import Plan
from eddyline.planner.read.chains import Tree
from eddyline.planner.rewrite.decided_cascades import CascadeCalls, with_cascades_decided
from eddyline.tasks.not_adapted import CascadeMark


def positive(number: int) -> bool:
    return number > 0


def verdict(number: int) -> bool | None:
    return None if number else False


fifth = eddyline.concurrent(lambda n: n % 5 == 0, returns="boolean")
is_fifth = eddyline.cascade(fifth, proxy=float, recall=0.9)
is_positive = F.udf(positive, BooleanType())
plus = F.udf(lambda n: n + 1, LongType())


class Deciding:
    """Decides all cascades by the same functions, and keeps the plans that these are for."""

    def __init__(self) -> None:
        self.populations: list[str] = []

    def __call__(self, mark: CascadeMark, function: Tree, below: Plan) -> CascadeCalls:
        assert function.name == "PythonUDF"
        self.populations.append(catalyst.tree_text(below))
        return CascadeCalls(UserDefinedFunction(verdict, BooleanType(), name=mark.name), fifth)


def rewritten(df: DataFrame) -> tuple[list[str], list[str], Plan]:
    """Return the nodes of a plan from the top, those of the populations, and the old plan."""
    deciding = Deciding()
    plan = catalyst.optimized_plan(df, as_written=True)  # type: ignore[arg-type]  # a classic one
    new = with_cascades_decided(plan, deciding)
    assert catalyst.output_numbers(new) == catalyst.output_numbers(plan)
    lines = catalyst.tree_text(new).splitlines()
    return lines, deciding.populations, plan


def place(lines: list[str], *parts: str) -> int:
    (found,) = [n for n, line in enumerate(lines) if all(part in line for part in parts)]
    return found


def test_a_plan_without_cascades_is_left_alone(spark: SparkSession) -> None:
    plan = catalyst.optimized_plan(spark.range(9).where(is_positive("id")))  # type: ignore[arg-type]
    assert with_cascades_decided(plan, Deciding()) is plan


def test_the_oracle_stands_above_all_filters_and_the_verdict_below(spark: SparkSession) -> None:
    lines, (population,), _ = rewritten(spark.range(9).where(is_fifth("id") & is_positive("id")))
    oracle = place(lines, "EvalPython", "answer")
    assert place(lines, "Filter", "coalesce", "answer") < oracle
    assert oracle < place(lines, "Filter pythonUDF") < place(lines, "EvalPython", "verdict")
    assert oracle < place(lines, "Filter", "coalesce(verdict", "true)")
    assert "positive" in population
    assert "Filter" in population


def test_what_no_filter_is_about_is_for_rows_that_the_cascade_keeps(spark: SparkSession) -> None:
    query = spark.range(9).where(is_fifth("id")).select(plus("id"))
    lines, (population,), _ = rewritten(query)
    function = place(lines, "BatchEvalPython", "pythonUDF")
    assert function < place(lines, "Filter", "coalesce", "answer")
    assert "EvalPython" not in population


def test_conditions_over_concurrent_functions_are_for_no_population(spark: SparkSession) -> None:
    other = eddyline.concurrent(lambda n: n > 1, returns="boolean")
    lines, (population,), _ = rewritten(
        spark.range(9).where(is_fifth("id") & other("id") & is_positive("id"))
    )
    oracle = place(lines, "EvalPython", "answer")
    assert all(oracle < n for n, line in enumerate(lines) if "Filter pythonUDF" in line)
    assert "positive" in population
    assert "EvalPython [<lambda>" not in population


def test_a_value_that_is_wanted_above_has_its_name(spark: SparkSession) -> None:
    query = spark.range(9).select("id", is_fifth("id").alias("kept"))
    lines, _, _ = rewritten(query)
    assert "coalesce(verdict" in "".join(lines)
    assert "AS kept" in lines[0]
