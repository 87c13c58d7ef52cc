"""What Spark runs over the keys of a table that is asked for them, or scanned as a whole.

First :class:`AskedKeys`, which finds out which of the two it is, once for all tasks of a job (at
the driver: :mod:`eddyline.asking.asked_or_scanned`). Then, if the table is asked,
:class:`RowsOfKeys`, which gets the rows: they are at the driver by then.
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
from eddyline.asking.remote_choice import KEYS_SENT, why_scanned
from eddyline.asking.remote_method import Answered, RemoteMethod
from eddyline.tasks.action_settings import ACTION
from eddyline.tasks.task_lookups import job_of_run

SCANNED: Final = pa.schema([("why", pa.string())])
"""What tells that the table is scanned: any row."""


@dataclass(frozen=True, slots=True)
class AskedKeys:
    """Has keys asked for, each row one of them, and gives a row if the table is to be scanned.

    ``scan_seconds`` is what the scan is expected to take, ``use`` numbers the places of a query
    where the table is used.
    """

    server: Address
    run: int
    use: int
    method: str
    scan_seconds: float

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield why the table is to be scanned; nothing where all keys have been answered."""
        tables = [batch for batch in batches if batch.num_rows]
        if not tables:
            return
        why = self._outcome(pa.Table.from_batches(tables))
        if why:
            yield pa.record_batch([[why]], schema=SCANNED)

    def _outcome(self, keys: pa.Table) -> str:
        context = TaskContext.get()
        if context is None or context.getLocalProperty(ACTION) is None:
            # Nobody could tell that other tasks belong to the same run of the query.
            return "the query does not run as an action on a DataFrame"
        place = TaskPlace(context.stageId(), context.partitionId())
        job = job_of_run(self.run)
        return why_scanned(
            self.server, job, self.method, self.scan_seconds, keys, place=place, use=self.use
        )


@dataclass(frozen=True, slots=True)
class RowsOfKeys:
    """Gives the rows that a table has for keys, each row one of them.

    ``types`` are those of the table's columns, as Arrow has them.
    """

    server: Address
    run: int
    method: str
    columns: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they come, those alone that have their key as it was asked for.

        LookupFailedError for a key without an answer.
        """
        came = _Coming()
        wanted = list(enumerate(self.types))
        remote = RemoteMethod[int](
            self.server, job_of_run(self.run), self.method, wanted, came.take, exact=True
        )
        with closing(remote):
            for batch in batches:
                for start in range(0, batch.num_rows, KEYS_SENT):
                    part = batch.slice(start, KEYS_SENT)
                    came.expect(part.num_rows)
                    remote.ask(range(part.num_rows), part.columns)
                    for columns in came.until_open_are(KEYS_SENT):
                        yield pa.record_batch(columns, names=list(self.columns))
            remote.rest()
            for columns in came.until_open_are(0):
                yield pa.record_batch(columns, names=list(self.columns))


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
