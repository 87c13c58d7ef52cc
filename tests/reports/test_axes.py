"""Axes: ends, ticks and places."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.reports.axes import Axis, FittedAxis, Scale, fitted

NUMBERS = st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-9)


@given(low=NUMBERS, span=st.floats(1e-6, 1e12), most=st.integers(2, 12))
def test_linear_ticks_are_few_round_and_inside(low: float, span: float, most: int) -> None:
    high = low + span
    if (high - low) < abs(low) * 1e-6:
        return  # closer than a label can tell
    ticks = FittedAxis(Scale.LINEAR, low, high, "").ticks(most)
    assert 1 <= len(ticks) <= most
    slack = (high - low) * 1e-6
    assert all(low - slack <= value <= high + slack for value, _ in ticks)
    if len(ticks) > 2:
        gaps = [b - a for (a, _), (b, _) in itertools.pairwise(ticks)]
        assert max(gaps) == pytest.approx(min(gaps), rel=1e-3)


@given(low=st.floats(1e-6, 1e6), factor=st.floats(10.5, 1e12), most=st.integers(2, 10))
def test_logarithmic_ticks_are_few_and_inside(low: float, factor: float, most: int) -> None:
    ticks = FittedAxis(Scale.LOGARITHMIC, low, low * factor, "").ticks(most)
    assert 1 <= len(ticks) <= most
    assert all(low * 0.999 <= value <= low * factor * 1.001 for value, _ in ticks)


def labels(axis: FittedAxis, most: int = 6) -> list[str]:
    return [label for _, label in axis.ticks(most)]


def test_labels() -> None:
    linear, logarithmic = Scale.LINEAR, Scale.LOGARITHMIC
    assert labels(FittedAxis(linear, 0, 1, "")) == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert labels(FittedAxis(linear, 0, 100, " %"), 3) == ["0 %", "50 %", "100 %"]
    assert labels(FittedAxis(linear, 0, 3e6, ""), 4) == ["0", "1M", "2M", "3M"]
    assert labels(FittedAxis(linear, 0, 4000, ""), 5) == ["0", "1,000", "2,000", "3,000", "4,000"]
    assert labels(FittedAxis(linear, -0.02, 0.02, ""), 5) == [
        "-0.02",
        "-0.01",
        "0.00",
        "0.01",
        "0.02",
    ]
    assert labels(FittedAxis(logarithmic, 0.01, 1e5, ""), 8) == [
        "0.01",
        "0.1",
        "1",
        "10",
        "100",
        "1,000",
        "10k",
        "100k",
    ]
    assert labels(FittedAxis(logarithmic, 1, 50, ""), 8) == ["1", "2", "5", "10", "20", "50"]


def test_places() -> None:
    assert FittedAxis(Scale.LINEAR, 0, 10, "", 100, 0).pixel(2.5) == 75
    assert FittedAxis(Scale.LOGARITHMIC, 1, 100, "", 0, 100).pixel(10) == pytest.approx(50)


def test_measured_axes_start_at_zero_unless_told() -> None:
    assert fitted(Axis(), [3.0, 5.0], measured=True).low == 0.0
    assert fitted(Axis(), [3.0, 5.0], measured=False).low == 3.0
    assert fitted(Axis(low=2.0), [3.0, 5.0], measured=True).low == 2.0
    assert fitted(Axis(), [-3.0, 5.0], measured=True).low == -3.0
    assert fitted(Axis(), [1.0, 5.0], measured=True).high > 5.0
    assert fitted(Axis(high=5.0), [1.0, 5.0], measured=True).high == 5.0


def test_what_cannot_be_shown_does_not_stretch_an_axis() -> None:
    endless, nothing = float("inf"), float("nan")
    axis = fitted(Axis(), [1.0, endless, nothing], measured=False)
    assert (axis.low, axis.high) == (1.0, 2.0)
    axis = fitted(Axis(Scale.LOGARITHMIC), [0.0, -4.0, 1.0, 100.0], measured=False)
    assert (axis.low, axis.high) == (1.0, 100.0)
    assert not axis.shows(0.0)
    assert axis.shows(0.5)


@pytest.mark.parametrize("scale", Scale)
@pytest.mark.parametrize("values", [[], [7.0], [7.0, 7.0]])
@pytest.mark.parametrize("measured", [True, False])
@pytest.mark.parametrize("high", [None, 7.0])
def test_an_axis_always_has_room(
    scale: Scale,
    values: list[float],
    measured: bool,  # noqa: FBT001 - pytest hands it over
    high: float | None,
) -> None:
    axis = fitted(Axis(scale, high=high), values, measured=measured)
    assert axis.low < axis.high


def test_wrong_ends_are_refused() -> None:
    with pytest.raises(ValueError, match="above its start"):
        fitted(Axis(low=3.0, high=3.0), [], measured=False)
    with pytest.raises(ValueError, match="above 0"):
        fitted(Axis(Scale.LOGARITHMIC, low=0.0), [1.0], measured=False)
