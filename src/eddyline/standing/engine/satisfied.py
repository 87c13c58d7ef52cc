"""What a grouped filter says of a vector of tuples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Satisfied:
    """The queries whose predicate a tuple satisfies, tuple by tuple, ascending.

    Those of tuple i are ``queries[begins[i] : ends[i]]``; those of different tuples do not
    overlap, and stand in no set order.
    """

    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    queries: npt.NDArray[np.int32]

    @classmethod
    def of_sizes(cls, sizes: npt.NDArray[np.int64], queries: npt.NDArray[np.int32]) -> Satisfied:
        """Return that where the queries of tuples stand end to end, so many a tuple."""
        ends = np.cumsum(sizes, dtype=np.int64)
        return cls(ends - sizes, ends, queries)
