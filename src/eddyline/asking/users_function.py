"""A user's function, as the server calls it: awaited, or in a thread where it may block.

Awaited functions run on an event loop that has nothing else to do. One that holds it up, because it
blocks although it is asynchronous, holds up others like it, but neither the server nor its time
limits.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from eddyline.asking.event_loop import EventLoop
from eddyline.asking.shared_threads import CALLS, ThreadShare
from eddyline.engine.callers import as_error

MOST_ABANDONED: Final = 1_000
"""Calls that nobody waits for any more, and which have not ended, before others are refused: each
may hold a thread."""


class Outcome(NamedTuple):
    """What a function has returned, or raised."""

    value: Any
    error: Exception | None


class AbandonedCalls:
    """Counts the calls that nobody waits for any more, until they end; usable from any thread."""

    def __init__(self, most: int) -> None:
        """Up to ``most`` are tolerated."""
        self.most = most
        self._begin()
        os.register_at_fork(after_in_child=self._begin)  # where nothing of them runs

    def _begin(self) -> None:
        self.changing = threading.Lock()
        self.calls = 0

    def refusal(self) -> str | None:
        """Return why no more calls can begin; None where they can."""
        if self.calls < self.most:
            return None
        return (
            f"is not called, as {self.calls:,} calls that took longer than they may, or whose "
            "queries were cancelled, have not returned: give it a limit of time of its own"
        )


ABANDONED: Final = AbandonedCalls(MOST_ABANDONED)
"""Those of this process."""


class Mail:
    """Callbacks on their way to a loop, from other threads: it is woken once for many.

    The way there and back takes 15 to 30 us a call where 32 or 256 are under way at a time, and 200
    for one alone.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._callbacks: deque[Callable[[], object]] = deque()
        self._told = False

    def send(self, callback: Callable[[], object]) -> None:
        """Have something called in the loop's thread; RuntimeError where the loop is closed."""
        self._callbacks.append(callback)  # before it is looked whether the loop was told
        if not self._told:
            self._told = True
            self.loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._told = False  # before it is looked what has come
        try:
            while self._callbacks:
                self._callbacks.popleft()()
        finally:
            if self._callbacks:  # one has raised
                self.loop.call_soon(self._empty)


class UsersFunction:
    """Calls a function that is asynchronous, blocks, or returns what has to be awaited.

    >>> async def later(number: int) -> int:
    ...     return number + 1
    >>> for function in (later, lambda number: number + 1, lambda number: later(number)):
    ...     called = UsersFunction(function, threads=1)
    ...     print(asyncio.run(called.outcome(4)))
    ...     called.close()
    Outcome(value=5, error=None)
    Outcome(value=5, error=None)
    Outcome(value=5, error=None)
    """

    def __init__(self, function: Callable[..., object], threads: int) -> None:
        """Up to so many threads are used at a time."""
        self._function = function
        # An object that is called like a function may be asynchronous as well.
        called = (function, type(function).__call__)
        self._asynchronous = any(map(inspect.iscoroutinefunction, called))
        self._width = threads
        self._threads: ThreadShare | None = None
        self._back: Mail | None = None

    async def outcome(self, *arguments: object) -> Outcome:
        """Call; no exception of the function ends the loop or the waiting task.

        A caller that stops waiting, as at the end of a limit, does so at once; the function may go
        on.
        """
        loop = asyncio.get_running_loop()
        if self._back is None or self._back.loop is not loop:
            self._back = Mail(loop)
        call = _Call(self._function, arguments)
        call.wait_for()
        try:
            if self._asynchronous:
                return await _USERS_LOOP.outcome(call, self._back)
            if self._threads is None:
                self._threads = ThreadShare(CALLS, self._width)
            outcome = await loop.run_in_executor(self._threads, call.made)
            if not inspect.isawaitable(outcome.value):
                return outcome
            call = _Call(lambda: outcome.value, ())
            call.wait_for()
            return await _USERS_LOOP.outcome(call, self._back)
        except asyncio.CancelledError:
            call.leave()
            raise

    def close(self) -> None:
        """Let calls that wait go; others may be made again."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


class _Call:
    """A call, which may go on when nobody waits for it: then it counts as abandoned."""

    def __init__(self, function: Callable[..., object], arguments: tuple[object, ...]) -> None:
        self._function = function
        self._arguments = arguments
        self._runs = self._waited_for = False

    def made(self) -> Outcome:
        """Call; a StopIteration would get lost on its way out of a thread."""
        self.begin()
        try:
            return Outcome(self._function(*self._arguments), None)
        except BaseException as raised:  # noqa: BLE001 - the user's function may raise anything
            return Outcome(None, as_error(raised))
        finally:
            self.end()

    async def awaited(self) -> Outcome:
        """Call, and await the result; the sender to the loop says when it runs."""
        try:
            value = self._function(*self._arguments)
            return Outcome(await value if inspect.isawaitable(value) else value, None)
        except asyncio.CancelledError as raised:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return Outcome(None, as_error(raised))  # of something that the function has waited for
        except BaseException as raised:  # noqa: BLE001 - likewise; SystemExit would end the loop
            return Outcome(None, as_error(raised))

    def begin(self) -> None:
        """Take note that it runs, or is about to on a loop that may be held up."""
        self._note(runs=True, waited_for=self._waited_for)

    def wait_for(self) -> None:
        """Take note that somebody waits for it."""
        self._note(runs=self._runs, waited_for=True)

    def leave(self) -> None:
        """Take note that nobody waits for it any more."""
        self._note(runs=self._runs, waited_for=False)

    def end(self) -> None:
        """Take note that it has ended."""
        self._note(runs=False, waited_for=self._waited_for)

    def _note(self, *, runs: bool, waited_for: bool) -> None:
        with ABANDONED.changing:
            ABANDONED.calls -= self._runs and not self._waited_for
            self._runs, self._waited_for = runs, waited_for
            ABANDONED.calls += self._runs and not self._waited_for


class _UsersLoop:
    """The loop of all asynchronous functions of this process: begun when needed, and then there.

    A function finds what it has bound to the loop, as the connections of an HTTP client, again.
    """

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)  # which has the loop without its thread

    def _begin(self) -> None:
        self._making = threading.Lock()
        self._mail: Mail | None = None
        self._tasks: set[asyncio.Task[Outcome]] = set()  # a loop holds its tasks only weakly

    async def outcome(self, call: _Call, back: Mail) -> Outcome:
        """Return what came of a call that is made on the loop, to the loop that asks."""
        to = self._mail_to()
        answer: asyncio.Future[Outcome] = back.loop.create_future()
        tasks: list[asyncio.Task[Outcome]] = []

        def begin() -> None:
            task = to.loop.create_task(call.awaited())
            tasks.append(task)
            self._tasks.add(task)
            task.add_done_callback(ended)

        def ended(task: asyncio.Task[Outcome]) -> None:
            self._tasks.discard(task)
            call.end()
            with suppress(RuntimeError):  # nobody waits any more, and the other loop is closed
                back.send(lambda: _settle(answer, task))

        def cancel() -> None:  # after it has begun
            tasks[0].cancel()

        call.begin()  # from now on: the loop may be held up by another one
        to.send(begin)
        try:
            return await answer
        except asyncio.CancelledError:
            to.send(cancel)
            raise

    def _mail_to(self) -> Mail:
        with self._making:
            if self._mail is None:
                self._mail = Mail(EventLoop(name="eddyline-users-loop").loop)
            return self._mail


def _settle(answer: asyncio.Future[Outcome], task: asyncio.Task[Outcome]) -> None:
    if answer.done():
        return
    if task.cancelled():  # by the function itself: a waiting caller would have left
        answer.set_result(Outcome(None, as_error(asyncio.CancelledError())))
    else:
        answer.set_result(task.result())


_USERS_LOOP: Final = _UsersLoop()
