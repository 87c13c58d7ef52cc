"""What Spark runs over the keys of a table that is asked for them, or scanned as a whole.

:class:`AskedKeys` finds out which of the two it is, once for all tasks of a job (at the driver:
:mod:`eddyline.asking.asked_or_scanned`), and gives the rows if the table is asked: they are at the
driver by then.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext

from eddyline.asking.driver_channel import Address
from eddyline.asking.filling import TaskPlace
from eddyline.asking.remote_choice import KEYS_SENT, AskedOutcome, KeysOfWay, asked_or_scanned
from eddyline.asking.remote_method import Answered, RemoteMethod
from eddyline.tasks.action_settings import ACTION
from eddyline.tasks.task_lookups import job_of_run

SCAN_WANTED: Final = "table scanned"
"""The column after those of the table: NULL but in a row that says whether the table is scanned."""


@dataclass(frozen=True, slots=True)
class AskedWay:
    """A way to rows by a ``method`` of the server; its keys are in ``columns`` of what comes.

    A call costs ``money``, as the seconds that this is worth.
    """

    method: str
    columns: tuple[int, ...]
    money: float = 0.0

    def keys(self, came: pa.Table) -> pa.Table:
        """Return the distinct keys; those of all columns are distinct as they come."""
        if len(self.columns) == came.num_columns:
            return came.select(self.columns)
        names = [came.column_names[column] for column in self.columns]
        return came.group_by(names, use_threads=False).aggregate([]).select(names)


@dataclass(frozen=True, slots=True)
class AskedKeys:
    """Has keys asked for, each row one of them, and gives the rows that the table has for them.

    Where there are several ``ways``, a row has a key for each, and all rows come to one task. If
    the table is to be scanned it gives one row that says so, of NULLs otherwise. A task that is
    ``alone`` gives no row then, and such a one if it is not to be scanned. ``scan_seconds`` is what
    the scan is expected to take, and ``scan_money`` are the seconds that its price is worth;
    ``use`` numbers the places of a query where the table is used. ``types`` are those of the
    table's ``columns``, as Arrow has them.
    """

    server: Address
    run: int
    use: int
    ways: tuple[AskedWay, ...]
    scan_seconds: float
    columns: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    scan_money: float = 0.0
    alone: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows, those alone that have their key as it was asked for, or that one row.

        LookupFailedError for a key that has no answer any more.
        """
        tables = [batch for batch in batches if batch.num_rows]
        came = pa.Table.from_batches(tables) if tables else None
        if came is None:
            yield from self._says(scanned=False)
            return
        ways = [KeysOfWay(way.method, way.keys(came), way.money) for way in self.ways]
        outcome = self._outcome(ways)
        yield from self._says(scanned=bool(outcome.scan))
        if outcome.scan:
            return
        parts = self._rows(ways[outcome.way]) if outcome.rows is None else self._here(outcome.rows)
        for columns in parts:
            yield self._batch(columns, scanned=None)

    def _says(self, *, scanned: bool) -> Iterator[pa.RecordBatch]:
        """Yield the row that says that the table is scanned; or, where it is alone, that not."""
        if scanned != self.alone:
            yield self._batch([pa.nulls(1, kind) for kind in self.types], scanned=scanned)

    def _outcome(self, ways: Sequence[KeysOfWay]) -> AskedOutcome:
        context = TaskContext.get()
        if context is None or context.getLocalProperty(ACTION) is None:
            # Nobody could tell that other tasks belong to the same run of the query.
            return AskedOutcome("the query does not run as an action on a DataFrame")
        place = TaskPlace(context.stageId(), context.partitionId())
        job = job_of_run(self.run)
        return asked_or_scanned(
            self.server, job, ways, self.scan_seconds, self.scan_money, place=place, use=self.use
        )

    def _here(self, rows: pa.Table) -> Iterator[list[pa.Array]]:
        """Yield rows that have come with the outcome."""
        if rows.num_rows:
            whole = rows.combine_chunks()
            yield [
                pa.concat_arrays(column.chunks).cast(kind)
                for column, kind in zip(whole.columns, self.types, strict=True)
            ]

    def _rows(self, way: KeysOfWay) -> Iterator[list[pa.Array]]:
        """Yield the rows of keys as they come."""
        came = _Coming()
        wanted = list(enumerate(self.types))
        remote = RemoteMethod[int](
            self.server, job_of_run(self.run), way.method, wanted, came.take, exact=True
        )
        with closing(remote):
            for part in way.keys.to_batches(KEYS_SENT):
                came.expect(part.num_rows)
                remote.ask(range(part.num_rows), part.columns)
                yield from came.until_open_are(KEYS_SENT)
            remote.rest()
            yield from came.until_open_are(0)

    def _batch(self, columns: list[pa.Array], *, scanned: bool | None) -> pa.RecordBatch:
        marks = pa.array([scanned] * len(columns[0]), pa.bool_())
        return pa.record_batch([*columns, marks], names=[*self.columns, SCAN_WANTED])


class _Coming:
    """Rows that have come and were not taken yet, and how many keys are open."""

    def __init__(self) -> None:
        self._open = 0
        self._rows: list[list[pa.Array]] = []
        self._error: Exception | None = None
        self._changed = threading.Condition()

    def expect(self, keys: int) -> None:
        with self._changed:
            self._open += keys

    def take(self, keys: Sequence[int], answer: Answered | Exception) -> None:
        """Take an answer, in the thread that reads."""
        with self._changed:
            self._open -= len(keys)
            if isinstance(answer, Exception):
                self._error = self._error or answer
            elif sum(answer.sizes):
                self._rows.append(answer.columns)
            self._changed.notify()

    def until_open_are(self, keys: int) -> Iterator[list[pa.Array]]:
        """Yield what has come until so many keys are open at the most; raises what came instead."""
        while True:
            with self._changed:
                while not self._rows and self._error is None and self._open > keys:
                    self._changed.wait()
                rows, self._rows = self._rows, []
                if self._error is not None:
                    raise self._error
                done = self._open <= keys
            yield from rows
            if done:
                return
