"""What a function has returned, by its arguments: the SteM on an index access method.

The memory is bounded by two generations. What is new, and what is asked for again, is in the
younger one; when that holds half of the room, it becomes the older one, and what nobody has asked
for since is forgotten: the oldest goes, and what is used stays.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from itertools import repeat
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expressions.vector import Vector

Key: TypeAlias = Hashable
Numbers: TypeAlias = npt.NDArray[np.int64]

KEY_BYTES: Final = 40
"""Bytes of a key as an object of Python, beside the bytes that are in it."""

MOST_ERRORS: Final = 1_000
"""Errors that are remembered; each may hold on to the values of the frames that it came through."""


class _Generation:
    """Results by key, in the order in which they came."""

    def __init__(self) -> None:
        self.numbers: dict[Key, int] = {}
        self.errors: dict[int, Exception] = {}
        self._chunks: list[pa.Array] = []
        self._held = 0  # bytes of keys and results

    @property
    def nbytes(self) -> int:
        return sys.getsizeof(self.numbers) + self._held

    def find(self, keys: Sequence[Key]) -> Numbers:
        """Return the number of each key, -1 for those that are not here."""
        numbers = map(self.numbers.get, keys, repeat(-1))
        return np.fromiter(numbers, np.int64, len(keys))

    def add(self, keys: Sequence[Key], results: Vector, key_bytes: int) -> Numbers:
        """Add keys that are not here; return their numbers."""
        first = len(self.numbers)
        numbers = range(first, first + len(keys))
        self.numbers.update(zip(keys, numbers, strict=True))
        for position, error in results.errors.items():
            self.errors[first + position] = error
        # A copy: a function over vectors may return a view of a buffer that it fills anew.
        self._chunks.append(pa.concat_arrays([results.values]))
        self._held += key_bytes + self._chunks[-1].nbytes
        # Of growing sizes, as few as there are doublings: each value is copied as often.
        while len(self._chunks) > 1 and 2 * len(self._chunks[-1]) > len(self._chunks[-2]):
            last = self._chunks.pop()
            self._chunks[-1] = pa.concat_arrays([self._chunks[-1], last])
        return np.arange(first, first + len(keys))

    def results(self, numbers: Numbers) -> Vector:
        """Return the results of these numbers."""
        chosen = pa.array(numbers)
        if len(self._chunks) == 1:
            values = self._chunks[0].take(chosen)
        else:
            values = pa.chunked_array(self._chunks).take(chosen).combine_chunks()
            if isinstance(values, pa.ChunkedArray):
                values = pa.concat_arrays(values.chunks)
        if not self.errors:
            return Vector(values)
        failed = np.flatnonzero(np.isin(numbers, np.fromiter(self.errors, np.int64)))
        return Vector(values, {at: self.errors[int(numbers[at])] for at in failed.tolist()})


class FunctionMemory:
    """Results by arguments in ``capacity`` bytes, and those of one visit more.

    >>> memory = FunctionMemory(1_000_000)
    >>> fresh = memory.add(["a", "b"], Vector(pa.array([1, 2])), 2)
    >>> numbers = memory.find(["b", "c"])
    >>> numbers.tolist(), memory.results(numbers[:1]).values.to_pylist()
    ([1, -1], [2])
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._young = _Generation()
        self._old = _Generation()

    def __len__(self) -> int:
        """Return how many tuples of arguments are remembered, those in both generations twice."""
        return len(self._young.numbers) + len(self._old.numbers)

    @property
    def nbytes(self) -> int:
        """Bytes held, approximately."""
        return self._young.nbytes + self._old.nbytes

    def find(self, keys: Sequence[Key]) -> Numbers:
        """Return the numbers of distinct keys as int64, -1 for one that is not here.

        Numbers hold until :meth:`age` is called.
        """
        numbers = self._young.find(keys)
        if not self._old.numbers:
            return numbers
        missing = np.flatnonzero(numbers < 0)
        sought = [keys[position] for position in missing.tolist()]
        before = self._old.find(sought)
        there = np.flatnonzero(before >= 0)
        if len(there):
            again = [sought[position] for position in there.tolist()]
            size = sum(map(_size_of, again))
            numbers[missing[there]] = self._young.add(again, self._old.results(before[there]), size)
        return numbers

    def add(self, keys: Sequence[Key], results: Vector, nbytes: int) -> Numbers:
        """Add results of keys that are not here, which have ``nbytes`` bytes of arguments.

        Returns their numbers, int64.
        """
        return self._young.add(keys, results, nbytes + KEY_BYTES * len(keys))

    def results(self, numbers: Numbers) -> Vector:
        """Return remembered results."""
        return self._young.results(numbers)

    def room_for_errors(self) -> int:
        """Return how many errors more may be remembered."""
        return max(MOST_ERRORS - len(self._young.errors), 0)

    def age(self) -> None:
        """Forget what was not asked for lately, once the younger half of the room is full."""
        if 2 * self._young.nbytes > self._capacity:
            self._old, self._young = self._young, _Generation()

    def resize(self, capacity: int) -> None:
        """Hold at most ``capacity`` bytes from now on; the excess goes at once."""
        self._capacity = capacity
        self.age()
        if self.nbytes > capacity:
            self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._old, self._young = _Generation(), _Generation()


def _size_of(key: Key) -> int:
    return KEY_BYTES + (len(key) if isinstance(key, bytes) else 0)
