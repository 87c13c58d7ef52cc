"""Progress in the terminal or notebook, while actions run."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self

from pyspark.sql import SparkSession
from rich.console import Console, RenderableType
from rich.live import Live

from eddyline.host.classic import chosen_session
from eddyline.monitor.live_query import LiveQuery
from eddyline.monitor.looking import looking_of
from eddyline.monitor.progress_lines import ProgressLines
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


EVERY: Final = 0.2
"""Seconds between two pictures."""

PATIENCE: Final = 0.5
"""Seconds after which an action is shown: what is over sooner needs no bar."""

MOST: Final = 8
"""Actions that are shown at a time, the latest."""


class ProgressDisplay:
    """What is shown while actions of a session run; it goes on until :meth:`stop`."""

    def __init__(self, spark: SparkSession, console: Console, waiting: str = "") -> None:
        """Begin, with the next action; while there is none to be shown, ``waiting`` is."""
        self._spark = spark
        self._screen: Screen = _Notebook() if console.is_jupyter else _Terminal(console, waiting)
        self._looking = looking_of(spark.sparkContext)
        self._looking.begin(spark)
        self._stopped = threading.Event()
        self._showing = threading.Lock()
        self._over = 0  # number of the latest action that is no longer shown
        self._leave_prompts = (
            before_prompts(self._settle) if isinstance(self._screen, _Terminal) else None
        )
        self._thread = threading.Thread(target=self._show, name="eddyline-progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Show no more."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._thread.join()
            if self._leave_prompts is not None:
                self._leave_prompts()
            self._looking.end(self._spark)

    def last(self) -> LiveQuery | None:
        """Return the latest action that a task has told of, by what was heard of it so far."""
        return next(iter(self._looking.book.queries(most=1)), None)

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

    def _show(self) -> None:
        while not self._stopped.wait(EVERY):
            with self._showing, contextlib.suppress(OSError, ValueError):  # a closed terminal
                self._screen.show(self._running(), time.time())
        with contextlib.suppress(OSError, ValueError):
            self._screen.clear()

    def _running(self) -> list[LiveQuery]:
        book, now = self._looking.book, time.time()
        old = [
            query.number
            for query, _ in book.running()
            if query.number > self._over and now - query.started >= PATIENCE
        ]
        queries = (book.query(number) for number in old[-MOST:])
        return [query for query in queries if query is not None]

    def _settle(self) -> None:
        """Leave the terminal to a prompt: nothing that ran before it is shown any more."""
        last = self.last()
        with self._showing, contextlib.suppress(OSError, ValueError):
            self._over = 0 if last is None else last.number
            self._screen.clear()


class Screen(Protocol):
    """Where progress is shown."""

    def show(self, queries: list[LiveQuery], now: float) -> None:
        """Show these actions, or that none runs."""
        ...

    def clear(self) -> None:
        """Leave nothing of it."""
        ...


class _Terminal:
    def __init__(self, console: Console, waiting: str) -> None:
        self._console = console
        self._waiting = waiting
        self._live: Live | None = None

    def show(self, queries: list[LiveQuery], now: float) -> None:
        if not self._console.is_terminal:
            return
        if not queries and not self._waiting:
            self.clear()
            return
        lines: RenderableType = ProgressLines(queries, now) if queries else self._waiting
        if self._live is None:
            self._live = Live(lines, console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(lines, refresh=True)

    def clear(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


class _Notebook:
    def __init__(self) -> None:
        self._output = NotebookOutput()

    def show(self, queries: list[LiveQuery], now: float) -> None:
        if queries:
            self._output.show(ProgressLines(queries, now))
        else:
            self._output.clear()

    def clear(self) -> None:
        self._output.clear()


def progress(
    spark: SparkSession | None = None, *, console: Console | None = None
) -> ProgressDisplay:
    """Show the progress of actions while they run: rows, tasks, rate, order, calls avoided.

    The display covers the actions of ``spark``, by default the active session, from its next action
    on, as far as they run in eddies. It appears in the terminal or below the notebook's cell; an
    action of less than half a second is not shown. It ends with :meth:`ProgressDisplay.stop` or
    with the block, as in ``with eddyline.progress(): df.count()``. Where standard error is no
    terminal nothing is shown, unless ``console``, one of rich's, names another place.

    Raises ``RuntimeError`` where there is no session, ``ConnectNotSupportedError`` for one of Spark
    Connect.
    """
    if console is not None and not isinstance(console, Console):
        raise TypeError(f"A console is a rich.console.Console, not {console!r}.")
    return ProgressDisplay(chosen_session(spark), console or _console())


def _console() -> Console:
    """Return where progress goes: not into what the program prints."""
    console = Console()
    return console if console.is_jupyter else Console(stderr=True)
