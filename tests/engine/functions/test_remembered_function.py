"""A function with a memory answers as it does without, and is called once for equal arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.functions import balance
from eddyline.engine.functions.balance import ALLOWANCE, SHARE, Balance
from eddyline.engine.functions.function_memory import MOST_ERRORS, FunctionMemory
from eddyline.engine.functions.remembered_function import Remembered, RememberedFunction
from eddyline.errors import FunctionAnswerError
from eddyline.expressions.vector import CollectiveFailure, Vector
from eddyline.simulation.virtual_clock import VirtualClock


class Costly:
    """Adds two numbers, and takes a millisecond a row; fails where the first is negative."""

    def __init__(self, clock: VirtualClock, *, vectorized: bool = False) -> None:
        self.vectorized = vectorized
        self.calls = Counter[tuple[Any, ...]]()
        self._clock = clock

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        arguments = list(zip(*(column.to_pylist() for column in columns), strict=True))
        self.calls.update(arguments)
        self._clock.advance(1e-3 * rows)
        if self.vectorized and any(one < 0 for one, _ in arguments):
            failure = CollectiveFailure(ValueError("one of them"))
            return Vector(pa.nulls(rows, pa.int64()), dict.fromkeys(range(rows), failure))
        errors: dict[int, Exception] = {
            at: ValueError(str(pair)) for at, pair in enumerate(arguments) if pair[0] < 0
        }
        values = [None if one < 0 else one + (other or 0) for one, other in arguments]
        return Vector(pa.array(values, pa.int64()), errors)


PAIRS = st.lists(st.tuples(st.integers(-2, 5), st.none() | st.integers(0, 3)), max_size=30)


def columns(pairs: Sequence[tuple[int, int | None]]) -> list[pa.Array]:
    return [pa.array([pair[n] for pair in pairs], pa.int64()) for n in range(2)]


def plain(vector: Vector) -> list[object]:
    found: list[object] = vector.values.to_pylist()
    for at, error in vector.errors.items():
        found[at] = str(error)
    return found


@given(st.lists(PAIRS, max_size=6), st.sampled_from([1, 3_000, 1_000_000]))
def test_answers_are_those_of_the_function(
    visits: list[list[tuple[int, int | None]]], capacity: int
) -> None:
    clock = VirtualClock()
    function, bare = Costly(clock), Costly(VirtualClock())
    remembering = RememberedFunction(function, Remembered(FunctionMemory(capacity)), clock)
    rows = 0
    for pairs in visits:
        found = remembering(columns(pairs), len(pairs))
        assert plain(found) == plain(bare(columns(pairs), len(pairs)))
        rows += len(pairs)
    if capacity == 1_000_000:
        assert set(function.calls.values()) <= {1}
    done = remembering.statistics()
    assert done.calls == sum(function.calls.values())
    assert done.calls + done.hits == rows


@given(st.lists(PAIRS, max_size=6))
def test_what_fails_together_is_not_remembered(
    visits: list[list[tuple[int, int | None]]],
) -> None:
    clock = VirtualClock()
    function = Costly(clock, vectorized=True)
    remembering = RememberedFunction(function, Remembered(FunctionMemory(1_000_000)), clock)
    assert remembering.vectorized
    for pairs in visits:
        found = remembering(columns(pairs), len(pairs))
        for at, (one, other) in enumerate(pairs):
            if at in found.errors:
                assert isinstance(found.errors[at], CollectiveFailure)
            else:
                assert found.values[at].as_py() == one + (other or 0)
        for at, pair in enumerate(pairs):  # as an eddy does: each by itself
            alone = remembering(columns([pair]), 1)
            assert (0 in alone.errors) == (pair[0] < 0)
            assert at < len(pairs)


def test_a_large_visit_is_looked_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance, "ALLOWANCE", balance.LOOKUP_VISIT + 70e-6)  # for 700 rows
    clock = VirtualClock()
    function = Costly(clock)
    remembering = RememberedFunction(function, Remembered(FunctionMemory(1_000_000)), clock)
    numbers = np.arange(5_000) % 7 - 1
    found = remembering([pa.array(numbers), pa.array(numbers)], 5_000)
    assert plain(found) == [2 * n if n >= 0 else "(-1, -1)" for n in numbers.tolist()]
    assert sum(function.calls.values()) < 50


def test_errors_beyond_what_is_kept_are_made_anew() -> None:
    clock = VirtualClock()
    function = Costly(clock)
    remembering = RememberedFunction(function, Remembered(FunctionMemory(10_000_000)), clock)
    numbers = pa.array(np.arange(-2 * MOST_ERRORS, 100))
    for _ in range(2):
        found = remembering([numbers, numbers], len(numbers))
        assert len(found.errors) == 2 * MOST_ERRORS
        assert found.values[-1].as_py() == 198
    assert function.calls[99, 99] == 1
    assert function.calls[-1, -1] == 2


def test_memory_is_there_for_the_next_object() -> None:
    clock = VirtualClock()
    function, remembered = Costly(clock), Remembered(FunctionMemory(1_000_000))
    for _ in range(3):
        RememberedFunction(function, remembered, clock)(columns([(1, 2)]), 1)
    assert function.calls == {(1, 2): 1}


def test_a_function_with_too_few_answers_is_refused() -> None:
    class Short:
        vectorized = True

        def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
            return Vector(columns[0].slice(0, rows - 1))

    remembering = RememberedFunction(Short(), Remembered(FunctionMemory(1_000_000)), VirtualClock())
    with pytest.raises(FunctionAnswerError, match="2 values for 3 rows"):
        remembering([pa.array([1, 2, 3])], 3)


class Cheap:
    """Takes 0.1 µs a row, unless something else is said."""

    vectorized = False

    def __init__(self, clock: VirtualClock, cost: float = 1e-7) -> None:
        self.calls = 0
        self._clock = clock
        self._cost = cost

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        self.calls += rows
        self._clock.advance(self._cost * rows)
        return Vector(columns[0])


@pytest.mark.parametrize(
    ("numbers", "calls"),
    [
        (np.arange(10_000), 10_000),
        (np.arange(10_000) % 1_000, 1_000),  # goes round in a circle
        (np.arange(10_000) // 100, 100),
        (np.zeros(10_000), 1),
    ],
)
def test_cheap_functions_remember_where_arguments_repeat(
    numbers: np.ndarray[tuple[int], np.dtype[Any]], calls: int
) -> None:
    clock = VirtualClock()
    function = Cheap(clock)
    remembering = RememberedFunction(function, Remembered(FunctionMemory(1_000_000)), clock)
    found = remembering([pa.array(numbers)], 10_000)
    assert found.values.to_pylist() == numbers.tolist()
    assert function.calls == calls


def test_one_frequent_value_is_no_reason_to_look_up_the_others() -> None:
    clock = VirtualClock()
    function = Cheap(clock)
    remembering = RememberedFunction(function, Remembered(FunctionMemory(1_000_000)), clock)
    numbers = pa.array([None if number % 10 == 3 else number for number in range(10_000)])
    assert remembering([numbers], 10_000).values.equals(numbers)
    assert function.calls > 9_900


class CountingPicks(Balance):
    """Counts how often rows are picked out."""

    picks = 0

    def picked(self, rows: int, repeated: int, seconds: float) -> None:
        self.picks += 1
        super().picked(rows, repeated, seconds)


class TimedMemory(FunctionMemory):
    """Takes half a microsecond to look a row up, as for texts of 200 letters."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(1 << 30)
        self._clock = clock
        self.looked_up = 0

    def find(self, keys: Sequence[Hashable]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        self.looked_up += len(keys)
        self._clock.advance(0.5e-6 * len(keys))
        return super().find(keys)


def test_a_memory_that_never_pays_gives_up() -> None:
    clock, counting, visits, rows = VirtualClock(), CountingPicks(), 25, 10_000
    function, memory = Cheap(clock, 3.5e-6), TimedMemory(clock)
    remembering = RememberedFunction(function, Remembered(memory), clock, counting)
    for visit in range(visits):
        remembering([pa.array(np.arange(rows) + visit * rows)], rows)
    done = remembering.statistics()
    assert (function.calls, done.hits) == (visits * rows, 0)
    assert 0 < memory.looked_up < 0.1 * visits * rows
    assert done.lookup_seconds < ALLOWANCE + 2 * SHARE * done.call_seconds
    assert counting.picks == visits  # what comes after a look at a part of them is no other visit
