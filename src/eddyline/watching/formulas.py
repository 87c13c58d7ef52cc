"""Values computed from aggregates, as ``sum(x) / count(*)``, while these are still estimates.

A formula's value is what it gives for the estimates. Its interval comes from a linear formula that
changes as it does over one standard error of each aggregate to either side: what units have added
to that is a total like any other (Taylor linearization: Cochran, Sampling Techniques, 1977,
Section 6.3, for ratios; the differences in place of derivatives hold for steps as well). What
units add to several aggregates together is in it, so that a ratio of two that go up and down
together varies less than either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Floats: TypeAlias = npt.NDArray[np.float64]

Terms: TypeAlias = Mapping[str, Floats]
"""A sum of measures, by name: the factor of each, by group."""

Compute: TypeAlias = Callable[[Sequence[pa.Array], bool], pa.Array]
"""From the columns of the groups, then of all aggregates, to the formula's.

The second argument says whether the values are final: then an error is raised as the formula's own
engine does; before that, a row that fails is NULL.
"""

LEAST_STEP: Final = 1e-6
"""Part of a value that is taken for a step where the value did not vary."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A value computed from groups and aggregates: its name, its type, and how it is computed.

    ``of`` are the numbers of the aggregates in it.
    """

    name: str
    type: pa.DataType
    of: tuple[int, ...]
    compute: Compute


@dataclass(frozen=True, slots=True)
class Estimated:
    """An aggregate as estimated from the units that are done, by group.

    ``values`` are in the aggregate's type. ``terms`` is a sum of measures whose estimated total has
    the aggregate's error, and ``errors`` are the standard errors by group; None where there is no
    telling, as of a least value.
    """

    values: pa.Array
    terms: Terms | None
    errors: Floats | None


def linearized(
    formula: Formula, groups: Sequence[pa.Array], aggregates: Sequence[Estimated]
) -> tuple[pa.Array, Terms | None]:
    """Return a formula's values by group, and the terms of its error; None where there are none.

    Their factors are NaN for a group where the formula has no value to one side.
    """
    given = [*groups, *(estimated.values for estimated in aggregates)]
    values = formula.compute(given, False)  # noqa: FBT003 - a callable's arguments have no names
    if not _is_number(formula.type):
        return values, None
    terms: dict[str, Floats] = {}
    for number in formula.of:
        aggregate = aggregates[number]
        if aggregate.terms is None or aggregate.errors is None:
            return values, None
        place = len(groups) + number
        low, below = _moved(aggregate.values, -aggregate.errors)
        high, above = _moved(aggregate.values, aggregate.errors)
        ends = [
            _floats(formula.compute([*given[:place], end, *given[place + 1 :]], False))  # noqa: FBT003
            for end in (low, high)
        ]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            slope = (ends[1] - ends[0]) / (above - below)
        slope = np.where(np.isfinite(slope), slope, np.nan)
        for measure, factor in aggregate.terms.items():
            terms[measure] = slope * factor + terms.get(measure, 0.0)
    return values, terms or None


def _moved(values: pa.Array, by: Floats) -> tuple[pa.Array, Floats]:
    """Return values moved by so much, in their type, and the numbers they have become."""
    kind = values.type
    numbers = _floats(values)
    least = np.maximum(np.abs(numbers) * LEAST_STEP, _unit_of(kind))
    moved = numbers + np.where(np.abs(by) < least, np.copysign(least, by), by)
    known = np.isfinite(moved)
    if pa.types.is_integer(kind):
        limit = 2.0 ** (kind.bit_width - 1)
        moved = np.rint(moved)
        known &= (moved >= -limit) & (moved < limit)
    if pa.types.is_decimal(kind):
        step, limit = Decimal(1).scaleb(-kind.scale), 10.0 ** (kind.precision - kind.scale)
        known &= np.abs(moved) < limit
        exact = [
            Decimal(value).quantize(step) if sure else None
            for value, sure in zip(moved.tolist(), known.tolist(), strict=True)
        ]
        column = pa.array(exact, kind)
        return column, _floats(column)
    column = pa.array(np.where(known, moved, 0.0), mask=~known).cast(kind)
    return column, _floats(column)


def _unit_of(kind: pa.DataType) -> float:
    """Return the least step of a type."""
    if pa.types.is_integer(kind):
        return 1.0
    return float(Decimal(1).scaleb(-kind.scale)) if pa.types.is_decimal(kind) else LEAST_STEP


def _floats(values: pa.Array) -> Floats:
    floats: Floats = (
        pc.cast(values, pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    )
    return floats


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
