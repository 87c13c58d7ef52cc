"""Values behind row numbers: columns of tuples, and calls that are made once a row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.engine.batch import TupleBatch
from eddyline.engine.components import ComponentStores, required_rows
from eddyline.engine.join_graph import Place
from eddyline.engine.relation import Relation
from eddyline.engine.signature import Signature
from eddyline.expressions import Call, Comparison, Expression, Not, evaluate
from eddyline.expressions.vector import CollectiveFailure
from eddyline.simulation.virtual_clock import VirtualClock
from tests.joins import BOOL, EQUAL, INT, Refused, UserFunction, query_of, relation

R, S = range(2)
QUERY = query_of([relation("R"), relation("S")])
F_OF_R = Call(0, (QUERY.column(R, 1),), BOOL)
F_OF_S = Call(0, (QUERY.column(S, 0),), BOOL)
G_OF_BOTH = Call(1, (QUERY.column(R, 1), QUERY.column(S, 0)), BOOL)


def components_of(
    functions: list[UserFunction], uses: list[Expression]
) -> tuple[ComponentStores, TupleBatch]:
    """Return six tuples, of a stored row of R and a passing one of S each."""
    clock = VirtualClock()
    built = [Relation(functions, uses, clock) for _ in QUERY.relations]
    passing = [Relation(functions, uses, clock) for _ in QUERY.relations]
    passing[R].append([pa.array([-1]), pa.array([-1])], 1)
    built[R].append([pa.array([0, 1, 2]), pa.array([10, 11, 12])], 3)
    passing[S].append([pa.array([0]), pa.array([0])], 1)
    passing[S].load([pa.array([7, 8]), pa.array([70, 80])], 2)
    rows = (np.array([0, 0, 1, 1, 2, 2]), np.array([1, 2, 1, 2, 1, 2]))
    return ComponentStores(QUERY, built, passing), TupleBatch(Signature(0b11, 0b01), rows)


def test_columns_come_from_where_the_signature_says() -> None:
    components, batch = components_of([], [])
    scope = components.scope(batch)
    assert len(scope) == 6
    assert scope.argument(1).to_pylist() == [10, 10, 11, 11, 12, 12]
    assert scope.argument(2).to_pylist() == [7, 8, 7, 8, 7, 8]
    assert components.column(batch, Place(S, 1)).to_pylist() == [70, 80] * 3
    assert components.places(batch, S).tolist() == [0, 1] * 3  # the first row was evicted
    narrow = scope.narrow(np.array([5, 0]))
    assert narrow.argument(3).to_pylist() == [80, 70]


def test_a_relation_that_is_not_spanned_has_no_values() -> None:
    components, batch = components_of([], [])
    only_r = TupleBatch(Signature(0b01, 0b01), (batch.rows[R], None))
    with pytest.raises(ValueError, match="does not span relation 1"):
        components.scope(only_r).argument(2)
    with pytest.raises(ValueError, match="does not span relation 1"):
        required_rows(only_r, S)


@pytest.mark.parametrize("again", [True, False])
def test_a_call_over_one_relation_is_made_once_a_row(*, again: bool) -> None:
    f = UserFunction(lambda value: value % 2 == 0)
    # Named twice it is remembered; once it is made for the distinct rows of a batch.
    uses: list[Expression] = [F_OF_R, *([Not(F_OF_R)] if again else [])]
    components, batch = components_of([f], uses)
    for _ in range(2):
        found = evaluate(F_OF_R, components.scope(batch))
        assert found.values.to_pylist() == [True, True, False, False, True, True]
    assert set(f.calls.values()) == {1 if again else 2}
    assert set(f.calls) == {(10,), (11,), (12,)}


def test_calls_on_different_relations_are_different_calls() -> None:
    f = UserFunction(lambda value: value > 10)
    components, batch = components_of([f], [F_OF_R, F_OF_S, F_OF_R, F_OF_S])
    scope = components.scope(batch)
    same = Comparison(EQUAL, F_OF_R, F_OF_S)
    assert evaluate(same, scope).values.to_pylist() == [True, True, False, False, False, False]
    assert f.calls == dict.fromkeys([(10,), (11,), (12,), (7,), (8,)], 1)


def test_a_call_over_several_relations_is_made_once_a_tuple() -> None:
    g = UserFunction(lambda left, right: left + right > 18)
    components, batch = components_of([UserFunction(bool), g], [G_OF_BOTH])
    scope = components.scope(batch)
    for _ in range(2):
        assert evaluate(G_OF_BOTH, scope).values.to_pylist() == [False, False, False, *[True] * 3]
    assert len(g.calls) == 6
    assert set(g.calls.values()) == {1}


def refuse_eleven(value: int) -> bool:
    if value == 11:
        raise Refused
    return True


def test_an_error_of_a_row_is_one_of_all_its_tuples() -> None:
    components, batch = components_of([UserFunction(refuse_eleven)], [F_OF_R])
    found = evaluate(F_OF_R, components.scope(batch))
    assert set(found.errors) == {2, 3}
    assert found.values.to_pylist() == [True, True, None, None, True, True]


def test_collective_failures_are_forgotten_where_rows_are_to_be_tried_again() -> None:
    f = UserFunction(refuse_eleven, vectorized=True)
    components, batch = components_of([f], [F_OF_R])
    found = evaluate(F_OF_R, components.scope(batch))
    assert len(found.errors) == 6
    assert all(isinstance(error, CollectiveFailure) for error in found.errors.values())
    innocent = batch.at(np.array([0, 4]), batch.signature)
    components.forget_collective_failures(F_OF_R, innocent)
    assert evaluate(F_OF_R, components.scope(innocent)).errors == {}
    assert set(evaluate(F_OF_R, components.scope(batch)).errors) == {2, 3}


def test_what_was_computed_goes_with_its_rows() -> None:
    f = UserFunction(lambda value: value, INT)
    call = Call(0, (QUERY.column(R, 1),), INT)
    components, batch = components_of([f], [call, call])
    assert evaluate(call, components.scope(batch)).values.to_pylist() == [10, 10, 11, 11, 12, 12]
    components.built[R].store.evict_before(1)
    components.built[R].append([pa.array([3]), pa.array([13])], 1)
    left = TupleBatch(batch.signature, (np.array([1, 3, 2]), np.array([1, 1, 1])))
    assert evaluate(call, components.scope(left)).values.to_pylist() == [11, 13, 12]
    assert f.calls == dict.fromkeys([(10,), (11,), (12,), (13,)], 1)
