"""``python -m bench learned``: what a query gains by what earlier ones have learned, and risks.

On a virtual clock, so that every figure is the same each time. Predicates of random costs (3 to 300
microseconds) and selectivities (5 to 95 %) are asked about rows twice: the first query knows
nothing, the second, over other rows of the same kind, begins with what the first one reports.

*Gain.* Tuples that looks have sent another way than the plan's: first looks and doubts, which tell
one predicate from another, and refreshes, which guard against changes out of sight; and the time
of the second query over what it takes without the knowledge.

*Risk.* The same where the distribution has changed in between, over what it takes without the
knowledge.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench import report
from bench.simulation.known_costs import BATCH, Known
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.policies.adaptive import AdaptivePolicy, Explored
from eddyline.engine.prior import Prior
from eddyline.expressions import And, Argument, Call
from eddyline.simulation.virtual_clock import VirtualClock

SIZES: Final = ((2, 2_000), (2, 10_000), (4, 2_000), (4, 10_000), (8, 2_000), (8, 10_000))
"""Predicates and rows; a batch of Spark's has 10,000."""

SEEDS: Final = 20

Numbers: TypeAlias = npt.NDArray[np.float64]
Priors: TypeAlias = tuple[Prior | None, ...]


class Kind(NamedTuple):
    """Seconds and selectivities of predicates, by number."""

    costs: Numbers
    selectivities: Numbers


class Outcome(NamedTuple):
    """The virtual seconds of a query, what it explored, and what it reports of its predicates."""

    seconds: float
    explored: Explored
    learned: Priors


def kind_of(seed: int, predicates: int) -> Kind:
    """Draw the predicates of a seed."""
    drawn = np.random.default_rng([seed, predicates])
    costs = 10.0 ** drawn.uniform(-5.5, -3.5, predicates)
    return Kind(costs, drawn.uniform(0.05, 0.95, predicates))


def _out_of_sight(kind: Kind) -> Kind:
    """Let the predicate that comes last reject nearly all."""
    selectivities = kind.selectivities.copy()
    selectivities[np.argmin((1.0 - selectivities) / kind.costs)] = 0.02
    return kind._replace(selectivities=selectivities)


CHANGES: Final[Mapping[str, Callable[[Kind], Kind]]] = {
    "selectivities exchanged": lambda kind: Kind(kind.costs, kind.selectivities[::-1]),
    "costs exchanged": lambda kind: Kind(kind.costs[::-1], kind.selectivities),
    "both exchanged": lambda kind: Kind(kind.costs[::-1], kind.selectivities[::-1]),
    "rejects what it accepted": lambda kind: Kind(kind.costs, 1.0 - kind.selectivities),
    "the next one's": lambda kind: Kind(np.roll(kind.costs, 1), np.roll(kind.selectivities, 1)),
    "the last one, out of sight": _out_of_sight,
}
"""What may have become of the predicates."""


def run(kind: Kind, rows: int, seed: int, priors: Priors = ()) -> Outcome:
    """Ask predicates about rows that are drawn by a seed."""
    clock = VirtualClock()
    count = len(kind.costs)
    passes = np.random.default_rng([seed, rows]).random((count, rows)) < kind.selectivities[:, None]
    costs = np.repeat(kind.costs[:, None], rows, axis=1)
    column = Argument(0, pa.int64())
    calls = tuple(Call(number, (column,), pa.bool_()) for number in range(count))
    policy = AdaptivePolicy()
    eddy = FilterEddy(
        FilterPlan(And(calls), priors=priors),
        [Known(clock, costs[number], passes[number]) for number in range(count)],
        lambda: policy,
        clock,
        np.random.default_rng(0),
    )
    for start in range(0, rows, BATCH):
        stop = min(start + BATCH, rows)
        eddy.filter([pa.array(np.arange(start, stop))], stop - start)
    learned = tuple(
        Prior(done.rows_in, done.passed, done.seconds / done.rows_in) if done.rows_in else None
        for done in eddy.statistics().predicates
    )
    return Outcome(clock.now(), policy.explored, learned)


@functools.cache
def learned(predicates: int, rows: int, seed: int) -> Outcome:
    """Return what the first query over the predicates of a seed comes to."""
    return run(kind_of(seed, predicates), rows, 2 * seed)


@dataclass(frozen=True, slots=True)
class Gain:
    """What the first and the second query explore, in tuples a seed, and the ratio of times."""

    settled: tuple[float, float]
    refreshed: tuple[float, float]
    time: float

    @property
    def ratio(self) -> float:
        """What the second explores of what the first does, refreshes and all."""
        return (self.settled[1] + self.refreshed[1]) / (self.settled[0] + self.refreshed[0])


def gain(predicates: int, rows: int, seeds: Sequence[int]) -> Gain:
    """Return what the second query gains, on average over seeds."""
    firsts, seconds, ratios = [], [], []
    for seed in seeds:
        kind = kind_of(seed, predicates)
        first = learned(predicates, rows, seed)
        second = run(kind, rows, 2 * seed + 1, first.learned)
        firsts.append(first.explored)
        seconds.append(second.explored)
        ratios.append(second.seconds / run(kind, rows, 2 * seed + 1).seconds)
    both = (firsts, seconds)
    settled = [float(np.mean([each.first + each.doubtful for each in of])) for of in both]
    refreshed = [float(np.mean([each.stale for each in of])) for of in both]
    return Gain((settled[0], settled[1]), (refreshed[0], refreshed[1]), float(np.mean(ratios)))


def risk(change: str, predicates: int, rows: int, seeds: Sequence[int]) -> Iterator[float]:
    """Yield, seed by seed, the time with knowledge of before a change over that without."""
    for seed in seeds:
        kind = kind_of(seed, predicates)
        changed = CHANGES[change](kind)
        known = learned(predicates, rows, seed).learned
        without = run(changed, rows, 2 * seed + 1).seconds
        yield run(changed, rows, 2 * seed + 1, known).seconds / without


def main(arguments: Sequence[str]) -> int:
    """Print both tables."""
    parser = report.argument_parser("bench learned", __doc__, turns=None)
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"(default: {SEEDS})")
    options = parser.parse_args(arguments)
    seeds = range(options.seeds)
    gains = {size: gain(*size, seeds) for size in SIZES}
    risks = {
        size: {change: list(risk(change, *size, seeds)) for change in CHANGES} for size in SIZES
    }
    names = {size: f"{size[0]} predicates, {size[1]:,} rows" for size in SIZES}
    path = report.write(
        options,
        "learned",
        {
            "seeds": options.seeds,
            "gains": {
                names[size]: (*of.settled, *of.refreshed, of.time) for size, of in gains.items()
            },
            "risks": {names[size]: of for size, of in risks.items()},
        },
    )
    report.show(
        report.table(
            "Tuples explored by the first and the second query",
            ("query", "looks and doubts", "then", "refreshes", "then", "in all", "time"),
            [
                (
                    names[size],
                    *(f"{tuples:.1f}" for tuples in (*of.settled, *of.refreshed)),
                    f"{of.ratio:.3f}",
                    f"{of.time:.3f}",
                )
                for size, of in gains.items()
            ],
        ),
        report.table(
            "Time with what was learned before a change over that without, and the worst seed",
            ("query", *CHANGES, "all"),
            [
                (
                    names[size],
                    *(f"{np.mean(of[change]):.3f} ({max(of[change]):.2f})" for change in CHANGES),
                    f"{np.mean(list(of.values())):.3f}",
                )
                for size, of in risks.items()
            ],
        ),
        f"written: {path}",
    )
    return 0
