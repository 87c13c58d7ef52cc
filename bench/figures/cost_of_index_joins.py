"""Deshpande (2004), Figure 7: what routing costs among index joins.

Real time. ``hundredk1`` is filtered and joined on ``unique2`` with others, each of which has an
index there: complete SteMs, made before the time is taken. Every row finds exactly one match, so
every plan costs the same, and what the eddy takes longer than a fixed plan over the same indexes
is the price of adaptivity.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.figures.claims import Numbers
from bench.figures.cost_of_adaptive_joins import short
from bench.figures.cost_of_adaptivity import FREQUENCIES, SELDOM, rank
from bench.figures.figure import Outcome, Setting
from bench.fixed_plan import FixedPlan
from bench.turns import Spread, Turns, take_turns
from bench.wisconsin import TYPES, UNIQUE2, table
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.modules.scan_access import Arrival
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.rank import RankPolicy
from eddyline.query.expressions import Comparison, ComparisonOperator
from eddyline.query.join_query import JoinQuery, JoinRelation
from eddyline.wall_clock import WallClock

ROWS = 100_000
QUICK_ROWS = 20_000
TURNS = 7
BATCH = 1 << 14
REPEATED = {10: 10, 1000: 1000}
"""How often the outer rows are read, by X: those 100 or 10,000 take but milliseconds."""

FIXED = "fixed plan"
ADAPTIVE = "adaptive"


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
        relations = tuple(JoinRelation(f"hundredk{n + 1}", TYPES) for n in range(self.relations))
        plain = JoinQuery(relations)
        return JoinQuery(
            relations,
            tuple(
                Comparison(
                    ComparisonOperator.EQUAL, plain.column(0, UNIQUE2), plain.column(r, UNIQUE2)
                )
                for r in range(1, self.relations)
            ),
            tuple(
                plain.column(r, column)
                for r in range(self.relations)
                for column in range(len(TYPES))
            ),
        )

    def outer(self, rows: int, times: int) -> list[Arrival]:
        """Return the rows of the first relation that pass the filter, so many times over."""
        columns = _table(rows, 0)
        passing = np.flatnonzero(columns[UNIQUE2].to_numpy() % self.every == 0)
        taken = pa.array(np.tile(passing, times))
        return _pieces([column.take(taken) for column in columns])


QUERIES = tuple(IndexQuery(relations, every) for every in (10, 1000) for relations in (3, 4, 5))


@functools.cache
def _table(rows: int, number: int) -> tuple[pa.Array, ...]:
    return table(rows, seed=number)


def _pieces(columns: Sequence[pa.Array]) -> list[Arrival]:
    rows = len(columns[0])
    return [
        Arrival(tuple(c.slice(start, BATCH) for c in columns), min(BATCH, rows - start))
        for start in range(0, rows, BATCH)
    ]


def measure(query: IndexQuery, rows: int, setting: Setting) -> Turns:
    """Let the fixed plan and eddies run a query in turn, all over the same indexes."""
    described = query.query()
    inner = range(1, query.relations)
    outer = query.outer(rows, REPEATED[query.every])
    plan = FixedPlan(described, [list(inner), *([] for _ in inner)], WallClock())
    loaded = JoinEddy(described, (), AdaptivePolicy, WallClock(), np.random.default_rng(0))
    for r in inner:
        pieces = _pieces(_table(rows, r))
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
    )


def _ratios(turns: Turns) -> Mapping[str, Spread]:
    return {name: turns.ratio(name, FIXED) for name in turns.seconds if name != FIXED}


def cost_of_index_joins(setting: Setting) -> Outcome:
    """Measure every query."""
    rows = QUICK_ROWS if setting.quick else ROWS
    turns = {query.name: measure(query, rows, setting) for query in QUERIES}
    over = {name: _ratios(of_query) for name, of_query in turns.items()}

    def medians(contestant: str) -> Numbers:
        return Numbers(of_query[contestant].median for of_query in over.values())

    by_frequency = {every: medians(rank(every)) for every in FREQUENCIES}
    return Outcome(
        {
            **{f"every_{every}": of_queries for every, of_queries in by_frequency.items()},
            "every": SELDOM,
            "seldom": Numbers(
                median for every in FREQUENCIES if every >= SELDOM for median in by_frequency[every]
            ),
            "adaptive": medians(ADAPTIVE),
        },
        rows={
            contestant.removeprefix("rank "): [short(each[contestant]) for each in over.values()]
            for contestant in next(iter(over.values()))
        },
        points=list(over),
        lines={
            name: [(every, of_query[rank(every)].median) for every in FREQUENCIES]
            for name, of_query in over.items()
        },
        data={
            "rows": rows,
            "seconds": {name: dict(of_query.seconds) for name, of_query in turns.items()},
        },
    )
