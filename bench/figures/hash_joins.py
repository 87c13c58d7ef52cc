"""Avnur and Hellerstein (2000), Figure 8: two hash joins, of which one differs in selectivity."""

from __future__ import annotations

from bench.figures.figure import Advance, Claim, Experiment, Figure
from bench.figures.join_runs import ORDERS, contestants, hash_joins, runs
from bench.figures.sweep import ADAPTIVE_TARGET
from eddyline.reports.axes import Axis
from eddyline.reports.svg import Series, line_chart

SELECTIVITIES = (0.2, 0.6, 1.0, 1.4, 1.8)
"""Matches of an S tuple in T; the paper has the first and the last. In R it has 1."""

NEARLY = 1.10
"""Up to so many times the better order is nearly optimal."""


def draw(quick: bool, advance: Advance) -> Figure:  # noqa: FBT001 - as Experiment has it
    """Draw the figure."""
    results = {st: runs(hash_joins(st), quick, advance) for st in SELECTIVITIES}
    over = {
        name: [result.over_better(name) for result in results.values()] for name in contestants()
    }
    ends = (results[SELECTIVITIES[0]], results[SELECTIVITIES[-1]])
    worse = [max(end.over_better(order) for order in ORDERS) for end in ends]
    naive, lottery = ([end.over_better(name) for end in ends] for name in ("naive", "lottery"))
    title = "Two hash joins: an S tuple matches 1 row of R and 0.2 to 1.8 of T"
    return Figure(
        title=f"{title} (Avnur and Hellerstein, 2000, Figure 8)",
        svg=line_chart(
            [
                Series(
                    name,
                    [(100 * st, result.runs[name].seconds) for st, result in results.items()],
                    dashed=name in ORDERS,
                )
                for name in contestants()
            ],
            title,
            "selectivity of ST with respect to S",
            "time (virtual seconds)",
            x_axis=Axis(low=20, high=180, unit=" %"),
        ),
        columns=("% above the better order", *(f"{st:.0%}" for st in SELECTIVITIES)),
        rows=tuple(
            (name, *(f"{100 * (ratio - 1):.1f}" for ratio in ratios))
            for name, ratios in over.items()
        ),
        claims=(
            Claim(
                "paper",
                "the lottery performs nearly optimally with ST at 20 % and at 180 %",
                f"{lottery[0]:.3f} and {lottery[1]:.3f} times the better order",
                max(lottery) <= NEARLY,
            ),
            Claim(
                "paper",
                "the naive eddy is between the better and the worse order (said of Figure 7)",
                f"{naive[0]:.2f} and {naive[1]:.2f} times the better order, the worse one "
                f"{worse[0]:.2f} and {worse[1]:.2f}",
                all(1.0 < own < bad for own, bad in zip(naive, worse, strict=True)),
            ),
            Claim(
                "target",
                f"adaptive takes at most {ADAPTIVE_TARGET} times the better order",
                f"at most {max(over['adaptive']):.3f}",
                max(over["adaptive"]) <= ADAPTIVE_TARGET,
            ),
        ),
        data={
            "selectivities": SELECTIVITIES,
            "seconds": {
                name: [result.runs[name].seconds for result in results.values()]
                for name in contestants()
            },
        },
    )


EXPERIMENT = Experiment(lambda quick: len(SELECTIVITIES), draw)  # noqa: ARG005 - as many, only shorter
