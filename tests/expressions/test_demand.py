"""For which rows a call that is answered later is made before its expression is evaluated."""

from __future__ import annotations

import pyarrow as pa

from eddyline.expressions import (
    And,
    Argument,
    Call,
    Case,
    Coalesce,
    Expression,
    IsNull,
    Literal,
    Not,
    Or,
)
from eddyline.expressions.demand import demand

A, B = Argument(0, pa.bool_()), Argument(1, pa.bool_())
X = Argument(2, pa.int64())
NO, YES = Literal(False, pa.bool_()), Literal(True, pa.bool_())  # noqa: FBT003 - SQL's
NOTHING = Literal(None, pa.int64())


def call(function: int, argument: Expression = X, kind: pa.DataType | None = None) -> Call:
    return Call(function, (argument,), kind or pa.int64())


LATER, OTHER = call(0), call(1)
TEST = call(2, kind=pa.bool_())  # one that answers at once
WAITS = call(3, kind=pa.bool_())


def demanded(*expressions: Expression, of: Call = LATER) -> Expression | None:
    return demand(of, expressions, lambda each: each != TEST)


def when(condition: Expression, value: Expression, otherwise: Expression = NOTHING) -> Case:
    return Case(((condition, value),), otherwise, pa.int64())


def test_branches_ask_for_their_rows() -> None:
    assert demanded(when(A, LATER)) == A
    other = demanded(when(A, X, LATER))
    assert other == Case(((A, NO),), YES, pa.bool_())
    assert demanded(when(A, LATER), LATER) is None
    assert demanded(when(A, LATER), when(B, LATER)) == Or((A, B))
    assert demanded(when(A, LATER, LATER)) is None
    assert demanded(X) == NO


def test_a_condition_is_asked_first() -> None:
    over = Not(IsNull(LATER))
    assert demanded(when(over, OTHER)) is None
    assert demanded(when(over, OTHER), of=OTHER) == over
    second = Case(((A, X), (over, X)), NOTHING, pa.int64())
    assert demanded(second) == Case(((A, NO),), YES, pa.bool_())


def test_coalesce_asks_where_nothing_is_there_yet() -> None:
    there = Not(IsNull(X))
    asked = demanded(Coalesce((X, LATER, OTHER), pa.int64()))
    assert asked == Case(((there, NO),), YES, pa.bool_())


def test_what_a_call_is_given_is_asked_for_where_the_call_is() -> None:
    assert demanded(when(A, call(1, LATER))) == A


def test_terms_that_wait_do_not_wait_for_each_other() -> None:
    later = call(0, kind=pa.bool_())
    native = demanded(And((later, A)), of=later)
    assert native == Case(((Not(A), NO),), YES, pa.bool_())
    assert demanded(Or((TEST, later)), of=later) == Case(((TEST, NO),), YES, pa.bool_())
    # Evaluation asks the later term first.
    assert demanded(Or((later, TEST)), of=later) is None
    assert demanded(And((WAITS, later)), of=later) is None
