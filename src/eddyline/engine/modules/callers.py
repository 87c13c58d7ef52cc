"""Who makes the calls of a module that answers later: threads, or an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from queue import SimpleQueue
from typing import Final, NamedTuple, Protocol, TypeAlias

from eddyline.engine.agenda import Agenda
from eddyline.engine.signature import Signature

WAITING: Final = 1
"""Calls that wait behind each that is made: so that none is idle while the eddy routes."""

CallKey: TypeAlias = tuple[Signature, int]
"""For which tuple a call is made: its signature, and its row."""


class CallDone(NamedTuple):
    """A call that was made: what it returned or raised, and how long it took."""

    key: CallKey
    value: object
    error: Exception | None
    seconds: float


class PlannedCall(NamedTuple):
    """A call to be made; ``key`` comes back with what it returns."""

    key: CallKey
    arguments: tuple[object, ...]


class Caller(Protocol):
    """Makes calls of one function, ``width`` of them at a time, and keeps what they return.

    The contract is httpx's for transports: who waits, and how, is behind it.
    """

    @property
    def agenda(self) -> Agenda:
        """Where it says that calls are done."""
        ...

    @property
    def width(self) -> int:
        """Calls that are made at a time."""
        ...

    @property
    def room(self) -> int:
        """Calls that it takes at a time, those that wait included."""
        ...

    def attend(self, module: int) -> None:
        """Call for a module of this number from now on."""
        ...

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        """Take calls to be made; return at once."""
        ...

    def collect(self) -> list[CallDone]:
        """Return the calls that were done since the last time."""
        ...


class Outbox:
    """Calls that are done, on their way back into the eddy's thread."""

    def __init__(self, agenda: Agenda) -> None:
        """Start empty."""
        self.agenda = agenda
        self._module: int | None = None
        self._done: deque[CallDone] = deque()
        self._told = False

    def attend(self, module: int) -> None:
        """Speak for a module; RuntimeError if it speaks for another already."""
        if self._module not in (None, module):
            raise RuntimeError(f"makes the calls of module {self._module} already")
        self._module = module

    def put(self, done: CallDone) -> None:
        """Add a call that is done; from any thread."""
        self._done.append(done)
        # Told once for all that is done until the eddy comes to collect. It takes back the word
        # before it empties the box: what comes in between is told twice, never not at all.
        if not self._told and self._module is not None:
            self._told = True
            self.agenda.tell(self._module)

    def empty(self) -> list[CallDone]:
        """Return all that is done; from the eddy's thread."""
        self._told = False
        found = []
        while self._done:
            found.append(self._done.popleft())
        return found


class ThreadCaller:
    """Makes calls in threads of its own, which start with the first call.

    For functions that wait for something without holding Python's lock: a query to a server,
    a model in a library, ``time.sleep``.
    """

    def __init__(
        self,
        function: Callable[..., object],
        agenda: Agenda,
        now: Callable[[], float],
        *,
        width: int = 16,
    ) -> None:
        """Make up to ``width`` calls at a time; ``now`` tells the time in seconds.

        ValueError unless the width is 1 at least.
        """
        self.width = _checked(width)
        self.room = width * (1 + WAITING)
        self.agenda = agenda
        self._function = function
        self._now = now
        self._calls: SimpleQueue[PlannedCall | None] = SimpleQueue()
        self._outbox = Outbox(agenda)
        self._threads: list[threading.Thread] = []

    def attend(self, module: int) -> None:
        """Call for a module of this number."""
        self._outbox.attend(module)

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        """Take calls to be made."""
        while len(self._threads) < self.width:
            thread = threading.Thread(target=self._work, name="eddyline-call", daemon=True)
            self._threads.append(thread)
            thread.start()
        for call in calls:
            self._calls.put(call)

    def collect(self) -> list[CallDone]:
        """Return the calls that were done since the last time."""
        return self._outbox.empty()

    def close(self) -> None:
        """Let the threads end after the calls that they were given."""
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            started = self._now()
            value, error = None, None
            try:
                value = self._function(*call.arguments)
            except Exception as raised:  # noqa: BLE001 - the user's function may raise anything
                error = raised
            self._outbox.put(CallDone(call.key, value, error, self._now() - started))


class EventLoop:
    """An event loop in a thread of its own, which many callers may share.

    >>> async def doubled(number: int) -> int:
    ...     return 2 * number
    >>> loop = EventLoop()
    >>> asyncio.run_coroutine_threadsafe(doubled(4), loop.loop).result()
    8
    >>> loop.close()
    """

    def __init__(self) -> None:
        """Start the thread."""
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self.loop.run_forever, name="eddyline-loop", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End what is under way, and the thread."""
        asyncio.run_coroutine_threadsafe(self._cancel(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    @staticmethod
    async def _cancel() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class EventLoopCaller:
    """Makes calls of an asynchronous function on an event loop."""

    def __init__(
        self,
        function: Callable[..., Awaitable[object]],
        agenda: Agenda,
        now: Callable[[], float],
        loop: EventLoop,
        *,
        width: int = 16,
    ) -> None:
        """Make up to ``width`` calls at a time; ``now`` tells the time in seconds.

        ValueError unless the width is 1 at least.
        """
        self.width = _checked(width)
        self.room = width * (1 + WAITING)
        self.agenda = agenda
        self._function = function
        self._now = now
        self._loop = loop.loop
        self._waiting: deque[PlannedCall] = deque()  # touched by the loop's thread only
        self._working = 0  # likewise
        self._tasks: set[asyncio.Task[None]] = set()
        self._outbox = Outbox(agenda)

    def attend(self, module: int) -> None:
        """Call for a module of this number."""
        self._outbox.attend(module)

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        """Take calls to be made."""
        self._loop.call_soon_threadsafe(self._begin, tuple(calls))

    def collect(self) -> list[CallDone]:
        """Return the calls that were done since the last time."""
        return self._outbox.empty()

    def _begin(self, calls: tuple[PlannedCall, ...]) -> None:
        self._waiting.extend(calls)
        for _ in range(min(self.width - self._working, len(calls))):
            self._working += 1
            task = self._loop.create_task(self._work())
            self._tasks.add(task)  # the loop itself holds tasks only weakly
            task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        while self._waiting:
            call = self._waiting.popleft()
            started = self._now()
            value, error = None, None
            try:
                value = await self._function(*call.arguments)
            except Exception as raised:  # noqa: BLE001 - the user's function may raise anything
                error = raised
            self._outbox.put(CallDone(call.key, value, error, self._now() - started))
        self._working -= 1


def _checked(width: int) -> int:
    if width < 1:
        raise ValueError(f"a width is a number of calls from 1 on, not {width}")
    return width
