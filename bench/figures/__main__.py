"""``python -m bench.figures``: draw the papers' figures again, and compare.

Each figure prints its numbers and, for each claim of the paper and each target
of ours, what came out; its chart and its numbers go into a folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bench.figures import (
    cost_of_adaptive_joins,
    cost_of_adaptivity,
    hash_joins,
    join_flow,
    late_flow,
    late_relation,
    toggling_costs,
    tuple_flow,
    varied_cost,
    varied_selectivity,
)
from bench.figures.figure import Experiment

FIGURES: Mapping[str, Experiment] = {
    "varied-cost": varied_cost.EXPERIMENT,
    "varied-selectivity": varied_selectivity.EXPERIMENT,
    "tuple-flow": tuple_flow.EXPERIMENT,
    "toggling-costs": toggling_costs.EXPERIMENT,
    "hash-joins": hash_joins.EXPERIMENT,
    "join-flow": join_flow.EXPERIMENT,
    "late-relation": late_relation.EXPERIMENT,
    "late-flow": late_flow.EXPERIMENT,
    "cost-of-adaptivity": cost_of_adaptivity.EXPERIMENT,
    "cost-of-adaptive-joins": cost_of_adaptive_joins.EXPERIMENT,
}


WIDTH = 100
"""Columns of the output where there is no terminal to say."""


def main() -> int:
    """Draw the figures that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"all by default: {', '.join(FIGURES)}"
    )
    parser.add_argument("--out", type=Path, default=Path("bench/results"), help="where files go")
    parser.add_argument("--quick", action="store_true", help="less data: seconds, rougher numbers")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in FIGURES]
    if unknown:
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    claims = differing = 0
    for name in options.names or FIGURES:
        experiment = FIGURES[name]
        steps = experiment.steps(options.quick)
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        ) as progress:
            task = progress.add_task(name, total=steps)
            figure = experiment.draw(options.quick, lambda: progress.advance(task))  # noqa: B023 - called before the next turn
        figure.show(console)
        figure.write(options.out, name)
        claims += len(figure.claims)
        differing += sum(not claim.holds for claim in figure.claims)
    console.print(f"{claims - differing} of {claims} claims hold; files are in {options.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
