"""How long a call that could take more keys waits for them, and for which tasks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

GATHERED: Final = 0.05
"""Seconds that the first keys of a call wait for others, where more may come.

A task hands its first keys over a few at a time, until it knows what a visit costs: without the
pause 5,000 keys, 500 a call, began with calls for 8, 8, 8, 16, 112 and 264 of them.
"""

UNKNOWN: Final = 1.0
"""Seconds that a call may take, as long as none has ended."""

BEGINNING: Final = 1.0
"""Seconds that keys wait for tasks that begin. A worker process takes that long to start."""


class Filling:
    """When a call leaves with fewer keys than it could take.

    A full one leaves at once. Any other leaves when nobody has more: when each task that asks waits
    for nothing but answers. As long as one may bring more keys it waits while another call is under
    way, as a small packet waits for the acknowledgement of the one before (Nagle, RFC 896): slow
    tasks have one small call at a time instead of many. But never longer than a call usually takes,
    so that one that stalls holds up no other.

    Tasks that begin have not brought their first keys yet (:class:`Beginning`). The call waits for
    them as well, for a while; and where that was in vain, never again.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """``now`` tells seconds."""
        self._now = now
        self._since = 0.0
        self._first = 0.0
        self._in_vain = False
        self.tasks = 0
        """Tasks that may ask for more soon."""
        self.beginning = 0
        """Tasks that may bring their first keys soon."""

    def begin(self) -> None:
        """Note that keys wait from now on, where none or others did before."""
        self._since = self._first = self._now()

    def expect(self, tasks: int, beginning: int) -> None:
        """Know that so many tasks may ask for more, and so many for the first time."""
        if beginning < self.beginning:
            self._since = self._now()  # a task that has just come hands the next keys over soon
        self.tasks, self.beginning = tasks, beginning

    def leave(self) -> None:
        """Note that a call leaves with fewer keys than it could take."""
        self._in_vain = self._in_vain or self.beginning > 0

    def patience(self, *, under_way: bool, usual_seconds: float) -> float:
        """Return the seconds that keys still have to wait for more; 0 where they go now.

        ``under_way``: whether other calls are. ``usual_seconds`` is what a call takes, 0 as long as
        nobody knows.

        >>> filling = Filling(lambda: 100.0)
        >>> filling.begin()
        >>> filling.patience(under_way=True, usual_seconds=2.0)
        0.0
        >>> filling.expect(1, 0)
        >>> filling.patience(under_way=True, usual_seconds=2.0)
        2.0
        """
        now = until = self._now()
        if self.tasks:
            limit = max(usual_seconds or UNKNOWN, GATHERED) if under_way else GATHERED
            until = max(until, self._since + limit)
        if self.beginning and not self._in_vain:
            until = max(until, self._first + BEGINNING)
        left = until - now
        return left if left > math.ulp(until) else 0.0


class TaskPlace(NamedTuple):
    """Which task of Spark's one is: its stage, and its number in that."""

    stage: int
    number: int


class StageSize(NamedTuple):
    """Tasks of a stage, and how many tasks run at a time in the whole cluster."""

    tasks: int
    at_once: int


class Beginning:
    """The tasks of a job's stages that ask one method, as far as they report where they are.

    Spark starts the tasks of a stage one after the other, and each takes a while to come to its
    first keys. A task that no core is free for does not count: it waits for a task that may itself
    wait for answers.

    >>> beginning = Beginning()
    >>> beginning.enter(TaskPlace(7, 0))
    True
    >>> beginning.count  # nobody knows yet how many tasks stage 7 has; this one has said nothing
    2
    >>> beginning.sized(7, StageSize(tasks=5, at_once=2))
    >>> beginning.speak(TaskPlace(7, 0))
    >>> beginning.count  # a core is free
    1
    >>> beginning.enter(TaskPlace(7, 1))
    False
    >>> beginning.speak(TaskPlace(7, 1))
    >>> beginning.count  # no core is
    0
    >>> beginning.leave(TaskPlace(7, 0))
    >>> beginning.count
    1
    """

    def __init__(self) -> None:
        self._came: dict[int, set[int]] = {}  # by stage the numbers of those that came
        self._sizes: dict[int, StageSize | None] = {}  # None as long as nobody knows
        self._here: Counter[TaskPlace] = Counter()
        self._silent: set[TaskPlace] = set()

    @property
    def count(self) -> int:
        """Tasks that may bring their first keys soon."""
        known = [size for size in self._sizes.values() if size is not None]
        left = sum(
            max(0, size.tasks - len(self._came[stage]))
            for stage, size in self._sizes.items()
            if size is not None
        )
        free = max((size.at_once for size in known), default=0) - len(self._here)
        unknown = len(self._sizes) - len(known)
        return unknown + max(0, min(left, free)) + len(self._silent)

    def enter(self, task: TaskPlace) -> bool:
        """Take note of a task that begins; tell whether the size of its stage is wanted."""
        stage, number = task
        wanted = stage not in self._sizes
        if wanted:
            self._sizes[stage] = None
        came = self._came.setdefault(stage, set())
        if number not in came:
            self._silent.add(task)
        came.add(number)
        self._here[task] += 1
        return wanted

    def sized(self, stage: int, size: StageSize | None) -> None:
        """Learn how large a stage is; where that cannot be known, nobody waits for its tasks."""
        self._sizes[stage] = size or StageSize(0, 0)

    def speak(self, task: TaskPlace) -> None:
        """Take note that a task has asked, or said that it has nothing to ask for."""
        self._silent.discard(task)

    def leave(self, task: TaskPlace) -> None:
        """Take note that a task has gone."""
        self._here[task] -= 1
        if not self._here[task]:
            del self._here[task]
            self._silent.discard(task)
