"""The clocks of eddies outside the simulator."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from eddyline.wall_clock import SCHEDULING, WallClock, WorkClock


def counter(path: Path, waited: float) -> Path:
    """Write what Linux writes: nanoseconds of work, nanoseconds of waiting, time slices."""
    path.write_text(f"123456789 {round(waited * 1e9)} 42\n")
    return path


def test_time_in_which_the_core_was_taken_away_does_not_count(tmp_path: Path) -> None:
    path = counter(tmp_path / "schedstat", 5.0)
    clock, wall = WorkClock(path), WallClock()
    started, wall_started = clock.now(), wall.now()
    time.sleep(0.05)  # a sleep is the function's own doing
    counter(path, 5.02)
    seconds, wall_seconds = clock.now() - started, wall.now() - wall_started
    clock.close()
    assert seconds == pytest.approx(wall_seconds - 0.02, abs=0.005)


def test_it_never_goes_back(tmp_path: Path) -> None:
    path = counter(tmp_path / "schedstat", 5.0)
    clock = WorkClock(path)
    before = clock.now()
    counter(path, 9.0)  # longer than anything has taken here
    assert clock.now() == before
    clock.close()
    assert clock.now() >= before


@pytest.mark.parametrize("content", ["", "1", "one two three\n"])
def test_a_counter_that_cannot_be_read_leaves_the_wall_clock(tmp_path: Path, content: str) -> None:
    path = tmp_path / "schedstat"
    path.write_text(content)
    for clock in (WorkClock(path), WorkClock(tmp_path / "missing")):
        assert abs(clock.now() - time.perf_counter()) < 1.0
        clock.close()


def test_a_counter_that_goes_away_leaves_the_wall_clock(tmp_path: Path) -> None:
    path = counter(tmp_path / "schedstat", 5.0)
    clock = WorkClock(path)
    before = clock.now()
    path.write_text("")
    assert before <= clock.now() <= time.perf_counter()


@pytest.mark.skipif(not SCHEDULING.exists(), reason="only Linux counts this")
def test_sleeping_counts_as_work() -> None:
    clock = WorkClock()
    started = clock.now()
    time.sleep(0.05)
    assert clock.now() - started >= 0.04
    clock.close()
