"""Sides of joins that conditions look at; no server is asked."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.quirks.pyspark_at_hand import MINOR
from tests.connect.connect_server import lacking

if lacking() or MINOR < (4, 1):
    pytest.skip(f"Spark Connect's client lacks {lacking()}", allow_module_level=True)

from pyspark.sql.connect import functions, proto
from pyspark.sql.connect.column import Column
from pyspark.sql.connect.expressions import ColumnReference
from pyspark.sql.connect.proto import Relation

from eddyline.connect.messages import columns_in
from eddyline.connect.push_down import sides_looked_at, way_of

F: Any = functions  # Connect's columns have more to them than their types say

INNER, OUTER = proto.Join.JoinType.JOIN_TYPE_INNER, proto.Join.JoinType.JOIN_TYPE_LEFT_OUTER
NAMES = {1: ["a", "k"], 2: ["b", "K"], 3: ["c"]}


def joined(left: Relation | int, right: int, kind: Any = INNER) -> Relation:  # noqa: ANN401 - an enum
    relation = Relation()
    relation.join.join_type = kind
    relation.common.plan_id = 9
    for side, given in ((relation.join.left, left), (relation.join.right, right)):
        if isinstance(given, Relation):
            side.CopyFrom(given)
        else:
            side.common.plan_id = given
            side.range.end = 10
    return relation


def names_of(relation: Relation) -> list[str]:
    if relation.HasField("join"):
        return names_of(relation.join.left) + names_of(relation.join.right)
    return NAMES[relation.common.plan_id]


def of_node(name: str, number: int) -> Any:  # noqa: ANN401 - Connect's columns
    return Column(ColumnReference(name, number))


def sides(condition: Any, join: Relation) -> set[str] | None:  # noqa: ANN401 - likewise
    found = sides_looked_at(columns_in(condition._expr.to_plan(None)), join, names_of)
    return None if found is None else set(found)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (F.col("a") > F.col("A"), {"left"}),
        (F.col("a") > F.col("b"), {"left", "right"}),
        (of_node("k", 2) > 3, {"right"}),
        (of_node("k", 2) > of_node("k", 1), {"left", "right"}),
        (of_node("a", 9) > 3, {"left"}),
        (F.col("a") > F.col("k"), None),
        (F.col("a") > F.col("b.x"), None),
        (F.lit(3) > 2, None),
    ],
)
def test_sides_that_are_looked_at(condition: Any, expected: set[str] | None) -> None:  # noqa: ANN401 - likewise
    assert sides(condition, joined(1, 2)) == expected


def test_a_relation_on_both_sides_is_of_no_certain_one() -> None:
    assert sides(of_node("k", 1) > 3, joined(1, 1)) is None


def way(condition: Any, join: Relation) -> tuple[str, ...] | None:  # noqa: ANN401 - likewise
    columns = columns_in(condition._expr.to_plan(None))
    return way_of(
        join,
        lambda one: sides_looked_at(columns, one, names_of),
        lambda _: False,
        lambda _: False,
    )


def test_conditions_on_both_sides_stay_above_an_inner_join() -> None:
    assert way(F.col("a") > F.col("b"), joined(1, 2)) == ()
    assert way(F.col("a") > F.col("b"), joined(joined(1, 2), 3)) == ("left",)
    assert way(F.col("a") > F.col("c"), joined(joined(1, 2), 3)) == ()
    assert way(F.col("a") > 3, joined(joined(1, 2), 3)) == ("left", "left")
    assert way(F.col("a") > F.col("b"), joined(1, 2, OUTER)) is None
