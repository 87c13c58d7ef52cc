"""Aggregates of a result that is still growing: estimates, and intervals that hold.

The rows of one relation were dealt out at random into units, each row by itself, and units are
worked one by one. So the units that are done are a simple random sample of all units, and what
their rows have added to the result, unit by unit, tells how much the others will add: the total
is estimated by expansion, its variance by that of the units' totals, with the correction for a
finite population, an average as the ratio of two totals (Cochran, Sampling Techniques, 1977,
Sections 2.5 and 6.3; for joins Haas and Hellerstein, Ripple Joins, 1999, Section 5).
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import EddylineError
from eddyline.online.student import student_quantile

Floats: TypeAlias = npt.NDArray[np.float64]

EXACT_INTEGERS: Final = pa.decimal128(38, 0)
"""In which whole numbers are added up, beyond what 64 bits hold."""

DECIMAL_DIGITS: Final = 38

UNIT: Final = "unit"
PLACE: Final = "place"
"""The columns of totals that say which unit they are of, and the number of which group."""


class AggregateOverflowError(EddylineError, ArithmeticError):
    """A final value does not fit the aggregate's type."""


class AggregateFunction(StrEnum):
    """What can be estimated."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate: its function, the number of the column that it is of, its name and type.

    ``column`` is None for a count of rows.
    """

    function: AggregateFunction
    column: int | None
    name: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Estimates:
    """Aggregates as they look by now.

    ``table`` has a row for each group that was seen: the columns of the group, then for each
    aggregate three: its value, ``…_low`` and ``…_high``, between which the final value is with
    the probability ``confidence``; NULL where there is no telling yet. ``fraction`` of the units
    were worked; where all were, the values are exact.
    """

    table: pa.Table
    fraction: float
    confidence: float

    @property
    def exact(self) -> bool:
        """Whether nothing is missing."""
        return self.fraction >= 1.0


class RunningAggregates:
    """Adds up a result, unit by unit."""

    def __init__(
        self,
        groups: Sequence[tuple[str, pa.DataType]],
        aggregates: Sequence[Aggregate],
        units: int,
        confidence: float = 0.95,
    ) -> None:
        """Begin with nothing; the result's first columns are those of ``groups``.

        ValueError for less than one unit, or a confidence outside of (0, 1).
        """
        if units < 1 or not 0.0 < confidence < 1.0:
            raise ValueError(f"{units} units and a confidence of {confidence} make no estimate")
        self.units = units
        self.done = 0
        self.confidence = confidence
        self._groups = tuple(groups)
        self._aggregates = tuple(aggregates)
        self._keys = [f"g{n}" for n in range(len(self._groups))]
        self._summed = sorted({a.column for a in aggregates if a.column is not None})
        self._in_unit: list[pa.Table] = []
        self._totals: list[pa.Table] = []  # a row for each group and unit, by unit
        self._numbers: dict[tuple[object, ...], int] = {}  # of the groups that were seen
        self._seen: list[pa.Table] = []  # their columns, in this order

    def add(self, columns: Sequence[pa.Array], rows: int) -> None:
        """Add rows of the result that the unit has which is being worked."""
        named = {
            name: _canonical(column)
            for name, column in zip(self._keys, columns[: len(self._keys)], strict=True)
        }
        named["one"] = pa.array(np.ones(rows, np.int64))
        for column in self._summed:
            named[f"a{column}"] = _summable(columns[column])
        self._in_unit.append(pa.table(named).combine_chunks())

    def end_unit(self) -> None:
        """Say that the unit is done: all of its rows have come."""
        if self.done == self.units:
            raise ValueError(f"all {self.units} units are done")
        if self._in_unit:
            part = _added(pa.concat_tables(self._in_unit), self._keys, self._summed)
            unit = pa.array(np.full(len(part), self.done))
            place = pa.array(self._places(part.select(self._keys)))
            self._totals.append(part.append_column(UNIT, unit).append_column(PLACE, place))
            self._in_unit = []
        self.done += 1

    def estimates(self) -> Estimates:
        """Return what is known by the units that are done."""
        totals = pa.concat_tables(self._totals) if self._totals else self._no_totals()
        by_group = _by_group(totals, self._summed)
        if not self._keys and not len(totals):
            by_group = _nothing(self._summed, by_group.schema)
        names = [name for name, _ in self._groups]
        columns: list[pa.Array | pa.ChunkedArray] = []
        if self._keys:
            seen = pa.concat_tables(self._seen) if self._seen else totals
            columns += [
                seen.column(key).cast(kind)
                for (_, kind), key in zip(self._groups, self._keys, strict=True)
            ]
        for aggregate in self._aggregates:
            names += [aggregate.name, f"{aggregate.name}_low", f"{aggregate.name}_high"]
            columns += self._of(aggregate, totals, by_group)
        table = pa.Table.from_arrays(columns, names=names)
        return Estimates(table, self.done / self.units, self.confidence)

    def _places(self, groups: pa.Table) -> npt.NDArray[np.int64]:
        """Return the numbers of groups, and take note of new ones."""
        before = len(self._numbers)
        numbers = [
            self._numbers.setdefault(key, len(self._numbers)) for key in _tuples(groups, self._keys)
        ] or [0] * len(groups)
        places = np.array(numbers, np.int64)
        # Groups of one part are distinct, and new ones were numbered in their order.
        self._seen.append(groups.filter(pa.array(places >= before)))
        return places

    def _of(
        self, aggregate: Aggregate, totals: pa.Table, by_group: pa.Table
    ) -> tuple[pa.Array, pa.Array, pa.Array]:
        counts = "one" if aggregate.column is None else f"n{aggregate.column}"
        sums = counts if aggregate.column is None else f"a{aggregate.column}"
        if self.done == self.units:
            values = _exact(aggregate, by_group.column(counts), by_group.column(sums))
            return values, values, values
        shape = (len(by_group), self.done)

        def by_unit(name: str) -> Floats:
            table: Floats = np.zeros(shape)
            numbers = pc.fill_null(pc.cast(totals.column(name), pa.float64()), 0.0)
            table[totals.column(PLACE).to_numpy(), totals.column(UNIT).to_numpy()] = (
                numbers.to_numpy()
            )
            return table

        if aggregate.function is AggregateFunction.COUNT:
            value, error = self._total(by_unit(counts))
        elif aggregate.function is AggregateFunction.SUM:
            value, error = self._total(by_unit(sums))
        else:
            value, error = self._ratio(by_unit(sums), by_unit(counts))
        seen = np.asarray(pc.fill_null(by_group.column(counts), 0)) > 0
        known = seen | (aggregate.function is AggregateFunction.COUNT)
        quantile = student_quantile(0.5 + self.confidence / 2, max(self.done - 1, 1))
        sure = known & (self.done > 1)
        return (
            _typed(value, aggregate.type, known),
            pa.array(value - quantile * error, mask=~sure),
            pa.array(value + quantile * error, mask=~sure),
        )

    def _total(self, by_unit: Floats) -> tuple[Floats, Floats]:
        """Return totals over all units, and their standard errors."""
        if not self.done:
            zeros: Floats = np.zeros(len(by_unit))
            return zeros, zeros
        total = by_unit.mean(axis=1) * self.units
        return total, self._error(by_unit)

    def _ratio(self, sums: Floats, counts: Floats) -> tuple[Floats, Floats]:
        """Return ratios of totals, and their standard errors."""
        count = counts.sum(axis=1)
        divisor = np.where(count > 0, count, 1.0)
        ratio = sums.sum(axis=1) / divisor
        residuals = sums - ratio[:, None] * counts
        whole = np.maximum(self._total(counts)[0], 1e-300)
        return ratio, self._error(residuals) / whole

    def _error(self, by_unit: Floats) -> Floats:
        done = self.done
        if done < 2:  # noqa: PLR2004 - one unit varies from no other
            return np.zeros(len(by_unit))
        rest = 1.0 - done / self.units
        deviation: Floats = by_unit.std(axis=1, ddof=1)
        error: Floats = self.units * deviation * np.sqrt(rest / done)
        return error

    def _no_totals(self) -> pa.Table:
        named = {
            key: pa.array([], kind) for key, (_, kind) in zip(self._keys, self._groups, strict=True)
        }
        named["one"] = pa.array([], pa.int64())
        for column in self._summed:
            named[f"a{column}"] = pa.array([], EXACT_INTEGERS)
            named[f"n{column}"] = pa.array([], pa.int64())
        named[UNIT] = named[PLACE] = pa.array([], pa.int64())
        return pa.table(named)


def _canonical(column: pa.Array) -> pa.Array:
    """Return a column of a group as grouping sees it: one zero and one NaN of floats."""
    if not pa.types.is_floating(column.type):
        return column
    positive = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), column.type), positive)


def _summable(column: pa.Array) -> pa.Array:
    """Return a column in a type in which its sums are exact, or as exact as doubles are."""
    if pa.types.is_integer(column.type):
        return column.cast(EXACT_INTEGERS)
    if pa.types.is_decimal(column.type):
        return column.cast(pa.decimal128(DECIMAL_DIGITS, column.type.scale))
    if pa.types.is_floating(column.type):
        return column.cast(pa.float64())
    # Of these only the values are counted.
    return pc.if_else(pc.is_valid(column), pa.scalar(1, pa.int64()), None).cast(EXACT_INTEGERS)


def _added(table: pa.Table, keys: list[str], summed: Sequence[int]) -> pa.Table:
    """Return one row for each group of rows of the result."""
    wanted = [("one", "sum")]
    for column in summed:
        wanted += [(f"a{column}", "sum"), (f"a{column}", "count")]
    found = table.group_by(keys).aggregate(wanted)
    names = {"one_sum": "one"}
    for column in summed:
        names[f"a{column}_sum"] = f"a{column}"
        names[f"a{column}_count"] = f"n{column}"
    return found.rename_columns([names.get(name, name) for name in found.column_names])


def _by_group(totals: pa.Table, summed: Sequence[int]) -> pa.Table:
    """Return one row for each group of totals by unit, in the order of their numbers."""
    names = ["one"]
    for column in summed:
        names += [f"a{column}", f"n{column}"]
    found = totals.group_by(PLACE).aggregate([(name, "sum") for name in names]).sort_by(PLACE)
    return found.rename_columns([name.removesuffix("_sum") for name in found.column_names])


def _nothing(summed: Sequence[int], schema: pa.Schema) -> pa.Table:
    """Return the one group of no rows, where rows are not grouped."""
    counts = {"one", *(f"n{column}" for column in summed)}
    return pa.table(
        {
            field.name: pa.array([0 if field.name in counts else None], field.type)
            for field in schema
        }
    )


def _tuples(table: pa.Table, keys: list[str]) -> list[tuple[object, ...]]:
    values = [list(map(_findable, table.column(key).to_pylist())) for key in keys]
    return list(zip(*values, strict=True))


def _findable(value: object) -> object:
    """Return a value that is equal to itself, and can be a key."""
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - NaN
        return "NaN", None
    return repr(value) if isinstance(value, list | dict) else value


def _exact(
    aggregate: Aggregate, counts: pa.ChunkedArray, sums: pa.ChunkedArray
) -> pa.Array | pa.ChunkedArray:
    """Return final values, each as Spark has it."""
    if aggregate.function is AggregateFunction.COUNT:
        return pc.cast(counts, aggregate.type)
    if aggregate.function is AggregateFunction.SUM:
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


def _typed(values: Floats, kind: pa.DataType, known: npt.NDArray[np.bool_]) -> pa.Array:
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
