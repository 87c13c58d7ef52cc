"""Twenty relations: how long an eddy takes from the query to the first joined row."""

from __future__ import annotations

import time
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.engine.inputs import Arrival, HeldInput
from eddyline.engine.join_eddy import JoinEddy
from eddyline.engine.policies.catalogue import make_policy
from eddyline.query.expressions import Comparison, ComparisonOperator
from eddyline.query.join_query import JoinQuery, JoinRelation
from eddyline.wall_clock import WallClock

COUNT: Final = 20
SHAPES: Final = ("chain", "star", "cycle")
TARGET: Final = 0.050
"""Seconds."""


def query(shape: str) -> JoinQuery:
    """Return a join of twenty relations; in a star every arm has its own column in the middle."""
    edges = {
        "chain": [(n, n + 1) for n in range(COUNT - 1)],
        "star": [(0, n) for n in range(1, COUNT)],
        "cycle": [(n, (n + 1) % COUNT) for n in range(COUNT)],
    }[shape]
    relations = tuple(
        JoinRelation(f"r{n}", (pa.int64(),) * (COUNT if shape == "star" and not n else 2))
        for n in range(COUNT)
    )
    plain = JoinQuery(relations)
    equal = ComparisonOperator.EQUAL
    predicates = tuple(
        Comparison(equal, plain.column(a, b if shape == "star" else 1), plain.column(b, 0))
        for a, b in edges
    )
    return JoinQuery(relations, predicates, tuple(plain.column(n, 0) for n in range(COUNT)))


def start(shape: str) -> float:
    """Return the seconds from the query to the first row; every relation has one row."""
    described = query(shape)
    ones = [[pa.array([1])] * len(each.types) for each in described.relations]
    started = time.perf_counter()
    eddy = JoinEddy(
        described, (), lambda: make_policy("adaptive"), WallClock(), np.random.default_rng(0)
    )
    rows = sum(
        each.rows for each in eddy.run([HeldInput([Arrival(tuple(own), 1)]) for own in ones])
    )
    seconds = time.perf_counter() - started
    if rows != 1:
        raise RuntimeError(f"{rows} rows came out of a {shape} of one row each")
    return seconds
