"""Keys of a table that may be scanned instead: asked for as they come, until that is chosen.

Which of the two it is holds for the whole job, however often a task asks: rows must come from one
of them alone. So tasks get no rows while they ask, but the outcome: all their keys have been
answered, and whoever wants the rows gets them without another request (those of a few keys come
with the outcome); or the table is to be scanned.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

from eddyline.asking.filling import TaskPlace
from eddyline.asking.lookup_source import Key
from eddyline.asking.remote_choice import FEW, KEYS_SENT, AskedOutcome
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
    """A task that asks by one way, as others have to know of it."""

    def may_go_on(self, *, going_on: bool) -> None:
        """Take note whether it may ask for more before it only waits for answers."""

    def speak(self) -> None:
        """Take note that it has brought its first keys, or has none."""

    def wait_for(self, key: Key, answer: asyncio.Future[Found]) -> None:
        """Take note of a key that it wants to know of."""

    def end(self) -> None:
        """Drop the requests that no other task wants."""


class KeysOfTask:
    """The keys of a task by all ways; it sends them as they are asked for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read what it sends until :meth:`close`."""
        self._reader = reader
        self._writer = writer
        self._asked: deque[asyncio.Future[list[Key]]] = deque()
        self.gone: Final = asyncio.create_task(self._read())
        """Ends when the task has gone."""

    async def part(self, way: int, start: int) -> list[Key]:
        """Return some of the keys for a way, from one on."""
        came: asyncio.Future[list[Key]] = asyncio.get_running_loop().create_future()
        self._asked.append(came)
        self._writer.write(json.dumps({"send": [way, start, KEYS_SENT]}).encode() + b"\n")
        return await came

    async def close(self) -> None:
        """Read no more."""
        self.gone.cancel()
        await asyncio.gather(self.gone, return_exceptions=True)

    async def _read(self) -> None:
        while line := await self._reader.readline():
            message = await self._reader.readexactly(json.loads(line)["bytes"])
            columns = pa.ipc.open_stream(message).read_all().columns
            keys = zip(*(column.to_pylist() for column in columns), strict=True)
            came = self._asked.popleft()
            if not came.done():  # else nobody asks by that way any more
                came.set_result(list(keys))


class AskedOrScanned:
    """One table in one job, for all tasks that bring its keys. For one event loop.

    ``lookups`` are the ways to its rows, by any of which the keys can be asked for.
    """

    def __init__(self, lookups: Sequence[SharedMethod[Any]], choice: ScanChoice) -> None:
        self._lookups = tuple(lookups)
        self._choice = choice
        self._changed = asyncio.Event()  # another outcome, or other ways that are asked
        self._looking: asyncio.Task[None] | None = None
        self._tasks = 0

    def text(self, way: int) -> str:
        """What was chosen, and why, for people; of the way alone that it is said of."""
        if way != max(self._choice.race.leader, 0):
            return ""
        self._choice.pay(*(lookup.progress() for lookup in self._lookups))
        return self._choice.text

    async def outcome(
        self,
        use: int,
        place: TaskPlace,
        counts: Sequence[int],
        keys: KeysOfTask,
        asker: Callable[[int], Asker],
    ) -> AskedOutcome:
        """Take the keys of a task, so many for each way; return what came of it.

        ``use`` numbers the places of a query where the table is used, ``asker`` says that the task
        asks by a way. ConnectionError where the task goes before.
        """
        if why := self._choice.why:
            return AskedOutcome(why)
        choice = self._choice
        choice.announce(use, place.stage, place.number, *counts)
        self._tasks += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        asking: dict[int, asyncio.Task[AskedOutcome | None]] = {}
        try:
            while not choice.why:
                self._ask_by(choice.race.asked, asking, counts, keys, asker)
                self._changed.clear()
                changed = asyncio.create_task(self._changed.wait())
                awaited = [changed, keys.gone, *asking.values()]
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                for task in asking.values():
                    if task.done() and (outcome := task.result()) is not None:
                        return outcome._replace(scan=choice.why)
                if keys.gone.done():
                    raise ConnectionError("the task has gone")
            return AskedOutcome(choice.why)
        finally:
            await _ended(asking.values())
            self._tasks -= 1
            if not self._tasks:
                self._looking.cancel()
                self._looking = None

    def _ask_by(
        self,
        ways: frozenset[int],
        asking: dict[int, asyncio.Task[AskedOutcome | None]],
        counts: Sequence[int],
        keys: KeysOfTask,
        asker: Callable[[int], Asker],
    ) -> None:
        """Have a task ask by these ways, and by no others."""
        for way in asking.keys() - ways:
            asking.pop(way).cancel()
        for way in ways - asking.keys():
            asking[way] = asyncio.create_task(self._answered(way, counts[way], keys, asker))

    async def _look(self) -> None:
        """Look at how far asking is, now and then, until the table is to be scanned."""
        choice = self._choice
        scanned = False
        while not scanned:
            asked = choice.race.asked
            scanned = choice.look(*(lookup.progress() for lookup in self._lookups))
            if scanned or choice.race.asked != asked:
                self._changed.set()
            await asyncio.sleep(max(LOOKING, choice.spent / LOOKS))

    async def _answered(
        self, way: int, count: int, keys: KeysOfTask, asker: Callable[[int], Asker]
    ) -> AskedOutcome | None:
        """Ask for keys by a way; return that all have answers in the end, or None for a failure."""
        lookup, task, open_ = self._lookups[way], asker(way), _OpenKeys()
        part: list[Key] = []
        try:
            for start in range(0, count, KEYS_SENT):
                part = await keys.part(way, start)
                for key, answer in zip(part, lookup.rows(part), strict=True):
                    task.wait_for(key, answer)
                    open_.add(answer)
                task.speak()
                while lookup.waiting > MOST_WAITING and not open_.why:  # noqa: ASYNC110 - of many tasks
                    await asyncio.sleep(LOOKING)
                if open_.why:
                    break
            task.may_go_on(going_on=False)
            task.speak()
            await open_.none()
        finally:
            open_.close()
            task.end()
        if open_.why:
            self._choice.fail(open_.why, way)
            self._changed.set()
            return None
        return AskedOutcome("", way, _rows(lookup, part) if count <= FEW else None)


def _rows(lookup: SharedMethod[Any], keys: Sequence[Key]) -> pa.Table | None:
    """Return the rows of keys that have answers; None where they are not there any more."""
    answers = lookup.rows(keys, exact=True)
    there = [
        answer.done() and not answer.cancelled() and not answer.exception() for answer in answers
    ]
    if not keys or not all(there):
        return None
    return pa.Table.from_batches([answer.result().rows for answer in answers])


async def _ended(tasks: Collection[asyncio.Task[AskedOutcome | None]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _OpenKeys:
    """Keys of a task that have no answer yet; if one has failed, ``why``."""

    def __init__(self) -> None:
        self._open: set[asyncio.Future[Found]] = set()
        self._settled = asyncio.Event()
        self._settled.set()
        self.why = ""

    def add(self, answer: asyncio.Future[Found]) -> None:
        if answer not in self._open:
            self._open.add(answer)
            self._settled.clear()
            answer.add_done_callback(self._settle)

    async def none(self) -> None:
        """Wait until all have their answers, or one has failed."""
        await self._settled.wait()

    def close(self) -> None:
        """Hear of no more answers."""
        for answer in self._open:
            answer.remove_done_callback(self._settle)

    def _settle(self, answer: asyncio.Future[Found]) -> None:
        self._open.discard(answer)
        if answer.cancelled():
            self.why = self.why or "the lookup was closed"
        elif (error := answer.exception()) is not None:
            self.why = self.why or str(error)
        if self.why or not self._open:
            self._settled.set()
