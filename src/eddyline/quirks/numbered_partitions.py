"""Rows in the partitions whose numbers a column states, also where Spark has no way to say so."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

_KNOWN: Final = hasattr(DataFrame, "repartitionById")

_SEED: Final = np.uint32(42)
"""What Spark's hashes begin with."""

Words = npt.NDArray[np.uint32]


def repartitioned(rows: DataFrame, partitions: int, column: str) -> DataFrame:
    """Return the rows in so many partitions, each row in the one that its ``column`` numbers.

    PySpark 4.1 is the first with ``repartitionById``. Before, rows can be sent by the hash of an
    expression only: the expression is a number whose hash leads to the partition.
    """
    if _KNOWN:
        return rows.repartitionById(partitions, F.col(column))
    # As text: an expression of 10,000 parts is 20,000 calls of the JVM otherwise.
    numbers = F.expr(f"array({', '.join(map(str, numbers_for(partitions)))})")
    return rows.repartition(partitions, F.element_at(numbers, F.col(column).cast("int") + 1))


@lru_cache(maxsize=64)
def numbers_for(partitions: int) -> Sequence[int]:
    """Return for each partition the least whole number that Spark sends there by its hash.

    >>> numbers_for(2), numbers_for(1)
    ((2, 0), (0,))
    """
    found: dict[int, int] = {}
    first = 0
    while len(found) < partitions:  # some n ln n numbers for n partitions
        numbers = np.arange(first, first + 16 * partitions, dtype=np.int32)
        places = _hashes(numbers).view(np.int32).astype(np.int64) % partitions
        for place, index in zip(*np.unique(places, return_index=True), strict=True):
            found.setdefault(int(place), first + int(index))
        first += len(numbers)
    return tuple(found[place] for place in range(partitions))


def _hashes(numbers: npt.NDArray[np.int32]) -> Words:
    """Return Spark's hashes of integers: Murmur3 for words of 32 bits."""
    words = _rotated(numbers.view(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    hashes = _rotated(_SEED ^ words, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    hashes ^= np.uint32(4)  # bytes
    for bits, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashes = (hashes ^ (hashes >> np.uint32(bits))) * np.uint32(factor)
    return hashes ^ (hashes >> np.uint32(16))


def _rotated(words: Words, bits: int) -> Words:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
