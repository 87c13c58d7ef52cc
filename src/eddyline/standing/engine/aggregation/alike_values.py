"""Values that are one to Spark, and numbers for them: of groups and of distinct values.

Arrow groups by no structs and no lists. So these are numbered here, level by level: of a struct by
the numbers of its fields, of a list by those of its items. Time grows with all values in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions import is_floating
from eddyline.expressions.value_types import relabelled

Numbers = npt.NDArray[np.int64]


def can_be_grouped(kind: pa.DataType) -> bool:
    """Tell whether values of a type can be told apart as Spark does; not so for maps.

    >>> can_be_grouped(pa.list_(pa.struct([("a", pa.int32())])))
    True
    """
    if pa.types.is_struct(kind):
        return all(can_be_grouped(field.type) for field in kind)
    if pa.types.is_list(kind):
        return can_be_grouped(kind.value_type)
    return not pa.types.is_nested(kind)


def grouped_alike(values: pa.Array) -> pa.Array:
    """Return values with those that are one to Spark made equal: NaN, and -0.0 with 0.0."""
    kind = values.type
    if is_floating(kind):
        zero = pa.scalar(0.0, kind)
        nan = pa.scalar(float("nan"), kind)
        return pc.if_else(pc.equal(values, zero), zero, pc.if_else(pc.is_nan(values), nan, values))
    if not pa.types.is_nested(kind) or not _holds_fractions(kind):
        return values
    if pa.types.is_struct(kind):
        fields = [grouped_alike(field) for field in values.flatten()]
        names = [field.name for field in kind]
        alike = pa.StructArray.from_arrays(fields, names, mask=values.is_null())
    else:
        alike = pa.ListArray.from_arrays(
            _offsets(values), grouped_alike(values.flatten()), mask=values.is_null()
        )
    return relabelled(alike, kind)


def alike_numbers(values: pa.Array) -> Numbers:
    """Return a number for each value, the same for those that are one to Spark; NULL has one."""
    if pa.types.is_struct(values.type):
        known: Numbers = values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        for field in values.flatten():
            inner = alike_numbers(field)
            pairs = known * (int(inner.max(initial=0)) + 1) + inner
            known = np.unique(pairs, return_inverse=True)[1].reshape(-1).astype(np.int64)
        return known
    if pa.types.is_list(values.type):
        inner = alike_numbers(values.flatten())
        bounds = pairwise(_offsets(values).to_numpy().tolist())
        valid = values.is_valid().to_numpy(zero_copy_only=False).tolist()
        texts: dict[bytes | None, int] = {}
        words = (
            inner[begin:end].tobytes() if some else None
            for some, (begin, end) in zip(valid, bounds, strict=True)
        )
        return np.fromiter((texts.setdefault(w, len(texts)) for w in words), np.int64, len(values))
    encoded = grouped_alike(values).dictionary_encode(null_encoding="encode")
    numbers: Numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def numbers_of_tuples(columns: Sequence[pa.Array], rows: int) -> Numbers:
    """Return a number for each of so many rows, the same for tuples that are one to Spark."""
    known: Numbers = np.zeros(rows, np.int64)
    for column in columns:
        own = alike_numbers(column)
        pairs = known * (int(own.max(initial=0)) + 1) + own
        known = np.unique(pairs, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return known


def ranks(values: pa.Array) -> Numbers:
    """Return where values are in Spark's order: those that are one to Spark have one rank.

    Values of types that Arrow does not sort are in any order.
    """
    numbers = alike_numbers(values)
    if pa.types.is_nested(values.type):
        return numbers
    order = pc.sort_indices(values).to_numpy()  # NaN comes last, as the greatest
    least = np.full(int(numbers.max(initial=0)) + 1, len(values), np.int64)
    np.minimum.at(least, numbers[order], np.arange(len(values)))
    places: Numbers = least[numbers]
    return places


def _offsets(values: pa.ListArray) -> pa.Array:
    """Return where lists begin in what ``flatten`` gives, which has nothing of NULL."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))


def _holds_fractions(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_holds_fractions(field.type) for field in kind)
    return _holds_fractions(kind.value_type) if pa.types.is_list(kind) else is_floating(kind)
