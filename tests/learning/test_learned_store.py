"""What tasks report is known by what was asked, fades, and is handed over to equal blocks alike."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from eddyline.blocks.filter_block import FilterBlock, FunctionKind, SessionSettings, UserFunction
from eddyline.blocks.join_block import JoinBlock
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.prior import Prior
from eddyline.expressions import And, Argument, Call, Comparison, ComparisonOperator, Or
from eddyline.learning import learned_store
from eddyline.learning.learned_store import EARLIER, LEAST, LearnedStore
from eddyline.learning.named_terms import named_parts
from eddyline.reports.learned_report import LearnedFunction, LearnedPredicate, LearnedScan
from eddyline.reports.records import FunctionRecord, PredicateRecord, TaskRecord
from tests.predicates import BOOL, INT

SETTINGS = SessionSettings("UTC")
COLUMNS = Argument(0, INT), Argument(1, INT)


def function(name: str) -> UserFunction:
    return UserFunction(
        name, FunctionKind.ARROW_BATCHED, (name.encode(),), ('"long"',), (None,), '"boolean"'
    )


def asked(number: int, column: int = 0) -> Call:
    return Call(number, (COLUMNS[column],), BOOL)


def block(*names: str, identity: str = "", column: int = 0) -> FilterBlock:
    """Return a block whose conjuncts are functions of one column."""
    calls = tuple(asked(number, column) for number in range(len(names)))
    predicate = And(calls) if len(calls) > 1 else calls[0]
    texts = tuple(f"{name}(a)" for name in names)
    functions = tuple(map(function, names))
    identity = identity or " ".join(names)
    return FilterBlock(identity, predicate, texts, functions, (), SETTINGS, ("a", "b"))


def saw(
    rows: int,
    passed: int,
    seconds: float,
    *,
    text: str = "f(a)",
    nested: tuple[PredicateRecord, ...] = (),
) -> PredicateRecord:
    return PredicateRecord(text=text, rows_in=rows, passed=passed, seconds=seconds, nested=nested)


def reported(
    store: LearnedStore,
    of: FilterBlock | JoinBlock,
    *predicates: PredicateRecord,
    functions: tuple[FunctionRecord, ...] = (),
    action: int = 1,
) -> None:
    store.reported(
        of,
        TaskRecord(block=of.identity, predicates=predicates, functions=functions, action=action),
    )


def test_another_block_over_the_same_functions_is_told() -> None:
    store = LearnedStore()
    reported(store, block("f", "g"), saw(1000, 100, 0.5), saw(100, 50, 0.1, text="g(a)"))
    assert store.told(block("h", "g", "f")) == (None, Prior(100, 50, 0.001), Prior(1000, 100, 5e-4))
    assert store.told(block("h")) == ()


def test_what_is_asked_of_another_column_or_function_is_something_else() -> None:
    f, other, edited = block("f"), block("f", column=1), block("f2")
    names = {named_parts(each).predicates[0].name for each in (f, other, edited)}
    assert len(names) == 3
    assert named_parts(f).functions == named_parts(other).functions != named_parts(edited).functions


def test_a_join_asks_what_a_filter_asks() -> None:
    relations = JoinRelation("R", (INT,)), JoinRelation("S", (INT,))
    query = JoinQuery(relations)
    r, s = query.column(0, 0), query.column(1, 0)
    equal = Comparison(ComparisonOperator.EQUAL, r, s)
    query = replace(
        query, predicates=(equal, Call(0, (r,), BOOL)), outputs=(r,), column_names=("a", "c")
    )
    join = JoinBlock("join", query, (function("f"),), SETTINGS, (), (), (("a",), ("c",)))
    store = LearnedStore()
    reported(store, block("f"), saw(1000, 100, 0.5))
    telling = store.for_one_rewriting()
    assert telling(join).query.priors == (Prior(1000, 100, 5e-4),)
    assert (telling(join), repr(telling(join))) == (join, repr(join))


def test_terms_of_an_or_are_told_too() -> None:
    either = replace(block("f", "g"), predicate=Or((asked(0), asked(1))), identity="or")
    store = LearnedStore()
    reported(store, block("f"), saw(1000, 100, 0.5))
    assert store.told(either) == ()  # of the OR as a whole nothing is known
    nested = saw(500, 60, 0.25), saw(440, 44, 0.11)
    reported(store, either, saw(500, 104, 0.36, nested=nested))
    (prior,) = store.told(either)
    assert prior is not None
    f, g = prior.nested
    assert f == Prior(1500, 160, 5e-4)
    assert g == Prior(440, 44, 0.11 / 440)


def test_a_handful_of_rows_tells_nothing() -> None:
    store = LearnedStore()
    reported(store, block("f"), saw(round(LEAST) - 1, 1, 0.1))
    assert store.told(block("f")) == ()
    reported(store, block("f"), saw(1, 1, 0.1))
    assert store.told(block("f")) != ()


def test_what_waits_for_a_model_to_load_is_no_cost() -> None:
    store = LearnedStore()
    reported(store, block("f"), replace(saw(101, 50, 5.1), first_rows=1, first_seconds=5.0))
    (prior,) = store.told(block("f"))
    assert prior is not None
    assert math.isclose(prior.cost, 0.001)


def test_the_last_action_outweighs_those_before() -> None:
    store, f = LearnedStore(), block("f")
    for action in (1, 2, 3):
        reported(store, f, saw(10**6, 10**5, 1.0), action=action)
    for _ in range(2):  # tasks of one action
        reported(store, f, saw(10_000, 9_000, 0.1), action=4)
    (prior,) = store.told(f)
    assert prior is not None
    assert prior.tuples == 20_000 + EARLIER
    assert prior.selectivity > 0.85


def test_a_block_is_told_the_same_until_something_matters() -> None:
    store, f = LearnedStore(), block("f")
    reported(store, f, saw(1000, 500, 1.0))
    told = store.told(f)
    reported(store, f, saw(1000, 510, 1.1))
    assert store.told(f) is told
    for other in (
        saw(9_000, 1_000, 9.0),
        saw(900_000, 100_000, 20_000.0),
        saw(10**8, 10**7, 10**6),
    ):
        reported(store, f, other)
        again = store.told(f)
        assert again != told
        told = again
    assert store.told(replace(f, limit=5)) is told  # which is the same block


def test_one_rewriting_tells_equal_blocks_the_same() -> None:
    store, f = LearnedStore(), block("f")
    telling = store.for_one_rewriting()
    reported(store, f, saw(1000, 500, 1.0))
    first = telling(f)
    reported(store, f, saw(9000, 0, 900.0))
    assert telling(f).priors == first.priors
    assert (first, first.identity) == (replace(f, priors=first.priors), f.identity)
    assert repr(first) == repr(f)


def test_what_is_known_is_bounded_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned_store, "MOST", 8)
    store = LearnedStore()
    for number in range(20):
        calls = FunctionRecord(name="f", calls=9)
        reported(store, block(f"f{number}"), saw(1000, 500, 1.0), functions=(calls,))
    assert len(store) == 16
    assert store.told(block("f0")) == ()
    assert store.told(block("f19")) != ()
    store.forget()
    assert len(store) == 0
    assert store.told(block("f19")) == ()


def test_people_see_what_is_known() -> None:
    store = LearnedStore()
    calls = FunctionRecord(
        name="f", calls=250, remembered=750, distinct=240, seconds=0.6, lookup_seconds=0.1
    )
    reported(store, block("f"), saw(1000, 100, 0.5), functions=(calls,))
    report = store.report()
    assert report.predicates == (LearnedPredicate("f(a)", 1000, 0.1, 5e-4),)
    assert report.functions == (LearnedFunction("f", 1000, 0.002, 0.75, 240),)


def test_what_is_known_is_plain_data() -> None:
    store = LearnedStore()
    calls = FunctionRecord(name="f", calls=250, remembered=750, seconds=0.6)
    reported(store, block("f"), saw(1000, 100, 0.5), functions=(calls,))
    data = json.loads(json.dumps(store.as_data()))
    again = LearnedStore()
    again.take_up(data)
    assert again.report() == store.report()
    assert again.told(block("f", "g")) == store.told(block("f", "g"))
    reported(again, block("f"), saw(4000, 2_000, 2.0))  # known here: what stands elsewhere is older
    seen = again.report().predicates
    again.take_up(data)
    assert again.report().predicates == seen


def test_what_scans_take_is_known_by_the_last_one() -> None:
    store = LearnedStore()
    assert store.scan_seconds("a") is None
    store.scanned("a", "parts", 30.0)
    store.scanned("a", "parts", 20.0)
    assert store.scan_seconds("a") == 20.0
    assert store.report().scans == (LearnedScan("parts", 20.0, 2),)
    assert "parts" in str(store.report())
    again = LearnedStore()
    again.scanned("b", "zips", 1.0)
    data = json.loads(json.dumps(store.as_data()))
    again.take_up(data)
    assert (again.scan_seconds("a"), again.scan_seconds("b"), len(again)) == (20.0, 1.0, 2)
    del data["scans"]  # as files of before have none
    LearnedStore().take_up(data)
    data["scans"] = [{"name": "a", "text": "parts", "seconds": -1.0, "times": 1}]
    with pytest.raises(ValueError, match="from 0 on"):
        LearnedStore().take_up(data)
    again.forget()
    assert again.scan_seconds("a") is None


@pytest.mark.parametrize(
    "change",
    [
        {"rows": float("nan")},
        {"rows": -1},
        {"rows": True},
        {"rows": "many"},
        {"hits": 1e9},
        {"seen": None},
        {"name": ...},
    ],
)
def test_data_that_cannot_be_is_not_taken_up(change: dict[str, Any]) -> None:
    store = LearnedStore()
    reported(store, block("f"), saw(1000, 100, 0.5))
    data = store.as_data()
    (known,) = data["predicates"]
    known |= change
    if ... in change.values():
        del known["name"]
    again = LearnedStore()
    with pytest.raises((KeyError, TypeError, ValueError)):
        again.take_up(data)
    with pytest.raises(TypeError):
        again.take_up({"predicates": 5})
    assert len(again) == 0
