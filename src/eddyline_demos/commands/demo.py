"""``eddyline demo``: races plain Spark on real flights, and shows where the time went."""

from __future__ import annotations

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from eddyline.app.endings import ExitCode, RunError
from eddyline.app.file_errors import check_output, file_errors_explained, printing
from eddyline.app.interrupts import temporary_folder
from eddyline.app.invocation import DemoInvocation
from eddyline.app.spark_errors import spark_errors_explained
from eddyline.app.start import running_spark
from eddyline.app.terminal import chatter, results, show
from eddyline_demos.flights import create_views, write_parquet
from eddyline_demos.race import Contestant, Lap, difference, race, warm_up
from eddyline_demos.race_display import disagreement, introduction, outcome
from eddyline_demos.race_query import ask, joined_rows, register_predicates


def run(invocation: DemoInvocation) -> ExitCode:
    """Run the command; raise :class:`RunError` if the two sides have different rows."""
    check_output(invocation.out)
    console, out = chatter(), results()
    with temporary_folder("eddyline-demo-") as folder:
        flights = write_parquet(folder, invocation.sample)
        with printing():
            show(out, introduction(flights))
            out.print()
        with running_spark(console) as spark, spark_errors_explained():
            register_predicates(spark)
            with console.status("Warming up"):
                create_views(spark, folder, january_only=True)
                warm_up(lambda: ask(spark))
            create_views(spark, folder)
            laps = _laps(spark, invocation.runs, console)
            joined = joined_rows(spark)
    if (found := difference(laps)) is not None:
        raise RunError(disagreement(found))
    report = next(lap.report for lap in reversed(laps) if lap.report is not None)
    with file_errors_explained(invocation.out, "written", RunError):
        report.to_html(invocation.out)
    with printing():
        show(out, outcome(laps, joined))
        out.print(f"How it was routed: {invocation.out}", soft_wrap=True)
    return ExitCode.DONE


def _laps(spark: SparkSession, runs: int, console: Console) -> list[Lap]:
    """Run the race behind a progress bar."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} runs"),
        TimeElapsedColumn(),
    )
    # In a pipe all that would be left of the bar is an empty line.
    silent = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=silent) as progress:
        task = progress.add_task("", total=runs * len(Contestant))

        def announce(contestant: Contestant) -> None:
            progress.update(task, description=contestant)

        laps = []
        for lap in race(lambda: ask(spark), runs, announce):
            laps.append(lap)
            progress.advance(task)
    return laps
