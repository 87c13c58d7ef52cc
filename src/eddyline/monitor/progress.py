"""Progress in the terminal or notebook, while actions run."""

from __future__ import annotations

import time
from typing import Final

from pyspark.sql import SparkSession
from rich.console import Console

from eddyline.host.classic import chosen_session
from eddyline.monitor.display import PATIENCE, Display
from eddyline.monitor.live_query import LiveQuery
from eddyline.monitor.looking import looking_of
from eddyline.monitor.progress_lines import ProgressLines
from eddyline.monitor.screen import checked_console

MOST: Final = 8
"""Actions that are shown at a time, the latest."""


class ProgressDisplay(Display):
    """What is shown while actions of a session run in eddies; it goes on until :meth:`stop`."""

    def __init__(self, spark: SparkSession, console: Console, waiting: str = "") -> None:
        """Begin, with the next action; while there is none to be shown, ``waiting`` is."""
        self._spark = spark
        self._looking = looking_of(spark.sparkContext)
        self._looking.begin(spark)
        self._over = 0  # number of the latest action that is no longer shown
        super().__init__(console, waiting)

    def last(self) -> LiveQuery | None:
        """Return the latest action that a task has told of, by what was heard of it so far."""
        return next(iter(self._looking.book.queries(most=1)), None)

    def _picture(self) -> ProgressLines | None:
        book, now = self._looking.book, time.time()
        old = [
            query.number
            for query, _ in book.running()
            if query.number > self._over and now - query.started >= PATIENCE
        ]
        queries = [book.query(number) for number in old[-MOST:]]
        known = [query for query in queries if query is not None]
        return ProgressLines(known, now) if known else None

    def _end(self) -> None:
        self._looking.end(self._spark)

    def _forget(self) -> None:
        last = self.last()
        self._over = 0 if last is None else last.number


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
