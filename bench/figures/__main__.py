"""``python -m bench.figures``: draw the papers' figures again, and compare.

Each figure prints its numbers and, for each claim of the paper and each target
of ours, what came out; its chart and its numbers go into a folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from pathlib import Path

from rich.console import Console

from bench.access_methods.world import SleepingWorld, VirtualWorld
from bench.figures.access_hybrids import hybrid, hybrid_start, preferred, unpreferred
from bench.figures.access_methods import (
    index_join_probes,
    index_join_results,
    shared_caches,
    spanning_tree,
)
from bench.figures.cost_of_adaptive_joins import cost_of_adaptive_joins
from bench.figures.cost_of_adaptivity import cost_of_adaptivity
from bench.figures.cost_of_index_joins import cost_of_index_joins
from bench.figures.figure import Outcome, Setting, drawn
from bench.figures.index_costs import selective_index, swapping_indexes
from bench.figures.joins import hash_joins, join_flow
from bench.figures.late_relation import late_flow, late_relation
from bench.figures.routing_time import routing_time
from bench.figures.selections import (
    routed_cost,
    routed_flow,
    routed_selectivity,
    tuple_flow,
    varied_cost,
    varied_selectivity,
)
from bench.figures.shared_queries import (
    adaptive_plans_fewer,
    adaptive_plans_greater,
    static_plans_fewer,
    static_plans_greater,
    zombies,
)
from bench.figures.toggling_costs import toggling_costs

FIGURES: Mapping[str, Callable[[Setting], Outcome]] = {
    experiment.__name__.replace("_", "-"): experiment
    for experiment in (
        varied_cost,
        varied_selectivity,
        tuple_flow,
        routed_cost,
        routed_selectivity,
        routed_flow,
        routing_time,
        toggling_costs,
        hash_joins,
        join_flow,
        late_relation,
        late_flow,
        cost_of_adaptivity,
        cost_of_adaptive_joins,
        cost_of_index_joins,
        selective_index,
        swapping_indexes,
        index_join_results,
        index_join_probes,
        shared_caches,
        spanning_tree,
        hybrid_start,
        hybrid,
        preferred,
        unpreferred,
        zombies,
        static_plans_fewer,
        static_plans_greater,
        adaptive_plans_fewer,
        adaptive_plans_greater,
    )
}
"""Those about sources that take time can be run in real time, too: see ``--real-time``."""

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
    parser.add_argument(
        "--real-time",
        type=float,
        metavar="SCALE",
        help="let sources sleep, SCALE seconds for each of theirs (figures of the SteM paper): "
        "0.2 or more, or the eddy's own milliseconds for a row count too much",
    )
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in FIGURES]
    if unknown:
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    claims = differing = 0
    runs = count(1)
    with console.status("runs") as status:
        scale = options.real_time
        setting = Setting(
            options.quick,
            lambda: status.update(f"{next(runs)} runs"),
            VirtualWorld if scale is None else partial(SleepingWorld, scale),
        )
        for name in options.names or FIGURES:
            if scale is not None:  # nothing is to be compiled while sources sleep
                FIGURES[name](Setting(quick=True))
            figure = drawn(name, FIGURES[name](setting))
            figure.show(console)
            figure.write(options.out, name)
            claims += len(figure.claims)
            differing += sum(not claim.holds for claim in figure.claims)
    console.print(f"{claims - differing} of {claims} claims hold; files are in {options.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
