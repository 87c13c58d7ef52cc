"""Deshpande (2004), Figure 6: what routing costs among symmetric hash joins.

The processor's time of this process. The query is a star in which every row finds exactly one
match, so every plan costs the same. What the eddy takes longer than a fixed plan of the same
SteMs, the paper's "SHJ", is the price of adaptivity. All relations are read at one rate, and all
are built.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.figures.cost_of_adaptivity import FREQUENCIES, rank
from bench.figures.figure import Outcome, Setting
from bench.figures.joins_on_unique2 import (
    ADAPTIVE,
    FIXED,
    SMALL_BATCH,
    SMALL_RANK,
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
from eddyline.engine.join.reading_order import Goal
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.modules.scan_access import Arrival, HeldScan
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.rank import RankPolicy
from eddyline.wall_clock import WallClock

COUNT_ROWS = 300_000
"""Rows of each table where they are only counted: with the paper's 100,000 a run takes 50 ms."""

ALL_ROWS = 100_000
"""Rows of each table where all columns of all of them are wanted."""

QUICK_ROWS = 2_000
BATCH = 1 << 16
"""Rows of an arrival, as the shuffle of a join block sends them: the most tuples of a visit."""

SMALL_FIXED = f"fixed plan, {SMALL_BATCH} at a time"


@dataclass(frozen=True, slots=True)
class StarQuery:
    """``tenk1`` joined with others on ``unique2``; ``everything`` is wanted or only the count."""

    relations: int
    everything: bool

    @property
    def name(self) -> str:
        """The paper's name."""
        return f"Select-{'All' if self.everything else 'Count'}-{self.relations}"

    def query(self) -> JoinQuery:
        """Return the query; to count rows only ``unique2`` is read."""
        return star("tenk", self.relations, everything=self.everything)

    def rows(self, *, quick: bool) -> int:
        """Return the rows of each table."""
        return QUICK_ROWS if quick else ALL_ROWS if self.everything else COUNT_ROWS

    def pieces(self, rows: int, batch: int) -> list[list[Arrival]]:
        """Return each table in arrivals of ``batch`` rows."""
        tables = [columns_of(rows, r) for r in range(self.relations)]
        if not self.everything:
            tables = [(columns[UNIQUE2],) for columns in tables]
        return [arrivals(columns, batch) for columns in tables]


QUERIES = tuple(
    StarQuery(relations, everything) for everything in (False, True) for relations in (3, 4, 5)
)


def measure(query: StarQuery, rows: int, setting: Setting) -> Turns:
    """Let the fixed plan and eddies run a query in turn; each run starts with nothing known."""
    described = query.query()
    numbers = range(query.relations)
    large, small = (query.pieces(rows, batch) for batch in (BATCH, SMALL_BATCH))

    def fixed(pieces: Sequence[Sequence[Arrival]]) -> int:
        orders = [[other for other in numbers if other != r] for r in numbers]
        plan = FixedPlan(described, orders, WallClock())
        return sum(joined.rows for joined in plan.run(pieces))

    def eddy(pieces: Sequence[Sequence[Arrival]], make: Callable[[], Policy]) -> int:
        join = JoinEddy(described, (), make, WallClock(), np.random.default_rng(0))
        join.reading.goal = Goal.INTERACTIVE
        # Each table ends only after all are read, or the last rows of the last would be spared
        # their SteM, which the fixed plan does not know how to do.
        inputs = [HeldScan([*arrivals, Arrival((), 0)]) for arrivals in pieces]
        return sum(joined.rows for joined in join.run(inputs))

    contestants = {FIXED: functools.partial(fixed, large)}
    for every in FREQUENCIES:
        make = functools.partial(RankPolicy, every)
        contestants[rank(every)] = functools.partial(eddy, large, make)
    contestants[ADAPTIVE] = functools.partial(eddy, large, AdaptivePolicy)
    contestants[SMALL_FIXED] = functools.partial(fixed, small)
    make = functools.partial(RankPolicy, SMALL_BATCH)
    contestants[SMALL_RANK] = functools.partial(eddy, small, make)
    return take_turns(
        contestants,
        turns=1 if setting.quick else TURNS,
        warmed=True,
        expected=rows,
        progress=setting.advance,
        clock=time.process_time,
    )


def ratios(turns: Turns) -> dict[str, list[float]]:
    """Return the time of every eddy over that of the fixed plan with the same batches."""
    return {
        name: turns.ratios(name, SMALL_FIXED if name == SMALL_RANK else FIXED)
        for name in turns.seconds
        if name not in {FIXED, SMALL_FIXED}
    }


def cost_of_adaptive_joins(setting: Setting) -> Outcome:
    """Measure every query."""
    rows = {query: query.rows(quick=setting.quick) for query in QUERIES}
    turns = {query.name: measure(query, rows[query], setting) for query in QUERIES}
    over = {name: ratios(of_query) for name, of_query in turns.items()}

    return outcome(
        over,
        [name.removeprefix("Select-") for name in over],
        {
            "rows": {query.name: count for query, count in rows.items()},
            "seconds": {name: dict(of_query.seconds) for name, of_query in turns.items()},
        },
        batch=BATCH,
        small_batch=SMALL_BATCH,
        counted=min(rows.values()) if setting.quick else COUNT_ROWS,
        all=min(rows.values()),
    )
