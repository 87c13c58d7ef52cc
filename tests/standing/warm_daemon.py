"""The daemon of workers, which has also loaded the kernels of standing queries.

A worker that imports and loads them with its first rows takes 0.3 s of CPU for it; where nothing
has run yet each compiles them, beside others that compile the same.
"""

from __future__ import annotations

import itertools

from tests import warm_daemon  # before all that imports PySpark: it says where that is

# isort: split
import numpy as np
import pyarrow as pa

import eddyline.standing.tasks.cell
import eddyline.standing.tasks.selecting  # noqa: F401 - what workers import
from eddyline.expressions import And, Argument, Comparison, ComparisonOperator, Literal
from eddyline.standing.engine.shared_eddy import SharedEddy
from eddyline.standing.engine.shared_query import SharedQuery, Stream, TimeBound, edge
from eddyline.standing.engine.shared_results import SharedResults
from eddyline.wall_clock import WallClock

TYPES = (pa.int64(), pa.string(), pa.float64(), pa.timestamp("us"))
KEY, TEXT, VALUE, TIME = range(4)


def above(least: float) -> And:
    """Return a selection of two attributes."""
    value, key = (Argument(number, TYPES[number]) for number in (VALUE, KEY))
    terms = (
        Comparison(ComparisonOperator.GREATER, value, Literal(least, TYPES[VALUE])),
        Comparison(ComparisonOperator.LESS, key, Literal(6, TYPES[KEY])),
    )
    return And(terms)


def warm() -> None:
    """Have queries that select and join rows of two streams come and go."""
    streams = tuple(Stream(name, TYPES, TIME) for name in "RS")

    def take(results: SharedResults) -> None:
        eddy.sets.spread(results.lineages)
        results.column(results.streams[0], TEXT)

    eddy = SharedEddy(streams, take, WallClock(), np.random.default_rng(0))
    edges = [frozenset({edge((0, column), (1, column))}) for column in (KEY, TEXT)]
    bounds = (TimeBound(0, 1, 0, 50),)
    numbers = itertools.count()
    for least in (0.0, 5.0, 9.0):
        eddy.add({next(numbers): SharedQuery({0: above(least)})})
        for join in edges:
            selections = {0: above(least), 1: None}
            eddy.add({next(numbers): SharedQuery(selections, join, bounds)})
        for stream in (0, 1):
            keys = np.arange(40)
            columns = [
                pa.array(keys % 7),
                pa.array([f"text {key % 5}" for key in keys]),
                pa.array(keys % 13, pa.float64()),
                pa.array(keys, pa.int64()).cast(TYPES[TIME]),
            ]
            eddy.push(stream, columns, len(keys))
    eddy.remove([0, 1])
    eddy.push(1, columns, len(keys))


if __name__ == "__main__":
    warm_daemon.serve(warm)
