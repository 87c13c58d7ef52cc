"""Avnur and Hellerstein (2000), Figure 4: costs differ, selectivities do not."""

from __future__ import annotations

from statistics import fmean

from bench.figures.figure import Advance, Claim, Experiment, Figure
from bench.figures.sweep import ADAPTIVE_TARGET, contestants, size, sweep
from eddyline.engine.simulation.simulate import SimulatedSelection
from eddyline.reports.axes import Axis
from eddyline.reports.svg import line_chart

COSTS = tuple(float(cost) for cost in range(1, 10))
"""Cost of s1; that of s2 is 5, both pass 50 %."""

NEARLY = 1.05
"""Up to so many times the better order counts as nearly matching it."""


def selections(cost: float) -> tuple[SimulatedSelection, ...]:
    """Return s1 and s2."""
    return (
        SimulatedSelection(cost=cost, selectivity=0.5, name="s1"),
        SimulatedSelection(cost=5.0, selectivity=0.5, name="s2"),
    )


def draw(quick: bool, advance: Advance) -> Figure:  # noqa: FBT001 - as Experiment has it
    """Draw the figure."""
    result = sweep(COSTS, selections, size(quick=quick), advance)
    over = {policy: result.over_better(policy) for policy in result.times}
    gain = [
        lottery / naive
        for lottery, naive in zip(result.times["lottery"], result.times["naive"], strict=True)
    ]
    title = "Two selections of 50 %: s2 costs 5, s1 costs 1 to 9"
    return Figure(
        title=f"{title} (Avnur and Hellerstein, 2000, Figure 4)",
        svg=line_chart(
            result.time_series(),
            title,
            "cost of s1 (delay units)",
            "time (thousand delay units)",
            x_axis=Axis(low=1, high=9),
        ),
        columns=("% above the better order", *(f"{cost:g}" for cost in COSTS)),
        rows=result.rows(
            {
                policy: [f"{100 * (ratio - 1):.1f}" for ratio in ratios]
                for policy, ratios in over.items()
            }
        ),
        claims=(
            Claim(
                "paper",
                "the naive eddy nearly matches the better order at every cost",
                f"at most {max(over['naive']):.3f} times the better order",
                max(over["naive"]) <= NEARLY,
            ),
            Claim(
                "paper",
                "the lottery is slightly better than the naive eddy",
                f"{fmean(gain):.3f} times the naive eddy's time on average",
                fmean(gain) < 1.0,
                "With equal selectivities the tickets say nothing, and a tuple that waits for a "
                "winner without room is the price of what the lottery gains in Figure 5.",
            ),
            Claim(
                "target",
                f"adaptive takes at most {ADAPTIVE_TARGET} times the better order",
                f"at most {max(over['adaptive']):.3f}",
                max(over["adaptive"]) <= ADAPTIVE_TARGET,
            ),
        ),
        data=result.as_data(),
    )


EXPERIMENT = Experiment(lambda quick: len(contestants()) * len(COSTS), draw)  # noqa: ARG005 - as many, only shorter
