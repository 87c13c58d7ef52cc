"""Tables after the Wisconsin Benchmark (DeWitt, 1993), 244 bytes a row as in PostgreSQL's tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

NUMBERS = {
    "two": 2,
    "four": 4,
    "ten": 10,
    "twenty": 20,
    "hundred": 100,
    "thousand": 1000,
    "twothousand": 2000,
    "fivethous": 5000,
    "tenthous": 10_000,
    "odd": 100,
    "even": 100,
}
"""Columns that take so many values, by the row's number."""

TEXTS = ("stringu1", "stringu2", "string4")
TEXT_BYTES = 64

COLUMNS = ("unique1", "unique2", *NUMBERS, *TEXTS)
TYPES = (pa.int32(),) * (2 + len(NUMBERS)) + (pa.string(),) * len(TEXTS)
UNIQUE2 = COLUMNS.index("unique2")


def table(rows: int, seed: int) -> tuple[pa.Array, ...]:
    """Return the columns of a table; ``unique1`` and ``unique2`` are permutations of 0, 1, ….

    >>> one = table(10, seed=1)
    >>> sorted(one[UNIQUE2].to_pylist()) == list(range(10)), len(one) == len(COLUMNS)
    (True, True)
    """
    generator = np.random.default_rng(seed)
    unique1, unique2 = generator.permutation(rows), generator.permutation(rows)
    numbers = [unique1, unique2, *(unique1 % values for values in NUMBERS.values())]
    texts = [unique1, unique2, unique1 % 4]
    return (
        *(pa.array(column.astype(np.int32)) for column in numbers),
        *(_padded(column) for column in texts),
    )


def _padded(numbers: npt.NDArray[np.int64]) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), TEXT_BYTES, "x")
