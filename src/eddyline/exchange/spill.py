"""Cells that outgrow their memory: split into sub-cells on disk, worked one by one.

The rows of a cell are dealt out over a smaller hypercube, as the shuffle does with all rows,
but with other hashes. A sub-cell that is still too large is split again. Where hashing does
not help, since one key has most of the rows, the largest input is dealt out row by row and
the others are copied, which always helps.

The files have no names: they are gone when they are closed or when the process ends, however
it ends.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.join_graph import JoinGraph
from eddyline.engine.modules.scan_access import Arrival, HeldScan, ScanAccess
from eddyline.errors import SpillError
from eddyline.exchange.hypercube import Dimension, Hypercube, key_words, plan_hypercube

SUB_CELLS: Final = 16
"""Sub-cells that a cell is split into."""

WORKING_SHARE: Final = 0.4
"""Part of the memory that the rows of a cell may take.

The rest is for the SteMs' own copies, their hash tables and the tuples under way: 1.2 times
the rows' bytes for two integer columns.
"""

DEEPEST: Final = 8
"""Splits within splits: 16^8 sub-cells hold anything that fits on a disk."""

HELPED: Final = 0.5
"""Part of a cell that its largest sub-cell may have; where it has more, hashing did not help."""


DONE: Final = "done"
"""Column of the files with the predicates that the rows of a batch have passed, all the same."""


@dataclass
class SpillTotals:
    """What was written so far."""

    bytes: int = 0
    files: int = 0
    deepest: int = 0


class SpilledScan:
    """An input whose rows are on disk; it is read from the beginning."""

    def __init__(self, file: IO[bytes], rows: int) -> None:
        """Read a file of record batches that has ``rows`` rows."""
        self._rows = rows
        self._batches: Iterator[pa.RecordBatch] = iter(())
        if rows:
            file.seek(0)
            self._batches = iter(pa.ipc.open_stream(file))

    @property
    def ended(self) -> bool:
        """Whether all rows were given."""
        return not self._rows

    @property
    def expected_rows(self) -> float | None:
        """How many rows are left."""
        return self._rows

    def poll(self) -> Arrival | None:
        """Return the next rows."""
        if not self._rows:
            return None
        try:
            batch = next(self._batches)
        except (OSError, pa.ArrowInvalid) as error:
            raise SpillError(f"rows that were spilled cannot be read again: {error}") from error
        self._rows -= batch.num_rows
        *columns, done = batch.columns
        return Arrival(tuple(columns), batch.num_rows, done[0].as_py())


@dataclass
class _SubCell:
    """The rows of one sub-cell, an anonymous file for each input."""

    files: list[IO[bytes] | None]
    writers: list[pa.RecordBatchStreamWriter | None]
    rows: list[int]
    bytes: list[int]

    @classmethod
    def empty(cls, inputs: int) -> _SubCell:
        return cls([None] * inputs, [None] * inputs, [0] * inputs, [0] * inputs)

    def close(self) -> None:
        for file in self.files:
            if file is not None:
                file.close()


@dataclass
class Spill:
    """The rows of one cell, held in memory as long as they fit, then on disk by sub-cell.

    ``memory`` is in bytes; ``folder`` is where the files go.
    """

    graph: JoinGraph
    memory: int
    folder: str | None = None
    totals: SpillTotals = field(default_factory=SpillTotals)
    depth: int = 0
    by_rows: bool = False  # hashing did not help: deal the largest input out row by row
    _held: list[list[tuple[pa.RecordBatch, int]]] = field(init=False)
    _bytes: list[int] = field(init=False)
    _cube: Hypercube | None = field(init=False, default=None)
    _cells: list[_SubCell] = field(init=False, default_factory=list)
    _dealt: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing held."""
        inputs = len(self.graph.query.relations)
        self._held = [[] for _ in range(inputs)]
        self._bytes = [0] * inputs
        self._dealt = [0] * inputs

    def add(self, relation: int, batch: pa.RecordBatch, done: int = 0) -> None:
        """Take rows of an input that have passed the predicates ``done``.

        SpillError where the disk does not take them.
        """
        self._bytes[relation] += batch.nbytes
        if self._cube is not None:
            self._write(relation, batch, done)
            return
        self._held[relation].append((batch, done))
        if sum(self._bytes) > WORKING_SHARE * self.memory and self.depth < DEEPEST:
            self._begin_to_spill()

    def close(self) -> None:
        """Give up everything."""
        for cell in self._cells:
            cell.close()
        self._cells = []
        self._held = []

    def parts(self) -> Iterator[Sequence[ScanAccess]]:
        """Yield the inputs of the cell part by part; each part fits into the memory."""
        scanned = [r for r, relation in enumerate(self.graph.query.relations) if relation.scan]
        if self._cube is None:
            if all(self._held[r] for r in scanned):
                yield [
                    HeldScan(Arrival(tuple(b.columns), b.num_rows, done) for b, done in batches)
                    for batches in self._held
                ]
            return
        self._guarded(self._end_writing)
        total = sum(self._bytes)
        while self._cells:
            cell = self._cells.pop()
            try:
                if all(cell.rows[r] for r in scanned):
                    yield from self._parts_of(cell, total)
            finally:
                cell.close()

    def _parts_of(self, cell: _SubCell, total: int) -> Iterator[Sequence[ScanAccess]]:
        inputs = [
            HeldScan([]) if file is None else SpilledScan(file, rows)
            for file, rows in zip(cell.files, cell.rows, strict=True)
        ]
        # The largest input is streamed past the SteMs of the others and needs no memory.
        built = sum(cell.bytes) - max(cell.bytes)
        if built <= WORKING_SHARE * self.memory or self.depth + 1 >= DEEPEST:
            yield inputs
            return
        inner = Spill(
            self.graph,
            self.memory,
            self.folder,
            self.totals,
            self.depth + 1,
            by_rows=sum(cell.bytes) > HELPED * total,
        )
        try:
            inner.spill_from(inputs, cell.bytes)
            yield from inner.parts()
        finally:
            inner.close()

    def spill_from(self, inputs: Sequence[ScanAccess], sizes: Sequence[int]) -> None:
        """Split rows that are on disk already; ``sizes`` are the bytes of each input."""
        self._cube = self._plan(sizes)
        self._cells = [_SubCell.empty(len(inputs)) for _ in range(self._cube.cells)]
        for relation, source in enumerate(inputs):
            names = [f"c{n}" for n in range(len(self.graph.query.relations[relation].types))]
            while (arrival := source.poll()) is not None:
                batch = pa.record_batch(list(arrival.columns), names=names)
                self._bytes[relation] += batch.nbytes
                self._write(relation, batch, arrival.done)

    def _begin_to_spill(self) -> None:
        self._cube = self._plan(self._bytes)
        self._cells = [_SubCell.empty(len(self._held)) for _ in range(self._cube.cells)]
        held, self._held = self._held, [[] for _ in self._held]
        for relation, batches in enumerate(held):
            for batch, done in batches:
                self._write(relation, batch, done)

    def _plan(self, sizes: Sequence[int]) -> Hypercube:
        if self.by_rows:
            largest = max(range(len(sizes)), key=lambda r: sizes[r])
            others = [r for r in range(len(sizes)) if r != largest]
            second = max(others, key=lambda r: sizes[r], default=largest)
            dimensions = (
                Dimension((None,) * len(sizes), own=largest),
                Dimension((None,) * len(sizes), own=second),
            )
            return Hypercube(dimensions, (2, SUB_CELLS // 2))
        relations = self.graph.query.relations
        weights = [max(n, 1) if r.scan else 0 for n, r in zip(sizes, relations, strict=True)]
        return plan_hypercube(self.graph, weights, SUB_CELLS)

    def _write(self, relation: int, batch: pa.RecordBatch, done: int) -> None:
        cube = self._cube
        if cube is None:
            raise AssertionError("nothing is spilled yet")
        words: list[npt.NDArray[np.int64] | None] = []
        for dimension in cube.dimensions:
            column = dimension.columns[relation]
            if column is None:
                words.append(None)
            else:
                # Other hashes than those of the shuffle and of the splits before, which
                # have brought rows of like hashes together here.
                salt = np.int64(0x5851F42D4C957F2D * (self.depth + 1) & 0x7FFFFFFFFFFFFFFF)
                words.append(key_words(batch.column(column)) ^ salt)
        cells = cube.cells_of(relation, words, batch.num_rows, self._dealt[relation])
        self._dealt[relation] += batch.num_rows
        for number in range(cube.cells):
            rows = np.flatnonzero((cells == number).any(axis=1))
            if len(rows):
                part = batch.take(pa.array(rows)).append_column(
                    DONE, pa.array(np.full(len(rows), done))
                )
                self._guarded(lambda part=part, number=number: self._append(number, relation, part))  # type: ignore[misc]

    def _append(self, number: int, relation: int, part: pa.RecordBatch) -> None:
        cell = self._cells[number]
        writer = cell.writers[relation]
        if writer is None:
            file = tempfile.TemporaryFile(dir=self.folder, prefix="eddyline-spill-")  # noqa: SIM115 - closed with its cell
            cell.files[relation] = file
            writer = cell.writers[relation] = pa.ipc.new_stream(file, part.schema)
            self.totals.files += 1
            self.totals.deepest = max(self.totals.deepest, self.depth + 1)
        writer.write_batch(part)
        cell.rows[relation] += part.num_rows
        cell.bytes[relation] += part.nbytes
        self.totals.bytes += part.nbytes

    def _end_writing(self) -> None:
        for cell in self._cells:
            for relation, writer in enumerate(cell.writers):
                if writer is not None:
                    writer.close()
                    cell.writers[relation] = None

    def _guarded(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            self.close()
            what = "the disk is full" if error.errno == errno.ENOSPC else str(error)
            raise SpillError(
                f"a join needs more than its memory of {self.memory:,} bytes, and its rows cannot "
                f"be spilled to {self.folder or tempfile.gettempdir()}: {what}. Give it more "
                f"memory (adapt(…, memory=…)), or a folder with room (spark.local.dir)."
            ) from error


def spill_folder() -> str | None:
    """Return the folder that Spark gives its executors for such files; None for the system's."""
    said = os.environ.get("SPARK_LOCAL_DIRS") or os.environ.get("LOCAL_DIRS")
    folder = said.split(",")[0].strip() if said else ""
    return folder if folder and os.path.isdir(folder) else None  # noqa: PTH112 - a string comes and goes
