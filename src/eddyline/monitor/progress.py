"""Progress in the terminal or notebook, while actions run."""

from __future__ import annotations

import contextlib
import threading
import time
from types import TracebackType
from typing import Final, Self

from pyspark.sql import SparkSession
from rich.console import Console

from eddyline.host.classic import chosen_session
from eddyline.monitor.live_query import LiveQuery
from eddyline.monitor.looking import looking_of
from eddyline.monitor.progress_lines import ProgressLines
from eddyline.monitor.screen import before_prompts, checked_console, screen_of

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
        self._screen = screen_of(console, waiting)
        self._looking = looking_of(spark.sparkContext)
        self._looking.begin(spark)
        self._stopped = threading.Event()
        self._showing = threading.Lock()
        self._over = 0  # number of the latest action that is no longer shown
        self._leave_prompts = None if console.is_jupyter else before_prompts(self._settle)
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
                queries = self._running()
                self._screen.show(ProgressLines(queries, time.time()) if queries else None)
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


def progress(
    spark: SparkSession | None = None, *, console: Console | None = None
) -> ProgressDisplay:
    """Show the progress of actions while they run: rows, tasks, rate, order, calls avoided.

    The display covers the actions of ``spark``, by default the active session, from its next action
    on, as far as they run in eddies. It appears in the terminal or below the notebook's cell; an
    action of less than half a second is not shown. It ends with :meth:`ProgressDisplay.stop` or
    with the block, as in ``with eddyline.progress(): df.count()``. Where standard error is no
    terminal nothing is shown, unless ``console``, one of rich's, names another place.

    For a session of Spark Connect it shows what the server tells of all its actions: tasks, those
    that run now, and the time.

    Raises ``RuntimeError`` where there is no session.
    """
    where = checked_console(console)
    return ProgressDisplay(chosen_session(spark), where)
