"""Loops over the words of single sets of queries, compiled by Numba: write, read, intersect them.

A set is kept as words of 32 bits, in one of two forms: its members, ascending; or, where that
takes fewer words, a word that says how many times 32 the first member is at least, and a bitmap
from there on. The form follows from the members, so equal sets have equal words.

Set ``number`` has the words from ``starts[number]`` to ``starts[number + 1]``; ``bitmaps`` tells
which sets are kept as bitmaps.
"""

from __future__ import annotations

import numpy as np

from eddyline.engine.storage.kernels import compiled, inlined

WORD = 5
"""A word of a bitmap has 2^5 bits."""

LOW = np.uint32(31)
ONE = np.uint32(1)


@inlined
def bits_in(word):
    """Return how many bits of a word are set."""
    many = np.uint64(word)  # Numba computes with 64 bits whatever it is given
    many -= (many >> np.uint64(1)) & np.uint64(0x55555555)
    many = (many & np.uint64(0x33333333)) + ((many >> np.uint64(2)) & np.uint64(0x33333333))
    many = (many + (many >> np.uint64(4))) & np.uint64(0x0F0F0F0F)
    return np.int64(((many * np.uint64(0x01010101)) & np.uint64(0xFFFFFFFF)) >> np.uint64(24))


@inlined
def lowest_bit(word):
    """Return the lowest bit that is set in a word."""
    return np.uint32(word & (~word + ONE))


@inlined
def bitmap_words(first, last):
    """Return how many words a bitmap from one member to another has, that of its place included."""
    return (np.int64(last) >> WORD) - (np.int64(first) >> WORD) + 2


@compiled
def write_members(members, first, last, words, at):
    """Write the set of ``members[first:last]``, ascending, behind ``at``.

    Returns where it ends, and whether as a bitmap.
    """
    size = last - first
    if size == 0:
        return at, False
    long = bitmap_words(members[first], members[last - 1])
    if long > size:
        for k in range(size):
            words[at + k] = np.uint32(members[first + k])
        return at + size, False
    base = np.int64(members[first]) >> WORD
    words[at] = np.uint32(base)
    for k in range(1, long):
        words[at + k] = np.uint32(0)
    for k in range(first, last):
        member = np.int64(members[k])
        words[at + 1 + (member >> WORD) - base] |= ONE << (np.uint32(member) & LOW)
    return at + long, True


@compiled
def write_bitmap(base, words, start, stop, at):
    """Write the set of the bitmap ``words[start:stop]``, of place ``base``, to ``at``.

    ``at`` is not behind ``start - 1``, and ``words`` has as much room behind ``stop`` as the bitmap
    has words. Returns where it ends, and whether as a bitmap.
    """
    while stop > start and words[stop - 1] == 0:
        stop -= 1
    while stop > start and words[start] == 0:
        start += 1
        base += 1
    if start == stop:
        return at, False
    size = np.int64(0)
    for k in range(start, stop):
        size += bits_in(words[k])
    long = stop - start + 1
    if long <= size:
        words[at] = np.uint32(base)
        for k in range(stop - start):
            words[at + 1 + k] = words[start + k]
        return at + long, True
    # Fewer members than words: they are written behind, and then moved.
    end = stop
    for k in range(start, stop):
        word = words[k]
        while word:
            lowest = lowest_bit(word)
            words[end] = np.uint32(((base + k - start) << WORD) + bits_in(lowest - ONE))
            end += 1
            word ^= lowest
    for k in range(end - stop):
        words[at + k] = words[stop + k]
    return at + end - stop, False


@inlined
def holds(words, start, stop, bitmap, member):
    """Tell whether a set has a member: quickly for a bitmap."""
    if bitmap:
        place = (np.int64(member) >> WORD) - np.int64(words[start])
        if place < 0 or place >= stop - start - 1:
            return False
        return (words[start + 1 + place] >> (np.uint32(member) & LOW)) & ONE == ONE
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < np.uint32(member):
            low = middle + 1
        else:
            high = middle
    return low < stop and words[low] == np.uint32(member)


@compiled
def write_common(one, other, starts, bitmaps, words, at):
    """Write what two sets have in common to ``at``; return where it ends, and if as a bitmap."""
    first, first_stop = starts[one], starts[one + 1]
    second, second_stop = starts[other], starts[other + 1]
    if bitmaps[one] and bitmaps[other]:
        a, b = np.int64(words[first]), np.int64(words[second])
        low = max(a, b)
        high = min(a + first_stop - first - 1, b + second_stop - second - 1)
        count = high - low
        begin = at + 1
        for k in range(count):
            words[begin + k] = words[first + 1 + low - a + k] & words[second + 1 + low - b + k]
        return write_bitmap(low, words, begin, begin + max(count, 0), at)
    end = at
    if bitmaps[one] or bitmaps[other]:
        if bitmaps[one]:
            first, first_stop, second, second_stop = second, second_stop, first, first_stop
        for k in range(first, first_stop):
            member = words[k]
            if holds(words, second, second_stop, bitmaps[other] or bitmaps[one], member):
                words[end] = member
                end += 1
    else:
        while first < first_stop and second < second_stop:
            a32, b32 = words[first], words[second]
            if a32 == b32:
                words[end] = a32
                end += 1
            first += a32 <= b32
            second += b32 <= a32
    return canonical(words, at, end)


@compiled
def canonical(words, at, end):
    """Turn the members ``words[at:end]`` into the form of a set, in place."""
    size = end - at
    if size == 0:
        return at, False
    long = bitmap_words(words[at], words[end - 1])
    if long > size:
        return end, False
    base = np.int64(words[at]) >> WORD
    for k in range(long):
        words[end + k] = np.uint32(0)
    words[end] = np.uint32(base)
    for k in range(at, end):
        member = np.int64(words[k])
        words[end + 1 + (member >> WORD) - base] |= ONE << (np.uint32(member) & LOW)
    for k in range(long):
        words[at + k] = words[end + k]
    return at + long, True


@inlined
def size_of(number, words, starts, bitmaps):
    """Return how many members a set has."""
    start, stop = starts[number], starts[number + 1]
    if not bitmaps[number]:
        return stop - start
    size = np.int64(0)
    for k in range(start + 1, stop):
        size += bits_in(words[k])
    return size


@compiled
def list_members(number, words, starts, bitmaps, at):
    """Write the members of a set, ascending, to ``words`` from ``at`` on; return where they end."""
    start, stop = starts[number], starts[number + 1]
    if not bitmaps[number]:
        for k in range(stop - start):
            words[at + k] = words[start + k]
        return at + stop - start
    base = np.int64(words[start])
    for k in range(start + 1, stop):
        word = words[k]
        while word:
            lowest = lowest_bit(word)
            words[at] = np.uint32(((base + k - start - 1) << WORD) + bits_in(lowest - ONE))
            at += 1
            word ^= lowest
    return at


@compiled
def write_either(one, other, starts, bitmaps, words, at, room):
    """Write what is in one of two sets or in both to ``at``, with so much room behind it."""
    first = at + room
    middle = list_members(one, words, starts, bitmaps, first)
    last = list_members(other, words, starts, bitmaps, middle)
    a, b, end = first, middle, at
    while a < middle or b < last:
        if b == last or (a < middle and words[a] <= words[b]):
            member = words[a]
            b += b < last and words[b] == member
            a += 1
        else:
            member = words[b]
            b += 1
        words[end] = member
        end += 1
    return canonical(words, at, end)


@compiled
def write_without(one, other, starts, bitmaps, words, at, room):
    """Write what is in one set and not in the other to ``at``, with so much room behind it."""
    first = at + room
    last = list_members(one, words, starts, bitmaps, first)
    start, stop, bitmap = starts[other], starts[other + 1], bitmaps[other]
    end = at
    for k in range(first, last):
        if not holds(words, start, stop, bitmap, words[k]):
            words[end] = words[k]
            end += 1
    return canonical(words, at, end)
