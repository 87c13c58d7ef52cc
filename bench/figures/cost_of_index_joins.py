"""Deshpande (2004), Figure 7: what routing costs among index joins.

The processor's time of this process. ``hundredk1`` is filtered and joined on ``unique2`` with
others, each of which has an index there: complete SteMs, made before the time is taken. Every row
finds exactly one match, so every plan costs the same, and what the eddy takes longer than a fixed
plan over the same indexes is the price of adaptivity.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.figures.cost_of_adaptivity import FREQUENCIES, rank
from bench.figures.figure import Outcome, Setting
from bench.figures.joins_on_unique2 import (
    ADAPTIVE,
    FIXED,
    TURNS,
    arrivals,
    columns_of,
    outcome,
    star,
)
from bench.fixed_plan import FixedPlan
from bench.turns import Turns, take_turns
from bench.wisconsin import UNIQUE2
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.scan_access import Arrival
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.rank import RankPolicy
from eddyline.wall_clock import WallClock

ROWS = 100_000
QUICK_ROWS = 20_000
BATCH = 1 << 14
REPEATED = {10: 10, 1000: 1000}
"""How often the outer rows are read, by X: those 100 or 10,000 take but milliseconds."""


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """``hundredk1`` with ``unique2 % every = 0`` joined with others on ``unique2``."""

    relations: int
    every: int

    @property
    def name(self) -> str:
        """The paper's name."""
        return f"{self.relations}-{self.every}"

    def query(self) -> JoinQuery:
        """Return the query; its outputs are all columns."""
        return star("hundredk", self.relations)

    def outer(self, rows: int, times: int) -> list[Arrival]:
        """Return the rows of the first relation that pass the filter, so many times over."""
        columns = columns_of(rows, 0)
        passing = np.flatnonzero(columns[UNIQUE2].to_numpy() % self.every == 0)
        taken = pa.array(np.tile(passing, times))
        return arrivals([column.take(taken) for column in columns], BATCH)


QUERIES = tuple(IndexQuery(relations, every) for every in (10, 1000) for relations in (3, 4, 5))


def measure(query: IndexQuery, rows: int, setting: Setting) -> Turns:
    """Let the fixed plan and eddies run a query in turn, all over the same indexes."""
    described = query.query()
    inner = range(1, query.relations)
    outer = query.outer(rows, REPEATED[query.every])
    plan = FixedPlan(described, [list(inner), *([] for _ in inner)], WallClock())
    loaded = JoinEddy(described, (), AdaptivePolicy, WallClock(), np.random.default_rng(0))
    for r in inner:
        pieces = arrivals(columns_of(rows, r), BATCH)
        plan.load(r, pieces)
        for arrival in pieces:
            for _ in loaded.push(r, arrival):
                raise ValueError("what is loaded matches before the outer rows are read")
        for _ in loaded.end(r):
            raise ValueError("nothing waits for the end of what is loaded")
    state = loaded.state

    def fixed() -> int:
        return sum(j.rows for piece in outer for j in plan.stream(0, piece))

    def eddy(make: Callable[[], Policy]) -> int:
        join = JoinEddy(described, (), make, WallClock(), np.random.default_rng(0), state=state)
        return sum(j.rows for piece in outer for j in join.push(0, piece))

    contestants: dict[str, Callable[[], int]] = {FIXED: fixed}
    for every in FREQUENCIES:
        contestants[rank(every)] = functools.partial(eddy, functools.partial(RankPolicy, every))
    contestants[ADAPTIVE] = functools.partial(eddy, AdaptivePolicy)
    return take_turns(
        contestants,
        turns=1 if setting.quick else TURNS,
        warmed=True,
        expected=sum(piece.rows for piece in outer),
        progress=setting.advance,
        clock=time.process_time,
    )


def _ratios(turns: Turns) -> Mapping[str, list[float]]:
    return {name: turns.ratios(name, FIXED) for name in turns.seconds if name != FIXED}


def cost_of_index_joins(setting: Setting) -> Outcome:
    """Measure every query."""
    rows = QUICK_ROWS if setting.quick else ROWS
    turns = {query.name: measure(query, rows, setting) for query in QUERIES}
    return outcome(
        {name: _ratios(of_query) for name, of_query in turns.items()},
        list(turns),
        {
            "rows": rows,
            "seconds": {name: dict(of_query.seconds) for name, of_query in turns.items()},
        },
        rows=rows,
    )
