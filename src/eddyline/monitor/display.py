"""A display of what runs now: a thread draws it again and again, until it is stopped."""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, Self

from rich.console import Console, RenderableType

from eddyline.monitor.screen import before_prompts, screen_of

EVERY: Final = 0.2
"""Seconds between two pictures."""

PATIENCE: Final = 0.5
"""Seconds after which an action is shown: what is over sooner needs no bar."""


class Display(ABC):
    """What is shown while actions of a session run; it goes on until :meth:`stop`."""

    def __init__(self, console: Console, waiting: str = "") -> None:
        """Begin; while there is nothing to be shown, a terminal shows ``waiting``."""
        self._screen = screen_of(console, waiting)
        self._stopped = threading.Event()
        self._showing = threading.Lock()
        self._leave_prompts = None if console.is_jupyter else before_prompts(self._settle)
        self._thread = threading.Thread(target=self._show, name="eddyline-progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Show no more."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._thread.join()
        if self._leave_prompts is not None:
            self._leave_prompts()
        self._end()

    def __enter__(self) -> Self:
        """Return this; :meth:`stop` at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    def __repr__(self) -> str:
        return "Progress of the actions of this session is shown; stop() ends it."

    @abstractmethod
    def _picture(self) -> RenderableType | None:
        """Return what is to be shown now; None where nothing is."""

    @abstractmethod
    def _end(self) -> None:
        """Hear of no more actions."""

    @abstractmethod
    def _forget(self) -> None:
        """Show nothing more of what began before a prompt that comes now."""

    def _show(self) -> None:
        while not self._stopped.wait(EVERY):
            with self._showing, contextlib.suppress(OSError, ValueError):  # a closed terminal
                self._screen.show(self._picture())
        with self._showing, contextlib.suppress(OSError, ValueError):
            self._screen.clear()

    def _settle(self) -> None:
        """Leave the terminal to a prompt."""
        with self._showing, contextlib.suppress(OSError, ValueError):
            self._forget()
            self._screen.clear()
