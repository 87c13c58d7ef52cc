"""Comparisons of two inputs over columns of all types: claimed where they can be evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, given, reject
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.types import BooleanType

import eddyline
from eddyline.blocks.filter_block import FilterBlock
from eddyline.engine.join_graph import JoinGraph
from eddyline.expressions import prepare
from eddyline.expressions.terms import conjuncts_of, expression_of
from eddyline.planner.adapt import adapted_blocks
from eddyline.quirks.pyspark_at_hand import MINOR
from tests.needed_pyspark import needs_pyspark
from tests.planner.joins.broadcasting import broadcasting
from tests.properties import examples

pytestmark = pytest.mark.slow(20)

TYPES: Final = {
    "boolean": ("true", "false"),
    "tinyint": ("1Y", "-1Y"),
    "bigint": ("1L", "2L"),
    "float": ("float('NaN')", "float(-0.0)", "float(0)"),
    "double": ("double('NaN')", "-0.0d", "0.0d"),
    "decimal(5,2)": ("1.50", "2.25"),
    "decimal(38,10)": ("1.5", "-2.25"),
    "string": ("'a'", "'A'", "'sixteen letters!'"),
    "char(3)": ("'a'", "'b  '"),
    "varchar(3)": ("'a'", "'b'"),
    "string collate UTF8_LCASE": ("'a'", "'A'"),
    "string collate UNICODE_CI": ("'a'", "'A'"),
    "binary": ("X'00'", "X'FF'"),
    "date": ("date'2020-01-01'", "date'1500-01-01'"),
    "timestamp": ("timestamp'2020-01-01 00:00:00'", "timestamp'1500-01-01 00:00:00'"),
    "timestamp_ntz": ("timestamp_ntz'2020-01-01 00:00:00'", "timestamp_ntz'1500-01-01 00:00:00'"),
    "time(6)": ("time'10:00:00'", "time'11:00:00'"),
    "interval day to second": ("interval '1' day", "interval '-1' second"),
    "interval year to month": ("interval '1' year", "interval '2' month"),
    "array": ("array(1, 2)", "array(1, null)", "array()"),
    "array of structs": ("array(named_struct('a', 1))", "array(null)"),
    "struct": ("named_struct('a', 1, 'b', 'x')", "named_struct('a', null, 'b', 'x')"),
    "struct of structs": (
        "named_struct('a', 1, 'b', named_struct('c', 0.0d))",
        "named_struct('a', 1, 'b', named_struct('c', -0.0d))",
    ),
    "struct of arrays": ("named_struct('a', array(1))", "named_struct('a', array(2))"),
    "struct of a collated string": (
        "named_struct('a', collate('x', 'UTF8_LCASE'))",
        "named_struct('a', collate('X', 'UTF8_LCASE'))",
    ),
    "struct of nothing": ("named_struct()",),
    "struct of structs of nothing": (
        "named_struct('e', named_struct(), 'n', 1)",
        "named_struct('e', cast(null as struct<>), 'n', 1)",
    ),
    "struct with odd names": ("named_struct('a.b', 1, '', 2)", "named_struct('a.b', 1, '', 3)"),
    "null": ("null",),
}
"""Some values of types that can be compared; maps, variants and intervals of both kinds cannot."""

NEEDS_TIME: Final = needs_pyspark(4, 1, "type for the time of a day")
NOT_DRAWN: Final = frozenset({"null"} if MINOR >= (4, 1) else {"null", "time(6)"})
DECLARED: Final = frozenset({"char(3)", "varchar(3)"})
NEVER: Final = frozenset({
    *("string collate UTF8_LCASE", "string collate UNICODE_CI", "time(6)", "array"),
    *("interval day to second", "interval year to month", "array of structs", "null"),
    *("struct of arrays", "struct of a collated string"),
})  # fmt: skip
"""Types that no claimed comparison of two inputs is over."""

asked = F.udf(lambda one, other: (one + other) % 3 != 2, BooleanType())


def table(spark: SparkSession, number: str, column: str, name: str) -> DataFrame:
    """Return rows with each value of a type twice, and NULL."""
    values = (*TYPES[name], "null") * 2
    rows = ", ".join(f"({n}, {value})" for n, value in enumerate(values))
    kind = f"cast(x as {name})" if name in DECLARED or "string collate" in name else "x"
    query = f"select n {number}, {kind} {column} from values {rows} as t(n, x)"  # noqa: S608 - of constants
    return spark.sql(query)


def prepared_all(frame: DataFrame) -> int:
    """Prepare every expression of every block of an adapted DataFrame; return their number."""
    blocks = [block for block, _ in adapted_blocks(frame)]
    for block in blocks:
        if isinstance(block, FilterBlock):
            expressions = (*map(expression_of, conjuncts_of(block.predicate)), *block.outputs)
        else:
            expressions = (*JoinGraph(block.query).predicates, *block.query.outputs)
        for expression in expressions:
            for node in expression.walk():  # the arguments of calls are prepared by themselves
                prepare(node)
    return len(blocks)


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=NEEDS_TIME) if name == "time(6)" else name for name in TYPES],
)
def test_keys_of_a_type(spark: SparkSession, name: str) -> None:
    """Types are joined in place and shuffled in turn."""
    one, other = table(spark, "i", "x", name), table(spark, "j", "y", name)
    with broadcasting(spark, allowed=list(TYPES).index(name) % 2 == 0):
        for operator in ("=", "<=>"):
            frame = one.join(other, F.expr(f"x {operator} y")).where(asked("i", "j"))
            frame = frame.select("i", "j")  # Python knows no interval of months
            adapted = eddyline.adapt(frame, joins="always", remember=False)
            claimed = prepared_all(adapted)
            # No row has an equal of what is NULL in every row, so that no function is left.
            empty = name == "null" and operator == "="
            assert bool(claimed) == (name not in NEVER) or empty
    assert rows_of(adapted) == rows_of(frame)


@pytest.mark.parametrize("operator", ["=", "<=>"])
@pytest.mark.parametrize("allowed", [False, True])
def test_structs_of_other_labels(spark: SparkSession, operator: str, allowed: bool) -> None:  # noqa: FBT001 - a parameter
    """Spark does not look at them, and an index need not either."""
    one = spark.sql("select id i, named_struct('a', id % 3, 'b', 'x') x from range(9)")
    other = spark.sql(
        "select id j, if(id = 4, null, named_struct('A', nullif(id, 1), 'b', 'x')) y from range(6)"
    )
    frame = one.join(other, F.expr(f"x {operator} y")).where(asked("i", "j"))
    with broadcasting(spark, allowed=allowed):
        adapted = eddyline.adapt(frame, joins="always")
        ((block, _),) = adapted_blocks(adapted)
        assert not isinstance(block, FilterBlock)
        assert len(JoinGraph(block.query).classes) == 1
        assert rows_of(adapted) == rows_of(frame)


# ---------------------------------------------------------------- whatever is written

PATTERN: Final = "_" * 100_000
"""More than RE2 compiles; Java's expressions have limits of their own."""

CONDITIONS: Final = (
    "f({x}) <=> {y}", "f({x}) = {y}", "f({x}) < {y}", "f({x}) in ({y}, {x})", "f({x}) is null",
    "coalesce(f({x}), {y}) = {x}", "case when g(i) then f({x}) else {y} end <=> {x}",
    "if(g(i), f({x}), null) = {y}", "g(i) and {x} <=> {y}", "g(i) or {x} = {y}",
    "not ({x} <=> f({y}))", "{x} >= f({y})", "f({x}) = f({y})", "isnotnull(f({x})) <=> g(i)",
    "{x} < {y}", "g(i) or {x} >= {y}", "nvl2(f({x}), {y}, {x}) = {y}",
)  # fmt: skip


@pytest.fixture(scope="module")
def functions(spark: SparkSession) -> Iterator[None]:
    """Give the functions that conditions are written with, and take them away again."""
    spark.udf.register("g", lambda number: number % 2 == 0, BooleanType())
    spark.udf.register("h", lambda number: number % 3 == 0, BooleanType())
    yield
    for name in "fgh":
        spark.sql(f"drop temporary function if exists {name}")


def adapted_over(frame: DataFrame, condition: str) -> tuple[DataFrame, DataFrame]:
    """Return rows that fulfil a condition over ``f``, which returns what it gets, and others."""
    frame.sparkSession.udf.register("f", lambda value: value, frame.schema["x"].dataType)
    written = frame.where(condition.format(x="x", y="y"))
    return written, eddyline.adapt(written, joins="always")


@pytest.mark.usefixtures("functions")
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from([name for name in TYPES if name not in NOT_DRAWN]),
    some=st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=2),
    joined=st.booleans(),
)
def test_whatever_is_claimed_can_be_prepared(
    spark: SparkSession,
    name: str,
    some: list[str],
    joined: bool,  # noqa: FBT001 - drawn
) -> None:
    """Nothing runs: in a worker it would be too late to say that it cannot."""
    one, other = table(spark, "i", "x", name), table(spark, "j", "y", name)
    both = one.join(other, F.expr("i % 3 = j % 3")) if joined else one.selectExpr("i", "x", "x y")
    try:
        _, adapted = adapted_over(both.where("h(i)"), " and ".join(f"({each})" for each in some))
    except AnalysisException as error:
        if error.getCondition() != "UNSUPPORTED_TIME_TYPE":  # Spark's own refusal of IF over TIME
            raise
        reject()
    prepared_all(adapted)


@pytest.mark.usefixtures("functions")
def test_a_pattern_that_is_too_large_is_left_to_spark(spark: SparkSession) -> None:
    frame = spark.sql("select id i, string(id) x, string(id) y from range(8)")
    written, adapted = adapted_over(frame, f"g(i) and not (f(x) like '{PATTERN}') and f(y) > '3'")
    assert any("pattern too large" in each.detail for each in eddyline.explain(written).left)
    assert prepared_all(adapted) == 1
