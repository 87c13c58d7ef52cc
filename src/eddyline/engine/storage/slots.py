"""Where the chains of a hash index start: at a hash of the key, or at the key itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from eddyline.engine.storage.growing import GrowingArray, room_for
from eddyline.engine.storage.key_words import KeyColumn
from eddyline.engine.storage.on_first_use import OnFirstUse

kernels = OnFirstUse("eddyline.engine.storage.kernels")

Bound: TypeAlias = "npt.NDArray[np.int64]"
"""Row places that bound what counts as a match: one for all probing tuples, or one a tuple."""

LEAST_SLOTS = 1 << 10
"""Slots of a hash table at least."""

SLOTS_A_ROW = 4
"""Slots for each row up to which keys are taken as lying close together: a hash table has 2 to 4.

Probing 2 million tuples in batches of 65,536, nanoseconds a tuple, by the key itself and by its
hash: 3 and 6 to 11 where 2,000 rows are stored, 7 to 8 and 12 to 18 with 200,000, 10 to 39 and
34 to 54 with a million. With 16 slots a row and 200,000 rows it is 28 and 12.
"""

FEW_SLOTS = 1 << 16
"""Slots that are not too many for any number of rows: a quarter of a megabyte."""

MARGIN = 4
"""What lay close together gets room for one part in so many more when a key lies outside of it."""

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


class Lineage(NamedTuple):
    """The lineage of tuples and of stored rows, as numbers of sets, and the spans of these.

    See :func:`eddyline.engine.storage.kernels.apart`.
    """

    probing: npt.NDArray[np.int32]
    stored: npt.NDArray[np.int32]
    spans: npt.NDArray[np.int64]


NO_LINEAGE = Lineage(np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros((1, 3), np.int64))


class Counting(NamedTuple):
    """Which stored rows count: at places from ``low`` to below ``high``, unless ``dead``.

    Where ``lineage`` is given, pairs may be left out that have no query in common.
    """

    low: Bound
    high: Bound
    dead: npt.NDArray[np.bool_] | None
    lineage: Lineage | None = None

    @property
    def alike(self) -> bool:
        """Whether the same rows count for all tuples, and nothing but their places decides."""
        if self.dead is not None or self.lineage is not None:
            return False
        return len(self.low) == len(self.high) == 1


class ProbeProgress(NamedTuple):
    """What a round of probing found: so many pairs, and where to go on.

    That is the number of a tuple, that of all tuples where it is done, and the place in its
    chain, -1 for the start of the chain.
    """

    found: int
    tuple: int
    place: int


class Slots(Protocol):
    """Chains of rows, by slot."""

    @property
    def nbytes(self) -> int:
        """Bytes held, the columns not counted."""
        ...

    def take_in(self, start: int, rows: int) -> bool:
        """Take in the rows from ``start`` to ``rows``; False if there is no room for them."""
        ...

    def probe(
        self,
        probing: Probing,
        counting: Counting,
        since: ProbeProgress,
        positions: npt.NDArray[np.int64],
        matches: npt.NDArray[np.int64],
    ) -> ProbeProgress:
        """Fill in pairs for the tuples from where an earlier round stopped."""
        ...

    def exist(
        self,
        probing: Probing,
        dead: npt.NDArray[np.bool_] | None,
        found: npt.NDArray[np.bool_],
    ) -> None:
        """Set ``found``, which is clear, for each tuple that may have a match."""
        ...


class HashedSlots:
    """Slots by a hash of the key: for any words, compared with those of the rows of a chain."""

    def __init__(self, columns: Sequence[KeyColumn]) -> None:
        self._columns = columns
        self._heads: npt.NDArray[np.int32] = np.empty(0, np.int32)
        self._shift = np.uint64(0)
        self._chain = GrowingArray(np.int32)
        # The words of each key side by side; those of one word lie so already.
        self._keys = GrowingArray(np.int64, (sum(len(column.words) for column in columns),))

    @property
    def nbytes(self) -> int:
        """Bytes held, the columns not counted."""
        return self._heads.nbytes + self._chain.nbytes + self._keys.nbytes

    def make_room(self, rows: int) -> None:
        """Make empty slots for so many rows, and some more."""
        bits = max(LEAST_SLOTS, 2 * rows).bit_length()
        self._heads = _empty(1 << bits)
        self._shift = np.uint64(64 - bits)

    def take_in(self, start: int, rows: int) -> bool:
        """Take in the rows from ``start`` to ``rows``; False if there are too few slots."""
        if rows * 2 > len(self._heads):
            return False
        self._chain.extend(rows - len(self._chain), -1)
        valid = all_valid(self._columns)
        words = words_of(self._columns)
        if len(words) > 1:
            first = len(self._keys)
            self._keys.lengthen(rows - first)
            kernels.lay_together(words, first, rows, self._keys.values)
        kernels.link(
            words,
            *flags(valid),
            start,
            rows,
            self._heads,
            self._chain.values,
            self._shift,
        )
        return True

    def probe(
        self,
        probing: Probing,
        counting: Counting,
        since: ProbeProgress,
        positions: npt.NDArray[np.int64],
        matches: npt.NDArray[np.int64],
    ) -> ProbeProgress:
        """Fill in pairs for the tuples from where an earlier round stopped."""
        words, valid, rows = probing
        low, high, dead, lineage = counting
        if len(words) == 1 and valid is None and counting.alike:
            progress = kernels.probe_single(
                words[0],
                rows,
                self._stored(),
                self._heads,
                self._chain.values,
                self._shift,
                low[0],
                high[0],
                since.tuple,
                since.place,
                positions,
                matches,
            )
        else:
            progress = kernels.probe_chains(
                words,
                rows,
                *flags(valid),
                self._stored(),
                self._heads,
                self._chain.values,
                self._shift,
                low,
                high,
                *flags(dead),
                *(lineage or NO_LINEAGE),
                lineage is not None,
                since.tuple,
                since.place,
                positions,
                matches,
            )
        return ProbeProgress(*progress)

    def exist(
        self,
        probing: Probing,
        dead: npt.NDArray[np.bool_] | None,
        found: npt.NDArray[np.bool_],
    ) -> None:
        """Set ``found``, which is clear, for each tuple that may have a match."""
        words, valid, rows = probing
        kernels.exist_in_chains(
            words,
            rows,
            *flags(valid),
            self._stored(),
            self._heads,
            self._chain.values,
            self._shift,
            *flags(dead),
            found,
        )

    def _stored(self) -> npt.NDArray[np.int64]:
        """Return the keys, shape (rows, words)."""
        words = words_of(self._columns)
        keys: npt.NDArray[np.int64] = self._keys.values if len(words) > 1 else words[0][:, None]
        return keys


class DenseSlots:
    """Slots by the key itself: for keys of one word that lie close together.

    Numbers given out in sequence do, and so do dates and codes. Nothing is hashed and
    nothing compared, and as long as no key comes twice a probe is a loop without branches.
    """

    def __init__(self, column: KeyColumn, least: int, slots: int) -> None:
        """``least`` is the least key that there is a slot for."""
        self.keys = range(least, least + slots)
        self._column = column
        self._least = np.int64(least)
        self._heads = _empty(slots)
        self._chain = GrowingArray(np.int32)
        self._repeated = False

    @classmethod
    def fitting(
        cls, columns: Sequence[KeyColumn], rows: int, before: Slots | None
    ) -> DenseSlots | None:
        """Return slots for the first rows of columns; None if their keys do not lie close together.

        Keys that have grown out of the slots ``before`` get room to grow further.
        """
        if len(words_of(columns)) > 1:
            return None
        (column,) = columns
        least, greatest = _span(column, 0, rows)
        if least > greatest:
            return cls(column, 0, 1)  # no row has a key, so far
        if isinstance(before, DenseSlots):
            more = len(before.keys) // MARGIN
            if least < before.keys.start:
                least = max(least - more, int(kernels.LEAST))
            if greatest >= before.keys.stop:
                greatest += more
        slots = greatest - least + 1
        if slots > max(FEW_SLOTS, SLOTS_A_ROW * rows):
            return None
        return cls(column, least, slots)

    @property
    def nbytes(self) -> int:
        """Bytes held, the columns not counted."""
        return self._heads.nbytes + self._chain.nbytes

    def take_in(self, start: int, rows: int) -> bool:
        """Take in the rows from ``start`` to ``rows``; False if a key has no slot."""
        least, greatest = _span(self._column, start, rows)
        if least <= greatest and not (least in self.keys and greatest in self.keys):
            return False
        self._chain.lengthen(rows - len(self._chain))
        self._repeated |= kernels.link_dense(
            self._column.words[0],
            *flags(self._column.valid),
            start,
            rows,
            self._heads,
            self._chain.values,
            self._least,
        )
        return True

    def probe(
        self,
        probing: Probing,
        counting: Counting,
        since: ProbeProgress,
        positions: npt.NDArray[np.int64],
        matches: npt.NDArray[np.int64],
    ) -> ProbeProgress:
        """Fill in pairs for the tuples from where an earlier round stopped."""
        (words,), valid, rows = probing
        low, high, dead, lineage = counting
        tuples = len(rows)
        if not self._repeated and valid is None and counting.alike and len(matches) > tuples:
            pairs = kernels.probe_unique(
                words, rows, self._heads, self._least, low[0], high[0], positions, matches
            )
            return ProbeProgress(pairs, tuples, -1)
        return ProbeProgress(
            *kernels.probe_dense(
                words,
                rows,
                *flags(valid),
                self._heads,
                self._chain.values,
                self._least,
                low,
                high,
                *flags(dead),
                *(lineage or NO_LINEAGE),
                lineage is not None,
                since.tuple,
                since.place,
                positions,
                matches,
            )
        )

    def exist(
        self,
        probing: Probing,
        dead: npt.NDArray[np.bool_] | None,
        found: npt.NDArray[np.bool_],
    ) -> None:
        """Set ``found``, which is clear, for each tuple that has a match."""
        (words,), valid, rows = probing
        kernels.exist_dense(
            words,
            rows,
            *flags(valid),
            self._heads,
            self._chain.values,
            self._least,
            *flags(dead),
            found,
        )


def flags(mask: npt.NDArray[np.bool_] | None) -> tuple[npt.NDArray[np.bool_], bool]:
    """Return a mask as kernels take it: an array in any case, and whether it counts."""
    return (NO_FLAGS, False) if mask is None else (mask, True)


def _empty(slots: int) -> npt.NDArray[np.int32]:
    heads: npt.NDArray[np.int32] = room_for(slots, np.int32)
    heads.fill(-1)
    return heads


def _span(column: KeyColumn, start: int, rows: int) -> tuple[int, int]:
    """Return the least and the greatest key of rows; the second is below the first if none."""
    least, greatest = kernels.span(column.words[0], *flags(column.valid), start, rows)
    return int(least), int(greatest)


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
