"""Keys of a table that may be scanned instead: asked for as they come, until that is chosen.

Which of the two it is holds for the whole job, however often a task asks: rows must come from one
of them alone. So tasks get no rows here, but the outcome: all their keys have been answered, and
whoever wants the rows gets them without another request; or the table is to be scanned.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final, Protocol

import pyarrow as pa

from eddyline.asking.filling import TaskPlace
from eddyline.asking.lookup_source import Key
from eddyline.asking.scan_choice import ScanChoice
from eddyline.asking.shared_method import SharedMethod
from eddyline.asking.way_to_answers import Found

LOOKING: Final = 0.02
"""Seconds between two looks at how far asking is, at the least."""

LOOKS: Final = 100
"""Looks in the time that asking has taken: it need not be looked at more often."""

MOST_WAITING: Final = 1 << 14
"""Keys that may wait to be asked for before tasks have to wait with theirs.

They have said how many they have: for the choice nobody needs to know which.
"""


class Asker(Protocol):
    """A task that asks, as others have to know of it."""

    def may_go_on(self, *, going_on: bool) -> None:
        """Take note whether it may ask for more before it only waits for answers."""

    def speak(self) -> None:
        """Take note that it has brought its first keys, or has none."""

    def wait_for(self, key: Key, answer: asyncio.Future[Found]) -> None:
        """Take note of a key that it wants to know of."""


class AskedOrScanned:
    """One table in one job, for all tasks that bring its keys. For one event loop."""

    def __init__(self, lookup: SharedMethod[Any], choice: ScanChoice) -> None:
        self._lookup = lookup
        self._choice = choice
        self._scan = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._tasks = 0

    @property
    def text(self) -> str:
        """What was chosen, and why, for people."""
        return self._choice.text

    async def outcome(
        self, use: int, place: TaskPlace, keys: int, reader: asyncio.StreamReader, task: Asker
    ) -> str:
        """Take so many keys of a task; return why the table is scanned, or "": all have answers.

        ``use`` numbers the places of a query where the table is used.
        ConnectionError where the task goes before.
        """
        if self._choice.why:
            return self._choice.why
        self._choice.announce(use, place.stage, place.number, keys)
        self._tasks += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        scanned = asyncio.create_task(self._scan.wait())
        answered = asyncio.create_task(self._answered(reader, task))
        try:
            await asyncio.wait([scanned, answered], return_when=asyncio.FIRST_COMPLETED)
            if not self._choice.why:
                await answered
            return self._choice.why
        finally:
            scanned.cancel()
            answered.cancel()
            await asyncio.gather(scanned, answered, return_exceptions=True)
            self._tasks -= 1
            if not self._tasks:
                self._looking.cancel()
                self._looking = None

    def _fail(self, why: str) -> None:
        self._choice.fail(why)
        self._scan.set()

    async def _look(self) -> None:
        """Look at how far asking is, now and then, until the table is to be scanned."""
        while not self._choice.look(self._lookup.progress()):  # noqa: ASYNC110 - time passes, too
            await asyncio.sleep(max(LOOKING, self._choice.spent / LOOKS))
        self._scan.set()

    async def _answered(self, reader: asyncio.StreamReader, task: Asker) -> None:
        """Ask for the keys of a task, and wait until all have their answers."""
        open_ = _OpenKeys(self._fail)
        try:
            async for keys in _keys(reader):
                for key, answer in zip(keys, self._lookup.rows(keys), strict=True):
                    task.wait_for(key, answer)
                    open_.add(answer)
                task.speak()
                while self._lookup.waiting > MOST_WAITING:  # noqa: ASYNC110 - of many tasks
                    await asyncio.sleep(LOOKING)
            task.may_go_on(going_on=False)
            task.speak()
            await _any_of(open_.none(), reader.read(1))
            if open_.any:
                raise ConnectionError("the task has gone")
        finally:
            open_.close()


class _OpenKeys:
    """Keys of a task that have no answer yet; for one that has failed it says why."""

    def __init__(self, fail: Callable[[str], None]) -> None:
        self._fail = fail
        self._open: set[asyncio.Future[Found]] = set()
        self._none = asyncio.Event()
        self._none.set()

    @property
    def any(self) -> bool:
        return bool(self._open)

    def add(self, answer: asyncio.Future[Found]) -> None:
        if answer not in self._open:
            self._open.add(answer)
            self._none.clear()
            answer.add_done_callback(self._settle)

    async def none(self) -> None:
        """Wait until all have their answers."""
        await self._none.wait()

    def close(self) -> None:
        """Hear of no more answers."""
        for answer in self._open:
            answer.remove_done_callback(self._settle)

    def _settle(self, answer: asyncio.Future[Found]) -> None:
        self._open.discard(answer)
        if not self._open:
            self._none.set()
        if answer.cancelled():
            self._fail("the lookup was closed")
        elif (error := answer.exception()) is not None:
            self._fail(str(error))


async def _any_of(*awaited: Coroutine[Any, Any, object]) -> None:
    """Wait until the first of several ends; cancel the others."""
    tasks = [asyncio.create_task(one) for one in awaited]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def _keys(reader: asyncio.StreamReader) -> AsyncIterator[list[Key]]:
    """Yield the keys that a task sends; ConnectionError where it goes before it has said all."""
    while line := await reader.readline():
        request = json.loads(line)
        if "bytes" not in request:
            return
        table = pa.ipc.open_stream(await reader.readexactly(request["bytes"])).read_all()
        yield list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    raise ConnectionError("the task has gone")
