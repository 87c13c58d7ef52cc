"""Aggregates that need all values of a group: each is kept once, with how often it came.

A *bag* is a list of values with their counts. Bags of parts are united value by value, so that
what comes of them does not depend on how rows were cut into parts. They take as much room as there
are distinct values.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions import is_floating
from eddyline.standing.engine.aggregation.alike_values import alike_numbers, grouped_alike, ranks

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_FIELDS: Final = ("value", "count")

_GREATEST: Final = np.iinfo(np.int64).max


def bags_of_one(values: pa.Array) -> pa.ListArray:
    """Return for each value the bag that has it alone, the empty one for NULL."""
    known = grouped_alike(values.drop_null())
    counts = pa.array(np.ones(len(known), np.int64))
    items = pa.StructArray.from_arrays([known, counts], list(_FIELDS))
    return pa.ListArray.from_arrays(_ends(values), items)


def lists_of_one(values: pa.Array) -> pa.ListArray:
    """Return for each value the list that has it alone, the empty one for NULL."""
    return pa.ListArray.from_arrays(_ends(values), values.drop_null())


def united_bags(bags: pa.ListArray, of_rows: Numbers, groups: int) -> pa.ListArray:
    """Return the bags of so many groups; ``of_rows`` says which group each bag is of."""
    parents, items = _of_groups(bags, of_rows)
    values, counts = items.field(0), items.field(1).to_numpy()
    numbers = alike_numbers(values)
    keys = parents * (int(numbers.max(initial=0)) + 1) + numbers
    _, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
    summed = np.zeros(len(firsts), np.int64)
    np.add.at(summed, places.reshape(-1), counts)
    distinct = pa.StructArray.from_arrays(
        [values.take(pa.array(firsts)), pa.array(summed)], list(_FIELDS)
    )
    return pa.ListArray.from_arrays(_starts(parents[firsts], groups), distinct)


def joined_lists(lists: pa.ListArray, of_rows: Numbers, groups: int) -> pa.ListArray:
    """Return the lists of so many groups end to end, in the order in which they come."""
    parents, items = _of_groups(lists, of_rows)
    order = np.argsort(parents, kind="stable")
    return pa.ListArray.from_arrays(_starts(parents, groups), items.take(pa.array(order)))


def most_frequent(bags: pa.ListArray) -> pa.Array:
    """Return for each bag the value with the greatest count, the least of several."""
    groups, items = _of_groups(bags, np.arange(len(bags)))
    values, counts = items.field(0), items.field(1).to_numpy()
    order = np.lexsort((ranks(values), -counts, groups))
    some, firsts = np.unique(groups[order], return_index=True)
    chosen = np.zeros(len(bags), np.int64)
    chosen[some] = order[firsts]
    empty = np.ones(len(bags), np.bool_)
    empty[some] = False
    return values.take(pa.array(chosen, mask=empty))


def percentiles(bags: pa.ListArray, shares: Sequence[float], *, falling: bool) -> pa.Array:
    """Return for each bag of numbers what lies at these shares, interpolated: a list of doubles.

    NULL for an empty one. As Spark's ``percentile`` has it.
    """
    ordered = _OrderedBags(bags, falling=falling)
    columns = []
    for share in shares:
        place = (ordered.sizes - 1) * share
        low, high = np.floor(place), np.ceil(place)
        one, other = ordered.at(low.astype(np.int64)), ordered.at(high.astype(np.int64))
        with np.errstate(invalid="ignore"):
            between = one + (other - one) * (place - low)  # NaN from -Infinity on, as in Spark
        columns.append(np.where((low == high) | (one == other), one, between))
    return _as_lists(columns, pa.float64(), ordered.sizes > 0)


def order_statistics(
    bags: pa.ListArray, shares: Sequence[float], accuracy: int, kind: pa.DataType
) -> pa.Array:
    """Return for each bag the values at these shares, of its own type: a list for each.

    What Spark's ``percentile_approx`` gives of no more than half as many values as ``accuracy``;
    of more it may give one beside.
    """
    ordered = _OrderedBags(bags, falling=False)
    columns = []
    for share in shares:
        place = np.ceil(share * ordered.sizes) - 1
        if share <= 1 / accuracy:
            place = np.zeros(len(place))
        elif share >= 1 - 1 / accuracy:
            place = ordered.sizes - 1.0
        columns.append(ordered.at(place.clip(min=0).astype(np.int64)))
    return _as_lists(columns, kind, ordered.sizes > 0)


class _OrderedBags:
    """The numbers of bags, ascending or descending, as doubles."""

    def __init__(self, bags: pa.ListArray, *, falling: bool) -> None:
        groups, items = _of_groups(bags, np.arange(len(bags)))
        values, counts = _doubles(items.field(0)), items.field(1).to_numpy()
        self.sizes = np.bincount(groups, counts, len(bags)).astype(np.int64)
        # NaN is the greatest: it comes last, and first where the order is turned round.
        signed = np.where(np.isnan(values), -np.inf, -values) if falling else values
        isnt = ~np.isnan(values) if falling else np.isnan(values)
        order = np.lexsort((signed, isnt, groups))
        self._values = values[order]
        self._until = np.cumsum(counts[order])
        self._before = np.cumsum(self.sizes) - self.sizes

    def at(self, places: Numbers) -> Floats:
        """Return the value at a place of each bag, from 0 on; anything for an empty one."""
        if not len(self._values):
            return np.zeros(len(places))
        found = np.searchsorted(self._until, self._before + places, side="right")
        values: Floats = self._values[found.clip(max=len(self._values) - 1)]
        return values


def _as_lists(
    columns: Sequence[Floats], kind: pa.DataType, some: npt.NDArray[np.bool_]
) -> pa.Array:
    numbers = np.column_stack(columns).reshape(-1)
    values = _in_type(numbers, kind)
    offsets = np.arange(len(some) + 1, dtype=np.int32) * len(columns)
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(~some))


def _in_type(numbers: Floats, kind: pa.DataType) -> pa.Array:
    """Return doubles in the type that they came from."""
    if is_floating(kind):
        return pa.array(numbers).cast(kind)
    if pa.types.is_decimal(kind):
        unit = decimal.Decimal(1).scaleb(-kind.scale)
        context = decimal.Context(prec=kind.precision + 1)
        return pa.array(
            [decimal.Decimal(repr(n)).quantize(unit, context=context) for n in numbers.tolist()],
            kind,
        )
    # A double is at most 2 to the 63rd for a number of 64 bits, which Java makes the greatest one.
    fits = numbers < 2.0**63
    whole = pa.array(np.where(fits, np.where(fits, numbers, 0).astype(np.int64), _GREATEST))
    return whole.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else whole.cast(kind)


def _doubles(values: pa.Array) -> Floats:
    """Return numbers, times or dates as doubles."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    numbers: Floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _of_groups(lists: pa.ListArray, of_rows: Numbers) -> tuple[Numbers, pa.Array]:
    """Return all items of lists, and the group that each is of."""
    parents: Numbers = of_rows[pc.list_parent_indices(lists).to_numpy()]
    return parents, lists.flatten()


def _ends(values: pa.Array) -> pa.Array:
    known = values.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate(([0], np.cumsum(known))).astype(np.int32))


def _starts(parents: Numbers, groups: int) -> pa.Array:
    sizes = np.bincount(parents, minlength=groups)
    return pa.array(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32))
