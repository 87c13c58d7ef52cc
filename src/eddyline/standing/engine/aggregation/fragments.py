"""Fragments: rows that the same queries want, whose aggregates these queries share."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

FRAGMENT: Final = "fragment"
"""The column with the number of a fragment."""

_SETS: Final = b"eddyline fragments"
"""Where the metadata of a table have the queries of each of its fragments."""


class Fragments:
    """Fragments, rows that the same queries want: their sets of queries, under numbers.

    Queries that group alike and select differently share an aggregate by fragments: what is
    aggregated of the rows that exactly the same queries want is right for each of these queries,
    and each adds up its own fragments (Krishnamurthy, Wu and Franklin, 2006). Numbers hold until
    :meth:`without` or :meth:`keep_only` is called.
    """

    def __init__(self) -> None:
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
        numbers = [self.number(values[begin:end]) for begin, end in pairwise(offsets.tolist())]
        return np.array(numbers, np.int32)

    def lists(self, numbers: Iterable[int]) -> pa.Array:
        """Return fragments as lists of queries."""
        members = [self._queries[number] for number in numbers]
        offsets = np.cumsum([0, *map(len, members)])
        every = np.concatenate(members) if members else np.empty(0, np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(every, pa.int32()))

    def keep_only(self, used: npt.NDArray[np.integer]) -> npt.NDArray[np.int32]:
        """Forget all but some; return the new number of each fragment, -1 where it is gone."""
        before, self._queries, self._numbers = self._queries, [], {}
        new = np.full(len(before), -1, np.int32)
        new[used] = [self.number(before[number]) for number in used.tolist()]
        return new

    def without(self, queries: Collection[int]) -> npt.NDArray[np.int32]:
        """Forget some queries; return the new number of each fragment, -1 where none is left."""
        gone = np.array(sorted(queries), np.int32)
        before, self._queries, self._numbers = self._queries, [], {}
        left = [members[~np.isin(members, gone)] for members in before]
        new = [self.number(members) if len(members) else -1 for members in left]
        return np.array(new, np.int32)


def with_sets(table: pa.Table, fragments: Fragments) -> pa.Table:
    """Return a table with its own numbers of fragments, and their queries in its metadata."""
    used, numbers = np.unique(table.column(FRAGMENT).to_numpy(), return_inverse=True)
    own = renumbered(table, numbers.astype(np.int32))
    sets = pa.record_batch({FRAGMENT: fragments.lists(used.tolist())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, sets.schema) as to:
        to.write_batch(sets)
    return own.replace_schema_metadata({_SETS: sink.getvalue().to_pybytes()})


def renumbered(table: pa.Table, numbers: npt.NDArray[np.int32]) -> pa.Table:
    """Return a table with other numbers of fragments."""
    place = table.schema.get_field_index(FRAGMENT)
    return table.set_column(place, FRAGMENT, pa.array(numbers))


def sets_of(table: pa.Table) -> pa.Array:
    """Return the queries of each fragment of a table, as its metadata have them."""
    with pa.ipc.open_stream(table.schema.metadata[_SETS]) as stream:
        return stream.read_all().column(0).combine_chunks()


def queries_in(table: pa.Table) -> npt.NDArray[np.int32]:
    """Return the queries of a table with fragments, some of them more than once."""
    queries: npt.NDArray[np.int32] = sets_of(table).values.to_numpy()
    return queries
