"""One frame for benchmarks of whole queries: as plain Spark runs them, and adapted, in turns."""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import eddyline
from bench.answers import DifferentRowsError, check_same_rows
from bench.measure import Ratio, Turns, take_turns

CORES = 2
"""Cores of the measurement, as in the benchmark of predicates."""

PLAIN = "plain"
JOINS = ("auto", "always")
"""The contestants: plain Spark, and Eddyline with each of these ways to treat joins."""

SETTINGS = {
    # The default, said aloud: without ANALYZE TABLE there is nothing to base costs on.
    "spark.sql.cbo.enabled": "false",
    # The JVM's 1 GB would make both sides' times a matter of garbage collection.
    "spark.driver.memory": "4g",
}

WIDTH = 120
"""Columns of the output where there is no terminal to say."""


def start(cores: int = CORES) -> SparkSession:
    """Return a Spark session for the benchmark, the same for all contestants."""
    return eddyline.session("eddyline-bench", master=f"local[{cores}]", config=SETTINGS)


def adapted(frame: DataFrame, joins: str) -> DataFrame:
    """Return a DataFrame as Eddyline adapts it: ``joins`` is "auto", "always" or "never"."""
    return eddyline.adapt(frame, joins=joins)


@dataclass(frozen=True, slots=True)
class Query:
    """A query to be measured.

    ``ask`` returns it as a fresh DataFrame: one that was collected before would
    find its shuffles done. ``order_by`` names the columns that it sorts by;
    ``note`` is a sentence about it, ``group`` the kind of queries that it belongs to.
    """

    name: str
    ask: Callable[[], DataFrame]
    order_by: tuple[str, ...] = ()
    note: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One query's turns; which contestants ran another plan than Spark's; the rows it gave."""

    query: Query
    turns: Turns
    rewritten: Mapping[str, bool]
    rows: int

    def to_plain(self, joins: str) -> Ratio:
        """Return Eddyline's time over plain Spark's."""
        return self.turns.ratio(joins, PLAIN)

    def to_dict(self) -> dict[str, object]:
        """Return everything measured, for JSON."""
        return {
            "query": self.query.name,
            "note": self.query.note,
            "group": self.query.group,
            "rows": self.rows,
            "seconds": dict(self.turns.seconds),
            "rewritten": dict(self.rewritten),
            "over_plain": {
                joins: dataclasses.asdict(self.to_plain(joins)) for joins in self.rewritten
            },
        }


def measure(
    query: Query,
    *,
    turns: int,
    joins: Sequence[str] = JOINS,
    tick: Callable[[], None] = lambda: None,
) -> Result:
    """Measure a query; raises :class:`DifferentRowsError` as soon as a run gives other rows.

    Each run makes the DataFrame, adapts it and takes all its rows to the driver
    as an Arrow table; all of that is timed. Rows are compared in between.
    """
    latest: dict[str, pa.Table] = {}
    rewritten: dict[str, bool] = {}
    expected: list[pa.Table] = []

    def plain() -> None:
        latest[PLAIN] = query.ask().toArrow()

    def adapting(how: str) -> Callable[[], None]:
        def run() -> None:
            frame = query.ask()
            changed = adapted(frame, how)
            latest[how] = changed.toArrow()
            rewritten[how] = changed is not frame

        return run

    def compare() -> None:
        ((name, rows),) = latest.items()
        latest.clear()
        if not expected:
            expected.append(rows)
        try:
            check_same_rows(expected[0], rows, query.order_by)
        except DifferentRowsError as error:
            raise DifferentRowsError(f"{query.name}, {name}: {error}") from None
        tick()

    contestants = {PLAIN: plain, **{how: adapting(how) for how in joins}}
    taken = take_turns(contestants, turns=turns, progress=compare)
    return Result(query, taken, rewritten, len(expected[0]))


@dataclass(frozen=True, slots=True)
class Report:
    """All that a benchmark has measured so far; ``setting`` is what its numbers depend on."""

    setting: Mapping[str, object]
    results: Sequence[Result]

    def geometric_mean(self, joins: str, group: str | None = None) -> float:
        """Return the geometric mean over the queries of the median ratios to plain Spark.

        Over those of a group if one is named, else over all.
        """
        return statistics.geometric_mean(
            result.to_plain(joins).median
            for result in self.results
            if joins in result.rewritten and group in {None, result.query.group}
        )

    @property
    def groups(self) -> list[str]:
        """The kinds of queries, where there are several."""
        found = list(dict.fromkeys(result.query.group for result in self.results))
        return found if len(found) > 1 else []

    @property
    def joins(self) -> list[str]:
        """The contestants beside plain Spark."""
        return list(self.results[0].rewritten)

    def to_dict(self) -> dict[str, object]:
        """Return everything measured, for JSON."""
        return {
            "machine": {"python": sys.version.split()[0], "cpu": platform.machine()},
            **self.setting,
            "geometric_mean": {joins: self.geometric_mean(joins) for joins in self.joins},
            "geometric_mean_of_group": {
                group: {joins: self.geometric_mean(joins, group) for joins in self.joins}
                for group in self.groups
            },
            "results": [result.to_dict() for result in self.results],
        }

    def table(self, title: str) -> Table:
        """Return the ratios as a table: below 1, Eddyline is faster."""
        shown = Table(
            title=f"{title}: Eddyline's time over plain Spark's, median (least-greatest)",
            caption="= where joins were left to Spark and nothing else changed the plan either",
        )
        shown.add_column("query", no_wrap=True)
        shown.add_column("rows", justify="right")
        shown.add_column("plain, s", justify="right")
        for joins in self.joins:
            shown.add_column(f"joins={joins}", justify="right", no_wrap=True)
        for result in self.results:
            shown.add_row(
                result.query.name,
                f"{result.rows:,}",
                f"{result.turns.median(PLAIN):.2f}",
                *(
                    f"{'' if result.rewritten[joins] else '= '}{result.to_plain(joins)}"
                    for joins in self.joins
                ),
            )
        shown.add_section()
        for group in (*self.groups, None):
            name = "geometric mean" if group is None else f"geometric mean, {group}"
            means = (f"{self.geometric_mean(joins, group):.2f}" for joins in self.joins)
            shown.add_row(name, "", "", *means)
        return shown


def run(
    queries: Iterable[Query],
    *,
    title: str,
    count: int,
    options: argparse.Namespace,
    setting: Mapping[str, object],
    path: Path,
) -> Report:
    """Measure queries, write the JSON file after each, print the table at the end.

    ``queries`` may be a generator that prepares each query when its turn has
    come; ``count`` says how many there are.
    """
    results: list[Result] = []
    report = Report({"turns": options.turns, **setting}, results)
    path.parent.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        task = progress.add_task("", total=count * (1 + len(options.joins)) * (options.turns + 1))
        for number, query in enumerate(queries, 1):
            progress.update(task, description=query.name)
            results.append(
                measure(
                    query,
                    turns=options.turns,
                    joins=options.joins,
                    tick=lambda: progress.advance(task),
                )
            )
            path.write_text(json.dumps(report.to_dict(), indent=1))
            if not console.is_terminal:  # where a bar would show only at the end
                console.print(f"{number} of {count}: {query.name}")
    Console(width=None if sys.stdout.isatty() else WIDTH).print(report.table(title))
    print(f"written: {path}")
    return report


def argument_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser of what all these benchmarks take: turns, joins, only and out."""
    parser = argparse.ArgumentParser(prog=f"python -m bench {name}", description=description)
    parser.add_argument("--turns", type=int, default=5, help="counted turns (default: 5)")
    parser.add_argument(
        "--joins",
        nargs="+",
        choices=JOINS,
        default=list(JOINS),
        help="ways to treat joins that run against plain Spark (default: all)",
    )
    parser.add_argument("--out", type=Path, default=Path("bench/results"), help="for the JSON file")
    return parser
