"""What has come of a watched query, on its way from the working thread to the watching one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from eddyline.watching.running_aggregates import Estimates

HELD_ROWS: Final = 1 << 20
"""Rows of the result that wait to be looked at; then the query waits as well."""

MISSING: Final = "missing"
"""The column of partial rows that names the columns which are not known yet."""


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """What has come of one relation: its name, its rows so far, and whether these are all.

    Of one that is looked up ``keys`` were asked for; None where it is scanned. Of one that is read
    in random units ``units`` are those that are joined, and all of them; ``rate`` is its part of
    the units that are read now, where the relations that are read so compete.
    """

    name: str
    rows: int
    ended: bool
    keys: int | None = None
    units: tuple[int, int] | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """What has come since the last part.

    ``rows`` are new rows of the result, ``partial`` those of which only some columns are known,
    if they are wanted: the others are NULL, and named in the column ``missing``. ``estimates``
    are the aggregates as they look by now, of a query that has some. ``total`` are the rows of
    the result so far, ``seconds`` since the beginning. ``done`` says that nothing more comes.
    """

    rows: pa.Table
    partial: pa.Table
    estimates: Estimates | None
    sources: tuple[SourceProgress, ...]
    total: int
    seconds: float
    done: bool


class Parts:
    """Takes what comes in one thread, and gives it in parts in another."""

    def __init__(self, rows: pa.Schema) -> None:
        """The result has columns as in ``rows``."""
        self._schema = rows
        self._partial_schema = rows.append(pa.field(MISSING, pa.list_(pa.string())))
        self._rows: list[pa.RecordBatch] = []
        self._partial: list[pa.RecordBatch] = []
        self._estimates: Estimates | None = None
        self._sources: tuple[SourceProgress, ...] = ()
        self._total = 0
        self._held = 0
        self._news = False
        self._ended = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._began = time.monotonic()

    def put(self, rows: pa.RecordBatch, go_on: Callable[[], bool]) -> None:
        """Take rows of the result, as soon as there is room and as long as it is to ``go_on``."""
        with self._changed:
            while self._held >= HELD_ROWS and go_on():
                self._changed.wait(0.1)
            self._rows.append(rows)
            self._held += rows.num_rows
            self._total += rows.num_rows
            self._tell()

    def put_partial(self, rows: pa.RecordBatch) -> None:
        """Take partial rows."""
        with self._changed:
            self._partial.append(rows)
            self._tell()

    def put_estimates(self, estimates: Estimates) -> None:
        """Take newer estimates."""
        with self._changed:
            self._estimates = estimates
            self._tell()

    def put_progress(self, sources: Sequence[SourceProgress]) -> None:
        """Take newer progress, which alone is no news."""
        with self._changed:
            self._sources = tuple(sources)

    def end(self, error: BaseException | None = None) -> None:
        """Say that nothing more comes, since that is all or since something went wrong."""
        with self._changed:
            self._ended = True
            self._error = error
            self._tell()

    def take(self, wait: float | None = None) -> Part:
        """Return what has come, as soon as there is something; raise what has gone wrong.

        With ``wait`` so many seconds at the most, also where nothing has come.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._news, wait)
            if self._error is not None:
                raise self._error
            self._news = self._ended
            rows, self._rows = self._rows, []
            partial, self._partial = self._partial, []
            self._held = 0
            self._changed.notify_all()
            return Part(
                pa.Table.from_batches(rows, self._schema),
                pa.Table.from_batches(partial, self._partial_schema),
                self._estimates,
                self._sources,
                self._total,
                time.monotonic() - self._began,
                self._ended,
            )

    def _tell(self) -> None:
        self._news = True
        self._changed.notify_all()
