"""Who is told the results of which query, for as long as the query is there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from eddyline.standing.sinks import Callback


class _Ended(NamedTuple):
    """Whom a query's results were told, until the first version without it."""

    name: str
    version: int
    callbacks: list[Callback]


class Subscriptions:
    """Callbacks by the names of queries; any thread may ask and change them.

    A query that is dropped is told of once more where a batch runs a version with it; a query of
    the same name that comes later is another one.

    >>> subscriptions = Subscriptions()
    >>> subscriptions.add("rule", print)
    >>> subscriptions.end(["rule"], lambda: 4)  # version 4 is without it
    >>> [subscriptions.of("rule", version) for version in (3, 4)] == [[print], []]
    True
    >>> subscriptions.ran("job", 4, ["job"])
    >>> len(subscriptions)
    0
    """

    def __init__(self) -> None:
        """Begin with nobody."""
        self._changing = threading.Lock()
        self._now: dict[str, list[Callback]] = {}
        self._ended: list[_Ended] = []
        self._ran: dict[str, int] = {}  # the version that each job has run last

    def __len__(self) -> int:
        """Return the number of queries of which somebody is told, or was."""
        with self._changing:
            return len(self._now) + len(self._ended)

    def add(
        self, name: str, callback: Callback, check: Callable[[], object] = lambda: None
    ) -> None:
        """Tell somebody of a query; ``check`` raises where it is not there."""
        with self._changing:
            check()
            self._now.setdefault(name, []).append(callback)

    def end(self, names: Iterable[str], drop: Callable[[], int]) -> None:
        """Have queries dropped, which returns the first version without them."""
        with self._changing:
            version = drop()
            ended = (_Ended(name, version, self._now.pop(name, [])) for name in names)
            self._ended.extend(ended)

    def of(self, name: str, version: int) -> list[Callback]:
        """Return whom to tell of a query in a batch that runs a version of the queries."""
        with self._changing:
            for ended in self._ended:  # the oldest first
                if ended.name == name and ended.version > version:
                    return ended.callbacks
            return self._now.get(name, [])

    def ran(self, job: str, version: int, jobs: Iterable[str]) -> None:
        """Take note of a version that a job has run, one of those ``jobs`` that run now.

        Forgets whom queries were told that no batch has any more.
        """
        with self._changing:
            self._ran[job] = version
            oldest = min(self._ran.get(each, -1) for each in {job, *jobs})
            self._ended = [ended for ended in self._ended if ended.version > oldest]
