"""Distinct keys, numbered as they come: what tells copies of a row apart from new rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.storage.hash_index import HashIndex, confirmed
from eddyline.engine.storage.key_words import KeyColumn
from eddyline.engine.storage.slots import Matches, Probing, all_valid, words_of


class KeySet:
    """Keys of one or more columns, each held once; its number is its place among them.

    Two keys are the same if all their columns are equal as join keys are, except that NULL
    is equal to NULL: the columns are taken as the fields of one struct, where Spark has it so.

    >>> keys = KeySet([pa.string()])
    >>> keys.add([pa.array(["a", None, "a"])]).tolist()
    [0, 1]
    >>> keys.find([pa.array([None, "b", "a"])]).tolist()
    [1, -1, 0]
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        """UnsupportedKeyError for a type that cannot be joined on."""
        self._names = [str(number) for number in range(len(types))]
        self._type = pa.struct(list(zip(self._names, types, strict=True)))
        self._held = KeyColumn(self._type)
        self._index = HashIndex([self._held])
        self._size = 0

    def __len__(self) -> int:
        """Return the number of distinct keys."""
        return self._size

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._held.nbytes + self._index.nbytes

    def find(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """Return the number of each key, -1 where it is not in the set."""
        return self._found(self._keys(columns))

    def add(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """Take keys in; return the positions of those that are new, each where it comes first."""
        added = self._keys(columns)
        unknown = np.flatnonzero(self._found(added) < 0)
        positions = np.sort(_first_ones(added, unknown))
        if len(positions):
            taken = pa.array(positions)
            self._held.append(self._struct([column.take(taken) for column in columns]))
            self._size += len(positions)
            self._index.catch_up(self._size)
        return positions

    def _found(self, keys: KeyColumn) -> npt.NDArray[np.int64]:
        places = np.arange(len(keys.words[0]), dtype=np.int64)
        probing = Probing(words_of([keys]), all_valid([keys]), places)
        here = np.array([self._size], np.int64)
        # With no limit: no key is held twice, so there is hardly more than one match for each.
        matches, _ = self._index.probe(probing, np.array([0]), here, None, sys.maxsize)
        matches = confirmed(matches, [keys], [places], [self._held])
        numbers = np.full(len(places), -1, np.int64)
        numbers[matches.positions] = matches.places
        return numbers

    def _keys(self, columns: Sequence[pa.Array]) -> KeyColumn:
        keys = KeyColumn(self._type)
        keys.append(self._struct(columns))
        return keys

    def _struct(self, columns: Sequence[pa.Array]) -> pa.StructArray:
        return pa.StructArray.from_arrays(list(columns), fields=list(self._type))


def _first_ones(keys: KeyColumn, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the first of ascending rows with each key, in no set order."""
    firsts = []
    while len(rows):
        words = [word[rows] for word in keys.words]
        order = np.lexsort(words)  # stable: of equal rows the first stays first
        starts = np.ones(len(rows), np.bool_)
        starts[1:] = np.any([word[order[1:]] != word[order[:-1]] for word in words], axis=0)
        leaders = order[starts]
        firsts.append(rows[leaders])
        # Texts of one hash and yet not the leader's go round again; nobody meets them by chance.
        pairs = Matches(
            order, np.repeat(rows[leaders], np.diff(np.append(np.flatnonzero(starts), len(rows))))
        )
        same = confirmed(pairs, [keys], [rows], [keys])
        rows = np.delete(rows, same.positions)
    return np.concatenate(firsts) if firsts else rows
