"""A hash index over one or more key columns of a row store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from eddyline.engine.storage import kernels
from eddyline.engine.storage.growing import GrowingArray, room_for
from eddyline.engine.storage.key_words import KeyColumn

Bound: TypeAlias = "npt.NDArray[np.int64]"
"""Row places that bound what counts as a match: one for all probing tuples, or one a tuple."""

LIST_SIZE = 8
"""Rows up to which a SteM is a list: comparing with each takes no longer than hashing.

Probing 64k tuples takes 0.3 ms against a list of 4 rows and 0.5 ms against one of 8; a hash
table of any such size takes 0.4 ms.
"""

LEAST_SLOTS = 1 << 10

ROOM = 1 << 16
"""Matches that a probe has room for at first; more are found in further rounds."""

NO_FLAGS = np.zeros(1, np.bool_)


class Matches(NamedTuple):
    """Pairs: a position among the probing tuples, and the place of a stored row."""

    positions: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]


class Probing(NamedTuple):
    """The keys of probing tuples: words of some rows, and the row of each tuple.

    ``words`` has one array a word; ``valid`` tells which rows have a key, None where all do.
    """

    words: tuple[npt.NDArray[np.int64], ...]
    valid: npt.NDArray[np.bool_] | None
    rows: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of tuples."""
        return len(self.rows)


class HashIndex:
    """Finds the rows of a store by the words of a set of its columns.

    The columns grow beside the index; :meth:`catch_up` takes in what is new. While it
    holds few rows it is a list that every probe is compared with ("the SteM may use a
    linked list when it holds a small number of tuples, and switch to a hash-based
    implementation when the list size increases": Raman, Deshpande and Hellerstein, 2003,
    Section 3.1). Rows with a NULL in the key match nothing.
    """

    def __init__(self, columns: Sequence[KeyColumn]) -> None:
        """Make an index that has taken in none of the rows yet."""
        self._columns = tuple(columns)
        self._rows = 0
        self._heads: npt.NDArray[np.int32] | None = None
        self._chain = GrowingArray(np.int32)
        self._keys = self._no_keys()
        self._shift = np.uint64(0)

    @property
    def is_list(self) -> bool:
        """Whether there is no hash table yet."""
        return self._heads is None

    @property
    def nbytes(self) -> int:
        """Bytes held, the columns not counted."""
        heads = 0 if self._heads is None else self._heads.nbytes
        return heads + self._chain.nbytes + self._keys.nbytes

    def catch_up(self, rows: int) -> None:
        """Take in the rows up to ``rows``."""
        if rows == self._rows:
            return
        if self._heads is None and rows <= LIST_SIZE:
            self._rows = rows
            return
        self._chain.extend(rows - len(self._chain), -1)
        start = self._rows
        if self._heads is None or rows * 2 > len(self._heads):
            bits = max(LEAST_SLOTS, 2 * rows).bit_length()
            self._heads = room_for(1 << bits, np.int32)
            self._heads.fill(-1)
            self._shift = np.uint64(64 - bits)
            start = 0
        valid = all_valid(self._columns)
        words = words_of(self._columns)
        if len(words) > 1:
            first = len(self._keys)
            self._keys.lengthen(rows - first)
            kernels.lay_together(words, first, rows, self._keys.values)
        kernels.link(
            words,
            NO_FLAGS if valid is None else valid,
            valid is not None,
            start,
            rows,
            self._heads,
            self._chain.values,
            self._shift,
        )
        self._rows = rows

    def rebuild(self) -> None:
        """Take in all rows anew: places have changed."""
        self._heads = None
        self._rows = 0
        self._chain = GrowingArray(np.int32)
        self._keys = self._no_keys()

    def probe(
        self,
        probing: Probing,
        low: Bound,
        high: Bound,
        dead: npt.NDArray[np.bool_] | None,
        most: int,
    ) -> tuple[Matches, int]:
        """Return the matches of tuples by their words, and how many tuples were probed.

        A stored row counts at places from ``low`` to below ``high``, unless ``dead``. Matches
        are found some ten thousand at a time; once there are ``most`` no further tuple is
        probed, but the one at hand is finished. Where a word is only a hash the matches are
        to be confirmed.
        """
        if self._heads is None or not len(probing):
            return self._probe_list(probing, low, high, dead), len(probing)
        words, valid, rows = probing
        plain = len(words) == 1 and valid is None and dead is None and len(low) == len(high) == 1
        stored, chain = self._stored(), self._chain.values
        parts: list[Matches] = []
        total = start = 0
        resume = -1
        room = max(ROOM, len(rows) + 16)
        tuples = rows
        while start < len(tuples):
            positions = room_for(room, np.int64)
            matches = room_for(room, np.int64)
            if plain:
                n, start, resume = kernels.probe_single(
                    words[0],
                    tuples,
                    stored,
                    self._heads,
                    chain,
                    self._shift,
                    low[0],
                    high[0],
                    start,
                    resume,
                    positions,
                    matches,
                )
            else:
                n, start, resume = kernels.probe_chains(
                    words,
                    tuples,
                    NO_FLAGS if valid is None else valid,
                    valid is not None,
                    stored,
                    self._heads,
                    chain,
                    self._shift,
                    low,
                    high,
                    NO_FLAGS if dead is None else dead,
                    dead is not None,
                    start,
                    resume,
                    positions,
                    matches,
                )
            parts.append(Matches(positions[:n], matches[:n]))
            total += n
            if total >= most and start < len(tuples):
                tuples = rows[: start + 1]  # only to the end of the tuple at hand
        return parts[0] if len(parts) == 1 else _joined(parts), len(tuples)

    def exists(self, probing: Probing, dead: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        """Return which tuples may have a match: certain but for words that are hashes."""
        found = np.zeros(len(probing), np.bool_)
        if self._heads is None:
            matches = self._probe_list(probing, np.array([0]), np.array([self._rows]), dead)
            found[matches.positions] = True
            return found
        words, valid, rows = probing
        kernels.exist_in_chains(
            words,
            rows,
            NO_FLAGS if valid is None else valid,
            valid is not None,
            self._stored(),
            self._heads,
            self._chain.values,
            self._shift,
            NO_FLAGS if dead is None else dead,
            dead is not None,
            found,
        )
        return found

    def _no_keys(self) -> GrowingArray:
        """Return room for keys with their words side by side; of one word they need none."""
        words = sum(len(column.words) for column in self._columns)
        return GrowingArray(np.int64, (words,))

    def _stored(self) -> npt.NDArray[np.int64]:
        """Return the keys, shape (rows, words)."""
        words = words_of(self._columns)
        keys: npt.NDArray[np.int64] = self._keys.values if len(words) > 1 else words[0][:, None]
        return keys

    def _probe_list(
        self, probing: Probing, low: Bound, high: Bound, dead: npt.NDArray[np.bool_] | None
    ) -> Matches:
        words, valid, rows = probing
        room = len(rows) * self._rows
        positions = np.empty(room, np.int64)
        matches = np.empty(room, np.int64)
        stored_valid = all_valid(self._columns)
        n = kernels.probe_list(
            words,
            rows,
            NO_FLAGS if valid is None else valid,
            valid is not None,
            words_of(self._columns),
            NO_FLAGS if stored_valid is None else stored_valid,
            stored_valid is not None,
            low,
            high,
            NO_FLAGS if dead is None else dead,
            dead is not None,
            positions,
            matches,
        )
        return Matches(positions[:n], matches[:n])


def words_of(columns: Sequence[KeyColumn]) -> tuple[npt.NDArray[np.int64], ...]:
    """Return the words of several columns side by side."""
    return tuple(_all_words(columns))


def _all_words(columns: Sequence[KeyColumn]) -> Iterator[npt.NDArray[np.int64]]:
    for column in columns:
        yield from column.words


def all_valid(columns: Sequence[KeyColumn]) -> npt.NDArray[np.bool_] | None:
    """Return which rows have no NULL in any of the columns; None where all rows have none."""
    flags = [column.valid for column in columns if column.valid is not None]
    if not flags:
        return None
    whole = flags[0]
    for further in flags[1:]:
        whole = whole & further
    return whole


def confirmed(
    found: Matches,
    columns: Sequence[KeyColumn],
    places: Sequence[npt.NDArray[np.int64]],
    stored: Sequence[KeyColumn],
) -> Matches:
    """Drop the pairs that only look equal, since a word was a hash.

    ``columns`` are those of the probing tuples, with each tuple's place in them; ``stored``
    those of the index.
    """
    if not any(column.hashed for column in stored) or not len(found.places):
        return found
    equal = np.ones(len(found.places), np.bool_)
    for column, at, other in zip(columns, places, stored, strict=True):
        column.confirm(other, at, found.positions, found.places, equal)
    return found if equal.all() else Matches(found.positions[equal], found.places[equal])


def _joined(parts: list[Matches]) -> Matches:
    return Matches(
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.places for part in parts]),
    )
