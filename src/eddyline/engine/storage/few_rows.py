"""Kernels as NumPy does them: for so few rows that to import Numba would take longer.

To import Numba and to load the first kernel takes a worker 0.35 s, in which these do tens of
millions of rows. So a worker begins with these, and goes on with compiled ones after
:data:`UNTIL` rows, or as soon as it needs a kernel that has no form here: one that follows chains
of repeated keys, that hashes keys, or makes words of texts. Both forms give the same, which
``tests/engine/storage/test_few_rows.py`` compares.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

LEAST: Final = np.int64(np.iinfo(np.int64).min)
GREATEST: Final = np.int64(np.iinfo(np.int64).max)

UNTIL: Final = 1 << 22
"""Rows, or bytes of texts, that a process takes on this way; each takes 5 to 15 ns longer."""

Whole = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class _Done:
    """The rows that this process has taken on, in all."""

    rows = 0
    until = UNTIL


def pays() -> bool:
    """Whether so few rows have come that compiled kernels are not worth their import yet."""
    return _Done.rows < _Done.until


def compile_at_once() -> None:
    """Have this process use compiled kernels from its first row on."""
    _Done.until = 0


def span(words: Whole, valid: Mask, has_nulls: bool, start: int, stop: int) -> tuple[Any, Any]:  # noqa: FBT001 - as the compiled one
    """Return the least and the greatest key of rows; the second is below the first if none."""
    _Done.rows += stop - start
    counted = words[start:stop]
    if has_nulls:
        counted = counted[valid[start:stop]]
    return (counted.min(), counted.max()) if len(counted) else (GREATEST, LEAST)


def link_dense(
    words: Whole,
    valid: Mask,
    has_nulls: bool,  # noqa: FBT001 - as the compiled one
    start: int,
    stop: int,
    heads: Places,
    chain: Places,
    least: np.int64,
) -> bool:
    """Put rows into the chains of their slots; tell if some key was there before."""
    _Done.rows += stop - start
    rows = np.arange(start, stop, dtype=np.int32)
    if has_nulls:
        chain[start:stop] = -1
        rows = rows[valid[start:stop]]
    if not len(rows):
        return False
    slots = words[rows] - least
    order = np.argsort(slots, kind="stable")
    slots, rows = slots[order], rows[order]
    is_first = np.empty(len(rows), np.bool_)  # of its slot, among these rows
    is_first[0] = True
    np.not_equal(slots[1:], slots[:-1], out=is_first[1:])
    older = np.where(is_first, heads[slots], np.roll(rows, 1))
    chain[rows] = older
    is_last = np.roll(is_first, -1)
    heads[slots[is_last]] = rows[is_last]
    return bool((older >= 0).any())


def _heads_of(words: Whole, rows: npt.NDArray[Any], heads: Places, least: np.int64) -> Places:
    """Return the row at which the chain of each tuple's key starts, -1 for none."""
    _Done.rows += len(rows)
    distances = words[rows].view(np.uint64) - np.int64(least).view(np.uint64)
    has_slot = distances < np.uint64(len(heads))  # of a smaller word: beyond the end
    places: Places = heads[np.where(has_slot, distances, np.uint64(0)).view(np.int64)]
    places[~has_slot] = -1
    return places


def probe_unique(
    words: Whole,
    rows: npt.NDArray[Any],
    heads: Places,
    least_word: np.int64,
    low: int,
    high: int,
    positions: Whole,
    matches: Whole,
) -> int:
    """Fill in the pairs of tuples and rows where no key is repeated; return how many."""
    places = _heads_of(words, rows, heads, least_word)
    (found,) = np.nonzero((places >= low) & (places < high))
    positions[: len(found)] = found
    matches[: len(found)] = places[found]
    return len(found)


def exist_dense(
    words: Whole,
    rows: npt.NDArray[Any],
    valid: Mask,
    has_nulls: bool,  # noqa: FBT001 - as the compiled one
    heads: Places,
    chain: Places,
    least_word: np.int64,
    dead: Mask,
    has_dead: bool,  # noqa: FBT001 - as the compiled one
    found: Mask,
) -> None:
    """Set ``found``, which is clear, for each tuple that has a match at all."""
    places = _heads_of(words, rows, heads, least_word)
    if has_nulls:
        places[~valid[rows]] = -1
    while has_dead:
        (at_dead,) = np.nonzero(places >= 0)
        at_dead = at_dead[dead[places[at_dead]]]
        if not len(at_dead):
            break
        places[at_dead] = chain[places[at_dead]]
    found[: len(places)] = places >= 0


def text_sizes(offsets: Whole, rows: npt.NDArray[Any], new_offsets: Whole) -> int:
    """Fill the offsets that the texts of ``rows`` have end to end; return the bytes."""
    new_offsets[0] = 0
    np.cumsum(offsets[1:][rows] - offsets[:-1][rows], out=new_offsets[1:])
    return int(new_offsets[-1])


def gather_texts(
    offsets: Whole,
    data: npt.NDArray[np.uint8],
    rows: npt.NDArray[Any],
    new_offsets: Whole,
    new_data: npt.NDArray[np.uint8],
) -> None:
    """Copy the texts of ``rows`` end to end."""
    _Done.rows += len(new_data)
    moved = offsets[:-1][rows] - new_offsets[:-1]
    from_where = np.arange(len(new_data)) + np.repeat(moved, np.diff(new_offsets))
    np.take(data, from_where, out=new_data)
