"""One frame for benchmarks of whole queries: plain Spark, other opponents and adapted, in turns."""

from __future__ import annotations

import argparse
import dataclasses
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
BY_HAND = "by hand"
ANALYZED = "analyzed"
"""The opponents: Spark as it comes, the best that a person writes who knows all about the data,
and Spark with its own statistics and Bloom filters."""

AUTO = "auto"
JOINS = (AUTO, "always")
"""The contestants are the opponents, and Eddyline with each of these ways to treat joins."""

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
    ``opponents`` ask for the same rows in other ways, by name; they run as they are.
    """

    name: str
    ask: Callable[[], DataFrame]
    order_by: tuple[str, ...] = ()
    note: str = ""
    group: str = ""
    opponents: Mapping[str, Callable[[], DataFrame]] = field(default_factory=dict)

    def measure(
        self,
        *,
        turns: int,
        joins: Sequence[str],
        uncounted: int = 1,
        tick: Callable[[], None] = lambda: None,
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

        def as_it_is(ask: Callable[[], DataFrame]) -> pa.Table:
            return ask().toArrow()

        taken = take_turns(
            {
                **{
                    name: partial(as_it_is, ask)
                    for name, ask in {PLAIN: self.ask, **self.opponents}.items()
                },
                **{how: partial(adapting, how) for how in joins},
            },
            turns=turns,
            uncounted=uncounted,
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

    @property
    def opponents(self) -> list[str]:
        """Whom the query met: plain Spark first."""
        return [PLAIN, *self.query.opponents]

    def over(self, opponent: str, contestant: str) -> Spread:
        """Return the time of a contestant, such as "auto", over an opponent's."""
        return self.turns.ratio(contestant, opponent)

    def to_dict(self) -> dict[str, object]:
        """Return everything measured, for JSON."""
        return {
            "query": self.query.name,
            "note": self.query.note,
            "group": self.query.group,
            "rows": self.rows,
            "seconds": dict(self.turns.seconds),
            "rewritten": dict(self.rewritten),
            "over": {
                opponent: {
                    joins: dataclasses.asdict(self.over(opponent, joins))
                    for joins in self.rewritten
                }
                for opponent in self.opponents
            },
            "opponents_over_plain": {
                opponent: dataclasses.asdict(self.over(PLAIN, opponent))
                for opponent in self.query.opponents
            },
        }

    def row(self, opponent: str) -> list[str]:
        """Return a row of the table of one opponent."""
        ratios = [
            f"{'' if changed else '= '}{self.over(opponent, joins)}"
            for joins, changed in self.rewritten.items()
        ]
        own = [] if opponent == PLAIN else [str(self.over(PLAIN, opponent))]
        seconds = f"{self.turns.median(opponent):.2f}"
        return [self.query.name, f"{self.rows:,}", seconds, *own, *ratios]


@dataclass(frozen=True, slots=True)
class Target:
    """What Eddyline's time (``joins=auto``) over an opponent's should be at most.

    In the queries of a group, or in all of them; of the medians the geometric mean, or
    the greatest.
    """

    opponent: str
    group: str | None = None
    geometric_mean: float | None = None
    greatest: float | None = None

    def verdict(self, results: Sequence[Result]) -> list[str]:
        """Return lines that say what was measured, and whether it is met.

        None where no query of the group has met the opponent.
        """
        medians = {
            each.query.name: each.over(self.opponent, AUTO).median
            for each in results
            if self.group in {None, each.query.group}
            and self.opponent in each.opponents
            and AUTO in each.rewritten
        }
        if not medians:
            return []
        of = f"{self.group or 'all'} over {self.opponent}"
        lines = []
        if self.geometric_mean is not None:
            mean = statistics.geometric_mean(medians.values())
            lines.append(f"{of}: geometric mean {_judged(mean, self.geometric_mean)}")
        if self.greatest is not None:
            name, worst = max(medians.items(), key=lambda item: item[1])
            lines.append(f"{of}: greatest {_judged(worst, self.greatest)} ({name})")
        return lines


def _judged(measured: float, at_most: float) -> str:
    return f"{measured:.2f}, target {at_most}{'' if measured <= at_most else ', missed'}"


@dataclass(frozen=True, slots=True)
class Report:
    """All that a benchmark has measured so far; ``setting`` is what its numbers depend on."""

    setting: Mapping[str, object]
    results: Sequence[Result]
    joins: Sequence[str]
    targets: Sequence[Target] = ()

    def geometric_means(self, opponent: str, group: str | None = None) -> dict[str, float]:
        """Return the geometric mean over the queries of the median ratios to an opponent.

        For each way to treat joins; over the queries of a group if one is named, else over all
        that have met the opponent, of which there must be one.
        """
        asked = [each for each in self._met(opponent) if group in {None, each.query.group}]
        return {
            joins: statistics.geometric_mean(each.over(opponent, joins).median for each in asked)
            for joins in self.joins
        }

    def _met(self, opponent: str) -> list[Result]:
        return [each for each in self.results if opponent in each.opponents]

    @property
    def opponents(self) -> list[str]:
        """Whom any of the queries met."""
        return list(dict.fromkeys(each for result in self.results for each in result.opponents))

    def groups(self, opponent: str) -> list[str]:
        """Return the kinds of queries that met an opponent, where there are several."""
        found = list(dict.fromkeys(result.query.group for result in self._met(opponent)))
        return found if len(found) > 1 else []

    def verdicts(self) -> list[str]:
        """Return what became of each target, in words."""
        return [line for target in self.targets for line in target.verdict(self.results)]

    def to_dict(self) -> dict[str, object]:
        """Return everything measured, for JSON."""
        return {
            **self.setting,
            "geometric_mean": {
                opponent: {
                    "all": self.geometric_means(opponent),
                    **{
                        each: self.geometric_means(opponent, each) for each in self.groups(opponent)
                    },
                }
                for opponent in self.opponents
            },
            "targets": self.verdicts(),
            "results": [result.to_dict() for result in self.results],
        }

    def table(self, title: str, opponent: str) -> Table:
        """Return the ratios to one opponent as a table: below 1, Eddyline is faster."""
        own = [] if opponent == PLAIN else [f"{opponent} over {PLAIN}"]
        shown = report.table(
            f"{title}: Eddyline's time over {opponent}'s, median (least-greatest)",
            ("query", "rows", f"{opponent}, s", *own, *(f"joins={joins}" for joins in self.joins)),
            (result.row(opponent) for result in self._met(opponent)),
            caption="= where joins were left to Spark and nothing else changed the plan either",
        )
        shown.add_section()
        for group in (*self.groups(opponent), None):
            name = "geometric mean" if group is None else f"geometric mean, {group}"
            means = (f"{mean:.2f}" for mean in self.geometric_means(opponent, group).values())
            shown.add_row(name, "", "", *("" for _ in own), *means)
        return shown


def run(
    queries: Iterable[Query],
    *,
    name: str,
    title: str,
    count: int,
    options: argparse.Namespace,
    setting: Mapping[str, object],
    targets: Sequence[Target] = (),
    opponents: int = 0,
) -> None:
    """Measure queries, write the JSON file after each, print a table an opponent at the end.

    ``queries`` may be a generator that prepares each query when its turn has come; ``count``
    says how many there are, ``opponents`` how many most of them have beside plain Spark.
    """
    results: list[Result] = []
    setting = {"turns": options.turns, "uncounted": options.uncounted, **setting}
    measured = Report(setting, results, options.joins, targets)
    contestants = 1 + opponents + len(options.joins)
    with report.progress(count * contestants * (options.turns + options.uncounted)) as advance:
        for query in queries:
            advance(query.name)
            measuring = query.measure(
                turns=options.turns,
                joins=options.joins,
                uncounted=options.uncounted,
                tick=advance,
            )
            results.append(measuring)
            path = report.write(options, name, measured.to_dict())
    tables = (measured.table(title, opponent) for opponent in measured.opponents)
    report.show(*tables, *measured.verdicts(), f"written: {path}")


def argument_parser(
    name: str, description: str | None, *, joins: Sequence[str] = JOINS
) -> argparse.ArgumentParser:
    """Return a parser of what all these benchmarks take: turns, joins and out."""
    parser = report.argument_parser(f"bench {name}", description)
    parser.add_argument(
        "--joins",
        nargs="+",
        choices=JOINS,
        default=list(joins),
        help="ways to treat joins that run against the opponents (default: %(default)s)",
    )
    parser.add_argument(
        "--uncounted",
        type=int,
        default=1,
        help="turns before those that count, as the JVM compiles what ran often (default: 1)",
    )
    return parser
