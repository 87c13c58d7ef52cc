"""The demo of lookups from its beginning to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from rich.console import Console

import eddyline
from eddyline.app.endings import RunError
from eddyline.app.file_errors import printing
from eddyline.app.interrupts import temporary_folder
from eddyline.app.spark_errors import spark_errors_explained
from eddyline.app.start import running_spark
from eddyline.app.terminal import chatter, results, show, without_blanks_in_a_pipe
from eddyline_demos.lookups.beside_by_hand import LookupWay, Trial, compare, differing, try_out
from eddyline_demos.lookups.lookups_display import competition, contest, introduction, outcome
from eddyline_demos.lookups.questions import WATCHED, register_tables
from eddyline_demos.lookups.running import Rest, running_services
from eddyline_demos.lookups.tables_and_services import Data, create_views, read_data, write_register

WATCHED_TIMES: Final = 10
"""How many times as many flights are watched as asked for by hand, which takes so much longer."""

UNITS: Final = 20
"""Steps of the estimates: each waits for its own lookups, and a person sees no more."""

WARMING: Final = 20
"""Flights with which everything is started before times count."""

REST: Final = Rest(150, 2.0)
"""When the register rests: early enough for a small sample, and long enough to be seen."""


def perform(sample: int, runs: int) -> None:
    """Show everything: a query that is watched, then ``sample`` flights ``runs`` times each way.

    Raises :class:`RunError` if the ways have different rows.
    """
    console, out = chatter(), results()
    data = read_data(WATCHED_TIMES * sample)
    with temporary_folder("eddyline-demo-") as folder:
        with printing():
            show(out, introduction(data.flights.num_rows))
            out.print()
        with running_spark(console) as spark, spark_errors_explained():
            with console.status("Warming up"):
                warm_up(spark, data, folder / "warming")
            create_views(spark, data, folder / "watched")
            _watch(spark, data, folder / "aircraft.db", out)
            create_views(spark, data, folder / "counted", sample)
            with printing():
                show(out, contest(min(sample, data.flights.num_rows)))
                out.print()
            trials = _trials(spark, data, runs, console)
    if differing(trials):
        raise RunError("the rows differ. This is a defect of Eddyline; please report it")
    with printing():
        show(out, outcome(trials))


def warm_up(spark: SparkSession, data: Data, folder: Path) -> None:
    """Join a few flights in each way, uncounted: the first query starts Spark's workers."""
    create_views(spark, data, folder, WARMING)
    for way in LookupWay:
        try_out(spark, data, way)


def _watch(spark: SparkSession, data: Data, register: Path, out: Console) -> None:
    """Show the query while it runs, and then who was asked for the aircraft."""
    write_register(data, register)
    with running_services(data.weather, data.aircraft, REST) as services:
        register_tables(spark, services, register)
        with eddyline.watch(spark.sql(WATCHED), units=UNITS) as watch:
            with printing(), without_blanks_in_a_pipe(out):
                watch.show(console=out)
            asked = watch.lookups()["aircraft"]
        seen = services.seen()[1]
    with printing():
        out.print()
        show(out, competition(asked, seen, REST))
        out.print()


def _trials(spark: SparkSession, data: Data, runs: int, console: Console) -> list[Trial]:
    with console.status("") as status:

        def announce(way: LookupWay) -> None:
            status.update(f"Joining: {way}")

        return list(compare(spark, data, runs, announce))
