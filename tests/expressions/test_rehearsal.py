"""What is said of an expression when it is claimed holds when it is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.storage.key_words import KeyColumn
from eddyline.errors import UnsupportedExpressionError
from eddyline.expressions import (
    And,
    Argument,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Case,
    Cast,
    Coalesce,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNaN,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    StringMatch,
    StringTest,
    evaluate,
    forget_programs,
    prepare,
    reason_not_to_evaluate,
    type_of,
)
from eddyline.expressions.terms import conjuncts_of, expression_of
from eddyline.expressions.vector import Vector
from tests.nested_types import FLAT, arrays, flat_types, types

ROWS = 5
OTHERS = st.sampled_from([pa.duration("us"), pa.uint8(), pa.null(), pa.time64("ns")])
"""Types that no operator is exact for: an expression over them must be declined."""

Expressions: TypeAlias = "st.SearchStrategy[Expression]"


@dataclass(frozen=True)
class Given:
    """A scope of given columns; a call answers with its first argument's column."""

    columns: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def argument(self, index: int) -> pa.Array:
        return self.columns[index]

    def call(self, call: Call) -> Vector:
        return evaluate(call.arguments[0], self)

    def narrow(self, positions: npt.NDArray[np.int64]) -> Given:
        return Given(tuple(column.take(pa.array(positions)) for column in self.columns))


@st.composite
def over(draw: st.DrawFn, kinds: tuple[pa.DataType, ...], depth: int) -> Expression:
    """Return any expression over columns of some types, whether it makes sense or not."""
    if depth == 0 or draw(st.booleans()):
        return draw(leaves(kinds))
    below = over(kinds, depth - 1)
    one, two, three = draw(below), draw(below), draw(below)
    some_type = draw(st.one_of(st.just(type_of(one)), st.sampled_from(kinds), flat_types))
    makers: list[Callable[[], Expression]] = [
        lambda: And((one, two)),
        lambda: Or((one, two, three)),
        lambda: Not(one),
        lambda: IsNull(one),
        lambda: IsNaN(one),
        lambda: Comparison(draw(st.sampled_from(ComparisonOperator)), one, two),
        lambda: Comparison(draw(st.sampled_from(ComparisonOperator)), one, one),
        lambda: In(one, (two, three)),
        lambda: In(one, (one, two)),
        lambda: In(one, draw(st.lists(literals(type_of(one)), max_size=3).map(tuple))),
        lambda: Like(one, draw(st.text("a%_!", max_size=4)), "!"),
        lambda: StringMatch(draw(st.sampled_from(StringTest)), one, "a"),
        lambda: Case(((one, two),), three, some_type),
        lambda: Case(((IsNull(one), two),), two, type_of(two)),
        lambda: Coalesce((one, two), some_type),
        lambda: Coalesce((one, one), type_of(one)),
        lambda: Cast(one, some_type, draw(st.booleans())),
        lambda: Call(0, (one, two), type_of(one)),
        lambda: Arithmetic(
            draw(st.sampled_from(ArithmeticOperator)),
            draw(st.sampled_from([(one,), (one, two), (one, one)])),
            some_type,
            draw(st.booleans()),
        ),
    ]
    return draw(st.sampled_from(makers))()


def leaves(kinds: tuple[pa.DataType, ...]) -> Expressions:
    arguments = [Argument(index, kind) for index, kind in enumerate(kinds)]
    return st.one_of(st.sampled_from(arguments), st.sampled_from(kinds).flatmap(literals))


def literals(kind: pa.DataType) -> st.SearchStrategy[Literal]:
    values: list[Any] = [None, *FLAT.get(kind, [])]
    return st.sampled_from(values).map(lambda value: Literal(value, kind))


def columns(data: st.DataObject, kinds: tuple[pa.DataType, ...]) -> Given:
    return Given(tuple(data.draw(arrays(kind, ROWS)) for kind in kinds))


@given(data=st.data())
def test_what_may_be_claimed_can_be_evaluated(data: st.DataObject) -> None:
    kinds = tuple(data.draw(st.lists(types, min_size=1, max_size=3)))
    expression = data.draw(over(kinds, 3))
    if reason_not_to_evaluate(expression) is None:
        found = evaluate(expression, columns(data, kinds))
        assert found.values.type == type_of(expression)
        assert len(found) == ROWS
    else:
        with pytest.raises(UnsupportedExpressionError):
            prepare(expression)
    forget_programs()


@given(data=st.data())
def test_the_terms_of_what_may_be_claimed_can_be_evaluated(data: st.DataObject) -> None:
    """An eddy takes a predicate apart, and evaluates the parts."""
    kinds = (pa.bool_(), *data.draw(st.lists(types, min_size=1, max_size=2)))
    predicate = data.draw(over(kinds, 3).filter(lambda found: type_of(found) == pa.bool_()))
    if reason_not_to_evaluate(predicate) is None:
        scope = columns(data, kinds)
        for term in conjuncts_of(predicate):
            assert evaluate(expression_of(term), scope).values.type == pa.bool_()
    forget_programs()


@given(data=st.data())
def test_what_a_join_graph_makes_of_it_can_be_evaluated(data: st.DataObject) -> None:
    """Equal columns make keys, and predicates that nobody has written."""
    kinds = tuple(data.draw(st.lists(st.one_of(types, OTHERS), min_size=1, max_size=2)))
    relations = tuple(JoinRelation(name, kinds) for name in "abc")
    whole = [Argument(number, kind) for number, kind in enumerate(kinds * 3)]
    pairs = st.tuples(st.sampled_from(whole), st.sampled_from(whole))
    operators = st.sampled_from(ComparisonOperator)
    written = [
        Comparison(operator, *pair)
        for operator, pair in data.draw(st.lists(st.tuples(operators, pairs), max_size=5))
    ]
    claimed = [each for each in written if reason_not_to_evaluate(each) is None]
    graph = JoinGraph(JoinQuery(relations, tuple(claimed)))
    for predicate in graph.predicates:
        prepare(predicate)
    for places in graph.classes:
        for place in places:
            column = KeyColumn(kinds[place.column])
            column.append(data.draw(arrays(kinds[place.column], ROWS)))


@given(kind=OTHERS, operator=st.sampled_from(ComparisonOperator))
def test_other_types_are_not_compared(kind: pa.DataType, operator: ComparisonOperator) -> None:
    both = Argument(0, kind), Argument(1, kind)
    assert reason_not_to_evaluate(Comparison(operator, *both)) == f"comparison of {kind}"


def test_a_pattern_that_is_too_large_is_found_before_it_is_matched() -> None:
    """No type tells it: RE2 has a limit for what it compiles."""
    expression = Like(Argument(0, pa.string()), "_" * 100_000, "\\")
    prepare(expression)
    assert "pattern too large" in str(reason_not_to_evaluate(Not(expression)))
    assert "pattern too large" in str(reason_not_to_evaluate(Call(0, (expression,), pa.bool_())))


@pytest.mark.parametrize("other_labels", [False, True])
def test_null_safe_equality_of_structs(other_labels: bool) -> None:  # noqa: FBT001 - a parameter
    kind = pa.struct([("a", pa.int32()), ("b", pa.float64())])
    values = [None, {"a": 1, "b": -0.0}, {"a": None, "b": None}, {"a": 2, "b": float("nan")}]
    left = pa.array([value for value in values for _ in values], kind)
    right = pa.array([*values] * len(values), kind)
    other = pa.struct([("A", pa.int32()), ("B", pa.float64())]) if other_labels else kind
    operator = ComparisonOperator.NULL_SAFE_EQUAL
    expression = Comparison(operator, Argument(0, kind), Argument(1, other))
    assert reason_not_to_evaluate(expression) is None
    found = evaluate(expression, Given((left, right))).values.to_pylist()
    assert found == [one == two for one in range(4) for two in range(4)]


def test_structs_without_fields_are_equal() -> None:
    nothing = pa.array([{}, {}, None], pa.struct([]))
    equal = Comparison(ComparisonOperator.EQUAL, *(Argument(n, pa.struct([])) for n in range(2)))
    assert reason_not_to_evaluate(equal) is None
    scope = Given((nothing, nothing.take(pa.array([0, 2, 2]))))
    assert evaluate(equal, scope).values.to_pylist() == [True, None, None]
