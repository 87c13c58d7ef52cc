"""For which rows a value is needed: conditions put together, and what is not known left out."""

from __future__ import annotations

from pyspark.sql import SparkSession

from eddyline import catalyst
from eddyline.planner.read.chains import ExpressionId, Tree
from eddyline.planner.read.needs import (
    ALWAYS,
    NEVER,
    Condition,
    any_of,
    as_expression,
    conditions_of,
    needed_in,
    within,
    without,
)

# What is needed of y.
NEEDS = {
    "x": "false",
    "x + y": "true",
    "IF(a, y, 0)": "CASE WHEN a THEN true ELSE false END",
    "IF(y > 1, x, 0)": "true",
    "IF(a, y, y + 1)": "true",
    "CASE WHEN a THEN y WHEN b THEN x ELSE y END": (
        "CASE WHEN a THEN true WHEN b THEN false ELSE true END"
    ),
    "CASE WHEN a THEN x WHEN y > 1 THEN x ELSE y END": (
        "(CASE WHEN a THEN false ELSE true END OR CASE WHEN a THEN false ELSE true END)"
    ),
    "IF(a, IF(b, y, 0), 0)": (
        "CASE WHEN a THEN CASE WHEN b THEN true ELSE false END ELSE false END"
    ),
    "coalesce(x, y)": "CASE WHEN (x IS NOT NULL) THEN false ELSE true END",
    "a AND y > 1": "CASE WHEN (NOT a) THEN false ELSE true END",
    "a OR b OR y > 1": "CASE WHEN a THEN false WHEN b THEN false ELSE true END",
    "y > 1 AND a": "true",
    "nanvl(x, y)": "CASE WHEN (NOT isnan(x)) THEN false ELSE true END",
}


def read(spark: SparkSession, text: str) -> tuple[Tree, ExpressionId]:
    """Return an expression over conditions a, b and numbers x, y, and the identity of y."""
    columns = spark.range(1).selectExpr(
        "id > 1 AS a", "id > 2 AS b", "double(id) AS x", "double(id) AS y"
    )
    df = columns.selectExpr(f"{text} AS v")
    assert catalyst.is_classic(df)
    project = catalyst.analyzed_plan(df)
    (below,) = catalyst.children(project)
    item = catalyst.project_item(project, 0)
    return Tree.of(item), Tree.of(catalyst.outputs(below)[3]).identity


def test_a_need_says_which_rows_look_at_a_value(spark: SparkSession) -> None:
    found = {}
    for text in NEEDS:
        tree, wanted = read(spark, text)
        found[text] = catalyst.pretty(as_expression(needed_in(tree, wanted)))
    assert found == NEEDS


def test_what_is_not_known_needs_more_rows(spark: SparkSession) -> None:
    tree, y = read(spark, "CASE WHEN a THEN x WHEN b THEN y ELSE x END")
    need = needed_in(tree, y)
    a, b = conditions_of(need)

    def all_but(unknown: Condition) -> str:
        return catalyst.pretty(as_expression(without(need, lambda each: each is not unknown)))

    assert all_but(b) == "CASE WHEN a THEN false ELSE true END"
    assert without(need, lambda each: each is not a) is not NEVER
    assert all_but(a) == "CASE WHEN b THEN true ELSE false END"


def test_needs_are_put_together(spark: SparkSession) -> None:
    need = needed_in(*read(spark, "IF(a, y, 0)"))
    assert any_of([need, NEVER]) is need
    assert any_of([need, ALWAYS]) is ALWAYS
    assert within(need, ALWAYS) is need
    assert within(NEVER, need) is NEVER
    other = needed_in(*read(spark, "IF(b, y, 0)"))
    both = catalyst.pretty(as_expression(within(need, other)))
    assert both.count("CASE WHEN") == 3
    assert len(list(conditions_of(any_of([need, other])))) == 2
