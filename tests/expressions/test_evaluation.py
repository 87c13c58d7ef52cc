"""Errors as a fourth value, laziness, and what the evaluation refuses."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import UnsupportedExpressionError
from eddyline.expressions import (
    And,
    Argument,
    Arithmetic,
    ArithmeticFailure,
    ArithmeticOperator,
    Call,
    Case,
    Cast,
    Coalesce,
    Comparison,
    ComparisonOperator,
    ErrorCondition,
    Expression,
    Failure,
    In,
    IsNaN,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    StringMatch,
    StringTest,
    VariableMatch,
    evaluate,
    fault_of,
    prepare,
    render,
    type_of,
)
from eddyline.expressions.strings import PatternKind
from eddyline.expressions.vector import Columns, Vector

BOOL, INT, DOUBLE, TEXT = pa.bool_(), pa.int64(), pa.float64(), pa.string()
ADD, DIVIDE = ArithmeticOperator.ADD, ArithmeticOperator.DIVIDE
EQUAL = ComparisonOperator.EQUAL
ERROR = "error"  # the fourth value, beside True, False and None


class UserError(Exception):
    """What a user's function raises; equal by the name of the function."""

    def __init__(self, function: int) -> None:
        super().__init__(function)
        self.function = function


@dataclass(frozen=True)
class Rows:
    """A scope over columns and the results of functions, which notes the rows it is asked for."""

    columns: Mapping[int, pa.Array] = field(default_factory=dict)
    results: Mapping[int, Vector] = field(default_factory=dict)
    rows: tuple[int, ...] = ()
    called: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    def argument(self, index: int) -> pa.Array:
        return self.columns[index].take(pa.array(self.rows, pa.int64()))

    def call(self, call: object) -> Vector:
        assert isinstance(call, Call)
        assert self.rows, "a call for no rows"
        self.called.append((call.function, self.rows))
        whole = self.results[call.function]
        errors = {
            position: whole.errors[row]
            for position, row in enumerate(self.rows)
            if row in whole.errors
        }
        return Vector(whole.values.take(pa.array(self.rows, pa.int64())), errors)

    def narrow(self, positions: object) -> Rows:
        assert isinstance(positions, np.ndarray)
        assert positions.dtype == np.int64
        rows = tuple(self.rows[position] for position in positions)
        return Rows(self.columns, self.results, rows, self.called)

    def __len__(self) -> int:
        return len(self.rows)


def vector_of(values: Sequence[object], kind: pa.DataType, function: int) -> Vector:
    """A vector in which ERROR stands for a row that failed."""
    errors = {row: UserError(function) for row, value in enumerate(values) if value is ERROR}
    return Vector(pa.array([None if value is ERROR else value for value in values], kind), errors)


def scope_of(*results: tuple[Sequence[object], pa.DataType]) -> Rows:
    vectors = {n: vector_of(values, kind, n) for n, (values, kind) in enumerate(results)}
    return Rows(results=vectors, rows=tuple(range(len(results[0][0]))))


def calls(*kinds: pa.DataType) -> tuple[Call, ...]:
    return tuple(Call(number, (), kind) for number, kind in enumerate(kinds))


def outcome(vector: Vector) -> list[object]:
    """The values with ERROR where a row failed; a failed row must hold NULL."""
    values: list[object] = vector.values.to_pylist()
    for row, error in vector.errors.items():
        assert isinstance(error, Exception)
        assert values[row] is None
        values[row] = ERROR
    return values


def literal(value: object, kind: pa.DataType = INT) -> Literal:
    return Literal(value, kind)


# ---------------------------------------------------------------- Kleene, and errors

FOUR: list[object] = [True, False, None, ERROR]


def kleene_and(*terms: object) -> object:
    for decisive in (False, ERROR, None):
        if decisive in terms:
            return decisive
    return True


def kleene_not(term: object) -> object:
    return term if term in (None, ERROR) else not term


def kleene_or(*terms: object) -> object:
    return kleene_not(kleene_and(*map(kleene_not, terms)))


@pytest.mark.parametrize("terms", [2, 3])
@pytest.mark.parametrize(("node", "table"), [(And, kleene_and), (Or, kleene_or)])
def test_and_and_or_do_not_depend_on_order(node: type[And | Or], table: object, terms: int) -> None:
    assert callable(table)
    rows = list(product(FOUR, repeat=terms))
    scope = scope_of(*(([row[n] for row in rows], BOOL) for n in range(terms)))
    result = evaluate(node(calls(*[BOOL] * terms)), scope)
    assert outcome(result) == [table(*row) for row in rows]
    for row, error in result.errors.items():  # the first term in written order counts
        assert isinstance(error, UserError)
        assert error.function == rows[row].index(ERROR)


def test_terms_without_calls_are_in_the_same_tables() -> None:
    rows = list(product(FOUR, [True, False, None]))
    values, columns = [row[0] for row in rows], [row[1] for row in rows]
    results = {0: vector_of(values, BOOL, 0)}
    scope = Rows({0: pa.array(columns, BOOL)}, results, tuple(range(len(rows))))
    call, column = Call(0, (), BOOL), Argument(0, BOOL)
    assert outcome(evaluate(And((call, column)), scope)) == [kleene_and(*row) for row in rows]
    assert outcome(evaluate(Or((call, column)), scope)) == [kleene_or(*row) for row in rows]


def test_not_and_the_tests_for_null_keep_errors() -> None:
    scope = scope_of((FOUR, BOOL))
    (call,) = calls(BOOL)
    assert outcome(evaluate(Not(call), scope)) == [False, True, None, ERROR]
    assert outcome(evaluate(IsNull(call), scope)) == [False, False, True, ERROR]
    (number,) = calls(DOUBLE)
    scope = scope_of(([1.0, math.nan, None, ERROR], DOUBLE))
    assert outcome(evaluate(IsNaN(number), scope)) == [False, True, False, ERROR]


def test_the_first_null_or_error_decides_a_strict_operator() -> None:
    rows = list(product([1, None, ERROR], repeat=2))
    scope = scope_of(([row[0] for row in rows], INT), ([row[1] for row in rows], INT))
    expected = [2, None, ERROR, None, None, None, ERROR, ERROR, ERROR]
    total = evaluate(Arithmetic(ADD, calls(INT, INT), INT, ansi=True), scope)
    assert outcome(total) == expected
    equal = evaluate(Comparison(EQUAL, *calls(INT, INT)), scope)
    assert outcome(equal) == [True if value == 2 else value for value in expected]
    for result in (total, equal):
        assert [error.args[0] for _, error in sorted(result.errors.items())] == [1, 0, 0, 0]


def test_division_looks_at_the_divisor_first() -> None:
    rows = list(product([1.0, None, ERROR], [2.0, 0.0, None, ERROR]))
    scope = scope_of(([row[0] for row in rows], DOUBLE), ([row[1] for row in rows], DOUBLE))
    quotient = evaluate(Arithmetic(DIVIDE, calls(DOUBLE, DOUBLE), DOUBLE, ansi=True), scope)
    assert outcome(quotient) == [
        *[0.5, ERROR, None, ERROR],
        *[None, None, None, ERROR],
        *[ERROR, ERROR, None, ERROR],
    ]


def test_null_safe_equality_looks_at_both_operands() -> None:
    rows = list(product([1, 2, None, ERROR], repeat=2))
    scope = scope_of(([row[0] for row in rows], INT), ([row[1] for row in rows], INT))
    node = Comparison(ComparisonOperator.NULL_SAFE_EQUAL, *calls(INT, INT))
    expected = [ERROR if ERROR in row else row[0] == row[1] for row in rows]
    assert outcome(evaluate(node, scope)) == expected


def test_in_stops_at_the_first_match_or_error() -> None:
    rows = list(product([1, None, ERROR], [1, 2, None, ERROR], [1, 2, None, ERROR]))
    scope = scope_of(*(([row[n] for row in rows], INT) for n in range(3)))
    operand, *options = calls(INT, INT, INT)

    def expected(value: object, *among: object) -> object:
        if value in (None, ERROR):
            return value
        for option in among:
            if option in (value, ERROR):
                return True if option == value else ERROR
        return None if None in among else False

    result = evaluate(In(operand, tuple(options)), scope)
    assert outcome(result) == [expected(*row) for row in rows]


def test_case_and_coalesce_fail_where_the_part_they_need_fails() -> None:
    rows = list(product(FOUR, [1, None, ERROR]))
    scope = scope_of(([row[0] for row in rows], BOOL), ([row[1] for row in rows], INT))
    condition, value = calls(BOOL, INT)
    case = Case(((condition, value),), literal(7), INT)
    expected = [row[1] if row[0] is True else ERROR if row[0] is ERROR else 7 for row in rows]
    assert outcome(evaluate(case, scope)) == expected
    scope = scope_of(([row[1] for row in rows], INT), ([row[0] for row in rows], BOOL))
    value, condition = calls(INT, BOOL)
    second = Case(((condition, literal(8)),), literal(9), INT)
    expected = [
        row[1] if row[1] is not None else ERROR if row[0] is ERROR else 8 if row[0] else 9
        for row in rows
    ]
    assert outcome(evaluate(Coalesce((value, second), INT), scope)) == expected


# ---------------------------------------------------------------- laziness


def test_decided_rows_are_not_called_by_later_terms() -> None:
    values: list[object] = [True, False, None, ERROR]
    scope = scope_of((values, BOOL), (values, BOOL))
    evaluate(And(calls(BOOL, BOOL)), scope)
    assert scope.called == [(0, (0, 1, 2, 3)), (1, (0, 2, 3))]
    scope = scope_of((values, BOOL), (values, BOOL))
    evaluate(Or(calls(BOOL, BOOL)), scope)
    assert scope.called == [(0, (0, 1, 2, 3)), (1, (1, 2, 3))]


def test_a_term_without_calls_is_asked_first() -> None:
    results = {0: vector_of([True, True, True], BOOL, 0)}
    scope = Rows({0: pa.array([True, False, None])}, results, (0, 1, 2))
    result = evaluate(And((Call(0, (), BOOL), Argument(0, BOOL))), scope)
    assert outcome(result) == [True, False, None]
    assert scope.called == [(0, (0, 2))]


def test_nothing_is_called_when_every_row_is_decided() -> None:
    scope = scope_of(([False, False], BOOL), ([True, True], BOOL))
    first, second = calls(BOOL, BOOL)
    assert outcome(evaluate(And((first, second)), scope)) == [False, False]
    assert outcome(evaluate(Or((Not(first), second)), scope)) == [True, True]
    guarded = Case(((first, second),), literal(value=False, kind=BOOL), BOOL)
    assert outcome(evaluate(guarded, scope)) == [False, False]
    assert outcome(evaluate(Coalesce((first, second), BOOL), scope)) == [False, False]
    assert outcome(evaluate(In(first, (first, second)), scope)) == [True, True]
    assert {function for function, _ in scope.called} == {0}


def test_a_case_calls_each_branch_for_its_rows_only() -> None:
    conditions = [True, False, None, True, False]
    scope = scope_of(
        (conditions, BOOL), ([1, 2, 3, 4, 5], INT), ([10, 20, 30, 40, 50], INT)
    )  # fmt: skip
    condition, value, otherwise = calls(BOOL, INT, INT)
    result = evaluate(Case(((condition, value),), otherwise, INT), scope)
    assert outcome(result) == [1, 20, 30, 4, 50]
    assert scope.called == [(0, (0, 1, 2, 3, 4)), (1, (0, 3)), (2, (1, 2, 4))]


def test_coalesce_calls_only_for_nulls() -> None:
    scope = scope_of(([1, None, ERROR, None], INT), ([5, 6, 7, None], INT))
    result = evaluate(Coalesce(calls(INT, INT), INT), scope)
    assert outcome(result) == [1, 6, ERROR, None]
    assert scope.called == [(0, (0, 1, 2, 3)), (1, (1, 3))]


def test_an_option_of_in_is_called_only_for_rows_without_a_match() -> None:
    scope = scope_of(([1, 2, None, ERROR], INT), ([1, 2, 3, 4], INT))
    operand, option = calls(INT, INT)
    result = evaluate(In(operand, (literal(1), option)), scope)
    assert outcome(result) == [True, True, None, ERROR]
    assert scope.called == [(0, (0, 1, 2, 3)), (1, (1,))]


def test_the_second_operand_is_not_called_where_the_first_is_null() -> None:
    scope = scope_of(([1, None, ERROR], INT), ([1, 1, 1], INT))
    assert outcome(evaluate(Comparison(EQUAL, *calls(INT, INT)), scope)) == [True, None, ERROR]
    assert scope.called == [(0, (0, 1, 2)), (1, (0,))]


# ---------------------------------------------------------------- arithmetic failures


def sole_error(expression: Expression, *values: object) -> ArithmeticFailure:
    """Evaluate over one row of int64 arguments which must fail."""
    kinds = {node.index: node.type for node in expression.walk() if isinstance(node, Argument)}
    columns = {n: pa.array([value], kinds[n]) for n, value in enumerate(values)}
    vector = evaluate(expression, Rows(columns, rows=(0,)))
    assert vector.values.null_count == 1
    (error,) = vector.errors.values()
    assert isinstance(error, ArithmeticFailure)
    return error


def test_failures_name_sparks_condition_and_the_values() -> None:
    pair = Argument(0, INT), Argument(1, INT)
    overflow = sole_error(Arithmetic(ADD, pair, INT, ansi=True), 2**63 - 1, 1)
    assert overflow.condition is ErrorCondition.ARITHMETIC_OVERFLOW
    assert str(overflow).startswith("[ARITHMETIC_OVERFLOW] 9223372036854775807 + 1 in int64.")
    remainder = sole_error(Arithmetic(ArithmeticOperator.REMAINDER, pair, INT, ansi=True), 5, 0)
    assert str(remainder).startswith("[REMAINDER_BY_ZERO] 5 % 0 in int64.")
    small = sole_error(
        Arithmetic(ADD, (Argument(0, pa.int8()), literal(1, pa.int8())), pa.int8(), ansi=True), 127
    )
    assert small.condition is ErrorCondition.BINARY_ARITHMETIC_OVERFLOW
    narrowed = sole_error(Cast(Argument(0, INT), pa.int8(), ansi=True), 128)
    assert str(narrowed).startswith("[CAST_OVERFLOW] the value 128 of type int64 does not fit int8")
    again = pickle.loads(pickle.dumps(overflow))  # noqa: S301  # our own bytes
    assert str(again) == str(overflow)


def test_out_of_ansi_mode_nothing_fails() -> None:
    columns = {0: pa.array([2**63 - 1, 7]), 1: pa.array([1, 0])}
    scope = Rows(columns, rows=(0, 1))
    pair = Argument(0, INT), Argument(1, INT)
    total = evaluate(Arithmetic(ADD, pair, INT, ansi=False), scope)
    assert outcome(total) == [-(2**63), 7]
    remainder = evaluate(Arithmetic(ArithmeticOperator.REMAINDER, pair, INT, ansi=False), scope)
    assert outcome(remainder) == [0, None]


def test_a_guard_keeps_a_failure_away() -> None:
    divisors = Argument(0, DOUBLE)
    quotient = Arithmetic(DIVIDE, (literal(1.0, DOUBLE), divisors), DOUBLE, ansi=True)
    big = Comparison(ComparisonOperator.GREATER, quotient, literal(0.1, DOUBLE))
    guard = Not(Comparison(EQUAL, divisors, literal(0.0, DOUBLE)))
    scope = Rows({0: pa.array([2.0, 0.0, 20.0, None])}, rows=(0, 1, 2, 3))
    assert outcome(evaluate(big, scope)) == [True, ERROR, False, None]
    assert outcome(evaluate(And((big, guard)), scope)) == [True, False, False, None]
    assert outcome(evaluate(Or((big, Not(guard))), scope)) == [True, True, False, None]
    case = Case(((guard, quotient),), literal(-1.0, DOUBLE), DOUBLE)
    assert outcome(evaluate(case, scope)) == [0.5, -1.0, 0.05, -1.0]


# ---------------------------------------------------------------- vectors and types


@pytest.mark.parametrize("rows", [(), (1,), (0, 1, 2)])
def test_a_vector_has_the_rows_and_the_type_of_its_expression(rows: tuple[int, ...]) -> None:
    column = Argument(0, INT)
    scope = Rows({0: pa.array([1, None, 3])}, rows=rows)
    expressions: list[Expression] = [
        column,
        literal(5),
        literal(None, TEXT),
        Comparison(EQUAL, literal(1), literal(1)),
        Comparison(EQUAL, column, literal(None)),
        And((IsNull(column), literal(value=True, kind=BOOL))),
        Case(((IsNull(column), literal(0)),), column, INT),
        Coalesce((column, literal(0)), INT),
        In(column, (literal(1), literal(None))),
        In(column, (column, literal(2))),
        Cast(column, TEXT, ansi=True),
        Arithmetic(ArithmeticOperator.REMAINDER, (literal(7), column), INT, ansi=True),
        StringMatch(StringTest.CONTAINS, literal("abc", TEXT), "b"),
        Like(literal("abc", TEXT), "a%", "\\"),
    ]
    for expression in expressions:
        vector = evaluate(expression, scope)
        assert (len(vector), vector.values.type) == (len(rows), type_of(expression))
        assert not vector.errors


def test_a_column_in_another_time_zone_is_the_same_instant() -> None:
    utc = pa.timestamp("us", "UTC")
    scope = Rows({0: pa.array([0, 1], pa.timestamp("us", "Europe/Paris"))}, rows=(0, 1))
    vector = evaluate(Argument(0, utc), scope)
    assert vector.values.equals(pa.array([0, 1], utc))


def test_equal_expressions_prepared_apart_do_not_meet() -> None:
    # 0.0 == -0.0 and True == 1 in Python, so a table by equality would mix them up.
    scope = Rows(rows=(0,))
    for zero in (0.0, -0.0, 0.0):
        vector = evaluate(Literal(zero, DOUBLE), scope)
        assert math.copysign(1, vector.values[0].as_py()) == math.copysign(1, zero)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (Comparison(EQUAL, literal(1), literal(1.0, DOUBLE)), "comparison of int64 with double"),
        (Comparison(EQUAL, *[Argument(0, pa.list_(INT))] * 2), "comparison of list"),
        (In(literal(1), ()), "IN without options"),
        (And((literal(1),)), "And of what is not boolean"),
        (Arithmetic(DIVIDE, (literal(1), literal(1)), INT, ansi=True), "/ of int64, int64"),
        (
            Arithmetic(ADD, (literal(1), literal(1)), pa.int32(), ansi=True),
            "+ of int64, int64 as int32",
        ),
        (
            Arithmetic(
                ArithmeticOperator.MULTIPLY,
                (Argument(0, pa.decimal128(30, 2)),) * 2,
                pa.decimal128(38, 4),
                ansi=True,
            ),
            "* of decimal128(30, 2), decimal128(30, 2)",
        ),
        (Cast(Argument(0, TEXT), INT, ansi=True), "cast of string to int64"),
        (Cast(Argument(0, pa.date32()), pa.timestamp("us", "UTC"), ansi=True), "cast of date32"),
        (Cast(Argument(0, DOUBLE), TEXT, ansi=True), "cast of double to string"),
        (Like(Argument(0, TEXT), "a\\b", "\\"), "before 'b'"),
        (Like(Argument(0, TEXT), "a\\", "\\"), "at the end"),
        (Like(Argument(0, TEXT), "a", "xy"), "not one character"),
        (StringMatch(StringTest.CONTAINS, Argument(0, pa.binary()), "a"), "contains of binary"),
        (Case(((literal(value=True, kind=BOOL), literal(1)),), literal("a", TEXT), INT), "CASE"),
        (Coalesce((literal(1), literal("a", TEXT)), INT), "COALESCE of several types"),
        (IsNaN(literal(1)), "isnan of int64"),
        (Literal("a", INT), "the literal 'a' as int64"),
        (Not(Call(0, (Cast(Argument(0, TEXT), INT, ansi=True),), BOOL)), "cast of string"),
        (Expression(), "the expression Expression"),
    ],
    ids=str,
)
def test_what_is_not_exact_is_refused(expression: Expression, reason: str) -> None:
    found = fault_of(expression)
    assert found is not None
    assert reason in found
    with pytest.raises(UnsupportedExpressionError, match="leave the expression to Spark"):
        prepare(expression)


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize(
    "target", [pa.int8(), INT, DOUBLE, TEXT, BOOL, pa.date32(), pa.decimal128(9, 2)], ids=str
)
def test_what_is_null_alone_is_null_in_any_type(target: pa.DataType, ansi: bool) -> None:  # noqa: FBT001 - parametrized
    cast = Cast(Argument(0, pa.null()), target, ansi=ansi)
    assert fault_of(cast) is None
    found = evaluate(cast, Columns({0: pa.nulls(3)}, 3))
    assert found.values.equals(pa.nulls(3, target))
    assert not found.errors


def test_what_fails_does_so_where_it_is_asked_for() -> None:
    """In CASE only the rows that come to it fail; the condition is Spark's."""
    failure = Failure("CAST_INVALID_INPUT", "CAST(t AS INT)", INT)
    failed, value = Argument(0, BOOL), Argument(1, INT)
    expression = Case(((failed, failure),), value, INT)
    assert fault_of(expression) is None
    assert type_of(failure) == INT
    columns = Columns({0: pa.array([False, True, False]), 1: pa.array([1, None, None], INT)}, 3)
    vector = evaluate(expression, columns)
    assert vector.values.to_pylist() == [1, None, None]
    assert set(vector.errors) == {1}
    assert str(vector.errors[1]).startswith("[CAST_INVALID_INPUT] CAST(t AS INT)")
    assert render(expression, [], ["failed", "t"]) == (
        "CASE WHEN failed THEN <CAST_INVALID_INPUT> ELSE t END"
    )


@pytest.mark.parametrize("kind", PatternKind)
def test_patterns_may_differ_from_row_to_row(kind: PatternKind) -> None:
    text, pattern = Argument(0, TEXT), Argument(-1, TEXT)
    match = VariableMatch(kind, text, pattern)
    assert fault_of(match) is None
    texts = ["abc", "ABC", None, "b", "abc", "", "b%"] * 2
    patterns = ["a%", "b", "a%", None, "(?i)B", "", "%b_", "b", "%B%", "b", "b", "%c", "^$", ".%"]
    columns = Columns({0: pa.array(texts, TEXT), -1: pa.array(patterns, TEXT)}, len(texts))
    one_by_one = [
        None
        if own is None
        else evaluate(match.against(own), Columns({0: pa.array([value], TEXT)}, 1))
        .values[0]
        .as_py()
        for value, own in zip(texts, patterns, strict=True)
    ]
    assert evaluate(match, columns).values.to_pylist() == one_by_one
    assert set(one_by_one) == {True, False, None}
    assert render(match, [], ["t", "p"]) == f"t {kind} p"
    assert match.against(None) == Literal(None, BOOL)
