"""Windows are made of panes: no window begins or ends within one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.standing.engine.aggregation.time_window import TimeWindow


@st.composite
def windows(draw: st.DrawFn) -> TimeWindow:
    slide = draw(st.integers(1, 30))
    size = slide + draw(st.integers(0, 60))
    return TimeWindow(size, slide, draw(st.integers(-50, 50)))


def starts(window: TimeWindow, time: int) -> set[int]:
    """The starts of all windows that a time is in, one after the other."""
    far = 200 * window.slide
    first = time - time % window.slide + window.start % window.slide
    return {s for s in range(first - far, first + far, window.slide) if s <= time < s + window.size}


@given(windows(), st.lists(st.integers(-500, 500), min_size=1))
def test_times_of_a_pane_are_in_the_same_windows(window: TimeWindow, times: list[int]) -> None:
    panes = window.panes(np.array(times, np.int64))
    for time, pane in zip(times, panes.tolist(), strict=True):
        assert pane <= time < pane + window.pane
        assert starts(window, time) == starts(window, pane)


@given(windows(), st.integers(-500, 500), st.integers(-500, 500), st.integers(0, 300))
def test_the_windows_that_close_are_those_that_end_in_between(
    window: TimeWindow, time: int, after: int, more: int
) -> None:
    panes = window.panes(np.array([time], np.int64))
    places, found = window.closing(panes, after, after + more)
    ends = {s + window.size for s in starts(window, time)}
    assert set(places.tolist()) <= {0}
    assert len(set(found.tolist())) == len(found)
    closing = {end for end in ends if after < end <= after + more}
    assert {s + window.size for s in found.tolist()} == closing
    assert window.last_ends(panes).tolist() == [max(ends)]
    later = [end for end in ends if end > after]
    assert window.next_end(panes, after) == min(later, default=None)


@pytest.mark.parametrize(("size", "slide"), [(10, 0), (10, 11), (0, 0), (-1, -1)])
def test_windows_have_a_length_and_no_gaps(size: int, slide: int) -> None:
    with pytest.raises(ValueError, match="no windows"):
        TimeWindow(size, slide)
