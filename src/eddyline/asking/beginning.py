"""Tasks that ask a method and have not brought their first keys yet."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple


class TaskPlace(NamedTuple):
    """Which task of Spark's one is: its stage, and its number in that."""

    stage: int
    number: int


class StageSize(NamedTuple):
    """Tasks of a stage, and how many tasks run at a time in the whole cluster."""

    tasks: int
    at_once: int


class Beginning:
    """The tasks of a job's stages that ask one method, as far as they say where they are.

    Spark begins the tasks of a stage one after the other, and each takes a while to come to its
    first keys. A task that no core is free for is none that begins: it waits for one that may
    itself wait for answers.

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
        """Start without any."""
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
        """Learn how large a stage is; where that is not to be known, nobody waits for its tasks."""
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
