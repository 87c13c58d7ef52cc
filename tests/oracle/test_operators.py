"""Every operator over every pair of awkward values: the result and the error are Spark's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from eddyline.expressions import (
    Argument,
    Arithmetic,
    ArithmeticOperator,
    Cast,
    Comparison,
    ComparisonOperator,
    Expression,
    In,
    IsNaN,
    IsNull,
    Like,
    Literal,
    Not,
    StringMatch,
    StringTest,
    arithmetic_type,
    evaluate,
    fault_of,
)
from eddyline.expressions.strings import Length
from eddyline.quirks.pyspark_at_hand import MINOR
from tests.oracle.awkward_values import (
    DDL,
    FLOATS,
    INTEGERS,
    NARROW,
    VALUES,
    WIDE,
    Columns,
    same,
    sql,
)

UNARY = (ArithmeticOperator.NEGATE, ArithmeticOperator.ABSOLUTE)
TRYING = {
    ArithmeticOperator.ADD: "try_add",
    ArithmeticOperator.SUBTRACT: "try_subtract",
    ArithmeticOperator.MULTIPLY: "try_multiply",
    ArithmeticOperator.DIVIDE: "try_divide",
    ArithmeticOperator.REMAINDER: "try_mod",
}
TEXT = pa.string()


def check(
    spark: SparkSession,
    kinds: Sequence[pa.DataType],
    cases: Sequence[tuple[Expression, str | None]],
) -> int:
    """Compare over all combinations of values, and return how many rows failed.

    Each expression comes with SQL that is NULL exactly where the expression fails
    or is NULL, or with None where it cannot fail.
    """
    rows = list(product(*([None, *VALUES[kind]] for kind in kinds)))
    arrays = [pa.array([row[index] for row in rows], kind) for index, kind in enumerate(kinds)]
    scope = Columns(arrays)
    ours = [evaluate(expression, scope) for expression, _ in cases]
    schema = [f"c{index} {DDL[kind]}" for index, kind in enumerate(kinds)]
    queries = []
    for number, ((expression, trying), vector) in enumerate(zip(cases, ours, strict=True)):
        arrays.append(pa.array([row not in vector.errors for row in range(len(rows))]))
        schema.append(f"fine{number} boolean")
        # Where no error was found, Spark must not raise one; where one was, it would.
        queries.append(f"CASE WHEN fine{number} THEN {sql(expression)} END")
        queries.append(f"{trying or 'TRUE'} IS NULL")
    table = pa.Table.from_arrays(arrays, [column.split()[0] for column in schema])
    theirs = spark.createDataFrame(table, ", ".join(schema)).selectExpr(*queries).toArrow()
    for number, ((expression, trying), vector) in enumerate(zip(cases, ours, strict=True)):
        values = theirs.column(2 * number).to_pylist()
        nothing = theirs.column(2 * number + 1).to_pylist()
        for row, value in enumerate(vector.values.to_pylist()):
            assert same(value, values[row]), (expression, rows[row], value, values[row])
            if trying:
                assert nothing[row] == (value is None), (expression, rows[row], vector.errors)
    return sum(len(vector.errors) for vector in ours)


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_comparisons(oracle: SparkSession, kind: pa.DataType) -> None:
    left, right = Argument(0, kind), Argument(1, kind)
    cases: list[Expression] = [Comparison(operator, left, right) for operator in ComparisonOperator]
    for value in [None, *VALUES[kind][:3], *VALUES[kind][7:8]]:  # -0.0 and NaN among them
        literal = Literal(value, kind)
        cases += [Comparison(operator, left, literal) for operator in ComparisonOperator]
        cases.append(Comparison(ComparisonOperator.GREATER, literal, left))
    literals = tuple(Literal(value, kind) for value in VALUES[kind])
    cases += [
        In(left, literals[::2]),
        In(left, (*literals[1::2], Literal(None, kind))),
        In(left, (right, literals[0])),
        In(left, (right, Literal(None, kind), literals[0])),
        IsNull(left),
        Not(IsNull(left)),
    ]
    if kind in FLOATS:
        cases.append(IsNaN(left))
    assert check(oracle, (kind, kind), [(expression, None) for expression in cases]) == 0


@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS], ids=str)
def test_arithmetic(oracle: SparkSession, kind: pa.DataType, *, ansi: bool) -> None:
    oracle.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    left, right = Argument(0, kind), Argument(1, kind)
    cases: list[tuple[Expression, str | None]] = []
    for operator in ArithmeticOperator:
        if arithmetic_type(operator, (kind,) * (1 if operator in UNARY else 2)) is None:
            continue
        if operator in UNARY:
            # There is no try_ variant: an integer fails if its opposite does not fit.
            trying = f"try_subtract(CAST(0 AS {DDL[kind]}), c0)"
            if operator is ArithmeticOperator.ABSOLUTE:
                trying = f"IF(c0 < 0, {trying}, c0)"
            cases.append((Arithmetic(operator, (left,), kind, ansi), trying if ansi else None))
            continue
        literals = [Literal(VALUES[kind][index], kind) for index in (0, 2, 10)]
        pairs: list[tuple[Expression, Expression]] = [(left, right)]
        pairs += [(literal, right) for literal in literals]
        pairs += [(left, literal) for literal in literals]
        for pair in pairs:
            trying = f"{TRYING[operator]}({', '.join(map(sql, pair))})"
            if MINOR < (4, 0) and operator is ArithmeticOperator.REMAINDER:
                trying = "{} % nullif({}, 0)".format(*map(sql, pair))  # no try_mod yet
            cases.append((Arithmetic(operator, pair, kind, ansi), trying if ansi else None))
    failures = check(oracle, (kind, kind), cases)
    assert (failures > 0) == ansi


@pytest.mark.parametrize("kinds", list(product((NARROW, WIDE), repeat=2)), ids=str)
def test_decimal_arithmetic(oracle: SparkSession, kinds: tuple[pa.DataType, pa.DataType]) -> None:
    operands = tuple(Argument(index, kind) for index, kind in enumerate(kinds))
    cases: list[tuple[Expression, str | None]] = []
    for operator in ArithmeticOperator:
        some = operands[:1] if operator in UNARY else operands
        result = arithmetic_type(operator, tuple(operand.type for operand in some))
        if result is not None:
            cases.append((Arithmetic(operator, some, result, ansi=True), None))
    assert len(cases) >= 4
    assert check(oracle, kinds, cases) == 0


@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
@pytest.mark.parametrize("source", VALUES, ids=str)
def test_casts(oracle: SparkSession, source: pa.DataType, *, ansi: bool) -> None:
    oracle.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    operand = Argument(0, source)
    cases: list[tuple[Expression, str | None]] = []
    for target in VALUES:
        expression = Cast(operand, target, ansi)
        if fault_of(expression) is None:
            trying = f"try_cast(c0 AS {DDL[target]})" if ansi else None
            cases.append((expression, trying))
    assert cases
    check(oracle, (source,), cases)


def test_string_tests(oracle: SparkSession) -> None:
    operand = Argument(0, TEXT)
    needles = ["", "a", "b", "é", "😀", "%", "\x00", "\n", "ab", "\u0301"]
    cases = [StringMatch(test, operand, needle) for test in StringTest for needle in needles]
    assert check(oracle, (TEXT,), [(expression, None) for expression in cases]) == 0


@pytest.mark.parametrize("escape", ["\\", "!", "a", "%"])
def test_like(oracle: SparkSession, escape: str) -> None:
    operand = Argument(0, TEXT)
    characters = ["a", "b", "%", "_", "é", "😀", "\n", ".", "\\", "!", "\x00", " "]
    patterns = ["", *map("".join, product(characters, repeat=2)), "a%b", "%a%", "a!%b%", "___",
                "\\\\", "a\\\\b", "!!", "%%a", "[a]", "a*", "^a", "(?i)a", "\\%"]  # fmt: skip
    cases = [Like(operand, pattern, escape) for pattern in patterns]
    cases = [expression for expression in cases if fault_of(expression) is None]
    assert len(cases) > 80
    assert check(oracle, (TEXT,), [(expression, None) for expression in cases]) == 0


@pytest.mark.parametrize("kind", [TEXT, pa.binary()], ids=str)
def test_length(oracle: SparkSession, kind: pa.DataType) -> None:
    assert check(oracle, (kind,), [(Length(Argument(0, kind)), None)]) == 0


def test_length_of_what_is_not_valid_utf8(oracle: SparkSession) -> None:
    """All texts of two bytes that begin something, and of three."""
    firsts = [0x00, 0x41, 0x80, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5,
              0xF8, 0xFF]  # fmt: skip
    several = [bytes(each) for n in range(4) for each in product(firsts, repeat=n)]
    data = pa.array([None, *several], pa.binary())
    texts = pa.Array.from_buffers(TEXT, len(data), data.buffers())
    ours = evaluate(Length(Argument(0, TEXT)), Columns([texts])).values.to_pylist()
    table = pa.table({"n": range(len(data)), "b": data})
    frame = oracle.createDataFrame(table).selectExpr("n", "length(CAST(b AS STRING)) AS it")
    theirs = frame.orderBy("n").toArrow().column("it").to_pylist()
    assert ours == theirs
