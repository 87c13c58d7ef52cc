"""One query with two selections, under every policy, over a range of settings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.figures.figure import Advance
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.static import StaticPolicy
from eddyline.engine.simulation.simulate import SimulatedSelection, simulate
from eddyline.reports.svg import Series

TUPLES = 50_000
"""The cardinality of U (Avnur and Hellerstein, 2000, Table 1)."""

QUICK_TUPLES = 5_000

SEED = 2000

FIRST_S1 = "s1 before s2"
FIRST_S2 = "s2 before s1"
ORDERS = (FIRST_S1, FIRST_S2)

ADAPTIVE_TARGET = 1.05
"""The default policy is to stay below this many times the better order."""


def contestants() -> dict[str, Callable[[], Policy]]:
    """Return both static orders and every policy that adapts, by name."""
    policies: dict[str, Callable[[], Policy]] = {
        FIRST_S1: functools.partial(StaticPolicy, (0, 1)),
        FIRST_S2: functools.partial(StaticPolicy, (1, 0)),
    }
    for name in PolicyName:
        if name is not PolicyName.STATIC:
            policies[str(name)] = functools.partial(make_policy, name)
    return policies


@dataclass(frozen=True, slots=True)
class Sweep:
    """Total times in delay units and shares of tuples that met s1 first: policy -> by point."""

    points: tuple[float, ...]
    times: Mapping[str, tuple[float, ...]]
    first_shares: Mapping[str, tuple[float, ...]]

    def better(self, point: int) -> float:
        """Return the time of the better static order."""
        return min(self.times[order][point] for order in ORDERS)

    def over_better(self, policy: str) -> list[float]:
        """Return a policy's time over the better order's, by point."""
        return [time / self.better(point) for point, time in enumerate(self.times[policy])]

    def way_to_worse(self, policy: str, point: int) -> float:
        """Return how far a policy is from the better (0) on the way to the worse order (1)."""
        better = self.better(point)
        worse = max(self.times[order][point] for order in ORDERS)
        return (self.times[policy][point] - better) / (worse - better)

    def time_series(self) -> list[Series]:
        """Return the lines of a chart of times, in thousands of delay units."""
        return [
            Series(
                policy,
                [(x, time / 1000) for x, time in zip(self.points, times, strict=True)],
                dashed=policy in ORDERS,
            )
            for policy, times in self.times.items()
        ]

    def rows(self, values: Mapping[str, Iterable[str]]) -> tuple[tuple[str, ...], ...]:
        """Return the rows of a table: a policy's name and its values by point."""
        return tuple((policy, *values[policy]) for policy in self.times if policy in values)

    def as_data(self) -> dict[str, object]:
        """Return everything as JSON data."""
        return {
            "points": self.points,
            "times": dict(self.times),
            "first_shares": dict(self.first_shares),
        }


def sweep(
    points: Sequence[float],
    modules: Callable[[float], Sequence[SimulatedSelection]],
    tuples: int,
    advance: Advance,
) -> Sweep:
    """Run every policy at every point; all of them meet the same tuples."""
    times: dict[str, list[float]] = {}
    shares: dict[str, list[float]] = {}
    for name, make in contestants().items():
        for point in points:
            result = simulate(modules(point), make(), tuples=tuples, seed=SEED)
            times.setdefault(name, []).append(result.total_time)
            shares.setdefault(name, []).append(result.share_first(0))
            advance()
    return Sweep(
        tuple(points),
        {name: tuple(values) for name, values in times.items()},
        {name: tuple(values) for name, values in shares.items()},
    )


def size(*, quick: bool) -> int:
    """Return the number of tuples."""
    return QUICK_TUPLES if quick else TUPLES
