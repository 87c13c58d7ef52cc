"""Functions that wait: threads that call them, and a function with a caller of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

import pyarrow as pa

from eddyline.engine.callers import (
    Agenda,
    CallDone,
    Caller,
    Outbox,
    PlannedCall,
    as_error,
    checked_width,
)
from eddyline.expressions.vector import Vector


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


class ConcurrentFunction:
    """A function with a single caller: of one module, which says so where the caller does."""

    vectorized = False

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._connected = False

    @property
    def agenda(self) -> Agenda:
        """The caller's agenda."""
        return self._caller.agenda

    def connect(self, agenda: Agenda) -> Caller:
        """Return the caller, once; ValueError for another agenda, or a second module."""
        if self._connected or agenda is not self._caller.agenda:
            raise ValueError(
                "a function with a single caller can only stand in one conjunct, and in no OR"
            )
        self._connected = True
        return self._caller

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:
        """Raise TypeError: whoever calls this would have to wait."""
        raise TypeError(f"cannot be called on {rows} rows of {len(columns)} columns: answers later")
