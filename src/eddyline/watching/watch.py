"""The public face of watching: the rows of a query as they come, and a hand on it."""

from __future__ import annotations

import math
import threading
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa
from pyspark.sql import DataFrame
from rich import get_console
from rich.console import Console, RenderableType
from rich.live import Live

from eddyline.blocks.chosen_policy import chosen_policy
from eddyline.checked_values import (
    checked_seed,
    positive_number,
    real_number,
    switch,
    whole_number,
)
from eddyline.engine.policies.policy import Policy
from eddyline.engine.preference import PREFERRED
from eddyline.errors import NotWatchableError
from eddyline.expressions import calls_in
from eddyline.host.classic import classic
from eddyline.planner.adapt import table_of_session
from eddyline.planner.claim.session_settings import task_memory
from eddyline.planner.declare.lookup_tables import lookup_tables_of
from eddyline.planner.notebook_output import NotebookOutput
from eddyline.watching.control import Control
from eddyline.watching.live_table import SourceLine, live_table
from eddyline.watching.parts import Part
from eddyline.watching.preferences import preferred
from eddyline.watching.watched_query import watched_query
from eddyline.watching.work import Wishes, Work

if TYPE_CHECKING:  # only who has lookup tables has what it needs
    from eddyline.asking.shared_statistics import SharedLookupStatistics

MOST_UNITS: Final = 1_000
"""Units of a sample; each is a task of Spark, of some milliseconds."""

EVERY: Final = 0.1
"""Seconds between two parts, at the least, after the first."""


def watch(
    df: DataFrame,
    *,
    partial: bool = False,
    policy: str | Policy = "benefit",
    seed: int = 0,
    units: int = 100,
    confidence: float = 0.95,
    every: float = EVERY,
    memory: int | str | None = None,
) -> Watch:
    """Return a query whose rows can be read while it runs.

    Iterate over it: each :class:`~eddyline.watching.parts.Part` has the rows that arrived since the
    last one, the first as soon as there is a row, then one every ``every`` seconds. Filters and
    inner joins run in an eddy in this process, with lookup tables; Spark only scans. With
    ``partial`` there are also rows in which some relations are still missing (Raman, Deshpande and
    Hellerstein, 2003, Section 4.5).

    For a query with COUNT, SUM, AVG, MIN and MAX, grouped or not, and formulas over them, each part
    has estimates, with intervals that contain the final values with the probability ``confidence``.
    The rows of the largest scan are dealt out at random to ``units``, which are processed one by
    one; of two large scans those of both, and as many units of each are read as narrow the
    intervals fastest (a ripple join: Haas and Hellerstein, 1999). MIN and MAX are those of the
    rows seen so far, and marked as such. At the end all values are exact.

    Rows of a join take at most ``memory``, in bytes or as ``"200MB"``, by default as in
    :func:`~eddyline.adapt`: later rows wait on disk, and are joined after everything has been read.
    For an aggregate all scans but the largest are held in memory; of two large ones what was
    read, until it takes as much as this: then the smaller one is read to its end.

    ``policy`` is a name or an object, as in :func:`~eddyline.adapt`; where an object fails, the
    written order goes on and the log says so.

    Raises ``NotWatchableError`` for a query with anything else in it, ``TypeError`` and
    ``ValueError`` for invalid arguments, ``UnboundLookupError`` as :func:`~eddyline.adapt` does,
    ``ConnectNotSupportedError`` on Spark Connect. What goes wrong in the query is raised by the
    iteration, among it ``ScanBrokenError`` where a task of a scan failed after some of its rows had
    been used.
    """
    frame = classic(df)
    chosen = chosen_policy(policy)
    units = whole_number(units, "units", 1)
    if units > MOST_UNITS:
        raise ValueError(f"units are {MOST_UNITS:,} at the most, a task each, not {units:,}")
    if not 0.0 < real_number(confidence, "confidence") < 1.0:
        raise ValueError(f"confidence is a number between 0 and 1, not {confidence!r}")
    if not 0.0 <= real_number(every, "every") < math.inf:
        raise ValueError(f"every is a number of seconds from 0 on, not {every!r}")
    switch(partial, "partial")
    checked_seed(seed)
    room = task_memory(frame.sparkSession, memory)
    wishes = Wishes(partial, chosen, seed, units, confidence, room)
    return Watch(frame, wishes, every)


class Watch:
    """A query that is watched: an iterator over what comes, with a brake.

    It begins with the first part that is asked for, and runs in a thread of its own. A watch is
    a context manager: at the end of the block it stops.
    """

    def __init__(self, df: DataFrame, wishes: Wishes, every: float) -> None:
        """Understand the query; NotWatchableError where it cannot be watched."""
        frame = classic(df)
        spark = frame.sparkSession
        query = watched_query(frame, table_of_session(spark))
        if query.block.lookups:
            address = lookup_tables_of(spark.sparkContext).address
            query = replace(query, block=replace(query.block, server=address))
        self._frame, self._query = frame, query
        self._control = Control()
        self._job = f"watch/{uuid.uuid4().hex}"
        self._work = Work(spark, query, wishes, self._job, self._control)
        self._every = every
        self._thread: threading.Thread | None = None
        self._done = False
        self._first = True

    def __iter__(self) -> Iterator[Part]:
        """Iterate over what comes from now on."""
        return self

    def __next__(self) -> Part:
        """Return what has come since the last time, as soon as there is something."""
        if self._done:
            raise StopIteration
        self._start()
        if not self._first and self._thread is not None:
            self._thread.join(self._every)
        part = self._taken(None)
        self._first = False
        return part

    def now(self) -> Part:
        """Return what has come since the last time, be it nothing, without waiting."""
        self._start()
        return self._taken(0.0)

    def show(self, rows: int = 10, console: Console | None = None) -> None:
        """Show a table that changes as rows come, to the end; in a terminal and in a notebook.

        Of rows the last ones are shown, ``rows`` at the most. Interrupt it (Ctrl-C) to look no
        further: the query goes on, until :meth:`stop`. TypeError, ValueError for rows that are no
        number from 0 on.
        """
        rows = whole_number(rows, "rows", 0)
        last: pa.Table | None = None
        with _screen(console or get_console()) as show:
            for part in self:
                newest = part.rows.slice(max(part.rows.num_rows - rows, 0))
                last = newest if last is None else pa.concat_tables([last, newest])
                last = last.slice(max(last.num_rows - rows, 0))
                show(self._shown(part, last))

    def _shown(self, part: Part, rows: pa.Table) -> RenderableType:
        lines = [SourceLine(s.name, s.rows, s.ended, s.keys, s.units, s.rate) for s in part.sources]
        state = "done" if part.done else "paused" if self.paused else "running"
        return live_table(
            rows, part.estimates, lines, total=part.total, seconds=part.seconds, state=state
        )

    def prefer(self, condition: str | None, weight: float = PREFERRED) -> None:
        """Let rows that satisfy a condition over the columns come first; None: none before others.

        It takes the place of what was preferred before, also while the query runs. What it says
        of a column holds for all columns that the query sets equal to it (Raman, Deshpande and
        Hellerstein, 2003, Section 4.6). It reaches as far as rows have been read: of each scan up
        to half a million wait (Raman, Raman and Hellerstein, 1999). ``weight`` is what such a row
        is worth beside any other; below 1 these come last. The rows are the same.

        Raises TypeError and PySpark's errors for what is no condition, NotWatchableError for one
        that Eddyline does not understand, ValueError for a weight that is not above 0 and finite.
        """
        weight = positive_number(weight, "weight")
        if condition is not None and not isinstance(condition, str):
            raise TypeError(f"a condition is SQL, as \"state = 'CA'\", or None, not {condition!r}")
        wanted = None if condition is None else preferred(self._frame, self._query, condition)
        if wanted is not None and calls_in(wanted):
            raise NotWatchableError(f"{condition} cannot be preferred: it calls a function")
        self._work.prefer(wanted, weight)

    def pause(self) -> None:
        """Let the query wait, until :meth:`resume`; what has come can still be taken."""
        self._control.pause()

    def resume(self) -> None:
        """Let the query go on."""
        self._control.resume()

    @property
    def paused(self) -> bool:
        """Whether the query waits."""
        return self._control.paused

    def lookups(self) -> dict[str, SharedLookupStatistics]:
        """Return what was asked so far for each lookup table; of any thread.

        One that has several ways is named with the columns that each binds, as
        ``aircraft(owner)``. It can be asked for some minutes after the end.
        """
        if not self._query.block.lookups:
            return {}
        tables = lookup_tables_of(self._frame.sparkSession.sparkContext)
        return tables.statistics(self._job)

    def stop(self) -> None:
        """End the query, and wait until its scans have ended; what has come can still be taken."""
        _stop(self._control, self._work, self._thread)

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

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work.run, name="eddyline-watch", daemon=True
            )
            # A user who forgets it, or ends the process, wants no more.
            weakref.finalize(self, _stop, self._control, self._work, self._thread)
            self._thread.start()

    def _taken(self, wait: float | None) -> Part:
        try:
            part = self._work.parts.take(wait)
        except BaseException:
            self._done = True
            raise
        self._done = part.done
        return part


def _stop(control: Control, work: Work, thread: threading.Thread | None) -> None:
    control.stop()
    work.poke()
    # The watch may be forgotten in the thread that works.
    if thread is not None and thread.is_alive() and thread is not threading.current_thread():
        thread.join()


@contextmanager
def _screen(console: Console) -> Iterator[Callable[[RenderableType], None]]:
    """Show what changes in a notebook or a terminal; elsewhere the last of it, at the end."""
    if console.is_jupyter:
        yield NotebookOutput().show
    elif console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield partial(live.update, refresh=True)
    else:
        shown: deque[RenderableType] = deque(maxlen=1)
        yield shown.append
        for renderable in shown:
            console.print(renderable)
