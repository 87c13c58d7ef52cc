"""Avnur and Hellerstein (2000), Figure 5: selectivities differ, costs do not."""

from __future__ import annotations

from statistics import fmean

from bench.figures.figure import Advance, Claim, Experiment, Figure
from bench.figures.sweep import ADAPTIVE_TARGET, Sweep, contestants, size, sweep
from eddyline.engine.simulation.simulate import SimulatedSelection
from eddyline.reports.axes import Axis
from eddyline.reports.svg import line_chart

SELECTIVITIES = tuple(tenth / 10 for tenth in range(1, 10))
"""Share of the tuples that s1 lets pass; s2 lets pass 50 %, both cost 5."""

HALF_WAY = (0.4, 0.6)
"""Between these parts of the way from the better to the worse order is about half-way."""

CLOSE = 1.10
"""Up to so many times the better order is close to it."""

_sweeps: dict[int, Sweep] = {}  # by number of tuples: Figure 6 shows the same runs


def selections(selectivity: float) -> tuple[SimulatedSelection, ...]:
    """Return s1 and s2."""
    return (
        SimulatedSelection(cost=5.0, selectivity=selectivity, name="s1"),
        SimulatedSelection(cost=5.0, selectivity=0.5, name="s2"),
    )


def runs(quick: bool, advance: Advance) -> Sweep:  # noqa: FBT001 - as Experiment has it
    """Return the runs of the figure; the second time without running them again."""
    tuples = size(quick=quick)
    if tuples not in _sweeps:
        _sweeps[tuples] = sweep(SELECTIVITIES, selections, tuples, advance)
    return _sweeps[tuples]


def draw(quick: bool, advance: Advance) -> Figure:  # noqa: FBT001 - as Experiment has it
    """Draw the figure."""
    result = runs(quick, advance)
    over = {policy: result.over_better(policy) for policy in result.times}
    unequal = [place for place, point in enumerate(result.points) if point != 0.5]  # noqa: PLR2004 - s2's
    way = [result.way_to_worse("naive", place) for place in unequal]
    lottery_way = [result.way_to_worse("lottery", place) for place in unequal]
    title = "Two selections of cost 5: s2 passes 50 %, s1 passes 10 to 90 %"
    return Figure(
        title=f"{title} (Avnur and Hellerstein, 2000, Figure 5)",
        svg=line_chart(
            result.time_series(),
            title,
            "selectivity of s1",
            "time (thousand delay units)",
            x_axis=Axis(low=0.1, high=0.9),
        ),
        columns=("% above the better order", *(f"{point:.0%}" for point in SELECTIVITIES)),
        rows=result.rows(
            {
                policy: [f"{100 * (ratio - 1):.1f}" for ratio in ratios]
                for policy, ratios in over.items()
            }
        ),
        claims=(
            Claim(
                "paper",
                "the naive eddy is about half-way between the better and the worse order",
                f"{fmean(way):.0%} of the way on average ({min(way):.0%} to {max(way):.0%})",
                HALF_WAY[0] <= fmean(way) <= HALF_WAY[1],
                "Here routing takes no processor time, so both selections always have work and "
                "their speeds alone divide the tuples; see Figure 6.",
            ),
            Claim(
                "paper",
                "the lottery does much better than the naive eddy",
                f"at most {max(over['lottery']):.3f} times the better order against "
                f"{max(over['naive']):.3f}; {fmean(lottery_way):.0%} of the way on average",
                fmean(lottery_way) < fmean(way),
            ),
            Claim(
                "target",
                f"the lottery takes at most {CLOSE} times the better order",
                f"at most {max(over['lottery']):.3f}",
                max(over["lottery"]) <= CLOSE,
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


EXPERIMENT = Experiment(lambda quick: len(contestants()) * len(SELECTIVITIES), draw)  # noqa: ARG005 - as many, only shorter
