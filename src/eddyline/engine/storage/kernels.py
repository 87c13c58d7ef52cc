"""Loops over arrays, compiled by Numba: building and probing hash chains, gathering strings.

Plain loops with no dispatch; who calls them checks shapes and types. All arrays are
one-dimensional and contiguous unless said otherwise. A kernel is compiled when it is
first called and kept in Numba's cache, so that another process only loads it.

A hash index is an array ``heads`` of 2^k row places (-1: empty) and an array ``chain``
that gives for each row the next older one of the same slot. Rows are linked at the
front, so that a chain runs from new to old. ``stored`` are the keys of the rows, shape
(rows, words): the words of one key lie in one place, since that is one cache miss.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: Fibonacci hashing
MIXER = np.uint64(0xD6E8FEB86659FD93)  # an odd constant that spreads each bit over the word
HALF = np.uint64(32)
EIGHT = 8  # bytes of a word
SHORT_TEXT = 15  # bytes of a text that its two words hold
LONG_TEXT = np.uint64(0xFF)  # in place of the size, where a word is a hash of what follows
SIZE_PLACE = np.uint64(56)  # bits of the second word below the size
ALL_BITS = np.uint64(2**64 - 1)

TOGETHER = 1024
"""Tuples that are probed side by side: 64 KB of cache lines for each thing that is looked up."""

_compiled: Any = njit(cache=True, nogil=True)
_inlined: Any = njit(cache=True, nogil=True, inline="always")


@_inlined
def slot_of(keys, at, shift):
    """Return the slot of the key in row ``at`` of the key columns."""
    mixed = np.uint64(keys[0][at]) * GOLDEN
    for k in range(1, len(keys)):
        mixed ^= mixed >> HALF
        mixed = (mixed + np.uint64(keys[k][at])) * GOLDEN
    return np.int64(mixed >> shift)


@_compiled
def link(keys, valid, has_nulls, start, stop, heads, chain, shift):
    """Put rows ``start`` to ``stop`` into the chains; a row with a NULL in its key into none."""
    for row in range(start, stop):
        if has_nulls and not valid[row]:
            continue
        slot = slot_of(keys, row, shift)
        chain[row] = heads[slot]
        heads[slot] = row


@_compiled
def lay_together(keys, start, stop, stored):
    """Copy the words of rows ``start`` to ``stop`` to where those of one key lie together."""
    for row in range(start, stop):
        for k in range(len(keys)):
            stored[row, k] = keys[k][row]


@_compiled
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
    start,
    resume,
    positions,
    matches,
):
    """Find the stored rows whose key equals that of each probing tuple.

    ``rows`` are the rows of the probing key columns, one a tuple. A stored row counts if
    it is not below ``low`` and is below ``high`` (each one number, or one a tuple) and is
    not ``dead``. Tuples from number ``start`` on are probed, the first one from place
    ``resume`` of its chain if that is not -1. Fills ``positions`` and ``matches``; returns
    how many, and where to go on when they are full: the tuple (their number when all are
    done) and its place.
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
    found = 0
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
                    if equal and not (has_dead and dead[place]):
                        if found == room:
                            return found, i, place
                        positions[found] = i
                        matches[found] = place
                        found += 1
                place = following_one
                if place >= 0:
                    first, following_one = stored[place, 0], chain[place]
    return found, tuples, -1


@_compiled
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
    found = 0
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
                    if found == room:
                        return found, base + n, place
                    positions[found] = base + n
                    matches[found] = place
                    found += 1
                place = following_one
                if place >= 0:
                    first, following_one = stored[place, 0], chain[place]
    return found, tuples, -1


@_compiled
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
    found = 0
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
                positions[found] = i
                matches[found] = place
                found += 1
    return found


@_compiled
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


@_inlined
def word_of(data, words, at, size):
    """Return up to eight bytes of ``data`` from ``at`` on as a word, with zeros behind.

    ``words`` is the same memory as whole words. Two of them give eight bytes from anywhere;
    near the end, where there are no two, bytes are taken one by one.
    """
    place = at >> 3
    if place + 1 < len(words):
        shift = np.uint64((at & 7) << 3)
        # Shifted twice, since by 64 at once is not defined.
        rest = (np.uint64(words[place + 1]) << np.uint64(1)) << (np.uint64(63) - shift)
        word = (np.uint64(words[place]) >> shift) | rest
        return word & (ALL_BITS >> np.uint64(64 - (size << 3)))
    word = np.uint64(0)
    for k in range(size):
        word |= np.uint64(data[at + k]) << np.uint64(EIGHT * k)
    return word


@_compiled
def text_words(offsets, data, words, firsts, seconds):
    """Fill the two words of each text; return the words that its long ones take in full.

    A text of up to 15 bytes is in its words whole: eight bytes in the first, the others and
    the size in the second. Of a longer one the second word has a hash. ``words`` is the memory
    of ``data`` as whole words, as many as there are.
    """
    room = 0
    for i in range(len(firsts)):
        at = offsets[i]
        size = offsets[i + 1] - at
        firsts[i] = np.int64(word_of(data, words, at, min(size, EIGHT))) if size > 0 else 0
        if size <= SHORT_TEXT:
            second = np.uint64(size) << SIZE_PLACE
            if size > EIGHT:
                second |= word_of(data, words, at + EIGHT, size - EIGHT)
        else:
            room += 1 + (size + EIGHT - 1) // EIGHT
            mixed = np.uint64(size) * MIXER
            while size > EIGHT:
                at += EIGHT
                size -= EIGHT
                mixed = (mixed ^ word_of(data, words, at, min(size, EIGHT))) * GOLDEN
                mixed ^= mixed >> HALF
            second = (mixed >> np.uint64(EIGHT)) | (LONG_TEXT << SIZE_PLACE)
        seconds[i] = np.int64(second)
    return room


@_compiled
def keep_long_texts(offsets, data, words, starts, first, kept):
    """Write each long text as its size and words of eight bytes, with zeros behind.

    Fills where each starts if what was kept before ends at ``first``; -1 for a short one.
    """
    to = 0
    for i in range(len(starts)):
        at = offsets[i]
        size = offsets[i + 1] - at
        if size <= SHORT_TEXT:
            starts[i] = -1
            continue
        starts[i] = first + to
        kept[to] = size
        to += 1
        while size > 0:
            kept[to] = np.int64(word_of(data, words, at, min(size, EIGHT)))
            at += EIGHT
            size -= EIGHT
            to += 1


@_compiled
def equal_texts(starts, kept, places, positions, stored_starts, stored, matches, equal):
    """Clear ``equal`` where the long text of a probing tuple is not that of its match.

    Their words are equal, so either both are long or none.
    """
    for n in range(len(matches)):
        at = starts[places[positions[n]]]
        if at < 0:
            continue
        to = stored_starts[matches[n]]
        for k in range(1 + (kept[at] + EIGHT - 1) // EIGHT):
            if kept[at + k] != stored[to + k]:
                equal[n] = False
                break


@_compiled
def text_sizes(offsets, rows, new_offsets):
    """Fill the offsets that the texts of ``rows`` have one behind the other; return the bytes."""
    total = 0
    new_offsets[0] = 0
    for i in range(len(rows)):
        row = rows[i]
        total += offsets[row + 1] - offsets[row]
        new_offsets[i + 1] = total
    return total


@_compiled
def gather_texts(offsets, data, rows, new_offsets, new_data):
    """Copy the texts of ``rows`` one behind the other."""
    for i in range(len(rows)):
        start = offsets[rows[i]]
        to = new_offsets[i]
        for k in range(new_offsets[i + 1] - to):
            new_data[to + k] = data[start + k]


@_compiled
def expand_ranges(starts, stops, order, low, high, dead, has_dead, positions, matches):
    """Turn a range of places in a sorted ``order`` for each tuple into pairs; return how many.

    As in :func:`probe_chains`, ``low`` and ``high`` bound the stored rows that count.
    """
    found = 0
    several_low = len(low) > 1
    several_high = len(high) > 1
    for i in range(len(starts)):
        least = low[i] if several_low else low[0]
        most = high[i] if several_high else high[0]
        for at in range(starts[i], stops[i]):
            row = order[at]
            if least <= row < most and not (has_dead and dead[row]):
                positions[found] = i
                matches[found] = row
                found += 1
    return found
