"""``python -m bench shared-learning``: many short tasks that learn from each other, or do not.

On a virtual clock, so that every figure is the same each time. One stage of 1,000 tasks of 500 rows
runs on 200 workers: each worker takes the next task as soon as it is done with one. Four, six and
eight predicates of random costs (3 to 300 microseconds) and selectivities (5 to 95 %).

*alone*: each task begins with nothing. *worker*: it goes on with what the last task of the same
worker has learned. *finished*: it begins with the records of all tasks that have finished by then,
merged as the driver does, as a prior. *asked*: so does the first task of a worker that begins when
anything has finished; those after it go on with what the last one has learned. *before*: all tasks
begin with the prior of an earlier query over as many rows.

Tasks begin one after another: a driver takes some time to launch one (``--launch``).

Calls, and what they cost without what visits cost by themselves, are over those of one task of all
the rows. The first tasks are as many as there are workers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench import report
from bench.learned import Kind, Priors, kind_of
from bench.simulation.known_costs import BATCH, Known
from eddyline.engine.eddy import Learned
from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.modules.selection import SelectionStatistics
from eddyline.engine.policies.adaptive import AdaptivePolicy
from eddyline.engine.prior import Prior
from eddyline.expressions import And, Argument, Call
from eddyline.learning.learned_store import LEAST, Sums
from eddyline.simulation.virtual_clock import VirtualClock

TARGET: Final = 1.03
"""Calls, and their cost, over those of one long task."""

PREDICATES: Final = (4, 6, 8)

SEEDS: Final = 3

Way: TypeAlias = Literal["alone", "worker", "finished", "asked", "before"]
"""What a task begins with; the module says what each is."""

WAYS: Final[tuple[Way, ...]] = get_args(Way)


@dataclass(frozen=True, slots=True)
class Stage:
    """``tasks`` of ``rows`` each, one begun every ``launch`` seconds, on so many ``workers``."""

    tasks: int
    rows: int
    workers: int
    launch: float


LARGE: Final = Stage(tasks=1_000, rows=500, workers=200, launch=0.001)
"""What the target is for."""


class Asked(NamedTuple):
    """The calls of a task or a stage, and their cost in seconds."""

    calls: int = 0
    cost: float = 0.0

    def plus(self, other: Asked) -> Asked:
        """Return both together."""
        return Asked(self.calls + other.calls, self.cost + other.cost)

    def over(self, other: Asked) -> tuple[float, float]:
        """Return calls and cost as multiples of others."""
        return self.calls / other.calls, self.cost / other.cost


class Task(NamedTuple):
    """What a task asked, how long it took, what it reports, and what it hands on."""

    asked: Asked
    seconds: float
    predicates: tuple[SelectionStatistics, ...]
    learned: Learned


@dataclass(frozen=True, slots=True)
class Work:
    """Predicates and what they say of the rows of a stage."""

    kind: Kind
    passes: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, seed: int, predicates: int, rows: int) -> Work:
        """Draw predicates and rows by a seed."""
        kind = kind_of(seed, predicates)
        drawn = np.random.default_rng([seed, rows]).random((predicates, rows))
        return cls(kind, drawn < kind.selectivities[:, None])

    def over_other_rows(self) -> Work:
        """Return the same predicates over as many rows that nobody has seen."""
        drawn = np.random.default_rng(self.passes.shape).random(self.passes.shape)
        return Work(self.kind, drawn < self.kind.selectivities[:, None])

    def whole(self) -> Task:
        """Run one task over all rows."""
        return self.task(0, self.passes.shape[1], (), None)

    def task(self, start: int, stop: int, priors: Priors, learned: Learned | None) -> Task:
        """Run a task over rows ``start`` to ``stop``."""
        clock = VirtualClock()
        predicates = len(self.kind.costs)
        column = Argument(0, pa.int64())
        eddy = FilterEddy(
            FilterPlan(
                And(tuple(Call(n, (column,), pa.bool_()) for n in range(predicates))),
                priors=priors,
            ),
            [
                Known(clock, np.broadcast_to(cost, passes.shape), passes)
                for cost, passes in zip(self.kind.costs, self.passes, strict=True)
            ],
            AdaptivePolicy,
            clock,
            np.random.default_rng(start),
            learned=learned,
        )
        for first in range(start, stop, BATCH):
            last = min(first + BATCH, stop)
            eddy.filter([pa.array(np.arange(first, last))], last - first)
        done = eddy.statistics().predicates
        calls = np.array([each.rows_in for each in done])
        asked = Asked(int(calls.sum()), float(calls @ self.kind.costs))
        return Task(asked, clock.now(), done, eddy.learned())


@dataclass(slots=True)
class Merged:
    """The records of tasks, as the driver merges them."""

    sums: list[Sums] = field(default_factory=list)

    def add(self, predicates: Sequence[SelectionStatistics]) -> None:
        """Add what a task reports."""
        self.sums = self.sums or [Sums() for _ in predicates]
        for known, done in zip(self.sums, predicates, strict=True):
            known.add(
                Sums(
                    done.rows_in,
                    done.passed,
                    done.rows_in - done.first_rows,
                    done.seconds - done.first_seconds,
                    done.first_rows,
                    done.first_seconds,
                )
            )

    def priors(self) -> Priors:
        """Return what tasks are told."""
        return tuple(map(_prior, self.sums))


def _prior(known: Sums) -> Prior | None:
    cost = known.cost
    return None if known.rows < LEAST or cost is None else Prior(known.rows, known.hits, cost)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage asked, and what of it those tasks did that began before any had finished."""

    asked: Asked
    first: Asked


def run(work: Work, stage: Stage, way: Way) -> Outcome:
    """Run a stage."""
    merged = Merged()
    if way == "before":
        merged.add(work.over_other_rows().whole().predicates)
    learned: dict[int, Learned] = {}  # by worker
    asking = set(range(stage.workers))  # who has not asked yet
    free = [(0.0, worker) for worker in range(stage.workers)]
    running: list[tuple[float, int, Task]] = []  # by when they finish
    asked = first = Asked()
    for number in range(stage.tasks):
        ready, worker = heapq.heappop(free)
        now = max(ready, number * stage.launch)
        while way in ("finished", "asked") and running and running[0][0] <= now:
            merged.add(heapq.heappop(running)[2].predicates)
        priors = merged.priors()
        asks = way == "asked" and worker in asking and any(priors)
        if asks:
            asking.discard(worker)
        goes_on = way == "worker" or (way == "asked" and not asks)
        start = number * stage.rows
        before = learned.get(worker) if goes_on else None
        task = work.task(start, start + stage.rows, priors, before)
        learned[worker] = task.learned
        asked = asked.plus(task.asked)
        if number < stage.workers:
            first = first.plus(task.asked)
        heapq.heappush(free, (now + task.seconds, worker))
        heapq.heappush(running, (now + task.seconds, number, task))
    return Outcome(asked, first)


class Ratios(NamedTuple):
    """Calls and cost over those of one long task, and the cost of the first tasks likewise."""

    calls: float
    cost: float
    first: float


def ratios(seed: int, predicates: int, stage: Stage) -> dict[Way, Ratios]:
    """Return what each way comes to, for the predicates of a seed."""
    work = Work.of(seed, predicates, stage.tasks * stage.rows)
    long = work.whole().asked
    part = min(stage.workers, stage.tasks) / stage.tasks
    outcomes = {way: run(work, stage, way) for way in WAYS}
    return {
        way: Ratios(*done.asked.over(long), done.first.cost / (part * long.cost))
        for way, done in outcomes.items()
    }


def main(arguments: Sequence[str]) -> int:
    """Print what each way comes to."""
    parser = report.argument_parser("bench shared-learning", __doc__, turns=None)
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"(default: {SEEDS})")
    parser.add_argument("--tasks", type=int, default=LARGE.tasks)
    parser.add_argument("--rows", type=int, default=LARGE.rows, help="of a task")
    parser.add_argument("--workers", type=int, default=LARGE.workers)
    launch = 1_000.0 * LARGE.launch
    parser.add_argument("--launch", type=float, default=launch, help="milliseconds between tasks")
    options = parser.parse_args(arguments)
    stage = Stage(options.tasks, options.rows, options.workers, options.launch / 1_000.0)
    found = {
        predicates: [ratios(seed, predicates, stage) for seed in range(options.seeds)]
        for predicates in PREDICATES
    }
    path = report.write(
        options, "shared-learning", {"seeds": options.seeds, "of": asdict(stage), "ratios": found}
    )
    report.show(
        report.table(
            f"{stage.tasks:,} tasks of {stage.rows} rows on {stage.workers} workers, "
            "over one task of all rows (the worst seed)",
            ("predicates", "a task begins with", "calls", "cost", "of the first", f"≤ {TARGET}"),
            list(_lines(found)),
        ),
        f"written: {path}",
    )
    return 0


def _lines(found: Mapping[int, Sequence[Mapping[Way, Ratios]]]) -> Iterator[tuple[str, ...]]:
    for predicates, by_seed in found.items():
        for way in WAYS:
            calls, cost, first = zip(*(of[way] for of in by_seed), strict=True)
            means = [float(np.mean(each)) for each in (calls, cost, first)]
            yield (
                str(predicates),
                way,
                *(
                    f"{mean:.3f} ({max(each):.3f})"
                    for mean, each in zip(means, (calls, cost, first), strict=True)
                ),
                "yes" if max(means[:2]) <= TARGET else "no",
            )
