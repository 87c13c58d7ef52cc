"""Filters on added columns, told in terms of what these are made of; no server is asked."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.quirks.pyspark_at_hand import MINOR
from tests.connect.connect_server import lacking

if lacking() or MINOR < (4, 1):
    pytest.skip(f"Spark Connect's client lacks {lacking()}", allow_module_level=True)

from pyspark.sql.connect import functions
from pyspark.sql.connect.column import Column
from pyspark.sql.connect.expressions import ColumnReference
from pyspark.sql.connect.proto import Relation
from pyspark.sql.types import BooleanType, DoubleType, StringType, StructField

from eddyline.blocks.filter_block import SessionSettings
from eddyline.connect.added_columns import (
    COLUMN,
    AddedColumns,
    added_columns,
    below,
    fields_of_items,
)
from eddyline.connect.filter_runs import claimed, questions
from eddyline.connect.messages import attribute, conjuncts, key_of, python_functions, text_of

F: Any = functions  # Connect's columns have more to them than their types say

score = F.udf(lambda n: n / 2, DoubleType(), useArrow=True)
good = F.udf(lambda n: n > 1, BooleanType(), useArrow=True)
label = F.udf(str, StringType(), useArrow=True)
noise = F.udf(lambda n: n, DoubleType(), useArrow=True).asNondeterministic()


def chain(*steps: Any) -> Relation:  # noqa: ANN401 - conditions, and names with columns
    """Return filters and added columns above each other over a range, the first step lowest."""
    relation = Relation()
    relation.range.end = 10
    relation.common.plan_id = 100
    for number, step in enumerate(steps, 101):
        above = Relation()
        above.common.plan_id = number
        if isinstance(step, tuple):
            name, column = step
            above.with_columns.input.CopyFrom(relation)
            alias = above.with_columns.aliases.add()
            alias.name.append(name)
            alias.expr.CopyFrom(column._expr.to_plan(None))
        else:
            above.filter.input.CopyFrom(relation)
            above.filter.condition.CopyFrom(step._expr.to_plan(None))
        relation = above
    return relation


def listed(below: Relation, *columns: Any) -> Relation:  # noqa: ANN401 - Connect's columns
    """Return a select list over a relation."""
    relation = Relation()
    relation.common.plan_id = 200
    relation.project.input.CopyFrom(below)
    relation.project.expressions.extend(column._expr.to_plan(None) for column in columns)
    return relation


def of_node(name: str, number: int) -> Any:  # noqa: ANN401 - Connect's columns
    """Return a column of a relation, as ``df.name`` is one."""
    return Column(ColumnReference(name, number))


def read(*steps: Any) -> AddedColumns | None:  # noqa: ANN401 - likewise
    return added_columns(chain(*steps), lambda _: False)


def texts(found: AddedColumns | None) -> list[str]:
    assert found is not None
    told = [text_of(condition.expression) for condition in found.conditions]
    return [text.replace("<lambda>", "f") for text in told]


def test_conditions_are_told_in_terms_of_what_the_chain_stands_on() -> None:
    found = read(
        F.col("id") > 3,
        ("s", score("id")),
        ("u", F.col("s") * 2),
        F.col("u") > 0.6,
        ("id", F.col("id") + 1),
        good("id") & good("u"),
    )
    assert texts(found) == ["(id > 3)", "((f(id) * 2) > 0.6)", "f((id + 1))", "f((f(id) * 2))"]
    assert found is not None
    assert [condition.level for condition in found.conditions] == [0, 3, 5, 5]
    assert [condition.guarded for condition in found.conditions] == [False, False, True, True]
    assert found.base.HasField("range")


def test_filters_that_need_no_added_column_are_runs_of_filters() -> None:
    assert read(("s", F.col("id") * 2), good("id") & good("s")) is None
    assert read(("s", score("id")), good("id")) is None
    assert read(F.col("id") > 3, good("id")) is None


@pytest.mark.parametrize(
    ("steps", "base"),
    [
        ((("s", score("id")), F.expr("s > 3"), ("t", score("s")), F.col("t") > 1), "filter"),
        ((("x", F.explode("xs")), ("s", score("x")), F.col("s") > 1), "with_columns"),
        ((("r", noise("id")), ("s", score("r")), F.col("s") > 1), "with_columns"),
        ((("S", F.col("id")), ("s", score("S")), F.col("s") > 1), "with_columns"),
        ((("a b", F.col("id")), ("s", score("id")), F.col("s") > F.col("`a b`")), "with_columns"),
    ],
)
def test_a_chain_ends_above_what_is_not_plain(steps: Any, base: str) -> None:  # noqa: ANN401 - likewise
    found = read(*steps)
    assert found is not None
    assert found.base.WhichOneof("rel_type") == base


def test_names_that_are_not_clear_leave_the_filter_as_it_is() -> None:
    """Spark may or may not take S for s, and a field of an added column is none of the range's.

    Columns of metadata are none that a relation shows.
    """
    assert read(("s", score("id")), (F.col("S") > 1) & (F.col("s") > 2)) is None
    assert read(("s", score("id")), (F.col("s.field") > 1) & (F.col("s") > 2)) is None
    assert read(("s", score("id")), ("s", score("s")), of_node("s", 101) > 1) is None
    assert read(("s", score("id")), of_node("s", 100) > 1) is None
    hidden = Column(ColumnReference("_metadata", None, is_metadata_column=True))
    assert read(("s", score("id")), (hidden > 1) & (F.col("s") > 2)) is None


def test_columns_of_relations_of_the_chain_are_looked_for_below() -> None:
    found = read(("s", score("id")), (of_node("s", 101) > 1) & (of_node("id", 101) > 2))
    assert texts(found) == ["(f(id) > 1)", "(id > 2)"]
    assert found is not None
    assert (
        not found.conditions[1]
        .expression.unresolved_function.arguments[0]
        .unresolved_attribute.HasField("plan_id")
    )
    kept = read(("s", score("id")), (F.col("s") > 1) & (of_node("id", 100) > 2))
    assert kept is not None
    looked_at = kept.conditions[1].expression.unresolved_function.arguments[0]
    assert looked_at.unresolved_attribute.plan_id == 100


def test_columns_that_double_are_told_up_to_a_size() -> None:
    doubled = [("s", F.col("s") + F.col("s"))] * 20
    found = read(("s", score("id")), *doubled, F.col("s") > 1)
    assert found is None or len(found.nodes) < 20


def test_what_is_cached_ends_a_chain() -> None:
    relation = chain(("s", score("id")), ("t", score("s")), F.col("t") > 1)
    found = added_columns(relation, lambda node: node.common.plan_id == 101)
    assert found is not None
    assert found.base.common.plan_id == 101


def test_the_block_is_put_below_and_its_values_are_taken() -> None:
    found = read(
        ("s", score("id")),
        ("t", label("s")),
        (F.col("s") > 1) & (F.col("id") > 3),
        ("v", score("id") + 1),
        good("s"),
    )
    assert found is not None
    top = found.nodes[0]
    run = found.run
    asked, _ = questions(run)
    types = {key: '"long"' if text_of(one) == "id" else '"double"' for key, one in asked.items()}
    claim = claimed(run, types, SessionSettings("UTC"), ansi=True, wanted=found.calls)
    assert claim.block is not None
    assert len(claim.block.texts) == 2
    assert list(claim.outputs.values()) == ["v0"]  # label is not called in the block
    links = found.rewrite(claim, attribute("eddy"))
    assert links[0] is top
    kinds = [link.WhichOneof("rel_type") for link in links]
    chain_kinds = ["filter", "with_columns", "filter", "with_columns", "with_columns"]
    assert kinds == ["drop", *chain_kinds, "project", "range"]
    assert list(top.drop.column_names) == [COLUMN]
    assert [node.common.plan_id for node in links[1:6]] == [105, 104, 103, 102, 101]
    assert below(links[-2]) is links[-1]
    assert [text_of(links[n].filter.condition) for n in (1, 3)] == ["True", "(id > 3)"]
    made = [text_of(links[n].with_columns.aliases[0].expr) for n in (2, 4, 5)]
    assert made == [f"({COLUMN}.v0 + 1)", "str(s)", f"{COLUMN}.v0"]
    columns = links[6].project.expressions
    assert list(map(text_of, columns)) == [
        "unresolved star",
        "explode(when(eddy.keep, array(eddy)))",
    ]
    left = [one.function_name for one in python_functions(top)]
    assert left == ["str"]
    assert all(conjuncts(link.filter.condition) for link in links if link.HasField("filter"))


def test_a_select_list_takes_the_values_of_conditions() -> None:
    filtered = chain((score("id") > 1) & (F.col("id") > 3))
    relation = listed(filtered, (score("id") + 1).alias("more"), label("id"), F.col("id"))
    found = added_columns(relation, lambda _: False)
    assert found is not None
    run = found.run
    asked, _ = questions(run)
    types = dict.fromkeys(asked, '"long"')
    claim = claimed(run, types, SessionSettings("UTC"), ansi=True, wanted=found.calls)
    assert claim.block is not None  # though there is one term
    assert found.unnamed(claim.outputs) == []
    links = found.rewrite(claim, attribute("eddy"))
    kinds = [link.WhichOneof("rel_type") for link in links]
    assert kinds == ["project", "filter", "project", "range"]
    texts_of = [text_of(one) for one in relation.project.expressions]
    assert texts_of == [f"({COLUMN}.v0 + 1)", "str(id)", "id"]
    assert [text_of(one) for one in conjuncts(links[1].filter.condition)] == ["(id > 3)"]


def test_a_star_is_without_the_column_of_the_block() -> None:
    relation = listed(chain(score("id") > 1), F.col("*"), score("id"))
    found = added_columns(relation, lambda _: False)
    assert found is not None
    (call,) = found.calls
    assert found.unnamed({key_of(call): "v0"}) == [1]
    run = found.run
    asked, _ = questions(run)
    types = dict.fromkeys(asked, '"long"')
    claim = claimed(run, types, SessionSettings("UTC"), ansi=True, wanted=found.calls)
    top = found.rewrite(claim, attribute("eddy"))[0]
    assert list(top.drop.column_names) == [COLUMN]
    assert top.drop.input.common.plan_id == 200


@pytest.mark.parametrize(
    "item",
    [
        F.struct("*"),
        F.expr("id + 1"),
        F.explode(F.array("id")),
        noise("id"),
        label("id"),  # nothing asks for it
    ],
)
def test_select_lists_that_are_not_plain_stay(item: Any) -> None:  # noqa: ANN401 - likewise
    alone = listed(chain(good("id")), item)
    assert added_columns(alone, lambda _: False) is None
    shared = listed(chain(score("id") > 1), item, score("id").alias("s"))
    plain = text_of(item._expr.to_plan(None)) == "str(id)"
    assert (added_columns(shared, lambda _: False) is not None) == plain


def test_fields_are_those_of_items() -> None:
    a, b, c = (StructField(name, StringType()) for name in "abc")
    star, one, other = (col._expr.to_plan(None) for col in (F.col("*"), F.col("a"), label("b")))
    assert fields_of_items([one, other], 0, [a, b]) == [a, b]
    assert fields_of_items([one, star, other], 0, [a, b, b, c]) == [a, None, c]
    assert fields_of_items([star, other], 0, [c]) == [None, c]
    assert fields_of_items([one, star, star], 0, [a, b, c]) is None
    assert fields_of_items([one, other], 1, [b]) == [None, b]
    assert fields_of_items([one, other], 0, [b]) is None
