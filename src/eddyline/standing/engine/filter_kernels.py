"""Loops of grouped filters, compiled by Numba: which boxes a tuple lies in.

Boxes are numbered in the order of their queries. A grid cuts the words of one or two attributes
into cells, and lists for each cell the boxes that have a part of it, ascending: twice the
number, and one more where the cell lies in the box as a whole and nothing is left to be checked.
The grids of a filter lie in common arrays; ``grids`` has a row for each, see the constants.
Axes, two to a grid, are cut at ``cuts``: the cell of a word is the number of cuts
that are not above it. A table of evenly wide buckets tells between which cuts to search.
"""

from __future__ import annotations

import numpy as np

from eddyline.engine.storage.kernels import compiled, inlined

FIRST_AXIS, SECOND_AXIS, FIRST_LIST, CHECKED = range(4)
"""Columns of ``grids``.

The numbers of the axes, where the starts of the cells' lists begin, and whether some of its boxes
have more constraints than those of the axes.
"""

ATTRIBUTE, FIRST_CUT, CUTS, FIRST_BUCKET, SHIFT = range(5)
"""Columns of ``axes``; a bucket holds 2^SHIFT words."""

BUCKETS = 1 << 10
"""Buckets of an axis: 4 KB. With as many cells as that one more comparison finds the cell."""

FEW = 32
"""Matches of a tuple that are sorted by insertion; Numba's own sort begins to pay with more."""


@inlined
def _bucket(word, first, shift):
    """Return the bucket of a word that is not below the first cut."""
    return np.int64((np.uint64(word) - np.uint64(first)) >> np.uint64(shift))


@inlined
def cell_of(word, axis, cuts, buckets):
    """Return the cell of a word on an axis."""
    first, count = axis[FIRST_CUT], axis[CUTS]
    if count == 0 or word < cuts[first]:
        return np.int64(0)
    if word >= cuts[first + count - 1]:
        return np.int64(count)
    bucket = axis[FIRST_BUCKET] + _bucket(word, cuts[first], axis[SHIFT])
    low, high = np.int64(buckets[bucket]), np.int64(buckets[bucket + 1])
    while low < high:
        middle = (low + high) >> 1
        if cuts[first + middle] <= word:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def fill_buckets(cuts, shift, buckets):
    """Note for each bucket of an axis how many cuts lie in buckets before it."""
    cut = 0
    for bucket in range(len(buckets)):
        while cut < len(cuts) and _bucket(cuts[cut], cuts[0], shift) < bucket:
            cut += 1
        buckets[bucket] = cut


@compiled
def list_boxes(boxes, low, high, whole_low, whole_high, checked, width, starts, at, entries, fill):
    """Count the boxes of each cell into ``starts``, or ``fill`` their lists, which start there.

    ``low`` and ``high``, shape (boxes, 2), are the first and the last cell on both axes;
    ``whole_low`` and ``whole_high`` tell whether these cells lie between the bounds of the box
    as a whole. A box that is ``checked`` has other bounds as well. Afterwards ``starts`` says
    where lists end.
    """
    for n in range(len(boxes)):
        box = boxes[n]
        for i in range(low[n, 0], high[n, 0] + 1):
            whole_i = (
                not checked[n]
                and (i > low[n, 0] or whole_low[n, 0])
                and (i < high[n, 0] or whole_high[n, 0])
            )
            for j in range(low[n, 1], high[n, 1] + 1):
                cell = at + i * width + j
                if fill:
                    whole = (
                        whole_i
                        and (j > low[n, 1] or whole_low[n, 1])
                        and (j < high[n, 1] or whole_high[n, 1])
                    )
                    entries[starts[cell]] = 2 * box + (1 if whole else 0)
                starts[cell] += 1


@compiled
def find_cells(words, grids, axes, cuts, buckets, cells):
    """Set ``cells``, shape (tuples, grids), to the cells that tuples lie in."""
    for g in range(len(grids)):
        first, second = axes[grids[g, FIRST_AXIS]], axes[grids[g, SECOND_AXIS]]
        width = second[CUTS] + 1
        for row in range(len(words)):
            i = cell_of(words[row, first[ATTRIBUTE]], first, cuts, buckets)
            j = cell_of(words[row, second[ATTRIBUTE]], second, cuts, buckets)
            cells[row, g] = grids[g, FIRST_LIST] + i * width + j


@compiled
def sort_by_cell(cells, least, count, order):
    """Set ``order`` to the tuples in the order of their cells of the first grid.

    Tuples of one cell, and of cells side by side, find their candidates in the processor's
    cache: twice as many tuples a second where 100,000 queries have lists of 31 MB.
    """
    places = np.zeros(count + 1, np.int32)
    for row in range(len(cells)):
        places[cells[row, 0] - least + 1] += 1
    for cell in range(count):
        places[cell + 1] += places[cell]
    for row in range(len(cells)):
        cell = cells[row, 0] - least
        order[places[cell]] = row
        places[cell] += 1


@compiled
def match(
    words,
    order,
    start,
    cells,
    grids,
    axes,
    starts,
    entries,
    bounds,
    queries,
    rest_starts,
    rest_attributes,
    rest_bounds,
    several,
    begins,
    ends,
    count,
    found,
):
    """Find the queries of tuples, ascending, from place ``start`` of ``order`` on.

    Those of tuple i are ``found[begins[i]:ends[i]]``; ``count`` places of it are taken already.
    ``words`` has shape (tuples, attributes). ``bounds``, shape (boxes, 4), are the least and
    the greatest word of each box on the axes of its grid, and ``queries`` the boxes' queries.
    A box has the further constraints ``rest_starts[box]`` to ``rest_starts[box + 1]``.
    ``several`` says that some query has more than one box, or that there is more than one
    grid: then the matches of a tuple are sorted and doubles dropped. Returns the place at which
    ``found`` was full, and how much of it is taken.
    """
    room = len(found)
    firsts = axes[grids[:, FIRST_AXIS], ATTRIBUTE]
    seconds = axes[grids[:, SECOND_AXIS], ATTRIBUTE]
    for n in range(start, len(order)):
        row = order[n]
        begun = count
        for g in range(len(grids)):
            cell = cells[row, g]
            first_entry, last_entry = starts[cell], starts[cell + 1]
            if count + last_entry - first_entry > room:
                return n, begun
            since = count
            one, other = words[row, firsts[g]], words[row, seconds[g]]
            for e in range(first_entry, last_entry):
                entry = entries[e]
                box = entry >> 1
                found[count] = box
                if entry & 1:
                    count += 1
                else:
                    count += (
                        (one >= bounds[box, 0])
                        & (one <= bounds[box, 1])
                        & (other >= bounds[box, 2])
                        & (other <= bounds[box, 3])
                    )
            if grids[g, CHECKED]:
                count = drop_unless_all_hold(
                    found, since, count, words[row], rest_starts, rest_attributes, rest_bounds
                )
        for k in range(begun, count):
            found[k] = queries[found[k]]
        if several and count - begun > 1:
            count = sort_distinct(found, begun, count)
        begins[row] = begun
        ends[row] = count
    return len(order), count


@inlined
def drop_unless_all_hold(found, begun, stop, words, starts, attributes, bounds):
    """Keep the boxes in ``found`` whose further constraints hold too; return where they end."""
    kept = begun
    for k in range(begun, stop):
        box = found[k]
        holds = True
        for c in range(starts[box], starts[box + 1]):
            word = words[attributes[c]]
            if word < bounds[c, 0] or word > bounds[c, 1]:
                holds = False
                break
        found[kept] = box
        kept += holds
    return kept


@compiled
def look_up(words, attribute, axis, cuts, buckets, numbers, found):
    """Set ``found`` to what ``numbers`` has for the cells that one attribute's words lie in."""
    for row in range(len(words)):
        found[row] = numbers[cell_of(words[row, attribute], axis, cuts, buckets)]


@inlined
def sort_distinct(found, begun, stop):
    """Sort ``found`` between two places, drop doubles, and return where it ends now."""
    if stop - begun > FEW:
        found[begun:stop].sort()
    else:
        for i in range(begun + 1, stop):
            query = found[i]
            j = i - 1
            while j >= begun and found[j] > query:
                found[j + 1] = found[j]
                j -= 1
            found[j + 1] = query
    kept = begun + 1
    for i in range(begun + 1, stop):
        if found[i] != found[kept - 1]:
            found[kept] = found[i]
            kept += 1
    return kept
