"""Rows of a scan on their way to whoever watches: in which order they are given."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.modules.scan_access import Arrival
from eddyline.watching import arriving
from eddyline.watching.arriving import Arriving


def scan() -> Arriving:
    return Arriving(lambda: None, lambda: None, whole=False)


def even(arrival: Arrival) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = arrival.columns[0].to_numpy() % 2 == 0
    return found


def batch(numbers: list[int]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64())], names=["n"])


def given_by(source: Arriving) -> list[int]:
    found: list[int] = []
    while (arrival := source.poll()) is not None:
        found += arrival.columns[0].to_pylist()
    return found


@given(st.lists(st.lists(st.integers(0, 99), min_size=1), max_size=6), st.integers(0, 6))
def test_chosen_rows_come_first_and_none_is_lost(parts: list[list[int]], before: int) -> None:
    source = scan()
    for number, part in enumerate(parts):
        if number == before:  # also those that wait by then
            source.prefer(even)
        source.put(0, batch(part))
    if before >= len(parts):
        source.prefer(even)
    numbers = [number for part in parts for number in part]
    chosen = [number for number in numbers if number % 2 == 0]
    assert given_by(source) == chosen
    assert source.ended is False
    source.end()
    assert given_by(source) == [number for number in numbers if number % 2]
    assert source.ended


def test_others_are_given_where_enough_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arriving, "READ_AHEAD", 10)
    source = scan()
    source.prefer(even)
    source.put(0, batch([1, 2, 3]))
    assert given_by(source) == [2]
    source.put(0, batch([*range(5, 14, 2), 20, 22, 24, 25]))
    # The even ones first; then 1 and 3, with which eight wait: one more than may be held back.
    assert given_by(source)[:3] == [20, 22, 24]


def test_others_wait_no_longer_than_a_person_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arriving, "LONGEST_WAIT", 0.05)
    woken = threading.Event()
    source = Arriving(woken.set, lambda: None, whole=False)
    source.prefer(even)
    source.put(0, batch([1, 2]))
    assert given_by(source) == [2]
    for _ in range(100):
        woken.clear()
        if given_by(source) == [1]:
            break
        assert woken.wait(10)
    else:
        pytest.fail("the row that is not preferred was never given")


def test_nothing_is_preferred_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arriving, "LONGEST_WAIT", 100.0)
    source = scan()
    source.prefer(even)
    source.put(0, batch([1, 2, 3]))
    source.prefer(None)
    assert sorted(given_by(source)) == [1, 2, 3]
    source.close()
