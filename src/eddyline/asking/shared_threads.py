"""Threads for calls that block, which everybody shares and which end when nobody needs them."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import Any, Final, ParamSpec, TypeVar

from eddyline.engine.callers import as_error

P = ParamSpec("P")
Returned = TypeVar("Returned")

Work = Callable[[], None]

IDLE_SECONDS: Final = 2.0
"""Seconds without work after which a thread ends."""


class SharedThreads:
    """As many threads as there is work at a time.

    Work goes to the thread that became idle most recently, so that surplus threads end.
    """

    def __init__(self, name: str, idle_seconds: float = IDLE_SECONDS) -> None:
        """Threads get names that begin with this one."""
        self.name: Final = name
        self._idle_seconds = idle_seconds
        self._begin()
        # A process that was forked has none of the threads.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._changing = threading.Lock()
        self._idle: list[SimpleQueue[Work]] = []

    def start(self, work: Work) -> None:
        """Have something done at once; RuntimeError where there can be no more threads."""
        with self._changing:
            if self._idle:
                self._idle.pop().put(work)
                return
        threading.Thread(target=self._work, args=(work,), name=self.name, daemon=True).start()

    def _work(self, first: Work) -> None:
        work: Work | None = first
        given: SimpleQueue[Work] = SimpleQueue()
        while work is not None:
            work()
            work = None  # what it refers to goes before the next comes
            with self._changing:
                self._idle.append(given)
            work = self._next(given)

    def _next(self, given: SimpleQueue[Work]) -> Work | None:
        try:
            return given.get(timeout=self._idle_seconds)
        except Empty:
            with self._changing:
                if given in self._idle:
                    self._idle.remove(given)
                    return None
            return given.get()  # somebody has just chosen this thread


class ThreadShare(Executor):
    """A part of shared threads: so many calls at a time at the most; others wait.

    >>> calls = ThreadShare(SharedThreads("eddyline-call"), most=2)
    >>> list(calls.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    >>> calls.shutdown()
    """

    def __init__(self, threads: SharedThreads, most: int) -> None:
        """Use so many threads at the most."""
        self._threads = threads
        self._most = most
        self._changing = threading.Condition()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._busy = 0
        self._ended = False

    def submit(
        self, fn: Callable[P, Returned], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[Returned]:
        """Call something, now or when another call has ended.

        RuntimeError after the end, and where there are no threads and can be none.
        """
        future: Future[Returned] = Future()
        with self._changing:
            if self._ended:
                raise RuntimeError("cannot schedule new futures after shutdown")
            waits = future, lambda: fn(*args, **kwargs)
            self._waiting.append(waits)
            if self._busy == self._most:
                return future
            self._busy += 1
        try:
            self._threads.start(self._work)
        except RuntimeError:
            with self._changing:
                self._busy -= 1
                if not self._busy:  # nobody will come to it
                    self._waiting.remove(waits)
                    raise
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as in the base
        """Take no more calls; ``wait`` for those that are there, or cancel those that wait."""
        with self._changing:
            self._ended = True
            cancelled = list(self._waiting) if cancel_futures else []
            if cancel_futures:
                self._waiting.clear()
            for future, _ in cancelled:
                future.cancel()
            while wait and self._busy:
                self._changing.wait()

    def _work(self) -> None:
        while (taken := self._taken()) is not None:
            future, call = taken
            if future.set_running_or_notify_cancel():
                try:
                    result = call()
                except BaseException as raised:  # noqa: BLE001 - it is told to whoever waits
                    future.set_exception(as_error(raised))
                else:
                    future.set_result(result)
            del taken, future, call

    def _taken(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._changing:
            if self._waiting:
                return self._waiting.popleft()
            self._busy -= 1
            self._changing.notify_all()
            return None


CALLS: Final = SharedThreads("eddyline-call")
"""The threads in which this process makes calls that may block."""
