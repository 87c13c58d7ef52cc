"""How the claims of Avnur and Hellerstein (2000), Figures 4 to 6, depend on what routing takes."""

from __future__ import annotations

from bench.figures.claims import Numbers
from bench.figures.figure import Outcome, Setting
from bench.figures.selections import (
    lottery_gain,
    over_costs,
    over_selectivities,
)
from eddyline.simulation.simulate import RoutingTime

UNITS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0)
"""Delay units that a decision takes, one for each tuple; the selections take 1 to 9, mostly 5.

Between 0 and 1, the time slice of the processor, all are the same.
"""

TUPLES = 10_000

ONLY = ("naive", "lottery")


def routing_time(setting: Setting) -> Outcome:
    """Run both experiments at every point, with the two policies that the paper compares."""
    gains, nearest, ways, drifts, falls = [], [], [], [], []
    wrong: list[tuple[float, float]] = []
    for units in UNITS:
        routing = RoutingTime(units)
        by_cost = over_costs(setting, routing, only=ONLY, tuples=TUPLES)
        by_share = over_selectivities(setting, routing, only=ONLY, tuples=TUPLES)
        naive, lottery = (by_share.first_shares[name] for name in ONLY)
        gains.append(lottery_gain(by_cost).mean)
        nearest.append(by_cost.over_better["naive"].most)
        ways.append(by_share.ways_to_worse("naive").mean)
        falls.append(by_share.ways_to_worse("lottery").mean)
        drifts.append(naive[-1] - naive[0])
        wrong.append((1 - lottery[0], lottery[-1]))
    lines = {
        "naive, way to the worse order (Figure 5)": ways,
        "lottery, way to the worse order (Figure 5)": falls,
        "naive, drift to the wrong side (Figure 6)": drifts,
    }
    rows = {
        "naive over the better order, worst (4)": nearest,
        "lottery over naive, mean (4)": gains,
        "naive, way to the worse order (5)": ways,
        "lottery, way to the worse order (5)": falls,
        "naive, drift to the wrong side (6)": drifts,
        "lottery, wrong way at 10 % (6)": [at_10 for at_10, _ in wrong],
        "lottery, wrong way at 90 % (6)": [at_90 for _, at_90 in wrong],
    }
    as_long = UNITS.index(5.0)
    return Outcome(
        {
            "units": UNITS[as_long],
            "way": ways[as_long],
            "drift": drifts[as_long],
            "nearest": nearest[as_long],
            "cheap": Numbers(way for way, units in zip(ways, UNITS, strict=True) if units <= 1),
            "cheap_drift": Numbers(
                drift for drift, units in zip(drifts, UNITS, strict=True) if units <= 1
            ),
            "least_gain": min(gains),
            "at_10": Numbers(
                at_10 for (at_10, _), units in zip(wrong, UNITS, strict=True) if units
            ),
            "at_90": Numbers(
                at_90 for (_, at_90), units in zip(wrong, UNITS, strict=True) if units
            ),
        },
        rows=rows,
        points=UNITS,
        lines={
            name: [(x, 100 * value) for x, value in zip(UNITS, values, strict=True)]
            for name, values in lines.items()
        },
        data={"units": UNITS, **rows},
    )
