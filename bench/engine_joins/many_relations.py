"""Many relations: how long an eddy takes from the query to the joined rows."""

from __future__ import annotations

import time
from typing import Final

import numpy as np
import pyarrow as pa

from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join_query import JoinQuery, JoinRelation
from eddyline.engine.modules.scan_access import Arrival, HeldScan
from eddyline.engine.policies.catalogue import make_policy
from eddyline.expressions import Comparison, ComparisonOperator
from eddyline.wall_clock import WallClock

COUNT: Final = 20
SHAPES: Final = ("chain", "star", "cycle")
TARGET: Final = 0.050
"""Seconds."""


def query(shape: str, count: int) -> JoinQuery:
    """Return a join of relations; in a star every arm has its own column in the middle."""
    edges = {
        "chain": [(n, n + 1) for n in range(count - 1)],
        "star": [(0, n) for n in range(1, count)],
        "cycle": [(n, (n + 1) % count) for n in range(count)],
    }[shape]
    relations = tuple(
        JoinRelation(f"r{n}", (pa.int64(),) * (count if shape == "star" and not n else 2))
        for n in range(count)
    )
    plain = JoinQuery(relations)
    equal = ComparisonOperator.EQUAL
    predicates = tuple(
        Comparison(equal, plain.column(a, b if shape == "star" else 1), plain.column(b, 0))
        for a, b in edges
    )
    return JoinQuery(relations, predicates, tuple(plain.column(n, 0) for n in range(count)))


def start(shape: str, count: int = COUNT, rows: int = 1) -> float:
    """Return the seconds from the query to the last row of a join of equal relations."""
    described = query(shape, count)
    values = pa.array(np.arange(rows))
    held = [[values] * len(each.types) for each in described.relations]
    started = time.perf_counter()
    eddy = JoinEddy(
        described, (), lambda: make_policy("adaptive"), WallClock(), np.random.default_rng(0)
    )
    joined = sum(
        each.rows for each in eddy.run([HeldScan([Arrival(tuple(own), rows)]) for own in held])
    )
    seconds = time.perf_counter() - started
    if joined != rows:
        raise RuntimeError(f"{joined} rows came out of a {shape} of {rows} rows each")
    return seconds
