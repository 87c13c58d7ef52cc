"""Krishnamurthy et al. (2004), Figures 12, 13 and 17: latency by the number of shared queries.

Latencies are measured, of real work on tuples that arrive at a given rate. The rate is what TULIP
keeps up with at 256 queries, so that its knee is there, as in the paper.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.figures.figure import Outcome, Setting
from bench.sharing.latency import Latency, Tuples, latency
from bench.sharing.setups import Setup

PAPERS_MOST = 256
"""Queries in the paper; with more, those of Setup 1 are so narrow that all cover the same."""

STATIC = ("selection_pull_up", "filtered_pull_up", "selection_push_down", "tulip")
ADAPTIVE = ("cacq", "car")
SHOWN = (*ADAPTIVE, "tulip")
"""Those that Figure 17 shows: TULIP beside the adaptive ones."""
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

QUICK_TUPLES, QUICK_WARM = 2_000, 1_000
"""Tuples of each stream in a quick run, and those of them that come before the clock starts."""


@dataclass(frozen=True)
class LatencyRuns:
    """Average seconds a result by plan and number of queries, and zombies of filtered pull-up."""

    queries: Sequence[int]
    tuples: int
    timed: int
    rate: float
    every: Mapping[str, Mapping[int, Sequence[Latency]]]
    turn: int | None = None

    @functools.cached_property
    def seconds(self) -> Mapping[str, Mapping[int, float]]:
        """The median average of the turns, or that of one of them."""
        return self._of_turns(lambda latency: latency.average)

    @functools.cached_property
    def work(self) -> Mapping[str, Mapping[int, float]]:
        """Seconds in which a plan was at work; likewise."""
        return self._of_turns(lambda latency: latency.busy)

    @property
    def turns(self) -> list[LatencyRuns]:
        """Each turn by itself."""
        count = len(next(iter(self.every["tulip"].values())))
        return [dataclasses.replace(self, turn=turn) for turn in range(count)]

    def of_pull_up(self, number: Callable[[Latency], int]) -> dict[int, int]:
        """Return a number that is the same in all turns of filtered pull-up."""
        return {n: number(turns[0]) for n, turns in self.every["filtered_pull_up"].items()}

    def _of_turns(self, number: Callable[[Latency], float]) -> dict[str, dict[int, float]]:
        return {
            plan: {
                n: statistics.median(map(number, turns))
                if self.turn is None
                else number(turns[self.turn])
                for n, turns in by_queries.items()
            }
            for plan, by_queries in self.every.items()
        }

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
        return _at_most(self.seconds[plan])

    def work_over(self, plan: str, other: str) -> float:
        """Return how many times the work of another plan one has at that number."""
        return _at_most(self.work[plan]) / _at_most(self.work[other])

    def load(self, plan: str) -> float:
        """Return the work of a plan there, over the time from the first arrival to the last."""
        return _at_most(self.work[plan]) * self.rate / self.timed


def _at_most(by_queries: Mapping[int, float]) -> float:
    return by_queries.get(PAPERS_MOST, by_queries[max(by_queries)])


@functools.cache
def _runs(setup: Setup, *, quick: bool) -> LatencyRuns:
    tuples, keys = SIZES[setup]
    most = 8 if quick else 4096
    data = Tuples.made(QUICK_TUPLES, keys, QUICK_WARM) if quick else Tuples.made(tuples, keys)
    counts = [2**power for power in range(1, int(math.log2(most)) + 1)]

    def run(plan: str, queries: int, rate: float) -> Latency:
        return latency(setup, plan, queries, rate, of=max(PAPERS_MOST, queries), data=data)

    # Each run looks for garbage before its clock starts: not among all that is here already.
    gc.collect()
    gc.freeze()
    run("tulip", PAPERS_MOST, FAST)  # compiles
    busy = [run("tulip", PAPERS_MOST, FAST).busy for _ in range(1 if quick else TURNS)]
    rate = data.timed / statistics.median(busy)
    plans = [*STATIC, *ADAPTIVE]
    every: dict[str, dict[int, list[Latency]]] = {plan: {} for plan in plans}
    result = LatencyRuns(counts, data.keys.shape[1], data.timed, rate, every)
    going = plans
    for queries in counts:
        for plan in going:
            every[plan][queries] = []
        for turn in range(1 if quick else TURNS):
            for plan in going if turn % 2 == 0 else reversed(going):
                every[plan][queries].append(run(plan, queries, rate))
        going = [
            plan
            for plan in going
            if statistics.median(one.average for one in every[plan][queries]) < GIVEN_UP
        ]
    gc.unfreeze()
    return result


def runs(setup: Setup, setting: Setting) -> LatencyRuns:
    """Return the runs of a setup; the second time without running them again."""
    result = _runs(setup, quick=setting.quick)
    setting.advance()
    return result


def zombies(setting: Setting) -> Outcome:
    """Figure 12: zombies that filtered pull-up makes, of all that its join makes."""
    both = {setup: runs(setup, setting) for setup in Setup}
    zombies = {s: run.of_pull_up(lambda latency: latency.zombies) for s, run in both.items()}
    made = {s: run.of_pull_up(lambda latency: latency.made) for s, run in both.items()}
    names = dict(zip(Setup, ("fewer overlaps", "greater overlaps"), strict=True))
    shares = {
        names[setup]: [count / max(made[setup][n], 1) for n, count in of_setup.items()]
        for setup, of_setup in zombies.items()
    }
    fewer, greater = (list(of_setup.values()) for of_setup in zombies.values())
    counts = sorted({n for of_setup in zombies.values() for n in of_setup})
    return Outcome(
        {
            "fewer_tuples": both[Setup.FEWER_OVERLAPS].tuples,
            "greater_tuples": both[Setup.GREATER_OVERLAPS].tuples,
            "fewer_first": fewer[0],
            "fewer_last": fewer[-1],
            "greater_first": greater[0],
            "greater_last": greater[-1],
            "growth": fewer[-1] / max(fewer[-2], 1),
        },
        rows={
            names[setup]: [f"{of_setup[n]:,}" if n in of_setup else "-" for n in counts]
            for setup, of_setup in zombies.items()
        },
        points=counts,
        lines={
            names[setup]: [(n, max(count, 1)) for n, count in of_setup.items()]
            for setup, of_setup in zombies.items()
        },
        data={"zombies": {names[s]: of_setup for s, of_setup in zombies.items()}, "share": shares},
    )


def _outcome(
    run: LatencyRuns,
    plans: Sequence[str],
    claimed: Callable[[LatencyRuns], Mapping[str, object]],
) -> Outcome:
    return Outcome(
        {"tuples": run.tuples, "queries": run.queries[-1], "rate": run.rate, **claimed(run)},
        turns=list(map(claimed, run.turns)),
        rows=run.rows(plans),
        points=run.queries,
        lines=run.lines(plans),
        data={"rate": run.rate, "seconds": {plan: dict(run.seconds[plan]) for plan in plans}},
    )


def _static(run: LatencyRuns) -> dict[str, object]:
    """Return what is claimed of static plans."""
    level = run.at_most("tulip")
    served = {plan: run.served(plan, level) for plan in STATIC[1:-1]}
    better = max(served, key=served.__getitem__)
    return {
        "tulip": level * 1e3,
        "push_down": run.at_most("selection_push_down") * 1e3,
        "pull_up": run.at_most("filtered_pull_up") * 1e3,
        "better": better.replace("_", " "),
        "served": served[better],
        "times": min(PAPERS_MOST, run.queries[-1]) / served[better],
        "over_push_down": level / run.at_most("selection_push_down"),
    }


def _adaptive(run: LatencyRuns) -> dict[str, object]:
    """Return what is claimed of adaptive plans."""
    level = run.at_most("car")
    served = run.served("cacq", level)
    return {
        "car": level * 1e3,
        "cacq": run.at_most("cacq") * 1e3,
        "served": served,
        "times": min(PAPERS_MOST, run.queries[-1]) / served,
        "over_tulip": level / run.at_most("tulip"),
        "work_over_tulip": run.work_over("car", "tulip"),
        "load": run.load("tulip"),
    }


def static_plans_fewer(setting: Setting) -> Outcome:
    """Figure 13 (a)."""
    return _outcome(runs(Setup.FEWER_OVERLAPS, setting), STATIC, _static)


def static_plans_greater(setting: Setting) -> Outcome:
    """Figure 13 (b)."""
    return _outcome(runs(Setup.GREATER_OVERLAPS, setting), STATIC, _static)


def adaptive_plans_fewer(setting: Setting) -> Outcome:
    """Figure 17 (a)."""
    return _outcome(runs(Setup.FEWER_OVERLAPS, setting), SHOWN, _adaptive)


def adaptive_plans_greater(setting: Setting) -> Outcome:
    """Figure 17 (b)."""
    return _outcome(runs(Setup.GREATER_OVERLAPS, setting), SHOWN, _adaptive)
