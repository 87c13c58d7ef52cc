"""``python -m bench.ablations``: what each part of the adaptive policy buys.

The default policy against itself with one part taken out or replaced, over
predicates of known cost and selectivity on a virtual clock: cost of the run over
the cost of the best order of every stretch of rows (1 is clairvoyance).
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from eddyline.engine.clock import VirtualClock
from eddyline.engine.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.policies.adaptive import AdaptivePolicy, Estimate
from eddyline.engine.policies.adaptive_window import AdaptiveWindow
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.signature import Signature
from eddyline.engine.vector import Vector
from eddyline.query.expressions import And, Argument, Call

VISIT = 15e-6
"""Seconds that each visit to a module costs on the virtual clock, as it does on a real one."""

BATCH = 10_000
"""Rows of a batch, as Spark sends them."""

STRETCHES = 40
"""Stretches of rows for each of which the clairvoyant knows the best order."""


@dataclass
class Known:
    """A predicate of known cost and outcome for each row."""

    clock: VirtualClock
    costs: npt.NDArray[np.float64]
    passes: npt.NDArray[np.bool_]
    vectorized: bool = field(default=False, init=False)

    def __call__(self, columns: Sequence[pa.Array], rows: int) -> Vector:  # noqa: ARG002 - by the columns' length
        """Look the rows up."""
        numbers = columns[0].to_numpy()
        self.clock.advance(VISIT + float(self.costs[numbers].sum()))
        return Vector(pa.array(self.passes[numbers]))


@dataclass(frozen=True, slots=True)
class Case:
    """Costs (seconds) and outcomes, predicate by predicate, row by row."""

    name: str
    costs: npt.NDArray[np.float64]
    passes: npt.NDArray[np.bool_]

    def run(self, policy: Callable[[], Policy]) -> float:
        """Return the virtual seconds that a policy takes."""
        clock = VirtualClock()
        predicates, rows = self.passes.shape
        column = Argument(0, pa.int64())
        eddy = FilterEddy(
            FilterPlan(And(tuple(Call(i, (column,), pa.bool_()) for i in range(predicates)))),
            [Known(clock, self.costs[i], self.passes[i]) for i in range(predicates)],
            policy,
            clock,
            np.random.default_rng(0),
        )
        for start in range(0, rows, BATCH):
            stop = min(start + BATCH, rows)
            eddy.filter([pa.array(np.arange(start, stop))], stop - start)
        return clock.now()

    def clairvoyant(self) -> float:
        """Return the seconds of the best order of every stretch of rows."""
        predicates, rows = self.passes.shape
        total = 0.0
        for start in range(0, rows, rows // STRETCHES):
            part = slice(start, start + rows // STRETCHES)
            total += min(
                self._cost(order, part) for order in itertools.permutations(range(predicates))
            )
        return total

    def _cost(self, order: tuple[int, ...], part: slice) -> float:
        alive = np.ones(self.passes[0, part].shape, dtype=np.bool_)
        total = 0.0
        for predicate in order:
            total += float(self.costs[predicate, part][alive].sum())
            alive &= self.passes[predicate, part]
        return total


def cases(rows: int) -> list[Case]:
    """Return the cases: without change, with correlation, with sudden and with slow change."""
    drawn = np.random.default_rng(1).random((4, rows))
    part = np.arange(rows) / rows
    first = part < 0.5  # noqa: PLR2004 - half-way
    toggling = (part * 8).astype(int) % 2 == 0

    def case(name: str, costs: Sequence[object], passes: Sequence[object]) -> Case:
        wide = [np.broadcast_to(np.asarray(cost, dtype=float), rows) for cost in costs]
        return Case(name, np.array(wide) * 1e-6, np.array(passes, dtype=np.bool_))

    return [
        case(
            "stationary",
            [50, 50, 5, 20],
            [drawn[i] < bound for i, bound in enumerate((0.9, 0.5, 0.8, 0.3))],
        ),
        case(
            "correlated",
            [20, 20, 20],
            [drawn[0] < 0.4, (drawn[0] < 0.4) | (drawn[1] < 0.05), drawn[2] < 0.5],  # noqa: PLR2004
        ),
        case(
            "flip of selectivity",
            [20, 20],
            [drawn[0] < np.where(first, 0.1, 0.9), drawn[1] < np.where(first, 0.9, 0.1)],
        ),
        case(
            "flip of cost",
            [np.where(first, 5, 50), np.where(first, 50, 5)],
            [drawn[0] < 0.3, drawn[1] < 0.3],  # noqa: PLR2004
        ),
        case(
            "eight flips",
            [20, 20],
            [drawn[0] < np.where(toggling, 0.1, 0.9), drawn[1] < np.where(toggling, 0.9, 0.1)],
        ),
        case("drift", [20, 20], [drawn[0] < part, drawn[1] < 1 - part]),
        case(
            "hidden flip",
            [20, 20],
            [drawn[0] < 0.02, drawn[1] < np.where(first, 0.9, 0.0)],  # noqa: PLR2004
        ),
    ]


class NeverForget(AdaptiveWindow):
    """Keeps everything."""

    __slots__ = ()

    def _cut(self, points: int) -> int | None:  # noqa: ARG002 - never looks
        return None


class LastVisits(AdaptiveWindow):
    """Keeps the last 200 visits, whatever happened before them."""

    __slots__ = ()

    def _cut(self, points: int) -> int | None:  # noqa: ARG002 - never looks
        while self.visits > 200 and len(self._buckets) > 1:  # noqa: PLR2004 - the window
            self._drop(1)
        return None


def with_window(window: type[AdaptiveWindow]) -> Callable[[], Policy]:
    """Return the adaptive policy with another way of forgetting."""

    class Variant(AdaptivePolicy):
        new_window = window

    return Variant


class Unconditional(AdaptivePolicy):
    """Judges each module by its record over all signatures."""

    def _estimate(self, signature: Signature, module: int) -> Estimate:  # noqa: ARG002 - one for all
        return self._pooled[module]


VARIANTS: Mapping[str, Callable[[], Policy]] = {
    "adaptive": AdaptivePolicy,
    "no exploration": lambda: AdaptivePolicy(exploration=0.0),
    "exploration 10 %": lambda: AdaptivePolicy(exploration=0.10),
    "statistics not conditional": Unconditional,
    "never forgets": with_window(NeverForget),
    "window of 200 visits": with_window(LastVisits),
    **{
        f"policy {name}": functools.partial(make_policy, name)
        for name in PolicyName
        if name is not PolicyName.ADAPTIVE
    },
}


def main() -> int:
    """Run every variant on every case and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.ablations", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    options = parser.parse_args()
    chosen = cases(options.rows)
    bounds = {case.name: case.clairvoyant() for case in chosen}
    results = {
        name: {case.name: case.run(policy) / bounds[case.name] for case in chosen}
        for name, policy in VARIANTS.items()
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "ablations.json").write_text(json.dumps(results, indent=1))
    table = Table(title="cost over the clairvoyant's")
    table.add_column("variant")
    for case in chosen:
        table.add_column(case.name, justify="right")
    for name, ratios in results.items():
        table.add_row(name, *(f"{ratios[case.name]:.3f}" for case in chosen))
    Console(width=160).print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
