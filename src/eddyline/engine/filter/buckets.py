"""The values of a column in a few buckets: single values that are frequent, or ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

MOST_BUCKETS: Final = 16
"""Buckets of a column, with one for values that are in no other, or for NULL."""

SAMPLE: Final = 2048
"""Values that buckets are made from."""

GOLDEN: Final = (5**0.5 - 1.0) / 2.0

FREQUENT: Final = 0.02
"""Share of the rows from which on a value has a bucket of its own, where there are many values.

A rarer one would be seen 5 times in the first look at 256 rows.
"""

COVERED: Final = 0.2
"""Share of the rows that frequent values must have together, for a column to be looked at."""


class Buckets(Protocol):
    """Tells to which of ``size`` buckets a value belongs; NULL belongs to one, too."""

    @property
    def size(self) -> int:
        """The number of buckets."""
        ...

    def of(self, values: pa.Array) -> npt.NDArray[np.intp]:
        """Return the bucket of each value, 0 to ``size`` - 1."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ByValue:
    """A bucket for each of some values, and one for all others."""

    values: pa.Array

    @property
    def size(self) -> int:
        """The number of buckets."""
        return len(self.values) + 1

    def of(self, values: pa.Array) -> npt.NDArray[np.intp]:
        """Return the bucket of each value."""
        found = pc.index_in(values, value_set=self.values)
        return numpy_of(found.fill_null(len(self.values))).astype(np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class ByRange:
    """A bucket for each range between two edges, and one for NULL; ``edges`` ascend."""

    edges: npt.NDArray[np.float64]

    @property
    def size(self) -> int:
        """The number of buckets."""
        return len(self.edges) + 2

    def of(self, values: pa.Array) -> npt.NDArray[np.intp]:
        """Return the bucket of each value; NaN counts as the greatest."""
        found = np.searchsorted(self.edges, _as_floats(values), side="right")
        if values.null_count:
            found[numpy_of(values.is_null())] = len(self.edges) + 1
        return found.astype(np.intp, copy=False)


def can_tell_apart(a_type: pa.DataType) -> bool:
    """Tell whether values of a type can be put into buckets."""
    return (
        _has_ranges(a_type)
        or pa.types.is_boolean(a_type)
        or pa.types.is_string(a_type)
        or pa.types.is_large_string(a_type)
        or pa.types.is_decimal128(a_type)
    )


def buckets_for(values: pa.Array) -> tuple[Buckets, npt.NDArray[np.float64]] | None:
    """Return buckets for a column, and the share of its values in each; None: it tells nothing.

    Some of the values are looked at, from all over. Up to 15 different values have a bucket each.
    Of more, numbers and times are cut into ranges with as many rows in each, and of others those
    that are frequent have a bucket each.
    """
    sample = values
    if len(values) > SAMPLE:  # by the golden section: evenly, and in step with no pattern of rows
        places = (np.arange(SAMPLE) * GOLDEN % 1.0 * len(values)).astype(np.int64)
        sample = values.take(pa.array(places))
    buckets = _buckets_of(sample)
    if buckets is None:
        return None
    return buckets, np.bincount(buckets.of(sample), minlength=buckets.size) / len(sample)


def _buckets_of(sample: pa.Array) -> Buckets | None:
    counted = pc.value_counts(sample)
    different = len(counted)
    if different <= 1:
        return None
    if different < MOST_BUCKETS:
        return ByValue(counted.field("values"))
    if _has_ranges(sample.type):
        found = _as_floats(sample.drop_null())
        found = found[~np.isnan(found)]
        if not len(found):
            return None
        shares = np.arange(1, MOST_BUCKETS - 1) / (MOST_BUCKETS - 1)
        return ByRange(np.unique(np.quantile(found, shares, method="lower")))
    counts = numpy_of(counted.field("counts")).astype(np.int64)
    order = np.argsort(-counts, kind="stable")[: MOST_BUCKETS - 1]
    often = order[counts[order] >= FREQUENT * len(sample)]
    if counts[often].sum() < COVERED * len(sample):
        return None
    return ByValue(counted.field("values").take(pa.array(np.sort(often))))


def numpy_of(values: pa.Array) -> npt.NDArray[np.generic]:
    """Return the values of an array without NULL."""
    array: npt.NDArray[np.generic] = values.to_numpy(zero_copy_only=False)
    return array


def _has_ranges(a_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(a_type)
        or pa.types.is_floating(a_type)
        or pa.types.is_date32(a_type)
        or pa.types.is_timestamp(a_type)
    )


def _as_floats(values: pa.Array) -> npt.NDArray[np.float64]:
    """Return numbers and times as floats, to within what floats can tell; NULL as any."""
    if pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    if values.null_count:
        values = values.fill_null(0)
    return numpy_of(values).astype(np.float64, copy=False)
