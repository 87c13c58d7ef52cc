"""A job, its tasks that ask, and answers on their way to them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import pyarrow as pa

from eddyline.asking.asked_or_scanned import AskedOrScanned
from eddyline.asking.filling import Beginning, TaskPlace
from eddyline.asking.lookup_source import Key
from eddyline.asking.shared_method import SharedMethod
from eddyline.asking.shared_statistics import SharedLookupStatistics
from eddyline.asking.way_to_answers import Found
from eddyline.asking.wire import frozen, packed

GATHERED_SECONDS: Final = 0.005
"""Seconds between two messages to a task at the least: what comes meanwhile goes together."""


@dataclass(slots=True)
class AskedJob:
    """The lookups of one job, by access method, and the tasks that use them now.

    ``asking`` are the tasks of a method that may ask for more before they only wait for answers,
    ``beginning`` knows of those that have not asked yet, ``wanted`` are the keys that tasks wait
    for (:func:`frozen`, as arguments may hold lists), and how many tasks wait for each. ``choices``
    are the tables that may be scanned instead, by the methods that are ways to their rows.
    """

    lookups: dict[str, SharedMethod[Any]] = field(default_factory=dict)
    choices: dict[tuple[str, ...], AskedOrScanned] = field(default_factory=dict)
    users: int = 0
    asking: Counter[str] = field(default_factory=Counter)
    beginning: defaultdict[str, Beginning] = field(default_factory=lambda: defaultdict(Beginning))
    wanted: dict[str, Counter[object]] = field(default_factory=dict)
    leaving: asyncio.TimerHandle | None = None

    def expect(self, method: str) -> None:
        """Tell a method who may ask it for more, and who for the first time."""
        lookup = self.lookups.get(method)
        if lookup is not None:
            lookup.expect_of(self.asking[method], self.beginning[method].count)

    def statistics(self) -> dict[str, SharedLookupStatistics]:
        """Return what was asked so far, by access method."""
        asked = {name: lookup.statistics() for name, lookup in self.lookups.items()}
        for methods, choice in self.choices.items():
            for way, name in enumerate(methods):
                asked[name] = replace(asked[name], choice=choice.text(way) or asked[name].choice)
        return asked

    @property
    def keys(self) -> int:
        """Keys whose answers it has or waits for."""
        return sum(counts.keys + counts.kept for counts in self.statistics().values())


class AskingTask:
    """A task that asks a method: what it waits for, and whether it may ask for more."""

    def __init__(self, job: AskedJob, method: str, task: TaskPlace | None = None) -> None:
        self._job = job
        self._method = method
        self._task = task
        self._silent = task is not None
        self.wants_size = task is not None and job.beginning[method].enter(task)
        self._wanted = job.wanted.setdefault(method, Counter())
        self._waits_for: dict[asyncio.Future[Found], Key] = {}
        self._going_on = False
        self.may_go_on(going_on=True)

    def may_go_on(self, *, going_on: bool) -> None:
        """Take note whether the task may ask for more before it only waits for answers."""
        if going_on == self._going_on:
            return
        self._going_on = going_on
        self._job.asking[self._method] += 1 if going_on else -1
        self._job.expect(self._method)

    def speak(self) -> None:
        """Take note that the task has brought its first keys, or has none."""
        if self._silent and self._task is not None:
            self._silent = False
            self._job.beginning[self._method].speak(self._task)
            self._job.expect(self._method)

    def wait_for(self, key: Key, answer: asyncio.Future[Found]) -> None:
        """Take note of a key that the task wants to know of."""
        if not answer.done() and answer not in self._waits_for:
            self._waits_for[answer] = key
            self._wanted[frozen(key)] += 1
            answer.add_done_callback(self._answered)

    def end(self) -> None:
        """The task has gone: drop the requests that no other task wants."""
        if self._task is not None:
            self._job.beginning[self._method].leave(self._task)
            self._job.expect(self._method)
        self.may_go_on(going_on=False)
        unwanted = []
        for answer, key in list(self._waits_for.items()):
            answer.remove_done_callback(self._answered)
            if self._no_longer(key):
                unwanted.append(key)
        self._waits_for.clear()
        lookup = self._job.lookups.get(self._method)
        if unwanted and lookup is not None:
            lookup.give_up(unwanted)

    def _answered(self, answer: asyncio.Future[Found]) -> None:
        key = self._waits_for.pop(answer, None)
        if key is not None:  # else the task has gone meanwhile
            self._no_longer(key)

    def _no_longer(self, key: Key) -> bool:
        """Count one task fewer that waits for a key; tell whether that was the last."""
        known = frozen(key)
        self._wanted[known] -= 1
        if self._wanted[known]:
            return False
        del self._wanted[known]
        return True


class TaskAnswers:
    """Answers on their way to a task: what has come meanwhile goes in one message."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._ready: list[_Ready] = []
        self._any = asyncio.Event()

    def expect(self, call: int, answer: asyncio.Future[Found]) -> None:
        """Have the answer to a call sent when it is there."""
        known = answer.done()  # what is known already takes no time

        def put(done: asyncio.Future[Found]) -> None:
            self._ready.append(_Ready(call, done, known))
            self._any.set()

        answer.add_done_callback(put)

    async def send(self) -> None:
        """Send what comes, until this is cancelled."""
        while True:
            await self._any.wait()
            self._any.clear()
            ready, self._ready = self._ready, []
            for header, payload in _messages(ready):
                header["bytes"] = len(payload)
                self._writer.write(json.dumps(header).encode() + b"\n" + payload)
            await self._writer.drain()
            await asyncio.sleep(GATHERED_SECONDS)


class _Ready(NamedTuple):
    call: int
    answer: asyncio.Future[Found]
    known: bool


def _messages(ready: Sequence[_Ready]) -> list[tuple[dict[str, Any], bytes]]:
    """Return answers as messages: one for all that have rows, one for each failure."""
    messages: list[tuple[dict[str, Any], bytes]] = []
    calls: list[int] = []
    sizes: list[int] = []
    seconds: list[float] = []
    batches: list[pa.RecordBatch] = []
    for call, answer, known in ready:
        if answer.cancelled():
            messages.append(({"calls": [call], "error": "the lookup was closed"}, b""))
        elif (error := answer.exception()) is not None:
            messages.append(({"calls": [call], "error": str(error)}, b""))
        else:
            rows, took, _ = answer.result()
            calls.append(call)
            sizes.append(rows.num_rows)
            seconds.append(0.0 if known else took)
            batches.append(rows)
    if batches:
        header = {"calls": calls, "rows": sizes, "seconds": seconds}
        messages.append((header, packed(pa.Table.from_batches(batches))))
    return messages
