"""``python -m bench demo``: the query of ``eddyline demo``, its seconds and its function calls.

The picture on the documentation's first page is drawn from the file that
``python -m bench demo --out docs`` writes (``scripts/draw/first_page.py``).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pyspark
from pyspark import Accumulator
from pyspark.sql import SparkSession

from bench import report
from bench.against_plain import CORES, start
from bench.turns import Spread
from eddyline.reports.wording import count
from eddyline_demos.flights import create_views, write_parquet
from eddyline_demos.race import Contestant, Lap, difference, functions_of, race, seconds_of
from eddyline_demos.race_query import FUNCTIONS, ask, register_predicates

REPOSITORY: Final = Path(__file__).resolve().parents[1]


def calls_of_plain_spark(spark: SparkSession) -> dict[str, int]:
    """Run the query once in plain Spark, with functions that count; return the calls of each."""
    counters = {name: spark.sparkContext.accumulator(0) for name, *_ in FUNCTIONS}
    for name, function, return_type in FUNCTIONS:
        spark.udf.register(name, _counting(function, counters[name]), return_type)
    ask(spark).collect()
    register_predicates(spark)
    return {name: counter.value for name, counter in counters.items()}


def _counting(function: Callable[..., object], counter: Accumulator[int]) -> Callable[..., object]:
    def counted(*arguments: object) -> object:
        counter.add(1)
        return function(*arguments)

    return counted


def commit() -> str:
    """Return the commit that last changed the package, with a "+" where it was changed since.

    Empty where there is no git.
    """

    def git(*words: str) -> str:
        command = ["git", *words, "--", "src/eddyline"]
        return subprocess.check_output(command, cwd=REPOSITORY, text=True).strip()  # noqa: S603 - git alone

    try:
        return git("log", "-1", "--format=%h") + ("+" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def calls_by_turn(laps: Sequence[Lap]) -> dict[str, list[int]]:
    """Return how often Eddyline called each function, turn by turn."""
    calls: dict[str, list[int]] = {name: [] for name, *_ in FUNCTIONS}
    for lap in laps:
        for function in functions_of(lap):
            calls[function.name].append(function.calls)
    return calls


def main(arguments: Sequence[str]) -> int:
    """Measure as the command line asks for."""
    parser = report.argument_parser("bench demo", __doc__)
    options = parser.parse_args(arguments)
    load, *_ = os.getloadavg()  # what else the machine does; both sides bear it alike
    with tempfile.TemporaryDirectory(prefix="eddyline-demo-") as folder:
        flights = write_parquet(Path(folder))
        spark = start()
        create_views(spark, Path(folder))
        plain_calls = calls_of_plain_spark(spark)
        # The first turn finds a JVM that has compiled little.
        with report.progress((1 + options.turns) * len(Contestant)) as advance:
            laps = []
            for lap in race(lambda: ask(spark), 1 + options.turns, lambda _: None):
                laps.append(lap)
                advance()
        spark.stop()
    if (found := difference(laps)) is not None:
        raise AssertionError(f"{len(found.rows)} rows come from {found.contestant} only")
    laps = laps[len(Contestant) :]
    eddy_calls = calls_by_turn(laps)
    document = {
        "commit": commit(),
        "command": f'make bench ARGS="demo --turns {options.turns}"',
        "pyspark": pyspark.__version__,
        "cores": CORES,
        "load_before": round(load, 1),
        "flights": flights,
        "turns": options.turns,
        "seconds": {
            side: [round(seconds, 3) for seconds in seconds_of(laps, side)] for side in Contestant
        },
        "calls": {Contestant.PLAIN: plain_calls, Contestant.EDDYLINE: eddy_calls},
    }
    path = report.write(options, "demo", document)
    both = [seconds_of(laps, side) for side in Contestant]
    ratios = Spread.of(eddy / plain for plain, eddy in zip(*both, strict=True))
    totals = Spread.of(map(sum, zip(*eddy_calls.values(), strict=True)))
    shown = report.table(
        f"The demo's query, {count(flights)} flights, seconds and calls: median (least-greatest)",
        ("", "plain Spark", "Eddyline", "over plain Spark"),
        (
            ("seconds", *(str(Spread.of(seconds)) for seconds in both), str(ratios)),
            (
                "calls",
                count(sum(plain_calls.values())),
                count(round(totals.median)),
                f"{totals.median / sum(plain_calls.values()):.2f}",
            ),
        ),
    )
    report.show(shown, f"written: {path}")
    return 0
