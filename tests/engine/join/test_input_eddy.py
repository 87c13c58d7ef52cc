"""What the eddy over one input of a join lets through, whatever is asked and however it routes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulation.virtual_agenda import VirtualAgenda
from bench.simulation.virtual_calls import VirtualCaller
from bench.waiting_calls import ConcurrentFunction
from eddyline.engine.join.input_eddy import InputEddy, predicates_with_calls
from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.quantum import MeasuredQuantum
from eddyline.expressions import Argument, Call, Expression, IsNull, Or, with_arguments
from eddyline.expressions.vector import Function
from eddyline.simulation.fixed_quantum import FixedQuantum
from eddyline.simulation.virtual_clock import VirtualClock
from tests.joins import BOOL, INT, Refused, UserFunction, equal, query_of, relation
from tests.predicates import ERROR, FUNCTIONS, RAISE, TABLES, TRUE, accepted, predicates, result_of
from tests.properties import examples

OTHER, INPUT = range(2)
OFFSET = 3
"""Columns of the other input, which come before those of the one that is looked at."""

QUANTA = st.one_of(
    st.builds(FixedQuantum, st.integers(1, 7)), st.builds(MeasuredQuantum, first=st.just(3))
)


class TakesTime(UserFunction):
    """A function that takes so long a row, on a clock that says so."""

    def __init__(self, clock: VirtualClock, seconds: float, result: Any) -> None:  # noqa: ANN401 - a function
        super().__init__(result)
        self._clock, self._seconds = clock, seconds

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Any:  # noqa: ANN401 - a vector
        self._clock.advance(rows * self._seconds)
        return super().__call__(columns, rows)


def graph_of(*conjuncts: Expression) -> JoinGraph:
    """Return a graph with predicates over columns 0 and 1 of the second of two inputs."""
    moved = [
        with_arguments(each, lambda argument: Argument(argument.index + OFFSET, argument.type))
        for each in conjuncts
    ]
    described = [relation("R", OFFSET), relation("S", 2)]
    return JoinGraph(query_of(described, equal((0, 0), (1, 0)), predicates=lambda _: moved))


def eddy_of(
    graph: JoinGraph,
    functions: Sequence[Function],
    clock: VirtualClock | None = None,
    policy: str = "adaptive",
    of: int = INPUT,
    **options: Any,  # noqa: ANN401 - of the eddy
) -> InputEddy:
    return InputEddy(
        graph,
        of,
        functions,
        lambda: make_policy(policy),
        clock or VirtualClock(),
        np.random.default_rng(0),
        **options,
    )


def call(function: int, column: int = 0) -> Call:
    return Call(function, (Argument(column, INT),), BOOL)


def columns(*values: Sequence[int | None]) -> list[pa.Array]:
    return [pa.array(each, INT) for each in values]


@examples(150)
@given(
    conjuncts=st.lists(predicates(), min_size=1, max_size=4),
    tables=TABLES,
    vectorized=st.lists(st.booleans(), min_size=FUNCTIONS, max_size=FUNCTIONS),
    rows=st.lists(st.tuples(*[st.one_of(st.none(), st.integers(0, 5))] * 2), max_size=12),
    asked=st.sets(st.integers(0, 3)),
    policy=st.sampled_from(list(PolicyName)),
    quantum=QUANTA,
    cut=st.integers(0, 12),
)
def test_rows_pass_where_all_that_were_asked_accept_them(
    *,
    conjuncts: list[Expression],
    tables: list[list[object]],
    vectorized: list[bool],
    rows: list[tuple[int | None, int | None]],
    asked: set[int],
    policy: str,
    quantum: Any,  # noqa: ANN401 - a quantum
    cut: int,
) -> None:
    """A row that fails is told apart where no other rejects it; in a vector so may others be."""

    def made(table: Sequence[object]) -> Any:  # noqa: ANN401 - a function
        def result(value: int | None) -> object:
            found = result_of(table, value)
            if found == RAISE:
                raise Refused
            return found

        return result

    graph = graph_of(*conjuncts)
    functions = [
        UserFunction(made(table), vectorized=flag)
        for table, flag in zip(tables, vectorized, strict=True)
    ]
    eddy = eddy_of(graph, functions, policy=policy, quantum=quantum)
    numbers = [n for n in predicates_with_calls(graph, INPUT) if n in asked]
    wanted = [
        with_arguments(graph.predicates[n], lambda each: Argument(each.index - OFFSET, each.type))
        for n in numbers
    ]
    for first, stop in pairwise((0, min(cut, len(rows)), len(rows))):
        part = rows[first:stop]
        found = eddy.ask(columns(*([row[c] for row in part] for c in (0, 1))), len(part), numbers)
        outcomes = [
            min((accepted(each, row, tables, wanted=True) for each in wanted), default=TRUE)
            for row in part
        ]
        passes = {at for at, outcome in enumerate(outcomes) if outcome == TRUE}
        fails = {at for at, outcome in enumerate(outcomes) if outcome == ERROR}
        passed, failed = found.passed.tolist(), found.failed.tolist()
        assert len({*passed, *failed}) == len(passed) + len(failed)
        if any(vectorized):  # any row of a vector may be the one for which it failed
            assert set(passed) <= passes
            assert passes | fails <= {*passed, *failed}
        else:
            assert (set(passed), set(failed)) == (passes, fails)


def test_only_predicates_over_the_input_alone_that_call_functions() -> None:
    query = query_of(
        [relation("R", OFFSET), relation("S", 2)],
        equal((0, 0), (1, 0)),
        predicates=lambda query: [
            Call(0, (query.column(OTHER, 0),), BOOL),
            Call(0, (query.column(OTHER, 0), query.column(INPUT, 0)), BOOL),
            Call(0, (query.column(INPUT, 1),), BOOL),
            Call(0, (), BOOL),
        ],
    )
    graph = JoinGraph(query)
    assert [graph.predicates[n] for n in predicates_with_calls(graph, INPUT)] == [
        Call(0, (query.column(INPUT, 1),), BOOL)
    ]


@pytest.mark.parametrize("costly_first", [True, False])
def test_the_terms_of_an_or_are_routed_and_told_of(*, costly_first: bool) -> None:
    clock = VirtualClock()
    costly = TakesTime(clock, 1.0, lambda value: value % 10 == 0)
    cheap = TakesTime(clock, 1e-3, lambda value: value % 10 > 0)
    terms = (call(0), call(1)) if costly_first else (call(1), call(0))
    graph = graph_of(Or(terms))
    eddy = eddy_of(graph, [costly, cheap], clock)
    (number,) = predicates_with_calls(graph, INPUT)
    rows = 4_000
    found = eddy.ask(columns(range(rows), range(rows)), rows, [number])
    assert len(found.passed) == rows
    assert costly.calls.total() < 0.15 * rows
    statistics = eddy.statistics()
    assert [part.rows_in for part in statistics.predicates[number].nested] == [
        function.calls.total()
        for function in ((costly, cheap) if costly_first else (cheap, costly))
    ]
    made = {each.call.function: each.calls for each in statistics.calls}
    assert made == {0: costly.calls.total(), 1: cheap.calls.total()}


def test_what_a_predicate_costs_and_drops_is_known() -> None:
    clock = VirtualClock()
    graph = graph_of(call(0), call(1))
    functions = [TakesTime(clock, 2.0, lambda value: value > 3), UserFunction(lambda _: True)]
    eddy = eddy_of(graph, functions, clock)
    first, second = predicates_with_calls(graph, INPUT)
    assert eddy.cost(first) is None
    for _ in range(3):
        eddy.ask(columns(range(100), range(100)), 100, [first])
    assert eddy.cost(first) == pytest.approx(2.0, rel=0.01)
    assert eddy.statistics_of(first).rejected == 3 * 4
    assert eddy.cost(second) is None
    assert eddy.statistics_of(second).rows_in == 0


def test_an_eddy_goes_on_with_what_another_has_learned() -> None:
    clock = VirtualClock()
    graph = graph_of(call(0), Or((call(1), call(0, 1))))
    asked = predicates_with_calls(graph, INPUT)

    def made(**options: Any) -> tuple[InputEddy, list[UserFunction]]:  # noqa: ANN401 - of the eddy
        functions: list[UserFunction] = [
            TakesTime(clock, 1.0, lambda value: value % 2 == 0),
            TakesTime(clock, 1e-2, lambda value: value % 50 == 0),
        ]
        return eddy_of(graph, functions, clock, **options), functions

    numbers = columns(range(1_000), [1] * 1_000)
    before, first_calls = made()
    before.ask(numbers, 1_000, asked)
    after, then_calls = made(learned=before.learned())
    after.ask(numbers, 1_000, asked)
    assert after.cost(asked[0]) is not None
    assert then_calls[0].calls.total() < first_calls[0].calls.total()


@pytest.mark.parametrize("number", [-1, 0, 2, 7])
def test_only_its_own_predicates_are_asked(number: int) -> None:
    """Number 0 is over the other input, number 2 calls nothing."""
    query = query_of(
        [relation("R", OFFSET), relation("S", 2)],
        equal((0, 0), (1, 0)),
        predicates=lambda query: [
            Call(0, (query.column(OTHER, 1),), BOOL),
            Call(0, (query.column(INPUT, 0),), BOOL),
            IsNull(query.column(INPUT, 1)),
        ],
    )
    eddy = eddy_of(JoinGraph(query), [UserFunction(lambda _: False)])
    for ask in (eddy.cost, eddy.statistics_of, lambda n: eddy.ask(columns([1], [1]), 1, [1, n])):
        with pytest.raises(ValueError, match=rf"predicate {number} is none of \[1\]"):
            ask(number)
    assert not len(eddy.ask(columns([1], [1]), 1, [1]).passed)


def test_what_does_not_fit_is_refused() -> None:
    graph, function = graph_of(call(0)), UserFunction(bool)
    caller = VirtualCaller(lambda _: True, VirtualAgenda(VirtualClock()), lambda _: 1.0)
    with pytest.raises(ValueError, match=r"functions \[1\] answer later"):
        eddy_of(graph, [function, ConcurrentFunction(caller)])
    with pytest.raises(ValueError, match="calls function 3, and there are 1"):
        eddy_of(graph_of(call(3)), [function])
    with pytest.raises(ValueError, match="2 rows cannot have columns of lengths"):
        eddy_of(graph, [function]).ask(columns([1, 2], [1]), 2, [])
    learned = eddy_of(graph_of(Or((call(0), call(0, 1)))), [function]).learned()
    with pytest.raises(ValueError, match="costs are those of modules"):
        eddy_of(graph, [function], learned=learned)


@pytest.mark.parametrize("number", [-1, 2])
def test_a_relation_that_is_not_there_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"no relation {number}"):
        eddy_of(graph_of(call(0)), [UserFunction(bool)], of=number)


def test_errors_of_rows_that_have_gone_are_let_go() -> None:
    def refuse(value: int) -> bool:
        raise Refused(value)

    graph = graph_of(call(0))
    eddy = eddy_of(graph, [UserFunction(refuse)])
    for _ in range(3):
        eddy.ask(columns(range(10), range(10)), 10, predicates_with_calls(graph, INPUT))
    assert len(eddy._held.by_row) == 10
