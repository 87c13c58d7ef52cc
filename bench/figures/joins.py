"""Avnur and Hellerstein (2000), Figures 7 to 9: the join experiments, under every policy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.figures.claims import Numbers
from bench.figures.figure import Outcome, Setting
from bench.figures.selections import SEED, contestants
from bench.known_joins import EQUAL_COSTS, UNIT, Costs, JoinRun, R, S, T, over_stems, tables
from eddyline.engine.policies.policy import Policy

FIRST_RS = "RS before ST"
ORDERS = {FIRST_RS: (R, S, T), "ST before RS": (T, S, R)}

QUICK_PART = 0.05
"""Part of the paper's cardinalities in a quick run."""

INDEX_UNITS = 10.0
"""Units that a probe of an index takes: a random read, a part of them from the cache.

The paper gives no figure; by its Figure 7 an index join is much more expensive than a hash join.
"""

SELECTIVITIES = (0.2, 0.6, 1.0, 1.4, 1.8)
"""Matches of an S tuple in T; the paper has the first and the last. In R it has 1."""


@dataclass(frozen=True, slots=True)
class JoinSetting:
    """One experiment: the matches of an S tuple in R and in T; T has an index, or is scanned."""

    name: str
    rs: float
    st: float
    index: bool = False

    def run(self, policy: Callable[[], Policy], part: float, seed: int) -> JoinRun:
        """Run the query over SteMs: all inputs at one rate, or S past a loaded R and the index."""
        data = tables(self.rs, self.st, seed, part)
        if not self.index:
            return over_stems(data, policy, seed=seed)
        costs = {**EQUAL_COSTS, T: Costs(probe=INDEX_UNITS * UNIT)}
        return over_stems(data, policy, costs=costs, loaded=[R, T], seed=seed)


INDEX_FIRST = JoinSetting("index beats hash", 1.8, 0.1, index=True)
"""Figure 7: RS by hash with 180 %, ST by index with 10 %."""

HASH_FIRST = JoinSetting("hash beats index", 0.2, 1.0, index=True)
"""For the experiment where the hash join should come first the paper gives no numbers."""


@dataclass(frozen=True, slots=True)
class JoinRuns:
    """The runs of one experiment, by contestant."""

    runs: Mapping[str, JoinRun]

    @property
    def better(self) -> str:
        """The static order that took less time."""
        return min(ORDERS, key=lambda order: self.runs[order].seconds)

    def over_better(self, contestant: str) -> float:
        """Return a contestant's time over the better order's."""
        return self.runs[contestant].seconds / self.runs[self.better].seconds

    @property
    def worse(self) -> float:
        """The time of the worse order over the better one's."""
        return max(map(self.over_better, ORDERS))

    def in_better_order(self, contestant: str) -> float:
        """Return the share of S tuples that a contestant sent the better way."""
        return self.runs[contestant].first_share(R if self.better == FIRST_RS else T)


@functools.cache
def _runs(experiment: JoinSetting, part: float, seed: int) -> JoinRuns:
    return JoinRuns(
        {
            name: experiment.run(make, part, seed)
            for name, make in contestants(ORDERS, claimed=seed != SEED).items()
        }
    )


def part_of(setting: Setting) -> float:
    """Return the part of the paper's cardinalities that is run."""
    return QUICK_PART if setting.quick else 1.0


def runs(experiment: JoinSetting, setting: Setting) -> JoinRuns:
    """Return the runs of an experiment; the second time without running them again."""
    result = _runs(experiment, part_of(setting), SEED + setting.seed)
    setting.advance()
    return result


def two_hash_joins(st: float) -> JoinSetting:
    """Return the experiment of Figure 8: two hash joins, RS with one match for an S tuple."""
    return JoinSetting(f"hashes, ST {st:.0%}", 1.0, st)


def hash_joins(setting: Setting) -> Outcome:
    """Figure 8: two hash joins, of which one differs in selectivity."""
    results = {st: runs(two_hash_joins(st), setting) for st in SELECTIVITIES}
    names = list(contestants(ORDERS, claimed=setting.seed > 0))
    over = {name: Numbers(r.over_better(name) for r in results.values()) for name in names}
    ends = results[SELECTIVITIES[0]], results[SELECTIVITIES[-1]]
    return Outcome(
        {
            "part": part_of(setting),
            "lottery": Numbers(end.over_better("lottery") for end in ends),
            "naive": Numbers(end.over_better("naive") for end in ends),
            "worse": Numbers(end.worse for end in ends),
            "adaptive": over["adaptive"],
        },
        rows={name: [100 * (ratio - 1) for ratio in ratios] for name, ratios in over.items()},
        points=SELECTIVITIES,
        lines={
            name: [(100 * st, result.runs[name].seconds) for st, result in results.items()]
            for name in names
        },
        data={
            "selectivities": SELECTIVITIES,
            "seconds": {
                name: [result.runs[name].seconds for result in results.values()] for name in names
            },
        },
    )


def join_flow(setting: Setting) -> Outcome:
    """Figure 9: which way the tuples of the join experiments went."""
    experiments = (INDEX_FIRST, HASH_FIRST, two_hash_joins(0.2), two_hash_joins(1.8))
    results = {each.name: runs(each, setting) for each in experiments}
    shares = {
        name: Numbers(result.in_better_order(name) for result in results.values())
        for name in contestants(ORDERS, claimed=setting.seed > 0)
        if name not in ORDERS
    }
    percent = {name: [100 * share for share in values] for name, values in shares.items()}
    figure_7 = results[INDEX_FIRST.name]
    hash_first = list(results).index(HASH_FIRST.name)
    lottery = shares["lottery"]
    return Outcome(
        {
            **shares,
            "part": part_of(setting),
            "hash_first": lottery[hash_first],
            "elsewhere": Numbers(lottery[:hash_first] + lottery[hash_first + 1 :]),
            "lottery_7": figure_7.over_better("lottery"),
            "naive_7": figure_7.over_better("naive"),
            "worse_7": figure_7.worse,
        },
        rows=percent,
        points=list(results),
        bars=percent,
        data={
            "better": {name: result.better for name, result in results.items()},
            "in_better_order": shares,
            "seconds": {
                name: {contestant: run.seconds for contestant, run in result.runs.items()}
                for name, result in results.items()
            },
        },
    )
