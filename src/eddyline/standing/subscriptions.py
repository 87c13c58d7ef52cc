"""Who is told the results of which query, for as long as the query is there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from eddyline.standing.sinks import Callback


class _Ended(NamedTuple):
    """Who was told a query's results, until the first version without it.

    ``jobs`` were in the middle of a batch then, perhaps with the query, and are not at its end yet.
    """

    name: str
    version: int
    callbacks: list[Callback]
    jobs: set[str]


class Subscriptions:
    """Callbacks by the names of queries; any thread may ask and change them.

    A query that is dropped is told of once more where a batch runs a version with it; a query of
    the same name that comes later is another one. So much is kept for the batches under way, and
    no longer: a job may stand idle for ever.

    >>> subscriptions = Subscriptions()
    >>> subscriptions.add("rule", print)
    >>> subscriptions.end(["rule"], lambda: 4, lambda: {"job"})  # version 4 is without it
    >>> subscriptions.told(["rule", "other"], 3), subscriptions.told(["rule"], 4)
    ({'rule': [<built-in function print>]}, {})
    >>> subscriptions.ran("job")
    >>> len(subscriptions)
    0
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._now: dict[str, list[Callback]] = {}
        self._ended: list[_Ended] = []

    def __len__(self) -> int:
        """Return the number of queries whose results somebody is told, or was."""
        with self._changing:
            return len(self._now) + len(self._ended)

    def add(
        self, name: str, callback: Callback, check: Callable[[], object] = lambda: None
    ) -> None:
        """Tell somebody of a query; ``check`` raises where it is not there."""
        with self._changing:
            check()
            self._now.setdefault(name, []).append(callback)

    def end(
        self, names: Iterable[str], drop: Callable[[], int], at_work: Callable[[], set[str]]
    ) -> None:
        """Have queries dropped, which returns the first version without them.

        Batches that begin after that have it; the jobs ``at_work`` then may be about an older one.
        """
        with self._changing:
            version = drop()
            jobs = at_work()
            for name in names:
                callbacks = self._now.pop(name, [])
                if jobs:
                    self._ended.append(_Ended(name, version, callbacks, set(jobs)))

    def told(self, names: Iterable[str], version: int) -> dict[str, list[Callback]]:
        """Return whom to tell of which queries, in a batch that runs a version of them.

        Takes as long as there are queries and ended ones, and no time where nobody subscribes.
        """
        with self._changing:
            before: dict[str, list[Callback]] = {}
            for ended in self._ended:  # the oldest first
                if ended.version > version:
                    before.setdefault(ended.name, ended.callbacks)
            if not self._now and not any(before.values()):
                return {}
            now = self._now
            listeners = {
                name: before[name] if name in before else now.get(name, []) for name in names
            }
            return {name: callbacks for name, callbacks in listeners.items() if callbacks}

    def ran(self, job: str) -> None:
        """Take note that a job has come to the end of a batch."""
        with self._changing:
            for ended in self._ended:
                ended.jobs.discard(job)
            self._ended = [ended for ended in self._ended if ended.jobs]
