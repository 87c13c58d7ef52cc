"""Avnur and Hellerstein (2000), Figure 6: which way the tuples of Figure 5 went."""

from __future__ import annotations

from itertools import pairwise

from bench.figures import varied_selectivity
from bench.figures.figure import Advance, Claim, Experiment, Figure
from bench.figures.sweep import ORDERS
from bench.figures.varied_selectivity import SELECTIVITIES, runs
from eddyline.reports.axes import Axis
from eddyline.reports.svg import Series, line_chart

SLIGHTLY = 0.15
"""Up to so much more of the tuples is a slight drift."""

ABOUT = 0.1
"""Up to so much off a share counts as about that share."""


def draw(quick: bool, advance: Advance) -> Figure:  # noqa: FBT001 - as Experiment has it
    """Draw the figure."""
    result = runs(quick, advance)
    shares = {
        policy: values for policy, values in result.first_shares.items() if policy not in ORDERS
    }
    naive, lottery = shares["naive"], shares["lottery"]
    middle = lottery[SELECTIVITIES.index(0.5)]
    title = "Share of tuples that met s1 first, in the runs with varied selectivity"
    return Figure(
        title=f"{title} (Avnur and Hellerstein, 2000, Figure 6)",
        svg=line_chart(
            [
                Series(
                    policy,
                    [(x, 100 * share) for x, share in zip(result.points, values, strict=True)],
                )
                for policy, values in shares.items()
            ],
            title,
            "selectivity of s1",
            "tuples that met s1 first",
            x_axis=Axis(low=0.1, high=0.9),
            y_axis=Axis(low=0, high=100, unit=" %"),
        ),
        columns=("% that met s1 first", *(f"{point:.0%}" for point in SELECTIVITIES)),
        rows=result.rows(
            {
                policy: [f"{100 * share:.1f}" for share in values]
                for policy, values in shares.items()
            }
        ),
        claims=(
            Claim(
                "paper",
                "the naive eddy hardly heeds selectivity and drifts slightly the wrong way",
                f"from {naive[0]:.0%} with s1 at 10 % to {naive[-1]:.0%} at 90 %",
                0.0 < naive[-1] - naive[0] <= SLIGHTLY,
                "The wrong way, and far. With both selections always at work the shares x and y "
                "follow from x + y/2 = y + x * selectivity: 36 % and 83 %.",
            ),
            Claim(
                "paper",
                "with the lottery the fewer tuples meet s1 first the more of them it lets pass",
                f"from {lottery[0]:.0%} to {lottery[-1]:.0%}",
                all(more > fewer for more, fewer in pairwise(lottery)),
            ),
            Claim(
                "paper",
                "and about half of them where the selectivities are equal",
                f"{middle:.0%}",
                abs(middle - 0.5) <= ABOUT,
            ),
            Claim(
                "paper",
                "the lottery is nearer to the better order at 90 % than at 10 %",
                f"{lottery[-1]:.0%} the wrong way at 90 %, {1 - lottery[0]:.0%} at 10 %",
                lottery[-1] < 1 - lottery[0],
                "By the tickets alone both would be 10 %.",
            ),
        ),
        data=result.as_data(),
    )


EXPERIMENT = Experiment(varied_selectivity.EXPERIMENT.steps, draw)
