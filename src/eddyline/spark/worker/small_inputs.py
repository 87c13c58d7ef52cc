"""Small inputs that are read together, by one task: Python begins once for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eddyline.spark.worker.map_side import MapSide


@dataclass(frozen=True)
class SmallInputs:
    """What Spark runs over the rows of several inputs, of which the first column says whose it is.

    ``sides`` are what is run over the rows of each, and ``places`` its columns, from the second on.
    """

    sides: tuple[MapSide, ...]
    places: tuple[tuple[int, ...], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield blobs, input by input; all are held until then, as they are few."""
        apart: list[list[pa.RecordBatch]] = [[] for _ in self.sides]
        for batch in batches:
            for number, start, stop in runs(batch.column(0)):
                columns = [batch.column(1 + place) for place in self.places[number]]
                names = [f"c{n}" for n in range(len(columns))]
                rows = pa.record_batch(columns, names=names)
                apart[number].append(rows.slice(start, stop - start))
        for side, of_input in zip(self.sides, apart, strict=True):
            yield from side(iter(of_input))


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
