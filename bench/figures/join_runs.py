"""The join experiments of Avnur and Hellerstein (2000, Section 4.4), under every policy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.figures.figure import Advance
from bench.figures.sweep import SEED
from bench.known_joins import EQUAL_COSTS, UNIT, Costs, JoinRun, R, S, T, over_stems, tables
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.static import StaticPolicy

FIRST_RS = "RS before ST"
FIRST_ST = "ST before RS"
ORDERS = (FIRST_RS, FIRST_ST)

QUICK_PART = 0.05
"""Part of the paper's cardinalities in a quick run."""

INDEX_UNITS = 10.0
"""Units that a probe of an index takes: a random read, a part of them from the cache.

The paper gives no figure; by its Figure 7 an index join is much more expensive than a hash join.
"""


@dataclass(frozen=True, slots=True)
class JoinSetting:
    """One experiment: the matches of an S tuple in R and in T; T has an index, or is scanned."""

    name: str
    rs: float
    st: float
    index: bool = False

    def run(self, policy: Callable[[], Policy], part: float) -> JoinRun:
        """Run the query over SteMs: all inputs at one rate, or S past a loaded R and the index."""
        data = tables(self.rs, self.st, SEED, part)
        if not self.index:
            return over_stems(data, policy, seed=SEED)
        index = Costs(probe=INDEX_UNITS * UNIT)
        return over_stems(
            data,
            policy,
            costs={**EQUAL_COSTS, T: index},
            loaded=[R, T],
            seed=SEED,
        )


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

    def in_better_order(self, contestant: str) -> float:
        """Return the share of S tuples that a contestant sent the better way."""
        return self.runs[contestant].first_share(R if self.better == FIRST_RS else T)


def hash_joins(st: float) -> JoinSetting:
    """Return the experiment of Figure 8: two hash joins, RS with one match for an S tuple."""
    return JoinSetting(f"hashes, ST {st:.0%}", 1.0, st)


def contestants() -> dict[str, Callable[[], Policy]]:
    """Return both static orders and every policy that adapts, by name."""
    policies: dict[str, Callable[[], Policy]] = {
        FIRST_RS: functools.partial(StaticPolicy, (R, S, T)),
        FIRST_ST: functools.partial(StaticPolicy, (T, S, R)),
    }
    for name in PolicyName:
        if name is not PolicyName.STATIC:
            policies[str(name)] = functools.partial(make_policy, name)
    return policies


def adapting() -> Sequence[str]:
    """Return the names of the contestants that adapt."""
    return [name for name in contestants() if name not in ORDERS]


@functools.cache
def _runs(setting: JoinSetting, part: float) -> JoinRuns:
    return JoinRuns({name: setting.run(make, part) for name, make in contestants().items()})


def runs(setting: JoinSetting, quick: bool, advance: Advance) -> JoinRuns:  # noqa: FBT001 - as Experiment has it
    """Return the runs of an experiment; the second time without running them again."""
    result = _runs(setting, QUICK_PART if quick else 1.0)
    advance()
    return result
