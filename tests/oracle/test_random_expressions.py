"""Random expressions over awkward values: what Eddyline computes is what Spark computes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

import eddyline
from eddyline.expressions import (
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
    cast_never_fails,
    evaluate,
    fault_of,
    type_of,
)
from eddyline.expressions.strings import Length
from eddyline.planner.adapt import adapted_blocks
from eddyline.quirks.pyspark_at_hand import MINOR
from tests.oracle.awkward_values import (
    DDL,
    FLOATS,
    INTEGERS,
    VALUES,
    Columns,
    same,
    sql,
)
from tests.oracle.random_functions import (
    KINDS,
    NESTED,
    Refilled,
    both,
    calm,
    fine,
    made,
    refusing,
)
from tests.properties import examples

pytestmark = pytest.mark.slow(60)

ROWS = 97
EXPRESSIONS_A_QUERY = 30
DEPTH = 2
SINGLE_ROW_QUERIES = 6  # a batch: rows that failed here, tried alone in Spark

Strategy: TypeAlias = "st.SearchStrategy[Expression]"
Below: TypeAlias = Callable[..., Any]  # the strategy of a type, one level further down

# Two columns a type, so that columns meet each other; drawn once, NULLs among them.
COLUMNS = [kind for kind in VALUES for _ in range(2)]


def column_values() -> list[pa.Array]:
    generator = random.Random(7)
    return [
        pa.array([generator.choice([None, *VALUES[kind]]) for _ in range(ROWS)], kind)
        for kind in COLUMNS
    ]


TABLE = Columns(column_values())


def leaves(kind: pa.DataType) -> Strategy:
    indexes = [index for index, column in enumerate(COLUMNS) if column == kind]
    arguments = st.sampled_from([Argument(index, kind) for index in indexes])
    literals = st.sampled_from([None, *VALUES[kind]]).map(lambda value: Literal(value, kind))
    return st.one_of(arguments, arguments, literals)


def expressions(kind: pa.DataType, depth: int, *, ansi: bool, total: bool) -> Strategy:
    """Expressions of a type; ``total`` ones cannot fail in ANSI mode."""
    if depth == 0:
        return leaves(kind)

    def of(other: pa.DataType, *, surely: bool = total) -> Strategy:
        return expressions(other, depth - 1, ansi=ansi, total=surely)

    choices = [conditionals(kind, of)]
    if depth < DEPTH:
        choices.append(leaves(kind))
    if kind == pa.bool_():
        choices += [*predicates(of), connectives(of)]
    if kind in INTEGERS or kind in FLOATS:
        choices += [arithmetic(kind, of, ansi=ansi, total=total)] * 2
    if kind == Length.type:
        choices.append(st.sampled_from([pa.string(), pa.binary()]).flatmap(of).map(Length))
    sources = [
        source
        for source in VALUES
        if fault_of(Cast(Argument(0, source), kind, ansi)) is None
        and (not total or cast_never_fails(source, kind))
    ]
    if len(sources) > 1:
        casts = st.sampled_from(sources).flatmap(of)
        choices.append(casts.map(lambda operand: Cast(operand, kind, ansi)))
    return st.one_of(choices)


def conditionals(kind: pa.DataType, of: Below) -> Strategy:
    branches = st.lists(st.tuples(of(pa.bool_()), of(kind)), min_size=1, max_size=2)
    return st.one_of(
        st.builds(lambda found, rest: Case(tuple(found), rest, kind), branches, of(kind)),
        st.lists(of(kind), min_size=2, max_size=3).map(lambda some: Coalesce(tuple(some), kind)),
    )


def predicates(of: Below) -> list[Strategy]:
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
        patterns.map(lambda pattern: pattern.replace("!", "!%")),
        st.just("!"),
    )
    matches = st.builds(
        StringMatch, st.sampled_from(StringTest), text, st.text(alphabet="abé😀%", max_size=2)
    )
    null_tests = kinds.flatmap(of).map(IsNull)
    nan_tests = st.sampled_from(FLOATS).flatmap(of).map(IsNaN)
    return [comparisons, comparisons, memberships, likes, matches, null_tests, nan_tests]


def connectives(of: Below) -> Strategy:
    # Terms that cannot fail: Spark fails at once where Eddyline lets a later term decide.
    terms = st.lists(of(pa.bool_(), surely=True), min_size=2, max_size=3)
    return st.one_of(
        terms.map(lambda some: And(tuple(some))),
        terms.map(lambda some: Or(tuple(some))),
        of(pa.bool_()).map(Not),
    )


def arithmetic(kind: pa.DataType, of: Below, *, ansi: bool, total: bool) -> Strategy:
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
    kinds = st.sampled_from([*[pa.bool_()] * len(VALUES), *VALUES])
    trees = kinds.flatmap(lambda kind: expressions(kind, DEPTH, ansi=ansi, total=False))
    return st.lists(trees, min_size=EXPRESSIONS_A_QUERY, max_size=EXPRESSIONS_A_QUERY)


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
        if MINOR <= (4, 0):  # which has one name for both
            condition = condition.replace("REMAINDER_BY_ZERO", "DIVIDE_BY_ZERO")
        assert condition in str(raised.value), (batch[number], row, error)


FEW = examples(
    4,
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


COPIES = 4
BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"

LEFT_OUT = {
    "pandas": {"lists"},  # plain Spark cannot make a series of lists of lists of times
    "pickled": {"map", "deep"},  # are left to Spark: Java decides in which order a map is pickled
}
"""Forms of arguments that functions of a kind are not called with."""


@dataclass(frozen=True)
class RandomCall:
    """A kind of function, and the SQL of its two arguments."""

    kind: str
    arguments: tuple[str, str]

    def of(self, function: Callable[[Any, Any], Any], result: str) -> Column:
        column: Column = made(function, result, self.kind)(*map(F.expr, self.arguments))
        return column


def calls() -> st.SearchStrategy[list[RandomCall]]:
    """A call over each type, nested or not, and beside it any other."""

    def argument(kind: pa.DataType, forms: list[str]) -> st.SearchStrategy[str]:
        of_type = expressions(kind, 1, ansi=True, total=True).map(sql)
        form = st.sampled_from(forms)
        return st.builds(lambda name, one, other: NESTED[name](one, other), form, of_type, of_type)

    def call(kind: str, a_type: pa.DataType) -> st.SearchStrategy[RandomCall]:
        forms = [form for form in NESTED if form not in LEFT_OUT.get(kind, ())]
        any_type = st.sampled_from(list(VALUES)).flatmap(lambda other: argument(other, forms))
        pair = st.tuples(argument(a_type, forms), st.one_of(st.just("0"), any_type))
        return pair.map(lambda arguments: RandomCall(kind, arguments))

    def of_type(a_type: pa.DataType) -> st.SearchStrategy[RandomCall]:
        return st.sampled_from(KINDS).flatmap(lambda kind: call(kind, a_type))

    return st.tuples(*map(of_type, VALUES)).map(list)


@pytest.fixture(scope="module")
def repeating(spark: SparkSession) -> Iterator[DataFrame]:
    """The table's rows several times over, in batches that come one after the other."""
    schema = ", ".join(f"c{index} {DDL[kind]}" for index, kind in enumerate(COLUMNS))
    once = pa.table(TABLE.arrays, [f"c{index}" for index in range(len(COLUMNS))])
    rows = spark.createDataFrame(pa.concat_tables([once] * COPIES).combine_chunks(), schema)
    found = rows.coalesce(1).withColumn("row", F.monotonically_increasing_id()).cache()
    spark.conf.set(BATCH, "150")
    yield found
    found.unpersist()
    spark.conf.unset(BATCH)


@FEW
@given(found=calls())
def test_values_of_functions_are_those_of_plain_spark(
    repeating: DataFrame, found: list[RandomCall]
) -> None:
    """Of functions that change their arguments, and what they have returned before."""
    columns = [call.of(both, "string").alias(f"v{n}") for n, call in enumerate(found)]
    # The second batch brings new arguments, and then those of the first one again.
    refilled = Refilled().column("row % 200", "0").alias("refilled")
    frame = repeating.select("row", *columns, refilled)
    adapted = eddyline.adapt(frame)
    for row, expected in zip(sorted(adapted.collect()), sorted(frame.collect()), strict=True):
        assert row == expected, found
    records = [block.record for block in eddyline.report(adapted).blocks if block.record]
    functions = [function for record in records for function in record.functions]
    assert all(each.calls + each.remembered == ROWS * COPIES for each in functions)
    # One that is cheap beside its arguments gives up to remember.
    assert sum(each.remembered for each in functions) > len(functions) * ROWS


@FEW
@given(found=calls())
@pytest.mark.parametrize("remember", [True, False])
def test_functions_that_fail_for_some_arguments(
    repeating: DataFrame,
    found: list[RandomCall],
    remember: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Another one keeps the rows from the result, and no error from one row reaches another."""
    for call in found[::5]:
        guarded = call.of(refusing, "boolean") & call.of(fine, "boolean")
        adapted = eddyline.adapt(repeating.filter(guarded), remember=remember).select("row")
        expected = repeating.filter(call.of(calm, "boolean")).select("row")
        assert adapted_blocks(adapted), call
        assert sorted(adapted.collect()) == sorted(expected.collect()), call


@FEW
@given(found=calls())
@pytest.mark.parametrize("remember", [True, False])
def test_errors_are_those_of_their_arguments_however_often_these_come(
    repeating: DataFrame,
    found: list[RandomCall],
    remember: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Rows of the first batch are dropped by another function; later ones are like them."""
    call = found[0]
    late = F.udf(lambda row: row >= 2 * ROWS, "boolean")("row")
    asked = repeating.filter(call.of(refusing, "boolean") & late)
    adapted = eddyline.adapt(asked, remember=remember, policy="static")
    if repeating.filter(~call.of(fine, "boolean")).isEmpty():
        assert adapted.count() == repeating.filter(call.of(calm, "boolean")).count() // 2
    else:
        with pytest.raises(PythonException, match="refused"):
            adapted.count()
