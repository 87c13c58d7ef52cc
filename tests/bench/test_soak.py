"""What the soak finds fault with."""

from __future__ import annotations

from bench.soak.benchmark import PLAIN, failures_of
from bench.soak.child import Stretch
from bench.soak.held import Handles, Held


def stretch(
    threads: int = 5, driver: float = 1_000.0, heap: float = 1_000.0, seconds: float = 50.0
) -> Stretch:
    return Stretch(500, seconds, Held(Handles(threads, 20, 50), driver, heap, 0.0))


START = stretch()
SPARK = [START, stretch(threads=9, driver=2_000.0, heap=3_000.0), stretch(9, 3_000.0, 5_000.0)]


def test_what_levels_off_is_no_fault() -> None:
    level = [START, stretch(9, 3_000.0, 5_000.0), stretch(9, 3_500.0, 5_200.0)]
    assert failures_of({PLAIN: SPARK, "enable": level}) == []
    assert failures_of({"standing": [START, START, START]}) == []


def test_what_is_kept_may_fill_in_the_first_half() -> None:
    filled = [START, stretch(5, 9_000.0, 9_000.0), stretch(5, 9_400.0, 9_400.0)]
    filled += [stretch(5, 9_400.0, 9_400.0)] * 2
    assert failures_of({"standing": filled}, level=True) == []
    grown = stretch(5, 11_500.0, 11_600.0)
    assert failures_of({"standing": [*filled[:-1], grown]}, level=True) == [
        "standing: the driver grew by 2.10 KB a run above plain",
        "standing: the heap grew by 2.20 KB a run",
    ]


def test_each_bound_is_looked_at() -> None:
    plain = [START, START, START, SPARK[-1], SPARK[-1]]
    for last, what in (
        (stretch(10, 3_000.0, 5_000.0), "enable: 1 threads and 0 descriptors more"),
        (stretch(5, 5_400.0, 5_000.0), "enable: the driver grew by 1.20 KB a run above plain"),
        (stretch(5, 3_000.0, 6_000.0), "enable: the heap grew 1.25 times as much as plain"),
        (stretch(5, 3_000.0, 5_000.0, 60.0), "enable: 1.20 times as slow at the end"),
    ):
        ways = {PLAIN: plain, "enable": [START, START, START, last, last]}
        assert failures_of(ways) == [what], what
