"""Raman, Deshpande and Hellerstein (2003), Figures 12 and 13: index and hash join in one.

W can be scanned and be looked up; an eddy over SteMs uses both, by cost or as a user prefers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from bench.access_methods.index_join import EitherJoin, IndexJoin
from bench.access_methods.runs import Run, over_index_joins, over_stems
from bench.access_methods.sources import INT, R_EVERY, ROWS, W_EVERY, Column, Index, q4, source_r
from bench.access_methods.world import World
from bench.figures.access_methods import line, times_of
from bench.figures.figure import Outcome, Setting
from eddyline.engine.join.join_eddy import JoinEddy
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.policies.benefit import BenefitPolicy
from eddyline.engine.policies.static import StaticPolicy
from eddyline.expressions import (
    Arithmetic,
    ArithmeticOperator,
    Comparison,
    ComparisonOperator,
    Literal,
)

R, W = range(2)
HYBRID = "SteMs (hybrid)"
HASH_JOIN = "hash join"
INDEX_JOIN = "index join"
BEGINNING: Final = 30.0
"""Seconds that Figure 12 (i) shows."""

WHOLE: Final = 200.0
"""Seconds that Figure 12 (ii) shows."""

EVERY: Final = 20
"""Keys that this number divides are preferred."""

PREFERRED: Final = 10.0
"""What a preferred row is worth beside another."""

LEAST: Final = 5
"""Rows from which on ratios of rows are formed: before, one row is a great part of them."""

BY_SCAN, BY_INDEX = range(2)


def _scanned_w(seed: int) -> tuple[Column, Column]:
    return np.random.default_rng(5 + seed).permutation(ROWS), np.full(ROWS, BY_SCAN)


def _index_w() -> Index:
    return Index((np.arange(ROWS), np.full(ROWS, BY_INDEX)), 0)


def _hybrid(world: World, seed: int, begin: Callable[[JoinEddy], None] = lambda _: None) -> Run:
    scans = {R: (source_r(seed), R_EVERY), W: (_scanned_w(seed), W_EVERY)}
    index = {(W, 0): _index_w()}
    return over_stems(world, q4(), scans, index, BenefitPolicy, begin=begin, seed=seed)


@functools.cache
def _q4(new_world: Callable[[], World], seed: int) -> Mapping[str, Run]:
    r = source_r(seed)
    scans = {R: (r, R_EVERY), W: (_scanned_w(seed), W_EVERY)}
    world = new_world()
    join = IndexJoin(0, "RW", (R, r[0]), W, _index_w(), world)
    return {
        INDEX_JOIN: over_index_joins(
            world, (r, R_EVERY), [join], EitherJoin(1), StaticPolicy(), relations=2, seed=seed
        ),
        HASH_JOIN: over_stems(new_world(), q4(index=False), scans, {}, AdaptivePolicy, seed=seed),
        HYBRID: _hybrid(new_world(), seed),
    }


def least_share(runs: Mapping[str, Run], until: float) -> float:
    """Return the hybrid's rows over those of the better join, at the worst of all times."""
    hybrid, joins = runs[HYBRID], (runs[INDEX_JOIN], runs[HASH_JOIN])
    shares = [
        hybrid.by(time) / best
        for time in sorted(at for join in joins for at in join.times if at <= until)
        if (best := max(join.by(time) for join in joins)) >= LEAST
    ]
    return min(shares)


def _over_time(setting: Setting, until: float, moments: Sequence[float]) -> Outcome:
    runs = _q4(setting.new_world, setting.seed)
    setting.advance()
    times = [float(time) for time in np.linspace(0.0, until, 61)]
    hybrid = runs[HYBRID]
    return Outcome(
        {
            "until": until,
            "share": least_share(runs, until),
            "whole_share": least_share(runs, hybrid.seconds),
            "over_hash": hybrid.seconds / runs[HASH_JOIN].seconds,
            "hash": runs[HASH_JOIN].seconds,
            "index": runs[INDEX_JOIN].seconds,
            "hybrid": hybrid.seconds,
            "looked_up": sum(row[-1] == BY_INDEX for _, row in hybrid.rows),
            "index_5": runs[INDEX_JOIN].by(5.0),
            "hash_5": runs[HASH_JOIN].by(5.0),
        },
        rows={
            name: [*(run.by(moment) for moment in moments), run.seconds]
            for name, run in runs.items()
        },
        lines={name: [(time, run.by(time)) for time in times] for name, run in runs.items()},
        data={name: run.times for name, run in runs.items()},
    )


def hybrid_start(setting: Setting) -> Outcome:
    """Figure 12 (i): the first seconds."""
    return _over_time(setting, BEGINNING, (5.0, 10.0, 20.0, 30.0))


def hybrid(setting: Setting) -> Outcome:
    """Figure 12 (ii): the whole run."""
    return _over_time(setting, WHOLE, (50.0, 100.0, 150.0, 200.0))


def _prefer(eddy: JoinEddy) -> None:
    key = eddy.query.column(W, 0)
    rest = Arithmetic(ArithmeticOperator.REMAINDER, (key, Literal(EVERY, INT)), INT, ansi=True)
    group = Comparison(ComparisonOperator.EQUAL, rest, Literal(0, INT))
    eddy.prefer(group, PREFERRED)


@functools.cache
def _q5(new_world: Callable[[], World], seed: int) -> Run:
    return _hybrid(new_world(), seed, _prefer)


def _part(run: Run, *, preferred: bool, origin: int | None = None) -> Run:
    """Return a run's rows of one kind, that came by one access method."""
    rows = [
        (at, row)
        for at, row in run.rows
        if (row[0] % EVERY == 0) is preferred and origin in (None, row[-1])
    ]
    return Run(rows, seconds=run.seconds)


def _by_method(setting: Setting, *, preferred: bool) -> Outcome:
    run = _q5(setting.new_world, setting.seed)
    without = _part(_q4(setting.new_world, setting.seed)[HYBRID], preferred=True)
    setting.advance()
    wanted = _part(run, preferred=True)
    parts = {
        "by index": _part(run, preferred=preferred, origin=BY_INDEX),
        "by scan": _part(run, preferred=preferred, origin=BY_SCAN),
    }
    times = times_of([run])
    both = sum(len(part.rows) for part in parts.values())
    index = parts["by index"]
    return Outcome(
        {
            "index_share": len(index.rows) / both,
            "last": wanted.last,
            "last_without": without.last,
            "sooner": without.last / wanted.last,
            "by_index_then": index.by(wanted.last),
            "by_index_after": len(index.rows) - index.by(wanted.last),
            "rate_then": index.by(wanted.last) / wanted.last,
            "rate_after": (len(index.rows) - index.by(wanted.last)) / (run.seconds - wanted.last),
        },
        rows={
            name: [part.by(moment) for moment in (30.0, 60.0, 100.0, 150.0)] + [len(part.rows)]
            for name, part in parts.items()
        },
        lines={name: line(part, times) for name, part in parts.items()},
        marks=[wanted.last],
        data={name: part.times for name, part in parts.items()},
    )


def preferred(setting: Setting) -> Outcome:
    """Figure 13 (i): rows of the group that a user prefers."""
    return _by_method(setting, preferred=True)


def unpreferred(setting: Setting) -> Outcome:
    """Figure 13 (ii): all other rows."""
    return _by_method(setting, preferred=False)
