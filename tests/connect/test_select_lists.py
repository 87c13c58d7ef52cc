"""Which calls of select lists and aggregates get a memory; no server is asked."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.quirks.pyspark_at_hand import MINOR
from tests.connect.connect_server import lacking

if lacking() or MINOR < (4, 1):
    pytest.skip(f"Spark Connect's client lacks {lacking()}", allow_module_level=True)

from pyspark.sql.connect import functions, proto
from pyspark.sql.connect.proto import Relation
from pyspark.sql.types import LongType, StringType

from eddyline.connect.messages import OURS, python_functions, text_of
from eddyline.connect.select_lists import asked_values, wanted_values
from eddyline.connect.sent_functions import calls_at
from eddyline.tasks.not_adapted import ConcurrentMark

F: Any = functions  # Connect's columns have more to them than their types say

label = F.udf(str, StringType(), useArrow=True)
loud = F.udf(str.upper, StringType(), useArrow=True)
plus = F.udf(abs, LongType(), useArrow=False)
ask = F.udf(ConcurrentMark("ask", 1, 8, "", ""), StringType(), useArrow=True)


def listed(*items: Any) -> Relation:  # noqa: ANN401 - Connect's columns
    relation = Relation()
    relation.project.input.range.end = 10
    relation.project.expressions.extend(item._expr.to_plan(None) for item in items)
    return relation


def grouped(by: Any, *items: Any) -> Relation:  # noqa: ANN401 - likewise
    relation = Relation()
    relation.aggregate.input.range.end = 10
    relation.aggregate.group_type = proto.Aggregate.GroupType.GROUP_TYPE_GROUPBY
    relation.aggregate.grouping_expressions.append(by._expr.to_plan(None))
    relation.aggregate.aggregate_expressions.extend(item._expr.to_plan(None) for item in items)
    return relation


def wanted(relation: Relation) -> list[tuple[str, bool]]:
    """Return what remembers, and whether its column has a name of its own."""
    return [(text_of(value.expression), value.named) for value in wanted_values(relation)]


def test_a_nest_is_one_call() -> None:
    nest = loud(label("id"))
    assert [text_of(one) for one, _ in calls_at(nest._expr.to_plan(None))] == ["upper(str(id))"]
    assert wanted(listed(nest.alias("l"))) == [("upper(str(id))", True)]


def test_a_nest_without_a_name_stays() -> None:
    """Its column is called after both functions, and a block has one name."""
    nest = loud(label("id"))
    assert wanted(listed(nest, label("id"))) == [("str(id)", False)]
    assert wanted(listed(nest, nest.alias("l"))) == []


def test_of_functions_of_several_kinds_the_inner_one_remembers() -> None:
    assert wanted(listed(label(plus("id")).alias("l"))) == [("abs(id)", True)]


def test_what_is_grouped_by_inside_of_a_nest_stays() -> None:
    nest = loud(label("id"))
    assert wanted(grouped(label("id"), nest.alias("l"))) == []
    assert wanted(grouped(label("k"), nest.alias("l"))) == [
        ("str(k)", False),
        ("upper(str(id))", True),
    ]


def test_equal_calls_stay_equal() -> None:
    assert wanted(grouped(label("id"), F.upper(label("id")).alias("u"))) == [
        ("str(id)", False),
        ("str(id)", False),
    ]


def test_what_the_driver_is_asked_is_in_no_nest() -> None:
    """Spark never calls it: what it is called with is computed before, and remembers."""
    relation = listed(ask(label("id")).alias("l"))
    assert wanted(relation) == [("str(id)", True)]
    assert [text_of(value.expression) for value in asked_values(relation)] == [
        "ConcurrentMark(str(id))"
    ]


def test_what_an_earlier_rewriting_has_made_stays() -> None:
    relation = listed(loud(label("id")).alias("l"), label("k").alias("k"))
    for function in list(python_functions(relation)):
        if function.function_name == "upper":
            function.python_udf.command = OURS
    assert wanted(relation) == [("str(k)", True)]
