"""How a seeded generator draws the values of the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.others.words import DATE_FORMATS, LITTLE_WORDS, WORDS
from bench.short.records import Draw

FORMAT_SHARES: Final = (0.45, 0.15, 0.1, 0.1, 0.08, 0.07, 0.05)
"""How often a date is written in each of the formats."""

WORDS_SKEW: Final = 1.4
"""Above 1, so that the first words are frequent."""

Ways: TypeAlias = Sequence[tuple[float, Callable[[Any], Any]]]
"""What becomes of a value: the first for which the number drawn is less than the one beside it."""


def in_ways(values: Sequence[Any], shares: Sequence[float], ways: Ways) -> list[Any]:
    """Return values, each in the way that its number between 0 and 1 chooses."""
    return [
        next(way for end, way in ways if share < end)(value)
        for value, share in zip(values, shares, strict=True)
    ]


def shares(draw: Draw, rows: int) -> list[float]:
    """Draw numbers between 0 and 1."""
    drawn: list[float] = draw.random(rows).tolist()
    return drawn


def chances(draw: Draw, rows: int, share: float) -> list[bool]:
    """Draw whether something holds, which it does for about a share of the rows."""
    drawn: list[bool] = (draw.random(rows) < share).tolist()
    return drawn


def replaced(draw: Draw, values: Sequence[Any], share: float, *others: Any) -> list[Any]:  # noqa: ANN401 - values of any column
    """Return values of which about a share is replaced by one of the others."""
    changed = list(values)
    places = np.flatnonzero(draw.random(len(changed)) < share)
    picks = draw.integers(0, len(others), len(places))
    for place, pick in zip(places.tolist(), picks.tolist(), strict=True):
        changed[place] = others[pick]
    return changed


def picked(draw: Draw, values: Sequence[Any], rows: int, skew: float = 1.0) -> list[Any]:
    """Draw values; with a skew above 1 the first ones are frequent."""
    places = (draw.random(rows) ** skew * len(values)).astype(np.int64)
    return [values[place] for place in places.tolist()]


def sentences(draw: Draw, rows: int, least: int, most: int, little: float = 0.2) -> list[str]:
    """Draw texts of least to most words, of which a share are little ones."""
    lengths = draw.integers(least, most + 1, rows)
    total = int(lengths.sum())
    places = (draw.random(total) ** WORDS_SKEW * len(WORDS)).astype(int)
    drawn = np.array(WORDS, dtype=object)[places]
    small = draw.random(total) < little
    drawn[small] = np.array(LITTLE_WORDS, dtype=object)[
        draw.integers(0, len(LITTLE_WORDS), int(small.sum()))
    ]
    words = drawn.tolist()
    ends = np.cumsum(lengths).tolist()
    return [
        " ".join(words[end - length : end])
        for end, length in zip(ends, lengths.tolist(), strict=True)
    ]


def days(draw: Draw, rows: int, first: date, last: date) -> list[date]:
    """Draw dates between two dates."""
    ordinals = draw.integers(first.toordinal(), last.toordinal() + 1, rows)
    return [date.fromordinal(ordinal) for ordinal in ordinals.tolist()]


def as_written(draw: Draw, dates: Sequence[date]) -> list[str]:
    """Return dates as texts in several formats."""
    formats = draw.choice(len(DATE_FORMATS), len(dates), p=FORMAT_SHARES).tolist()
    return [day.strftime(DATE_FORMATS[number]) for day, number in zip(dates, formats, strict=True)]


def subsets(draw: Draw, values: Sequence[str], rows: int, least: int, most: int) -> list[list[str]]:
    """Draw lists of least to most distinct ones of the values, whose number is prime."""
    sizes = draw.integers(least, most + 1, rows).tolist()
    starts = draw.integers(0, len(values), rows).tolist()
    steps = draw.integers(1, len(values), rows).tolist()
    return [
        [values[(start + step * number) % len(values)] for number in range(size)]
        for size, start, step in zip(sizes, starts, steps, strict=True)
    ]


def ids(rows: int) -> pa.Array:
    """Return the numbers from 1 on."""
    return pa.array(np.arange(1, rows + 1), pa.int64())


def texts(values: Sequence[Any]) -> pa.Array:
    """Return a column of texts."""
    return pa.array(values, pa.string())


def lists(values: Sequence[Any]) -> pa.Array:
    """Return a column of lists of texts."""
    return pa.array(values, pa.list_(pa.string()))


def whole(values: Sequence[Any] | NDArray[np.int64]) -> pa.Array:
    """Return a column of whole numbers."""
    return pa.array(values, pa.int64())


def doubles(values: Sequence[Any]) -> pa.Array:
    """Return a column of numbers with a fraction."""
    return pa.array(values, pa.float64())


def truths(values: Sequence[Any]) -> pa.Array:
    """Return a column of true and false."""
    return pa.array(values, pa.bool_())


def dates(values: Sequence[Any]) -> pa.Array:
    """Return a column of dates."""
    return pa.array(values, pa.date32())
