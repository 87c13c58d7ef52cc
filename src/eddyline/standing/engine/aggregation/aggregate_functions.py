"""Aggregate functions as sums and extremes, which can be taken part by part.

Each is made of columns that are summed, whose least or greatest value is kept, or that are sets or
bags which are united: of rows, of what came of rows before, and of panes alike. From these the
value is computed at the end, with Spark's meaning.
"""

from __future__ import annotations

import decimal
import hashlib
from dataclasses import dataclass, fields, replace
from enum import Enum, StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions import (
    ArithmeticFailure,
    ErrorCondition,
    Expression,
    is_floating,
    is_integer,
)
from eddyline.expressions.value_types import relabelled
from eddyline.expressions.vector import Vector
from eddyline.standing.engine.aggregation import central_moments, counted_values
from eddyline.standing.engine.aggregation.alike_values import grouped_alike

LOW_BITS: Final = 32
"""Sums of integers are exact: those of the upper and the lower bits are taken apart."""

_WHOLE: Final = decimal.Context(prec=80)
"""Enough for whatever a decimal of 38 digits is divided by."""

_SAFE_DIGITS: Final = 28


class AggregateFunction(StrEnum):
    """What is computed of the values of a group; NULL is left out of all of them."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    COLLECT_SET = "collect_set"
    STDDEV_SAMP = "stddev_samp"
    STDDEV_POP = "stddev_pop"
    VAR_SAMP = "var_samp"
    VAR_POP = "var_pop"
    SKEWNESS = "skewness"
    KURTOSIS = "kurtosis"
    CORR = "corr"
    COVAR_SAMP = "covar_samp"
    COVAR_POP = "covar_pop"
    MAX_BY = "max_by"
    MIN_BY = "min_by"
    BIT_AND = "bit_and"
    BIT_OR = "bit_or"
    BIT_XOR = "bit_xor"
    MODE = "mode"
    PERCENTILE = "percentile"
    PERCENTILE_APPROX = "percentile_approx"
    COLLECT_LIST = "collect_list"


MOMENTS: Final = frozenset(
    {
        AggregateFunction.STDDEV_SAMP,
        AggregateFunction.STDDEV_POP,
        AggregateFunction.VAR_SAMP,
        AggregateFunction.VAR_POP,
        AggregateFunction.SKEWNESS,
        AggregateFunction.KURTOSIS,
        AggregateFunction.CORR,
        AggregateFunction.COVAR_SAMP,
        AggregateFunction.COVAR_POP,
    }
)
"""Those that are made of means, and of powers of distances from them."""

PAIRS: Final = frozenset(
    {AggregateFunction.CORR, AggregateFunction.COVAR_SAMP, AggregateFunction.COVAR_POP}
)
"""Those of two numbers: what they are of is a struct of both, NULL where one of them is."""

CHOOSING: Final = frozenset({AggregateFunction.MAX_BY, AggregateFunction.MIN_BY})
"""Those that give the value in one of the rows: what they are of is a struct of the value and of
what says in which row."""

BITS: Final = {
    AggregateFunction.BIT_AND: -1,
    AggregateFunction.BIT_OR: 0,
    AggregateFunction.BIT_XOR: 0,
}
"""Those of bits, with the number that changes nothing."""

COUNTED: Final = frozenset(
    {AggregateFunction.MODE, AggregateFunction.PERCENTILE, AggregateFunction.PERCENTILE_APPROX}
)
"""Those that are made of all values with their counts: see
:mod:`eddyline.standing.engine.aggregation.counted_values`."""


class Overflow(Enum):
    """What becomes of a sum that its type cannot hold."""

    FAILS = "fails"
    WRAPS = "wraps"
    IS_NULL = "is NULL"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of an expression over the rows, None for a count of rows; ``type`` is its own.

    ``distinct`` says whether it is of distinct values, which have to be kept. ``options`` are its
    constant arguments: the shares of percentiles, with what else they take, see :func:`value_of`.
    """

    function: AggregateFunction
    argument: Expression | None
    type: pa.DataType
    overflow: Overflow = Overflow.FAILS
    distinct: bool = False
    options: tuple[float, ...] = ()
    listed: bool = False

    def __setstate__(self, state: list[object]) -> None:
        """Take what was pickled: before, there were fewer fields."""
        defaults = [field.default for field in fields(self)]
        values = [*state, *defaults[len(state) :]]
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    @property
    def label(self) -> str:
        """A text that stays the same in every process, and names the same parts.

        No two aggregates have it that are made of different ones.
        """
        if self.function in COUNTED:
            return f"counted {hashlib.sha256(repr(self.argument).encode()).hexdigest()[:16]}"
        digest = hashlib.sha256(repr((self.argument, self.type, self.overflow)).encode())
        function = f"{self.function}-distinct" if self.distinct else self.function
        return f"{function} {digest.hexdigest()[:16]}"

    @property
    def is_set(self) -> bool:
        """Whether it is made of the set of values."""
        return self.distinct or self.function is AggregateFunction.COLLECT_SET


_SUMMED: Final = ("rows", "high", "low", "sum", "nan")

_WEIGHTED: Final = ("more", "more-sum", "spread", "spread-sum", "spread-square", "gone")
"""What estimates are made of: :mod:`eddyline.standing.engine.aggregation.estimates`."""

PARTS: Final = dict.fromkeys((*_SUMMED, *_WEIGHTED), "sum") | {"min": "min", "max": "max"}
"""How the columns of an aggregate are put together that Arrow does, by the last word of their
names; for others see :mod:`eddyline.standing.engine.aggregation.merged_parts`."""


def parts_of(  # noqa: C901, PLR0911 - a line or two for each family
    aggregate: Aggregate, values: pa.Array | None, rows: int
) -> dict[str, pa.Array]:
    """Return the columns that an aggregate is made of, for single rows.

    ``values`` are those of its argument, None where it has none.
    """
    if values is None:
        return {"rows": pa.array(np.ones(rows, np.int64))}
    known = {"rows": values.is_valid().cast(pa.int64())}
    function = aggregate.function
    if aggregate.is_set:
        return known | {"set": _singletons(values)}
    if function in COUNTED:
        return known | {"bag": counted_values.bags_of_one(values)}
    if function in BITS:
        return known | {function.value: values.cast(pa.int64()).fill_null(BITS[function])}
    if function in PAIRS:
        one, other = values.flatten()
        return known | central_moments.of_pairs(one, other)
    if function in CHOOSING:
        value, by = values.flatten()
        by = grouped_alike(by)
        return {"rows": by.is_valid().cast(pa.int64()), "value": value, function.value: by}
    match function:
        case AggregateFunction.COUNT:
            return known
        case AggregateFunction.SUM | AggregateFunction.AVG:
            return known | _summed(values)
        case AggregateFunction.MIN | AggregateFunction.MAX:
            return known | _extremes(function.value, values)
        case AggregateFunction.COLLECT_LIST:
            return known | {"list": counted_values.lists_of_one(values)}
    powers = function in {AggregateFunction.SKEWNESS, AggregateFunction.KURTOSIS}
    return known | central_moments.of_values(values, powers=powers)


def _extremes(which: str, values: pa.Array) -> dict[str, pa.Array]:
    kind = values.type
    if not is_floating(kind):
        return {which: values}
    # NaN is greater than all else to Spark, and unknown to Arrow.
    nan = pc.is_nan(values)
    numbers = pc.if_else(nan, pa.scalar(None, kind), values)
    return {which: numbers, "nan": nan.cast(pa.int64())}


def _singletons(values: pa.Array) -> pa.ListArray:
    """Return for each value the set that has it alone, the empty one for NULL."""
    ends = np.cumsum(values.is_valid().to_numpy(zero_copy_only=False))
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), grouped_alike(values.drop_null()))


def _summed(values: pa.Array) -> dict[str, pa.Array]:
    kind = values.type
    if is_integer(kind):
        whole = values.cast(pa.int64())
        high = pc.shift_right(whole, pa.scalar(LOW_BITS, pa.int64()))
        low = pc.bit_wise_and(whole, pa.scalar((1 << LOW_BITS) - 1, pa.int64()))
        return {"high": high, "low": low}
    if pa.types.is_decimal(kind):
        # Some billion values of 28 digits stay below 38; wider ones are summed with more.
        wide = kind.precision > _SAFE_DIGITS
        return {
            "sum": values.cast(
                (pa.decimal256 if wide else pa.decimal128)(76 if wide else 38, kind.scale)
            )
        }
    return {"sum": values.cast(pa.float64())}


def value_of(aggregate: Aggregate, parts: pa.Table) -> Vector:  # noqa: PLR0911 - as above
    """Return the values of an aggregate, of type ``aggregate.type``, from its parts.

    ``parts`` has its columns, called as :func:`parts_of` calls them, a row for each group.
    """
    rows = pc.fill_null(_column(parts, "rows"), 0)
    function = aggregate.function
    if aggregate.is_set:
        return _of_sets(aggregate, _column(parts, "set"))
    if function in COUNTED:
        return Vector(_of_bags(aggregate, _column(parts, "bag")))
    if function in BITS:
        bits = _column(parts, function.value).cast(aggregate.type)
        return Vector(pc.if_else(pc.equal(rows, 0), pa.scalar(None, bits.type), bits))
    if function in MOMENTS:
        return Vector(_of_moments(aggregate, parts, rows))
    match function:
        case AggregateFunction.COUNT:
            return Vector(rows.cast(aggregate.type))
        case AggregateFunction.MIN | AggregateFunction.MAX:
            return Vector(_extreme(aggregate, parts, rows).cast(aggregate.type))
        case AggregateFunction.COLLECT_LIST:
            return Vector(_as_list(aggregate, _column(parts, "list")))
        case AggregateFunction.MAX_BY | AggregateFunction.MIN_BY:
            known = pa.array(np.arange(len(rows)), mask=rows.to_numpy() == 0)
            return Vector(relabelled(_column(parts, "value").take(known), aggregate.type))
    if "high" in parts.column_names:
        return _of_integers(aggregate, parts, rows)
    return _of_sums(aggregate, _column(parts, "sum"), rows)


def _of_bags(aggregate: Aggregate, bags: pa.ListArray) -> pa.Array:
    """Return what comes of bags of values.

    The options of a percentile are whether the order is falling, and its shares; of an approximate
    one its accuracy, and shares.
    """
    if aggregate.function is AggregateFunction.MODE:
        return relabelled(counted_values.most_frequent(bags), aggregate.type)
    first, *shares = aggregate.options
    if aggregate.function is AggregateFunction.PERCENTILE:
        lists = counted_values.percentiles(bags, shares, falling=bool(first))
    else:
        kind = aggregate.type.value_type if aggregate.listed else aggregate.type
        lists = counted_values.order_statistics(bags, shares, int(first), kind)
    if aggregate.listed:
        return relabelled(lists, aggregate.type)
    return pc.list_element(lists, 0).cast(aggregate.type)


def _as_list(aggregate: Aggregate, lists: pa.ListArray) -> pa.Array:
    """Return lists of a type of their own, the empty one where there is none."""
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    whole = pa.ListArray.from_arrays(pa.array(offsets), lists.flatten())
    return relabelled(whole, aggregate.type)


def _of_sets(aggregate: Aggregate, sets: pa.ListArray) -> Vector:
    """Return what comes of sets of values."""
    sizes = pc.fill_null(pc.list_value_length(sets), 0)
    if aggregate.function is AggregateFunction.COUNT:
        return Vector(sizes.cast(aggregate.type))
    if aggregate.function is AggregateFunction.COLLECT_SET:
        return Vector(_as_list(aggregate, sets))
    plain = replace(aggregate, distinct=False)
    parts = pa.table(parts_of(plain, sets.flatten(), len(sets.flatten())))
    groups = parts.append_column("group", pc.list_parent_indices(sets)).group_by("group")
    summed = groups.aggregate([(name, "sum") for name in parts.column_names])
    place = np.full(len(sets), -1)
    place[summed.column("group").to_numpy()] = np.arange(len(summed))
    every = summed.take(pa.array(place, mask=place < 0))
    names = {f"{name}_sum": name for name in parts.column_names}
    columns = every.select(list(names)).rename_columns(list(names.values()))
    return value_of(plain, columns.cast(parts.schema).combine_chunks())


def _of_moments(aggregate: Aggregate, parts: pa.Table, rows: pa.Array) -> pa.Array:
    """Return variances or standard deviations; NULL where too few rows are known."""
    function = aggregate.function
    counts = rows.to_numpy(zero_copy_only=False).astype(np.float64)

    def part(word: str) -> npt.NDArray[np.float64]:
        numbers: npt.NDArray[np.float64] = _column(parts, word).fill_null(0.0).to_numpy()
        return numbers

    if function.value in central_moments.SHAPES:
        return central_moments.shape(function.value, counts, part)
    if function in PAIRS:
        of_sample = function is AggregateFunction.COVAR_SAMP
        return central_moments.covariance(counts, part, of_sample=of_sample)
    squares = part(central_moments.SQUARES)
    of_sample = function in {AggregateFunction.STDDEV_SAMP, AggregateFunction.VAR_SAMP}
    free = rows.to_numpy(zero_copy_only=False) - int(of_sample)
    values = np.divide(squares, free, out=np.zeros(len(free)), where=free > 0)
    if function in {AggregateFunction.STDDEV_SAMP, AggregateFunction.STDDEV_POP}:
        values = np.sqrt(values)
    return pa.array(values, mask=free <= 0)


def _extreme(aggregate: Aggregate, parts: pa.Table, rows: pa.Array) -> pa.Array:
    values = _column(parts, aggregate.function.value)
    if "nan" not in parts.column_names:
        return values
    nans = pc.fill_null(_column(parts, "nan"), 0)
    most = aggregate.function is AggregateFunction.MAX
    is_nan = pc.greater(nans, 0) if most else pc.and_(pc.equal(nans, rows), pc.greater(nans, 0))
    return pc.if_else(is_nan, pa.scalar(float("nan"), values.type), values)


def _of_integers(aggregate: Aggregate, parts: pa.Table, rows: pa.Array) -> Vector:
    counts = rows.to_numpy(zero_copy_only=False)
    high = pc.fill_null(_column(parts, "high"), 0).to_numpy(zero_copy_only=False)
    low = pc.fill_null(_column(parts, "low"), 0).to_numpy(zero_copy_only=False)
    none = counts == 0
    if aggregate.function is AggregateFunction.AVG:
        sums = high.astype(np.float64) * float(1 << LOW_BITS) + low
        means = np.divide(sums, counts, out=np.zeros(len(sums)), where=~none)
        return Vector(pa.array(means, mask=none))
    high, low = high + (low >> LOW_BITS), low & ((1 << LOW_BITS) - 1)
    values = (high << LOW_BITS) | low
    limit = 1 << (63 - LOW_BITS)
    over = (high < -limit) | (high >= limit)
    return bounded(aggregate, pa.array(values, mask=none).cast(aggregate.type), over)


def _of_sums(aggregate: Aggregate, sums: pa.Array, rows: pa.Array) -> Vector:
    none = pc.equal(rows, 0)
    sums = pc.if_else(none, pa.scalar(None, sums.type), sums)
    if not pa.types.is_decimal(sums.type):
        if aggregate.function is AggregateFunction.AVG:
            sums = pc.divide(sums, pc.if_else(none, 1, rows).cast(pa.float64()))
        return Vector(sums.cast(aggregate.type))
    counts = rows.to_pylist()
    values: list[decimal.Decimal | None] = []
    over = np.zeros(len(counts), np.bool_)
    for number, (total, count) in enumerate(zip(sums.to_pylist(), counts, strict=True)):
        value = total
        if total is not None and aggregate.function is AggregateFunction.AVG:
            value = _WHOLE.divide(total, count)
        over[number] = value is not None and not fits(value, aggregate.type)
        values.append(None if value is None or over[number] else rounded(value, aggregate.type))
    return bounded(aggregate, pa.array(values, aggregate.type), over)


def rounded(value: decimal.Decimal, kind: pa.DataType) -> decimal.Decimal:
    """Return a number with as many digits as a type of decimals has."""
    unit = decimal.Decimal(1).scaleb(-kind.scale)
    return value.quantize(unit, decimal.ROUND_HALF_UP, _WHOLE)


def fits(value: decimal.Decimal, kind: pa.DataType) -> bool:
    """Tell whether a type of decimals can hold a number."""
    most = decimal.Decimal(10) ** int(kind.precision - kind.scale)
    return rounded(value, kind).copy_abs() < most  # abs() would round to 28 digits


def bounded(aggregate: Aggregate, values: pa.Array, over: npt.NDArray[np.bool_]) -> Vector:
    """Return values, some of which are beyond what their type can hold."""
    if not over.any() or aggregate.overflow is Overflow.WRAPS:
        return Vector(values)
    values = pc.if_else(pa.array(over), pa.scalar(None, values.type), values)
    if aggregate.overflow is Overflow.IS_NULL:
        return Vector(values)
    what = f"{aggregate.function.upper()} does not fit {aggregate.type}"
    failed = np.flatnonzero(over).tolist()
    return Vector(
        values, {row: ArithmeticFailure(ErrorCondition.ARITHMETIC_OVERFLOW, what) for row in failed}
    )


def _column(parts: pa.Table, name: str) -> pa.Array:
    return parts.column(name).combine_chunks()
