"""The distinct values of an array."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Value = TypeVar("Value", bound=np.generic)


def distinct(values: npt.NDArray[Value]) -> npt.NDArray[Value]:
    """Return the distinct values, shape (values,), of an array without NaN, ascending.

    ``np.unique`` does the same. From version 2.3 it looks each value up in a hash table first:
    220,000 integers that all differ took 388 ms so, and 27 ms here; where 2,000,000 have but 1,000
    values, 130 ms and 243.
    """
    ordered = np.sort(values, axis=None)
    first = np.empty(len(ordered), np.bool_)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
