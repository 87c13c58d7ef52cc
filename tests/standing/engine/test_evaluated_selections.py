"""Selections that are evaluated by themselves: shared answers, few calls, errors of one query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.sharing.planned_eddy import PlannedEddy
from bench.sharing.sharing_plans import PLANS
from eddyline.expressions import (
    And,
    Argument,
    Call,
    Comparison,
    ComparisonOperator,
    Expression,
    Literal,
    Not,
    Or,
)
from eddyline.expressions.vector import Vector
from eddyline.standing.engine.selections import Selection
from eddyline.standing.engine.shared_eddy import SharedEddy
from eddyline.standing.engine.shared_query import SharedQuery, Stream, edge
from eddyline.standing.engine.shared_results import SharedResults
from eddyline.wall_clock import WallClock
from tests.properties import examples

TYPES = (pa.int64(), pa.int64())
STREAMS = (Stream("R", TYPES), Stream("S", TYPES))
KEY, VALUE = Argument(0, pa.int64()), Argument(1, pa.int64())
FAILS = 7
"""The value for which the functions raise."""


class Doubling:
    """Doubles a number, counts the calls for each, and fails for some."""

    vectorized = False

    def __init__(self, factor: int) -> None:
        self.factor = factor
        self.calls: Counter[int] = Counter()

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        values = columns[0].to_pylist()
        assert len(values) == rows
        self.calls.update(value for value in values if value is not None)
        errors = {n: ValueError("seven") for n, value in enumerate(values) if value == FAILS}
        found = [
            None if v is None or n in errors else v * self.factor for n, v in enumerate(values)
        ]
        return Vector(pa.array(found, pa.int64()), errors)


def called(function: int, least: int) -> Expression:
    """Return that a function's result is at least so much."""
    call = Call(function, (VALUE,), pa.int64())
    return Comparison(ComparisonOperator.GREATER_OR_EQUAL, call, Literal(least, pa.int64()))


def at_least(value: int) -> Expression:
    return Comparison(ComparisonOperator.GREATER_OR_EQUAL, VALUE, Literal(value, pa.int64()))


terms = st.one_of(
    st.integers(0, 9).map(at_least),
    st.tuples(st.integers(0, 1), st.integers(0, 30)).map(lambda pair: called(*pair)),
    st.tuples(st.integers(0, 9), st.integers(0, 30)).map(
        lambda pair: Or((Not(at_least(pair[0])), called(0, pair[1])))
    ),
)
selections = st.none() | st.lists(terms, min_size=1, max_size=3).map(lambda some: And(tuple(some)))
joined = frozenset({edge((0, 0), (1, 0))})
queries = st.one_of(
    selections.map(lambda one: SharedQuery({0: one})),
    st.tuples(selections, selections).map(lambda two: SharedQuery({0: two[0], 1: two[1]}, joined)),
)
rows = st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(0, 9)), max_size=6)
pushes = st.lists(st.tuples(st.integers(0, 1), rows), max_size=6)

Row = tuple[int, int | None]


def truth(predicate: Selection, row: Row) -> bool | None:  # noqa: PLR0911 - one a kind
    """Return whether a row passes; None where that is an error."""
    value = row[1]
    match predicate:
        case None:
            return True
        case And(parts):
            found = [truth(part, row) for part in parts]
            return False if False in found else None if None in found else True
        case Or(parts):
            found = [truth(part, row) for part in parts]
            return True if True in found else None if None in found else False
        case Not(operand):  # of a comparison that is no error: NULL is not TRUE either way
            return value is not None and not truth(operand, row)
        case Comparison(_, Call(function), Literal(least)):
            if value == FAILS:
                return None
            return value is not None and value * (2, 3)[function] >= int(str(least))
        case Comparison(_, _, Literal(least)):
            return value is not None and value >= int(str(least))
    raise AssertionError(predicate)


class Run:
    """A shared eddy by a plan; without one as queries stand, with calls that may be delayed."""

    def __init__(self, plan: str | None, asked: Mapping[int, SharedQuery]) -> None:
        self.answer: Counter[tuple[int, tuple[Row, ...]]] = Counter()
        self.errors: set[int] = set()
        self.functions = [Doubling(2), Doubling(3)]
        generator = np.random.default_rng(0)
        self.eddy = (
            SharedEddy(
                STREAMS, self._take, WallClock(), generator, on_error=self._failed, delays=True
            )
            if plan is None
            else PlannedEddy(
                STREAMS,
                self._take,
                WallClock(),
                generator,
                plan=PLANS[plan],
                on_error=self._failed,
            )
        )
        self.eddy.take_functions(self.functions)
        self.eddy.add(asked)

    def push(self, given_: Sequence[tuple[int, Sequence[Row]]]) -> Run:
        for stream, came in given_:
            columns = [pa.array([row[c] for row in came], pa.int64()) for c in range(2)]
            self.eddy.push(stream, columns, len(came))
        return self

    def restore(self, stream: int, came: Sequence[Row]) -> None:
        columns = [pa.array([row[c] for row in came], pa.int64()) for c in range(2)]
        self.eddy.restore(stream, columns, len(came))

    def _failed(self, query: int, *_: object) -> None:
        self.errors.add(query)

    def _take(self, results: SharedResults) -> None:
        parts = [
            list(zip(*(results.column(s, c).to_pylist() for c in range(2)), strict=True))
            for s in results.streams
        ]
        tuples = list(zip(*parts, strict=True))
        positions, numbers = self.eddy.sets.spread(results.lineages)
        for position, number in zip(positions.tolist(), numbers.tolist(), strict=True):
            self.answer[number, tuples[position]] += 1


def wanted(
    asked: Mapping[int, SharedQuery], given_: Sequence[tuple[int, Sequence[Row]]]
) -> Counter[tuple[int, tuple[Row, ...]]]:
    came = [[row for stream, some in given_ if stream == s for row in some] for s in range(2)]
    found: Counter[tuple[int, tuple[Row, ...]]] = Counter()
    for number, query in asked.items():
        passed = {s: [r for r in came[s] if truth(p, r)] for s, p in query.selections.items()}
        if len(passed) == 1:
            found.update((number, (row,)) for row in passed[0])
        else:
            found.update((number, (r, s)) for r in passed[0] for s in passed[1] if r[0] == s[0])
    return found


@pytest.mark.parametrize("plan", PLANS)
@examples(60)
@given(st.dictionaries(st.integers(0, 99), queries, min_size=1, max_size=5), pushes)
def test_answers(
    plan: str, asked: dict[int, SharedQuery], given_: list[tuple[int, list[Row]]]
) -> None:
    assert Run(plan, asked).push(given_).answer == wanted(asked, given_)


@pytest.mark.parametrize("plan", ["tulip", "car"])
@examples(60)
@given(st.dictionaries(st.integers(0, 99), queries, min_size=1, max_size=5), pushes)
def test_errors_count_where_all_else_is_true(
    plan: str, asked: dict[int, SharedQuery], given_: list[tuple[int, list[Row]]]
) -> None:
    run = Run(plan, asked).push(given_)
    assert run.errors == {
        number
        for number, query in asked.items()
        for stream, some in given_
        if stream in query.selections
        for row in some
        if truth(query.selections[stream], row) is None
    }


def test_a_call_is_made_once_for_all_queries_and_for_no_dead_tuple() -> None:
    asked = {n: SharedQuery({0: And((at_least(n % 5), called(0, 4)))}) for n in range(100)}
    asked[100] = SharedQuery({0: And((at_least(8), called(0, 4), called(1, 1)))})
    run = Run("car", {n: q for n, q in asked.items() if n % 5 > 1 or n == 100})
    run.push([(0, [(0, value) for value in (0, 1, 2, 3, 4, 5, 8, 9)])])
    assert run.functions[0].calls == Counter((2, 3, 4, 5, 8, 9))  # below 2 no query wants it
    assert run.functions[1].calls == Counter((8, 9))


def test_nothing_is_called_for_queries_that_went() -> None:
    run = Run("car", {1: SharedQuery({0: called(0, 4)}), 2: SharedQuery({0: called(1, 4)})})
    run.eddy.remove([2])
    run.push([(0, [(0, 3), (0, 4)])])
    assert not run.functions[1].calls
    assert run.answer == Counter({(1, ((0, 3),)): 1, (1, ((0, 4),)): 1})


def test_without_anyone_to_tell_an_error_is_raised() -> None:
    eddy = SharedEddy(STREAMS, lambda _: None, WallClock(), np.random.default_rng(0))
    eddy.take_functions([Doubling(2), Doubling(3)])
    eddy.add({1: SharedQuery({0: called(0, 4)})})
    with pytest.raises(ValueError, match="seven"):
        eddy.push(0, [pa.array([1]), pa.array([FAILS])], 1)
