"""Fragments: rows that the same queries want.

Queries that group alike and select differently share an aggregate by fragments: what is aggregated
of the rows that exactly the same queries want is right for each of these queries, and each adds up
its own fragments (Krishnamurthy, Wu and Franklin, 2006).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa


class Fragments:
    """Sets of queries under numbers; these hold until :meth:`without` is called."""

    def __init__(self) -> None:
        """Start without any."""
        self._numbers: dict[bytes, int] = {}
        self._queries: list[npt.NDArray[np.int32]] = []

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._queries)

    def number(self, queries: npt.NDArray[np.integer]) -> int:
        """Return the number of a set of queries, ascending."""
        members = queries.astype(np.int32)
        key = members.tobytes()
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self._queries)
            self._queries.append(members)
        return known

    def queries(self, number: int) -> npt.NDArray[np.int32]:
        """Return the queries of a fragment."""
        return self._queries[number]

    def take(self, sets: pa.Array) -> npt.NDArray[np.int32]:
        """Return the numbers of sets that are given as lists."""
        values = sets.values.to_numpy()
        offsets = sets.offsets.to_numpy()
        found = [self.number(values[begin:end]) for begin, end in pairwise(offsets.tolist())]
        return np.array(found, np.int32)

    def lists(self, numbers: Iterable[int]) -> pa.Array:
        """Return fragments as lists of queries."""
        members = [self._queries[number] for number in numbers]
        offsets = np.cumsum([0, *map(len, members)])
        every = np.concatenate(members) if members else np.empty(0, np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(every, pa.int32()))

    def without(self, queries: Collection[int]) -> npt.NDArray[np.int32]:
        """Forget some queries; return the new number of each fragment, -1 where none is left."""
        gone = np.array(sorted(queries), np.int32)
        before, self._queries, self._numbers = self._queries, [], {}
        left = [members[~np.isin(members, gone)] for members in before]
        new = [self.number(members) if len(members) else -1 for members in left]
        return np.array(new, np.int32)
