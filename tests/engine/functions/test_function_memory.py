"""The memory gives back what was put in, keeps what is asked for, and stays within its bound."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.functions.function_memory import MOST_ERRORS, FunctionMemory
from eddyline.expressions.vector import Vector


def put(memory: FunctionMemory, keys: list[int]) -> None:
    memory.add(keys, Vector(pa.array([f"value {key}" for key in keys])), 8 * len(keys))


@given(visits=st.lists(st.sets(st.integers(0, 40), min_size=1), max_size=30))
def test_what_is_found_is_what_was_put_in(visits: list[set[int]]) -> None:
    memory = FunctionMemory(4_000)  # for some twenty of them
    for visit in visits:
        keys = sorted(visit)
        numbers = memory.find(keys)
        new = [key for key, number in zip(keys, numbers.tolist(), strict=True) if number < 0]
        if new:
            put(memory, new)
            numbers = memory.find(keys)
        assert (numbers >= 0).all()
        assert memory.results(numbers).values.to_pylist() == [f"value {key}" for key in keys]
        memory.age()


def test_what_is_asked_for_again_and_again_is_never_forgotten() -> None:
    memory = FunctionMemory(100_000)
    put(memory, [-1])
    for start in range(0, 20_000, 100):
        put(memory, list(range(start, start + 100)))
        assert memory.find([-1])[0] >= 0
        memory.age()
    assert memory.find([0])[0] < 0  # while nobody asked for this one


def test_errors_are_remembered_with_their_arguments() -> None:
    memory = FunctionMemory(1_000_000)
    error = ValueError("for b")
    memory.add(["a", "b"], Vector(pa.array([1, None]), {1: error}), 2)
    memory.add(["c"], Vector(pa.array([3])), 1)
    found = memory.results(memory.find(["c", "b", "a", "b"]))
    assert found.values.to_pylist() == [3, None, 1, None]
    assert found.errors == {1: error, 3: error}
    assert memory.room_for_errors() == MOST_ERRORS - 1


def test_errors_outlive_a_generation_that_is_asked_for() -> None:
    memory = FunctionMemory(1)  # each visit begins a new one
    error = ValueError("for a")
    memory.add(["a"], Vector(pa.array([None], pa.int64()), {0: error}), 1)
    memory.age()
    assert memory.results(memory.find(["a"])).errors == {0: error}


def test_ten_million_keys_stay_within_the_bound() -> None:
    capacity, rows = 8 << 20, 20_000
    memory = FunctionMemory(capacity)
    values = pa.array(np.zeros(rows))
    for start in range(0, 10_000_000, rows):
        if start == 9_800_000:  # what is measured is slow
            memory.clear()
            tracemalloc.start()
        keys = list(range(start, start + rows))
        memory.find(keys)
        memory.add(keys, Vector(values), 8 * rows)
        memory.age()
        assert memory.nbytes < 1.5 * capacity
    in_python, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The list of keys above is a visit's; what the account leaves out is less than that.
    assert in_python < 1.5 * capacity
    assert 0 < len(memory) < 1_000_000


def test_a_function_may_fill_its_buffer_anew() -> None:
    memory = FunctionMemory(1_000_000)
    buffer = np.array([1, 2])
    memory.add(["a", "b"], Vector(pa.array(buffer)), 2)
    memory.add(["c"], Vector(pa.array([3])), 1)
    buffer[:] = 0
    assert memory.results(memory.find(["a", "b"])).values.to_pylist() == [1, 2]


def test_what_is_too_much_for_less_room_goes_at_once() -> None:
    memory = FunctionMemory(100_000)
    put(memory, list(range(500)))
    memory.resize(1_000_000)
    assert memory.find([7])[0] >= 0
    held = memory.nbytes
    memory.resize(held + 1)  # it is old then, but there
    assert memory.find([7])[0] >= 0
    memory.resize(held // 2)
    assert memory.find([7])[0] < 0
    assert memory.nbytes < held // 2
