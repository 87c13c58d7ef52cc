"""``python -m bench flights``: a join of five real tables with native and Python predicates.

The flights of 2013 with their weather, aircraft, destinations and airlines, against
plain Spark. ``--cores`` runs the same on one core and on two instead, each in a
process of its own that is pinned there with all that it starts, JVM and workers.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from bench import report
from bench.against_plain import CORES, Query, argument_parser, run, start
from eddyline_demos.flights import create_views, write_parquet
from eddyline_demos.race_query import register_predicates

REPOSITORY = Path(__file__).resolve().parents[1]

NEW_YORK = (40.70, -73.98)
"""Degrees north and east. The three airports are near enough to each other for the fuel."""

SQL = f"""
    SELECT airlines.name AS airline, airports.name AS destination,
           count(*) AS flights, avg(dep_delay) AS minutes_late
    FROM flights
    JOIN weather ON flights.origin = weather.origin AND flights.time_hour = weather.time_hour
    JOIN planes ON flights.tailnum = planes.tailnum
    JOIN airports ON flights.dest = airports.faa
    JOIN airlines ON flights.carrier = airlines.carrier
    WHERE weather_risk(visib, wind_speed, wind_gust, pressure, temp, dewp, precip, seats) > 0.2
      AND expected_load(flights.month, flights.day, flights.hour, seats) > 0.75
      AND bought_new(planes.tailnum, flights.carrier, planes.year)
      AND fuel_per_seat({NEW_YORK[0]}D, {NEW_YORK[1]}D, airports.lat, airports.lon,
                        wind_dir, wind_speed, seats, planes.year) > 20
      AND dep_delay IS NOT NULL
      AND planes.engines = 2
      AND airports.alt < 2000
    GROUP BY airlines.name, airports.name
"""  # noqa: S608 - numbers of this file only


def query(spark: SparkSession) -> Query:
    """Return the query for the benchmark's frame; its tables must be there as views."""
    register_predicates(spark)
    note = "Four Python predicates over two or three of five tables, three native ones over one."
    return Query("flights", functools.partial(spark.sql, SQL), note=note)


def measure(options: argparse.Namespace, cores: int) -> None:
    """Measure on some cores of this process's."""
    with tempfile.TemporaryDirectory(prefix="eddyline-flights-") as folder:
        flights = write_parquet(Path(folder), sample=options.sample)
        spark = start(cores)
        create_views(spark, Path(folder))
        run(
            [query(spark)],
            name="flights",
            title=f"{flights:,} flights, cores: {cores}",
            count=1,
            options=options,
            setting={"cores": cores, "flights": flights},
        )
        spark.stop()


def pin(cores: int) -> None:
    """Keep this process, and all that it starts from now on, on its first ``cores`` cores."""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < cores:
        raise ValueError(f"{cores} cores are needed, and there are {len(mine)}")
    os.sched_setaffinity(0, mine[:cores])


def measure_pinned(options: argparse.Namespace, cores: int) -> dict[str, float]:
    """Measure in a fresh process on that many cores; return each contestant's median seconds."""
    with tempfile.TemporaryDirectory(prefix="eddyline-cores-") as folder:
        said = f"-m bench flights --pinned {cores} --turns {options.turns}"
        command = [sys.executable, *said.split(), "--out", folder, "--joins", *options.joins]
        if options.sample is not None:
            command += ["--sample", str(options.sample)]
        subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - this very program
        measured = json.loads((Path(folder) / "flights.json").read_text())
    (result,) = measured["results"]
    return {name: statistics.median(turns) for name, turns in result["seconds"].items()}


def compare_cores(options: argparse.Namespace) -> None:
    """Measure on one core and on two, print and write down how much faster two are."""
    one, two = (measure_pinned(options, cores) for cores in (1, 2))
    shown = report.table(
        "Flights: median seconds on one core and on two",
        ("contestant", "one core", "two cores", "one over two"),
        (
            (name, f"{one[name]:.2f}", f"{two[name]:.2f}", f"{one[name] / two[name]:.2f}")
            for name in one
        ),
    )
    document = {
        "turns": options.turns,
        "one": one,
        "two": two,
        "one_over_two": {name: one[name] / two[name] for name in one},
    }
    path = report.write(options, "flights-cores", document)
    report.show(shown, f"written: {path}")


def main(arguments: Sequence[str]) -> int:
    """Measure as the command line asks for."""
    parser = argument_parser("flights", __doc__)
    parser.add_argument("--sample", type=int, help="that many flights only (default: all)")
    parser.add_argument(
        "--cores", action="store_true", help="compare one core with two, in pinned processes"
    )
    parser.add_argument("--pinned", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if (options.cores or options.pinned) and not hasattr(os, "sched_setaffinity"):
        parser.error("this system cannot pin a process to cores")
    if options.cores:
        compare_cores(options)
        return 0
    if options.pinned:
        try:
            pin(options.pinned)
        except ValueError as error:
            parser.error(str(error))
    measure(options, options.pinned or CORES)
    return 0
