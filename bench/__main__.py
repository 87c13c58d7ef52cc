"""``python -m bench``: measure the Python predicates of Spark queries."""

from __future__ import annotations

import argparse
from pathlib import Path

import eddyline
from bench.predicates.benchmark import CORES, run
from bench.predicates.workload import workloads


def main() -> int:
    """Run the benchmark and print which targets are met."""
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
