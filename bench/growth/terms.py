"""Filters of many terms in the engine alone: what an eddy takes beyond the calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.policies.catalogue import make_policy
from eddyline.expressions import And, Argument, Call, Or
from eddyline.expressions.vector import Vector
from eddyline.wall_clock import WorkClock

ROWS: Final = 5_000
"""Rows of the only batch, as many as Spark sends each of two tasks of 10,000 rows."""

PART: Final = 1999
"""One row in so many is rejected by a term of an AND, or accepted by one of an OR."""


class Cheap:
    """A predicate that costs hardly more than its call; terms reject rows of their own."""

    vectorized = False

    def __init__(self, number: int, *, rejects: bool) -> None:
        self._number = number
        self._rejects = rejects

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:  # noqa: ARG002 - by the column's length
        """Call it row by row."""
        number, rejects = self._number, self._rejects
        found = [((x * 31 + number) % PART == 0) is not rejects for x in columns[0].to_pylist()]
        return Vector(pa.array(found, pa.bool_()))


@dataclass(frozen=True, slots=True)
class Beyond:
    """One run: seconds beyond the calls, and visits to modules."""

    seconds: float
    visits: int


def beyond(connective: str, terms: int, policy: str) -> Beyond:
    """Run a filter of so many terms joined by ``AND`` or ``OR`` in a new eddy."""
    column, clock = Argument(0, pa.int64()), WorkClock()
    kind = And if connective == "AND" else Or
    started = clock.now()
    eddy = FilterEddy(
        FilterPlan(kind(tuple(Call(n, (column,), pa.bool_()) for n in range(terms)))),
        [Cheap(n, rejects=connective == "AND") for n in range(terms)],
        lambda: make_policy(policy),
        clock,
        np.random.default_rng(0),
    )
    eddy.filter([pa.array(np.arange(ROWS))], ROWS)
    seconds = clock.now() - started
    clock.close()
    statistics = eddy.statistics()
    # The eddy of an OR is inside the only module of the outer one.
    inner = (getattr(module, "eddy", None) for module in eddy.eddy.modules.values())
    visits = statistics.eddy.decisions + sum(e.statistics().decisions for e in inner if e)
    return Beyond(seconds - sum(call.seconds for call in statistics.calls), visits)


def warm() -> None:
    """Let what is loaded on first use be loaded."""
    for connective in ("AND", "OR"):
        beyond(connective, 3, "adaptive")
