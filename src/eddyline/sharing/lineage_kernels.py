"""Loops over sets of queries, compiled by Numba: look them up, keep them once, intersect them.

A set is kept as words of 32 bits, in one of two forms: its members, ascending; or, where that
takes fewer words, a word that says how many times 32 the first member is at least, and a bitmap
from there on. The form follows from the members, so equal sets have equal words.

``starts`` has where the words of each set begin in ``words``, and one entry more; ``bitmaps``
which sets are kept as bitmaps; ``hashes`` a hash of each set; ``spans``, shape (sets, 3), the
first and the last member and a mask in which each member has set one of 64 bits. ``slots`` is an
open table of set numbers, -1 where it is empty. ``counts`` has two entries, the number of sets
and how many pairs were combined that nobody remembered. Set 0 is empty.
"""

from __future__ import annotations

import numpy as np

from eddyline.engine.storage.kernels import GOLDEN, HALF, apart, compiled, inlined

WORD = 5
"""A word of a bitmap has 2^5 bits."""

COMMON, EITHER, WITHOUT = range(3)
"""What two sets are combined to."""

LOW = np.uint32(31)
ONE = np.uint32(1)


@inlined
def _bits(word):
    """Return how many bits of a word are set."""
    many = np.uint64(word)  # Numba computes with 64 bits whatever it is given
    many -= (many >> np.uint64(1)) & np.uint64(0x55555555)
    many = (many & np.uint64(0x33333333)) + ((many >> np.uint64(2)) & np.uint64(0x33333333))
    many = (many + (many >> np.uint64(4))) & np.uint64(0x0F0F0F0F)
    return np.int64(((many * np.uint64(0x01010101)) & np.uint64(0xFFFFFFFF)) >> np.uint64(24))


@inlined
def _lowest(word):
    """Return the lowest bit that is set in a word."""
    return np.uint32(word & (~word + ONE))


@inlined
def bitmap_words(first, last):
    """Return how many words a bitmap from one member to another has, that of its place included."""
    return (np.int64(last) >> WORD) - (np.int64(first) >> WORD) + 2


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
        size += _bits(words[k])
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
            lowest = _lowest(word)
            words[end] = np.uint32(((base + k - start) << WORD) + _bits(lowest - ONE))
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


@inlined
def size_of(number, words, starts, bitmaps):
    """Return how many members a set has."""
    start, stop = starts[number], starts[number + 1]
    if not bitmaps[number]:
        return stop - start
    size = np.int64(0)
    for k in range(start + 1, stop):
        size += _bits(words[k])
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
            lowest = _lowest(word)
            words[at] = np.uint32(((base + k - start - 1) << WORD) + _bits(lowest - ONE))
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
    found = np.int64(0)
    fill = len(members) > 0
    for i in range(len(numbers)):
        number = numbers[i]
        start, stop = starts[number], starts[number + 1]
        if not bitmaps[number]:
            if fill:
                for k in range(stop - start):
                    positions[found + k] = i
                    members[found + k] = words[start + k]
            found += stop - start
            continue
        base = np.int64(words[start]) << WORD
        for k in range(start + 1, stop):
            word = words[k]
            if not fill:
                found += _bits(word)
                continue
            while word:
                lowest = _lowest(word)
                positions[found] = i
                members[found] = base + ((k - start - 1) << WORD) + _bits(lowest - ONE)
                found += 1
                word ^= lowest
    return found
