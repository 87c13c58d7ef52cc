"""Generated columns of several types, and predicates over them, for tests of grouped filters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from eddyline.engine.relation import Relation, RowScope
from eddyline.expressions import (
    And,
    Argument,
    Arithmetic,
    ArithmeticOperator,
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
from eddyline.wall_clock import WallClock

LEAST, GREATEST = -(2**63), 2**63 - 1
DAY = dt.date(2026, 1, 1)

VALUES: Mapping[pa.DataType, Sequence[Any]] = {
    pa.int64(): [LEAST, LEAST + 1, -1, 0, 1, 2, GREATEST - 1, GREATEST],
    pa.int32(): [-(2**31), -1, 0, 1, 2**31 - 1],
    pa.float64(): [float("-inf"), -1.0, -0.0, 0.0, 5e-324, 1.5, float("inf"), float("nan")],
    pa.string(): ["", "a", "ab", "abc", "b", "\u00e4", "z", "\U0001f600", "a%"],
    pa.binary(): [b"", b"a", b"a\xff", b"b"],
    pa.date32(): [DAY, DAY + dt.timedelta(1), DAY - dt.timedelta(300)],
    pa.timestamp("us", "UTC"): [
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        dt.datetime(1900, 1, 1, tzinfo=dt.UTC),
    ],
    pa.decimal128(9, 2): [Decimal("-1.50"), Decimal("0.00"), Decimal("1.25")],
    pa.bool_(): [False, True],
}
TYPES = tuple(VALUES)
COLUMNS = tuple(Argument(index, a_type) for index, a_type in enumerate(TYPES))
NUMBER, DOUBLE, TEXT = COLUMNS[0], COLUMNS[2], COLUMNS[3]
TWICE = Arithmetic(ArithmeticOperator.ADD, (DOUBLE, DOUBLE), pa.float64(), ansi=True)

rows = st.lists(
    st.tuples(*(st.none() | st.sampled_from(values) for values in VALUES.values())), max_size=30
)


def _constants(a_type: pa.DataType) -> st.SearchStrategy[Expression]:
    return (st.none() | st.sampled_from(VALUES[a_type])).map(lambda value: Literal(value, a_type))


@st.composite
def comparisons(draw: st.DrawFn) -> Expression:
    """Draw a comparison of a column, or of an expression over columns, with a constant."""
    operand: Expression = draw(st.sampled_from([*COLUMNS, TWICE]))
    a_type = operand.type if isinstance(operand, Argument) else pa.float64()
    constant = draw(_constants(a_type))
    sides = draw(st.permutations([operand, constant]))
    return Comparison(draw(st.sampled_from(list(ComparisonOperator))), *sides)


@st.composite
def memberships(draw: st.DrawFn) -> Expression:
    """Draw an IN."""
    operand = draw(st.sampled_from(COLUMNS))
    return In(operand, tuple(draw(st.lists(_constants(operand.type), min_size=1, max_size=4))))


prefixes = st.sampled_from(["", "a", "ab", "\u00e4", "\U0001f600"])
leaves = st.one_of(
    comparisons(),
    comparisons(),
    memberships(),
    st.sampled_from(COLUMNS).map(IsNull),
    st.just(IsNaN(DOUBLE)),
    st.just(COLUMNS[-1]),
    prefixes.map(lambda prefix: StringMatch(StringTest.STARTS_WITH, TEXT, prefix)),
    prefixes.map(lambda prefix: Like(TEXT, prefix + "%", "\\")),
    st.sampled_from(["a_", "%a%", r"a\%", r"a\%%"]).map(lambda text: Like(TEXT, text, "\\")),
    st.just(StringMatch(StringTest.CONTAINS, TEXT, "b")),
    st.sampled_from([True, False, None]).map(lambda value: Literal(value, pa.bool_())),
    st.just(Comparison(ComparisonOperator.LESS, COLUMNS[0], COLUMNS[0])),
)
predicates = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=1, max_size=3).map(lambda terms: And(tuple(terms))),
        st.lists(inner, min_size=1, max_size=3).map(lambda terms: Or(tuple(terms))),
    ),
    max_leaves=6,
)


def scope_of(table: Sequence[Sequence[Any]]) -> RowScope:
    """Return the place where expressions find the values of rows."""
    columns = [
        pa.array([row[index] for row in table], a_type) for index, a_type in enumerate(TYPES)
    ]
    relation = Relation((), (), WallClock())
    return relation.scope(relation.append(columns, len(table)))


def conjunction(terms: Sequence[Expression]) -> Expression:
    """Return the AND of terms, one at least."""
    return reduce(lambda one, other: And((one, other)), terms)
