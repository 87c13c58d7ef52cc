"""What the map side of a join asks: all of copied rows, else what costs less than it saves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
import pytest

from eddyline.blocks.chosen_policy import ChosenPolicy
from eddyline.blocks.routing_options import RoutingOptions
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.policies.catalogue import PolicyName
from eddyline.exchange.blobs import Blob, packed, unpacked
from eddyline.expressions import Call, Expression
from eddyline.latest import Latest
from eddyline.reports.merging import merge
from eddyline.tasks import block_task, early_selection, task_functions
from eddyline.tasks.calling import MadeFunction
from eddyline.tasks.early_selection import TRIAL, EarlySelection
from eddyline.tasks.join_task import reading
from tests.joins import BOOL, Refused
from tests.tasks.join_blocks import INPUT, OTHER, Closed, asked, block_of, conjuncts, either

ROWS = 1_000
EVERYTHING, NOTHING = 1e6, 0.0
"""Seconds that a row saves, so that any predicate is worth asking that drops one, or none is."""

Make = Callable[..., EarlySelection]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make the selection of a task, in a worker that remembers nothing from other tests."""
    memory = block_task.WorkerMemory(Latest(64), Latest(4))
    monkeypatch.setattr(block_task, "MEMORY", memory)

    def made(
        predicates: Callable[[JoinQuery], Sequence[Expression]],
        *functions: Closed,
        saved: float = EVERYTHING,
        policy: str = "adaptive",
        relation: int = INPUT,
    ) -> EarlySelection:
        by_name = {f"f{number}": function for number, function in enumerate(functions)}
        made = partial(MadeFunction, forgetful=True)
        monkeypatch.setattr(
            task_functions, "made_function", lambda each, *_: made(by_name[each.name])
        )
        monkeypatch.setattr(early_selection, "SAVED", saved)
        block = block_of(predicates, len(functions))
        return EarlySelection(block, relation, RoutingOptions(ChosenPolicy(policy)))

    return made


def batch(start: int = 0, rows: int = ROWS) -> pa.RecordBatch:
    """Return rows of the input; a column more than it has goes along."""
    numbers = pa.array(range(start, start + rows))
    return pa.record_batch([numbers, numbers, numbers], names=["c0", "c1", "number"])


def checked(early: EarlySelection, rows: pa.RecordBatch, *, copied: bool) -> dict[int, list[int]]:
    """Return the rows that go on, by what they have passed."""
    found: dict[int, list[int]] = {}
    for each in early.check(rows, copied=copied):
        assert each.batch.schema == rows.schema
        found.setdefault(each.done, []).extend(each.batch.column("number").to_pylist())
    return found


def refuse(value: int) -> bool:
    raise Refused(value)


def test_copied_rows_are_asked_about_by_all_predicates(make: Make) -> None:
    functions = Closed(lambda n: n % 2 == 0), Closed(lambda n: n % 3 == 0)
    early = make(conjuncts(0, 1), *functions, saved=NOTHING)
    found = checked(early, batch(), copied=True)
    assert {done: sorted(rows) for done, rows in found.items()} == {0b11: [*range(0, ROWS, 6)]}


def test_rows_that_are_not_copied_are_asked_about_where_that_saves_more(make: Make) -> None:
    selective, passing = Closed(lambda n: n % 2 == 0), Closed(lambda _: True)
    early = make(conjuncts(0, 1), selective, passing)
    found = checked(early, batch(), copied=False)
    assert sorted(found) == [0b01, 0b11]
    # What drops nothing saves nothing, and was only tried; the other goes on without it.
    tried = len(found[0b11])
    assert sorted(found[0b11] + found[0b01]) == [*range(0, ROWS, 2)]
    assert selective.calls.total() == ROWS
    assert TRIAL <= passing.calls.total() <= 3 * TRIAL
    assert tried <= 3 * TRIAL


def test_a_predicate_that_costs_more_than_it_saves_is_only_tried(make: Make) -> None:
    costly = Closed(lambda n: n % 2 == 0)
    early = make(conjuncts(0), costly, saved=NOTHING)
    found = checked(early, batch(), copied=False)
    assert found == {1: [*range(0, TRIAL, 2)], 0: [*range(TRIAL, ROWS)]}
    assert checked(early, batch(ROWS), copied=False) == {0: [*range(ROWS, 2 * ROWS)]}
    assert costly.calls.total() == TRIAL
    # Of copied rows it is asked all the same.
    assert checked(early, batch(), copied=True) == {1: [*range(0, ROWS, 2)]}


def test_a_failure_does_not_count_as_a_row_that_is_dropped(make: Make) -> None:
    early = make(conjuncts(0), Closed(refuse))
    assert checked(early, batch(), copied=False) == {0: [*range(ROWS)]}
    assert early.record(ROWS).predicates[0].errors_held == TRIAL


@pytest.mark.parametrize("policy", list(PolicyName))
def test_a_row_for_which_a_predicate_fails_goes_on_unchecked(make: Make, policy: str) -> None:
    """Unless another predicate rejects it, or the other term of an OR accepts it."""

    def fails_at_fives(number: int) -> bool:
        return refuse(number) if number % 5 == 0 else True

    functions = Closed(fails_at_fives), Closed(lambda n: n % 2 == 0)
    early = make(conjuncts(0, 1), *functions, policy=policy)
    found = checked(early, batch(), copied=True)
    assert sorted(found[0]) == [*range(0, ROWS, 10)]
    assert sorted(found[0b11]) == [n for n in range(0, ROWS, 2) if n % 5]
    early = make(either(0, 1), Closed(fails_at_fives), Closed(lambda n: n % 2 == 0), policy=policy)
    found = checked(early, batch(), copied=True)
    assert sorted(found[0]) == [*range(5, ROWS, 10)]
    assert sorted(found[1]) == [n for n in range(ROWS) if n % 5 or n % 2 == 0]


def test_a_static_policy_keeps_the_written_order(make: Make) -> None:
    first, second = Closed(lambda n: n < ROWS // 2), Closed(lambda n: n == 0)
    early = make(conjuncts(0, 1), first, second, policy=PolicyName.STATIC)
    checked(early, batch(), copied=True)
    assert (first.calls.total(), second.calls.total()) == (ROWS, ROWS // 2)


def test_a_static_policy_asks_none_before_one_that_is_left_for_later(make: Make) -> None:
    first, second = Closed(lambda _: True), Closed(lambda n: n % 2 == 0)
    early = make(conjuncts(0, 1), first, second, policy=PolicyName.STATIC)
    found = checked(early, batch(), copied=False)
    assert found == {0b11: [*range(0, TRIAL, 2)], 0: [*range(TRIAL, ROWS)]}
    assert second.calls.total() == TRIAL


def test_the_terms_of_an_or_are_in_the_record(make: Make) -> None:
    functions = Closed(lambda n: n % 2 == 0), Closed(lambda n: n % 3 == 0)
    early = make(either(0, 1), *functions)
    checked(early, batch(), copied=True)
    record = early.record(ROWS)
    (predicate,) = record.predicates
    assert (predicate.text, predicate.rows_in) == ("condition 1", ROWS)
    assert [part.text for part in predicate.nested] == ["f0(e)", "f1(e)"]
    assert [part.rows_in for part in predicate.nested] == [f.calls.total() for f in functions]
    assert [f.calls for f in record.functions] == [f.calls.total() for f in functions]
    assert [f.calls_possible for f in record.functions] == [ROWS, ROWS]
    assert record.seconds >= record.work_seconds > 0
    assert record.decisions > 0
    assert record.join is not None
    assert record.join.read == (0, ROWS)
    # Another task of the same block may not have asked.
    other = reading(block_of(either(0, 1), 2))
    assert merge(record, other).predicates == record.predicates


def test_functions_are_closed_though_one_of_them_fails_then(make: Make) -> None:
    functions = Closed(lambda _: True, fails=True), Closed(lambda _: True)
    early = make(conjuncts(0, 1), *functions)
    checked(early, batch(), copied=True)
    with pytest.raises(RuntimeError, match="cannot be closed"):
        early.end(None)
    assert [function.closed for function in functions] == [1, 1]


def test_what_comes_of_closing_does_not_hide_what_came_first(make: Make) -> None:
    early = make(conjuncts(0), function := Closed(lambda _: True, fails=True))
    checked(early, batch(), copied=True)
    early.end(ValueError("first"))
    assert function.closed == 1


def test_no_function_is_made_where_no_row_comes(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = make(conjuncts(0), Closed(lambda _: True))
    monkeypatch.setattr(task_functions, "made_function", None)
    assert checked(early, batch(rows=0), copied=True) == {}
    early.end(None)
    assert early.record(0).calls == 0


def test_the_next_task_begins_with_what_this_one_has_learned(make: Make) -> None:
    before = make(conjuncts(0), Closed(lambda n: n % 2 == 0))
    checked(before, batch(), copied=True)
    before.end(None)
    after = make(conjuncts(0), Closed(lambda n: n % 2 == 0))
    checked(after, batch(rows=1), copied=True)
    assert before._task is not None
    assert after._task is not None
    assert after._task.eddy.cost(0) == before._task.eddy.cost(0)
    assert after._task.eddy.learned().eddies[0][0] is before._task.eddy.learned().eddies[0][0]


def test_what_was_learned_of_one_input_is_not_taken_for_another(make: Make) -> None:
    def of_both(query: JoinQuery) -> Sequence[Expression]:
        of_other = Call(2, (query.column(OTHER, 1),), BOOL)
        return [*asked(query, 0, 1), of_other]

    functions = [Closed(lambda n, k=k: n % k == 0) for k in (2, 3, 5)]
    rows = batch().set_column(2, "c2", batch().column(2)).append_column("number", batch().column(2))
    other = make(of_both, *functions, relation=OTHER)
    assert checked(other, rows, copied=True) == {0b100: [*range(0, ROWS, 5)]}
    other.end(None)
    early = make(of_both, *functions)
    found = checked(early, batch(), copied=True)
    assert {done: sorted(rows) for done, rows in found.items()} == {0b11: [*range(0, ROWS, 6)]}
    assert early._task is not None
    assert len(early._task.eddy.learned().eddies[0][1].models) == 2


def test_what_was_passed_of_many_predicates_can_travel(make: Make) -> None:
    functions = [Closed(lambda n, k=k: n != k) for k in range(70)]
    early = make(conjuncts(*range(70)), *functions)
    (done,) = checked(early, batch(rows=100), copied=True)
    assert done == (1 << 63) - 1
    sent = Blob(0, INPUT, done, 0, pa.py_buffer(b""))
    assert next(unpacked(packed(sent))).done == done
    assert [function.calls.total() > 0 for function in functions] == [True] * 63 + [False] * 7
