"""One frame for benchmarks of whole queries: as plain Spark runs them, and adapted, in turns."""

from __future__ import annotations

import argparse
import dataclasses
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.table import Table

import eddyline
from bench import report
from bench.answers import require_same_rows
from bench.turns import Spread, Turns, take_turns

CORES = 2
"""Cores of the measurement: as many as the data of most benchmarks have partitions."""

PLAIN = "plain"
JOINS = ("auto", "always")
"""The contestants: plain Spark, and Eddyline with each of these ways to treat joins."""

SETTINGS = {
    # The default, said aloud: without ANALYZE TABLE there is nothing to base costs on.
    "spark.sql.cbo.enabled": "false",
    # The JVM's 1 GB would make both sides' times a matter of garbage collection.
    "spark.driver.memory": "4g",
}


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

    def measure(
        self, *, turns: int, joins: Sequence[str], tick: Callable[[], None] = lambda: None
    ) -> Result:
        """Measure the query; raises AssertionError as soon as a run gives other rows.

        Each run makes the DataFrame, adapts it and takes all its rows to the driver
        as an Arrow table; all of that is timed. Rows are compared in between.
        """
        rewritten: dict[str, bool] = {}

        def adapting(how: str) -> pa.Table:
            frame = self.ask()
            changed = adapted(frame, how)
            rewritten[how] = changed is not frame
            return changed.toArrow()

        taken = take_turns(
            {
                PLAIN: lambda: self.ask().toArrow(),
                **{how: partial(adapting, how) for how in joins},
            },
            turns=turns,
            require_same=partial(require_same_rows, order_by=self.order_by),
            progress=tick,
        )
        return Result(self, taken, rewritten)


@dataclass(frozen=True, slots=True)
class Result:
    """One query's turns, and which contestants ran another plan than Spark's."""

    query: Query
    turns: Turns
    rewritten: Mapping[str, bool]

    @property
    def rows(self) -> int:
        """The number of rows that the query gives."""
        return len(self.turns.answer)

    def to_plain(self, joins: str) -> Spread:
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

    def row(self) -> list[str]:
        """Return a row of the table."""
        ratios = [
            f"{'' if changed else '= '}{self.to_plain(joins)}"
            for joins, changed in self.rewritten.items()
        ]
        return [self.query.name, f"{self.rows:,}", f"{self.turns.median(PLAIN):.2f}", *ratios]


@dataclass(frozen=True, slots=True)
class Report:
    """All that a benchmark has measured so far; ``setting`` is what its numbers depend on."""

    setting: Mapping[str, object]
    results: Sequence[Result]
    joins: Sequence[str]

    def geometric_means(self, group: str | None = None) -> dict[str, float]:
        """Return the geometric mean over the queries of the median ratios to plain Spark.

        For each way to treat joins; over the queries of a group if one is named, else over all.
        """
        asked = [each for each in self.results if group in {None, each.query.group}]
        return {
            joins: statistics.geometric_mean(each.to_plain(joins).median for each in asked)
            for joins in self.joins
        }

    @property
    def groups(self) -> list[str]:
        """The kinds of queries, where there are several."""
        found = list(dict.fromkeys(result.query.group for result in self.results))
        return found if len(found) > 1 else []

    def to_dict(self) -> dict[str, object]:
        """Return everything measured, for JSON."""
        return {
            **self.setting,
            "geometric_mean": self.geometric_means(),
            "geometric_mean_of_group": {each: self.geometric_means(each) for each in self.groups},
            "results": [result.to_dict() for result in self.results],
        }

    def table(self, title: str) -> Table:
        """Return the ratios as a table: below 1, Eddyline is faster."""
        shown = report.table(
            f"{title}: Eddyline's time over plain Spark's, median (least-greatest)",
            ("query", "rows", "plain, s", *(f"joins={joins}" for joins in self.joins)),
            (result.row() for result in self.results),
            caption="= where joins were left to Spark and nothing else changed the plan either",
        )
        shown.add_section()
        for group in (*self.groups, None):
            name = "geometric mean" if group is None else f"geometric mean, {group}"
            means = (f"{mean:.2f}" for mean in self.geometric_means(group).values())
            shown.add_row(name, "", "", *means)
        return shown


def run(
    queries: Iterable[Query],
    *,
    name: str,
    title: str,
    count: int,
    options: argparse.Namespace,
    setting: Mapping[str, object],
) -> None:
    """Measure queries, write the JSON file after each, print the table at the end.

    ``queries`` may be a generator that prepares each query when its turn has
    come; ``count`` says how many there are.
    """
    results: list[Result] = []
    measured = Report({"turns": options.turns, **setting}, results, options.joins)
    with report.progress(count * (1 + len(options.joins)) * (options.turns + 1)) as advance:
        for query in queries:
            advance(query.name)
            results.append(query.measure(turns=options.turns, joins=options.joins, tick=advance))
            path = report.write(options, name, measured.to_dict())
    report.show(measured.table(title), f"written: {path}")


def argument_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser of what all these benchmarks take: turns, joins and out."""
    parser = report.argument_parser(f"bench {name}", description)
    parser.add_argument(
        "--joins",
        nargs="+",
        choices=JOINS,
        default=list(JOINS),
        help="ways to treat joins that run against plain Spark (default: all)",
    )
    return parser
