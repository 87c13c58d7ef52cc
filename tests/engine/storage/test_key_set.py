"""A key set holds each key once, NULLs, NaN and colliding texts included."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.storage.key_set import KeySet
from tests.keys import TYPES, colliding, sliced, values_of
from tests.oracle.plain_values import plain


@given(data=st.data())
def test_a_key_set_is_a_set(data: st.DataObject) -> None:
    types = data.draw(st.lists(TYPES, min_size=1, max_size=3))
    keys, numbers = KeySet(types), dict[Any, int]()
    batches = st.lists(st.tuples(*map(values_of, types)), max_size=15)

    def columns(rows: list[tuple[Any, ...]]) -> list[pa.Array]:
        return [sliced([row[c] for row in rows], a_type, 1) for c, a_type in enumerate(types)]

    for _ in range(data.draw(st.integers(1, 4))):
        rows = data.draw(batches)
        new = []
        for position, row in enumerate(rows):
            if plain_row(row) not in numbers:
                numbers[plain_row(row)] = len(numbers)
                new.append(position)
        assert keys.add(columns(rows)).tolist() == new
        assert len(keys) == len(numbers)
        asked = data.draw(batches)
        found = keys.find(columns(asked)).tolist()
        assert found == [numbers.get(plain_row(row), -1) for row in asked]


def plain_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(plain, row))


def test_texts_of_one_hash_are_different_keys() -> None:
    texts = colliding(30)
    keys = KeySet([pa.binary()])
    assert keys.add([pa.array([*texts[:15], *texts[:15]])]).tolist() == list(range(15))
    assert keys.add([pa.array(texts[::-1])]).tolist() == list(range(15))
    assert keys.find([pa.array(texts)]).tolist() == [*range(15), *range(29, 14, -1)]


def test_many_copies_take_no_longer_than_as_many_keys() -> None:
    keys = KeySet([pa.int64()])
    assert keys.add([pa.array([7] * 200_000)]).tolist() == [0]
    assert keys.find([pa.array([7] * 200_000)]).max() == 0
    assert keys.nbytes > 0
