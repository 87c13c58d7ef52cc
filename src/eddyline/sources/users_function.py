"""A user's function, as the event loop calls it: awaited, or in a thread where it may block."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from eddyline.concurrency.shared_threads import CALLS, ThreadShare
from eddyline.engine.modules.callers import as_error


class Outcome(NamedTuple):
    """What a function has returned, or raised."""

    value: Any
    error: Exception | None


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
        """Get ready; up to so many threads are used at a time."""
        self._function = function
        # An object that is called like a function may be asynchronous as well.
        called = (function, type(function).__call__)
        self._asynchronous = any(map(inspect.iscoroutinefunction, called))
        self._width = threads
        self._threads: ThreadShare | None = None

    async def outcome(self, *arguments: object) -> Outcome:
        """Call; nothing that the function raises ends the loop or the task that waits."""
        if self._asynchronous:
            outcome = _called(self._function, arguments)
        else:
            if self._threads is None:
                self._threads = ThreadShare(CALLS, self._width)
            loop = asyncio.get_running_loop()
            outcome = await loop.run_in_executor(self._threads, _called, self._function, arguments)
        return await _awaited(outcome.value) if inspect.isawaitable(outcome.value) else outcome

    def close(self) -> None:
        """Let calls that wait go; others may be made again."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


def _called(function: Callable[..., object], arguments: tuple[object, ...]) -> Outcome:
    """Call; a StopIteration would get lost on its way out of a thread."""
    try:
        return Outcome(function(*arguments), None)
    except BaseException as raised:  # noqa: BLE001 - the user's function may raise anything
        return Outcome(None, as_error(raised))


async def _awaited(value: Awaitable[object]) -> Outcome:
    try:
        return Outcome(await value, None)
    except asyncio.CancelledError as raised:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Outcome(None, as_error(raised))  # of something that the function has waited for
    except BaseException as raised:  # noqa: BLE001 - likewise; SystemExit would end the loop
        return Outcome(None, as_error(raised))
