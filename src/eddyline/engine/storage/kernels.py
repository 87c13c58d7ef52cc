"""Loops over arrays, compiled by Numba: building and probing chains of rows.

Plain loops with no dispatch; callers check shapes and types. All arrays are
one-dimensional and contiguous unless said otherwise. A kernel is compiled when it is
first called and kept in Numba's cache, if it can have one, so that another process only loads it.

A hash index is an array ``heads`` of 2^k row places (-1: empty) and an array ``chain``
that gives for each row the next older one of the same slot. Rows are linked at the
front, so that a chain runs from new to old. ``stored`` are the keys of the rows, shape
(rows, words): the words of one key lie in one place, since that is one cache miss.

Where keys are whole numbers that lie close together, the slot of a key is its distance
from the least one. Then a slot has rows of one key only, and none is compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: Fibonacci hashing
HALF = np.uint64(32)
LEAST = np.int64(np.iinfo(np.int64).min)
GREATEST = np.int64(np.iinfo(np.int64).max)

TOGETHER = 1024
"""Tuples that are probed side by side: 64 KB of cache lines for each thing that is looked up."""


def _can_be_kept() -> bool:
    """Tell whether Numba has a folder for what it compiles.

    An executor in a container often has none: its packages and its home are not writable.
    """
    try:
        probe: Any = njit(cache=True)(_can_be_kept)
        probe._cache._impl.locator.ensure_cache_path()  # noqa: SLF001 - nothing public tells
    except (OSError, RuntimeError):
        return False
    return True


KEPT = _can_be_kept()

compiled: Any = njit(cache=KEPT, nogil=True)
inlined: Any = njit(cache=KEPT, nogil=True, inline="always")


@inlined
def slot_of(keys, at, shift):
    """Return the slot of the key in row ``at`` of the key columns."""
    mixed = np.uint64(keys[0][at]) * GOLDEN
    for k in range(1, len(keys)):
        mixed ^= mixed >> HALF
        mixed = (mixed + np.uint64(keys[k][at])) * GOLDEN
    return np.int64(mixed >> shift)


@inlined
def apart(spans, one, other):
    """Tell whether two sets surely have nothing in common: most that have nothing, at a glance.

    ``spans``, shape (sets, 3), has the least and the greatest member of each set, and a mask in
    which each member has one of 64 bits.
    """
    return (
        spans[one, 1] < spans[other, 0]
        or spans[other, 1] < spans[one, 0]
        or spans[one, 2] & spans[other, 2] == 0
    )


@compiled
def link(keys, valid, has_nulls, start, stop, heads, chain, shift):
    """Put rows ``start`` to ``stop`` into the chains; a row with a NULL in its key into none."""
    for row in range(start, stop):
        if has_nulls and not valid[row]:
            continue
        slot = slot_of(keys, row, shift)
        chain[row] = heads[slot]
        heads[slot] = row


@compiled
def lay_together(keys, start, stop, stored):
    """Copy the words of rows ``start`` to ``stop`` to where those of one key lie together."""
    for row in range(start, stop):
        for k in range(len(keys)):
            stored[row, k] = keys[k][row]


@compiled
def probe_chains(
    probing,
    rows,
    valid,
    has_nulls,
    stored,
    heads,
    chain,
    shift,
    low,
    high,
    dead,
    has_dead,
    lineage,
    stored_lineage,
    spans,
    has_lineage,
    start,
    resume,
    positions,
    matches,
):
    """Find the stored rows whose key equals that of each probing tuple.

    ``rows`` are the rows of the probing key columns, one a tuple. A stored row counts if
    it is not below ``low`` and is below ``high`` (each one number, or one a tuple), is not
    ``dead``, and its lineage is not surely apart from the tuple's (see :func:`apart`).
    Tuples from number ``start`` on are probed, the first one from place ``resume`` of its
    chain if that is not -1. Fills ``positions`` and ``matches``; returns how many, and where
    to go on when they are full: the tuple (their number when all are done) and its place.
    """
    tuples = len(rows)
    room = len(matches)
    several_low = len(low) > 1
    several_high = len(high) > 1
    words = len(probing)
    # Three passes over some tuples at a time: their heads are loaded without waiting for each
    # other, and so is what stands where their chains start.
    places = np.empty(TOGETHER, np.int32)
    following = np.empty(TOGETHER, np.int32)
    first_words = np.empty(TOGETHER, np.int64)
    pairs = 0
    for base in range(start, tuples, TOGETHER):
        count = min(TOGETHER, tuples - base)
        for n in range(count):
            row = rows[base + n]
            if has_nulls and not valid[row]:
                places[n] = -1
            else:
                places[n] = heads[slot_of(probing, row, shift)]
        if resume >= 0:
            places[0] = resume
            resume = -1
        for n in range(count):
            place = max(places[n], 0)
            first_words[n] = stored[place, 0]
            following[n] = chain[place]
        for n in range(count):
            place = places[n]
            if place < 0:
                continue
            i = base + n
            row = rows[i]
            least = low[i] if several_low else low[0]
            most = high[i] if several_high else high[0]
            word = probing[0][row]
            first, following_one = first_words[n], following[n]
            while place >= least:
                if place < most and first == word:
                    equal = True
                    for k in range(1, words):
                        if stored[place, k] != probing[k][row]:
                            equal = False
                            break
                    if (
                        equal
                        and not (has_dead and dead[place])
                        and not (has_lineage and apart(spans, lineage[i], stored_lineage[place]))
                    ):
                        if pairs == room:
                            return pairs, i, place
                        positions[pairs] = i
                        matches[pairs] = place
                        pairs += 1
                place = following_one
                if place >= 0:
                    first, following_one = stored[place, 0], chain[place]
    return pairs, tuples, -1


@compiled
def probe_single(
    probing, rows, stored, heads, chain, shift, low, high, start, resume, positions, matches
):
    """Do what :func:`probe_chains` does for the plain case, with less in its loop.

    That is: one word, no NULLs, none dead, and ``low`` and ``high`` are numbers.
    """
    tuples = len(rows)
    room = len(matches)
    places = np.empty(TOGETHER, np.int32)
    following = np.empty(TOGETHER, np.int32)
    first_words = np.empty(TOGETHER, np.int64)
    pairs = 0
    for base in range(start, tuples, TOGETHER):
        count = min(TOGETHER, tuples - base)
        for n in range(count):
            places[n] = heads[np.int64((np.uint64(probing[rows[base + n]]) * GOLDEN) >> shift)]
        if resume >= 0:
            places[0] = resume
            resume = -1
        for n in range(count):
            place = max(places[n], 0)
            first_words[n] = stored[place, 0]
            following[n] = chain[place]
        for n in range(count):
            place = places[n]
            if place < low:
                continue
            word = probing[rows[base + n]]
            first, following_one = first_words[n], following[n]
            while place >= low:
                if place < high and first == word:
                    if pairs == room:
                        return pairs, base + n, place
                    positions[pairs] = base + n
                    matches[pairs] = place
                    pairs += 1
                place = following_one
                if place >= 0:
                    first, following_one = stored[place, 0], chain[place]
    return pairs, tuples, -1


@compiled
def span(words, valid, has_nulls, start, stop):
    """Return the least and the greatest key of rows; the second is below the first if none."""
    least, greatest = GREATEST, LEAST
    for row in range(start, stop):
        if has_nulls and not valid[row]:
            continue
        word = words[row]
        least = min(least, word)
        greatest = max(greatest, word)
    return least, greatest


@compiled
def link_dense(words, valid, has_nulls, start, stop, heads, chain, least):
    """Do what :func:`link` does with slots from ``least`` on; tell if some key was there before."""
    repeated = False
    for row in range(start, stop):
        if has_nulls and not valid[row]:
            chain[row] = -1
            continue
        slot = words[row] - least
        older = heads[slot]
        chain[row] = older
        heads[slot] = row
        repeated |= older >= 0
    return repeated


@inlined
def dense_head(heads, least, word):
    """Return the row at which the chain of a key starts."""
    slot = np.uint64(word) - np.uint64(least)  # of a smaller word: beyond the end
    return heads[slot] if slot < np.uint64(len(heads)) else np.int32(-1)


@compiled
def probe_dense(
    words,
    rows,
    valid,
    has_nulls,
    heads,
    chain,
    least_word,
    low,
    high,
    dead,
    has_dead,
    lineage,
    stored_lineage,
    spans,
    has_lineage,
    start,
    resume,
    positions,
    matches,
):
    """Do what :func:`probe_chains` does where slots are distances from ``least_word``."""
    tuples = len(rows)
    room = len(matches)
    several_low = len(low) > 1
    several_high = len(high) > 1
    places = np.empty(TOGETHER, np.int32)
    following = np.empty(TOGETHER, np.int32)
    pairs = 0
    for base in range(start, tuples, TOGETHER):
        count = min(TOGETHER, tuples - base)
        for n in range(count):
            row = rows[base + n]
            places[n] = dense_head(heads, least_word, words[row])
            if has_nulls and not valid[row]:
                places[n] = -1
        if resume >= 0:
            places[0] = resume
            resume = -1
        for n in range(count):
            following[n] = chain[max(places[n], 0)]
        for n in range(count):
            place = places[n]
            i = base + n
            least = low[i] if several_low else low[0]
            most = high[i] if several_high else high[0]
            following_one = following[n]
            while place >= least:
                if (
                    place < most
                    and not (has_dead and dead[place])
                    and not (has_lineage and apart(spans, lineage[i], stored_lineage[place]))
                ):
                    if pairs == room:
                        return pairs, i, place
                    positions[pairs] = i
                    matches[pairs] = place
                    pairs += 1
                place = following_one
                if place >= 0:
                    following_one = chain[place]
    return pairs, tuples, -1


@compiled
def probe_unique(words, rows, heads, least_word, low, high, positions, matches):
    """Do what :func:`probe_dense` does in the plain case, where moreover no key is repeated.

    Each tuple is written down, and the next one over it if it has no match: with no branch to
    guess. There must be room for one pair more than there are tuples.
    """
    pairs = 0
    for i in range(len(rows)):
        place = dense_head(heads, least_word, words[rows[i]])
        positions[pairs] = i
        matches[pairs] = place
        pairs += int(low <= place < high)
    return pairs


@compiled
def exist_dense(words, rows, valid, has_nulls, heads, chain, least_word, dead, has_dead, found):
    """Set ``found``, which is clear, for each tuple that has a match at all."""
    for i in range(len(rows)):
        row = rows[i]
        if has_nulls and not valid[row]:
            continue
        place = dense_head(heads, least_word, words[row])
        while has_dead and place >= 0 and dead[place]:
            place = chain[place]
        found[i] = place >= 0


@compiled
def probe_list(
    probing,
    rows,
    valid,
    has_nulls,
    stored,
    stored_valid,
    stored_nulls,
    low,
    high,
    dead,
    has_dead,
    positions,
    matches,
):
    """Do what :func:`probe_chains` does by comparing with every stored row; room is enough."""
    pairs = 0
    several_low = len(low) > 1
    several_high = len(high) > 1
    for i in range(len(rows)):
        row = rows[i]
        if has_nulls and not valid[row]:
            continue
        least = low[i] if several_low else low[0]
        most = high[i] if several_high else high[0]
        for place in range(least, most):
            equal = True
            for k in range(len(stored)):
                if stored[k][place] != probing[k][row]:
                    equal = False
                    break
            if equal and not (stored_nulls and not stored_valid[place]):
                if has_dead and dead[place]:
                    continue
                positions[pairs] = i
                matches[pairs] = place
                pairs += 1
    return pairs


@compiled
def exist_in_chains(
    probing, rows, valid, has_nulls, stored, heads, chain, shift, dead, has_dead, found
):
    """Set ``found``, which is clear, for each tuple that has a match at all."""
    words = len(probing)
    for i in range(len(rows)):
        row = rows[i]
        if has_nulls and not valid[row]:
            continue
        place = heads[slot_of(probing, row, shift)]
        while place >= 0:
            equal = True
            for k in range(words):
                if stored[place, k] != probing[k][row]:
                    equal = False
                    break
            if equal and not (has_dead and dead[place]):
                found[i] = True
                break
            place = chain[place]


@compiled
def expand_ranges(starts, stops, order, low, high, dead, has_dead, positions, matches):
    """Turn a range of places in a sorted ``order`` for each tuple into pairs; return how many.

    As in :func:`probe_chains`, ``low`` and ``high`` bound the stored rows that count.
    """
    pairs = 0
    several_low = len(low) > 1
    several_high = len(high) > 1
    for i in range(len(starts)):
        least = low[i] if several_low else low[0]
        most = high[i] if several_high else high[0]
        for at in range(starts[i], stops[i]):
            row = order[at]
            if least <= row < most and not (has_dead and dead[row]):
                positions[pairs] = i
                matches[pairs] = row
                pairs += 1
    return pairs
