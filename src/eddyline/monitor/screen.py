"""Where progress is shown: in a terminal left to its prompts, or below a notebook's cell."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live

from eddyline.planner.notebook_output import NotebookOutput


def before_prompts(action: Callable[[], None]) -> Callable[[], None]:
    """Call ``action`` before each prompt from now on; return what ends it.

    Python's own prompt and IPython's are known. Where there is none, nothing is called.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None:
        shell.events.register("post_execute", action)
        return lambda: shell.events.unregister("post_execute", action)
    if not hasattr(sys, "ps1"):
        return lambda: None
    prompt = _Prompt(sys.ps1, action)
    sys.ps1 = prompt

    def end() -> None:
        prompt.action = None
        if sys.ps1 is prompt:
            sys.ps1 = prompt.text

    return end


@dataclass(slots=True)
class _Prompt:
    """A prompt of Python's own, which asks for it as text whenever it shows it."""

    text: object
    action: Callable[[], None] | None

    def __str__(self) -> str:
        if self.action is not None:
            self.action()
        return str(self.text)


class Screen(Protocol):
    """Where progress is shown."""

    def show(self, lines: RenderableType | None) -> None:
        """Show the actions that run, or that none does."""
        ...

    def clear(self) -> None:
        """Leave nothing of it."""
        ...


class _Terminal:
    def __init__(self, console: Console, waiting: str) -> None:
        self._console = console
        self._waiting = waiting
        self._live: Live | None = None

    def show(self, lines: RenderableType | None) -> None:
        if not self._console.is_terminal:
            return
        if lines is None and not self._waiting:
            self.clear()
            return
        shown = self._waiting if lines is None else lines
        if self._live is None:
            self._live = Live(shown, console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(shown, refresh=True)

    def clear(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


class _Notebook:
    def __init__(self) -> None:
        self._output = NotebookOutput()

    def show(self, lines: RenderableType | None) -> None:
        if lines is None:
            self._output.clear()
        else:
            self._output.show(lines)

    def clear(self) -> None:
        self._output.clear()


def console_of_progress() -> Console:
    """Return where progress goes: not into what the program prints."""
    console = Console()
    return console if console.is_jupyter else Console(stderr=True)


def screen_of(console: Console, waiting: str = "") -> Screen:
    """Return what shows progress there; while nothing runs, a terminal shows ``waiting``."""
    return _Notebook() if console.is_jupyter else _Terminal(console, waiting)


def checked_console(console: object) -> Console:
    """Return a console, by default where progress goes; TypeError for anything else."""
    if console is None:
        return console_of_progress()
    if not isinstance(console, Console):
        raise TypeError(f"A console is a rich.console.Console, not {console!r}.")
    return console
