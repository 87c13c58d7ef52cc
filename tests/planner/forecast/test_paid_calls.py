"""For which rows of a block a paid call is needed, and after which others."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from eddyline.blocks.filter_block import (
    CalledByDriver,
    FilterBlock,
    FunctionKind,
    SessionSettings,
    UserFunction,
)
from eddyline.engine.filter.filter_eddy import ALL_ROWS
from eddyline.expressions import And, Argument, Call, Case, Expression, Literal, Or
from eddyline.planner.forecast.paid_calls import (
    order_of_terms,
    over_columns,
    paid_calls,
    paid_terms,
    rivals,
)

BOOL, INT = pa.bool_(), pa.int64()
X, Y = Argument(0, INT), Argument(1, INT)
FREE, DEAR, CHEAP = (Call(number, (X,), BOOL) for number in range(3))
OF_Y = Call(1, (Y,), BOOL)


def function(number: int, *, paid: bool) -> UserFunction:
    driver = CalledByDriver(number, f"function/{number}", 16) if paid else None
    kind = FunctionKind.PICKLED
    return UserFunction(f"f{number}", kind, (b"",), ('"long"',), (None,), '"boolean"', driver)


def block(
    *terms: Expression, outputs: tuple[Call | Case, ...] = (), waits: tuple[int, ...] = ()
) -> FilterBlock:
    predicate = And(terms) if len(terms) > 1 else next(iter(terms), ALL_ROWS)
    functions = tuple(function(number, paid=number > 0) for number in range(3))
    return FilterBlock(
        "", predicate, (), functions, outputs, SessionSettings("UTC"), ("x", "y"), waits=waits
    )


def test_free_terms_come_first_wherever_they_are_written() -> None:
    given = block(DEAR, FREE, CHEAP)
    assert paid_terms(given) == [0, 2]
    assert order_of_terms(given, {}) == [1, 0, 2]
    assert order_of_terms(given, {2: 1.0}) == [1, 2, 0]
    assert rivals(given) == [0, 2]


def test_a_term_that_waits_comes_after_what_it_waits_for() -> None:
    given = block(DEAR, FREE, CHEAP, waits=(0, 1, 2))
    assert order_of_terms(given, {2: 1.0}) == [0, 1, 2]
    assert rivals(given) == []


def test_a_call_is_needed_where_what_comes_before_holds() -> None:
    given = block(FREE, CHEAP, DEAR, outputs=(OF_Y,))
    first, second, value = paid_calls(given, [0, 1, 2])
    assert (first.call, first.condition, first.before) == (CHEAP, FREE, ())
    assert second.condition == And((FREE, CHEAP))
    assert (second.free, second.before) == (FREE, (CHEAP,))
    assert value.condition == And((FREE, CHEAP, DEAR))
    assert (value.free, value.before) == (FREE, (CHEAP, DEAR))
    assert [paid.call for paid in paid_calls(given, [0, 2, 1])] == [DEAR, CHEAP, OF_Y]


def test_a_free_side_of_an_or_spares_the_call() -> None:
    given = block(Or((FREE, DEAR)))
    (paid,) = paid_calls(given, [0])
    assert paid.condition != ALL_ROWS
    assert paid.free == paid.condition
    assert paid.before == ()


def test_a_branch_decides_on_a_call() -> None:
    taken = Case(((CHEAP, DEAR),), Literal(None, BOOL), BOOL)
    sure, costly = paid_calls(block(outputs=(CHEAP, taken)), [])
    assert (sure.call, sure.condition) == (CHEAP, ALL_ROWS)
    assert (costly.call, costly.condition, costly.before) == (DEAR, CHEAP, (CHEAP,))
    assert costly.free == ALL_ROWS


def test_calls_of_blocks_below_are_not_told_again() -> None:
    given = block(FREE, DEAR, outputs=(CHEAP,))
    assert [paid.call for paid in paid_calls(given, [0, 1], first=2)] == [CHEAP]


@pytest.mark.parametrize(
    ("call", "columns"), [(DEAR, (0,)), (replace(DEAR, arguments=(Y, X)), (1, 0))]
)
def test_arguments_that_are_columns_can_be_sampled(call: Call, columns: tuple[int, ...]) -> None:
    assert over_columns(call) == columns
    assert over_columns(replace(call, arguments=(FREE,))) is None
