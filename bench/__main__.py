"""``python -m bench``: measure the Python predicates of Spark queries.

``python -m bench tpch``, ``adversarial``, ``flights``, ``orders`` and ``engine`` measure joins
instead, ``growth`` how time grows with terms and relations, ``waiting`` predicates that wait
for an answer; each has a ``--help`` of its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import bench.adversarial.benchmark
import bench.engine_joins.benchmark
import bench.flights
import bench.growth.benchmark
import bench.tpch.benchmark
import bench.waiting_predicates
import bench.written_orders
import eddyline
from bench.predicates.benchmark import CORES, run
from bench.predicates.workload import workloads

OTHERS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "tpch": bench.tpch.benchmark.main,
    "adversarial": bench.adversarial.benchmark.main,
    "flights": bench.flights.main,
    "orders": bench.written_orders.main,
    "engine": bench.engine_joins.benchmark.main,
    "growth": bench.growth.benchmark.main,
    "waiting": bench.waiting_predicates.main,
}


def main() -> int:
    """Run the benchmark that the first word names, else that of predicates."""
    if sys.argv[1:] and sys.argv[1] in OTHERS:
        return OTHERS[sys.argv[1]](sys.argv[2:])
    return measure_predicates()


def measure_predicates() -> int:
    """Run the benchmark of predicates and print which targets are met."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--turns", type=int, default=5, help="counted turns (default: 5)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=1.0,
        help="seconds that the best order spends in calls on each core (default: 1.0)",
    )
    parser.add_argument("--only", help="only workloads whose name contains this")
    parser.add_argument("--out", type=Path, default=Path("bench/results"), help="for the JSON file")
    options = parser.parse_args()
    chosen = [
        workload
        for workload in workloads(options.seconds)
        if options.only is None or options.only in workload.name
    ]
    if not chosen:
        parser.error(f"no workload has {options.only!r} in its name")
    spark = eddyline.session("eddyline-bench", master=f"local[{CORES}]")
    results = run(spark, chosen, options.turns, options.out)
    spark.stop()
    judged = [result for result in results if result.has_target]
    missed = sum(result.missed() is not None for result in judged)
    print(f"targets missed: {missed} of {len(judged)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
