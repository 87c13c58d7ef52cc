"""The sample in which heavy keys are found: counted on the map side, judged in one place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import BinaryType, StructField, StructType

from eddyline.exchange.blobs import Blob, as_binary, decoded, encoded, packed
from eddyline.exchange.framing import frames
from eddyline.exchange.heavy_keys import KeyCounts, as_batch, heavy_keys
from eddyline.exchange.hypercube import Hypercube, key_words

SAMPLE_ROWS: Final = 8_192
"""First rows of each partition that are looked at: a key with 1 % of them is seen 80 times.

Rows chosen at random would need a scan of all: with TPC-H at scale 1 that took 3 s in joins of
11 s. First rows may be alike where they are sorted. A key that is taken for heavy by mistake is
dealt out for nothing, and other inputs' rows with it are copied.
"""

LEAST_ROWS: Final = 256
"""First rows of a partition that are looked at, however many partitions there are."""

MOST_ROWS: Final = 1 << 20
"""Rows of an input that are looked at in all, about."""

PARTITION: Final = 128 << 20
"""Bytes of a partition by Spark's default."""

UNSEEN: Final = 0.25
"""Rows that an input which is not sampled may have, as part of those of the largest that is."""

WORTH_SAMPLING: Final = 64 << 20
"""Bytes of all inputs, as Spark estimates them, from which on a sample is taken.

It takes two more stages: 0 to 0.4 s on two cores, with TPC-H at scale 1.
"""

HEAVY_KEYS: Final = "heavy_keys"
"""The column that brings the heavy keys, in the first row of a partition."""

HEAVY_SCHEMA: Final = StructType([StructField(HEAVY_KEYS, BinaryType())])

_COUNTS: Final = pa.schema([("dimension", pa.int32()), ("word", pa.int64()), ("count", pa.int64())])


def sampled_rows(size: int) -> int:
    """Return how many first rows of each partition are looked at, of an input of so many bytes."""
    partitions = max(size // PARTITION, 1)
    return max(min(SAMPLE_ROWS, MOST_ROWS // partitions), LEAST_ROWS)


@dataclass
class _Counts:
    """How often each word was seen."""

    words: list[npt.NDArray[np.int64]] = field(default_factory=list)

    def sums(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        if not self.words:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        words, counts = np.unique(np.concatenate(self.words), return_counts=True)
        return words, counts.astype(np.int64)


@dataclass(frozen=True)
class SampleSide:
    """What Spark runs over a sample of input number ``relation``: columns of keys.

    ``dimensions[c]`` is the dimension of column c.
    """

    relation: int
    dimensions: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a blob with the counts of one partition."""
        counts = [_Counts() for _ in self.dimensions]
        for batch in batches:
            for column, own in zip(batch.columns, counts, strict=True):
                present = column.drop_null()
                if len(present):
                    own.words.append(key_words(present))
        parts = []
        for dimension, own in zip(self.dimensions, counts, strict=True):
            words, seen = own.sums()
            parts.append(
                pa.record_batch(
                    [np.full(len(words), dimension, np.int32), words, seen], schema=_COUNTS
                )
            )
        yield packed(Blob(0, self.relation, 0, 0, encoded(parts)))


@dataclass(frozen=True)
class JudgingSide:
    """What Spark runs over all counts: which keys are heavy.

    ``rows`` are those of the inputs, as far as their sizes tell. Rows of the inputs
    ``never_copied`` must not be.
    """

    cube: Hypercube
    rows: tuple[int, ...]
    never_copied: frozenset[int]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the heavy keys of all dimensions as one blob."""
        pieces: dict[tuple[int, int], list[pa.RecordBatch]] = {}
        for batch in batches:
            for value in batch.column(0).drop_null():
                for frame in frames(value.as_buffer()):
                    for part in decoded(frame.batches):
                        dimension = part.column("dimension")[0].as_py()
                        pieces.setdefault((dimension, frame.relation), []).append(part)
        keys = []
        for dimension, share in enumerate(self.cube.shares):
            samples = [
                self._sample(relation, parts)
                for (of_axis, relation), parts in sorted(pieces.items())
                if of_axis == dimension
            ]
            keys.append(heavy_keys(samples, share, self._bound(dimension)))
        yield pa.record_batch([as_binary(encoded([as_batch(keys)]))], names=[HEAVY_KEYS])

    def _bound(self, dimension: int) -> list[int]:
        """Return the inputs along a dimension whose rows must not be copied."""
        columns = self.cube.dimensions[dimension].columns
        return [relation for relation in self.never_copied if columns[relation] is not None]

    def _sample(self, relation: int, parts: list[pa.RecordBatch]) -> KeyCounts:
        table = pa.Table.from_batches(parts)
        words, places = np.unique(table.column("word").to_numpy(), return_inverse=True)
        counts = np.bincount(places, table.column("count").to_numpy()).astype(np.int64)
        return KeyCounts(relation, words, counts, int(counts.sum()) / self.rows[relation])
