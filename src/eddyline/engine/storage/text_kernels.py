"""Loops over texts, compiled by Numba: their words as join keys, comparing and gathering them."""

from __future__ import annotations

import numpy as np

from eddyline.engine.storage.kernels import GOLDEN, HALF, compiled, inlined

MIXER = np.uint64(0xD6E8FEB86659FD93)  # an odd constant that spreads each bit over the word
EIGHT = 8  # bytes of a word
SHORT_TEXT = 15  # bytes of a text that its two words hold
LONG_TEXT = np.uint64(0xFF)  # in place of the size, where a word is a hash of what follows
SIZE_PLACE = np.uint64(56)  # bits of the second word below the size
ALL_BITS = np.uint64(2**64 - 1)


@inlined
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


@compiled
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


@compiled
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


@compiled
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


@compiled
def text_sizes(offsets, rows, new_offsets):
    """Fill the offsets that the texts of ``rows`` have end to end; return the bytes."""
    total = 0
    new_offsets[0] = 0
    for i in range(len(rows)):
        row = rows[i]
        total += offsets[row + 1] - offsets[row]
        new_offsets[i + 1] = total
    return total


@compiled
def gather_texts(offsets, data, rows, new_offsets, new_data):
    """Copy the texts of ``rows`` end to end."""
    for i in range(len(rows)):
        start = offsets[rows[i]]
        to = new_offsets[i]
        for k in range(new_offsets[i + 1] - to):
            new_data[to + k] = data[start + k]
