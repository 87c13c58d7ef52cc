"""Slices of time become equal bins without losing rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.reports.records import OTHER_ORDERS, Order, OrderSlice, TaskRecord
from eddyline.reports.timeline import Timeline, busy_time, timeline

A: Order = (0, 1)
B: Order = (1, 0)


def piece(start: float, end: float, **rows: int) -> OrderSlice:
    names = {"a": A, "b": B, "other": OTHER_ORDERS}
    shares = tuple((names[name], number) for name, number in rows.items())
    return OrderSlice(start, end, sum(rows.values()), shares)


def spread(*pieces: OrderSlice, bins: int = 4, top: int = 6) -> Timeline:
    record = TaskRecord(block="b", orders=pieces)
    return timeline(record.orders, record.order_rows, bins, top)


def test_shares_by_bin() -> None:
    line = spread(piece(10, 12, a=100), piece(12, 14, b=60))
    assert line.edges == (0.0, 1.0, 2.0, 3.0, 4.0)
    assert line.orders == (A, B)
    assert line.rows == (100, 60)
    assert line.shares == ((1.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 1.0))


def test_areas_are_rows_along_the_rows_that_came() -> None:
    line = spread(piece(10, 12, a=100), piece(12, 14, b=60))
    assert line.came == (50.0, 50.0, 30.0, 30.0)
    assert line.row_edges == (0.0, 50.0, 100.0, 130.0, 160.0)
    moments = (9.0, 10.0, 10.5, 12.0, 13.5, 14.0, 99.0)
    assert [line.rows_at(when) for when in moments] == [0.0, 0.0, 25.0, 100.0, 145.0, 160.0, 160.0]


def test_tasks_at_one_time_are_mixed() -> None:
    line = spread(piece(0, 4, a=30), piece(2, 4, b=45), bins=2)
    assert line.orders == (B, A)
    assert line.shares[0] == pytest.approx((0.0, 0.75))
    assert line.shares[1] == pytest.approx((1.0, 0.25))


def test_pauses_are_cut_out() -> None:
    line = spread(piece(0, 1, a=10), piece(1001, 1002, b=10), bins=2)
    assert line.seconds == 2.0
    assert line.shares == ((1.0, 0.0), (0.0, 1.0))
    assert line.busy.at(0.5) == 0.5
    assert line.busy.at(500) == 1.0  # inside the pause
    assert line.busy.at(1001.25) == 1.25
    assert (line.busy.at(-5), line.busy.at(5000)) == (0.0, 2.0)


def test_rare_orders_become_the_others() -> None:
    line = spread(piece(0, 4, a=5, b=3, other=1), top=1)
    assert line.orders == (A, OTHER_ORDERS)
    assert line.rows == (5, 4)
    assert line.shares[1] == pytest.approx((4 / 9,) * 4)


def test_a_run_too_short_for_the_clock_is_one_bin() -> None:
    line = spread(piece(7, 7, a=3), piece(7, 7, b=1))
    assert line.shares == ((0.75,), (0.25,))
    assert line.edges == (0.0, 1e-6)


def test_an_instant_in_a_longer_run_is_counted() -> None:
    line = spread(piece(0, 4, a=4), piece(4, 4, b=3))
    assert line.shares[1] == (0.0, 0.0, 0.0, 0.75)


def test_a_clock_that_was_set_back_does_no_harm() -> None:
    line = spread(piece(5, 3, a=8), piece(5, 9, b=8))
    assert line.seconds == 4.0
    assert line.shares[0][0] == pytest.approx(0.8)


@pytest.mark.parametrize("pieces", [(), (piece(0, 1),), (piece(0, 1, a=0),)])
def test_no_rows_no_bins(pieces: tuple[OrderSlice, ...]) -> None:
    line = spread(*pieces)
    assert line.bins == 0
    assert line.edges == ()


@given(
    pieces=st.lists(
        st.builds(
            piece,
            st.floats(0, 100),
            st.floats(0, 100),
            a=st.integers(0, 50),
            b=st.integers(0, 50),
            other=st.integers(0, 50),
        ),
        max_size=20,
    ),
    bins=st.integers(1, 30),
)
def test_every_bin_is_whole_or_empty(pieces: list[OrderSlice], bins: int) -> None:
    line = spread(*pieces, bins=bins)
    assert sum(line.rows) == sum(one.rows for one in pieces)
    for column in zip(*line.shares, strict=True):
        assert min(column) >= 0.0
        assert sum(column) == pytest.approx(1.0) or not any(column)
    busy = busy_time(pieces)
    moments = sorted({one.start for one in pieces} | {one.end for one in pieces})
    places = [busy.at(moment) for moment in moments]
    assert places == sorted(places)
    assert all(0.0 <= place <= busy.seconds + 1e-9 for place in places)
