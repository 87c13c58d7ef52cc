"""Axes: ends, ticks and places."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.reports.axes import Axis

NUMBERS = st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-9)


@given(low=NUMBERS, span=st.floats(1e-6, 1e12), most=st.integers(2, 12))
def test_linear_ticks_are_few_round_and_inside(low: float, span: float, most: int) -> None:
    high = low + span
    if (high - low) < abs(low) * 1e-6:
        return  # closer than a label can tell
    ticks = Axis(low, high).ticks(most)
    assert 1 <= len(ticks) <= most
    slack = (high - low) * 1e-6
    assert all(low - slack <= value <= high + slack for value, _ in ticks)
    if len(ticks) > 2:
        gaps = [b - a for (a, _), (b, _) in itertools.pairwise(ticks)]
        assert max(gaps) == pytest.approx(min(gaps), rel=1e-3)


def labels(axis: Axis, most: int = 6) -> list[str]:
    return [label for _, label in axis.ticks(most)]


def test_labels() -> None:
    assert labels(Axis(0, 1)) == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert labels(Axis(0, 100, " %"), 3) == ["0 %", "50 %", "100 %"]
    assert labels(Axis(0, 3e6), 4) == ["0", "1M", "2M", "3M"]
    assert labels(Axis(0, 4000), 5) == ["0", "1,000", "2,000", "3,000", "4,000"]
    assert labels(Axis(-0.02, 0.02), 5) == [
        "-0.02",
        "-0.01",
        "0.00",
        "0.01",
        "0.02",
    ]


def test_places() -> None:
    assert Axis(0, 10, start=100, end=0).pixel(2.5) == 75


def test_wrong_ends_are_refused() -> None:
    with pytest.raises(ValueError, match="above its start"):
        Axis(3.0, 3.0)
