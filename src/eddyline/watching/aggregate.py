"""Aggregates, and the types in which they are added up, compared and shown."""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import AggregateOverflowError
from eddyline.watching.formulas import Floats

EXACT_INTEGERS: Final = pa.decimal128(38, 0)
"""In which whole numbers are added up, beyond what 64 bits hold."""

DECIMAL_DIGITS: Final = 38

_MAGNITUDE: Final = np.int64(0x7FFF_FFFF_FFFF_FFFF)
"""All bits of a double but that of its sign."""


class WatchedFunction(StrEnum):
    """What is shown on the way: estimates, but for MIN and MAX the values seen so far."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


EXTREMES: Final = frozenset({WatchedFunction.MIN, WatchedFunction.MAX})
"""Aggregates without an interval."""


@dataclass(frozen=True, slots=True)
class WatchedAggregate:
    """An aggregate: its function, the number of the column that it is of, its name and type.

    ``column`` is None for a count of rows.
    """

    function: WatchedFunction
    column: int | None
    name: str
    type: pa.DataType


def canonical(column: pa.Array) -> pa.Array:
    """Return a column of a group as grouping sees it: one zero and one NaN of floats."""
    if not pa.types.is_floating(column.type):
        return column
    positive = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), column.type), positive)


def comparable(column: pa.Array) -> pa.Array:
    """Return a column whose least and greatest values Arrow finds as Spark does.

    To Spark NaN is greater than all numbers, and Arrow passes it over: so floats become whole
    numbers in their order, see :func:`compared_floats`.
    """
    if not pa.types.is_floating(column.type):
        return column
    floats = canonical(column.cast(pa.float64()))
    bits = floats.fill_null(0.0).to_numpy(zero_copy_only=False).view(np.int64)
    return pa.array(bits ^ ((bits >> 63) & _MAGNITUDE), mask=np.asarray(column.is_null()))


def compared_floats(ordered: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the floats that :func:`comparable` made whole numbers of."""
    numbers = ordered.fill_null(0).to_numpy(zero_copy_only=False)
    bits = numbers ^ ((numbers >> 63) & _MAGNITUDE)
    return pa.array(bits.view(np.float64), mask=np.asarray(ordered.is_null())).cast(kind)


def summable(column: pa.Array) -> pa.Array:
    """Return a column in a type in which its sums are exact, or as exact as doubles are."""
    if pa.types.is_integer(column.type):
        return column.cast(EXACT_INTEGERS)
    if pa.types.is_decimal(column.type):
        return column.cast(pa.decimal128(DECIMAL_DIGITS, column.type.scale))
    if pa.types.is_floating(column.type):
        return column.cast(pa.float64())
    # Of these only the values are counted.
    return pc.if_else(pc.is_valid(column), pa.scalar(1, pa.int64()), None).cast(EXACT_INTEGERS)


def final_values(
    aggregate: WatchedAggregate, counts: pa.ChunkedArray, sums: pa.ChunkedArray
) -> pa.Array | pa.ChunkedArray:
    """Return final values, each as Spark has it."""
    if aggregate.function is WatchedFunction.COUNT:
        return pc.cast(counts, aggregate.type)
    if aggregate.function is WatchedFunction.SUM:
        try:
            return pc.cast(sums, aggregate.type)
        except pa.ArrowInvalid:
            raise AggregateOverflowError(
                f"{aggregate.name} is a sum that does not fit {aggregate.type}"
            ) from None
    divided = [
        _average(total, count, aggregate.type)
        for total, count in zip(sums.to_pylist(), counts.to_pylist(), strict=True)
    ]
    return pa.array(divided, aggregate.type)


def _average(
    total: Decimal | float | None, count: int, kind: pa.DataType
) -> Decimal | float | None:
    if total is None or not count:
        return None
    if not pa.types.is_decimal(kind):
        return float(total) / count
    with decimal.localcontext(prec=2 * DECIMAL_DIGITS):
        step = Decimal(1).scaleb(-kind.scale)
        return (Decimal(total) / count).quantize(step, rounding=decimal.ROUND_HALF_UP)


def typed(values: Floats, kind: pa.DataType, known: npt.NDArray[np.bool_]) -> pa.Array:
    """Return estimates in the type of the final values; NULL where nothing is known."""
    if pa.types.is_integer(kind):
        values = np.rint(values)
        limit = 2.0 ** (kind.bit_width - 1)
        known = known & (values >= -limit) & (values < limit)
        values = np.where(known, values, 0.0)
    if pa.types.is_decimal(kind):
        step = Decimal(1).scaleb(-kind.scale)
        with decimal.localcontext(prec=2 * DECIMAL_DIGITS):
            exact = [Decimal(value).quantize(step) for value in values.tolist()]
        limit = Decimal(10) ** (kind.precision - kind.scale)
        sure = (told and abs(value) < limit for value, told in zip(exact, known, strict=True))
        return pa.array([value if s else None for value, s in zip(exact, sure, strict=True)], kind)
    return pa.array(values, mask=~known).cast(kind)
