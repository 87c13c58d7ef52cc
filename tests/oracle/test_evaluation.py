"""Random expressions over awkward values: what Eddyline computes is what Spark computes."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from eddyline.engine.evaluation import cast_never_fails, evaluate, supported, type_of
from eddyline.engine.vector import Vector
from eddyline.query.expressions import (
    And,
    Argument,
    Arithmetic,
    ArithmeticOperator,
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
)

ROWS = 97
EXPRESSIONS_A_QUERY = 40
SINGLE_ROW_QUERIES = 12  # a batch: rows that failed here, tried alone in Spark

NARROW = pa.decimal128(10, 2)
WIDE = pa.decimal128(24, 6)
INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
FLOATS = (pa.float32(), pa.float64())
UTC = dt.UTC


def integers(bits: int) -> list[object]:
    top = 2 ** (bits - 1)
    return [0, 1, -1, 2, 3, -3, 7, 10, 100, -100, top - 1, -top, top - 2, top // 2, -top // 2]


FLOATING: list[object] = [
    0.0, -0.0, 1.0, -1.0, 1.5, -1.5, 0.1, math.nan, math.inf, -math.inf, 2.0, 127.9, 128.0,
    -128.9, -129.0, 32767.5, 32768.0, 2147483647.0, 2147483648.0, -2147483649.0, 1e-300,
    9223372036854775807.0, -9223372036854775808.0, 9.3e18, -9.3e18, 1.7e308, 16777217.0,
]  # fmt: skip
TEXTS: list[object] = [
    "", "a", "b", "ab", "A", "a%", "a_b", "ab\nc", "é", "e\u0301", "😀", "a😀b", "\uffff", " a ",
    "abc", "aab", "%", "\\", "a\\b", "z", "\x00", "a\x00", "ß", "中文",
]  # fmt: skip
VALUES: dict[pa.DataType, list[object]] = {
    pa.bool_(): [True, False],
    pa.int8(): integers(8),
    pa.int16(): integers(16),
    pa.int32(): integers(32),
    pa.int64(): [*integers(64), 2**53 + 1, 2**62 + 2**38 + 1, 3037000500],
    pa.float32(): [value for value in FLOATING if not 1e38 < abs(float(str(value))) < math.inf],
    pa.float64(): FLOATING,
    pa.string(): TEXTS,
    pa.binary(): [b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"a", b"ab", b"a\x00"],
    NARROW: [decimal.Decimal(text) for text in ("0.00", "1.00", "-1.00", "0.10", "99999999.99",
                                                "-99999999.99", "12345.67")],
    WIDE: [decimal.Decimal(text) for text in ("0.000000", "0.100000", "-1.000000", "1.000000",
                                              "999999999999999999.999999", "123456.700001")],
    pa.date32(): [dt.date(1970, 1, 1), dt.date(1582, 10, 15), dt.date(2024, 2, 29),
                  dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    pa.timestamp("us", "UTC"): [
        dt.datetime(1970, 1, 1, tzinfo=UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        dt.datetime(2024, 10, 27, 1, 30, tzinfo=UTC), dt.datetime(1900, 1, 1, tzinfo=UTC),
    ],
    pa.timestamp("us"): [
        dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        dt.datetime(2024, 10, 27, 2, 30), dt.datetime(1900, 1, 1),
    ],
}  # fmt: skip
DDL = {
    pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int",
    pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double", pa.string(): "string",
    pa.binary(): "binary", NARROW: "decimal(10,2)", WIDE: "decimal(24,6)", pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp", pa.timestamp("us"): "timestamp_ntz",
}  # fmt: skip
# Two columns a type, so that columns meet each other; drawn once, NULLs among them.
COLUMNS = [kind for kind in VALUES for _ in range(2)]


def column_values() -> list[pa.Array]:
    generator = random.Random(7)
    return [
        pa.array([generator.choice([None, *VALUES[kind]]) for _ in range(ROWS)], kind)
        for kind in COLUMNS
    ]


@dataclass(frozen=True)
class Columns:
    """The scope of all rows, or of some."""

    arrays: list[pa.Array]

    def argument(self, index: int) -> pa.Array:
        return self.arrays[index]

    def call(self, call: object) -> Vector:
        raise AssertionError(call)

    def narrow(self, positions: object) -> Columns:
        return Columns([array.take(pa.array(positions)) for array in self.arrays])

    def __len__(self) -> int:
        return len(self.arrays[0])


TABLE = Columns(column_values())


# ---------------------------------------------------------------- random expressions


def leaves(kind: pa.DataType) -> st.SearchStrategy[Expression]:
    indexes = [index for index, column in enumerate(COLUMNS) if column == kind]
    arguments = st.sampled_from([Argument(index, kind) for index in indexes])
    literals = st.sampled_from([None, *VALUES[kind]]).map(lambda value: Literal(value, kind))
    return st.one_of(arguments, arguments, literals)


def expressions(
    kind: pa.DataType, depth: int, *, ansi: bool, total: bool
) -> st.SearchStrategy[Expression]:
    """Expressions of a type; ``total`` ones cannot fail in ANSI mode."""
    if depth == 0:
        return leaves(kind)

    def of(other: pa.DataType, *, surely: bool = total) -> st.SearchStrategy[Expression]:
        return expressions(other, depth - 1, ansi=ansi, total=surely)

    choices = [leaves(kind), conditionals(kind, of)]
    if kind == pa.bool_():
        # Spark fails where an earlier term fails; Eddyline lets a later one decide.
        choices += [predicates(of), connectives(of)]
    if kind in INTEGERS or kind in FLOATS:
        choices += [arithmetic(kind, of, ansi=ansi, total=total)] * 2
    sources = [
        source
        for source in VALUES
        if supported(Cast(Argument(0, source), kind, ansi)) is None
        and (not total or cast_never_fails(source, kind))
    ]
    if len(sources) > 1:
        casts = st.sampled_from(sources).flatmap(of)
        choices.append(casts.map(lambda operand: Cast(operand, kind, ansi)))
    return st.one_of(choices)


def conditionals(kind: pa.DataType, of) -> st.SearchStrategy[Expression]:  # noqa: ANN001
    branches = st.lists(st.tuples(of(pa.bool_()), of(kind)), min_size=1, max_size=2)
    return st.one_of(
        st.builds(lambda found, rest: Case(tuple(found), rest, kind), branches, of(kind)),
        st.lists(of(kind), min_size=2, max_size=3).map(lambda some: Coalesce(tuple(some), kind)),
    )


def predicates(of) -> st.SearchStrategy[Expression]:  # noqa: ANN001
    kinds = st.sampled_from(list(VALUES))
    comparisons = kinds.flatmap(
        lambda kind: st.builds(Comparison, st.sampled_from(ComparisonOperator), of(kind), of(kind))
    )
    memberships = kinds.flatmap(
        lambda kind: st.builds(
            lambda operand, options: In(operand, tuple(options)),
            of(kind),
            st.one_of(
                st.lists(of(kind), min_size=1, max_size=4),
                st.lists(
                    st.sampled_from([None, *VALUES[kind]]).map(lambda value: Literal(value, kind)),
                    min_size=1,
                    max_size=14,
                ),
            ),
        )
    )
    text = of(pa.string())
    patterns = st.text(alphabet="ab%_é😀\n!", max_size=4)
    likes = st.builds(
        Like,
        text,
        patterns.map(lambda pattern: pattern.replace("!", "!!").replace("!!!!", "!%")),
        st.just("!"),
    )
    matches = st.builds(
        StringMatch, st.sampled_from(StringTest), text, st.text(alphabet="abé😀%", max_size=2)
    )
    null_tests = kinds.flatmap(of).map(IsNull)
    nan_tests = st.sampled_from(FLOATS).flatmap(of).map(IsNaN)
    return st.one_of(
        comparisons, comparisons, memberships, likes, matches, null_tests, nan_tests
    )


def connectives(of) -> st.SearchStrategy[Expression]:  # noqa: ANN001
    terms = st.lists(of(pa.bool_(), surely=True), min_size=2, max_size=3)
    return st.one_of(
        terms.map(lambda some: And(tuple(some))),
        terms.map(lambda some: Or(tuple(some))),
        of(pa.bool_()).map(Not),
    )


def arithmetic(kind: pa.DataType, of, *, ansi: bool, total: bool) -> st.SearchStrategy[Expression]:  # noqa: ANN001
    operators = [
        operator
        for operator in ArithmeticOperator
        if operator is not ArithmeticOperator.DIVIDE or kind == pa.float64()
    ]
    if total and ansi:
        dividing = {ArithmeticOperator.DIVIDE, ArithmeticOperator.REMAINDER}
        operators = [each for each in operators if kind in FLOATS and each not in dividing]
        if not operators:
            return leaves(kind)
    unary = {ArithmeticOperator.NEGATE, ArithmeticOperator.ABSOLUTE}
    return st.sampled_from(operators).flatmap(
        lambda operator: st.tuples(*[of(kind)] * (1 if operator in unary else 2)).map(
            lambda operands: Arithmetic(operator, operands, kind, ansi)
        )
    )


def batches(*, ansi: bool) -> st.SearchStrategy[list[Expression]]:
    one = st.sampled_from([*[pa.bool_()] * len(VALUES), *VALUES]).flatmap(
        lambda kind: expressions(kind, 3, ansi=ansi, total=False)
    )
    return st.lists(one, min_size=EXPRESSIONS_A_QUERY, max_size=EXPRESSIONS_A_QUERY)


# ---------------------------------------------------------------- the same in Spark

FUNCTIONS = {
    ArithmeticOperator.NEGATE: "negative",
    ArithmeticOperator.ABSOLUTE: "abs",
    StringTest.STARTS_WITH: "startswith",
    StringTest.ENDS_WITH: "endswith",
    StringTest.CONTAINS: "contains",
}


def constant(value: object, kind: pa.DataType) -> str:
    if value is None:
        return f"CAST(NULL AS {DDL[kind]})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    if isinstance(value, dt.date):  # a time stamp is one too
        return f"{DDL[kind]}'{value.isoformat()}'"
    return f"CAST('{value}' AS {DDL[kind]})"


def sql(expression: Expression) -> str:  # noqa: C901, PLR0911, PLR0912  # one a node
    parts = [sql(child) for child in expression.children]
    match expression:
        case Argument():
            return f"c{expression.index}"
        case Literal():
            return constant(expression.value, expression.type)
        case And():
            return f"({' AND '.join(parts)})"
        case Or():
            return f"({' OR '.join(parts)})"
        case Not():
            return f"(NOT {parts[0]})"
        case Comparison():
            return f"({parts[0]} {expression.operator} {parts[1]})"
        case Arithmetic() if len(parts) == 1:
            return f"{FUNCTIONS[expression.operator]}({parts[0]})"
        case Arithmetic():
            return f"({parts[0]} {expression.operator} {parts[1]})"
        case IsNull():
            return f"({parts[0]} IS NULL)"
        case IsNaN():
            return f"isnan({parts[0]})"
        case In():
            return f"({parts[0]} IN ({', '.join(parts[1:])}))"
        case Like():
            pattern = constant(expression.pattern, pa.string())
            return f"like({parts[0]}, {pattern}, '{expression.escape}')"
        case StringMatch():
            needle = constant(expression.needle, pa.string())
            return f"{FUNCTIONS[expression.test]}({parts[0]}, {needle})"
        case Case():
            pairs = zip(parts[:-1:2], parts[1:-1:2], strict=True)
            branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
            return f"CASE {branches} ELSE {parts[-1]} END"
        case Coalesce():
            return f"coalesce({', '.join(parts)})"
        case Cast():
            return f"CAST({parts[0]} AS {DDL[expression.type]})"
        case _:
            raise AssertionError(expression)


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark as it evaluates what is written: without rules that drop or fold expressions."""
    rules = "ConvertToLocalRelation", "ConstantFolding", "NullPropagation", "NullDownPropagation", \
        "BooleanSimplification", "SimplifyConditionals", "SimplifyBinaryComparison", \
        "PushFoldableIntoBranches", "OptimizeIn", "LikeSimplification", "SimplifyCasts", \
        "UnwrapCastInBinaryComparison", "ReplaceNullWithFalseInPredicate", \
        "ConditionalExpressionsInPredicate", "ReorderAssociativeOperator"
    package = "org.apache.spark.sql.catalyst.optimizer."
    key = "spark.sql.optimizer.excludedRules"
    spark.conf.set(key, ",".join(package + rule for rule in rules))
    yield spark
    spark.conf.unset(key)
    spark.conf.unset("spark.sql.ansi.enabled")


def same(ours: object, theirs: object) -> bool:
    """Equal, with NaN equal to NaN and 0.0 not equal to -0.0."""
    return type(ours) is type(theirs) and repr(ours) == repr(theirs)


def compare(spark: SparkSession, batch: list[Expression]) -> None:
    ours = [evaluate(expression, TABLE) for expression in batch]
    assert [vector.values.type for vector in ours] == list(map(type_of, batch))
    arrays = [*TABLE.arrays, pa.array(range(ROWS))]
    schema = [*(f"c{index} {DDL[kind]}" for index, kind in enumerate(COLUMNS)), "row bigint"]
    for number, vector in enumerate(ours):
        assert all(vector.values[row].as_py() is None for row in vector.errors)
        arrays.append(pa.array([row not in vector.errors for row in range(ROWS)]))
        schema.append(f"fine{number} boolean")
    table = pa.Table.from_arrays(arrays, [column.split()[0] for column in schema])
    df = spark.createDataFrame(table, ", ".join(schema)).coalesce(1)
    texts = list(map(sql, batch))
    # A row that failed here is kept out, one that did not must not fail there.
    guarded = [f"CASE WHEN fine{number} THEN {text} END" for number, text in enumerate(texts)]
    theirs = df.selectExpr(*guarded).toArrow()
    for number, (expression, vector) in enumerate(zip(batch, ours, strict=True)):
        expected = theirs.column(number).to_pylist()
        for row, value in enumerate(vector.values.to_pylist()):
            assert same(value, expected[row]), (expression, row, value, expected[row])
    failing = [
        (number, row, error)
        for number, vector in enumerate(ours)
        for row, error in list(vector.errors.items())[:1]
    ]
    for number, row, error in failing[:SINGLE_ROW_QUERIES]:
        with pytest.raises(Exception, match=r"\[[A-Z_]+\]") as raised:
            df.where(f"row = {row}").selectExpr(texts[number]).collect()
        condition = str(error).partition("]")[0]
        assert condition in str(raised.value), (batch[number], row, error)


settings.register_profile("spark")
FEW = settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # a batch that fails names the expression; shrinking takes minutes
    suppress_health_check=list(HealthCheck),
)


@FEW
@given(batch=batches(ansi=False))
def test_values_are_sparks_in_legacy_mode(oracle: SparkSession, batch: list[Expression]) -> None:
    oracle.conf.set("spark.sql.ansi.enabled", "false")
    compare(oracle, batch)


@FEW
@given(batch=batches(ansi=True))
def test_values_and_errors_are_sparks_in_ansi_mode(
    oracle: SparkSession, batch: list[Expression]
) -> None:
    oracle.conf.set("spark.sql.ansi.enabled", "true")
    compare(oracle, batch)
