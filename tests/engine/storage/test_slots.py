"""Keys that lie close together are their own slots; others are hashed; both find the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.storage import kernels, slots
from eddyline.engine.storage.hash_index import HashIndex
from eddyline.engine.storage.key_words import KeyColumn
from eddyline.engine.storage.slots import (
    FEW_SLOTS,
    SLOTS_A_ROW,
    DenseSlots,
    HashedSlots,
    Probing,
    all_valid,
)

LEAST, GREATEST = -(2**63), 2**63 - 1


def column_of(values: Sequence[int | None]) -> KeyColumn:
    column = KeyColumn(pa.int64())
    column.append(pa.array(values, pa.int64()))
    return column


def found_by(
    index: HashIndex,
    probing: KeyColumn,
    high: int | list[int],
    dead: np.ndarray | None = None,
) -> set[tuple[int, int]]:
    rows = np.arange(len(probing.words[0]))
    highs = np.atleast_1d(np.array(high, np.int64))
    probe = Probing(probing.words, all_valid([probing]), rows)
    found, probed = index.probe(probe, np.array([0]), highs, dead, 1 << 40)
    assert probed == len(rows)
    listed = list(zip(found.positions.tolist(), found.places.tolist(), strict=True))
    assert len(set(listed)) == len(listed)
    exists = index.exists(probe, dead)
    if np.all(highs >= index._rows):
        assert sorted({position for position, _ in listed}) == np.flatnonzero(exists).tolist()
    return set(listed)


STARTS = st.sampled_from([0, -50, LEAST, GREATEST - 100, 10**12])


@given(data=st.data())
def test_dense_and_hashed_slots_find_what_brute_force_finds(data: st.DataObject) -> None:
    draw = data.draw
    start = draw(STARTS)
    # Close together, or spread; later rows may lie outside of what the first ones span.
    width = draw(st.sampled_from([1, 10, 100]))
    near = st.integers(start, start + width)
    key = draw(st.sampled_from([near, near | st.none(), near | st.integers(LEAST, GREATEST)]))
    column = KeyColumn(pa.int64())
    index = HashIndex([column])
    stored: list[int | None] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots, "FEW_SLOTS", draw(st.sampled_from([0, 64, FEW_SLOTS])))
        for _ in range(draw(st.integers(1, 4))):
            added = draw(st.lists(key, min_size=1, max_size=40))
            column.append(pa.array(added, pa.int64()))
            stored += added
            index.catch_up(len(stored))
    probing = draw(st.lists(key, min_size=1, max_size=10))
    some_dead = draw(st.booleans())
    dead = np.array(draw(st.lists(st.booleans(), min_size=len(stored), max_size=len(stored))), bool)
    each = draw(st.booleans())
    bounds = st.integers(0, len(stored))
    highs = (
        draw(st.lists(bounds, min_size=len(probing), max_size=len(probing)))
        if each
        else [draw(bounds)]
    )
    assert found_by(index, column_of(probing), highs, dead if some_dead else None) == {
        (position, place)
        for position, value in enumerate(probing)
        for place, other in enumerate(stored)
        if value is not None
        and value == other
        and place < highs[position % len(highs)]
        and not (some_dead and dead[place])
    }


def kind(column: KeyColumn) -> type:
    index = HashIndex([column])
    index.catch_up(len(column.words[0]))
    return type(index._slots)


def test_keys_that_lie_close_together_are_not_hashed() -> None:
    rows = FEW_SLOTS // SLOTS_A_ROW + 1
    assert kind(column_of([SLOTS_A_ROW * n for n in range(rows)])) is DenseSlots
    assert kind(column_of([(SLOTS_A_ROW + 1) * n for n in range(rows)])) is HashedSlots
    assert kind(column_of([100 * n for n in range(20)])) is DenseSlots  # few slots anyway
    assert kind(column_of([LEAST, GREATEST] * 10)) is HashedSlots
    assert kind(column_of([None] * 20)) is DenseSlots


def test_keys_of_two_words_are_hashed() -> None:
    column = KeyColumn(pa.string())
    column.append(pa.array([str(n) for n in range(20)]))
    assert kind(column) is HashedSlots


@pytest.mark.parametrize("step", [1, -1])
def test_keys_that_go_on_growing_are_linked_again_only_now_and_then(
    monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(slots, "FEW_SLOTS", 16)
    linked = 0
    link = kernels.link_dense

    def counted(*arguments: object) -> bool:
        nonlocal linked
        linked += int(arguments[4]) - int(arguments[3])  # type: ignore[call-overload]
        return bool(link(*arguments))

    monkeypatch.setattr(kernels, "link_dense", counted)
    column = KeyColumn(pa.int64())
    index = HashIndex([column])
    rows = 5000
    for start in range(0, rows, 50):
        column.append(pa.array([step * n for n in range(start, start + 50)]))
        index.catch_up(start + 50)
    assert isinstance(index._slots, DenseSlots)
    assert linked <= 6 * rows  # each by a quarter: a geometric series, not a square
    probing = [step * n for n in range(rows)]
    assert found_by(index, column_of(probing), rows) == {(n, n) for n in range(rows)}


def test_what_lay_close_together_is_hashed_once_a_key_lies_far_away() -> None:
    column = column_of(list(range(100)))
    index = HashIndex([column])
    index.catch_up(100)
    assert isinstance(index._slots, DenseSlots)
    column.append(pa.array([10**15]))
    index.catch_up(101)
    assert isinstance(index._slots, HashedSlots)
    assert found_by(index, column_of([5, 10**15, 7 * 10**14]), 101) == {(0, 5), (1, 100)}


def test_hashed_keys_are_looked_at_again_when_there_are_many_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots, "FEW_SLOTS", 0)
    monkeypatch.setattr(slots, "LEAST_SLOTS", 16)
    order = np.random.default_rng(0).permutation(1000).tolist()
    column = column_of(order[:50])
    index = HashIndex([column])
    index.catch_up(50)
    assert isinstance(index._slots, HashedSlots)
    column.append(pa.array(order[50:]))
    index.catch_up(1000)
    assert isinstance(index._slots, DenseSlots)
    assert len(found_by(index, column_of(list(range(1000))), 1000)) == 1000
    assert index.nbytes >= 2 * 4 * 1000
