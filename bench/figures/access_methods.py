"""Raman, Deshpande and Hellerstein (2003), Figures 8 and 11: index joins taken apart.

Sources and queries are those of its Table 3 and Figure 5; see :mod:`bench.access_methods.sources`
for what the paper leaves open.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import truediv
from typing import Final

import numpy as np

from bench.access_methods.index_join import EitherJoin, IndexJoin, JoinsInTurn
from bench.access_methods.runs import Run, over_index_joins, over_stems
from bench.access_methods.sources import (
    DISTINCT,
    LOOKUP,
    R_EVERY,
    ROWS,
    Column,
    Index,
    q1,
    q2,
    q3,
    source_r,
    stalled,
)
from bench.access_methods.world import World
from bench.chart import Points
from bench.figures.claims import Numbers
from bench.figures.figure import Outcome, Setting
from eddyline.engine.policies.benefit import BenefitPolicy
from eddyline.engine.policies.policy import Allotment
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.signature import Signature

POINTS: Final = 60  # of each line
R, S = range(2)
T, U = 1, 2
R_U, R_T, T_U = 0b101, 0b011, 0b110

STEMS = "SteMs"
INDEX_JOIN = "index join"
INDEX_JOINS = "index joins"
SHARED_CACHE = "index joins, shared cache"
BENEFIT = "SteMs, benefit"
FIXED_TREE = "fixed tree"

LEARNING: Final = 200
"""Tuples that go to either index at random."""

NEARLY: Final = 0.9
"""Part of the rate of a source that is nearly all of it."""

RUNS: Final = 8
"""Runs of Figure 8 (iii), each with an R and with chances of its own."""

FEW: Final = 0.05
"""Up to this part of the keys is almost none of them."""

STALL: Final = (100.0, 200.0)
"""When T answers nothing."""


def numbered(rows: int) -> tuple[Column, Column]:
    """Return S, T or U: two columns with the same values, each a key."""
    return np.arange(rows), np.arange(rows)


def times_of(runs: Sequence[Run]) -> list[float]:
    """Return the times at which lines have a point."""
    end = max(run.seconds for run in runs)
    return [float(time) for time in np.linspace(0.0, end, POINTS)]


def line(run: Run, times: Sequence[float]) -> Points:
    """Return the rows of a run over time, to its end."""
    return [(t, run.by(t)) for t in times if t <= run.seconds] + [(run.seconds, len(run.rows))]


@dataclass(frozen=True, slots=True)
class Probed:
    """A run, and when it probed which index."""

    run: Run
    probes: Sequence[Sequence[tuple[float, int]]]

    @property
    def count(self) -> int:
        """The lookups in all."""
        return sum(map(len, self.probes))

    @property
    def again(self) -> int:
        """The lookups for keys that another index, or the same, was asked for already."""
        return self.count - len({key for of_one in self.probes for _, key in of_one})


class LearnThenLast(StaticPolicy):
    """Sends so many tuples to either of two access methods by chance, then all to the second.

    So do both contestants of Figure 8 (iii): how to learn is not what it is about.
    """

    name = "learn, then last"

    def __init__(self, methods: tuple[int, ...], tuples: int, seed: int) -> None:
        super().__init__()
        self._methods = methods
        self._left = tuples
        self._chance = np.random.default_rng(seed)

    def route(
        self, signature: Signature, candidates: tuple[int, ...], open_: tuple[int, ...], tuples: int
    ) -> Allotment | None:
        """Draw among those that have room; wait where none has."""
        if candidates != self._methods:
            return super().route(signature, candidates, open_, tuples)
        if self._left <= 0:
            return Allotment(candidates[-1], tuples)
        return Allotment(int(self._chance.choice(open_)), 1) if open_ else None

    def sent(self, signature: Signature, module: int, tuples: int) -> None:
        """Count the tuples."""
        if module in self._methods:
            self._left -= tuples
        super().sent(signature, module, tuples)


# --- Figure 8 (i) and (ii): query Q1


@functools.cache
def _q1(new_world: Callable[[], World], seed: int) -> Mapping[str, Probed]:
    scanned = source_r(seed), R_EVERY
    index = Index(numbered(DISTINCT), 0)
    stems = over_stems(new_world(), q1(), {R: scanned}, {(S, 0): index}, BenefitPolicy, seed=seed)
    other = Index(numbered(DISTINCT), 0)
    world = new_world()
    join = IndexJoin(0, "RS", (R, scanned[0][1]), S, other, world)
    joins = over_index_joins(
        world, scanned, [join], EitherJoin(1), StaticPolicy(), relations=2, seed=seed
    )
    return {STEMS: Probed(stems, [index.probes]), INDEX_JOIN: Probed(joins, [other.probes])}


def _area_ratio(results: Mapping[str, Probed], better: str, other: str) -> float:
    end = max(result.run.seconds for result in results.values())
    return results[better].run.area(end) / results[other].run.area(end)


def index_join_results(setting: Setting) -> Outcome:
    """Figure 8 (i): rows over time."""
    results = _q1(setting.new_world, setting.seed)
    setting.advance()
    runs = {name: result.run for name, result in results.items()}
    times = times_of(list(runs.values()))
    half = {name: run.by(run.seconds / 2) / ROWS for name, run in runs.items()}
    return Outcome(
        {
            "area": _area_ratio(results, STEMS, INDEX_JOIN),
            "over": runs[STEMS].seconds / runs[INDEX_JOIN].seconds,
            "half": half[STEMS],
            "half_join": half[INDEX_JOIN],
        },
        rows={
            name: [run.by(50.0), run.by(100.0), run.by(150.0), run.by(200.0), run.seconds]
            for name, run in runs.items()
        },
        lines={name: line(run, times) for name, run in runs.items()},
        data={name: run.times for name, run in runs.items()},
    )


def index_join_probes(setting: Setting) -> Outcome:
    """Figure 8 (ii): lookups over time."""
    results = _q1(setting.new_world, setting.seed)
    setting.advance()
    times = times_of([result.run for result in results.values()])
    curves = {
        name: [(t, sum(at <= t for at, _ in result.probes[0])) for t in times]
        for name, result in results.items()
    }
    apart = max(
        abs(one - other)
        for (_, one), (_, other) in zip(curves[STEMS], curves[INDEX_JOIN], strict=True)
    )
    return Outcome(
        {
            "apart": apart,
            "stems": results[STEMS].count,
            "join": results[INDEX_JOIN].count,
            "distinct": len(set(source_r(setting.seed)[1].tolist())),
        },
        rows={
            name: [sum(at <= t for at, _ in result.probes[0]) for t in (50.0, 100.0, 150.0, 200.0)]
            + [result.count]
            for name, result in results.items()
        },
        lines=curves,
        data={name: result.probes for name, result in results.items()},
    )


# --- Figure 8 (iii): query Q2


def _two_index_joins(world: World, seed: int, *, shared: bool) -> Probed:
    scanned = source_r(seed), R_EVERY
    indexes = [Index(numbered(DISTINCT), bind) for bind in (0, 1)]
    cache: set[int] = set()
    joins = [
        IndexJoin(
            number, f"RS on {'xy'[number]}", (R, scanned[0][1]), S, index, world,
            cache if shared else None,
        )
        for number, index in enumerate(indexes)
    ]  # fmt: skip
    policy = LearnThenLast((0, 1), LEARNING, seed)
    run = over_index_joins(world, scanned, joins, EitherJoin(2), policy, relations=2)
    return Probed(run, [index.probes for index in indexes])


def _two_lookups(world: World, seed: int, *, learns: bool) -> Probed:
    scanned = source_r(seed), R_EVERY
    query = q2()
    indexes = {(S, bind): Index(numbered(DISTINCT), bind) for bind in (0, 1)}
    # Behind the selection S.x = S.y and the two SteMs.
    lookups = 3, 4
    run = over_stems(
        world,
        query,
        {R: scanned},
        indexes,
        BenefitPolicy if learns else lambda: LearnThenLast(lookups, LEARNING, seed),
    )
    return Probed(run, [index.probes for index in indexes.values()])


@functools.cache
def _q2(new_world: Callable[[], World], seed: int) -> Mapping[str, Probed]:
    return {
        STEMS: _two_lookups(new_world(), seed, learns=False),
        SHARED_CACHE: _two_index_joins(new_world(), seed, shared=True),
        INDEX_JOINS: _two_index_joins(new_world(), seed, shared=False),
        BENEFIT: _two_lookups(new_world(), seed, learns=True),
    }


def shared_caches(setting: Setting) -> Outcome:
    """Figure 8 (iii): rows over time where two indexes compete.

    Which tuples go where while it is learned is chance, by which a run ends some seconds sooner
    or later. So times are means of several runs; rows over time are those of the first.
    """
    every = []
    runs_of_one = 1 if setting.quick else RUNS
    for run in range(runs_of_one):
        every.append(_q2(setting.new_world, setting.seed * runs_of_one + run))
        setting.advance()
    results = every[0]
    runs = {name: result.run for name, result in results.items()}
    times = times_of(list(runs.values()))
    seconds = {name: Numbers(each[name].run.seconds for each in every) for name in results}
    again = {name: Numbers(float(each[name].again) for each in every) for name in results}
    return Outcome(
        {
            "stems": seconds[STEMS],
            "shared": seconds[SHARED_CACHE],
            "joins": seconds[INDEX_JOINS],
            "benefit": seconds[BENEFIT],
            "over_shared": seconds[STEMS].mean / seconds[SHARED_CACHE].mean,
            "over_joins": Numbers(map(truediv, seconds[STEMS], seconds[INDEX_JOINS])),
            "area": _area_ratio(results, STEMS, SHARED_CACHE),
            "again": again[STEMS],
            "again_benefit": again[BENEFIT],
            "again_joins": again[INDEX_JOINS],
            "few": FEW * DISTINCT,
            "keys": results[BENEFIT].count - results[BENEFIT].again,
            "runs": len(every),
        },
        rows={
            name: [
                run.by(50.0),
                run.by(100.0),
                run.by(150.0),
                seconds[name].mean,
                seconds[name].least,
                seconds[name].most,
                again[name].mean,
            ]
            for name, run in runs.items()
        },
        lines={name: line(run, times) for name, run in runs.items()},
        data={
            "seconds": seconds,
            "probes": {name: result.probes for name, result in results.items()},
        },
    )


# --- Figure 11: query Q3


@functools.cache
def _q3(new_world: Callable[[], World], seed: int) -> Mapping[str, Run]:
    scanned = source_r(seed), R_EVERY
    t, u = numbered(DISTINCT), numbered(DISTINCT)

    def indexes() -> tuple[Index, Index]:
        return Index(t, 0, stalled(*STALL)), Index(u, 0)

    of_t, of_u = indexes()
    stems = over_stems(
        new_world(),
        q3(),
        {R: scanned},
        {(T, 0): of_t, (U, 0): of_u},
        BenefitPolicy,
        partial={R_U: T, R_T: U, T_U: R},
        begin=lambda eddy: eddy.want_partial_rows(),
        seed=seed,
    )
    world = new_world()
    of_t, of_u = indexes()
    joins = [
        IndexJoin(0, "RT", (R, scanned[0][1]), T, of_t, world),
        IndexJoin(1, "TU", (T, t[1]), U, of_u, world),
    ]
    tree = over_index_joins(
        world,
        scanned,
        joins,
        JoinsInTurn([(R, T), (T, U)]),
        StaticPolicy(),
        relations=3,
        partial={R_T: 1},
        seed=seed,
    )
    return {STEMS: stems, FIXED_TREE: tree}


def _partial_line(run: Run, spanned: int, times: Sequence[float]) -> list[tuple[float, float]]:
    found = run.partial.get(spanned, [])
    so_far = list(accumulate(rows for _, rows in found))
    ends = np.searchsorted([at for at, _ in found], times, side="right")
    return [(time, so_far[end - 1] if end else 0) for time, end in zip(times, ends, strict=True)]


def spanning_tree(setting: Setting) -> Outcome:
    """Figure 11: full and partial rows over time, T stalls."""
    runs = _q3(setting.new_world, setting.seed)
    setting.advance()
    stems, tree = runs[STEMS], runs[FIXED_TREE]
    times = times_of(list(runs.values()))
    # What T was asked for before the stall may still come in one lookup's time.
    since, until = STALL[0] + LOOKUP, STALL[1]
    r_u = stems.partial_between(R_U, since, until)
    kinds = {"RU": R_U, "RT": R_T, "TU": T_U}
    lines = {f"{name}, RTU": line(run, times) for name, run in runs.items()}
    lines[f"{STEMS}, RU"] = _partial_line(stems, R_U, times)
    lines[f"{STEMS}, RT"] = _partial_line(stems, R_T, times)
    lines[f"{FIXED_TREE}, RT"] = _partial_line(tree, R_T, times)
    return Outcome(
        {
            "ru": r_u,
            "rate": r_u / (until - since),
            "source_rate": ROWS / DISTINCT / LOOKUP,
            "least_rate": NEARLY * ROWS / DISTINCT / LOOKUP,
            "tree": sum(tree.partial_between(mask, since, until) for mask in kinds.values()),
            "stems_before": stems.by(STALL[0]),
            "tree_before": tree.by(STALL[0]),
            "over": stems.seconds / tree.seconds,
        },
        rows={
            name: [
                *(run.partial_between(mask, since, until) for mask in kinds.values()),
                run.by(until) - run.by(since),
                run.by(STALL[0]),
                run.seconds,
            ]
            for name, run in runs.items()
        },
        lines=lines,
        marks=STALL,
        data={
            name: {"rows": run.times, "partial": {str(k): v for k, v in run.partial.items()}}
            for name, run in runs.items()
        },
    )
