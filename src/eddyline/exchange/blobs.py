"""Rows on their way through the shuffle: Arrow record batches as bytes, with their signature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

BLOB_ROWS: Final = 1 << 16
"""Rows of a blob at the most: what the reduce side takes in at a time."""

DONE_BITS: Final = 63
"""Predicates, from the first on, that a blob can record as passed by its rows."""


class Blob(NamedTuple):
    """Rows of one input that travel together to one cell."""

    cell: int
    relation: int
    done: int  # predicates that the rows have passed already, as a mask
    heavy: int  # the set of heavy keys by which the rows were dealt out
    batch: pa.Buffer


SCHEMA: Final = pa.schema(
    zip(
        Blob._fields,
        [pa.int32(), pa.int32(), pa.int64(), pa.int64(), pa.binary()],
        strict=True,
    )
)
"""What the JVM sees of blobs, one a row."""


@dataclass
class Sorter:
    """Gathers rows of one input and one signature by cell and turns them into blobs."""

    relation: int
    cells: int
    done: int = 0  # predicates that the rows have passed, as a mask
    heavy: int = 0  # which set of heavy keys the cells were found by
    _held: list[list[pa.RecordBatch]] = field(init=False)
    _rows: list[int] = field(init=False)
    _sent: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing held."""
        self._held = [[] for _ in range(self.cells)]
        self._rows = [0] * self.cells
        self._sent = [False] * self.cells

    def add(self, batch: pa.RecordBatch, cells: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """Take rows, each for one or more cells (shape (rows, copies)); yield full blobs."""
        rows, copies = cells.shape
        # Numbers of 16 bits are sorted by radix, ten times as fast as longer ones.
        flat = cells.reshape(-1).astype(np.uint16 if self.cells < 1 << 16 else np.int64)
        order = np.argsort(flat, kind="stable")
        numbers = order // copies if copies > 1 else order
        bounds = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=self.cells))])
        whole = batch.take(pa.array(numbers)) if len(numbers) != rows or self.cells > 1 else batch
        for cell in range(self.cells):
            start, stop = int(bounds[cell]), int(bounds[cell + 1])
            if stop > start:
                self._held[cell].append(whole.slice(start, stop - start))
                self._rows[cell] += stop - start
                if self._rows[cell] >= BLOB_ROWS:
                    yield self._blob(cell)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield what is left.

        Where there are heavy keys every cell gets a blob, be it empty: it must be able to see
        whether all rows were dealt out by the same set.
        """
        for cell in range(self.cells):
            if self._rows[cell]:
                yield self._blob(cell)
            elif self.heavy and not self._sent[cell]:
                yield self._packed(cell, pa.py_buffer(b""))

    def _blob(self, cell: int) -> pa.RecordBatch:
        batches = self._held[cell]
        self._held[cell], self._rows[cell] = [], 0
        self._sent[cell] = True
        return self._packed(cell, encoded(batches))

    def _packed(self, cell: int, batch: pa.Buffer) -> pa.RecordBatch:
        return packed(Blob(cell, self.relation, self.done, self.heavy, batch))


def packed(blob: Blob) -> pa.RecordBatch:
    """Return a blob as a record batch of one row of :data:`SCHEMA`."""
    *numbers, batch = blob
    columns = [pa.array([n], field.type) for n, field in zip(numbers, SCHEMA, strict=False)]
    return pa.record_batch([*columns, as_binary(batch)], schema=SCHEMA)


def unpacked(batch: pa.RecordBatch) -> Iterator[Blob]:
    """Yield the blobs of a record batch of :data:`SCHEMA`."""
    *numbers, batches = batch.columns
    buffers = (value.as_buffer() for value in batches)
    return map(Blob._make, zip(*(column.to_pylist() for column in numbers), buffers, strict=True))


def as_binary(data: pa.Buffer) -> pa.Array:
    """Return bytes as a column of one row, without copying them."""
    offsets = pa.py_buffer(np.array([0, data.size], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, data])


def encoded(batches: Sequence[pa.RecordBatch]) -> pa.Buffer:
    """Return batches of one schema as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def decoded(data: pa.Buffer) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a blob that have rows, without copying them; none of no bytes."""
    if not data.size:
        return
    with pa.ipc.open_stream(data) as reader:
        for batch in reader:
            if batch.num_rows:
                yield batch


def gathered(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of ``rows`` rows or more, but for the last; none without rows."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            held += batch.num_rows
        if held >= rows:
            yield from together(waiting)
            waiting, held = [], 0
    yield from together(waiting)


def together(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches as one, where there are any."""
    if len(batches) == 1:
        yield batches[0]
    elif batches:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()
