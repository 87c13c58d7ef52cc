"""Calls of asynchronous functions, on an event loop that several modules may share."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from eddyline.engine.callers import (
    Agenda,
    CallDone,
    Outbox,
    PlannedCall,
    as_error,
    checked_width,
)

CLOSED: Final = "the event loop is closed"


class EventLoop:
    """An event loop in a thread of its own, which many callers may share.

    >>> async def doubled(number: int) -> int:
    ...     return 2 * number
    >>> loop = EventLoop()
    >>> asyncio.run_coroutine_threadsafe(doubled(4), loop.loop).result()
    8
    >>> loop.close()
    """

    def __init__(
        self,
        new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
        name: str = "eddyline-loop",
    ) -> None:
        """Make the loop and start the thread of this name."""
        self.loop = new_loop()
        self.closed = False
        self._ended = False
        self._lock = threading.Lock()  # nothing is called that came after the end
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def soon(self, callback: Callable[[], None]) -> None:
        """Call something in the loop's thread, soon; RuntimeError where the loop is closed."""
        with self._lock:
            if self.closed:
                raise RuntimeError(CLOSED)
            self.loop.call_soon_threadsafe(callback)

    def close(self) -> None:
        """End what is under way, each call with an error, and the thread; once is enough.

        To be called from a thread other than the loop's, which it waits for.
        """
        with self._lock:
            if self.closed:
                return
            self.closed = True
            ending = asyncio.run_coroutine_threadsafe(_cancel_others(), self.loop)
        ending.result()
        self.loop.call_soon_threadsafe(self._end)
        self._thread.join()
        self.loop.close()

    def _run(self) -> None:
        while not self._ended:  # a function that stops the loop does not end it
            with suppress(SystemExit, KeyboardInterrupt):  # nor one that raises these in a task
                self.loop.run_forever()

    def _end(self) -> None:
        self._ended = True
        self.loop.stop()


class LoopAgenda:
    """An event loop in the eddy's own thread, which runs while the eddy waits, and is its agenda.

    Nothing has to be handed from thread to thread. On the other hand nothing is called while the
    eddy computes, but between two visits; and a thread in which an event loop runs already, as
    that of a notebook, can run no other: there an :class:`EventLoop` is needed.

    >>> agenda = LoopAgenda()
    >>> handle = agenda.loop.call_later(0.001, agenda.tell, 3)
    >>> agenda.poll(), agenda.wait()
    ([], [3])
    >>> agenda.close()
    """

    def __init__(
        self, new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    ) -> None:
        """Make the loop."""
        self.loop = new_loop()
        self.closed = False
        self._told: dict[int, None] = {}
        self._thread = threading.get_ident()

    def soon(self, callback: Callable[[], None]) -> None:
        """Call something at once; RuntimeError where the loop is closed."""
        if self.closed:
            raise RuntimeError(CLOSED)
        callback()

    def tell(self, module: int) -> None:
        """Say that a module has answers; from any thread."""
        if threading.get_ident() != self._thread:
            self.loop.call_soon_threadsafe(self.tell, module)
            return
        self._told[module] = None
        if self.loop.is_running():
            self.loop.stop()

    def poll(self) -> Sequence[int]:
        """Let the loop do what can be done at once; return the modules that have answers."""
        # What has come is read in one round, and those who waited for it go on in the next.
        for _ in range(2):
            self.loop.call_soon(self.loop.stop)
            self._run()
        return self._taken()

    def wait(self) -> Sequence[int]:
        """Let the loop run until a module has answers, and return all that have them then."""
        while not self._told:
            self._run()
        return self._taken()

    def close(self) -> None:
        """End what is under way, each call with an error, and the loop; once is enough."""
        if self.closed:
            return
        self.closed = True
        ending = self.loop.create_task(_cancel_others())
        ending.add_done_callback(lambda _: self.loop.stop())
        while not ending.done():  # a message may still come, which stops the loop
            self._run()
        self.loop.call_soon(self.loop.stop)
        self._run()  # the calls that ended have said so
        self.loop.close()

    def _run(self) -> None:
        self._thread = threading.get_ident()
        self.loop.run_forever()

    def _taken(self) -> Sequence[int]:
        told, self._told = self._told, {}
        return list(told)


class EventLoopCaller:
    """Makes calls of an asynchronous function on an event loop."""

    def __init__(
        self,
        function: Callable[..., Awaitable[object]],
        agenda: Agenda,
        now: Callable[[], float],
        loop: EventLoop | LoopAgenda,
        *,
        width: int = 16,
    ) -> None:
        """Make up to ``width`` calls at a time; ``now`` tells the time in seconds.

        ValueError unless the width is 1 at least, and where ``loop`` runs only while somebody
        waits for it, which is not the agenda.
        """
        if isinstance(loop, LoopAgenda) and loop is not agenda:
            raise ValueError("a loop in the eddy's own thread must be its agenda: else it stands")
        self.width = checked_width(width)
        self.agenda = agenda
        self._function = function
        self._now = now
        self._loop = loop
        self._waiting: deque[PlannedCall] = deque()
        self._working = 0  # changed by the loop's thread only
        self._tasks: set[asyncio.Task[None]] = set()
        self._outbox = Outbox(agenda)

    def attend(self, module: int) -> None:
        """Call for a module of this number."""
        self._outbox.attend(module)

    def submit(self, calls: Sequence[PlannedCall]) -> None:
        """Take calls to be made."""
        self._waiting.extend(calls)
        # A worker that runs will find them; to wake the loop takes 50 microseconds.
        if self._working < self.width:
            self._loop.soon(self._begin)

    def collect(self) -> list[CallDone]:
        """Return the calls that were done since the last time."""
        return self._outbox.empty()

    def _begin(self) -> None:
        for _ in range(min(self.width - self._working, len(self._waiting))):
            self._working += 1
            task = self._loop.loop.create_task(self._work())
            self._tasks.add(task)  # the loop itself holds tasks only weakly
            task.add_done_callback(self._ended)

    async def _work(self) -> None:
        task = asyncio.current_task()
        # A function may have its own task cancelled, as a TaskGroup does. It would be the next
        # call that hears of it, so another task makes that.
        while self._waiting and not (task is not None and task.cancelling()):
            call = self._waiting.popleft()
            started = self._now()
            value, error = None, None
            try:
                value = await self._function(*call.arguments)
            except BaseException as raised:  # noqa: BLE001 - the user's function may raise anything
                error = as_error(raised)
            self._outbox.put(CallDone(call.key, value, error, self._now() - started))

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Go on with calls that have come since the task looked for one, or that it left undone."""
        self._tasks.discard(task)
        self._working -= 1
        if not self._loop.closed:
            self._begin()
            return
        while self._waiting:
            self._outbox.put(CallDone(self._waiting.popleft().key, None, RuntimeError(CLOSED), 0.0))


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
