"""Growing columns and row stores hold what was put in, however it came and whatever left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.storage.growing import AnyColumn, GrowingArray, growing_column, unlocked
from eddyline.engine.storage.row_store import RowAttribute, RowStore
from tests.keys import VALUES, columns_of, sliced

STORED = [*VALUES, pa.list_(pa.int32())]
LISTS = st.lists(st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=3)), max_size=20)


def stored(a_type: pa.DataType) -> st.SearchStrategy[list[Any]]:
    return LISTS if pa.types.is_list(a_type) else columns_of(a_type, most=20)


ARRAY_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 9)),
        st.tuples(st.just("adopt"), st.integers(0, 9)),
        st.tuples(st.just("extend"), st.integers(0, 2000)),
        st.tuples(st.just("drop"), st.integers(0, 9)),
        st.tuples(st.just("look"), st.just(0)),
        st.tuples(st.just("write"), st.integers(0, 9)),
    ),
    max_size=20,
)


@given(steps=ARRAY_STEPS)
def test_growing_array_is_a_list(steps: list[tuple[str, int]]) -> None:
    array, model = GrowingArray(np.int64), list[int]()
    for number, (kind, count) in enumerate(steps):
        match kind:
            case "append" | "adopt":
                values = np.arange(count) + 100 * number
                getattr(array, kind)(values)
                model += values.tolist()
            case "extend":
                array.extend(count, number)
                model += [number] * count
            case "drop":
                array.drop_first(min(count, len(model)))
                del model[:count]
            case "write" if count < len(model):
                array.values[count] = -number
                model[count] = -number
            case _:
                assert array.values.tolist() == model
        assert len(array) == len(model)
    assert array.values.tolist() == model


def test_a_growing_array_copies_what_it_does_not_adopt() -> None:
    array, values = GrowingArray(np.int64), np.arange(3)
    array.append(values)
    values[:] = 9
    array.adopt(np.arange(2))
    assert array.values.tolist() == [0, 1, 2, 0, 1]


def test_a_single_piece_is_kept_as_it_is_and_never_written_into() -> None:
    piece = np.frombuffer(pa.array([1, 2, 3]).buffers()[1], np.int64)
    array = GrowingArray(np.int64)
    array.adopt(piece)
    assert np.shares_memory(array.values, piece)
    array.extend(1, 4)
    assert array.values.tolist() == [1, 2, 3, 4]
    assert piece.tolist() == [1, 2, 3]


def test_room_grows_by_doubling() -> None:
    array = GrowingArray(np.int64)
    moved = 0
    for number in range(100_000 // 50):
        before = array.values
        array.extend(50, number)
        moved += not np.shares_memory(before, array.values)
    assert moved < 12


def test_wide_elements_grow_too() -> None:
    array = GrowingArray(np.int64, (2,))
    for number in range(3):
        array.append(np.full((2, 2), number))
    array.drop_first(1)
    assert array.values.tolist() == [[0, 0], [1, 1], [1, 1], [2, 2], [2, 2]]


def test_unlocked_lends_the_same_memory() -> None:
    locked = np.frombuffer(np.arange(2).tobytes(), np.int64)
    assert not locked.flags.writeable
    lent = unlocked(locked)
    assert lent.flags.writeable
    assert np.shares_memory(lent, locked)
    assert unlocked(lent) is lent


@given(data=st.data())
def test_columns_hold_what_was_put_in(data: st.DataObject) -> None:
    a_type = data.draw(st.sampled_from(STORED))
    make = data.draw(st.sampled_from([growing_column, AnyColumn]))
    column, model = make(a_type), list[Any]()
    for _ in range(data.draw(st.integers(1, 4))):
        values = data.draw(stored(a_type))
        column.append(sliced(values, a_type, data.draw(st.integers(0, 3))))
        model += values
        if data.draw(st.integers(0, 1)) and model:
            count = data.draw(st.integers(0, len(model)))
            column.drop_first(count)
            del model[:count]
    whole = column.take(range(len(model)))
    whole.validate(full=True)
    assert whole.type == a_type
    assert repr(whole.to_pylist()) == repr(model)
    first = data.draw(st.integers(0, len(model)))
    stop = data.draw(st.integers(first, len(model)))
    part = column.take(range(first, stop))
    part.validate(full=True)
    assert repr(part.to_pylist()) == repr(model[first:stop])
    if model:
        rows = data.draw(st.lists(st.integers(0, len(model) - 1), max_size=20))
        taken = column.take(np.array(rows, np.int64))
        taken.validate(full=True)
        assert repr(taken.to_pylist()) == repr([model[row] for row in rows])
    assert column.nbytes >= 0


@given(data=st.data())
def test_row_numbers_go_on_rising_over_evictions(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(STORED), min_size=1, max_size=3))
    store = RowStore()
    beside = RowAttribute(store, np.int64, -1)
    held: dict[int, tuple[Any, ...]] = {}
    marked: dict[int, int] = {}
    for step in range(data.draw(st.integers(1, 6))):
        if data.draw(st.integers(0, 1)):
            columns = [data.draw(stored(a_type)) for a_type in types]
            rows = min(map(len, columns))
            numbers = store.append(
                [sliced(v[:rows], t, step % 3) for v, t in zip(columns, types, strict=True)], rows
            )
            assert numbers == range(store.stop - rows, store.stop)
            for at, number in enumerate(numbers):
                held[number] = tuple(values[at] for values in columns)
        elif held or store.stop:
            before = data.draw(st.integers(0, store.stop + 1))
            store.evict_before(before)
            held = {number: row for number, row in held.items() if number >= before}
        assert len(store) == len(held)
        if data.draw(st.integers(0, 1)) and held:
            number = data.draw(st.sampled_from(sorted(held)))
            beside.values[number - store.first] = marked[number] = step
        assert beside.values.tolist() == [marked.get(number, -1) for number in sorted(held)]
    for c in range(len(types) if held else 0):
        backwards = sorted(held, reverse=True)
        taken = store.take(c, np.array(backwards)).to_pylist()
        assert repr(taken) == repr([held[number][c] for number in backwards])
        whole = range(store.first, store.stop)
        assert repr(store.take(c, whole).to_pylist()) == repr(taken[::-1])


@pytest.mark.parametrize("chunks", [1, 3])
def test_a_type_without_a_layout_of_its_own_is_kept_too(chunks: int) -> None:
    column = growing_column(pa.list_(pa.int32()))
    values = [[n] * n for n in range(chunks)]
    for value in values:
        column.append(pa.array([value] * 10, pa.list_(pa.int32())))
    taken = column.take(np.array([10 * chunks - 1, 0]))
    assert taken.to_pylist() == [values[-1], values[0]]
