"""Paired measurements: the contestants take turns, and ratios are formed turn by turn."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ratio:
    """Median, least and greatest of paired ratios."""

    median: float
    least: float
    greatest: float

    def __str__(self) -> str:
        """Return the median with its spread."""
        return f"{self.median:.2f} ({self.least:.2f}-{self.greatest:.2f})"


@dataclass(frozen=True, slots=True)
class Turns:
    """Seconds of each contestant, turn by turn."""

    seconds: Mapping[str, tuple[float, ...]]

    def median(self, contestant: str) -> float:
        """Return the median seconds of one contestant."""
        return statistics.median(self.seconds[contestant])

    def ratio(self, contestant: str, opponent: str, *, plus: float = 0.0) -> Ratio:
        """Return contestant's time over opponent's (``plus`` seconds added), turn by turn."""
        ratios = [
            own / (other + plus)
            for own, other in zip(self.seconds[contestant], self.seconds[opponent], strict=True)
        ]
        return Ratio(statistics.median(ratios), min(ratios), max(ratios))

    def worst_over_best(self) -> Ratio:
        """Return the time of the contestant with the greatest median over that with the least."""
        medians = {name: self.median(name) for name in self.seconds}
        return self.ratio(
            max(medians, key=medians.__getitem__), min(medians, key=medians.__getitem__)
        )


def take_turns(
    contestants: Mapping[str, Callable[[], object]],
    *,
    turns: int,
    uncounted: int = 1,
    warmed: bool = False,
    progress: Callable[[], None] | None = None,
) -> Turns:
    """Run each contestant ``turns`` times in turn, after some uncounted turns.

    Alternately, A B C, C B A, …, so that no contestant always runs behind the same other one.
    ``warmed``: each runs twice in a row, and the second run counts. It finds memory and caches as
    one of its own kind leaves them: on a virtual machine a plan of 0.16 s took 0.43 behind one
    that had given its pages back to the system.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    names = list(contestants)
    for turn in range(uncounted + turns):
        for name in names if turn % 2 == 0 else reversed(names):
            for _ in range(2 if warmed else 1):
                gc.collect()
                started = time.perf_counter()
                contestants[name]()
                taken = time.perf_counter() - started
            if turn >= uncounted:
                seconds[name].append(taken)
            if progress is not None:
                progress()
    return Turns({name: tuple(values) for name, values in seconds.items()})
