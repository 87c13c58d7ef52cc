"""The ordered index finds what comparing with every row finds, in Spark's order of values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.storage.indexed_store import IndexedStore
from eddyline.engine.storage.ordered_index import (
    GREATEST_WORD,
    LEAST_WORD,
    KeyRange,
    OrderColumn,
    OrderedIndex,
)
from tests.keys import ORDERED, columns_of, order_of, sliced

NO_LIMIT = 1 << 40
EVERYTHING = np.array([1 << 40])
FROM_THE_FIRST = np.array([0])


@pytest.mark.parametrize("a_type", ORDERED, ids=str)
@given(data=st.data())
def test_words_stand_in_the_order_of_the_values(a_type: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(columns_of(a_type, 12))
    column = OrderColumn()
    column.append(sliced(values, a_type, 2))
    assert column.valid.tolist() == [value is not None for value in values]
    words = column.words.tolist()
    for word, value in zip(words, values, strict=True):
        for other, compared in zip(words, values, strict=True):
            if value is not None and compared is not None:
                assert (word < other) == (order_of(value) < order_of(compared))


@given(data=st.data())
def test_an_index_finds_what_brute_force_finds(data: st.DataObject) -> None:
    draw = data.draw
    a_type = draw(st.sampled_from(ORDERED))
    store, stored = IndexedStore(), list[Any]()
    for step in range(draw(st.integers(1, 5))):
        added = draw(columns_of(a_type, 8))
        store.append([sliced(added, a_type, step % 2)], len(added))
        stored += added
        if draw(st.integers(0, 3)) == 0:
            gone = draw(st.integers(0, len(stored)))
            store.evict_before(store.first + gone)
            del stored[:gone]
        if draw(st.integers(0, 1)):
            store.ordered_index(0)
    index = store.ordered_index(0)
    words = [int(word) for word in store.order(0).words]
    bound = st.sampled_from([LEAST_WORD, *words, 0, GREATEST_WORD])
    ranges = draw(st.lists(st.tuples(bound, bound), min_size=1, max_size=6))
    places = st.integers(0, len(stored) + 1)
    lows = draw(_one_or_each(places, len(ranges)))
    highs = draw(_one_or_each(places, len(ranges)))
    dead = np.array(draw(st.lists(st.booleans(), min_size=len(stored), max_size=len(stored))), bool)
    some_dead = draw(st.booleans())
    whole = {
        (i, place)
        for i, (least, greatest) in enumerate(ranges)
        for place, word in enumerate(words)
        if stored[place] is not None
        and least <= word <= greatest
        and lows[i % len(lows)] <= place < highs[i % len(highs)]
        and not (some_dead and dead[place])
    }
    most = draw(st.sampled_from([1, 3, NO_LIMIT]))
    start, found_ones = 0, set[tuple[int, int]]()
    while start < len(ranges):
        rest = np.array(ranges[start:], np.int64)
        found, probed = index.probe(
            KeyRange(rest[:, 0], rest[:, 1]),
            lows[start:] if len(lows) > 1 else lows,
            highs[start:] if len(highs) > 1 else highs,
            dead if some_dead else None,
            most,
        )
        assert probed >= 1
        assert probed == len(rest) or most < NO_LIMIT
        assert len(found.places) <= most or probed == 1
        here = list(zip((found.positions + start).tolist(), found.places.tolist(), strict=True))
        assert len(set(here)) == len(here)
        assert all(i < start + probed for i, _ in here)
        found_ones |= set(here)
        start += probed
    assert found_ones == whole


def _one_or_each(bound: st.SearchStrategy[int], tuples: int) -> st.SearchStrategy[Any]:
    return st.sampled_from([1, tuples]).flatmap(
        lambda size: st.lists(bound, min_size=size, max_size=size).map(
            lambda values: np.array(values, np.int64)
        )
    )


def test_runs_stay_few_however_the_rows_come() -> None:
    column = OrderColumn()
    index = OrderedIndex(column)
    generator = np.random.default_rng(0)
    values: list[int | None] = []
    for size in [1] * 200 + [7] * 50 + [1000, 1, 1, 1] + [0] * 50:
        part = generator.integers(0, 100, size).tolist()
        column.append(pa.array(part, pa.int64()))
        column.append(pa.array([None] * 2, pa.int64()))
        values += [*part, None, None]
        index.catch_up(len(values))
    assert len(index._runs) <= np.log2(len(values)) + 1
    found, _ = index.probe(
        KeyRange(np.array([20]), np.array([60])), FROM_THE_FIRST, EVERYTHING, None, NO_LIMIT
    )
    assert sorted(found.places.tolist()) == [
        place for place, value in enumerate(values) if value is not None and 20 <= value <= 60
    ]
    assert index.nbytes > 0


def test_nothing_is_found_where_nothing_is() -> None:
    column = OrderColumn()
    index = OrderedIndex(column)
    ranges = KeyRange(np.array([0, 1]), np.array([9, 9]))
    found, probed = index.probe(ranges, FROM_THE_FIRST, EVERYTHING, None, 1)
    assert (len(found.places), probed) == (0, 2)
    column.append(pa.array([None, None], pa.int64()))
    index.catch_up(2)
    found, probed = index.probe(ranges, FROM_THE_FIRST, EVERYTHING, None, 1)
    assert (len(found.places), probed) == (0, 2)
