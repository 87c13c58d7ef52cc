"""Tiny inputs that are read together, by one task: Python starts once for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np
import pyarrow as pa

from eddyline.tasks.map_side import MapSide


@dataclass(frozen=True)
class TinyInputsSide:
    """What Spark runs over the rows of several inputs; the first column says whose a row is.

    ``sides`` are what is run over the rows of each, and ``places`` its columns, from the second on.
    """

    sides: tuple[MapSide, ...]
    places: tuple[tuple[int, ...], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield blobs as rows come, which is input by input: of a partition each has all rows.

        Each side is run, even that of an input without rows: it has to say so.
        """
        without = set(range(len(self.sides)))
        for number, rows in groupby(self._apart(batches), key=itemgetter(0)):
            without.discard(number)
            yield from self.sides[number](batch for _, batch in rows)
        for number in sorted(without):
            yield from self.sides[number](iter(()))

    def _apart(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of each input with its number, in its own columns."""
        for batch in batches:
            for number, start, stop in runs(batch.column(0)):
                columns = [batch.column(1 + place) for place in self.places[number]]
                names = [f"c{n}" for n in range(len(columns))]
                rows = pa.record_batch(columns, names=names)
                yield number, rows.slice(start, stop - start)


def runs(numbers: pa.Array) -> Iterator[tuple[int, int, int]]:
    """Yield the stretches of equal numbers: which, from where, to where.

    >>> list(runs(pa.array([1, 1, 0], pa.int32())))
    [(1, 0, 2), (0, 2, 3)]
    """
    values = numbers.to_numpy()
    starts = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    for start, stop in pairwise(starts):
        if stop > start:
            yield int(values[start]), start, stop
