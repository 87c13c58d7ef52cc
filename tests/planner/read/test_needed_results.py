"""What nodes above an evaluation need of its results, in terms of what is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline import catalyst
from eddyline.catalyst import Plan
from eddyline.planner.read.chains import EvaluationLink, read_link
from eddyline.planner.read.needed_results import NeededResults
from eddyline.planner.read.needs import ALWAYS, conditions_of

VECTORIZED: Any = F  # of which the type checker does not know all


@pytest.fixture(scope="module", autouse=True)
def functions(spark: SparkSession) -> Iterator[None]:
    """Functions of three kinds, each of which Spark evaluates in a node of its own."""
    spark.udf.register("row", F.udf(lambda value: value, "long", useArrow=True))
    spark.udf.register("pickled", F.udf(lambda value: value, "long", useArrow=False))
    spark.udf.register("series", VECTORIZED.pandas_udf(lambda values: values, "long"))
    yield
    for name in ("row", "pickled", "series"):
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")


def evaluations(plan: Plan) -> Iterator[EvaluationLink]:
    link, _ = read_link(plan)
    if isinstance(link, EvaluationLink):
        yield link
    for child in catalyst.children(plan):
        yield from evaluations(child)


def optimized(df: DataFrame) -> Plan:
    assert catalyst.is_classic(df)
    return catalyst.optimized_plan(df)


def test_conditions_look_at_what_is_there(spark: SparkSession) -> None:
    """Each kind decides on the next: to one of them the others come too late."""
    plan = optimized(
        spark.range(9).selectExpr(
            "IF(row(id) > 1, pickled(id + 1), 0)",
            "IF(pickled(id) > 1, series(id + 1), 0)",
            "IF(series(id) > 1, row(id + 1), 0)",
        )
    )
    needed = NeededResults(plan)
    assert needed.any()
    links = list(evaluations(plan))
    assert len(links) == 3
    for link in links:
        there = set(catalyst.output_numbers(link.plan))
        for result in link.results:
            for condition in conditions_of(needed.of(result.identity)):
                assert {number for number, _ in condition.attributes} <= there


def test_of_a_result_that_two_nodes_give_all_rows_count(spark: SparkSession) -> None:
    """Copies of a plan carry the same identities, and not all look at the same rows."""
    some = optimized(spark.range(9).selectExpr("IF(id > 5, row(id), 0)"))
    (link,) = evaluations(some)
    (result,) = link.results
    assert NeededResults(some).of(result.identity) is not ALWAYS
    for left, right in ((some, link.plan), (link.plan, some)):
        both = catalyst.inner_join_of(left, right, catalyst.literal_true())
        assert NeededResults(both).of(result.identity) is ALWAYS
