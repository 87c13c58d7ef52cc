"""What a grouped filter says of a vector of tuples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Satisfied:
    """The queries whose predicate a tuple satisfies, tuple by tuple, ascending.

    Those of tuple i are ``queries[stops[i - 1] : stops[i]]``, from 0 for the first.
    """

    stops: npt.NDArray[np.int64]
    queries: npt.NDArray[np.int32]
