"""``python -m bench beginnings``: what a query waits for before its first row is read.

A filter with two Python predicates, the flights' join of five tables (see :mod:`bench.flights`),
and a projection of a thousand long native formulas below a filter, against plain Spark. Each
contestant runs in a fresh process of its own, the same query again and again: the first time is
what somebody waits who has just started, the median of the last ones, when the JVM has compiled
what it needs often, what a program waits that goes on. Seconds are those of ``adapt`` (the plan is
optimized in it; of plain Spark the column says what optimizing takes), of planning what comes of
it, and of collecting; crossings are the commands that ``adapt`` sends to the JVM.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from py4j.clientserver import JavaClient
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everyone writes it

import bench.flights
from bench import report
from bench.against_plain import PLAIN, adapted, start
from eddyline_demos.flights import create_views, write_parquet

REPOSITORY: Final = Path(__file__).resolve().parents[1]

CASES: Final = ("filter", "flights", "wide")
CONTESTANTS: Final = (PLAIN, "auto", "always")
TIMES: Final = 12
"""How often each process asks."""

WARM: Final = 6
"""The first times that do not count as warm."""

PARTS: Final = ("adapt", "planning", "collect")

ROWS: Final = 20_000


def two_predicates(spark: SparkSession, columns: int) -> DataFrame:
    """Return a filter of two predicates over so many long formulas."""
    third = F.udf(lambda x: x % 3 == 0, "boolean")
    fifth = F.udf(lambda x: x % 5 != 0, "boolean")
    formula = "(id + {0}) * (id - {0}) + length(concat('x', id)) * {0} + (id % 7) / 3.5 AS w{0}"
    rows = spark.range(ROWS).selectExpr("id", *map(formula.format, range(columns)))
    return rows.where(third("id") & fifth("w0"))


class Crossings:
    """Counts the commands that are sent to the JVM, those that give back handles left out."""

    def __init__(self) -> None:
        self.count = 0
        send = JavaClient.send_command

        def counted(client: object, command: str, *more: object, **options: object) -> object:
            self.count += not command.startswith(MEMORY_COMMAND_NAME)
            return send(client, command, *more, **options)

        JavaClient.send_command = counted


def measure(case: str, contestant: str, folder: Path) -> list[dict[str, float]]:
    """Ask one query some times in this process."""
    spark = start()
    ask: Callable[[], DataFrame]
    if case == "flights":
        create_views(spark, folder)
        ask = bench.flights.query(spark).ask
    else:
        columns = 1_000 if case == "wide" else 1

        def ask() -> DataFrame:
            return two_predicates(spark, columns)

    crossings = Crossings()
    measured = []
    for _ in range(TIMES):
        frame = ask()
        before = crossings.count
        times = [time.perf_counter()]
        if contestant == PLAIN:
            frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - no public way to optimize
        else:
            frame = adapted(frame, contestant)
        times.append(time.perf_counter())
        crossed = crossings.count - before
        frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - nor to plan
        times.append(time.perf_counter())
        frame.toArrow()
        times.append(time.perf_counter())
        seconds = [end - begin for begin, end in itertools.pairwise(times)]
        measured.append({**dict(zip(PARTS, seconds, strict=True)), "crossings": crossed})
    spark.stop()
    return measured


def first_second_warm(runs: Sequence[dict[str, float]], part: str) -> tuple[float, ...]:
    """Return the seconds of a part: the first time, the second, and the median of warm ones."""
    seconds = [run[part] for run in runs]
    return seconds[0], seconds[1], statistics.median(seconds[WARM:])


def in_fresh_process(case: str, contestant: str, folder: Path) -> list[dict[str, float]]:
    """Ask one query some times in another process."""
    command = [sys.executable, "-m", "bench", "beginnings", "--one", case, contestant, str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)  # noqa: S603 - this very program
    measured: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return measured


def main(arguments: Sequence[str]) -> int:
    """Measure as the command line asks for."""
    parser = report.argument_parser("bench beginnings", __doc__, turns=None)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        case, contestant, folder = options.one
        print(json.dumps(measure(case, contestant, Path(folder))))
        return 0
    results: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="eddyline-beginnings-") as folder:
        write_parquet(Path(folder))
        with report.progress(len(options.only) * len(CONTESTANTS)) as advance:
            for case in options.only:
                for contestant in CONTESTANTS:
                    name = f"{case}, {contestant}"
                    advance(name)
                    results[name] = in_fresh_process(case, contestant, Path(folder))
                    path = report.write(options, "beginnings", {"rows": ROWS, "results": results})
                    advance()
    rows = [
        [
            name,
            *(f"{seconds:.3f}" for what in PARTS for seconds in first_second_warm(runs, what)),
            f"{runs[-1]['crossings']:.0f}",
        ]
        for name, runs in results.items()
    ]
    columns = [f"{what}, {when}" for what in PARTS for when in ("first", "second", "warm")]
    shown = report.table(
        "Seconds of the first, the second and a later time, in a fresh process",
        ("query", *columns, "crossings"),
        rows,
    )
    report.show(shown, f"written: {path}")
    return 0
