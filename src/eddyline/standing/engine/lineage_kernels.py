"""Loops over sets of queries, compiled by Numba: look them up, keep them once, combine them.

The words of a set are those of :mod:`~eddyline.standing.engine.set_kernels`.

``starts`` has where the words of each set begin in ``words``, and one entry more; ``bitmaps``
which sets are kept as bitmaps; ``hashes`` a hash of each set; ``spans``, shape (sets, 3), the
first and the last member and a mask in which each member has set one of 64 bits. ``slots`` is an
open table of set numbers, -1 where it is empty. ``counts`` has two entries, the number of sets
and how many pairs were combined that nobody remembered. Set 0 is empty.
"""

from __future__ import annotations

import numpy as np

from eddyline.engine.storage.kernels import GOLDEN, HALF, apart, compiled, inlined
from eddyline.standing.engine.set_kernels import (
    ONE,
    WORD,
    bits_in,
    lowest_bit,
    size_of,
    write_bitmap,
    write_common,
    write_either,
    write_members,
    write_without,
)

COMMON, EITHER, WITHOUT = range(3)
"""What two sets are combined into."""


@compiled
def hash_of(words, start, stop, bitmap):
    """Return the hash of a set's words."""
    mixed = np.uint64(stop - start) * GOLDEN + np.uint64(bitmap)
    for at in range(start, stop):
        mixed ^= mixed >> HALF
        mixed = (mixed + np.uint64(words[at])) * GOLDEN
    return mixed ^ (mixed >> HALF)


@compiled
def keep(words, stop, bitmap, starts, bitmaps, hashes, spans, slots, counts):
    """Return the number of the set whose words stand behind those kept, up to ``stop``.

    They stay there where no such set is known yet.
    """
    count = counts[0]
    start = starts[count]
    if start == stop:
        return np.int64(0)
    mixed = hash_of(words, start, stop, bitmap)
    mask = np.uint64(len(slots) - 1)
    slot = np.int64(mixed & mask)
    while slots[slot] >= 0:
        known = slots[slot]
        if hashes[known] == mixed and bitmaps[known] == bitmap:
            first = starts[known]
            if starts[known + 1] - first == stop - start:
                same = True
                for k in range(stop - start):
                    if words[first + k] != words[start + k]:
                        same = False
                        break
                if same:
                    return np.int64(known)
        slot = np.int64(np.uint64(slot + 1) & mask)
    slots[slot] = count
    hashes[count] = mixed
    bitmaps[count] = bitmap
    starts[count + 1] = stop
    counts[0] = count + 1
    summarize(words, start, stop, bitmap, spans[count])
    return np.int64(count)


@inlined
def summarize(words, start, stop, bitmap, span):
    """Fill in a set's first and last member and its mask, where two words make up one of 64."""
    mask = np.uint64(0)
    if not bitmap:
        for k in range(start, stop):
            mask |= np.uint64(1) << np.uint64(words[k] & np.uint32(63))
        span[0], span[1] = np.int64(words[start]), np.int64(words[stop - 1])
    else:
        base = np.int64(words[start])
        for k in range(start + 1, stop):
            odd = np.uint64((base + k - start - 1) & 1)
            mask |= np.uint64(words[k]) << (odd << np.uint64(5))
        span[0] = base << WORD  # or a little more
        span[1] = ((base + stop - start - 1) << WORD) - 1  # or a little less
    span[2] = np.int64(mask)


@compiled
def put_back(hashes, count, slots):
    """Put the sets but the empty one into a table that has none."""
    mask = np.uint64(len(slots) - 1)
    for number in range(1, count):
        slot = np.int64(hashes[number] & mask)
        while slots[slot] >= 0:
            slot = np.int64(np.uint64(slot + 1) & mask)
        slots[slot] = number


@compiled
def number_sets(
    begins, ends, members, row, words, starts, bitmaps, hashes, spans, slots, counts, numbers
):
    """Set ``numbers`` to those of the sets of tuples, see ``Satisfied``, from tuple ``row`` on.

    Returns the tuple at which there was no room for another set.
    """
    for i in range(row, len(ends)):
        first, last = begins[i], ends[i]
        if first == last:
            numbers[i] = 0
            continue
        used = starts[counts[0]]
        if full(counts, starts, slots) or used + last - first + 2 > len(words):
            return i
        end, bitmap = write_members(members, first, last, words, used)
        numbers[i] = keep(words, end, bitmap, starts, bitmaps, hashes, spans, slots, counts)
    return len(ends)


@compiled
def number_bits(bits, row, words, starts, bitmaps, hashes, spans, slots, counts, numbers):
    """Set ``numbers`` to those of the sets of bitmaps, one a row, from one row on.

    Returns the row at which there was no room for another set.
    """
    width = bits.shape[1]
    for i in range(row, len(bits)):
        used = starts[counts[0]]
        if full(counts, starts, slots) or used + 2 * width + 2 > len(words):
            return i
        for k in range(width):
            words[used + 1 + k] = bits[i, k]
        end, bitmap = write_bitmap(0, words, used + 1, used + 1 + width, used)
        numbers[i] = keep(words, end, bitmap, starts, bitmaps, hashes, spans, slots, counts)
    return len(bits)


@inlined
def full(counts, starts, slots):
    """Tell whether there is no room for one more set."""
    return counts[0] + 2 > len(starts) or 2 * counts[0] + 2 > len(slots)


@compiled
def combine(
    operation,
    ones,
    others,
    row,
    words,
    starts,
    bitmaps,
    hashes,
    spans,
    slots,
    counts,
    known_pairs,
    known_results,
    numbers,
):
    """Set ``numbers`` to sets made of two, pair by pair, from pair ``row`` on.

    ``operation`` is one of COMMON, EITHER and WITHOUT. ``known_pairs`` and ``known_results``
    remember pairs of this operation, the last of each slot. Returns the pair at which there
    was no room for another set, and how many words it asks for.
    """
    shift = np.uint64(64)
    size = len(known_pairs)
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    for i in range(row, len(ones)):
        one, other = np.int64(ones[i]), np.int64(others[i])
        if one == other:
            numbers[i] = 0 if operation == WITHOUT else one
            continue
        if one == 0 or other == 0:
            if operation == COMMON:
                numbers[i] = 0
            else:
                numbers[i] = one if operation == WITHOUT else one + other
            continue
        if operation == COMMON and apart(spans, one, other):
            numbers[i] = 0
            continue
        if one > other and operation != WITHOUT:
            one, other = other, one
        pair = (np.uint64(one) << HALF) | np.uint64(other)
        slot = np.int64((pair * GOLDEN) >> shift)
        if known_pairs[slot] == pair:
            numbers[i] = known_results[slot]
            continue
        counts[1] += 1
        used = starts[counts[0]]
        if operation == COMMON:
            needed = 2 * (starts[one + 1] - starts[one] + starts[other + 1] - starts[other]) + 4
        else:
            room = size_of(one, words, starts, bitmaps) + size_of(other, words, starts, bitmaps)
            needed = 3 * room + 4
        if full(counts, starts, slots) or used + needed > len(words):
            return i, needed
        if operation == COMMON:
            end, bitmap = write_common(one, other, starts, bitmaps, words, used)
        elif operation == EITHER:
            end, bitmap = write_either(one, other, starts, bitmaps, words, used, 2 * room)
        else:
            end, bitmap = write_without(one, other, starts, bitmaps, words, used, 2 * room)
        numbers[i] = keep(words, end, bitmap, starts, bitmaps, hashes, spans, slots, counts)
        known_pairs[slot] = pair
        known_results[slot] = numbers[i]
    return len(ones), 0


@compiled
def spread_members(numbers, starts, bitmaps, words, positions, members):
    """List the members of sets: fill in the position of each set and its members.

    Returns how many; only counts them where ``members`` is empty.
    """
    count = np.int64(0)
    fill = len(members) > 0
    for i in range(len(numbers)):
        number = numbers[i]
        start, stop = starts[number], starts[number + 1]
        if not bitmaps[number]:
            if fill:
                for k in range(stop - start):
                    positions[count + k] = i
                    members[count + k] = words[start + k]
            count += stop - start
            continue
        base = np.int64(words[start]) << WORD
        for k in range(start + 1, stop):
            word = words[k]
            if not fill:
                count += bits_in(word)
                continue
            while word:
                lowest = lowest_bit(word)
                positions[count] = i
                members[count] = base + ((k - start - 1) << WORD) + bits_in(lowest - ONE)
                count += 1
                word ^= lowest
    return count
