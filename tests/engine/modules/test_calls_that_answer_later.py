"""Functions that answer later anywhere in a predicate, and in outputs; and what money is worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulation.virtual_agenda import VirtualAgenda
from bench.simulation.virtual_calls import VirtualCaller
from eddyline.engine.callers import Agenda, CallDone, Caller, PlannedCall
from eddyline.engine.filter.filter_eddy import ALL_ROWS, FilterEddy, FilterPlan
from eddyline.engine.policies.catalogue import PolicyName, make_policy
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
from eddyline.expressions.terms import decide, terms_of
from eddyline.expressions.vector import CollectiveFailure, Function, Vector
from eddyline.simulation.virtual_clock import VirtualClock
from tests.properties import examples

ROWS = 30
COLUMN = Argument(0, pa.int64())


class Later:
    """A function that answers later, through as many callers as there are places for it."""

    vectorized = False

    def __init__(
        self,
        answer: Callable[[Any], object],
        agenda: VirtualAgenda,
        seconds: float = 1.0,
        *,
        price: float = 0.0,
        width: int = 3,
    ) -> None:
        self.agenda = agenda
        self.asked: Counter[object] = Counter()
        self._answer, self._seconds, self._price, self._width = answer, seconds, price, width

    def connect(self, agenda: Agenda) -> Caller:
        return Told(self, agenda, self._price)

    def made(self, given: object) -> object:
        self.asked[given] += 1
        return self._answer(given)

    def caller(self, agenda: Any) -> VirtualCaller:  # noqa: ANN401 - an agenda that plans
        return VirtualCaller(self.made, agenda, lambda _: self._seconds, width=self._width)

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        raise TypeError(f"{len(columns)} columns of {rows} rows: answers later")


class Told:
    """A caller on the virtual clock of the outermost agenda, which speaks to another one."""

    def __init__(self, function: Later, agenda: Agenda, price: float) -> None:
        self.agenda = agenda
        self._price = price
        self._caller = function.caller(Both(function.agenda, agenda))
        self.width = self._caller.width

    def attend(self, module: int) -> None:
        self._caller.attend(module)

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        self._caller.submit(calls)

    def collect(self) -> list[CallDone]:
        return [done._replace(price=self._price) for done in self._caller.collect()]


class Both:
    """Plans on one agenda, tells another."""

    def __init__(self, clock: VirtualAgenda, told: Agenda) -> None:
        self.plan, self.tell = clock.plan, told.tell


class Inline:
    vectorized = False

    def __init__(self, answer: Callable[[int], object], kind: pa.DataType) -> None:
        self._answer, self._kind = answer, kind

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        values: list[object] = []
        errors: dict[int, Exception] = {}
        for at, value in enumerate(columns[0].to_pylist() if columns else [None] * rows):
            try:
                values.append(self._answer(value))
            except ArithmeticError as error:
                values.append(None)
                errors[at] = error
        return Vector(pa.array(values, self._kind), errors)


def answer_of(verdicts: Sequence[bool | str | None]) -> Callable[[Any], bool | None]:
    def answer(row: int | None) -> bool | None:
        found = None if row is None else verdicts[row % len(verdicts)]
        if isinstance(found, str):
            raise ArithmeticError(found)  # noqa: TRY004 - what a user's function raises
        return found

    return answer


VERDICTS = st.lists(st.sampled_from([True, False, None, "bad"]), min_size=ROWS, max_size=ROWS)


def predicates(functions: int) -> st.SearchStrategy[Expression]:
    """Any nest of AND, OR, NOT over calls, comparisons of calls, and calls of calls."""
    plain = st.builds(lambda n: Call(n, (COLUMN,), pa.bool_()), st.integers(0, functions - 1))
    number = st.just(Call(functions, (COLUMN,), pa.int64()))
    compared = st.builds(
        lambda call, limit: Comparison(ComparisonOperator.LESS, call, Literal(limit, pa.int64())),
        number,
        st.integers(0, ROWS),
    )
    of_call = st.builds(
        lambda n, call: Call(n, (call,), pa.bool_()), st.integers(0, functions - 1), number
    )
    return st.recursive(
        st.one_of(plain, compared, of_call),
        lambda inner: st.one_of(
            st.builds(lambda a, b: And((a, b)), inner, inner),
            st.builds(lambda a, b: Or((a, b)), inner, inner),
            st.builds(Not, inner),
        ),
        max_leaves=6,
    )


@examples(150)
@given(
    predicate=predicates(3),
    verdicts=st.lists(VERDICTS, min_size=3, max_size=3),
    later=st.lists(st.booleans(), min_size=4, max_size=4),
    policy=st.sampled_from(list(PolicyName)),
    outputs=st.booleans(),
)
def test_the_rows_and_errors_are_those_of_evaluating_everything(
    predicate: Expression,
    verdicts: list[list[bool | str | None]],
    later: list[bool],
    policy: str,
    *,
    outputs: bool,
) -> None:
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)

    def half(row: int) -> int:
        return row // 2

    answers: list[tuple[Callable[[Any], object], pa.DataType]] = [
        *((answer_of(each), pa.bool_()) for each in verdicts),
        (half, pa.int64()),
    ]
    functions: list[Function] = [
        Later(answer, agenda, 1.0 + n) if later[n] else Inline(answer, kind)
        for n, (answer, kind) in enumerate(answers)
    ]
    once = Call(3, (COLUMN,), pa.int64())
    twice = Call(3, (once,), pa.int64())
    wanted = (once, Call(3, (twice,), pa.int64()))
    rows = pa.array(np.arange(ROWS))

    plain = FilterEddy(
        FilterPlan(predicate),
        [Inline(answer, kind) for answer, kind in answers],
        lambda: make_policy("static"),
        VirtualClock(),
        np.random.default_rng(0),
    )
    numbers = plain._relation.load([rows], ROWS)
    true, errors = decide(terms_of(predicate), plain._relation.scope(numbers))
    eddy = FilterEddy(
        FilterPlan(predicate, wanted if outputs else ()),
        functions,
        lambda: make_policy(policy),
        clock,
        np.random.default_rng(0),
    )
    if errors:
        assert not any(isinstance(error, CollectiveFailure) for error in errors.values())
        with pytest.raises(ArithmeticError, match="bad"):
            eddy.filter([rows], ROWS)
        return
    filtered = eddy.filter([rows], ROWS)
    assert filtered.kept.tolist() == np.flatnonzero(true).tolist()
    if outputs:
        kept = filtered.kept.tolist()
        assert [each.to_pylist() for each in filtered.outputs] == [
            [row // 2 for row in kept],
            [row // 8 for row in kept],
        ]


def test_several_functions_of_a_select_list_are_called_at_the_same_time() -> None:
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)
    functions = [Later(lambda row: row * 2, agenda, 5.0, width=4) for _ in range(3)]
    plan = FilterPlan(ALL_ROWS, tuple(Call(n, (COLUMN,), pa.int64()) for n in range(3)))
    eddy = FilterEddy(
        plan, functions, lambda: make_policy("adaptive"), clock, np.random.default_rng(0)
    )
    found = eddy.filter([pa.array(np.arange(40))], 40)
    assert [each.to_pylist() for each in found.outputs] == [list(range(0, 80, 2))] * 3
    assert clock.now() == 40 / 4 * 5.0, "three in the time of one"


def test_a_term_of_an_or_is_not_asked_about_rows_that_are_decided() -> None:
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)
    slow = Later(lambda row: row % 2 == 0, agenda)
    plan = FilterPlan(Or((Call(0, (COLUMN,), pa.bool_()), Call(1, (COLUMN,), pa.bool_()))))
    eddy = FilterEddy(
        plan,
        [Inline(lambda row: row < 20, pa.bool_()), slow],
        lambda: make_policy("static"),
        clock,
        np.random.default_rng(0),
    )
    assert eddy.filter([pa.array(np.arange(30))], 30).kept.tolist() == [
        *range(20),
        *range(20, 30, 2),
    ]
    assert slow.asked == Counter(range(20, 30))


def test_an_or_keeps_its_terms_busy() -> None:
    """The inner eddy waits for its last tuples, but not for long."""
    clock = VirtualClock()
    agenda = VirtualAgenda(clock)
    slow = Later(lambda _: False, agenda, 2.0, width=16)
    plan = FilterPlan(Or((Call(0, (COLUMN,), pa.bool_()), Call(1, (COLUMN,), pa.bool_()))))
    eddy = FilterEddy(
        plan,
        [Inline(lambda _: False, pa.bool_()), slow],
        lambda: make_policy("adaptive"),
        clock,
        np.random.default_rng(0),
    )
    rows = 1600
    assert not len(eddy.filter([pa.array(np.arange(rows))], rows).kept)
    assert clock.now() <= 1.25 * rows / 16 * 2.0


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("policy", [PolicyName.ADAPTIVE, PolicyName.RANK])
def test_routing_weighs_money_and_time(policy: str, *, negated: bool) -> None:
    """A quick predicate that costs money, and a slow one that is free; both reject as much."""

    def calls(worth: float) -> tuple[int, int]:
        clock = VirtualClock()
        agenda = VirtualAgenda(clock)
        verdicts = (np.random.default_rng(1).random((2, 2000)) < 0.2) != negated
        paid = Later(lambda row: bool(verdicts[0][row]), agenda, 0.01, price=worth * 0.002)
        free = Later(lambda row: bool(verdicts[1][row]), agenda, 0.09)
        terms: list[Expression] = [Call(n, (COLUMN,), pa.bool_()) for n in range(2)]
        plan = FilterPlan(And(tuple(Not(term) if negated else term for term in terms)))
        eddy = FilterEddy(
            plan, [paid, free], lambda: make_policy(policy), clock, np.random.default_rng(0)
        )
        eddy.filter([pa.array(np.arange(2000))], 2000)
        return paid.asked.total(), free.asked.total()

    paid, free = calls(0.0)
    assert paid > 3 * free
    paid, free = calls(100.0)  # 0.2 seconds' worth a call, against 0.03 of the machine's time
    assert free > 3 * paid
