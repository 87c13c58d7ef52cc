"""The hash index finds what comparing everything with everything finds, in any state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.storage import hash_index, slots
from eddyline.engine.storage.hash_index import LIST_SIZE, HashIndex, confirmed
from eddyline.engine.storage.indexed_store import IndexedStore
from eddyline.engine.storage.key_words import KeyColumn
from eddyline.engine.storage.slots import LEAST_SLOTS, Matches, Probing, all_valid, words_of
from tests.keys import TYPES, colliding, same, sliced, values_of

NO_LIMIT = 1 << 40
Pairs = set[tuple[int, int]]


class Probe(NamedTuple):
    """Probing tuples: values of each key column, and which of these rows each tuple is."""

    columns: list[KeyColumn]
    rows: npt.NDArray[np.int64]

    @property
    def probing(self) -> Probing:
        return Probing(words_of(self.columns), all_valid(self.columns), self.rows)


def keys_of(types: list[pa.DataType], rows: list[tuple[Any, ...]]) -> list[KeyColumn]:
    columns = [KeyColumn(a_type) for a_type in types]
    for c, column in enumerate(columns):
        column.append(pa.array([row[c] for row in rows], types[c]))
    return columns


def pairs(found: Matches) -> Pairs:
    """Return matches as a set; each must be there once, tuples in their order."""
    listed = list(zip(found.positions.tolist(), found.places.tolist(), strict=True))
    assert len(set(listed)) == len(listed)
    assert sorted(found.positions.tolist()) == found.positions.tolist()
    return set(listed)


def rows_of(types: list[pa.DataType], least: int, most: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.tuples(*map(values_of, types)), min_size=least, max_size=most)


@given(data=st.data())
def test_an_index_finds_what_brute_force_finds(data: st.DataObject) -> None:
    draw = data.draw
    types = draw(st.lists(TYPES, min_size=1, max_size=2))
    store = IndexedStore()
    stored: list[tuple[Any, ...]] = []  # those held
    columns = tuple(range(len(types)))
    for step in range(draw(st.integers(1, 4))):
        # Few rows are a list, more are a hash table: appending switches from one to the other.
        added = draw(rows_of(types, 0, draw(st.sampled_from([3, 2 * LIST_SIZE]))))
        store.append(
            [sliced([r[c] for r in added], types[c], step % 2) for c in columns], len(added)
        )
        stored += added
        if draw(st.integers(0, 2)) == 0:
            gone = draw(st.integers(0, len(stored)))
            store.evict_before(store.first + gone)
            del stored[:gone]
        if draw(st.integers(0, 1)):
            store.hash_index(columns, types)
    index = store.hash_index(columns, types)
    probing_rows = draw(rows_of(types, 1, 8))
    picked = draw(st.lists(st.integers(0, len(probing_rows) - 1), max_size=12))
    probe = Probe(keys_of(types, probing_rows), np.array(picked, np.int64))
    lows = draw(_bounds(len(picked), len(stored)))
    highs = draw(_bounds(len(picked), len(stored)))
    dead = np.array(draw(st.lists(st.booleans(), min_size=len(stored), max_size=len(stored))), bool)
    some_dead = draw(st.booleans())
    expected = {
        (i, place)
        for i, row in enumerate(picked)
        for place, other in enumerate(stored)
        if all(map(same, probing_rows[row], other))
        and lows[i % len(lows)] <= place < highs[i % len(highs)]
        and not (some_dead and dead[place])
    }
    found, probed = index.probe(probe.probing, lows, highs, dead if some_dead else None, NO_LIMIT)
    assert probed == len(picked)
    stored_keys = [store.key(c, a_type) for c, a_type in enumerate(types)]
    found = confirmed(found, probe.columns, [probe.rows] * len(types), stored_keys)
    assert pairs(found) == expected
    exists = index.exists(probe.probing, dead if some_dead else None)
    assert exists.tolist() == [
        any(
            all(map(same, probing_rows[row], other)) and not (some_dead and dead[place])
            for place, other in enumerate(stored)
        )
        for row in picked
    ]


@st.composite
def _bounds(draw: st.DrawFn, tuples: int, rows: int) -> npt.NDArray[np.int64]:
    """Return row places: one for all tuples, or one a tuple."""
    bound = st.integers(-1, rows)
    one = st.lists(bound, min_size=1, max_size=1)
    each = st.lists(bound, min_size=tuples, max_size=tuples) if tuples else one
    values = np.array(draw(st.one_of(one, each)), np.int64)
    return np.maximum(values, 0)


def test_a_list_becomes_a_hash_table() -> None:
    store = IndexedStore()
    numbers = store.append([pa.array(range(LIST_SIZE))], LIST_SIZE)
    index = store.hash_index((0,), [pa.int64()])
    assert index.is_list
    assert store.index_names() == ("list[0]",)
    store.append([pa.array([0])], 1)
    assert store.hash_index((0,), [pa.int64()]) is index
    assert store.index_names() == ("hash[0]",)
    column = store.key(0, pa.int64())
    found, _ = index.probe(
        Probing(column.words, None, np.array([0])), np.array([0]), np.array([99]), None, NO_LIMIT
    )
    assert pairs(found) == {(0, 0), (0, LIST_SIZE)}
    store.evict_before(numbers.start + 2)
    assert store.hash_index((0,), [pa.int64()]).is_list


@pytest.fixture(params=["dense", "hashed"])
def kind_of_slots(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that lie close together: once their own slots, once hashed like any others."""
    if request.param == "hashed":
        monkeypatch.setattr(slots, "FEW_SLOTS", 0)
        monkeypatch.setattr(slots, "SLOTS_A_ROW", 0)


@pytest.mark.usefixtures("kind_of_slots")
def test_the_table_grows_with_the_rows() -> None:
    column = KeyColumn(pa.int64())
    index = HashIndex([column])
    values = np.arange(3 * LEAST_SLOTS)
    for part in np.split(values, 6):
        column.append(pa.array(part))
        index.catch_up(len(column.words[0]))
    probing = Probing(column.words, None, values)
    found, _ = index.probe(probing, np.array([0]), np.array([len(values)]), None, NO_LIMIT)
    assert pairs(found) == {(n, n) for n in range(len(values))}
    assert index.nbytes >= 2 * 4 * len(values)


@pytest.mark.usefixtures("kind_of_slots")
@pytest.mark.parametrize("last", [7, None])
@pytest.mark.parametrize("more", [1, 4])
def test_a_full_room_is_gone_on_from(
    monkeypatch: pytest.MonkeyPatch, more: int, last: int | None
) -> None:
    monkeypatch.setattr(hash_index, "MORE_ROOM", more)
    stored = [*(n % 3 for n in range(90)), last]
    column = KeyColumn(pa.int64())
    column.append(pa.array(stored))
    index = HashIndex([column])
    index.catch_up(len(stored))
    probe = KeyColumn(pa.int64())
    probe.append(pa.array([0, 5, 1, 1, 2]))
    found, probed = index.probe(
        Probing(probe.words, None, np.arange(5)),
        np.array([0]),
        np.array([len(stored)]),
        None if last else np.zeros(len(stored), np.bool_),
        NO_LIMIT,
    )
    assert probed == 5
    values = [0, 5, 1, 1, 2]
    assert pairs(found) == {
        (i, place) for i, v in enumerate(values) for place, w in enumerate(stored) if v == w
    }


@pytest.mark.usefixtures("kind_of_slots")
@pytest.mark.parametrize("most", [1, 29, 30, 31, 60, 61, 1000])
@pytest.mark.parametrize("more", [1, 4])
def test_enough_matches_end_a_probe_with_the_tuple_at_hand(
    monkeypatch: pytest.MonkeyPatch, most: int, more: int
) -> None:
    monkeypatch.setattr(hash_index, "MORE_ROOM", more)
    stored = [n % 3 for n in range(90)]
    column = KeyColumn(pa.int64())
    column.append(pa.array(stored))
    index = HashIndex([column])
    index.catch_up(len(stored))
    tuples = [0, 1, 2] * 20
    probe = KeyColumn(pa.int64())
    probe.append(pa.array(tuples))
    rows = np.arange(len(tuples))
    seen: Pairs = set()
    start = rounds = 0
    while start < len(tuples):
        rest = Probing(probe.words, None, rows[start:])
        found, probed = index.probe(rest, np.array([0]), np.array([90]), None, most)
        here = pairs(found)
        assert probed >= 1
        # Every tuple that counts as probed has all its matches, and no other has any.
        assert here == {
            (i, place)
            for i, value in enumerate(tuples[start : start + probed])
            for place, other in enumerate(stored)
            if value == other
        }
        seen |= {(start + i, place) for i, place in here}
        start += probed
        rounds += 1
    assert len(seen) == 30 * len(tuples)
    if most < 60:
        assert rounds > 1


def test_texts_of_one_hash_are_not_matches() -> None:
    texts = colliding(20)
    column = KeyColumn(pa.binary())
    column.append(pa.array(texts))
    index = HashIndex([column])
    index.catch_up(len(texts))
    rows = np.arange(len(texts))
    probing = Probing(column.words, None, rows)
    found, _ = index.probe(probing, np.array([0]), np.array([len(texts)]), None, NO_LIMIT)
    assert len(found.places) == len(texts) ** 2
    assert pairs(confirmed(found, [column], [rows], [column])) == {(n, n) for n in range(20)}


def test_probing_with_no_tuples_finds_nothing() -> None:
    column = KeyColumn(pa.int64())
    column.append(pa.array(range(100)))
    index = HashIndex([column])
    index.catch_up(100)
    none = Probing(column.words, None, np.array([], np.int64))
    found, probed = index.probe(none, np.array([0]), np.array([100]), None, NO_LIMIT)
    assert (len(found.places), probed) == (0, 0)
