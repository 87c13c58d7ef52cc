"""Conditions on columns of several streams: shared values, few calls, errors of one query."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.sharing.audit import Audit
from bench.sharing.planned_eddy import PlannedEddy
from bench.sharing.sharing_plans import PLANS, SelectionPlacement
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.expressions import (
    And,
    Argument,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Comparison,
    ComparisonOperator,
    Expression,
    IsNull,
    Literal,
    Or,
)
from eddyline.expressions.vector import CollectiveFailure, Vector
from eddyline.standing.engine import shared_conditions
from eddyline.standing.engine.join_conditions import JoinCondition, column_of, conditions_in
from eddyline.standing.engine.predicate_templates import conditions_of
from eddyline.standing.engine.shared_query import SharedQuery, Stream, edge
from eddyline.standing.engine.shared_results import SharedResults
from eddyline.wall_clock import WallClock
from tests.properties import examples
from tests.standing.engine.shared import of_plan
from tests.standing.engine.three_valued import FailedError, value_of

INT, FLOAT, TEXT = pa.int64(), pa.float64(), pa.string()
TYPES = (INT, INT, FLOAT, TEXT)
STREAMS = tuple(Stream(name, TYPES) for name in "RST")
KEY, VALUE, MEASURE, WORD = range(4)
FAILS = 7
"""The number for which functions raise."""

EDGES = {
    (0, 1): frozenset({edge((0, KEY), (1, KEY))}),
    (0, 1, 2): frozenset({edge((0, KEY), (1, KEY)), edge((1, KEY), (2, KEY))}),
}

EVERY_PLAN = pytest.mark.parametrize("plan", PLANS)
PRECISE = pytest.mark.parametrize("plan", ["tulip", "car"])

Row = tuple[int | None, int | None, float | None, str | None]
Given = Sequence[tuple[int, Sequence[Row]]]


class Adding:
    """Adds up numbers, counts the calls for each, and fails for some sums."""

    def __init__(self, *, vectorized: bool = False) -> None:
        self.vectorized = vectorized
        self.calls: Counter[tuple[int, ...]] = Counter()

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        tuples = list(zip(*(column.to_pylist() for column in columns), strict=True))
        assert len(tuples) == rows
        self.calls.update(each for each in tuples if None not in each)
        found = [None if None in each else sum(each) for each in tuples]
        failed: dict[int, Exception] = {
            n: ValueError("seven") for n, total in enumerate(found) if total == FAILS
        }
        if failed and self.vectorized:
            failed = {n: CollectiveFailure(ValueError("seven")) for n in range(rows)}
        values = [None if n in failed else total for n, total in enumerate(found)]
        return Vector(pa.array(values, INT), failed)


def added(*numbers: int | None) -> int | None:
    """Return what the functions do, in plain Python."""
    if None in numbers:
        return None
    total = sum(number for number in numbers if number is not None)
    if total == FAILS:
        raise FailedError
    return total


def value(stream: int) -> Expression:
    return column_of(stream, VALUE, INT)


def called(function: int, *streams: int) -> Expression:
    return Call(function, tuple(map(value, streams)), INT)


def compared(left: Expression, how: str, right: Expression | int) -> Expression:
    other = Literal(right, INT) if isinstance(right, int) else right
    return Comparison(ComparisonOperator(how), left, other)


def between(low: int, high: int) -> Expression:
    one = Argument(VALUE, INT)
    return And((compared(one, ">=", low), compared(one, "<=", high)))


class Run:
    """A shared eddy with what it has put out, and whose errors it has told of."""

    def __init__(
        self,
        plan: str,
        asked: Mapping[int, SharedQuery],
        *,
        policy: PolicyName = PolicyName.RANK,
        vectorized: bool = False,
    ) -> None:
        self.answer: Counter[tuple[int, tuple[Any, ...]]] = Counter()
        self.errors: set[int] = set()
        self.audit = Audit()
        self.functions = [Adding(vectorized=vectorized), Adding(vectorized=vectorized)]
        self.eddy = PlannedEddy(
            STREAMS,
            self._take,
            WallClock(),
            np.random.default_rng(0),
            plan=PLANS[plan],
            make_policy=lambda: make_policy(policy),
            audit=self.audit,
            on_error=self._told,
        )
        self.eddy.take_functions(self.functions)
        self.eddy.add(asked)

    def push(self, given_: Given) -> Run:
        for stream, came in given_:
            columns = [pa.array([row[c] for row in came], t) for c, t in enumerate(TYPES)]
            self.eddy.push(stream, columns, len(came))
        return self

    def _told(self, query: int, error: Exception, _: object) -> None:
        assert isinstance(error, ValueError)
        self.errors.add(query)

    def _take(self, results: SharedResults) -> None:
        parts = [
            list(zip(*(results.column(s, c).to_pylist() for c in range(len(TYPES))), strict=True))
            for s in results.streams
        ]
        tuples = list(zip(*parts, strict=True))
        positions, numbers = self.eddy.sets.spread(results.lineages)
        for position, number in zip(positions.tolist(), numbers.tolist(), strict=True):
            self.answer[number, known_by(tuples[position])] += 1


def wanted(
    asked: Mapping[int, SharedQuery], given_: Given
) -> tuple[Counter[tuple[int, tuple[Any, ...]]], set[int]]:
    """Return all results, and the queries with errors that count: every combination, tried."""
    came = [[row for stream, some in given_ if stream == s for row in some] for s in range(3)]
    found: Counter[tuple[int, tuple[Any, ...]]] = Counter()
    failed = set()
    for number, query in asked.items():
        streams = sorted(query.selections)
        parts = [
            [
                row
                for row in came[stream]
                if (only := query.selections[stream]) is None or value_of(only, {0: row}) is True  # type: ignore[arg-type]  # an expression
            ]
            for stream in streams
        ]
        for tuple_ in itertools.product(*parts):
            keys = {row[KEY] for row in tuple_}
            if len(keys) > 1 or None in keys:
                continue
            rows = dict(zip(streams, tuple_, strict=True))
            try:
                if _all_true(query, rows):
                    found[number, known_by(tuple_)] += 1
            except FailedError:
                failed.add(number)
    return found, failed


def known_by(tuple_: tuple[Row, ...]) -> tuple[Any, ...]:
    """Return a tuple in which NaN is NaN, and 0.0 not -0.0."""
    return tuple(
        tuple(repr(each) if isinstance(each, float) else each for each in row) for row in tuple_
    )


def _all_true(query: SharedQuery, rows: Mapping[int, Row]) -> bool:
    failed = False
    for condition in conditions_in(query.conditions):
        try:
            if not value_of(condition.predicate, rows, condition.constants, (added, added)):
                return False
        except FailedError:
            failed = True
    if failed:
        raise FailedError
    return True


def terms_on(streams: Sequence[int]) -> st.SearchStrategy[Expression]:
    """Draw conditions that call functions of one or two streams, and such that do not."""

    def made(drawn: tuple[Any, ...]) -> Expression:
        kind, (one, other, *_), function, how, bound = drawn
        return {
            "two": compared(called(function, one, other), how, bound),
            "one": compared(called(function, one), how, value(other)),
            "inside": compared(called(function, one, other), how, value(streams[-1])),
            "guarded": Or(
                (
                    compared(value(one), how, value(other)),
                    compared(called(function, one, other), how, bound),
                )
            ),
            "null": IsNull(called(function, one, other)),
            "plain": compared(value(one), how, value(other)),
        }[kind]

    kinds = st.sampled_from(["two", "one", "inside", "guarded", "null", "plain"])
    how = st.sampled_from(["=", "<", ">="])
    return st.tuples(
        kinds, st.permutations(streams), st.integers(0, 1), how, st.integers(0, 18)
    ).map(made)


@st.composite
def queries(draw: st.DrawFn) -> SharedQuery:
    """Draw a query of two or three streams with conditions."""
    streams = draw(st.sampled_from([(0, 1), (0, 1, 2)]))
    selections = {s: draw(st.none() | st.just(between(1, 8))) for s in streams}
    asked = draw(st.lists(terms_on(streams), min_size=1, max_size=3))
    return SharedQuery(selections, EDGES[streams], (), tuple(asked))


rows = st.lists(
    st.tuples(st.integers(0, 1), st.none() | st.integers(0, 9), st.none(), st.none()), max_size=4
)
pushes = st.lists(st.tuples(st.integers(0, 2), rows), max_size=7)
query_sets = st.dictionaries(st.integers(0, 99), queries(), min_size=1, max_size=4)


@EVERY_PLAN
def test_answers_and_errors_are_those_of_each_query(plan: str) -> None:
    @of_plan(plan, 60)
    @given(query_sets, pushes, st.booleans())
    def check(
        asked: dict[int, SharedQuery],
        given_: Given,
        vectorized: bool,  # noqa: FBT001 - drawn
    ) -> None:
        run = Run(plan, asked, vectorized=vectorized).push(given_)
        assert (run.answer, run.errors) == wanted(asked, given_)

    check()


@examples(60)
@given(query_sets, pushes, st.sampled_from(list(PolicyName)))
def test_no_policy_changes_which_errors_are_met(
    asked: dict[int, SharedQuery], given_: Given, policy: PolicyName
) -> None:
    run = Run("car", asked, policy=policy).push(given_)
    assert (run.answer, run.errors) == wanted(asked, given_)


def two(*conditions: Expression | JoinCondition, low: int = 0, high: int = 99) -> SharedQuery:
    """Return a query of two streams."""
    return SharedQuery({0: between(low, high), 1: None}, EDGES[0, 1], (), conditions)


def many(stream: int, values: Sequence[int]) -> tuple[int, list[Row]]:
    return stream, [(1, number, None, None) for number in values]


def test_a_call_is_made_once_for_all_queries_and_for_no_dead_tuple() -> None:
    asked = {n: two(compared(called(0, 0, 1), ">", n), low=5) for n in range(50)}
    run = Run("car", asked).push([many(0, [3, 5, 6]), many(1, [10, 20])])
    assert run.functions[0].calls == Counter(itertools.product((5, 6), (10, 20)))
    assert run.audit.precision().repeated == {}


def test_a_call_about_one_stream_is_made_once_for_each_of_its_rows() -> None:
    asked = {1: two(compared(called(0, 0), "<", value(1)))}
    run = Run("car", asked).push([many(0, [3, 5]), many(1, [4, 4, 9]), many(1, [2, 6])])
    assert run.functions[0].calls == Counter([(3,), (5,)])
    assert run.answer == wanted(asked, [many(0, [3, 5]), many(1, [4, 4, 9, 2, 6])])[0]


def test_a_call_is_made_for_no_tuple_that_only_others_want() -> None:
    asked = {1: two(compared(called(0, 0, 1), ">", 0), low=5), 2: two()}
    run = Run("car", asked).push([many(0, [3, 5]), many(1, [10, 20])])
    assert run.functions[0].calls == Counter([(5, 10), (5, 20)])


def test_whoever_fails_only_together_with_others_is_asked_again_alone() -> None:
    for condition in (compared(called(0, 0), "<", value(1)), compared(called(0, 0, 1), ">", 0)):
        asked = {1: two(condition), 2: two(condition, high=6)}
        given_ = [many(0, [6, FAILS]), many(1, [9, 0])]
        run = Run("car", asked, vectorized=True).push(given_)
        assert (run.answer, run.errors) == wanted(asked, given_)
        assert run.errors == {1}


@EVERY_PLAN
def test_what_may_fail_waits_for_all_streams(plan: str) -> None:
    failing = compared(called(0, 0, 1), ">", 0)
    asked = {1: SharedQuery(dict.fromkeys(range(3)), EDGES[0, 1, 2], (), (failing,))}
    run = Run(plan, asked).push([many(0, [3]), many(1, [4])])
    assert (run.errors, run.functions[0].calls) == (set(), Counter())
    run.push([many(2, [1])])
    assert run.errors == {1}


def test_what_cannot_fail_is_known_before_all_streams_are_there() -> None:
    sure = compared(value(0), "<", value(1))
    asked = {1: SharedQuery(dict.fromkeys(range(3)), EDGES[0, 1, 2], (), (sure,))}
    run = Run("tulip", asked).push([many(2, [1]), many(1, [4]), many(0, [3, 9])])
    assert [spanned for spanned, _ in run.audit.tuples].count(0b011) <= 1
    assert run.answer.total() == 1


def test_what_is_known_of_a_tuple_is_not_asked_again_of_what_it_joins_to() -> None:
    sure = compared(value(0), "<", value(1))
    asked = {1: SharedQuery(dict.fromkeys(range(3)), EDGES[0, 1, 2], (), (sure,))}
    run = Run("tulip", asked).push([many(2, [1, 2]), many(1, [4]), many(0, [3])])
    by_way = [spanned for spanned, _ in run.audit.tuples]
    assert (evaluations(run), by_way.count(0b011)) in {(1, 1), (2, 0)}  # R first, or T
    assert run.answer.total() == 2


def test_functions_of_conditions_that_come_later() -> None:
    run = Run("car", {1: two()}).push([many(0, [3, 5])])
    run.eddy.add({2: two(compared(called(1, 0, 1), ">", 0), compared(called(0, 1), ">", 0))})
    run.push([many(1, [1]), many(0, [2])])
    assert run.answer == Counter(
        {
            (n, (many(0, [v])[1][0], many(1, [1])[1][0])): 1
            for n, v in [(1, 3), (1, 5), (1, 2), (2, 2)]
        }
    )


@EVERY_PLAN
def test_zombies_are_counted_where_they_are_found(plan: str) -> None:
    asked = {1: two(compared(called(0, 0, 1), ">", 10)), 2: two(compared(called(1, 0, 1), ">", 11))}
    eddy = Run(plan, asked).push([many(0, [1, 8]), many(1, [5, 1])]).eddy
    precise = PLANS[plan].selections is SelectionPlacement.BELOW
    results = 2 if PLANS[plan].joins_apart else 1  # 8 and 5, for both
    assert (eddy.statistics().made, eddy.zombies) == ((results, 0) if precise else (4, 3))


def test_an_error_stops_one_query_only() -> None:
    failing = compared(called(0, 0, 1), ">", 0)
    asked = {
        1: two(failing),
        2: two(failing, compared(value(0), ">", value(1))),  # FALSE for that tuple
        3: two(compared(value(0), "<", value(1))),
    }
    run = Run("car", asked).push([many(0, [3]), many(1, [4, 5])])
    assert run.errors == {1}
    assert run.answer == wanted(asked, [many(0, [3]), many(1, [4, 5])])[0]


def test_an_error_is_told_of_once_a_vector() -> None:
    told = []
    run = Run("car", {1: two(compared(called(0, 0, 1), ">", 0))})
    run.eddy._on_error = lambda query, *_: told.append(query)
    run.push([many(0, [3]), many(1, [4] * 20)])
    assert told == [1]


constants = st.none() | st.integers(-3, 12)
TEMPLATES: Mapping[str, Expression] = {
    "ranges": And(
        (
            compared(called(0, 0, 1), ">=", Argument(-1, INT)),
            Comparison(ComparisonOperator.GREATER, Argument(-2, INT), called(0, 0, 1)),
        )
    ),
    "pairs": compared(
        value(0),
        ">",
        Arithmetic(ArithmeticOperator.MULTIPLY, (value(1), Argument(-1, INT)), INT, ansi=False),
    ),
    "either": Or(
        (
            compared(value(0), ">", Argument(-2, INT)),
            compared(Call(0, (value(1), Argument(-1, INT)), INT), "<", value(0)),
        )
    ),
}


@pytest.mark.parametrize("template", TEMPLATES)
@examples(60)
@given(st.lists(st.tuples(constants, constants), min_size=1, max_size=8), pushes, st.booleans())
def test_templates(
    template: str,
    given_constants: list[tuple[int | None, int | None]],
    given_: Given,
    few_together: bool,  # noqa: FBT001 - drawn
) -> None:
    columns = [pa.array([row[n] for row in given_constants], INT) for n in range(2)]
    each = conditions_of([TEMPLATES[template], compared(value(0), "<", value(1))], columns)
    asked = {n: two(*conditions, low=n % 3) for n, conditions in enumerate(each)}
    with pytest.MonkeyPatch.context() as patch:
        if few_together:
            patch.setattr(shared_conditions, "MOST_PAIRS", 2)
        run = Run("car", asked).push(given_)
    assert (run.answer, run.errors) == wanted(asked, given_)
    assert run.audit.precision().repeated == {}


def evaluations(run: Run) -> int:
    return sum(n for (kind, *_), n in run.audit._done.items() if kind == "compare")


def test_constants_become_ranges_of_one_expression() -> None:
    columns = [pa.array(range(1000), INT), pa.array([2000] * 1000, INT)]
    each = conditions_of([TEMPLATES["ranges"]], columns)
    run = Run("car", {n: two(*conditions, high=999) for n, conditions in enumerate(each)})
    run.push([many(0, [5, 400]), many(1, [20, 500])])
    assert evaluations(run) == 4
    assert run.answer.total() == 26 + 506 + 421 + 901


def test_queries_with_equal_constants_share_an_evaluation() -> None:
    columns = [pa.array([n % 3 for n in range(300)], INT), pa.nulls(300, INT)]
    each = conditions_of([TEMPLATES["pairs"]], columns)
    run = Run("car", {n: two(*conditions) for n, conditions in enumerate(each)})
    run.push([many(0, [5]), many(1, [3, 4])])
    assert evaluations(run) == 2 * 3
    assert run.answer.total() == 2 * 100 + 2 * 100


def test_constants_are_equal_that_are_written_the_same() -> None:
    factors = [0.0, -0.0, 0.0, 2.0, None, None]
    each = conditions_of([FLOATING["pairs"]()], [pa.array(factors, FLOAT)])
    run = Run("car", {n: two(*conditions) for n, conditions in enumerate(each)})
    run.push([(stream, [(1, 1, 1.0, None)]) for stream in (0, 1)])
    assert evaluations(run) == 4


def test_nothing_is_evaluated_for_queries_that_want_nothing_of_a_tuple() -> None:
    columns = [pa.array(range(100), INT), pa.nulls(100, INT)]
    each = conditions_of([TEMPLATES["pairs"]], columns)
    run = Run("car", {n: two(*made, low=n, high=n) for n, made in enumerate(each)})
    run.push([many(0, [5]), many(1, [0, 1])])
    assert evaluations(run) == 2


def measured(stream: int) -> Expression:
    return column_of(stream, MEASURE, FLOAT)


def times(one: Expression, other: Expression) -> Expression:
    return Arithmetic(ArithmeticOperator.MULTIPLY, (one, other), FLOAT, ansi=True)


NAN, INFINITE = float("nan"), float("inf")
floats = st.sampled_from([None, -1.5, -0.0, 0.0, 1.0, 2.5, NAN, INFINITE])
measures = st.lists(floats.map(lambda each: (1, 1, each, None)), max_size=5)
FLOATING: Mapping[str, Callable[[], Expression]] = {
    "pairs": lambda: compared(measured(0), ">", times(measured(1), Argument(-1, FLOAT))),
    "ranges": lambda: compared(times(measured(0), measured(1)), "<=", Argument(-1, FLOAT)),
    "equal": lambda: compared(times(measured(0), measured(1)), "=", Argument(-1, FLOAT)),
}


@EVERY_PLAN
@pytest.mark.parametrize("template", FLOATING)
@examples(30)
@given(st.lists(floats, min_size=1, max_size=5), measures, measures)
def test_nan_and_null(
    plan: str, template: str, factors: list[float | None], left: list[Row], right: list[Row]
) -> None:
    each = conditions_of([FLOATING[template]()], [pa.array(factors, FLOAT)])
    asked = {n: two(*conditions) for n, conditions in enumerate(each)}
    given_ = [(0, left), (1, right)]
    assert Run(plan, asked).push(given_).answer == wanted(asked, given_)[0]


def test_texts() -> None:
    words = [column_of(stream, WORD, TEXT) for stream in range(2)]
    asked = {
        1: two(compared(words[0], "<", words[1])),
        2: two(Or((compared(words[0], "=", words[1]), IsNull(words[1])))),
    }
    came = ["a", "z", "\u00e4", "\U0001f600", None]
    run = Run("car", asked)
    run.push([(s, [(1, n, None, word) for n, word in enumerate(came)]) for s in (0, 1)])
    found = {(query, left[WORD], right[WORD]) for query, (left, right) in run.answer}
    known = [word for word in came if word is not None]
    less = {(1, one, two) for one in known for two in known if one.encode() < two.encode()}
    assert found == less | {(2, w, w) for w in known} | {(2, w, None) for w in came}


def test_nothing_is_left_of_queries_that_have_gone() -> None:
    columns = [pa.array(range(9), INT), pa.nulls(9, INT)]
    each = conditions_of([TEMPLATES["pairs"], TEMPLATES["ranges"]], columns)
    asked = {n: two(*conditions) for n, conditions in enumerate(each)}
    run = Run("car", asked)
    run.eddy.remove(range(1, 9))
    run.push([many(0, [5]), many(1, [3])])
    assert evaluations(run) == 2
    run.eddy.remove([0])
    assert not run.eddy._conditions._asked
    run.eddy.add({7: asked[7]})  # under the same number
    run.push([many(0, [5]), many(1, [3])])
    assert run.answer == Counter()


@pytest.mark.parametrize(
    "query",
    [
        SharedQuery({0: None}, frozenset(), (), (compared(value(0), ">", 1),)),
        two(compared(value(0), ">", value(2))),
        two(compared(value(1), ">", value(2)), compared(value(0), ">", value(1))),
    ],
)
def test_conditions_are_about_streams_that_a_query_joins(query: SharedQuery) -> None:
    run = Run("car", {})
    with pytest.raises(ValueError, match="is about other streams"):
        run.eddy.add({1: query})
    assert len(run.eddy) == 0
    run.eddy.add({1: two(compared(value(0), ">", value(1)))})


@EVERY_PLAN
def test_conditions_on_one_stream_only_are_asked_too(plan: str) -> None:
    asked = {1: two(compared(value(0), ">", 3)), 2: two(compared(called(0, 1), ">", 3))}
    given_ = [many(0, [2, 4]), many(1, [1, 9])]
    assert Run(plan, asked).push(given_).answer == wanted(asked, given_)[0]


@PRECISE
def test_no_zombie_is_made_for_a_condition_that_is_not_true(plan: str) -> None:
    asked = {
        1: two(compared(value(0), ">", value(1))),
        2: two(compared(called(0, 0, 1), ">", 12), high=5),
    }
    given_ = [many(0, range(10)), many(1, range(0, 20, 2)), many(0, range(10))]
    run = Run(plan, asked).push(given_)
    results = {tuple_ for _, tuple_ in wanted(asked, given_)[0]}
    made = {(left, right) for _, (left, right) in run.audit.tuples}
    assert len(made) == len(run.audit.tuples) > 0
    assert {(left % 10, 2 * right) for left, right in made} == {
        (left[VALUE], right[VALUE]) for left, right in results
    }
    assert run.eddy.zombies == 0
