"""Aggregates of a result that is still growing: estimates, and intervals that hold.

The rows of one relation, or of two, were dealt out at random into units, each row by itself, and
units are worked one by one. So the units that are done are a simple random sample of all units, and
what their rows have added to the result tells how much the others will add: the total is estimated
by expansion, its variance as in :mod:`~eddyline.watching.unit_totals`, an average as the ratio of
two totals (Cochran, Sampling Techniques, 1977, Sections 2.5 and 6.3; for joins Haas and
Hellerstein, Ripple Joins, 1999, Section 5). For a least or a greatest value a sample only shows
that the final one is no greater, or no less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.watching.aggregate import (
    EXACT_INTEGERS,
    EXTREMES,
    WatchedAggregate,
    WatchedFunction,
    canonical,
    comparable,
    compared_floats,
    final_values,
    summable,
    typed,
)
from eddyline.watching.formulas import Estimated, Floats, Formula, Terms, linearized
from eddyline.watching.unit_totals import UnitTotals


def student_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t with so many degrees of freedom.

    Exact for 1 and 2 degrees; else by the expansion of Abramowitz and Stegun (1964, 26.7.5),
    whose error for 3 degrees at 97.5 % is 0.1 %, and less for more.

    ValueError for a probability outside of (0, 1), or no degree of freedom.

    >>> round(student_quantile(0.975, 1), 3), round(student_quantile(0.975, 10), 3)
    (12.706, 2.228)
    """
    if not 0.0 < probability < 1.0 or degrees < 1:
        raise ValueError(f"there is no quantile {probability} of {degrees} degrees of freedom")
    if degrees == 1:
        return math.tan(math.pi * (probability - 0.5))
    if degrees == 2:  # noqa: PLR2004 - has a closed form as well
        centred = 2.0 * probability - 1.0
        return centred * math.sqrt(2.0 / (1.0 - centred * centred))
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
    )
    more: float = sum(term / float(degrees) ** power for power, term in enumerate(terms, 1))
    return z + more


PLACE: Final = "place"
"""The column of totals that says which group's they are, by number."""

FREEST: Final = 1000
"""Degrees of freedom beyond which Student's quantiles are told from no others."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Aggregates as they look by now.

    ``table`` has a row for each group that was seen: the columns of the group, then for each
    aggregate three: its value, ``…_low`` and ``…_high``, between which the final value is with
    the probability ``confidence``; NULL where there is no telling yet. ``fraction`` of the units
    were worked; where all were, the values are exact. ``so_far`` names the columns that are no
    estimates but of the rows seen so far, as MIN and MAX, and so have no interval.
    ``contributions`` are the parts that the sampled relations have in the variance, over all
    intervals, each as much as any other; zeros where none is known.
    """

    table: pa.Table
    fraction: float
    confidence: float
    so_far: frozenset[str] = frozenset()
    contributions: tuple[float, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether nothing is missing."""
        return self.fraction >= 1.0


class RunningAggregates:
    """Adds up a result, unit by unit."""

    def __init__(
        self,
        groups: Sequence[tuple[str, pa.DataType]],
        aggregates: Sequence[WatchedAggregate],
        units: int | Sequence[int],
        confidence: float = 0.95,
        formulas: Sequence[Formula] = (),
    ) -> None:
        """The result's first columns are those of ``groups``.

        ``units`` are those of the sampled relation, or of each of two. In the estimates the columns
        of ``formulas`` follow those of ``aggregates``.

        ValueError for less than one unit, or a confidence outside of (0, 1).
        """
        of_each = (units,) if isinstance(units, int) else tuple(units)
        if min(of_each) < 1 or not 0.0 < confidence < 1.0:
            raise ValueError(f"{units} units and a confidence of {confidence} make no estimate")
        self.confidence = confidence
        self._groups = tuple(groups)
        self._aggregates = tuple(aggregates)
        self._formulas = tuple(formulas)
        self._keys = [f"g{n}" for n in range(len(self._groups))]
        self._summed = sorted(
            {a.column for a in aggregates if a.column is not None and a.function not in EXTREMES}
        )
        self._extremes = sorted(
            {
                (a.column, a.function)
                for a in aggregates
                if a.function in EXTREMES and a.column is not None
            }
        )
        self._measures = ["one", *(f"{m}{c}" for c in self._summed for m in "an")]
        self._units = [f"u{n}" for n in range(len(of_each))]
        self._totals = UnitTotals(of_each, self._measures)
        self._in_unit: list[pa.Table] = []
        self._exact: list[pa.Table] = []  # rows for each group, to be added up
        self._numbers: dict[tuple[object, ...], int] = {}  # of the groups that were seen
        self._seen: list[pa.Table] = []  # their columns, in this order
        self._parts: list[Floats] = []  # of the variances of this estimate, by relation and group

    @property
    def done(self) -> tuple[int, ...]:
        """The units of each sampled relation that are done."""
        return tuple(self._totals.done)

    @property
    def is_complete(self) -> bool:
        """Whether all units are done."""
        return self.done == self._totals.units

    def add(
        self, columns: Sequence[pa.Array], rows: int, units: Sequence[pa.Array] | None = None
    ) -> None:
        """Add rows of the result that the current unit has brought.

        ``units`` are for each row the numbers of the units of its relations, from 0 on in the order
        in which they are done; it may be left out where there is but one relation.
        """
        named = {
            name: canonical(column)
            for name, column in zip(self._keys, columns[: len(self._keys)], strict=True)
        }
        if units is None:
            units = [pa.array(np.full(rows, self.done[0]))]
        named.update(zip(self._units, units, strict=True))
        named["one"] = pa.array(np.ones(rows, np.int64))
        for column in self._summed:
            named[f"a{column}"] = summable(columns[column])
        for column, function in self._extremes:
            named[f"{function}{column}"] = comparable(columns[column])
        self._in_unit.append(pa.table(named).combine_chunks())

    def end_unit(self, relation: int = 0) -> None:
        """Say that a unit of a sampled relation is done: all of its rows have come."""
        if self.done[relation] == self._totals.units[relation]:
            raise ValueError(f"all {self.done[relation]} units are done")
        if self._in_unit:
            cells = self._added(pa.concat_tables(self._in_unit))
            places = self._places(cells.select(self._keys))
            numbers = [cells.column(name).to_numpy().astype(np.int64) for name in self._units]
            self._totals.add(places, numbers, _floats(cells, self._measures))
            exact = cells.drop([*self._keys, *self._units])
            self._exact.append(exact.append_column(PLACE, pa.array(places)))
            self._in_unit = []
        self._totals.done[relation] += 1

    def estimates(self) -> Estimates:
        """Return what is known by the units that are done."""
        totals = pa.concat_tables(self._exact) if self._exact else self._no_totals()
        by_group = self._by_group(totals)
        if self._exact:
            self._exact = [by_group.select(totals.column_names)]
        if not self._keys and not len(totals):
            by_group = _nothing(by_group.schema)
        self._parts = []
        names = [name for name, _ in self._groups]
        groups: list[pa.Array] = []
        if self._keys:
            seen = pa.concat_tables(self._seen) if self._seen else self._no_totals()
            groups = [
                _whole(seen.column(key).cast(kind))
                for (_, kind), key in zip(self._groups, self._keys, strict=True)
            ]
        columns: list[pa.Array] = list(groups)
        so_far: set[str] = set()

        def put(name: str, values: pa.Array, terms: Terms | None) -> None:
            names.extend((name, f"{name}_low", f"{name}_high"))
            columns.extend(self._bounded(values, terms))
            if terms is None:
                so_far.add(name)

        estimates = [self._estimated(aggregate, by_group) for aggregate in self._aggregates]
        for aggregate, estimated in zip(self._aggregates, estimates, strict=True):
            put(aggregate.name, estimated.values, estimated.terms)
        for formula in self._formulas:
            if self.is_complete:
                values = formula.compute(
                    [*groups, *(estimate.values for estimate in estimates)],
                    True,  # noqa: FBT003 - a callable's arguments have no names
                )
                terms = None
            else:
                values, terms = linearized(formula, groups, estimates)
            put(formula.name, values, terms)
        table = pa.Table.from_arrays(columns, names=names)
        fraction = sum(self.done) / sum(self._totals.units)
        told = frozenset() if self.is_complete else frozenset(so_far)
        return Estimates(table, fraction, self.confidence, told, self._contributions())

    def _contributions(self) -> tuple[float, ...]:
        """Return the part of each sampled relation in the variances of the last intervals."""
        nothing = (0.0,) * len(self._units)
        if not self._parts:
            return nothing
        parts = np.concatenate(self._parts, axis=1)
        whole = parts.sum(axis=0)
        parts = parts[:, np.isfinite(whole) & (whole > 0.0)]
        shares = (parts / parts.sum(axis=0)).mean(axis=1) if parts.size else nothing
        return tuple(map(float, shares))

    def _places(self, groups: pa.Table) -> npt.NDArray[np.int64]:
        """Return the numbers of groups, and take note of new ones."""
        before = len(self._numbers)
        numbers = [
            self._numbers.setdefault(key, len(self._numbers)) for key in _tuples(groups, self._keys)
        ] or [0] * len(groups)
        places = np.array(numbers, np.int64)
        if len(self._numbers) > before:
            new, first = np.unique(places, return_index=True)
            self._seen.append(groups.take(pa.array(first[new >= before])))
        return places

    def _estimated(self, aggregate: WatchedAggregate, by_group: pa.Table) -> Estimated:
        """Return an aggregate by group; exact ones, without terms, where all units are done."""
        if aggregate.function in EXTREMES:
            extremes = _whole(by_group.column(f"{aggregate.function}{aggregate.column}"))
            floats = pa.types.is_floating(aggregate.type)
            kind = aggregate.type
            return Estimated(
                compared_floats(extremes, kind) if floats else extremes.cast(kind), None, None
            )
        counts = "one" if aggregate.column is None else f"n{aggregate.column}"
        sums = counts if aggregate.column is None else f"a{aggregate.column}"
        if self.is_complete:
            exact = final_values(aggregate, by_group.column(counts), by_group.column(sums))
            return Estimated(_whole(exact), None, None)
        value, terms = self._estimate(aggregate.function, sums, counts, len(by_group))
        seen = np.asarray(pc.fill_null(by_group.column(counts), 0)) > 0
        known = seen | (aggregate.function is WatchedFunction.COUNT)
        errors = np.sqrt(self._totals.variance(terms).whole)
        return Estimated(typed(value, aggregate.type, known), terms, errors)

    def _estimate(
        self, function: WatchedFunction, sums: str, counts: str, groups: int
    ) -> tuple[Floats, Terms]:
        """Return estimates by group, and the terms of their error."""
        measure = counts if function is WatchedFunction.COUNT else sums
        if function is not WatchedFunction.AVG:
            return self._totals.total(measure, groups), {measure: np.ones(groups)}
        count = self._totals.seen(counts, groups)
        ratio = self._totals.seen(sums, groups) / np.where(count > 0, count, 1.0)
        # What is left of a sum without the ratio's part varies as the ratio of totals does.
        whole = np.maximum(self._totals.total(counts, groups), 1e-300)
        return ratio, {sums: 1.0 / whole, counts: -ratio / whole}

    def _bounded(
        self, values: pa.Array, terms: Terms | None
    ) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Return values with their bounds: NULL where these are not known, or not yet."""
        if self.is_complete:
            return values, values, values
        if terms is None:
            nothing = pa.nulls(len(values), values.type)
            return values, nothing, nothing
        value = pc.cast(values, pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        variance = self._totals.variance(terms)
        margin = np.sqrt(variance.whole) * _quantiles(0.5 + self.confidence / 2, variance.degrees)
        sure = np.asarray(values.is_valid()) & variance.known & np.isfinite(margin)
        if variance.known:
            self._parts.append(np.stack(variance.of_inputs)[:, sure])
        return (
            values,
            pa.array(value - margin, mask=~sure),
            pa.array(value + margin, mask=~sure),
        )

    def _no_totals(self) -> pa.Table:
        named = {
            key: pa.array([], kind) for key, (_, kind) in zip(self._keys, self._groups, strict=True)
        }
        named["one"] = pa.array([], pa.int64())
        for column in self._summed:
            named[f"a{column}"] = pa.array([], EXACT_INTEGERS)
            named[f"n{column}"] = pa.array([], pa.int64())
        for column, function in self._extremes:
            kind = next(
                a.type for a in self._aggregates if a.column == column and a.function is function
            )
            floats = pa.types.is_floating(kind)
            named[f"{function}{column}"] = pa.array([], pa.int64() if floats else kind)
        named[PLACE] = pa.array([], pa.int64())
        return pa.table(named)

    def _added(self, table: pa.Table) -> pa.Table:
        """Return one row for each group of rows of the result and the units that made them."""
        wanted = [("one", "sum", "one")]
        for column in self._summed:
            wanted += [
                (f"a{column}", "sum", f"a{column}"),
                (f"a{column}", "count", f"n{column}"),
            ]
        return _aggregated(table, [*self._keys, *self._units], [*wanted, *self._of_extremes()])

    def _by_group(self, totals: pa.Table) -> pa.Table:
        """Return one row for each group of totals, in the order of their numbers."""
        wanted = [*((name, "sum", name) for name in self._measures), *self._of_extremes()]
        return _aggregated(totals, [PLACE], wanted).sort_by(PLACE)

    def _of_extremes(self) -> list[tuple[str, str, str]]:
        names = [(f"{function}{column}", str(function)) for column, function in self._extremes]
        return [(name, function, name) for name, function in names]


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _floats(table: pa.Table, names: Sequence[str]) -> Floats:
    """Return columns of numbers, of shape (rows, columns); zero for NULL."""
    columns = [pc.fill_null(pc.cast(table.column(name), pa.float64()), 0.0) for name in names]
    return np.stack([column.to_numpy() for column in columns], axis=1)


def _quantiles(probability: float, degrees: Floats) -> Floats:
    """Return Student's quantiles for degrees of freedom, which are rounded down."""
    whole = np.floor(np.clip(degrees, 1.0, FREEST) + 1e-9).astype(int)
    known, where = np.unique(whole, return_inverse=True)
    quantiles: Floats = np.array([student_quantile(probability, int(n)) for n in known])[where]
    return quantiles


def _aggregated(
    table: pa.Table, keys: list[str], wanted: Sequence[tuple[str, str, str]]
) -> pa.Table:
    """Return aggregates by groups, each of (column, function, name of what comes of it)."""
    aggregates = table.group_by(keys).aggregate([(column, how) for column, how, _ in wanted])
    names = {f"{column}_{how}": name for column, how, name in wanted}
    return aggregates.rename_columns([names.get(name, name) for name in aggregates.column_names])


def _nothing(schema: pa.Schema) -> pa.Table:
    """Return the one group of no rows, where rows are not grouped."""
    counts = {"one", *(name for name in schema.names if name[0] == "n" and name[1:].isdigit())}
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
