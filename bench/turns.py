"""Paired measurements: the contestants take turns, and ratios are formed turn by turn."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

Outcome = TypeVar("Outcome")

Contestants = Mapping[str, Callable[[], object]]
"""What is run in turn, by name. A run returns its answer, or None where it gave up."""


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, least and greatest of some numbers."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, numbers: Iterable[float]) -> Spread:
        """Return that of some numbers."""
        values = list(numbers)
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f}-{self.greatest:.2f})"


@dataclass(frozen=True, slots=True)
class Turns:
    """Seconds of each contestant, turn by turn, and the answer that all of them gave."""

    seconds: Mapping[str, Sequence[float]]
    answer: Any = None

    def median(self, contestant: str) -> float:
        """Return the median seconds of one contestant."""
        return statistics.median(self.seconds[contestant])

    def ratio(self, contestant: str, opponent: str, *, plus: float = 0.0) -> Spread:
        """Return contestant's time over opponent's (``plus`` seconds added), turn by turn."""
        return Spread.of(self.ratios(contestant, opponent, plus=plus))

    def ratios(self, contestant: str, opponent: str, *, plus: float = 0.0) -> list[float]:
        """Return the same, each of them."""
        both = zip(self.seconds[contestant], self.seconds[opponent], strict=True)
        return [own / (other + plus) for own, other in both]

    def worst_over_best(self) -> Spread:
        """Return the time of the contestant with the greatest median over that with the least."""
        return self.ratio(max(self.seconds, key=self.median), min(self.seconds, key=self.median))

    def split(self, groups: Iterable[str]) -> dict[str, Turns]:
        """Return the turns of each group: of the contestants whose names begin ``group: ``."""
        return {
            group: Turns(
                {
                    name.removeprefix(f"{group}: "): seconds
                    for name, seconds in self.seconds.items()
                    if name.startswith(f"{group}: ")
                }
            )
            for group in groups
        }


def in_turns(
    contestants: Mapping[str, Callable[[], Outcome]],
    turns: int,
    *,
    uncounted: int = 1,
    progress: Callable[[], None] = _nothing,
) -> dict[str, list[Outcome]]:
    """Run each contestant ``turns`` times in turn, after some uncounted turns; return outcomes.

    Alternately, A B C, C B A, …, so that no contestant always runs behind the same other one.
    """
    outcomes: dict[str, list[Outcome]] = {name: [] for name in contestants}
    names = list(contestants)
    for turn in range(uncounted + turns):
        for name in names if turn % 2 == 0 else reversed(names):
            outcome = contestants[name]()
            if turn >= uncounted:
                outcomes[name].append(outcome)
            progress()
    return outcomes


def require_equal(expected: object, answer: object) -> None:
    """Raise AssertionError unless two answers are equal."""
    if expected != answer:
        raise AssertionError(f"{expected} became {answer}")


def take_turns(
    contestants: Contestants,
    *,
    turns: int,
    uncounted: int = 1,
    warmed: bool = False,
    require_same: Callable[[object, object], None] = require_equal,
    expected: object = None,
    before: Mapping[str, Callable[[], object]] = MappingProxyType({}),
    progress: Callable[[], None] = _nothing,
    clock: Callable[[], float] = time.perf_counter,
) -> Turns:
    """Time contestants in turn; raise AssertionError as soon as two answers differ.

    What is done ``before`` each run of a contestant is not timed.

    Answers are compared, in between, by ``require_same`` with ``expected`` or else the first one.
    ``warmed``: each runs twice in a row, and the second run counts. It finds memory and caches as
    one of its own kind leaves them: on a virtual machine a plan of 0.16 s took 0.43 behind one
    that had given its pages back to the system. The ``clock`` of the process's own time leaves out
    what other processes take: for contestants that do all their work in this one.
    """
    first = expected

    def timed(name: str) -> float:
        nonlocal first
        for _ in range(2 if warmed else 1):
            before.get(name, _nothing)()
            gc.collect()
            started = clock()
            answer = contestants[name]()
            taken = clock() - started
        if answer is not None:
            first = answer if first is None else first
            try:
                require_same(first, answer)
            except AssertionError as error:
                error.add_note(name)
                raise
        return taken

    # What is here before the turns is no garbage: to look through it took 0.1 s a run.
    gc.collect()
    gc.freeze()
    try:
        seconds = in_turns(
            {name: lambda name=name: timed(name) for name in contestants},  # type: ignore[misc]
            turns,
            uncounted=uncounted,
            progress=progress,
        )
    finally:
        gc.unfreeze()
    return Turns(seconds, first)
