"""The clocks of eddies outside the simulator."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pytest

from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.expressions import And, Argument, Call
from eddyline.expressions.vector import Vector
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


def test_a_wait_between_the_readings_is_not_missing_from_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The core is lost after the counter was read, and before the time is."""
    path = counter(tmp_path / "schedstat", 5.0)
    clock = WorkClock(path)
    read = os.pread

    def interrupted(*arguments: int) -> bytes:
        content = read(*arguments)
        monkeypatch.setattr(os, "pread", read)
        time.sleep(0.02)
        counter(path, 5.02)
        return content

    wall_started = time.perf_counter()
    monkeypatch.setattr(os, "pread", interrupted)
    started = clock.now()
    wall_read = time.perf_counter()
    while time.perf_counter() - wall_read < 0.01:
        pass
    worked = clock.now() - started
    assert worked >= 0.0099
    assert time.perf_counter() - wall_started >= worked + 0.02
    clock.close()


def busy(ready: Barrier) -> None:
    ready.wait()
    while True:
        sum(range(10_000))


@pytest.fixture
def load() -> Iterator[None]:
    """Two processes for each core that do nothing but work."""
    processes = multiprocessing.get_context("spawn")
    count = 2 * (os.cpu_count() or 1)
    ready = processes.Barrier(count + 1)
    started = [processes.Process(target=busy, args=(ready,), daemon=True) for _ in range(count)]
    for process in started:
        process.start()
    ready.wait()
    yield
    for process in started:
        process.kill()
        process.join()


def measured(visits: int) -> list[float]:
    """Return the seconds that the clock finds for equal pieces of work."""
    clock, found = WorkClock(), []
    for _ in range(visits):
        started = clock.now()
        sum(range(5_000))
        found.append(clock.now() - started)
    clock.close()
    return found


@pytest.mark.skipif(not SCHEDULING.exists(), reason="only Linux counts this")
@pytest.mark.usefixtures("load")
def test_beside_busy_processes_no_work_comes_out_as_nothing() -> None:
    found = measured(2_000)
    assert sum(seconds < 0.25 * median(found) for seconds in found) <= 20


class Spinning:
    """A predicate that works for a number of rounds a row; one row in ``part`` passes."""

    vectorized = False

    def __init__(self, number: int, rounds: int, part: int) -> None:
        self.number, self.rounds, self.part = number, rounds, part
        self.calls = 0

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        self.calls += rows
        for _ in range(rows):
            sum(range(self.rounds))
        hashed = (columns[0].to_numpy() * 2_654_435_761 >> (self.number + 3)) % self.part
        return Vector(pa.array(hashed == 0))


def calls_of_the_costly() -> int:
    """Return the calls of a costly predicate beside two cheap ones that let half pass each."""
    functions = [Spinning(0, 300, 2), Spinning(1, 100, 2), Spinning(2, 100, 2)]
    column, clock = Argument(0, pa.int64()), WorkClock()
    eddy = FilterEddy(
        FilterPlan(And(tuple(Call(n, (column,), pa.bool_()) for n in range(len(functions))))),
        functions,
        AdaptivePolicy,
        clock,
        np.random.default_rng(0),
    )
    for start in range(0, 5_000, 1_000):
        eddy.filter([pa.array(np.arange(start, start + 1_000))], 1_000)
    clock.close()
    return functions[0].calls


def calls_of_runs() -> int:
    """Return the calls of forty runs, but for the four unluckiest: a machine has its hiccups."""
    return sum(sorted(calls_of_the_costly() for _ in range(40))[:-4])


@pytest.mark.skipif(not SCHEDULING.exists(), reason="only Linux counts this")
def test_beside_busy_processes_hardly_more_calls_are_made(
    request: pytest.FixtureRequest,
) -> None:
    quiet = calls_of_runs()
    request.getfixturevalue("load")
    assert calls_of_runs() <= 1.05 * quiet


@pytest.mark.skipif(not SCHEDULING.exists(), reason="only Linux counts this")
def test_sleeping_counts_as_work() -> None:
    clock = WorkClock()
    started = clock.now()
    time.sleep(0.05)
    assert clock.now() - started >= 0.04
    clock.close()
