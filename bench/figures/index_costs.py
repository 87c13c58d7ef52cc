"""Avnur and Hellerstein (2000), Figures 7 and 10: an index beside a hash join, and two indexes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.access_methods.index_join import IndexJoin, JoinsInTurn
from bench.access_methods.runs import Run, over_index_joins, over_stems
from bench.access_methods.sources import Column, Index, joined, relation
from bench.access_methods.world import VirtualWorld, World
from bench.figures.figure import Outcome, Setting
from bench.figures.joins import INDEX_FIRST, ORDERS, part_of
from bench.figures.joins import runs as join_runs
from bench.figures.selections import SEED
from eddyline.engine.clock import Clock
from eddyline.engine.join_query import JoinQuery
from eddyline.engine.policies.benefit import BenefitPolicy
from eddyline.engine.policies.lottery import WINDOW, LotteryPolicy
from eddyline.engine.policies.naive import NaivePolicy
from eddyline.engine.policies.policy import Allotment, Policy
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.signature import Signature

R, FS, SF = range(3)  # the scanned relation, the index that is fast then slow, and the other

TUPLES: Final = 30_000
FAST_TUPLES: Final = 29_000
"""Tuples that go through a fast index in the first phase: that is how fast they are read."""

PHASE: Final = 30.0
SLOW: Final = 5.0
MATCHING: Final = 0.01

QUICK_PART: Final = 0.1
"""Part of the tuples and of the first phase in a quick run."""

MUCH: Final = 5
"""So many times as fast is much faster."""

QUEUE: Final = 1
"""Tuples in front of an index join with an eddy.

What is in a queue when an index becomes slow is lost to it: with 2 the paper's eddy takes the
same 85 s, with 10 it takes 115.
"""

FS_FIRST, SF_FIRST = "fast then slow first", "slow then fast first"
BEST = "clairvoyant"
LOTTERY = "joins, w. lottery"
NAIVE = "joins, naive"
BENEFIT = "SteMs, benefit"


def selective_index(setting: Setting) -> Outcome:
    """Figure 7: ST by a selective index, RS by a hash join."""
    result = join_runs(INDEX_FIRST, setting)
    setting.advance()
    seconds = {name: run.seconds for name, run in result.runs.items()}
    return Outcome(
        {
            **{name: result.over_better(name) for name in seconds if name not in ORDERS},
            "part": part_of(setting),
            "worse": result.worse,
        },
        rows={name: [taken] for name, taken in seconds.items()},
        bars={name: [taken] for name, taken in seconds.items()},
        data={"seconds": seconds},
    )


class Clairvoyant(StaticPolicy):
    """Always the index first that is fast now."""

    name = "clairvoyant"

    def __init__(self, clock: Clock, phase: float) -> None:
        """Take the clock and when the indexes change places."""
        super().__init__()
        self._clock = clock
        self._phase = phase

    def route(
        self, signature: Signature, candidates: tuple[int, ...], open_: tuple[int, ...], tuples: int
    ) -> Allotment | None:
        """Choose by the time."""
        del signature, open_
        place = 0 if self._clock.now() < self._phase else -1
        return Allotment(candidates[place], tuples)


@dataclass(frozen=True, slots=True)
class SwappingIndexes:
    """R joined with two remote indexes, which change their speeds half-way; 1 % match in each."""

    part: float
    seed: int = SEED

    @property
    def phase(self) -> float:
        """When the indexes change places."""
        return PHASE * self.part

    def tables(self) -> tuple[tuple[Column, Column], Column, Column]:
        """Return R with a key for either index, and the keys that they have."""
        generator = np.random.default_rng(self.seed)
        tuples = round(TUPLES * self.part)
        r = np.arange(tuples), generator.permutation(tuples)
        matching = round(tuples * MATCHING)
        first, second = (
            np.sort(generator.choice(tuples, matching, replace=False)) for _ in range(2)
        )
        return r, first, second

    @property
    def slow(self) -> float:
        """Seconds of a lookup of the slow index: in a quick run as many as in the whole one."""
        return SLOW * self.part

    def indexes(self) -> tuple[Index, Index]:
        """Return the one that is fast first, and the other."""
        _, first, second = self.tables()
        phase, slow = self.phase, self.slow

        def fast_then_slow(now: float) -> float:
            return 0.0 if now < phase else slow

        return (
            Index((first, first), 0, fast_then_slow),
            Index((second, second), 0, lambda now: slow - fast_then_slow(now)),
        )

    def query(self) -> JoinQuery:
        """Return the query, for SteMs."""
        return joined(
            [relation("R", 2, scan=True), relation("FS", 2, 0), relation("SF", 2, 0)],
            ((R, 0), (FS, 0)),
            ((R, 1), (SF, 0)),
        )

    def over_joins(self, policy: Callable[[World], Policy], queue: int) -> Run:
        """Run it over index joins."""
        world = VirtualWorld()
        r, _, _ = self.tables()
        joins = [
            IndexJoin(number, index.__class__.__name__, (R, r[number]), FS + number, index, world,
                      queue=queue)
            for number, index in enumerate(self.indexes())
        ]  # fmt: skip
        return over_index_joins(
            world,
            (r, PHASE / FAST_TUPLES),
            joins,
            JoinsInTurn([(R, FS), (R, SF)]),
            policy(world),
            relations=3,
            seed=self.seed,
        )

    def over_stems(self) -> Run:
        """Run it over SteMs."""
        first, second = self.indexes()
        r, _, _ = self.tables()
        lookups = {(FS, 0): first, (SF, 0): second}
        scans = {R: (r, PHASE / FAST_TUPLES)}
        return over_stems(
            VirtualWorld(), self.query(), scans, lookups, BenefitPolicy, seed=self.seed
        )


@functools.cache
def _swapping(part: float, seed: int) -> Mapping[str, Run]:
    case = SwappingIndexes(part, seed)
    everything = 1 << 20
    return {
        FS_FIRST: case.over_joins(lambda _: StaticPolicy((0, 1)), everything),
        SF_FIRST: case.over_joins(lambda _: StaticPolicy((1, 0)), everything),
        BEST: case.over_joins(lambda world: Clairvoyant(world.clock, case.phase), QUEUE),
        NAIVE: case.over_joins(lambda _: NaivePolicy(), QUEUE),
        LOTTERY: case.over_joins(lambda _: LotteryPolicy(WINDOW), QUEUE),
        BENEFIT: case.over_stems(),
    }


def swapping_indexes(setting: Setting) -> Outcome:
    """Figure 10: two indexes that change their speeds."""
    part = QUICK_PART if setting.quick else 1.0
    runs = _swapping(part, SEED + setting.seed)
    setting.advance()
    seconds = {name: run.seconds for name, run in runs.items()}
    best = seconds[BEST]
    return Outcome(
        {
            "tuples": round(TUPLES * part),
            "phase": PHASE * part,
            "static": min(seconds[FS_FIRST], seconds[SF_FIRST]),
            "fs_first": seconds[FS_FIRST],
            "sf_first": seconds[SF_FIRST],
            "lottery": seconds[LOTTERY],
            "lottery_far": MUCH * seconds[LOTTERY],
            "lottery_over": seconds[LOTTERY] / best,
            "benefit": seconds[BENEFIT],
            "benefit_over": seconds[BENEFIT] / best,
            "best": best,
        },
        rows={name: [taken] for name, taken in seconds.items()},
        bars={name: [taken] for name, taken in seconds.items()},
        data={"seconds": seconds, "rows": {name: len(run.rows) for name, run in runs.items()}},
    )
