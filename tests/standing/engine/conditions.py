"""Generated conditions on columns of several streams."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import strategies as st

from eddyline.expressions import (
    And,
    Argument,
    Arithmetic,
    ArithmeticOperator,
    Comparison,
    ComparisonOperator,
    Expression,
    IsNull,
    Literal,
    Not,
    Or,
)
from eddyline.standing.engine.join_conditions import JoinCondition, column_of
from eddyline.standing.engine.predicate_templates import conditions_of

INT = pa.int64()
VALUE_COLUMN = 2

orders = st.sampled_from(
    [each for each in ComparisonOperator if each is not ComparisonOperator.NULL_SAFE_EQUAL]
)
numbers = st.none() | st.integers(-9, 18)


def value(stream: int) -> Expression:
    """Return the value of a stream's row."""
    return column_of(stream, VALUE_COLUMN, INT)


@st.composite
def amounts(draw: st.DrawFn, streams: Sequence[int]) -> Expression:
    """Draw the sum or the difference of the values of two streams; it may be one that can fail."""
    one, other = draw(st.permutations(streams))[:2]
    how = draw(st.sampled_from([ArithmeticOperator.ADD, ArithmeticOperator.SUBTRACT]))
    return Arithmetic(how, (value(one), value(other)), INT, ansi=draw(st.booleans()))


@st.composite
def conditions(draw: st.DrawFn, streams: Sequence[int]) -> Expression:
    """Draw a condition on two or more of some streams."""
    one, other, *_ = draw(st.permutations(streams))
    last = draw(st.sampled_from(streams))
    compared = Comparison(draw(orders), value(one), value(other))
    amount = draw(amounts(streams))
    ranged = Comparison(draw(orders), amount, Literal(draw(numbers), INT))
    return draw(
        st.sampled_from(
            [
                compared,
                ranged,
                Not(ranged),
                Or((compared, ranged)),
                Or((ranged, Comparison(draw(orders), amount, Literal(draw(numbers), INT)))),
                And((compared, ranged)),
                IsNull(amount),
                Comparison(draw(orders), amount, value(last)),
            ]
        )
    )


@st.composite
def templates(draw: st.DrawFn, streams: Sequence[int]) -> Expression:
    """Draw a condition with two constants, 0 and 1, in it."""
    low, high = Argument(-1, INT), Argument(-2, INT)
    amount = draw(amounts(streams))
    one, other, *_ = draw(st.permutations(streams))
    within = Comparison(draw(orders), amount, low), Comparison(draw(orders), high, amount)
    raised = Arithmetic(
        draw(st.sampled_from([ArithmeticOperator.ADD, ArithmeticOperator.MULTIPLY])),
        (value(other), low),
        INT,
        ansi=draw(st.booleans()),
    )
    above = Comparison(draw(orders), value(one), raised)
    return draw(st.sampled_from([And(within), Or(within), above, And((above, within[1]))]))


@st.composite
def conditions_on(draw: st.DrawFn, streams: Sequence[int]) -> Sequence[Expression | JoinCondition]:
    """Draw the conditions of a query, often none."""
    some: list[Expression | JoinCondition] = draw(st.lists(conditions(streams), max_size=2))
    if draw(st.booleans()):
        rows = draw(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=2))
        constants = [pa.array([row[n] for row in rows], INT) for n in range(2)]
        some += draw(st.sampled_from(list(conditions_of([draw(templates(streams))], constants))))
    return tuple(some)
