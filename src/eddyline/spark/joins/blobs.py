"""Rows on their way through the shuffle: Arrow record batches as bytes, with their signature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

BLOB_ROWS: Final = 1 << 16
"""Rows of a blob at the most: what the reduce side takes in at a time."""

SCHEMA: Final = pa.schema([
    ("cell", pa.int32()),
    ("relation", pa.int32()),
    ("done", pa.int64()),  # predicates that the rows have passed already, as a mask
    ("rows", pa.int64()),
    ("batch", pa.binary()),
])  # fmt: skip


@dataclass
class Sorter:
    """Gathers rows of one input and one signature by cell and turns them into blobs."""

    relation: int
    cells: int
    done: int = 0  # predicates that the rows have passed, as a mask
    _held: list[list[pa.RecordBatch]] = field(init=False)
    _rows: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Start with nothing held."""
        self._held = [[] for _ in range(self.cells)]
        self._rows = [0] * self.cells

    def add(self, batch: pa.RecordBatch, cells: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """Take rows, each for one or more cells (shape (rows, copies)); yield full blobs."""
        rows, copies = cells.shape
        flat = cells.reshape(-1)
        order = np.argsort(flat, kind="stable")
        numbers = order // copies if copies > 1 else order
        bounds = np.searchsorted(flat[order], np.arange(self.cells + 1))
        whole = batch.take(pa.array(numbers)) if len(numbers) != rows or self.cells > 1 else batch
        for cell in range(self.cells):
            start, stop = int(bounds[cell]), int(bounds[cell + 1])
            if stop > start:
                self._held[cell].append(whole.slice(start, stop - start))
                self._rows[cell] += stop - start
                if self._rows[cell] >= BLOB_ROWS:
                    yield self._blob(cell)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield what is left."""
        for cell in range(self.cells):
            if self._rows[cell]:
                yield self._blob(cell)

    def _blob(self, cell: int) -> pa.RecordBatch:
        table = pa.Table.from_batches(self._held[cell])
        rows = self._rows[cell]
        self._held[cell], self._rows[cell] = [], 0
        columns = [[cell], [self.relation], [self.done], [rows], [encoded(table)]]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
        return pa.record_batch(arrays, schema=SCHEMA)


def encoded(table: pa.Table) -> bytes:
    """Return a table as the bytes of an Arrow stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def decoded(data: pa.Buffer) -> pa.RecordBatch | None:
    """Return the batch of a blob, without copying; None where there are no rows."""
    with pa.ipc.open_stream(data) as reader:
        batches = [batch for batch in reader if batch.num_rows]
    if not batches:
        return None
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
