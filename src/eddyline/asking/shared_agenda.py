"""The way back into an eddy from other threads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue


class SharedAgenda:
    """An agenda for modules that work in threads of their own.

    >>> agenda = SharedAgenda()
    >>> agenda.tell(3)
    >>> agenda.tell(1)
    >>> agenda.wait()
    [3, 1]
    """

    def __init__(self) -> None:
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
