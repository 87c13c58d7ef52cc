"""``python -m bench.figures``: draw the papers' figures again, and compare.

Each figure prints its numbers and, for each claim of the paper and each target
of ours, what came out, and how far it spreads over seeds or turns; its chart and
its numbers go into a folder.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
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
from bench.figures.claims import Repeats
from bench.figures.cost_of_adaptive_joins import cost_of_adaptive_joins
from bench.figures.cost_of_adaptivity import cost_of_adaptivity
from bench.figures.cost_of_index_joins import cost_of_index_joins
from bench.figures.figure import Figure, Outcome, Setting, drawn
from bench.figures.index_costs import selective_index, swapping_indexes
from bench.figures.joins import hash_joins, join_flow
from bench.figures.late_relation import late_flow, late_relation, late_stream
from bench.figures.lookups_on_spark import spark_hybrid, spark_index_join
from bench.figures.on_spark import spark_tuple_flow, spark_varied_cost, spark_varied_selectivity
from bench.figures.record import record
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
from bench.figures.toggling import toggling_costs, toggling_selectivities

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
        toggling_selectivities,
        hash_joins,
        join_flow,
        late_relation,
        late_flow,
        late_stream,
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
        spark_varied_cost,
        spark_varied_selectivity,
        spark_tuple_flow,
        spark_index_join,
        spark_hybrid,
    )
}
"""Those about sources that take time can be run in real time, too: see ``--real-time``."""

SPARK = "spark"
ON_SPARK = tuple(name for name in FIGURES if name.startswith(f"{SPARK}-"))
"""Those that run on Spark itself: they have to be asked for."""

SEEDS = 5
"""Seeds with which each figure is run that is not timed: claims are judged by all of them."""

WIDTH = 100
"""Columns of the output where there is no terminal to say."""


def main() -> int:
    """Draw the figures that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        help=f"all by default but those on Spark, which are {SPARK}: {', '.join(FIGURES)}",
    )
    parser.add_argument("--out", type=Path, default=Path("bench/results"), help="where files go")
    parser.add_argument(
        "--quick", action="store_true", help="less data, one seed: seconds, rougher numbers"
    )
    parser.add_argument(
        "--seeds", type=int, metavar="N", help=f"how many a figure is run with ({SEEDS})"
    )
    parser.add_argument(
        "--record", action="store_true", help="into docs/figures.json, for the page of figures"
    )
    parser.add_argument(
        "--real-time",
        type=float,
        metavar="SCALE",
        help="let sources sleep, SCALE seconds for each of theirs (figures of the SteM paper): "
        "0.2 or more, or the eddy's own milliseconds for a row count too much",
    )
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in (*FIGURES, SPARK)]
    if unknown:
        parser.error(f"no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    if options.record and (options.quick or options.real_time):
        parser.error("what is recorded is of the full size, and on the virtual clock")
    one = options.quick or options.real_time is not None
    seeds = options.seeds or (1 if one else SEEDS)
    done: dict[str, tuple[Figure, float]] = {}
    runs = count(1)
    with console.status("runs") as status:
        scale = options.real_time
        setting = Setting(
            options.quick,
            lambda: status.update(f"{next(runs)} runs"),
            VirtualWorld if scale is None else partial(SleepingWorld, scale),
        )
        for name in wanted(options.names):
            if scale is not None:  # nothing is to be compiled while sources sleep
                FIGURES[name](Setting(quick=True))
            # What runs in this process alone is told in the processor's time, free of others'.
            clock = time.perf_counter if name in ON_SPARK else time.process_time
            started = clock()
            figure = measured(name, setting, seeds)
            done[name] = figure, clock() - started
            figure.show(console)
            figure.write(options.out, name)
            if options.record:
                record({name: done[name]}, FIGURES)
    claims = [claim for figure, _ in done.values() for claim in figure.claims]
    holding = sum(claim.holds for claim in claims)
    seconds = sum(taken for _, taken in done.values())
    console.print(
        f"{holding} of {len(claims)} claims hold, after {seconds:,.0f} s; "
        f"files are in {options.out}"
    )
    if less := [name for name, (figure, _) in done.items() if figure.warning]:
        console.print(f"Run without --quick before you believe it of: {', '.join(less)}")
    return 0


def wanted(names: Sequence[str]) -> list[str]:
    """Return the figures that are asked for by some names."""
    if not names:
        return [name for name in FIGURES if name not in ON_SPARK]
    return [each for name in names for each in (ON_SPARK if name == SPARK else (name,))]


def measured(name: str, setting: Setting, seeds: int) -> Figure:
    """Run a figure, and draw it; again with other seeds unless it was timed, turn by turn."""
    outcome = FIGURES[name](setting)
    if outcome.turns or seeds == 1:
        return drawn(name, outcome, quick=setting.quick)
    others = [
        FIGURES[name](dataclasses.replace(setting, seed=seed)).measured for seed in range(1, seeds)
    ]
    repeats = Repeats("seeds", [outcome.measured, *others])
    return drawn(name, outcome, repeats, quick=setting.quick)


if __name__ == "__main__":
    raise SystemExit(main())
