"""Krishnamurthy et al. (2004), Figures 12, 13 and 17: latency by the number of shared queries.

Latencies are measured, of real work on tuples that arrive at a given rate. The rate is what TULIP
keeps up with at 256 queries, so that its knee is there, as in the paper.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.figures.figure import Outcome, Setting
from bench.sharing.latency import WARM, Latency, Tuples, latency
from bench.sharing.setups import Setup

PAPERS_MOST = 256
"""Queries in the paper; with more, those of Setup 1 are so narrow that all cover the same."""

STATIC = ("selection_pull_up", "filtered_pull_up", "selection_push_down", "tulip")
ADAPTIVE = ("cacq", "car")
TURNS = 5
GIVEN_UP = 1.0
"""Seconds of latency from which on a plan gets no more queries."""

FAST = 1e9
"""Tuples a second that nothing keeps up with: what a run takes is its work alone."""

SIZES: Mapping[Setup, tuple[int, int]] = {
    Setup.FEWER_OVERLAPS: (20_000, 25),
    Setup.GREATER_OVERLAPS: (40_000, 2_000),
}
"""Tuples of each stream, and distinct keys.

With few overlaps hardly any pair is a result, so a tuple has to meet many for joins to be work.
"""


@dataclass(frozen=True)
class LatencyRuns:
    """Average seconds a result by plan and number of queries, and zombies of filtered pull-up."""

    queries: Sequence[int]
    rate: float
    seconds: Mapping[str, Mapping[int, float]]
    zombies: Mapping[int, int]
    made: Mapping[int, int]

    def lines(self, plans: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
        """Return points of queries and milliseconds."""
        return {plan: [(n, s * 1e3) for n, s in self.seconds[plan].items()] for plan in plans}

    def rows(self, plans: Sequence[str]) -> dict[str, list[str]]:
        """Return milliseconds by number of queries, a dash where a plan was given up."""
        return {
            plan: [
                f"{self.seconds[plan][n] * 1e3:,.1f}" if n in self.seconds[plan] else "-"
                for n in self.queries
            ]
            for plan in plans
        }

    def served(self, plan: str, seconds: float) -> float:
        """Return how many queries a plan serves at a latency, between those measured by its log."""
        before, latency_before = 1.0, 0.0
        for queries, measured in self.seconds[plan].items():
            if measured > seconds:
                part = (seconds - latency_before) / (measured - latency_before)
                return before * math.exp(math.log(queries / before) * max(part, 0.0))
            before, latency_before = float(queries), measured
        return before

    def at_most(self, plan: str) -> float:
        """Return the latency of a plan at the paper's greatest number of queries, or the last."""
        seconds = self.seconds[plan]
        return seconds.get(PAPERS_MOST, seconds[max(seconds)])


@functools.cache
def _runs(setup: Setup, *, quick: bool) -> LatencyRuns:
    tuples, keys = SIZES[setup]
    most = 8 if quick else 4096
    data = Tuples.made(WARM + 1_000 if quick else tuples, keys)
    counts = [2**power for power in range(1, int(math.log2(most)) + 1)]

    def run(plan: str, queries: int, rate: float) -> Latency:
        return latency(setup, plan, queries, rate, of=max(PAPERS_MOST, queries), data=data)

    run("tulip", PAPERS_MOST, FAST)  # compiles
    busy = [run("tulip", PAPERS_MOST, FAST).busy for _ in range(1 if quick else TURNS)]
    rate = (data.keys.shape[1] - WARM) / statistics.median(busy)
    plans = [*STATIC, *ADAPTIVE]
    seconds: dict[str, dict[int, float]] = {plan: {} for plan in plans}
    zombies, made = {}, {}
    for queries in counts:
        going = [p for p in plans if max(seconds[p].values(), default=0.0) < GIVEN_UP]
        measured: dict[str, list[float]] = {plan: [] for plan in going}
        for turn in range(1 if quick else TURNS):
            for plan in going if turn % 2 == 0 else reversed(going):
                one = run(plan, queries, rate)
                measured[plan].append(one.average)
                if plan == "filtered_pull_up":
                    zombies[queries], made[queries] = one.zombies, one.made
        for plan in going:
            seconds[plan][queries] = statistics.median(measured[plan])
    return LatencyRuns(counts, rate, seconds, zombies, made)


def runs(setup: Setup, setting: Setting) -> LatencyRuns:
    """Return the runs of a setup; the second time without running them again."""
    result = _runs(setup, quick=setting.quick)
    setting.advance()
    return result


def zombies(setting: Setting) -> Outcome:
    """Figure 12: zombies that filtered pull-up makes, of all that its join makes."""
    both = {setup: runs(setup, setting) for setup in Setup}
    names = dict(zip(Setup, ("fewer overlaps", "greater overlaps"), strict=True))
    shares = {
        names[setup]: [run.zombies[n] / max(run.made[n], 1) for n in run.zombies]
        for setup, run in both.items()
    }
    fewer, greater = (list(run.zombies.values()) for run in both.values())
    counts = sorted({n for run in both.values() for n in run.zombies})
    return Outcome(
        {
            "fewer_first": fewer[0],
            "fewer_last": fewer[-1],
            "greater_first": greater[0],
            "greater_last": greater[-1],
            "growth": fewer[-1] / max(fewer[-2], 1),
        },
        rows={
            names[setup]: [f"{run.zombies[n]:,}" if n in run.zombies else "-" for n in counts]
            for setup, run in both.items()
        },
        points=counts,
        lines={
            names[setup]: [(n, max(count, 1)) for n, count in run.zombies.items()]
            for setup, run in both.items()
        },
        data={"zombies": {names[s]: dict(run.zombies) for s, run in both.items()}, "share": shares},
    )


def _outcome(run: LatencyRuns, plans: Sequence[str], measured: Mapping[str, object]) -> Outcome:
    return Outcome(
        {"rate": run.rate, **measured},
        rows=run.rows(plans),
        points=run.queries,
        lines=run.lines(plans),
        data={"rate": run.rate, "seconds": {plan: dict(run.seconds[plan]) for plan in plans}},
    )


def _static(setup: Setup, setting: Setting) -> Outcome:
    run = runs(setup, setting)
    level = run.at_most("tulip")
    served = {plan: run.served(plan, level) for plan in STATIC[1:-1]}
    better = max(served, key=served.__getitem__)
    return _outcome(
        run,
        STATIC,
        {
            "tulip": level * 1e3,
            "push_down": run.at_most("selection_push_down") * 1e3,
            "pull_up": run.at_most("filtered_pull_up") * 1e3,
            "better": better.replace("_", " "),
            "served": served[better],
            "times": min(PAPERS_MOST, run.queries[-1]) / served[better],
            "over_push_down": level / run.at_most("selection_push_down"),
        },
    )


def _adaptive(setup: Setup, setting: Setting) -> Outcome:
    run = runs(setup, setting)
    level = run.at_most("car")
    served = run.served("cacq", level)
    return _outcome(
        run,
        (*ADAPTIVE, "tulip"),
        {
            "car": level * 1e3,
            "cacq": run.at_most("cacq") * 1e3,
            "served": served,
            "times": min(PAPERS_MOST, run.queries[-1]) / served,
            "over_tulip": level / run.at_most("tulip"),
        },
    )


def static_plans_fewer(setting: Setting) -> Outcome:
    """Figure 13 (a)."""
    return _static(Setup.FEWER_OVERLAPS, setting)


def static_plans_greater(setting: Setting) -> Outcome:
    """Figure 13 (b)."""
    return _static(Setup.GREATER_OVERLAPS, setting)


def adaptive_plans_fewer(setting: Setting) -> Outcome:
    """Figure 17 (a)."""
    return _adaptive(Setup.FEWER_OVERLAPS, setting)


def adaptive_plans_greater(setting: Setting) -> Outcome:
    """Figure 17 (b)."""
    return _adaptive(Setup.GREATER_OVERLAPS, setting)
