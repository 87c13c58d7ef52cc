"""What a worker remembers of functions: for as long as a query calls them, and within a bound."""

from __future__ import annotations

import gc
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType

from eddyline.blocks.filter_block import FunctionKind, SessionSettings, UserFunction
from eddyline.expressions.vector import Vector
from eddyline.standing.engine.shared_query import SharedQuery
from eddyline.standing.query_template import QueryTemplate
from eddyline.standing.tasks import rule_functions
from eddyline.standing.tasks.rule_functions import EngineFunctions, FunctionMemories, RuleFunction
from tests.tasks.calling.probes import Pinned, command

SETTINGS = SessionSettings("UTC")


class TurnedClock:
    """A clock whose hands are turned."""

    resolution = 0.0

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds


class Eddy:
    """Takes functions as a shared eddy does."""

    def __init__(self) -> None:
        self.functions: list[Any] = []

    def take_functions(self, functions: Sequence[Any]) -> range:
        self.functions += functions
        return range(len(self.functions) - len(functions), len(self.functions))


def template(*functions: UserFunction) -> QueryTemplate:
    return QueryTemplate(
        sql="",
        inputs=("r",),
        query=SharedQuery({0: None}),
        constants=(),
        parameters=(),
        outputs=(),
        tables=frozenset(),
        functions=functions,
        settings=SETTINGS,
        used=frozenset(),
    )


def noting(calls: list[Any], factor: int) -> UserFunction:
    def multiplied(value: int | None) -> int | None:
        calls.append((factor, value))
        if value == 7:
            raise ValueError("seven")
        return None if value is None else value * factor

    pickled = command(Pinned(multiplied), LongType())
    kind = LongType().json()
    return UserFunction("probe", FunctionKind.PICKLED, (pickled,), (kind,), (None,), kind)


def ask(function: Any, values: Sequence[int | None]) -> Vector:  # noqa: ANN401 - as the eddy has it
    found: Vector = function([pa.array(values, pa.int64())], len(values))
    return found


@pytest.fixture
def memories(monkeypatch: pytest.MonkeyPatch) -> FunctionMemories:
    found = FunctionMemories(100_000)
    monkeypatch.setattr(rule_functions, "_MEMORIES", found)
    return found


def test_one_memory_for_all_eddies_of_a_process(memories: FunctionMemories) -> None:
    calls: list[Any] = []
    double, triple = noting(calls, 2), noting(calls, 3)
    eddies = [Eddy(), Eddy()]
    several = [EngineFunctions(eddy, remember=True) for eddy in eddies]  # type: ignore[arg-type]  # enough of one
    assert several[0].numbers(template(double, triple)) == [0, 1]
    assert several[0].numbers(template(triple)) == [1]
    assert several[1].numbers(template(triple)) == [0]
    for function in (eddies[0].functions[1], eddies[1].functions[0], eddies[0].functions[1]):
        found = ask(function, [1, None, 7, 1, None, 7])
        assert found.values.to_pylist() == [3, None, None] * 2
        assert [str(found.errors[at]) for at in (2, 5)] == ["seven"] * 2
        assert found.errors[2].__traceback__ is None
    assert calls == [(3, 1), (3, None), (3, 7)]
    assert len(memories) == 2


def test_what_no_query_calls_is_let_go(memories: FunctionMemories) -> None:
    calls: list[Any] = []
    double, triple = noting(calls, 2), noting(calls, 3)
    eddies = [Eddy(), Eddy()]
    one, other = (EngineFunctions(eddy, remember=True) for eddy in eddies)  # type: ignore[arg-type]  # enough of one
    one.numbers(template(double, triple))
    other.numbers(template(triple))
    for function in eddies[0].functions:
        ask(function, [1])
    one.keep_only([])
    assert len(memories) == 1  # that of the other
    ask(eddies[1].functions[0], [1])
    assert calls == [(2, 1), (3, 1)]
    with pytest.raises(RuntimeError, match="let go"):
        ask(eddies[0].functions[0], [1])
    assert one.numbers(template(double)) == [2]
    ask(eddies[0].functions[2], [1])
    assert calls == [(2, 1), (3, 1), (2, 1)]
    del other, eddies
    gc.collect()
    one.keep_only([])
    assert len(memories) == 0


def test_functions_share_what_there_is_to_remember_in(memories: FunctionMemories) -> None:
    calls: list[Any] = []
    eddy = Eddy()
    functions = EngineFunctions(eddy, remember=True)  # type: ignore[arg-type]  # enough of one
    many = [noting(calls, factor) for factor in range(4)]
    values = list(range(10, 10_000))
    functions.numbers(template(many[0]))
    (first,) = eddy.functions
    for start in range(0, len(values), 300):
        ask(first, values[start : start + 300])
    assert 20_000 < memories.nbytes < 150_000
    functions.numbers(template(*many))
    assert memories.nbytes < 25_000  # its quarter
    for function in eddy.functions:
        for start in range(0, len(values), 300):
            ask(function, values[start : start + 300])
    assert memories.nbytes < 4 * 50_000  # a quarter each, and what the last visit brought
    functions.keep_only([template(many[0])])
    assert memories.nbytes < 50_000


def test_a_call_is_spared_however_few_repeat(memories: FunctionMemories) -> None:
    calls: list[Any] = []
    eddy = Eddy()
    EngineFunctions(eddy, remember=True).numbers(template(noting(calls, 2)))  # type: ignore[arg-type]  # enough of one
    for number in range(8, 500):
        ask(eddy.functions[0], [number])
    ask(eddy.functions[0], [8, 499])
    assert len(calls) == 500 - 8
    assert len(memories) == 1


def test_not_remembered(memories: FunctionMemories) -> None:
    calls: list[Any] = []
    eddy = Eddy()
    EngineFunctions(eddy, remember=False).numbers(template(noting(calls, 2)))  # type: ignore[arg-type]  # enough of one
    ask(eddy.functions[0], [1, 1])
    assert calls == [(2, 1)] * 2
    kind = LongType().json()
    pickled = command(lambda _: uuid.uuid4().int >> 65, LongType())
    drawn = UserFunction("drawn", FunctionKind.PICKLED, (pickled,), (kind,), (None,), kind)
    EngineFunctions(eddy, remember=True).numbers(template(drawn))  # type: ignore[arg-type]  # enough of one
    assert len(set(ask(eddy.functions[1], [1, 1, 1]).values.to_pylist())) == 3
    assert len(memories) == 0


def test_a_function_with_a_budget_is_called_until_it_is_spent() -> None:
    clock = TurnedClock()
    calls: list[int] = []

    class Taking:
        """Takes a second a row, and fails for 3."""

        vectorized = False

        def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
            calls.append(rows)
            clock.seconds += rows
            values = columns[0].to_pylist()
            errors = {n: ValueError("three") for n, value in enumerate(values) if value == 3}
            return Vector(columns[0], errors)

    function = RuleFunction(Taking(), "taking", 100.0, clock)
    for _ in range(2):  # tasks
        function.begin()
        numbers = pa.array(range(90))
        whole = function([numbers], 90)
        assert whole.values.equals(numbers)
        assert list(whole.errors) == [3]
        spent = function([numbers], 90)
        failed = [
            n for n, error in spent.errors.items() if "function_seconds is 100" not in str(error)
        ]
        first = min(n for n in spent.errors if n != 3)
        assert failed == [3]
        assert first < 14  # four rows more than the budget at the most: a slice
        assert spent.values.slice(0, first).equals(numbers.slice(0, first))
        assert sorted(spent.errors) == [3, *range(first, 90)]
        before = len(calls)
        last = function([numbers.slice(0, 5)], 5)
        assert (len(calls), len(last.errors), last.values.type) == (before, 5, numbers.type)
    assert max(calls) == 4
