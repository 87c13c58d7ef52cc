"""Predicates of known cost and outcome on a virtual clock, and what a clairvoyant would pay."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eddyline.engine.filter.filter_eddy import FilterEddy, FilterPlan
from eddyline.engine.policies.policy import Policy
from eddyline.expressions import And, Argument, Call
from eddyline.expressions.vector import Vector
from eddyline.simulation.virtual_clock import VirtualClock

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
        """Return the seconds of the best order of every stretch of rows.

        It tries all orders: the time grows with the factorial of the predicates.
        """
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
            "seven flips",
            [20, 20],
            [drawn[0] < np.where(toggling, 0.1, 0.9), drawn[1] < np.where(toggling, 0.9, 0.1)],
        ),
        case("drift", [20, 20], [drawn[0] < part, drawn[1] < 1 - part]),
        case(
            "hidden flip",
            [20, 20],
            [drawn[0] < 0.02, drawn[1] < np.where(first, 0.9, 0.0)],  # noqa: PLR2004
        ),
        case(  # the first predicate passes one row in 10,000: nearly none shows the second
            "out of sight",
            [20, np.where(first, 100, 2)],
            [drawn[0] < 1e-4, drawn[1] < 0.1],  # noqa: PLR2004
        ),
    ]
