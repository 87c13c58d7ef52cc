"""How the claims of Avnur and Hellerstein (2000), Figures 4 to 6, depend on what routing takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.figures.figure import TEXTS, Outcome, Setting
from bench.figures.selections import QUICK_TUPLES, lottery_gain, over_costs, over_selectivities
from eddyline.simulation.simulate import RoutingTime

UNITS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0)
"""Delay units that a decision takes, one for each tuple; the selections take 1 to 9, mostly 5.

Above 0 and up to 1, the time slice of the processor, all are the same.
"""

TUPLES = 10_000

ONLY = ("naive", "lottery")


@dataclass(frozen=True, slots=True)
class Point:
    """What the three claims that differ where routing is free, and two beside them, are about."""

    nearest: float  # naive over the better order, at the worst cost
    gain: float  # lottery over naive, on average over the costs
    way: float  # of naive to the worse order, on average over the selectivities
    lottery_way: float
    drift: float  # of naive to the wrong side, from 10 to 90 %
    wrong_at_10: float  # share of the lottery's tuples
    wrong_at_90: float


ROWS: Mapping[str, Callable[[Point], float]] = {
    "naive over the better order, worst (4)": lambda point: point.nearest,
    "lottery over naive, mean (4)": lambda point: point.gain,
    "naive, way to the worse order (5)": lambda point: point.way,
    "lottery, way to the worse order (5)": lambda point: point.lottery_way,
    "naive, drift to the wrong side (6)": lambda point: point.drift,
    "lottery, wrong way at 10 % (6)": lambda point: point.wrong_at_10,
    "lottery, wrong way at 90 % (6)": lambda point: point.wrong_at_90,
}

LINES = tuple(name for name in ROWS if " way to " in name or "drift" in name)


def measured(setting: Setting, units: float) -> Point:
    """Run both experiments, with the two policies that the paper compares."""
    routing = RoutingTime(units)
    by_cost = over_costs(setting, routing, only=ONLY, tuples=TUPLES)
    by_share = over_selectivities(setting, routing, only=ONLY, tuples=TUPLES)
    naive, lottery = (by_share.first_shares[name] for name in ONLY)
    return Point(
        by_cost.over_better["naive"].most,
        lottery_gain(by_cost).mean,
        by_share.ways_to_worse("naive").mean,
        by_share.ways_to_worse("lottery").mean,
        naive[-1] - naive[0],
        1 - lottery[0],
        lottery[-1],
    )


def routing_time(setting: Setting) -> Outcome:
    """Judge each claim at every time that a decision may take."""
    points = {units: measured(setting, units) for units in UNITS}
    bounds = TEXTS["routing-time"]["bounds"]
    claims: Mapping[str, Callable[[Point], bool]] = {
        "nearly": lambda point: point.nearest <= bounds["nearly"],
        "gains": lambda point: point.gain < 1,
        "half_way": lambda point: bounds["least_way"] <= point.way <= bounds["most_way"],
        "slight": lambda point: 0 < point.drift <= bounds["slightly"],
        "nearer": lambda point: point.wrong_at_90 < point.wrong_at_10,
    }
    holding = {
        name: [units for units, point in points.items() if holds(point)]
        for name, holds in claims.items()
    }
    together = [units for units in UNITS if all(units in units_of for units_of in holding.values())]
    rows = {name: [value(point) for point in points.values()] for name, value in ROWS.items()}
    return Outcome(
        {
            **{name: _listed(units) for name, units in holding.items()},
            **{f"{name}_count": len(units) for name, units in holding.items()},
            "tuples": QUICK_TUPLES if setting.quick else TUPLES,
            "together": _listed(together),
            "together_count": len(together),
            "least_gain": min(point.gain for point in points.values()),
        },
        rows=rows,
        points=UNITS,
        lines={
            name: [(x, 100 * value) for x, value in zip(UNITS, rows[name], strict=True)]
            for name in LINES
        },
        data={"units": UNITS, **rows},
    )


def _listed(units: list[float]) -> str:
    return ", ".join(f"{each:g}" for each in units) or "no"
