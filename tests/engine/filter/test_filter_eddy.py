"""The filter eddy gives the answer of evaluating everything, whatever the routing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.filter import content_classes
from eddyline.engine.filter.class_counts import BucketCounts, Floats, Places
from eddyline.engine.filter.class_orders import Rates, Split
from eddyline.engine.filter.filter_eddy import ALL_ROWS, FilterEddy, FilterPlan
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.prior import Prior
from eddyline.engine.quantum import MeasuredQuantum, Quantum
from eddyline.errors import EddylineError, FunctionAnswerError
from eddyline.expressions import And, Argument, Call, Expression, IsNull, Or
from eddyline.expressions.terms import conjuncts_of
from eddyline.expressions.vector import CollectiveFailure, Vector
from eddyline.simulation.fixed_quantum import FixedQuantum
from eddyline.simulation.virtual_clock import VirtualClock
from tests.predicates import (
    BOOL,
    COLUMNS,
    ERROR,
    FUNCTIONS,
    INT,
    PRIORS,
    RAISE,
    ROW,
    ROWS,
    TABLES,
    TRUE,
    accepted,
    calls,
    predicates,
    result_of,
)
from tests.properties import examples


class Refused(Exception):  # noqa: N818 - it stands for whatever a user raises
    """What the user functions of these tests raise; it says which call it was."""


@dataclass
class TableFunction:
    """A user function given by a table: (row value) -> True, False, None, or an error."""

    number: int
    table: Sequence[object]
    vectorized: bool
    clock: VirtualClock
    calls: Counter[tuple[int, ...]] = field(default_factory=Counter)
    vectors_failed: int = 0

    def result(self, value: int | None) -> object:
        return result_of(self.table, value)

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        self.clock.advance(rows * (self.number + 1))
        values: list[object] = []
        errors: dict[int, Exception] = {}
        for position, value in enumerate(columns[0].to_pylist()):
            result = self.result(value)
            if result == RAISE:
                errors[position] = Refused(self.number, value)
                result = None
            values.append(result)
        assert len(values) == rows
        if self.vectorized and errors:
            self.vectors_failed += 1
            failure = CollectiveFailure(next(iter(errors.values())))
            return Vector(pa.nulls(rows, BOOL), dict.fromkeys(range(rows), failure))
        return Vector(pa.array(values, BOOL), errors)


QUANTA = st.one_of(
    st.builds(FixedQuantum, st.integers(1, 7)), st.builds(MeasuredQuantum, first=st.just(3))
)


@dataclass
class Run:
    """A filter eddy over generated parts, and what came out of it."""

    kept: list[int]
    error: Exception | None
    functions: list[TableFunction]
    outputs: list[list[object]]
    failed: set[int] = field(default_factory=set)


def as_many(priors: Sequence[Prior | None], predicate: Expression) -> tuple[Prior | None, ...]:
    """Return as many priors as there are conjuncts, the same ones again and again."""
    return tuple(prior for _, prior in zip(conjuncts_of(predicate), cycle(priors), strict=False))


def run(  # noqa: PLR0913 - as much as there is to draw
    predicate: Expression,
    tables: Sequence[Sequence[object]],
    vectorized: Sequence[bool],
    rows: Sequence[tuple[int | None, int | None]],
    policy: str,
    quantum: Quantum,
    seed: int,
    batch: int,
    outputs: Sequence[Call] = (),
    *,
    hands_on_errors: bool = False,
    priors: Sequence[Prior | None] = (),
) -> Run:
    clock = VirtualClock()
    functions = [
        TableFunction(number, table, vector, clock)
        for number, (table, vector) in enumerate(zip(tables, vectorized, strict=True))
    ]
    eddy = FilterEddy(
        FilterPlan(predicate, tuple(outputs), priors=as_many(priors, predicate)),
        functions,
        lambda: make_policy(policy),
        clock,
        np.random.default_rng(seed),
        quantum=quantum,
        hands_on_errors=hands_on_errors,
    )
    result = Run([], None, functions, [[] for _ in outputs])
    try:
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            # Each row carries its own number in the first column's place of identity.
            columns = [pa.array([row[c] for row in part], INT) for c in range(2)]
            filtered = eddy.filter(columns, len(part))
            result.kept.extend((filtered.kept + start).tolist())
            result.failed.update(row + start for row in filtered.failed)
            for values, column in zip(result.outputs, filtered.outputs, strict=True):
                values.extend(column.to_pylist())
    except Refused as error:
        result.error = error
    return result


@pytest.mark.parametrize("wrong", [COLUMNS[0], And((IsNull(COLUMNS[0]), COLUMNS[0]))])
def test_a_predicate_is_boolean(wrong: Expression) -> None:
    with pytest.raises(ValueError, match="is int64, not boolean"):
        FilterPlan(wrong)


def eddy_of(predicate: Expression, *outputs: Call, **options: Any) -> FilterEddy:  # noqa: ANN401 - of the eddy
    clock = VirtualClock()
    return FilterEddy(
        FilterPlan(predicate, outputs),
        [TableFunction(number, (), vectorized=False, clock=clock) for number in range(2)],
        lambda: make_policy("adaptive"),
        clock,
        np.random.default_rng(0),
        **options,
    )


def called(function: int) -> Call:
    return Call(function, (COLUMNS[0],), BOOL)


@pytest.mark.parametrize("number", [2, 5, -1])
def test_a_call_names_a_function(number: int) -> None:
    wrong = called(number)
    for plan in ((wrong,), (Or((called(0), IsNull(wrong))),), (called(0), wrong)):
        with pytest.raises(ValueError, match=f"calls function {number}, and there are 2"):
            eddy_of(*plan)


@pytest.mark.parametrize(
    ("columns", "rows"), [([1], 5), ([5, 1], 5), ([5], 1), ([5], 0), ([0], -1), ([], -1)]
)
def test_rows_are_as_many_as_columns_have(columns: list[int], rows: int) -> None:
    eddy = eddy_of(IsNull(COLUMNS[0]))
    with pytest.raises(ValueError, match=f"{rows} rows cannot have columns"):
        eddy.filter([pa.nulls(length, INT) for length in columns], rows)
    assert eddy.filter([pa.nulls(3, INT)], 3).kept.tolist() == [0, 1, 2]


PLANS = [
    called(0),
    And((called(0), called(1))),
    Or((called(0), called(1))),
    And((called(0), Or((called(0), called(1))))),
    And((called(0), Or((called(1), And((called(0), called(1))))))),
]


@pytest.mark.parametrize("other", range(len(PLANS)))
@pytest.mark.parametrize("plan", range(len(PLANS)))
def test_what_was_learned_of_another_plan_is_refused(plan: int, other: int) -> None:
    learned = eddy_of(PLANS[other]).learned()
    if plan == other:
        assert eddy_of(PLANS[plan], learned=learned).learned() == learned
        return
    with pytest.raises(ValueError, match=r"what was learned is of|costs are those of"):
        eddy_of(PLANS[plan], learned=learned)


@pytest.mark.parametrize("returned", [1, 4])
@pytest.mark.parametrize("vectorized", [True, False])
def test_a_function_returns_a_value_a_row(*, returned: int, vectorized: bool) -> None:
    class Wrong(TableFunction):
        def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:  # noqa: ARG002 - the protocol's
            return Vector(pa.repeat(pa.scalar(value=True), returned))

    clock = VirtualClock()
    eddy = FilterEddy(
        FilterPlan(called(1)),
        [Wrong(number, (), vectorized=vectorized, clock=clock) for number in range(2)],
        lambda: make_policy("static"),
        clock,
        np.random.default_rng(0),
        quantum=FixedQuantum(100),
    )
    with pytest.raises(
        FunctionAnswerError, match=f"function 1 has returned {returned} values for 3 rows"
    ) as refused:
        eddy.filter([pa.array([1, 2, 3])], 3)
    assert isinstance(refused.value, EddylineError)
    assert isinstance(refused.value, ValueError)


@examples(400)
@given(
    predicate=predicates(),
    tables=TABLES,
    vectorized=st.lists(st.booleans(), min_size=FUNCTIONS, max_size=FUNCTIONS),
    rows=ROWS,
    policy=st.sampled_from(list(PolicyName)),
    quantum=QUANTA,
    seed=st.integers(0, 5),
    batch=st.integers(1, 50),
    outputs=st.lists(calls(), max_size=2),
    priors=PRIORS,
)
def test_same_rows_or_same_error_as_evaluating_everything(
    predicate: Expression,
    tables: list[list[object]],
    vectorized: list[bool],
    rows: list[tuple[int | None, int | None]],
    policy: str,
    quantum: Quantum,
    seed: int,
    batch: int,
    outputs: list[Call],
    priors: list[Prior | None],
) -> None:
    result = run(
        predicate,
        tables,
        vectorized,
        rows,
        policy,
        quantum,
        seed,
        batch,
        outputs,
        priors=priors,
    )
    outcomes = [accepted(predicate, row, tables, wanted=True) for row in rows]
    passing = [row for row, outcome in enumerate(outcomes) if outcome == TRUE]
    values = {row: [result_of_call(call, rows[row], tables) for call in outputs] for row in passing}
    failing = [row for row, outcome in enumerate(outcomes) if outcome == ERROR]
    failing += [row for row in passing if RAISE in values[row]]
    # The batches before a failing one were given out as they should be.
    whole = min(failing) // batch * batch if failing else len(rows)
    assert (result.error is not None) == bool(failing)
    assert result.kept == [row for row in passing if row < whole]
    for position, column in enumerate(result.outputs):
        assert column == [values[row][position] for row in result.kept]


class AnyClasses:
    """Has rows told apart in any way, at every look in another one."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)

    def split(self, older: BucketCounts, newer: BucketCounts) -> Split:
        assert older.rows
        return Split(2, self._saving(99.0), 1e9, newer.rows)

    def groups(self, counts: BucketCounts) -> Places:
        groups = self._draw.integers(0, self._draw.integers(1, 5), len(counts.entered))
        return np.unique(groups, return_inverse=True)[1]

    def as_it_is(self, older: BucketCounts, newer: BucketCounts, shares: Floats) -> Split:
        assert len(older.entered) == len(shares)
        return Split(len(shares), self._saving(50.0), 1e9, newer.rows)

    def rates(self, counts: BucketCounts) -> Rates:
        return Rates(counts.selectivities(), np.ones(counts.asked.shape))

    def _saving(self, most: float) -> float:
        return float(self._draw.choice([-most, most]))


@examples(150)
@given(
    predicate=predicates(),
    tables=TABLES,
    rows=st.lists(ROW, min_size=20, max_size=80),
    quantum=QUANTA,
    seed=st.integers(0, 5),
    batch=st.integers(1, 50),
)
def test_same_rows_or_same_error_in_whatever_classes(
    predicate: Expression,
    tables: list[list[object]],
    rows: list[tuple[int | None, int | None]],
    quantum: Quantum,
    seed: int,
    batch: int,
) -> None:
    any_classes = AnyClasses(seed)
    with patch.multiple(
        content_classes,
        ClassOrders=lambda *_: any_classes,
        FIRST_ROWS=1,
        MOST_ROWS=4,
        A_LOOK=1e-12,
        A_ROW=1e-12,
    ):
        result = run(predicate, tables, [False] * FUNCTIONS, rows, "adaptive", quantum, 0, batch)
    outcomes = [accepted(predicate, row, tables, wanted=True) for row in rows]
    whole = outcomes.index(ERROR) // batch * batch if ERROR in outcomes else len(rows)
    assert (result.error is not None) == (ERROR in outcomes)
    assert result.kept == [row for row in range(whole) if outcomes[row] == TRUE]


@examples(300)
@given(
    predicate=st.one_of(predicates(), st.just(ALL_ROWS)),
    tables=TABLES,
    vectorized=st.lists(st.booleans(), min_size=FUNCTIONS, max_size=FUNCTIONS),
    rows=ROWS,
    policy=st.sampled_from(list(PolicyName)),
    quantum=QUANTA,
    batch=st.integers(1, 50),
    outputs=st.lists(calls(), min_size=1, max_size=2),
)
def test_errors_are_handed_on_for_the_rows_that_have_them(
    predicate: Expression,
    tables: list[list[object]],
    vectorized: list[bool],
    rows: list[tuple[int | None, int | None]],
    policy: str,
    quantum: Quantum,
    batch: int,
    outputs: list[Call],
) -> None:
    result = run(
        predicate,
        tables,
        vectorized,
        rows,
        policy,
        quantum,
        0,
        batch,
        outputs,
        hands_on_errors=True,
    )
    assert result.error is None
    outcomes = [
        TRUE if predicate == ALL_ROWS else accepted(predicate, row, tables, wanted=True)
        for row in rows
    ]
    kept = [row for row, outcome in enumerate(outcomes) if outcome in (TRUE, ERROR)]
    values = {row: [result_of_call(call, rows[row], tables) for call in outputs] for row in kept}
    failing = {row for row in kept if outcomes[row] == ERROR or RAISE in values[row]}
    assert result.kept == kept
    assert result.failed == failing
    for position, column in enumerate(result.outputs):
        found = dict(zip(kept, column, strict=True))
        for row in set(kept) - failing:
            assert found[row] == values[row][position]


def result_of_call(
    call: Call, row: tuple[int | None, int | None], tables: Sequence[Sequence[object]]
) -> object:
    """Return what a call of a function on one column gives for a row."""
    (argument,) = call.arguments
    assert isinstance(argument, Argument)
    return result_of(tables[call.function], row[argument.index])


@examples(150)
@given(
    predicate=predicates(),
    tables=TABLES,
    rows=ROWS,
    quantum=QUANTA,
    batch=st.integers(1, 50),
    data=st.data(),
)
def test_every_policy_and_seed_surfaces_the_same_error(
    predicate: Expression,
    tables: list[list[object]],
    rows: list[tuple[int | None, int | None]],
    quantum: Quantum,
    batch: int,
    data: st.DataObject,
) -> None:
    runs = [
        run(predicate, tables, [False] * FUNCTIONS, rows, policy, quantum, seed, batch)
        for policy, seed in [
            (PolicyName.STATIC, 0),
            *data.draw(
                st.lists(
                    st.tuples(st.sampled_from(list(PolicyName)), st.integers(0, 9)),
                    min_size=2,
                    max_size=3,
                )
            ),
        ]
    ]
    assert len({str(result.error) for result in runs}) == 1


class CountingFunction(TableFunction):
    """BucketCounts the calls on each row by a row number that stands in the argument."""

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        self.calls.update((number,) for number in columns[0].to_pylist())
        return super().__call__(columns, rows)


@examples(200)
@given(
    predicate=predicates(),
    tables=TABLES,
    rows=st.integers(0, 60),
    policy=st.sampled_from(list(PolicyName)),
    quantum=QUANTA,
    seed=st.integers(0, 5),
    output=calls(),
)
def test_at_most_one_call_per_row_and_distinct_call(
    predicate: Expression,
    tables: list[list[object]],
    rows: int,
    policy: str,
    quantum: Quantum,
    seed: int,
    output: Call,
) -> None:
    clock = VirtualClock()
    # No errors here, so that nothing ends early; columns hold distinct row numbers.
    functions = [
        CountingFunction(
            n, [v if v != RAISE else False for v in table], vectorized=False, clock=clock
        )
        for n, table in enumerate(tables)
    ]
    eddy = FilterEddy(
        FilterPlan(predicate, (output,)),
        functions,
        lambda: make_policy(policy),
        clock,
        np.random.default_rng(seed),
        quantum=quantum,
    )
    numbers = list(range(rows))
    apart = [number + 1000 for number in numbers]
    result = eddy.filter([pa.array(numbers, INT), pa.array(apart, INT)], rows)
    for function in functions:
        assert max(function.calls.values(), default=0) <= 1
    expected = [
        functions[output.function].result(
            numbers[row] if output.arguments[0] == COLUMNS[0] else apart[row]
        )
        for row in result.kept
    ]
    assert result.outputs[0].to_pylist() == expected


def test_a_guarded_error_does_not_surface_and_is_counted() -> None:
    tables: list[list[object]] = [
        [RAISE, True, True, True, True, True],
        [False, True, True, True, True, True],
    ]
    for order in ((0, 1), (1, 0)):
        predicate = And(tuple(Call(number, (COLUMNS[0],), BOOL) for number in order))
        clock = VirtualClock()
        eddy = FilterEddy(
            FilterPlan(predicate, texts=("raises on 0", "rejects 0")),
            [
                TableFunction(n, table, vectorized=False, clock=clock)
                for n, table in enumerate(tables)
            ],
            lambda: make_policy("static"),
            clock,
            np.random.default_rng(0),
        )
        assert eddy.filter([pa.array([0, 1, 2], INT)], 3).kept.tolist() == [1, 2]
        held = [predicate.errors for predicate in eddy.statistics().predicates]
        assert sum(held) == sum(eddy.statistics().errors_dropped)


def test_an_error_that_counts_is_the_users_own_with_its_traceback() -> None:
    def fails() -> None:
        raise Refused("by me")

    class Fails:
        vectorized = False

        def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:  # noqa: ARG002
            try:
                fails()
            except Refused as error:
                return Vector(pa.nulls(rows, BOOL), {0: error})
            raise AssertionError

    eddy = FilterEddy(
        FilterPlan(And((Call(0, (COLUMNS[0],), BOOL), IsNull(Call(0, (COLUMNS[0],), BOOL))))),
        [Fails()],
        lambda: make_policy("adaptive"),
        VirtualClock(),
        np.random.default_rng(0),
    )
    with pytest.raises(Refused, match="by me") as raised:
        eddy.filter([pa.array([1], INT)], 1)
    assert [entry.name for entry in raised.traceback][-1] == "fails"


def test_a_vector_that_fails_is_tried_again_only_for_rows_that_are_wanted() -> None:
    clock = VirtualClock()
    # Function 0 fails for value 0; function 1 rejects value 0, so the failure never counts.
    functions = [
        TableFunction(0, [RAISE, True, True, False, True, True], vectorized=True, clock=clock),
        TableFunction(1, [False, True, True, True, True, True], vectorized=False, clock=clock),
    ]
    eddy = FilterEddy(
        FilterPlan(And((Call(0, (COLUMNS[0],), BOOL), Call(1, (COLUMNS[0],), BOOL)))),
        functions,
        lambda: make_policy("static"),
        clock,
        np.random.default_rng(0),
        quantum=FixedQuantum(10),
    )
    kept = eddy.filter([pa.array([0, 1, 2, 3, 4], INT)], 5).kept
    assert functions[0].vectors_failed == 1
    assert kept.tolist() == [1, 2, 4]


def kept_or_error(
    outcomes: list[list[object]], predicate: Expression, vectorized: list[bool], policy: str
) -> tuple[list[int], str | None]:
    """Run one vector; ``outcomes`` say, function by function, what each row gives."""
    rows = len(outcomes[0])
    # A table ends with what NULL gives, which does not occur here.
    result = run(
        predicate,
        [[*outcome, None] for outcome in outcomes],
        vectorized,
        [(row, row) for row in range(rows)],
        policy,
        FixedQuantum(100),
        0,
        rows,
    )
    return result.kept, None if result.error is None else str(result.error)


EVERY_POLICY = pytest.mark.parametrize("policy", list(PolicyName))


@EVERY_POLICY
def test_a_row_s_own_error_does_not_hide_that_another_term_may_decide(policy: str) -> None:
    predicate = And((Or((call(0), call(1))), call(2)))
    outcomes: list[list[object]] = [
        [RAISE, False, False],
        [True, RAISE, False],
        [True, False, RAISE],
    ]
    answer = kept_or_error(outcomes, predicate, [False, True, True], policy)
    assert answer == ([0], None)


@EVERY_POLICY
def test_a_term_may_lose_all_its_doubtful_rows_to_the_terms_before(policy: str) -> None:
    outcomes: list[list[object]] = [
        [RAISE, False, False, True],
        [True, RAISE, True, True],
        [False, True, True, RAISE],
        [True, True, True, False],
    ]
    predicate = And(tuple(call(number) for number in range(4)))
    answer = kept_or_error(outcomes, predicate, [True, True, True, False], policy)
    assert answer == ([], None)


def test_a_vector_that_always_fails_is_told_after_few_calls() -> None:
    clock = VirtualClock()
    broken = TableFunction(0, [RAISE, RAISE], vectorized=True, clock=clock)
    fine = TableFunction(1, [True, True], vectorized=True, clock=clock)
    eddy = FilterEddy(
        FilterPlan(And((call(0), call(1)))),
        [broken, fine],
        lambda: make_policy("static"),
        clock,
        np.random.default_rng(0),
        quantum=FixedQuantum(1000),
    )
    column = pa.array(range(1000), INT)
    with pytest.raises(Refused):
        eddy.filter([column, column], 1000)
    assert broken.vectors_failed <= 3


def call(number: int) -> Call:
    return Call(number, (COLUMNS[0],), BOOL)


@EVERY_POLICY
@pytest.mark.parametrize("seed", range(3))
def test_a_conjunct_that_waits_gets_what_those_before_it_pass(policy: str, seed: int) -> None:
    clock = VirtualClock()
    tables: list[list[object]] = [
        [True, True, None],
        [True, False, True, False],
        [True, False],
        [True, False],
    ]
    functions = [
        CountingFunction(n, t, vectorized=False, clock=clock) for n, t in enumerate(tables)
    ]
    eddy = FilterEddy(
        FilterPlan(And(tuple(call(n) for n in range(4))), waits=(0, 0, 2, 0)),
        functions,
        lambda: make_policy(policy),
        clock,
        np.random.default_rng(seed),
        quantum=FixedQuantum(7),
    )
    rows = list(range(120))
    passed = [n for n in rows if all(functions[f].result(n) is True for f in (0, 1))]
    found = eddy.filter([pa.array(rows, INT), pa.array(rows, INT)], len(rows))
    assert found.kept.tolist() == passed
    assert sorted(functions[2].calls) == [(n,) for n in passed]


def test_a_conjunct_waits_for_those_before_it() -> None:
    with pytest.raises(ValueError, match="there are not 1 conjuncts"):
        FilterPlan(And((call(0), call(1))), waits=(0,))
    with pytest.raises(ValueError, match="waits only for those that stand before it"):
        FilterPlan(And((call(0), call(1))), waits=(1, 0))
