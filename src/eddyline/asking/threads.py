"""Calls in threads of their own, and the way back from them into an eddy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from eddyline.engine.agenda import Agenda
from eddyline.engine.modules.callers import (
    CallDone,
    Outbox,
    PlannedCall,
    as_error,
    checked_width,
)


class SharedAgenda:
    """An agenda for modules that work in threads of their own.

    >>> agenda = SharedAgenda()
    >>> agenda.tell(3)
    >>> agenda.tell(1)
    >>> agenda.wait()
    [3, 1]
    """

    def __init__(self) -> None:
        """Start with nothing told."""
        self._told: SimpleQueue[int] = SimpleQueue()

    def tell(self, module: int) -> None:
        """Say that a module has answers; from any thread."""
        self._told.put(module)

    def poll(self) -> Sequence[int]:
        """Return the modules that have said so by now."""
        told: dict[int, None] = {}
        try:
            while True:
                told[self._told.get_nowait()] = None
        except Empty:
            return list(told)

    def wait(self) -> Sequence[int]:
        """Wait for the first that has, and return with it all that have said so by then."""
        first = self._told.get()
        time.sleep(0)  # lets the others have the interpreter: some have answers already
        return list(dict.fromkeys((first, *self.poll())))


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
        self.width = checked_width(width)
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
            except BaseException as raised:  # noqa: BLE001 - the user's function may raise anything
                error = as_error(raised)
            self._outbox.put(CallDone(call.key, value, error, self._now() - started))
