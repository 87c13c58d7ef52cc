"""A hash index over one or more key columns of a row store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from eddyline.engine.storage.growing import room_for
from eddyline.engine.storage.key_words import KeyColumn
from eddyline.engine.storage.on_first_use import OnFirstUse
from eddyline.engine.storage.slots import (
    Bound,
    Counting,
    DenseSlots,
    HashedSlots,
    Lineage,
    Matches,
    ProbeProgress,
    Probing,
    Slots,
    all_valid,
    flags,
    words_of,
)

kernels = OnFirstUse("eddyline.engine.storage.kernels")

LIST_SIZE = 8
"""Rows up to which a SteM is a list: comparing with each takes no longer than hashing.

Probing 64k tuples takes 0.3 ms against a list of 4 rows and 0.5 ms against one of 8; a hash
table of any such size takes 0.4 ms.
"""

MORE_ROOM = 4
"""Every round of a probe has room for so many times the matches of the one before.

The first has room for one match a tuple: a visit of a few tuples is to ask for little memory.
"""

FEW = 4
"""Matches are copied out of the room that was made for them if that is so many times as large."""

NO_ROOM = Matches(np.empty(0, np.int64), np.empty(0, np.int64))


class HashIndex:
    """Finds the rows of a store by the words of a set of its columns.

    The columns grow beside the index; :meth:`catch_up` takes in what is new. While it
    holds few rows it is a list that every probe is compared with ("the SteM may use a
    linked list when it holds a small number of tuples, and switch to a hash-based
    implementation when the list size increases": Raman, Deshpande and Hellerstein, 2003,
    Section 3.1). Rows with a NULL in the key match nothing.
    """

    def __init__(self, columns: Sequence[KeyColumn]) -> None:
        self._columns = tuple(columns)
        self._rows = 0
        self._slots: Slots | None = None
        self._spare = NO_ROOM

    @property
    def is_list(self) -> bool:
        """Whether there is no table yet."""
        return self._slots is None

    @property
    def nbytes(self) -> int:
        """Bytes held, the columns not counted."""
        room = self._spare.positions.nbytes + self._spare.places.nbytes
        return room + (0 if self._slots is None else self._slots.nbytes)

    def catch_up(self, rows: int) -> None:
        """Take in the rows up to ``rows``."""
        if rows == self._rows:
            return
        if rows > LIST_SIZE and (self._slots is None or not self._slots.take_in(self._rows, rows)):
            self._slots = self._roomier(rows)
            self._slots.take_in(0, rows)
        self._rows = rows

    def _roomier(self, rows: int) -> Slots:
        """Return empty slots with room for so many rows."""
        dense = DenseSlots.fitting(self._columns, rows, self._slots)
        if dense is not None:
            return dense
        hashed = self._slots if isinstance(self._slots, HashedSlots) else HashedSlots(self._columns)
        hashed.make_room(rows)
        return hashed

    def rebuild(self) -> None:
        """Take in all rows anew: places have changed."""
        self._slots = None
        self._rows = 0

    def probe(
        self,
        probing: Probing,
        low: Bound,
        high: Bound,
        dead: npt.NDArray[np.bool_] | None,
        most: int,
        lineage: Lineage | None = None,
    ) -> tuple[Matches, int]:
        """Return the matches of tuples by their words, and how many tuples were probed.

        A stored row counts at places from ``low`` to below ``high``, unless ``dead``. Matches
        are found some ten thousand at a time; once there are ``most`` no further tuple is
        probed, but the one at hand is finished. Where a word is only a hash the matches are
        to be confirmed. ``lineage`` leaves out most pairs that no query has in common.
        """
        counting = Counting(low, high, dead, lineage)
        if self._slots is None or not len(probing):
            return self._probe_list(probing, counting), len(probing)
        parts: list[Matches] = []
        total = 0
        room = len(probing) + 1
        progress = ProbeProgress(0, 0, -1)
        while progress.tuple < len(probing):
            pairs = self._room(room)
            progress = self._slots.probe(probing, counting, progress, *pairs)
            parts.append(self._taken(pairs, progress.found))
            total += progress.found
            room *= MORE_ROOM
            if total >= most and progress.tuple < len(probing):
                # Only to the end of the tuple at hand.
                at_hand = probing.rows[: progress.tuple + 1]
                probing = Probing(probing.words, probing.valid, at_hand)
        return parts[0] if len(parts) == 1 else _joined(parts), len(probing)

    def _room(self, pairs: int) -> Matches:
        """Return room for so many pairs, or more."""
        if len(self._spare.places) < pairs:
            self._spare = Matches(room_for(pairs, np.int64), room_for(pairs, np.int64))
        return self._spare

    def _taken(self, pairs: Matches, found: int) -> Matches:
        """Return the first pairs: a copy, where they are few, so that the room is used again.

        It is in the cache then, and tuples do not keep alive what has room for ten times as many.
        """
        if FEW * found <= len(pairs.places):
            return Matches(pairs.positions[:found].copy(), pairs.places[:found].copy())
        self._spare = NO_ROOM
        return Matches(pairs.positions[:found], pairs.places[:found])

    def exists(self, probing: Probing, dead: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        """Return which tuples may have a match: certain but for words that are hashes."""
        mask = np.zeros(len(probing), np.bool_)
        if self._slots is not None:
            self._slots.exist(probing, dead, mask)
        else:
            every = Counting(np.array([0]), np.array([self._rows]), dead)
            mask[self._probe_list(probing, every).positions] = True
        return mask

    def _probe_list(self, probing: Probing, counting: Counting) -> Matches:
        words, valid, rows = probing
        low, high, dead, _ = counting
        room = len(rows) * self._rows
        positions = np.empty(room, np.int64)
        matches = np.empty(room, np.int64)
        n = kernels.probe_list(
            words,
            rows,
            *flags(valid),
            words_of(self._columns),
            *flags(all_valid(self._columns)),
            low,
            high,
            *flags(dead),
            positions,
            matches,
        )
        return Matches(positions[:n], matches[:n])


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
