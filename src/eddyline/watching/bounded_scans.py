"""Scans that are joined in memory as far as they fit, and the joins with what does not.

What has been read until the memory is full is *early*, what comes then is *late* and goes to disk.
The early rows have been joined with each other. What is left to be joined is divided by the first
relation of a result whose row is late: the relations before it give their early rows, that one its
late rows, those after it all of theirs. So each result arises once, and a join need not tell early
rows from late ones. Each of these joins, one for each relation, takes no more memory either
(:mod:`eddyline.exchange.spill`), and reads early rows again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO

import pyarrow as pa

from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.scan_access import Arrival, HeldScan, ScanAccess
from eddyline.errors import SpillError
from eddyline.exchange.spill import DONE, WORKING_SHARE, Spill, SpilledScan


class BoundedScans:
    """The scans of a join, by number of relation, which seem to end when the memory is full.

    ``memory`` is in bytes. The last scan that goes on is read to its end: the others are complete,
    and its rows pass by.
    """

    def __init__(self, query: JoinQuery, scans: Mapping[int, ScanAccess], memory: int) -> None:
        self._query = query
        self._scans = dict(scans)
        self._room = WORKING_SHARE * memory
        self._memory = memory
        self._early: dict[int, list[Arrival]] = {r: [] for r in scans}
        self._held = 0
        self.is_full = False
        self.rows = dict.fromkeys(scans, 0)
        """Rows read of each scan so far."""

    def inputs(self) -> list[ScanAccess]:
        """Return an input a relation; what is only looked up, or shares rows, is not read."""
        count = len(self._query.relations)
        return [_WhileRoom(self, r) if r in self._scans else HeldScan(()) for r in range(count)]

    def has_ended(self, relation: int) -> bool:
        """Whether a scan gives no more early rows."""
        return self.is_full or self._scans[relation].ended

    def next_early(self, relation: int) -> Arrival | None:
        """Return the next early rows of a scan; None where there are none now."""
        arrival = None if self.is_full else self._scans[relation].poll()
        if arrival is None:
            return None
        self.rows[relation] += arrival.rows
        if not self._goes_on_beside(relation):
            return arrival
        self._early[relation].append(arrival)
        self._held += sum(column.nbytes for column in arrival.columns)
        self.is_full = self._held > self._room
        return arrival

    def expected_rows(self, relation: int) -> float | None:
        """Return how many rows a scan may still give."""
        return self._scans[relation].expected_rows

    def _goes_on_beside(self, relation: int) -> bool:
        return any(r != relation and not scan.ended for r, scan in self._scans.items())

    def joins_left(
        self, wait: Callable[[], None], folder: str | None = None
    ) -> Iterator[tuple[JoinQuery, Sequence[ScanAccess]]]:
        """Read what is left, and yield the joins that are left: their query, and its inputs.

        ``wait`` is called where no scan has anything to give. In the query no relation shares the
        rows of another, as they give different ones. SpillError where the disk takes no more.
        """
        late = {r: _Late(folder) for r in self._scans}
        try:
            while open_ := [r for r, scan in self._scans.items() if not scan.ended]:
                came = [(r, self._scans[r].poll()) for r in open_]
                for r, arrival in came:
                    if arrival is not None and arrival.rows:
                        self.rows[r] += arrival.rows
                        late[r].add(arrival)
                if all(arrival is None for _, arrival in came) and not all(
                    self._scans[r].ended for r in open_
                ):
                    wait()
            alone = tuple(
                replace(relation, same_rows_as=None) for relation in self._query.relations
            )
            query = replace(self._query, relations=alone)
            scanned = [r for r, relation in enumerate(alone) if relation.scan]
            for first in scanned:
                yield from self._joins_with(first, query, scanned, late, folder)
        finally:
            for late_rows in late.values():
                late_rows.close()

    def _joins_with(
        self,
        first: int,
        query: JoinQuery,
        scanned: Sequence[int],
        late: Mapping[int, _Late],
        folder: str | None,
    ) -> Iterator[tuple[JoinQuery, Sequence[ScanAccess]]]:
        """Yield the joins whose first late row is that of one relation."""
        if not late[self._query.store_of(first)].rows:
            return
        spill = Spill(JoinGraph(query), self._memory, folder)
        try:
            for r in scanned:
                store = self._query.store_of(r)
                names = [f"c{n}" for n in range(len(query.relations[r].types))]
                if r != first:
                    for arrival in self._early[store]:
                        batch = pa.record_batch(list(arrival.columns), names=names)
                        spill.add(r, batch, arrival.done)
                if r >= first:
                    for arrival in late[store].again():
                        batch = pa.record_batch(list(arrival.columns), names=names)
                        spill.add(r, batch, arrival.done)
            for inputs in spill.parts():
                yield query, inputs
        finally:
            spill.close()


@dataclass(frozen=True)
class _WhileRoom:
    """One scan while there is room."""

    scans: BoundedScans
    relation: int

    @property
    def ended(self) -> bool:
        return self.scans.has_ended(self.relation)

    @property
    def expected_rows(self) -> float | None:
        return self.scans.expected_rows(self.relation)

    def poll(self) -> Arrival | None:
        return self.scans.next_early(self.relation)


@dataclass
class _Late:
    """Rows of one scan on disk."""

    folder: str | None
    rows: int = 0
    _file: IO[bytes] | None = None
    _writer: pa.RecordBatchStreamWriter | None = field(default=None, repr=False)

    def add(self, arrival: Arrival) -> None:
        names = [*(f"c{n}" for n in range(len(arrival.columns))), DONE]
        done = pa.array([arrival.done] * arrival.rows, pa.int64())
        batch = pa.record_batch([*arrival.columns, done], names=names)
        try:
            if self._writer is None:
                self._file = tempfile.TemporaryFile(dir=self.folder, prefix="eddyline-watch-")  # noqa: SIM115 - closed with this
                self._writer = pa.ipc.new_stream(self._file, batch.schema)
            self._writer.write_batch(batch)
        except OSError as error:
            raise SpillError(
                f"a watched join needs more than its memory, and its rows cannot be written to "
                f"{self.folder or tempfile.gettempdir()}: {error}. Give it more memory "
                f"(watch(…, memory=…)), or a folder with room (TMPDIR)."
            ) from error
        self.rows += arrival.rows

    def again(self) -> Iterator[Arrival]:
        """Yield the rows, from the beginning."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._file is None:
            return
        scan = SpilledScan(self._file, self.rows)
        while (arrival := scan.poll()) is not None:
            yield arrival

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
