"""How a person pauses and ends work that another thread does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from eddyline.asking.shared_agenda import SharedAgenda

NOBODY: Final = -1
"""Told to an agenda, the number of no module: something else has happened."""


class StoppedError(Exception):
    """The watcher wants no more; it ends the working thread, and never leaves it."""


class Control:
    """A brake: the worker asks :meth:`check` often, the watcher pauses, resumes and stops."""

    def __init__(self) -> None:
        self._go = threading.Event()
        self._go.set()
        self.stopped = False

    @property
    def paused(self) -> bool:
        """Whether work waits."""
        return not self._go.is_set() and not self.stopped

    def pause(self) -> None:
        """Let work wait as soon as it asks."""
        self._go.clear()

    def resume(self) -> None:
        """Let work go on."""
        self._go.set()

    def stop(self) -> None:
        """Let work end as soon as it asks."""
        self.stopped = True
        self._go.set()

    def check(self) -> None:
        """Wait as long as work is held; StoppedError where it is to end."""
        self._go.wait()
        if self.stopped:
            raise StoppedError


class WatchedAgenda(SharedAgenda):
    """An agenda whose eddy can be held and ended."""

    def __init__(self, check: Callable[[], None]) -> None:
        """Call ``check`` whenever the eddy asks for answers, and before it waits for them."""
        super().__init__()
        self._check = check

    def poke(self) -> None:
        """Wake the eddy: something has happened that is no answer of a module."""
        self.tell(NOBODY)

    def poll(self) -> Sequence[int]:
        """Return the modules that have answers by now."""
        self._check()
        return super().poll()

    def wait(self) -> Sequence[int]:
        """Wait for the first that has, or until the eddy is poked."""
        self._check()
        told = super().wait()
        self._check()
        return told
