"""Means and sums of powers of distances from them, put together from parts.

After Chan, Golub and LeVeque (1979), and Pébay (2008) for the third and the fourth power. Whole
groups of parts are put together at once: with the mean of all known, each part says what its rows
are away from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

MEAN: Final = "mean"
SQUARES: Final = "squares"
CUBES: Final = "cubes"
FOURTHS: Final = "fourths"
OTHER_MEAN: Final = "other-mean"
OTHER_SQUARES: Final = "other-squares"
PRODUCTS: Final = "products"
"""The last words of parts' names: of one variable, and of a second one beside it."""

MADE_OF_SQUARES: Final = frozenset({MEAN, CUBES, FOURTHS, OTHER_MEAN, OTHER_SQUARES, PRODUCTS})
"""Parts that are put together with those that are called :data:`SQUARES`."""


def of_values(numbers: pa.Array, *, powers: bool) -> dict[str, pa.Array]:
    """Return the parts of single numbers, with their third and fourth ``powers`` or without."""
    zeros = pa.array(np.zeros(len(numbers)))
    parts = {MEAN: numbers.cast(pa.float64()).fill_null(0.0), SQUARES: zeros}
    return parts | ({CUBES: zeros, FOURTHS: zeros} if powers else {})


def of_pairs(one: pa.Array, other: pa.Array) -> dict[str, pa.Array]:
    """Return the parts of single pairs of numbers."""
    zeros = pa.array(np.zeros(len(one)))
    return {
        MEAN: one.cast(pa.float64()).fill_null(0.0),
        OTHER_MEAN: other.cast(pa.float64()).fill_null(0.0),
        SQUARES: zeros,
        OTHER_SQUARES: zeros,
        PRODUCTS: zeros,
    }


def put_together(
    rows: pa.Table, label: str, of_rows: Numbers, groups: int
) -> Iterator[tuple[str, pa.Array]]:
    """Yield the parts of an aggregate with a row for each group, by their whole names."""

    def part(word: str) -> Floats:
        column = rows.column(f"{label} {word}").combine_chunks()
        numbers: Floats = column.cast(pa.float64()).fill_null(0.0).to_numpy()
        return numbers

    def told(word: str, values: Floats) -> tuple[str, pa.Array]:
        return f"{label} {word}", pa.array(values)

    def summed(values: Floats) -> Floats:
        return np.bincount(of_rows, values, groups).astype(np.float64, copy=False)

    count = part("rows")
    names = set(rows.column_names)
    with np.errstate(invalid="ignore", over="ignore"):  # infinite values, as in Spark
        mean, apart = _means(count, part(MEAN), of_rows, groups)
        squares = part(SQUARES)
        yield told(MEAN, mean)
        yield told(SQUARES, summed(squares + count * apart**2))
        if f"{label} {CUBES}" in names:
            cubes = part(CUBES)
            yield told(CUBES, summed(cubes + 3 * apart * squares + count * apart**3))
            fourths = part(FOURTHS) + 4 * apart * cubes + 6 * apart**2 * squares
            yield told(FOURTHS, summed(fourths + count * apart**4))
        if f"{label} {PRODUCTS}" in names:
            other, beside = _means(count, part(OTHER_MEAN), of_rows, groups)
            yield told(OTHER_MEAN, other)
            yield told(OTHER_SQUARES, summed(part(OTHER_SQUARES) + count * beside**2))
            yield told(PRODUCTS, summed(part(PRODUCTS) + count * apart * beside))


def _means(count: Floats, mean: Floats, of_rows: Numbers, groups: int) -> tuple[Floats, Floats]:
    """Return the means of groups, and how far those of their parts are from them."""
    every = np.bincount(of_rows, count, groups)
    sums = np.bincount(of_rows, np.where(count > 0, count * mean, 0.0), groups)
    means = np.divide(sums, every, out=np.zeros(groups), where=every > 0)
    return means, np.where(count > 0, mean - means[of_rows], 0.0)


def _skewness(rows: Floats, part: Callable[[str], Floats]) -> Floats:
    return np.sqrt(rows) * part(CUBES) / np.sqrt(part(SQUARES) ** 3)


def _kurtosis(rows: Floats, part: Callable[[str], Floats]) -> Floats:
    return rows * part(FOURTHS) / part(SQUARES) ** 2 - 3


def _correlation(_: Floats, part: Callable[[str], Floats]) -> Floats:
    return part(PRODUCTS) / np.sqrt(part(SQUARES) * part(OTHER_SQUARES))


SHAPES: Final = {"skewness": _skewness, "kurtosis": _kurtosis, "corr": _correlation}
"""What has no value where nothing differs."""


def shape(function: str, rows: Floats, part: Callable[[str], Floats]) -> pa.Array:
    """Return skewness, kurtosis or correlation; NULL where Spark would divide by zero."""
    with np.errstate(all="ignore"):
        values = SHAPES[function](rows, part)
    nothing = (rows == 0) | (part(SQUARES) == 0)
    if function == "corr":
        nothing |= (rows == 1) | (part(OTHER_SQUARES) == 0)
    return pa.array(values, mask=nothing)


def covariance(rows: Floats, part: Callable[[str], Floats], *, of_sample: bool) -> pa.Array:
    """Return covariances; NULL where too few pairs are known."""
    free = rows - int(of_sample)
    values = np.divide(part(PRODUCTS), free, out=np.zeros(len(free)), where=free > 0)
    return pa.array(values, mask=free <= 0)
