"""What units of a sample have added to a result, and how much that varies.

With one relation dealt out to units, those that are done are a simple random sample, and the
variance of an estimated total is that of the units' totals, with the correction for a finite
population (Cochran, Sampling Techniques, 1977, Section 2.5). With two, each pair of units, one of
each relation, adds something of its own: a table of which some rows and some columns are known.
Its mean varies by which rows, by which columns, and by which of their crossings were drawn. Each
relation's part of the variance is told by the means of its units; what crossings add is in both
parts and counts once (Haas and Hellerstein, Ripple Joins for Online Aggregation, 1999, Section 5,
with units in place of rows; the two-way table with both sides drawn without replacement as in
Cochran, Section 10.8, is exact for few units, too).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from math import prod
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from eddyline.watching.formulas import Floats, Terms

Places: TypeAlias = npt.NDArray[np.int64]

MOST_SAMPLED: Final = 2
"""Relations that are dealt out to units: a third's pairs with pairs of the others are not kept."""

ADDED_AT_ONCE: Final = 1 << 16
"""Entries that wait to be added up by unit, so that memory holds no more than twice what it must.
"""


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of an estimated total, by group: arrays of shape (groups,).

    ``of_inputs`` has a part for each sampled relation, ``twice`` what two of these parts have in
    common, and ``degrees`` those of freedom (Satterthwaite, 1946). ``known`` is False where one
    unit of a relation varies from no other.
    """

    of_inputs: tuple[Floats, ...]
    twice: Floats
    degrees: Floats
    known: bool

    @property
    def whole(self) -> Floats:
        """The variance: never less than that of the greatest part, which alone is in it."""
        parts = np.stack(self.of_inputs)
        with np.errstate(over="ignore", invalid="ignore"):
            both: Floats = np.fmax(parts.sum(axis=0) - self.twice, parts.max(axis=0))
        return both


class UnitTotals:
    """Adds up measures by group and unit of each sampled relation."""

    def __init__(self, units: Sequence[int], measures: Sequence[str]) -> None:
        """``units`` are those of each sampled relation, one or two.

        ValueError for more relations, or without units.
        """
        if not 1 <= len(units) <= MOST_SAMPLED or min(units) < 1:
            raise ValueError(f"{list(units)} are not the units of one or two relations")
        self.units = tuple(units)
        self.done = [0] * len(units)
        self._columns = {name: number for number, name in enumerate(measures)}
        self._by_unit = [_ByUnit() for _ in units]
        self._products: dict[tuple[int, int], Floats] = {
            pair: np.zeros(0)
            for pair in combinations_with_replacement(range(len(measures)), 2)
            if len(units) > 1
        }

    def add(self, places: Places, numbers: Sequence[Places], values: Floats) -> None:
        """Add measures, of shape (cells, measures).

        ``places`` are the numbers of the groups of each cell, ``numbers`` those of the unit of each
        sampled relation. No two cells have all of these in common, now or later.
        """
        if not len(places):
            return  # of which NumPy would make whole numbers
        for by_unit, unit in zip(self._by_unit, numbers, strict=True):
            by_unit.add(places, unit, values)
        with np.errstate(over="ignore", invalid="ignore"):
            for (left, right), products in self._products.items():
                squares: Floats = np.bincount(  # type: ignore[assignment]  # of floats with weights
                    places, values[:, left] * values[:, right], len(products)
                )
                squares[: len(products)] += products
                self._products[left, right] = squares

    def total(self, measure: str, groups: int) -> Floats:
        """Return the estimated totals of a measure, by group."""
        if not min(self.done):
            zeros: Floats = np.zeros(groups)
            return zeros
        total: Floats = self.seen(measure, groups) / prod(self.done) * prod(self.units)
        return total

    def seen(self, measure: str, groups: int) -> Floats:
        """Return what all pairs of units that are done have added to a measure, by group."""
        seen: Floats = self._table(0, measure, groups).sum(axis=1)
        return seen

    def variance(self, terms: Terms) -> Variance:
        """Return the variance of the estimated total of a sum of measures."""
        groups = len(next(iter(terms.values())))
        with np.errstate(over="ignore", invalid="ignore"):
            tables = [self._sums(r, terms, groups) for r in range(len(self.units))]
            parts = tuple(self._part(r, table) for r, table in enumerate(tables))
            twice = np.zeros(groups) if len(parts) == 1 else self._twice(terms, tables)
        return Variance(parts, twice, self._degrees(parts), self.known)

    @property
    def known(self) -> bool:
        """Whether units vary from each other as far as can be seen."""
        return all(n > 1 or n == of for n, of in zip(self.done, self.units, strict=True))

    def _table(self, relation: int, measure: str, groups: int) -> Floats:
        """Return a measure by group and unit of a relation."""
        return self._by_unit[relation].table(self._columns[measure], groups, self.done[relation])

    def _sums(self, relation: int, terms: Terms, groups: int) -> Floats:
        return reduce(
            np.add,
            (
                factor[:, None] * self._table(relation, measure, groups)
                for measure, factor in terms.items()
            ),
        )

    def _part(self, relation: int, table: Floats) -> Floats:
        """Return the variance by which units of a relation were drawn, and which crossings."""
        done, units = self.done[relation], self.units[relation]
        if done < 2 or done == units:  # noqa: PLR2004 - one unit varies from no other
            return np.zeros(len(table))
        others = prod(self.done) / done
        each = np.square(table.std(axis=1, ddof=1) / others)
        part: Floats = prod(self.units) ** 2 * (1.0 - done / units) / done * each
        return part

    def _twice(self, terms: Terms, tables: Sequence[Floats]) -> Floats:
        """Return the variance of crossings, which is in the parts of both relations."""
        (rows, columns), groups = self.done, len(tables[0])
        if min(rows, columns) < 2:  # noqa: PLR2004 - as above
            return np.zeros(groups)
        squares = np.zeros(groups)
        for one, factor in terms.items():
            for other, another in terms.items():
                pair = sorted((self._columns[one], self._columns[other]))
                products = self._products[pair[0], pair[1]]
                squares[: len(products)] += (factor * another)[: len(products)] * products
        total = tables[0].sum(axis=1)
        squares -= np.square(tables[0]).sum(axis=1) / columns
        squares -= np.square(tables[1]).sum(axis=1) / rows
        squares += np.square(total) / (rows * columns)
        each = np.fmax(squares, 0.0) / ((rows - 1) * (columns - 1))
        left = [(1.0 - n / of) / n for n, of in zip(self.done, self.units, strict=True)]
        twice: Floats = prod(self.units) ** 2 * prod(left) * each
        return twice

    def _degrees(self, parts: Sequence[Floats]) -> Floats:
        free = [max(n - 1, 1) for n in self.done]
        if len(parts) == 1:
            return np.full(len(parts[0]), float(free[0]))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            # Divided first, as squares of totals are beyond what doubles hold.
            shares = [part / sum(parts) for part in parts]
            whole = 1.0 / sum(np.square(s) / n for s, n in zip(shares, free, strict=True))
        degrees: Floats = np.where(np.isfinite(whole), whole, min(free))
        return degrees


class _ByUnit:
    """Measures by group and unit of one relation, as a list of entries: few groups have all."""

    def __init__(self) -> None:
        self._entries: list[tuple[Places, Places, Floats]] = []
        self._new = self._added_up = 0

    def add(self, places: Places, units: Places, values: Floats) -> None:
        self._entries.append((places, units, values))
        self._new += len(places)
        if self._new > max(self._added_up, ADDED_AT_ONCE):
            self._add_up()

    def table(self, column: int, groups: int, units: int) -> Floats:
        if not self._entries:
            return np.zeros((groups, units))
        places, numbers, values = self._joined()
        self._entries = [(places, numbers, values)]
        sums = np.bincount(places * units + numbers, values[:, column], groups * units)
        table: Floats = sums.reshape(groups, units).astype(np.float64, copy=False)
        return table

    def _joined(self) -> tuple[Places, Places, Floats]:
        if len(self._entries) == 1:
            return self._entries[0]
        places, numbers, values = (np.concatenate(of) for of in zip(*self._entries, strict=True))
        return places, numbers, values

    def _add_up(self) -> None:
        places, units, values = self._joined()
        width = int(units.max()) + 1
        keys, where = np.unique(places * width + units, return_inverse=True)
        sums: Floats = np.stack(
            [np.bincount(where, column).astype(np.float64, copy=False) for column in values.T],
            axis=1,
        )
        self._entries = [(keys // width, keys % width, sums)]
        self._new, self._added_up = 0, len(keys)
