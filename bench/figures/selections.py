"""Avnur and Hellerstein (2000), Figures 4 to 6: one query with two selections, every policy.

Each is drawn twice: with routing that takes no time, and with routing that takes some. How the
claims of the paper depend on that time is a figure of its own, ``routing_time.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import truediv
from typing import Any

from bench.figures.claims import Numbers
from bench.figures.figure import Outcome, Setting
from eddyline.engine.policies.catalogue import PolicyName, make_policy
from eddyline.engine.policies.policy import Policy
from eddyline.engine.policies.static import StaticPolicy
from eddyline.simulation.simulate import FREE, RoutingTime, SimulatedSelection, simulate

TUPLES = 50_000
"""The cardinality of U (Avnur and Hellerstein, 2000, Table 1)."""

QUICK_TUPLES = 5_000

SEED = 2000

COSTS = tuple(float(cost) for cost in range(1, 10))
"""Cost of s1 in Figure 4; that of s2 is 5, both pass 50 %."""

SELECTIVITIES = tuple(tenth / 10 for tenth in range(1, 10))
"""Share of the tuples that s1 lets pass in Figure 5; s2 lets pass 50 %, both cost 5."""

AT_MOST = RoutingTime(per_decision=1.0)
"""What routing takes where it is not free: as long as the cheapest selection of the paper.

The paper gives no time. Its selections are expensive predicates (Section 4.2), of 1 to 9 units; a
decision that took longer than the cheapest of them would not be made for every tuple of it.
"""

EQUAL = SELECTIVITIES.index(0.5)

ORDERS = {"s1 before s2": (0, 1), "s2 before s1": (1, 0)}


CLAIMED = (PolicyName.NAIVE, PolicyName.LOTTERY, PolicyName.ADAPTIVE)
"""Policies that claims of Figures 4 to 9 are about: other seeds are for these alone."""


def contestants(
    orders: Mapping[str, Sequence[int]], *, claimed: bool = False
) -> dict[str, Callable[[], Policy]]:
    """Return static orders and every policy that adapts, or those ``claimed``, by name.

    Without ``benefit``: where no access methods compete it is ``adaptive``.
    """
    return {
        **{name: functools.partial(StaticPolicy, tuple(order)) for name, order in orders.items()},
        **{
            str(name): functools.partial(make_policy, name)
            for name in (CLAIMED if claimed else PolicyName)
            if name not in (PolicyName.STATIC, PolicyName.BENEFIT)
        },
    }


def adapting(by_name: Mapping[str, Numbers], orders: Mapping[str, object]) -> dict[str, Numbers]:
    """Return what belongs to the policies that adapt."""
    return {name: values for name, values in by_name.items() if name not in orders}


@dataclass(frozen=True, slots=True)
class Sweep:
    """Total times in delay units and shares of tuples that met s1 first: policy -> by point."""

    points: Sequence[float]
    tuples: int
    times: Mapping[str, Numbers]
    first_shares: Mapping[str, Numbers]

    def of_orders(self, choose: Callable[[Iterable[float]], float]) -> list[float]:
        """Return the better (min) or the worse (max) of the static orders' times, by point."""
        return [choose(times) for times in zip(*map(self.times.__getitem__, ORDERS), strict=True)]

    @property
    def over_better(self) -> dict[str, Numbers]:
        """Every policy's time over that of the better static order."""
        return {
            policy: Numbers(map(truediv, times, self.of_orders(min)))
            for policy, times in self.times.items()
        }

    def ways_to_worse(self, policy: str) -> Numbers:
        """Return how far a policy is from the better (0) on the way to the worse order (1).

        At every point but that where all is equal, and no order is worse.
        """
        by_point = zip(self.times[policy], *map(self.of_orders, (min, max)), strict=True)
        return Numbers(
            (time - better) / (worse - better)
            for place, (time, better, worse) in enumerate(by_point)
            if place != EQUAL
        )

    def outcome(self, measured: Mapping[str, object]) -> Outcome:
        """Return times over the better order as a table, and times in thousands as lines."""
        return Outcome(
            {**self.over_better, "tuples": self.tuples, **measured},
            rows={
                policy: [100 * (ratio - 1) for ratio in ratios]
                for policy, ratios in self.over_better.items()
            },
            points=self.points,
            lines={
                policy: [(x, time / 1000) for x, time in zip(self.points, times, strict=True)]
                for policy, times in self.times.items()
            },
            data=self.data,
        )

    @property
    def data(self) -> dict[str, object]:
        """Everything, for JSON."""
        return {
            "points": self.points,
            "times": dict(self.times),
            "first_shares": dict(self.first_shares),
        }


def sweep(
    points: Sequence[float],
    modules: Callable[[float], Sequence[SimulatedSelection]],
    setting: Setting,
    routing: RoutingTime = FREE,
    *,
    only: Collection[str] = (),
    tuples: int = TUPLES,
) -> Sweep:
    """Run every policy, or ``only`` some, at every point; all of them meet the same tuples."""
    tuples = min(tuples, QUICK_TUPLES) if setting.quick else tuples
    times: dict[str, Numbers] = {}
    shares: dict[str, Numbers] = {}
    for name, make in contestants(ORDERS, claimed=setting.seed > 0).items():
        if only and name not in only and name not in ORDERS:
            continue
        results = []
        for point in points:
            results.append(
                simulate(
                    modules(point), make(), tuples=tuples, seed=SEED + setting.seed, routing=routing
                )
            )
            setting.advance()
        times[name] = Numbers(result.total_time for result in results)
        shares[name] = Numbers(result.share_first(0) for result in results)
    return Sweep(points, tuples, times, shares)


def selections(*, cost: float = 5.0, selectivity: float = 0.5) -> tuple[SimulatedSelection, ...]:
    """Return s1 and s2."""
    return (
        SimulatedSelection(cost=cost, selectivity=selectivity, name="s1"),
        SimulatedSelection(cost=5.0, selectivity=0.5, name="s2"),
    )


def over_costs(setting: Setting, routing: RoutingTime, **narrowed: Any) -> Sweep:  # noqa: ANN401 - as sweep takes them
    """Return the runs of Figure 4: costs differ, selectivities do not."""
    return sweep(COSTS, lambda cost: selections(cost=cost), setting, routing, **narrowed)


def over_selectivities(setting: Setting, routing: RoutingTime, **narrowed: Any) -> Sweep:  # noqa: ANN401 - likewise
    """Return the runs of Figures 5 and 6: selectivities differ, costs do not."""
    return sweep(
        SELECTIVITIES, lambda share: selections(selectivity=share), setting, routing, **narrowed
    )


_known_selectivities = functools.cache(over_selectivities)


def lottery_gain(result: Sweep) -> Numbers:
    """Return the lottery's time over that of the naive eddy, by point."""
    times = result.times
    return Numbers(own / other for own, other in zip(times["lottery"], times["naive"], strict=True))


def varied_cost(setting: Setting) -> Outcome:
    """Figure 4."""
    return _varied_cost(setting, FREE)


def routed_cost(setting: Setting) -> Outcome:
    """Figure 4 with routing that takes time."""
    return _varied_cost(setting, AT_MOST)


def varied_selectivity(setting: Setting) -> Outcome:
    """Figure 5."""
    return _varied_selectivity(setting, FREE)


def routed_selectivity(setting: Setting) -> Outcome:
    """Figure 5 with routing that takes time."""
    return _varied_selectivity(setting, AT_MOST)


def tuple_flow(setting: Setting) -> Outcome:
    """Figure 6: which way the tuples of Figure 5 went."""
    return _tuple_flow(setting, FREE)


def routed_flow(setting: Setting) -> Outcome:
    """Figure 6 with routing that takes time."""
    return _tuple_flow(setting, AT_MOST)


def _varied_cost(setting: Setting, routing: RoutingTime) -> Outcome:
    result = over_costs(setting, routing)
    measured = {"gain": lottery_gain(result), "routing": routing.per_decision}
    return result.outcome(measured)


def _varied_selectivity(setting: Setting, routing: RoutingTime) -> Outcome:
    result = _known_selectivities(setting, routing)
    ways = {"way": result.ways_to_worse("naive"), "lottery_way": result.ways_to_worse("lottery")}
    return result.outcome({**ways, "routing": routing.per_decision})


def _tuple_flow(setting: Setting, routing: RoutingTime) -> Outcome:
    result = _known_selectivities(setting, routing)
    shares = {
        policy: [100 * share for share in values]
        for policy, values in adapting(result.first_shares, ORDERS).items()
    }
    naive, lottery = result.first_shares["naive"], result.first_shares["lottery"]
    return Outcome(
        {
            "tuples": result.tuples,
            "routing": routing.per_decision,
            "naive": naive,
            "lottery": lottery,
            "drift": naive[-1] - naive[0],
            "falls": Numbers(before - after for before, after in pairwise(lottery)),
            "wrong_at_10": 1 - lottery[0],
            "wrong_at_90": lottery[-1],
        },
        rows=shares,
        points=result.points,
        lines={
            policy: list(zip(result.points, values, strict=True))
            for policy, values in shares.items()
        },
        data=result.data,
    )
