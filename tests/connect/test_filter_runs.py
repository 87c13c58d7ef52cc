"""Conditions as a client sends them, and the blocks that are made of them; no server is asked."""

from __future__ import annotations

from typing import Any

import pytest

from eddyline.quirks.pyspark_at_hand import MINOR
from tests.connect.connect_server import lacking

if lacking() or MINOR < (4, 1):
    pytest.skip(f"Spark Connect's client lacks {lacking()}", allow_module_level=True)

from pyspark.sql.connect import functions
from pyspark.sql.connect.proto import Relation
from pyspark.sql.types import BooleanType, DateType, DoubleType, LongType, StringType

from eddyline.blocks.decline import DeclineReason, LeftToSpark
from eddyline.blocks.filter_block import SessionSettings
from eddyline.connect import messages
from eddyline.connect.conditions import asked_about
from eddyline.connect.filter_runs import (
    FilterClaim,
    FilterRun,
    _without_company,
    claimed,
    questions,
    run_at,
)
from eddyline.connect.messages import (
    conjuncts,
    key_of,
    python_functions,
    python_holders,
    text_of,
)
from eddyline.connect.plan_rewriting import parts_that_wait
from eddyline.connect.plan_walk import PlanRewriting
from eddyline.connect.sent_functions import needs_driver
from eddyline.connect.verbs import require_all_placed
from eddyline.errors import ConnectNotSupportedError, FunctionPlaceError
from eddyline.tasks.not_adapted import CascadeMark, ConcurrentMark

F: Any = functions  # Connect's columns have more to them than their types say

TYPES = {"id": '"long"', "n": '"integer"', "x": '"double"', "text": '"string"', "flag": '"boolean"'}


def udf(function: Any, returned: Any, *, arrow: bool = True) -> Any:  # noqa: ANN401 - Connect's columns
    return F.udf(function, returned, useArrow=arrow)


good = udf(lambda n: n > 1, BooleanType())
short = udf(lambda text: len(text) < 3, BooleanType())
score = udf(lambda n: n / 2, DoubleType())
label = udf(str, StringType())
born = udf(lambda n: n, DateType())
plus = udf(lambda n: n + 1, LongType(), arrow=False)
even = udf(lambda n: n % 2 == 0, BooleanType(), arrow=False)


def filtered(*conditions: Any) -> Relation:  # noqa: ANN401 - Connect's columns
    """Return filters above each other over a range, the first condition lowest."""
    relation = Relation()
    relation.range.end = 10
    for condition in conditions:
        above = Relation()
        above.filter.input.CopyFrom(relation)
        above.filter.condition.CopyFrom(condition._expr.to_plan(None))
        relation = above
    return relation


def types_of(run: FilterRun) -> dict[bytes, str]:
    """Return what a server would say of the types of columns, constants and conditions."""
    asked, _ = questions(run)
    known = {}
    for key, expression in asked.items():
        name = text_of(expression)
        functions = [one.function_name for one in python_functions(expression)]
        if expression.HasField("literal"):
            known[key] = '"integer"'
        else:
            known[key] = TYPES.get(name, '"long"' if functions == ["<lambda>"] else '"boolean"')
    return known


def claim_of(*conditions: Any) -> FilterClaim:  # noqa: ANN401 - likewise
    run = run_at(filtered(*conditions))
    return claimed(run, types_of(run), SessionSettings("UTC"), ansi=True)


def texts(*conditions: Any) -> list[str]:  # noqa: ANN401 - likewise
    block = claim_of(*conditions).block
    return [] if block is None else [text.replace("<lambda>", "f") for text in block.texts]


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (score("id") > 0.5, "f(id) > 0.5"),
        (score("id") > 1, "f(id) > 1.0"),
        (score("id") == F.col("x"), "f(id) = x"),
        (plus("id") <= 3, "f(id) <= 3"),
        (plus("id") > 2.5, "CAST(f(id) AS double) > 2.5"),
        (label("id").isin("a", "b"), "str(id) IN ('a', 'b')"),
        (label("id").like("a%"), "str(id) LIKE 'a%'"),
        (label("id").contains("a"), "str(id) contains 'a'"),
        (good("id").isNull(), "f(id) IS NULL"),
        (~good("id"), "NOT f(id)"),
        (good("id") | F.col("flag"), "f(id) OR flag"),
        (score("id") * 2 - 1 < 3, "((f(id) * 2.0) - 1.0) < 3.0"),
        (F.when(good("id"), F.lit(col=True)).otherwise(short("text")), "CASE WHEN f(id) THEN True"),
        (F.coalesce(good("id"), F.lit(col=False)), "coalesce(f(id), False)"),
        (born("id") > F.lit("2022-01-31").cast("date"), "f(id) > datetime.date(2022, 1, 31)"),
    ],
)
def test_what_is_understood(condition: Any, text: str) -> None:  # noqa: ANN401 - likewise
    found = texts(condition, short("text"), good("n"))
    assert any(one.startswith(text) for one in found), found


@pytest.mark.parametrize(
    "condition",
    [
        label("id") > 3,  # Spark casts one of them
        label("id").isin(1, 2),
        F.upper(label("id")) == "A",
        good("id") | (F.lit(1) / F.col("x") > 2),  # may raise
        good(F.expr("id + 1")),  # there may be a function in it
        F.coalesce(score("id"), F.lit(1)) > 3,
        born("id") > F.lit("2022-1-31").cast("date"),  # Spark may know better
        born("id") > F.lit("2022-02-31").cast("date"),
    ],
)
def test_what_is_left(condition: Any) -> None:  # noqa: ANN401 - likewise
    claim = claim_of(condition, short("text"), good("n"))
    assert len(claim.left) == 1
    assert claim.block is not None
    assert len(claim.block.texts) == 2


def test_one_term_is_not_worth_routing() -> None:
    claim = claim_of(good("id"), F.col("id") > 3)
    assert claim.block is None
    assert "fewer than two" in str(claim.left[0])
    assert claim.each_alone
    odd = F.upper(label("id")) == "A"  # is left
    assert not claim_of(good("id") & odd).each_alone
    assert not claim_of(good("id") & short("text")).each_alone


def test_spark_asks_one_kind_after_the_other() -> None:
    block = claim_of(even("id") & good("id") & (plus("id") > 3) & short("text")).block
    assert block is not None
    pickled, arrow = [0, 1], [2, 3]
    assert [block.waits[n] for n in pickled] == [0, 0]
    assert [block.waits[n] for n in arrow] == [2, 2]
    assert sorted(number for _, number in block.after) == [2, 2]


def test_what_is_called_with_another_ones_value_comes_after_it() -> None:
    block = claim_of(good(plus("id")) & even("id") & (score("id") > 3)).block
    assert block is not None
    assert block.texts[0].startswith("<lambda>(id)")
    assert block.waits == (0, 1, 1)


def test_what_spark_asks_after_something_that_is_left_is_left_too() -> None:
    odd = F.upper(label("id")) == "A"
    assert texts(odd & even("id") & (plus("id") > 3)) == []
    assert texts(even("id") & (plus("id") > 3) & odd) == ["f(id)", "f(id) > 3"]
    assert len(texts(even("id") & (plus("id") > 3) & odd & good("id"))) == 3  # in one go with it


def test_what_spark_calls_once_for_two_conditions_is_called_once() -> None:
    """The division may raise, and is left; with it goes what asks the same of `good`."""
    division = F.col("id") / F.col("n")
    both = good("id") & (division > 1) | short("text")
    claim = claim_of(good("id"), score("id") > 1, label("id") != "a", both)
    assert claim.block is not None
    assert [text.replace("<lambda>", "f") for text in claim.block.texts] == [
        "f(id) > 1.0",
        "NOT (str(id) = 'a')",
    ]
    together = "Spark calls its functions once for it and for what is left to it"
    assert [left.detail for left in claim.left if "f" in left.detail].count(together) == 1


def test_what_only_eddyline_can_call_is_not_left_for_company() -> None:
    """Spark may call `score` twice then; it cannot call the other function at all."""
    asked = udf(ConcurrentMark("ask", 1, 8, "", ""), BooleanType())("id")
    for one, kept in ((asked, 1), (good("id"), 0)):
        both = run_at(filtered(one | (score("id") > 2), score("id") > 1)).dependent
        found = _without_company(both, [0, 0], {id(both[0])}, FilterClaim())
        assert len(found) == kept


def test_arguments_that_may_raise_count_where_spark_filters_before() -> None:
    one_kind = claim_of(good(F.lit(1) / F.col("x")), short("text"))
    assert one_kind.block is not None
    assert claim_of(good(F.lit(1) / F.col("x")), even("id")).block is None


def test_conditions_are_rewritten_in_place() -> None:
    relation = filtered(good("id") & (F.col("id") > 3), F.upper(label("id")) == "A", short("text"))
    run = run_at(relation)
    claim = claimed(run, types_of(run), SessionSettings("UTC"), ansi=True)
    assert len(run.nodes) == 3
    block = F.col("eddy")._expr.to_plan(None)
    run.rewrite(claim.taken, [block])
    conditions = [[text_of(one) for one in conjuncts(node.filter.condition)] for node in run.nodes]
    assert conditions == [["eddy", "(upper(str(id)) = A)"], ["True"], ["(id > 3)"]]


def test_a_function_left_to_chance_is_a_run_of_its_own() -> None:
    noise = udf(lambda n: n, DoubleType()).asNondeterministic()
    relation = filtered(good("id"), noise("id") > 0.5, short("text"))
    assert len(run_at(relation).nodes) == 1


def test_what_only_eddyline_can_call_may_not_be_left() -> None:
    left = [LeftToSpark("ask(id)", DeclineReason.MAY_THROW)]
    for mark, error in (
        (ConcurrentMark("ask", 1, 8, "", ""), FunctionPlaceError),
        (CascadeMark("ask", 1), ConnectNotSupportedError),
    ):
        (function,) = python_functions(udf(mark, LongType())("id")._expr.to_plan(None))
        assert needs_driver(function.python_udf.command)
        relation = filtered(udf(mark, BooleanType())("id"))
        with pytest.raises(error):
            require_all_placed(PlanRewriting(relation, left=left))
    require_all_placed(PlanRewriting(filtered(good("id"))))


def test_what_has_python_in_it_is_found_by_one_walk() -> None:
    relation = filtered(F.col("id") > 3, good("id") & (F.col("id") > 4), short("text"))
    python = python_holders(relation)
    below = relation.filter.input
    first, second = below.filter.condition.unresolved_function.arguments
    assert [one in python for one in (relation, below, below.filter.input)] == [True, True, False]
    assert [one in python for one in (below.filter.condition, first, second)] == [True, True, False]


def test_deep_and_wide_plans_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages that are looked at grow with the plan, and not with its square."""
    seen = []

    def counted(message: Any) -> Any:  # noqa: ANN401 - likewise
        seen.append(message)
        return looked_at(message)

    looked_at = messages.parts
    monkeypatch.setattr(messages, "parts", counted)
    counts = []
    for many in (20, 40):
        relation = filtered(*[good("id") & (F.col("id") > n) for n in range(many)])
        seen.clear()
        assert list(parts_that_wait(relation)) == [(relation, 0)]
        counts.append(len(seen))
    assert counts[1] < 2.5 * counts[0]


def test_places_in_a_program_tell_nothing_apart() -> None:
    one = (F.col("id") > 3)._expr.to_plan(None)
    two = (F.col("id") > 3)._expr.to_plan(None)
    two.common.origin.python_origin.call_site = "elsewhere.py:3"
    assert key_of(one) == key_of(two)
    assert list(asked_about(good("id")._expr.to_plan(None))) == [
        key_of(F.col("id")._expr.to_plan(None))
    ]
