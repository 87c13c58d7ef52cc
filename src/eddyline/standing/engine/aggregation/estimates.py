"""Aggregates of windows when only a sample of their events was taken.

Each event is taken with the share ``p`` of its micro-batch, so it stands for ``1 / p`` events:
itself and ``1 / p - 1`` that were dropped (Horvitz and Thompson, 1952). How many events of a window
were dropped is known. So what was taken is counted as it is, and what was dropped is estimated
by as many events that are like those that stand for them: a ratio estimator (Cochran, 1977,
chapter 6). A count is never below what was seen, and never above that and all that was dropped.

What an estimate needs are sums over the rows, as all else that is kept of aggregates: of what they
stand for, and of ``(1 - p) / p**2``, the variance that a row brings, with their values and the
squares of these. Time and room grow with the aggregates, not with the rows.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.expressions import is_floating, is_integer
from eddyline.expressions.vector import Vector
from eddyline.standing.engine.aggregation.aggregate_functions import (
    LOW_BITS,
    Aggregate,
    AggregateFunction,
    bounded,
    fits,
    rounded,
    value_of,
)

CONFIDENCE: Final = 0.95
"""How often the true value is in an interval, as nearly as a normal distribution tells."""

_QUANTILE: Final = 1.959963984540054
"""Of the normal distribution, for that confidence on both sides."""

_ESTIMATED: Final = frozenset(
    {AggregateFunction.COUNT, AggregateFunction.SUM, AggregateFunction.AVG}
)
"""Functions whose values, of all rows, are estimated; others are of the rows that were taken."""

_BOUNDED: Final = _ESTIMATED | {AggregateFunction.MIN, AggregateFunction.MAX}
"""Functions of which something is known to lie between bounds."""

_LARGEST_LONG: Final = float(np.nextafter(2.0**63, 0))

Floats = npt.NDArray[np.float64]


class Weights(NamedTuple):
    """What sampled rows stand for: events that were dropped, and the variance that each brings.

    ``spread`` is None for rows that were not drawn one by one, as joined ones.
    """

    more: Floats
    spread: Floats | None

    @classmethod
    def of(cls, shares: Floats, *, one_by_one: bool = True) -> Self:
        """Return the weights of rows by the shares with which they were taken."""
        return cls(1 / shares - 1, (1 - shares) / shares**2 if one_by_one else None)

    def take(self, rows: npt.NDArray[np.int64]) -> Weights:
        """Return those of some rows."""
        return Weights(self.more[rows], None if self.spread is None else self.spread[rows])


@dataclass(frozen=True, slots=True)
class Lost:
    """What the windows of results have lost, each a number a row.

    ``dropped`` are events, NaN where that is not what is missing of the rows: where streams are
    joined. ``seen`` are events that were taken, ``more`` and ``spread`` the sums of their weights.
    Where the rows are not drawn ``one_by_one``, as an event that is joined with several rows of a
    table, there are no intervals. ``of_group`` tells where all this is said of the group itself,
    and not of the whole window.
    """

    dropped: Floats
    seen: Floats
    more: Floats
    spread: Floats
    one_by_one: bool = True
    of_group: npt.NDArray[np.bool_] | None = None

    def in_groups(
        self, where: npt.NDArray[np.bool_], gone: Floats, more: Floats, spread: Floats
    ) -> Lost:
        """Return what groups have lost, where that was counted group by group."""
        return replace(
            self,
            dropped=np.where(where, gone, self.dropped),
            more=np.where(where, more, self.more),
            spread=np.where(where, spread, self.spread),
            of_group=where,
        )

    @property
    def counted(self) -> npt.NDArray[np.bool_]:
        """Tell where it is known how many events are missing."""
        return ~np.isnan(self.dropped)

    @property
    def factor(self) -> Floats:
        """Return the factor by which the weights of a window give all that it has lost."""
        some = self.counted & (self.more > 0)
        return np.divide(self.dropped, self.more, out=np.ones(len(self.more)), where=some)

    @property
    def blind(self) -> npt.NDArray[np.bool_]:
        """Tell where no event was taken that stands for the dropped ones."""
        return self.counted & (self.dropped > 0) & (self.more <= 0)


class SampledAggregates(NamedTuple):
    """Values, and the bounds of their intervals, NaN where there is none."""

    values: Vector
    low: Floats
    high: Floats


def weighted_parts(
    aggregate: Aggregate, values: pa.Array | None, weights: Weights
) -> dict[str, pa.Array]:
    """Return the columns that estimates of an aggregate are made of, for single rows."""
    if aggregate.is_set or aggregate.function not in _ESTIMATED:
        return {}
    rows = len(weights.more)
    known = np.ones(rows) if values is None else _floats(values.is_valid())
    parts = {"more": weights.more * known}
    sums = aggregate.function is not AggregateFunction.COUNT
    numbers = np.where(known > 0, _floats(values), 0.0) if sums and values is not None else None
    if numbers is not None:
        parts["more-sum"] = weights.more * numbers
    if weights.spread is not None:
        parts["spread"] = weights.spread * known
        if numbers is not None:
            parts["spread-sum"] = weights.spread * numbers
            parts["spread-square"] = weights.spread * numbers**2
    return {name: pa.array(column) for name, column in parts.items()}


def estimated(aggregate: Aggregate, parts: pa.Table, lost: Lost) -> SampledAggregates:
    """Return an aggregate of windows that have lost events, estimated from its parts.

    ``parts`` has its columns, as ``parts_of`` of the aggregate functions and
    :func:`weighted_parts` call them, a row for each group of a window. Where nothing was lost,
    values are those that ``value_of`` gives there.
    """
    seen = value_of(aggregate, parts)
    rows = _part(parts, "rows")
    if lost.of_group is not None:
        lost = replace(lost, seen=np.where(lost.of_group, rows, lost.seen))
    unknown = np.full(len(rows), np.nan)
    if aggregate.is_set or aggregate.function not in _BOUNDED:
        is_count = aggregate.function is AggregateFunction.COUNT
        return SampledAggregates(seen, _bound(seen.values) if is_count else unknown, unknown)
    match aggregate.function:
        case AggregateFunction.MIN:
            return SampledAggregates(seen, unknown, _bound(seen.values))
        case AggregateFunction.MAX:
            return SampledAggregates(seen, _bound(seen.values), unknown)
        case AggregateFunction.COUNT:
            value, low, high = _count(parts, rows, lost)
            if lost.of_group is not None and aggregate.argument is None:
                every = rows + np.nan_to_num(lost.dropped)
                value, low, high = (
                    np.where(lost.of_group, every, estimate) for estimate in (value, low, high)
                )
        case AggregateFunction.SUM:
            value, low, high = _sum(parts, rows, lost)
        case _:
            value, low, high = _mean(parts, rows, lost)
    if not lost.one_by_one:
        low = high = np.full(len(rows), np.nan)
    some = np.isnan(lost.dropped) | (lost.dropped > 0)
    some &= ~np.isnan(value) & seen.values.is_valid().to_numpy(zero_copy_only=False)
    if not some.any():
        return SampledAggregates(seen, low, high)
    return SampledAggregates(_replaced(aggregate, seen, value, some), low, high)


def _count(parts: pa.Table, rows: Floats, lost: Lost) -> tuple[Floats, Floats, Floats]:
    """Return counts: what was seen, and the part of what was dropped that is like it.

    The interval is Wilson's (1927) for that part, which holds for the smallest numbers as well.
    """
    dropped = np.where(lost.counted, lost.dropped, 0.0)
    more = _part(parts, "more") * lost.factor
    blind = lost.blind
    share = np.divide(rows, lost.seen, out=np.zeros(len(rows)), where=blind & (lost.seen > 0))
    more = np.where(blind, dropped * share, more)
    part = np.divide(more, dropped, out=np.zeros(len(rows)), where=dropped > 0).clip(0, 1)
    drawn = _drawn(dropped, lost.spread)
    known = drawn > 0
    drawn, square = np.where(known, drawn, 1.0), _QUANTILE**2
    middle = (part + square / (2 * drawn)) / (1 + square / drawn)
    half = np.sqrt(part * (1 - part) / drawn + square / (4 * drawn**2)) * _QUANTILE
    half /= 1 + square / drawn
    low = np.where(known, middle - half, 0.0).clip(0, 1)
    high = np.where(known, middle + half, 1.0).clip(0, 1)
    # A bound that is a number of events is to be that, and not a little less.
    low, high = (rows + np.round(dropped * bound, 6) for bound in (low, high))
    return rows + more, _where(lost.counted, low), _where(lost.counted, high)


def _sum(parts: pa.Table, rows: Floats, lost: Lost) -> tuple[Floats, Floats, Floats]:
    total = _total(parts)
    factor = lost.factor
    value = total + factor * _part(parts, "more-sum")
    blind, some = lost.blind, lost.seen > 0
    like = np.divide(total * lost.dropped, lost.seen, out=np.zeros(len(rows)), where=blind & some)
    value = np.where(blind, total + like, value)
    mean = np.divide(
        _part(parts, "more-sum"), lost.more, out=np.zeros(len(rows)), where=lost.more > 0
    )
    cross, square = _part(parts, "spread-sum"), _part(parts, "spread-square")
    variance = (square - 2 * mean * cross + mean**2 * lost.spread).clip(0)
    own = _drawn(_part(parts, "more"), _part(parts, "spread"))
    every = _drawn(lost.more, lost.spread)
    half = _quantile(own) * np.sqrt(variance * every / _free(every))
    known = lost.counted & ~blind & (own > 0) & (every >= 1)
    return value, _where(known, value - half), _where(known, value + half)


def _mean(parts: pa.Table, rows: Floats, lost: Lost) -> tuple[Floats, Floats, Floats]:
    factor = lost.factor
    total = _total(parts) + factor * _part(parts, "more-sum")
    count = rows + factor * _part(parts, "more")
    value = np.divide(total, count, out=np.full(len(rows), np.nan), where=count > 0)
    spread, cross = _part(parts, "spread"), _part(parts, "spread-sum")
    variance = (_part(parts, "spread-square") - 2 * value * cross + value**2 * spread).clip(0)
    drawn = _drawn(_part(parts, "more"), spread)
    half = _quantile(drawn) * np.sqrt(variance * drawn / _free(drawn))
    half = np.divide(half, count, out=np.zeros(len(rows)), where=count > 0)
    known = lost.counted & ~lost.blind & (drawn >= 1)
    return value, _where(known, value - half), _where(known, value + half)


def _drawn(more: Floats, spread: Floats) -> Floats:
    """Return how many rows of one weight rows of several count as: below 1 for a single one."""
    return np.divide(more**2, spread, out=np.zeros(len(more)), where=spread > 0)


def _free(drawn: Floats) -> Floats:
    """Return degrees of freedom: a single row says nothing of how far rows are apart."""
    return np.maximum(drawn - 1, 0.5)


def _quantile(drawn: Floats) -> Floats:
    """Return Student's quantile for so many rows (Abramowitz and Stegun, 1964, 26.7.5)."""
    free, z = _free(drawn), _QUANTILE
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    quantile: Floats = z + first / free + second / free**2 + third / free**3
    return quantile


def _total(parts: pa.Table) -> Floats:
    if "high" in parts.column_names:
        return _part(parts, "high") * float(1 << LOW_BITS) + _part(parts, "low")
    return _part(parts, "sum")


def _part(parts: pa.Table, name: str) -> Floats:
    """Return a column of parts, 0 where there is none: of rows that stand for themselves only."""
    if name not in parts.column_names:
        return np.zeros(len(parts))
    return np.nan_to_num(_floats(parts.column(name).combine_chunks()), nan=0.0, posinf=np.inf)


def _floats(values: pa.Array) -> Floats:
    """Return numbers as floating-point ones, NaN for NULL."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    numbers: Floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _bound(values: pa.Array) -> Floats:
    """Return numbers as bounds; NaN for what is none."""
    kind = values.type
    if not (is_integer(kind) or is_floating(kind) or pa.types.is_decimal(kind)):
        return np.full(len(values), np.nan)
    return _floats(values)


def _where(known: npt.NDArray[np.bool_], values: Floats) -> Floats:
    return np.where(known, values, np.nan)


def _replaced(
    aggregate: Aggregate, seen: Vector, value: Floats, some: npt.NDArray[np.bool_]
) -> Vector:
    """Return values with estimates in some places, in the type of the aggregate."""
    kind = aggregate.type
    value = np.where(some, value, 0.0)
    over = np.zeros(len(value), np.bool_)
    if is_integer(kind):
        whole = np.rint(value)
        over = some & (np.abs(whole) > _LARGEST_LONG)
        here = pa.array(whole.clip(-_LARGEST_LONG, _LARGEST_LONG).astype(np.int64)).cast(kind)
    elif pa.types.is_decimal(kind):
        numbers: list[decimal.Decimal | None] = []
        for row, number in enumerate(value.tolist()):
            exact = decimal.Decimal(number) if np.isfinite(number) else None
            over[row] = exact is None or not fits(exact, kind)
            numbers.append(None if exact is None or over[row] else rounded(exact, kind))
        here = pa.array(numbers, kind)
    else:
        here = pa.array(value).cast(kind)
    estimates = bounded(aggregate, here, over)
    values = pc.if_else(pa.array(some), estimates.values, seen.values)
    return Vector(values, {**seen.errors, **estimates.errors})
