"""The two setups of Krishnamurthy et al. (2004), Figure 10: which results queries have.

All queries join streams R and S on a key, and each selects a range of values from both (Figure
11). Their results are squares in the plane of R's and S's values. In Setup 1 they lie along the
diagonal, each over a part of two others; in Setup 2 the first two lie in opposite corners, and
every other one overlaps with many, between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.expressions import And, Argument, Comparison, ComparisonOperator, Expression, Literal
from eddyline.standing.engine.shared_query import SharedQuery, Stream, edge

KEY, VALUE = range(2)
TYPES = (pa.int64(), pa.int64())
STREAMS = (Stream("R", TYPES), Stream("S", TYPES))
VALUES = 1 << 20


class Setup(Enum):
    """How the results of queries overlap."""

    FEWER_OVERLAPS = 1
    GREATER_OVERLAPS = 2


def bounds(setup: Setup, queries: int, of: int) -> npt.NDArray[np.int64]:
    """Return the least and the greatest value of each query, shape (queries, 2).

    In Setup 1 a query is as wide as lets ``of`` queries cover all values.
    """
    if setup is Setup.FEWER_OVERLAPS:
        # Of as many stretches as there can be queries each has one and a third of the next.
        step = VALUES // of
        least = np.arange(queries) * step
        return np.stack([least, least + step * 4 // 3], axis=1)
    # Half of all values each: the first two at the ends, all others between these.
    half = VALUES // 2
    places = np.concatenate([[0.0, 1.0], (np.arange(1, max(queries, 2)) * 0.6180339887498949) % 1])
    least = (places[:queries] * half).astype(np.int64)
    return np.stack([least, least + half - 1], axis=1)


def queries_of(setup: Setup, queries: int, of: int) -> Mapping[int, SharedQuery]:
    """Return the queries of a setup, by number."""
    join = frozenset({edge((0, KEY), (1, KEY))})
    return {
        number: SharedQuery({0: _between(*pair), 1: _between(*pair)}, join)
        for number, pair in enumerate(bounds(setup, queries, of).tolist())
    }


def _between(least: int, greatest: int) -> Expression:
    value, a_type = Argument(VALUE, pa.int64()), pa.int64()
    return And(
        (
            Comparison(ComparisonOperator.GREATER_OR_EQUAL, value, Literal(least, a_type)),
            Comparison(ComparisonOperator.LESS_OR_EQUAL, value, Literal(greatest, a_type)),
        )
    )
