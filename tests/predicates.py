"""Generated predicates, and what SQL says of them: evaluated row by row, with nothing clever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from eddyline.engine.prior import Prior
from eddyline.expressions import (
    And,
    Argument,
    Call,
    Case,
    Comparison,
    ComparisonOperator,
    Expression,
    IsNull,
    Literal,
    Not,
    Or,
)

BOOL, INT = pa.bool_(), pa.int64()
COLUMNS = (Argument(0, INT), Argument(1, INT))
FUNCTIONS = 4
RAISE = "raise"

Tables = Sequence[Sequence[object]]
"""A user function a table: what it returns, or that it raises, by its argument; NULL's is last."""


def result_of(table: Sequence[object], value: int | None) -> object:
    """Return what the function of a table does with a value."""
    return table[-1 if value is None else value % (len(table) - 1)]


class Unknown(Exception):  # noqa: N818 - an internal signal
    """An error of a row, on its way up through the reference evaluation."""


def value(expression: Expression, row: Sequence[int | None], tables: Tables) -> Any:  # noqa: ANN401, C901, PLR0911, PLR0912
    """Evaluate one expression for one row, as SQL says; raises Unknown for an error."""
    match expression:
        case Argument(index=index):
            return row[index]
        case Literal(value=constant):
            return constant
        case Call(function=number, arguments=(argument,)):
            result = result_of(tables[number], value(argument, row, tables))
            if result == RAISE:
                raise Unknown
            return result
        case Not(operand=operand):
            inner = value(operand, row, tables)
            return None if inner is None else not inner
        case IsNull(operand=operand):
            return value(operand, row, tables) is None
        case Comparison(left=left, right=right):
            sides = value(left, row, tables), value(right, row, tables)
            return None if None in sides else sides[0] < sides[1]
        case Case(branches=((condition, then),), otherwise=otherwise):
            taken = value(condition, row, tables) is True
            return value(then if taken else otherwise, row, tables)
        case And(terms=terms) | Or(terms=terms):
            decisive = isinstance(expression, Or)
            results, failed = [], False
            for term in terms:
                try:
                    results.append(value(term, row, tables))
                except Unknown:
                    failed = True
            if decisive in results:
                return decisive
            if failed:
                raise Unknown
            return None if None in results else not decisive
    raise AssertionError(expression)


FALSE, ERROR, TRUE = 0, 1, 2


def accepted(
    expression: Expression,
    row: Sequence[int | None],
    tables: Tables,
    *,
    wanted: bool,
) -> int:
    """Return whether a predicate is TRUE (wanted) or FALSE (not wanted), or an error hides it."""
    match expression:
        case Not(operand=operand):
            return accepted(operand, row, tables, wanted=not wanted)
        case And(terms=terms) | Or(terms=terms):
            every = isinstance(expression, And) is wanted
            outcomes = [accepted(term, row, tables, wanted=wanted) for term in terms]
            return min(outcomes) if every else max(outcomes)
    try:
        return TRUE if value(expression, row, tables) is wanted else FALSE
    except Unknown:
        return ERROR


def calls() -> st.SearchStrategy[Call]:
    return st.builds(
        lambda number, column: Call(number, (COLUMNS[column],), BOOL),
        st.integers(0, FUNCTIONS - 1),
        st.integers(0, 1),
    )


def predicates() -> st.SearchStrategy[Expression]:
    less = st.builds(
        lambda column, bound: Comparison(
            ComparisonOperator.LESS, COLUMNS[column], Literal(bound, INT)
        ),
        st.integers(0, 1),
        st.integers(0, 9),
    )
    leaves = st.one_of(calls(), calls(), less, st.builds(IsNull, calls()))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=4).map(lambda terms: And(tuple(terms))),
            st.lists(inner, min_size=2, max_size=4).map(lambda terms: Or(tuple(terms))),
            inner.map(Not),
            st.tuples(inner, inner, inner).map(lambda t: Case(((t[0], t[1]),), t[2], BOOL)),
        ),
        max_leaves=9,
    )


def _prior(nested: st.SearchStrategy[Prior | None]) -> st.SearchStrategy[Prior | None]:
    amounts = st.sampled_from([1e-6, 0.5, 1.0, 40.0, 1e3, 1e12])
    known = st.builds(
        lambda tuples, share, cost, terms: Prior(tuples, share * tuples, cost, tuple(terms)),
        amounts,
        st.sampled_from([0.0, 0.001, 0.5, 1.0]),
        st.one_of(st.just(0.0), amounts),
        st.lists(nested, max_size=3),
    )
    return st.one_of(st.none(), known)


PRIORS = st.lists(_prior(_prior(st.none())), max_size=3)
"""What is known of terms, right or wrong: as it comes, it need not even be of as many terms."""


TABLES = st.lists(
    st.lists(st.sampled_from([True, True, False, False, None]), min_size=6, max_size=6).flatmap(
        lambda table: st.lists(st.integers(0, 5), max_size=2).map(
            lambda places: [RAISE if i in places else v for i, v in enumerate(table)]
        )
    ),
    min_size=FUNCTIONS,
    max_size=FUNCTIONS,
)
ROW = st.tuples(*[st.one_of(st.none(), st.integers(0, 9))] * 2)

ROWS = st.lists(ROW, min_size=0, max_size=40)
