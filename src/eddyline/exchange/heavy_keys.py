"""Heavy keys: keys with so many rows that these are dealt out over several cells.

Where a key is heavy, the rows of one input are dealt out along its dimension one by one, and the
others' rows with that key are copied to each of the coordinates that are dealt to. So rows that
join still meet in exactly one cell, and no cell makes all the joined rows (Beame, Koutris and
Suciu, "Skew in parallel query processing", PODS 2014).

Which keys are heavy is found in a sample of the inputs when the query runs, before the shuffle.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.distinct_values import distinct

Words = npt.NDArray[np.int64]

LEAST_SEEN: Final = 16
"""Rows of a sample that a key must have to be taken for heavy: as few may be chance."""

SHARE_OF_A_CELL: Final = 0.5
"""Part of an average cell that the rows of a heavy key make of each cell they are dealt out over.

With keys by Zipf's law (1.2) the largest cell then stays below three times the median one. The
less it is, the more often the rows of other inputs are copied.
"""

KEYS: Final = pa.schema([
    ("dimension", pa.int32()),
    ("word", pa.int64()),
    ("spread", pa.int32()),
    ("dealt", pa.int32()),
])  # fmt: skip


class KeyCounts(NamedTuple):
    """How often keys were seen in a sample of one input; arrays of one length, sorted by word.

    ``fraction`` is the part of the input's rows that the sample has.
    """

    relation: int
    words: Words
    counts: npt.NDArray[np.int64]
    fraction: float


@dataclass(frozen=True, slots=True)
class HeavyKeys:
    """The heavy keys of one dimension: arrays of one length, sorted by word.

    ``spread`` is the number of coordinates that the rows of input ``dealt`` are dealt out along.
    """

    words: Words
    spread: npt.NDArray[np.int64]
    dealt: npt.NDArray[np.int64]

    def find(self, words: Words) -> npt.NDArray[np.int64]:
        """Return for each word its place among the heavy ones, -1 where it is none of them."""
        at = np.searchsorted(self.words, words)
        at[at == len(self.words)] = 0
        return np.where(self.words[at] == words, at, -1)


def heavy_keys(
    samples: Sequence[KeyCounts], share: int, never_copied: Collection[int] = ()
) -> HeavyKeys | None:
    """Return the heavy keys of a dimension of ``share`` coordinates; None where there are none.

    Keys that would have rows of the inputs ``never_copied`` copied are left out.

    ``samples`` are of inputs that the dimension splits. A key weighs what it makes of all rows
    or, if that is more, of all joined rows. What it makes of these is estimated by the product
    of its rows in the inputs, each counted once more, since a key that a sample lacks may be
    there.
    """
    samples = [sample for sample in samples if len(sample.words)]
    if not samples or share == 1:
        return None
    words = distinct(np.concatenate([sample.words for sample in samples]))
    seen = np.zeros((len(samples), len(words)))
    for counts, sample in zip(seen, samples, strict=True):
        counts[np.searchsorted(words, sample.words)] = sample.counts
    rows = seen / np.array([[sample.fraction] for sample in samples])
    of_rows = rows.sum(axis=0) / rows.sum()
    joined = np.log(seen + 1.0).sum(axis=0)
    joined = np.exp(joined - joined.max())
    weights = np.maximum(of_rows, joined / joined.sum())
    spread = np.minimum(np.ceil(weights * share / SHARE_OF_A_CELL), share).astype(np.int64)
    heavy = (spread > 1) & (seen.max(axis=0) >= LEAST_SEEN)
    relations = np.array([sample.relation for sample in samples])
    dealt = relations[rows.argmax(axis=0)]
    for relation in never_copied:
        heavy &= dealt == relation
    return HeavyKeys(words[heavy], spread[heavy], dealt[heavy]) if heavy.any() else None


def as_batch(keys: Sequence[HeavyKeys | None]) -> pa.RecordBatch:
    """Return the heavy keys of all dimensions as one record batch of the schema :data:`KEYS`."""
    entries = [(dimension, heavy) for dimension, heavy in enumerate(keys) if heavy is not None]
    dimensions = np.repeat(
        [dimension for dimension, _ in entries], [len(heavy.words) for _, heavy in entries]
    )
    columns = [dimensions, *(_joined(entries, name) for name in ("words", "spread", "dealt"))]
    arrays = [pa.array(column, f.type) for column, f in zip(columns, KEYS, strict=True)]
    return pa.record_batch(arrays, schema=KEYS)


def _joined(found: Sequence[tuple[int, HeavyKeys]], name: str) -> npt.NDArray[np.int64]:
    empty = np.empty(0, np.int64)
    return np.concatenate([empty, *(getattr(heavy, name) for _, heavy in found)])


def of_dimensions(batch: pa.RecordBatch, dimensions: int) -> tuple[HeavyKeys | None, ...]:
    """Return the heavy keys of each dimension from what :func:`as_batch` has made."""
    dimension, *columns = (column.to_numpy().astype(np.int64) for column in batch.columns)
    keys = []
    for number in range(dimensions):
        own = dimension == number
        keys.append(HeavyKeys(*(column[own] for column in columns)) if own.any() else None)
    return tuple(keys)


def fingerprint(data: pa.Buffer) -> int:
    """Return a number that tells one set of heavy keys from another."""
    return zlib.crc32(memoryview(data))
