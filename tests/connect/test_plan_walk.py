"""Whole plans as a client rewrites them; in the server's place is one that knows ranges and joins.

What Spark says of such plans is tested with a server; here is what a client makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from eddyline.quirks.pyspark_at_hand import MINOR
from tests.connect.connect_server import lacking

if lacking() or MINOR < (4, 1):
    pytest.skip(f"Spark Connect's client lacks {lacking()}", allow_module_level=True)

from pyspark.sql.connect import functions, proto
from pyspark.sql.connect.column import Column
from pyspark.sql.connect.expressions import ColumnReference
from pyspark.sql.connect.proto import Relation
from pyspark.sql.types import BooleanType, LongType, StringType, StructField

from eddyline.blocks.decline import DeclinedError, DeclineReason
from eddyline.blocks.filter_block import FilterBlock, SessionSettings
from eddyline.connect.added_columns import COLUMN
from eddyline.connect.messages import OURS, Expression, called, everything, named, python_functions
from eddyline.connect.plan_rewriting import PlanRewriter
from eddyline.connect.plan_walk import Makers, PlanRewriting
from eddyline.connect.server_answers import ExplainedPlan, Server, ServerSettings

F: Any = functions  # Connect's columns have more to them than their types say

INNER, OUTER = proto.Join.JoinType.JOIN_TYPE_INNER, proto.Join.JoinType.JOIN_TYPE_LEFT_OUTER
NAMES = {1: ["a", "k"], 2: ["b", "k"], 3: ["id"]}

label = F.udf(str, StringType(), useArrow=True)
alike = F.udf(lambda one, other: one == other, BooleanType(), useArrow=True)
pickled = F.udf(lambda n: n > 1, BooleanType(), useArrow=False)


class StandIn:
    """Answers as a server would."""

    def settings(self) -> ServerSettings:
        return ServerSettings(SessionSettings("UTC"), ansi=True)

    def explained(self, relation: Relation) -> ExplainedPlan:
        joins = any(one.HasField("join") for one in relations(relation))
        return ExplainedPlan(parting=joins, caches=False, streams=False, python=True)

    def types(
        self, _: Relation, expressions: Mapping[bytes, Expression], others: Sequence[Expression]
    ) -> dict[bytes, str]:
        asked = [*expressions.values(), *others]
        inside = (one for each in asked for one in everything(each) if isinstance(one, Expression))
        if any(named(one)[0] == "rand" for one in inside):
            raise DeclinedError(DeclineReason.NON_DETERMINISTIC, "as the server says")
        return {
            key: '"boolean"' if "<lambda>" in str(one) else '"long"'
            for key, one in expressions.items()
        }

    def fields(self, relation: Relation) -> list[StructField]:
        return [StructField(name, LongType()) for name in names_of(relation)]


def relations(relation: Relation) -> list[Relation]:
    return [one for one in everything(relation) if isinstance(one, Relation)]


def names_of(relation: Relation) -> list[str]:
    if relation.HasField("join"):
        return names_of(relation.join.left) + names_of(relation.join.right)
    if relation.HasField("project"):
        return [one.alias.name[0] for one in relation.project.expressions]
    return NAMES[relation.common.plan_id]


def made(block: FilterBlock) -> bytes:
    return OURS + block.identity.encode()


def rewritten(relation: Relation) -> PlanRewriting:
    rewriter = PlanRewriter(cast("Server", StandIn()), Makers(made, made, made))
    return rewriter.rewritten(relation)


def table(number: int) -> Relation:
    relation = Relation()
    relation.common.plan_id = number
    relation.range.end = 10
    return relation


def joined(kind: Any = INNER) -> Relation:  # noqa: ANN401 - an enum
    relation = Relation()
    relation.common.plan_id = 9
    relation.join.join_type = kind
    relation.join.left.CopyFrom(table(1))
    relation.join.right.CopyFrom(table(2))
    return relation


def filtered(over: Relation, condition: Any) -> Relation:  # noqa: ANN401 - Connect's columns
    relation = Relation()
    relation.common.plan_id = 10
    relation.filter.input.CopyFrom(over)
    relation.filter.condition.CopyFrom(condition._expr.to_plan(None))
    return relation


def listed(over: Relation, **items: Any) -> Relation:  # noqa: ANN401 - likewise
    relation = Relation()
    relation.common.plan_id = 11
    relation.project.input.CopyFrom(over)
    for name, item in items.items():
        relation.project.expressions.append(item.alias(name)._expr.to_plan(None))
    return relation


def latest(over: Relation, key: str) -> Relation:
    relation = Relation()
    relation.common.plan_id = 13
    relation.limit.limit = 7
    sort = relation.limit.input
    sort.common.plan_id, sort.sort.is_global = 12, True
    sort.sort.order.append(F.col(key).desc()._expr.to_plan(None).sort_order)
    sort.sort.input.CopyFrom(over)
    return relation


def of_node(name: str, number: int) -> Any:  # noqa: ANN401 - Connect's columns
    return Column(ColumnReference(name, number))


@pytest.mark.parametrize(
    ("one", "other", "kind", "handed"),
    [
        (F.col("a"), F.col("b"), INNER, True),
        (of_node("k", 1), of_node("k", 2), INNER, True),
        (of_node("a", 9), of_node("k", 2), INNER, True),
        (F.col("a"), F.col("a"), INNER, False),
        (of_node("k", 2), of_node("k", 2), INNER, False),
        (of_node("k", 2), F.col("b"), INNER, False),
        (F.col("a"), F.col("k"), INNER, False),  # of no certain side
        (of_node("k", 1), of_node("k", 2), OUTER, False),
    ],
)
def test_a_chain_stays_above_a_join_only_where_spark_has_its_filter_there(
    one: Any,  # noqa: ANN401 - Connect's columns
    other: Any,  # noqa: ANN401 - likewise
    kind: Any,  # noqa: ANN401 - an enum
    handed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    same = alike(one, other)
    found = rewritten(listed(filtered(joined(kind), same), s=same))
    assert (COLUMN in str(found.relation)) == handed


@pytest.mark.parametrize(
    ("item", "late"),
    [
        (label("id"), True),
        (label(F.rand(7) * 10), False),
        (F.concat(label("id"), F.rand(7)), False),
    ],
)
def test_what_is_left_to_chance_is_not_made_for_other_rows(
    item: Any,  # noqa: ANN401 - Connect's columns
    late: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    found = rewritten(latest(listed(table(3), n=F.col("id"), l=item), "n"))
    assert found.moved == late
    kinds = [str(one.WhichOneof("rel_type")) for one in relations(found.relation)]
    assert (kinds.index("project") < kinds.index("limit")) == late
    # Spark would push what is certain below the limit again.
    assert any(one.deterministic for one in python_functions(found.relation)) != late


def test_values_are_not_handed_on_where_functions_would_have_another_turn() -> None:
    """Spark calls the pickled one first, though it is below, for both filters are one to it."""
    guard = listed(filtered(table(3), pickled("id")), id=F.col("id") + 1)
    same = alike("id", "id")
    assert COLUMN not in str(rewritten(listed(filtered(guard, same), s=same)).relation)
    alone = listed(table(3), id=F.col("id") + 1)
    assert COLUMN in str(rewritten(listed(filtered(alone, same), s=same)).relation)


def test_values_are_not_handed_on_where_spark_filters_between_functions() -> None:
    """Spark asks the upper filter only for what the lower one keeps: its column is a function's."""
    same = alike("id", "id")
    for item, handed in ((F.col("id"), True), (label("id"), False)):
        lower = listed(filtered(table(3), same), id=item)
        assert (COLUMN in str(rewritten(listed(filtered(lower, same), s=same)).relation)) == handed


def test_a_chain_stands_on_nothing_that_is_left_to_chance() -> None:
    same = alike("id", "id")
    plain = filtered(table(3), same)
    beside = filtered(plain, F.col("id") > 3)
    assert COLUMN in str(rewritten(listed(beside, s=same)).relation)
    chance = filtered(plain, F.rand(7) > 0.5)
    assert COLUMN not in str(rewritten(listed(chance, s=same)).relation)


class Nesting(StandIn):
    """Asks about expressions as a client does, nested once more; they are not looked at."""

    def types(
        self, _: Relation, expressions: Mapping[bytes, Expression], others: Sequence[Expression]
    ) -> dict[bytes, str]:
        asked = [called("first", one) for one in (*expressions.values(), *others)]
        raise AssertionError(f"{len(asked)} are not too deep")


def test_what_would_be_nested_too_deeply_is_left() -> None:
    plan = table(3)
    for n in range(60):
        above = Relation()
        above.common.plan_id = 100 + n
        above.with_columns.input.CopyFrom(plan)
        alias = above.with_columns.aliases.add()
        alias.name.append(f"c{n}")
        alias.expr.CopyFrom(label(f"c{n - 1}" if n else "id")._expr.to_plan(None))
        plan = above
    rewriter = PlanRewriter(cast("Server", Nesting()), Makers(made, made, made))
    found = rewriter.rewritten(filtered(plan, F.col("c59") != "a"))
    assert not found.changed
    (left,) = found.left
    assert left.reason is DeclineReason.UNTRANSLATABLE
    assert "nested more deeply" in left.detail
