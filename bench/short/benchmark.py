"""``python -m bench short``: everyday queries of 0.1 to 1 s, where a fixed cost shows.

Queries over 1,000 to 100,000 rows in Parquet files, most of them with Python functions as people
write them, some with none. The contestants are sessions of one application, which take turns: one
is plain; in one a query is ``eddyline.adapt(spark.sql(text)).collect()``; one is enabled with the
defaults. Each run makes the query from its text and collects it, and its rows are compared.

``enable`` has another setting at each run, which makes each plan a new one, and rewrites it.
``again`` is an enabled session to which an equal plan is known after the turns that do not count,
but for the sixteenth time.

``first`` is the very first run of a query by each contestant. What Spark compiles for a query it
compiles once for all sessions, so whoever is first in the first turn pays for it: that is another
contestant for each query. Ratios are formed turn by turn.

The sessions that are enabled have an effect on the one that adapts: as long as there is any in a
process, ``adapt`` asks the optimizer for a plan of its own, also where it then changes nothing.

``--parts``, the default, runs each query some more times after all others have been timed, and
shows where the milliseconds go; :mod:`bench.short.parts` says what is counted as what.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from pyspark.sql import Row, SparkSession
from rich.table import Table

import eddyline
from bench import report
from bench.against_plain import CORES, PLAIN, start
from bench.short.parts import (
    Ledger,
    Part,
    Parts,
    as_adapted,
    as_rewritten,
    as_spark,
    borders_timed,
    make_plans_new,
    medians,
)
from bench.short.queries import QUERIES, WITH, WITHOUT, Short
from bench.short.records import ROWS, Rows, make_views, write
from bench.short.registered import register_all
from bench.turns import Spread, Turns, in_turns, take_turns

ADAPT: Final = "adapt"
ENABLE: Final = "enable"
AGAIN: Final = "again"
OURS: Final = (ADAPT, ENABLE, AGAIN)
"""The contestants beside plain Spark."""

UNCOUNTED: Final = 2
"""Turns before those that count: the JVM compiles what it runs."""

PART_RUNS: Final = 5
"""Runs of each contestant whose parts are measured, after two that do not count."""

MEAN: Final = 0.80
WORST: Final = 1.05
"""Targets of queries with functions, over plain Spark: the geometric mean, and the worst query."""

MEAN_AGAIN: Final = 0.70
WORST_AGAIN: Final = 1.03
"""The same of queries whose plans are known."""

MEAN_WITHOUT: Final = 1.00
MORE_WITHOUT: Final = 1.0
"""Targets of queries without: the geometric mean, and the most milliseconds that one may lose."""

FIGURES: Final = 9
"""Digits that count in a sum of doubles, which depends on the order of its terms."""

WARMING: Final = "SELECT count(*) FROM products WHERE is_email(title)"
"""Run once in each session, so that the first query finds processes of Python."""

TITLE: Final = "Short queries: Eddyline's time over plain Spark's, median (least-greatest)"

Sessions: TypeAlias = Mapping[str, SparkSession]
"""A session for each contestant."""


def bag(rows: Sequence[Row]) -> list[str]:
    """Return rows as texts, in an order that does not depend on how they were computed."""
    return sorted(
        repr([f"{v:.{FIGURES}g}" if isinstance(v, float) else v for v in row]) for row in rows
    )


def require_same_bag(expected: Any, answer: Any) -> None:  # noqa: ANN401 - rows of any query
    """Raise AssertionError unless two results are the same rows, in whatever order."""
    one, other = bag(expected), bag(answer)
    if one != other:
        missing, more = sorted({*one} - {*other}), sorted({*other} - {*one})
        raise AssertionError(
            f"{len(one)} rows became {len(other)}; missing {missing[:3]}, unexpected {more[:3]}"
        )


def in_sessions(first: SparkSession, prepare: Callable[[SparkSession], object]) -> Sessions:
    """Return a session for each contestant, each prepared with tables and functions."""
    made = {PLAIN: first, **{name: first.newSession() for name in OURS}}
    for spark in made.values():
        prepare(spark)
    for name in (ENABLE, AGAIN):
        eddyline.enable(made[name])
    return made


def sessions(first: SparkSession, folder: Path) -> Sessions:
    """Return a session for each contestant, which knows the tables in a folder."""

    def prepare(spark: SparkSession) -> None:
        make_views(spark, folder)
        register_all(spark)

    return in_sessions(first, prepare)


def plain_rows(spark: SparkSession, text: str) -> list[Row]:
    """Run a query in a session as it is."""
    return spark.sql(text).collect()


def adapted_rows(spark: SparkSession, text: str) -> list[Row]:
    """Run a query as ``adapt`` returns it."""
    return eddyline.adapt(spark.sql(text)).collect()


def contestants(by_name: Sessions, query: Short) -> dict[str, Callable[[], list[Row]]]:
    """Return how each contestant runs a query."""
    runs = {PLAIN: plain_rows, ADAPT: adapted_rows, ENABLE: plain_rows, AGAIN: plain_rows}
    return {name: partial(run, by_name[name], query.text) for name, run in runs.items()}


@dataclass(frozen=True, slots=True)
class Measured:
    """A query, and the seconds of all its turns, the uncounted ones first."""

    query: Short
    rows: int
    seconds: Mapping[str, Sequence[float]]
    uncounted: int = UNCOUNTED

    @property
    def counted(self) -> Turns:
        """The turns that count."""
        return Turns({name: taken[self.uncounted :] for name, taken in self.seconds.items()})

    def over(self, contestant: str) -> Spread:
        """Return a contestant's time over plain Spark's, turn by turn."""
        return self.counted.ratio(contestant, PLAIN)

    def more(self, contestant: str) -> Spread:
        """Return how many milliseconds longer a contestant takes than plain Spark."""
        counted = self.counted.seconds
        pairs = zip(counted[contestant], counted[PLAIN], strict=True)
        return Spread.of(1000 * (own - plain) for own, plain in pairs)

    def first(self, contestant: str) -> float:
        """Return the milliseconds of the very first run."""
        return 1000 * self.seconds[contestant][0]

    def first_over(self, contestant: str) -> float:
        """Return the very first run's time over that of plain Spark."""
        return self.first(contestant) / self.first(PLAIN)

    def row(self) -> list[str]:
        """Return the table's row."""
        return [
            self.query.name,
            f"{self.rows:,}",
            f"{1000 * self.counted.median(PLAIN):.0f}",
            *(str(self.over(name)) for name in OURS),
            *(f"{self.more(name).median:+.0f}" for name in OURS),
            f"{self.first(PLAIN):.0f}",
            *(f"{self.first_over(name):.2f}" for name in OURS),
        ]

    def to_dict(self) -> dict[str, object]:
        """Return everything measured, for JSON."""
        return {
            "query": self.query.name,
            "group": self.query.group,
            "rows": self.rows,
            "seconds": dict(self.counted.seconds),
            "first": {name: self.first(name) / 1000 for name in self.seconds},
            "over": {name: dataclasses.asdict(self.over(name)) for name in OURS},
            "milliseconds_more": {name: dataclasses.asdict(self.more(name)) for name in OURS},
        }


def of_group(measured: Sequence[Measured], group: str) -> list[Measured]:
    """Return what was measured of a group."""
    return [result for result in measured if result.query.group == group]


def groups_of(measured: Sequence[Measured]) -> list[str]:
    """Return the groups of which something was measured, in the order of their first queries."""
    return list(dict.fromkeys(result.query.group for result in measured))


def mean(measured: Sequence[Measured], contestant: str) -> float:
    """Return the geometric mean of the median ratios to plain Spark."""
    return statistics.geometric_mean(result.over(contestant).median for result in measured)


def worst(measured: Sequence[Measured], contestant: str) -> Measured:
    """Return the query with the greatest median ratio."""
    return max(measured, key=lambda result: result.over(contestant).median)


def table(measured: Sequence[Measured], title: str = TITLE) -> Table:
    """Return the table that a person reads."""
    shown = report.table(
        title,
        (
            *("query", "rows", "plain, ms", *OURS, *(f"{name} +ms" for name in OURS)),
            *("first, ms", *(f"first {name}" for name in OURS)),
        ),
        (result.row() for result in measured),
        caption="+ms: milliseconds more than plain Spark; first: the very first run;"
        " means are geometric",
    )
    for column in shown.columns:
        column.no_wrap = column.header in OURS or column.no_wrap
    for group in groups_of(measured):
        results = of_group(measured, group)
        shown.add_section()
        firsts = (
            statistics.geometric_mean(result.first_over(name) for result in results)
            for name in OURS
        )
        shown.add_row(
            f"mean, {group}",
            *("", "", *(f"{mean(results, name):.2f}" for name in OURS)),
            *(*("",) * len(OURS), "", *(f"{first:.2f}" for first in firsts)),
        )
        slowest = [worst(results, name).over(name).median for name in OURS]
        slowest_first = [max(result.first_over(name) for result in results) for name in OURS]
        most = [max(result.more(name).median for result in results) for name in OURS]
        shown.add_row(
            f"worst, {group}",
            *("", "", *(f"{ratio:.2f}" for ratio in slowest)),
            *(f"{more:+.0f}" for more in most),
            *("", *(f"{ratio:.2f}" for ratio in slowest_first)),
        )
    return shown


def verdicts(measured: Sequence[Measured]) -> list[str]:
    """Return what became of each target, in words; those without functions are for ``enable``."""
    lines = []
    if results := of_group(measured, WITH):
        for name, of_mean, of_worst in ((ENABLE, MEAN, WORST), (AGAIN, MEAN_AGAIN, WORST_AGAIN)):
            slowest = worst(results, name)
            ratio = slowest.over(name).median
            lines += [
                f"{WITH}, {name}: geometric mean {judged(mean(results, name), of_mean)}",
                f"{WITH}, {name}: worst {judged(ratio, of_worst)} ({slowest.query.name})",
            ]
    if results := of_group(measured, WITHOUT):
        slowest = max(results, key=lambda result: result.more(ENABLE).median)
        more = slowest.more(ENABLE).median
        missed = "" if round(more, 1) <= MORE_WITHOUT else ", missed"
        most = f"at most {more:+.1f} ms, target {MORE_WITHOUT:+.1f} ms{missed}"
        lines += [
            f"{WITHOUT}: geometric mean {judged(mean(results, ENABLE), MEAN_WITHOUT)}",
            f"{WITHOUT}: {most} ({slowest.query.name})",
        ]
    return lines


def judged(measured: float, at_most: float) -> str:
    """Return what was measured beside its target, in words."""
    missed = "" if round(measured, 2) <= at_most else ", missed"
    return f"{measured:.2f}, target {at_most:.2f}{missed}"


PartsOf: TypeAlias = Mapping[str, Mapping[str, Parts]]
"""Milliseconds of each part, by query and contestant."""

OF_PLAIN: Final = (Part.SPARK, Part.PLAN, Part.RUN)
"""The parts that a run of plain Spark has."""


def parts_table(measured: PartsOf, contestant: str) -> Table:
    """Return the parts of a contestant's runs beside those of plain Spark, as a table."""

    def cells(parts: Mapping[str, Parts]) -> list[str]:
        shown = [f"{parts[PLAIN][part]:.0f}" for part in OF_PLAIN]
        return [*shown, *(f"{parts[contestant][part]:.1f}" for part in Part)]

    shown = report.table(
        f"{contestant}: milliseconds of each part of a run, medians of {PART_RUNS}",
        ("query", *(f"plain: {part}" for part in OF_PLAIN), *Part),
        ([name, *cells(parts)] for name, parts in measured.items()),
    )
    if measured:
        means = {
            who: {
                part: statistics.mean(parts[who][part] for parts in measured.values())
                for part in Part
            }
            for who in (PLAIN, contestant)
        }
        shown.add_section()
        shown.add_row("mean", *cells(means))
    return shown


def parts_of(
    by_name: Sessions, query: Short, progress: Callable[[], None]
) -> dict[str, dict[Part, float]]:
    """Measure the parts of a query's runs by each contestant, in turns."""
    ledger = Ledger()
    runs = {PLAIN: as_spark, ADAPT: as_adapted, ENABLE: as_rewritten, AGAIN: as_spark}
    with borders_timed(ledger):
        taken = in_turns(
            {name: partial(run, by_name[name], query.text, ledger) for name, run in runs.items()},
            PART_RUNS,
            uncounted=2,
            progress=progress,
        )
    return {name: medians(parts) for name, parts in taken.items()}


def measure(
    by_name: Sessions, query: Short, turns: int, number: int, progress: Callable[[], None]
) -> Measured:
    """Measure one query; its ``number`` says who is first in the first turn."""
    runs = contestants(by_name, query)
    names = list(runs)
    begins = number % len(names)
    taken = take_turns(
        {name: runs[name] for name in (*names[begins:], *names[:begins])},
        turns=UNCOUNTED + turns,
        uncounted=0,
        require_same=require_same_bag,
        before={ENABLE: partial(make_plans_new, by_name[ENABLE])},
        progress=progress,
    )
    return Measured(query, len(taken.answer), {name: taken.seconds[name] for name in names})


def summary(measured: Sequence[Measured], turns: int, rows: Rows) -> dict[str, object]:
    """Return what was measured over tables of so many rows, for JSON."""
    return {
        "turns": turns,
        "uncounted": UNCOUNTED,
        "cores": CORES,
        "table_rows": dict(rows),
        "geometric_mean": {
            group: {name: mean(of_group(measured, group), name) for name in OURS}
            for group in groups_of(measured)
        },
        "results": [result.to_dict() for result in measured],
    }


def as_dict(measured: Sequence[Measured], parts: PartsOf, turns: int) -> dict[str, object]:
    """Return everything measured, for JSON."""
    return {
        **summary(measured, turns, ROWS),
        "targets": verdicts(measured),
        "parts": {
            query: {name: dict(of_name) for name, of_name in by_contestant.items()}
            for query, by_contestant in parts.items()
        },
    }


def prepared(folder: Path, rows: Rows = ROWS) -> Sessions:
    """Write the tables, start Spark, and return a session for each contestant, warm."""
    write(folder, rows)
    by_name = sessions(start(CORES), folder)
    for spark in by_name.values():
        spark.sql(WARMING).collect()
    return by_name


def main(arguments: Sequence[str]) -> int:
    """Measure all queries that the command line asks for."""
    parser = report.argument_parser("bench short", __doc__, turns=7)
    parser.add_argument("--only", default="", help="only queries with this in group and name")
    parser.add_argument(
        "--parts",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="measure the parts of the queries' runs as well",
    )
    options = parser.parse_args(arguments)
    chosen = [query for query in QUERIES if options.only in f"{query.group}: {query.name}"]
    if not chosen:
        parser.error(f"no query has {options.only!r} in its name")
    measured: list[Measured] = []
    parts: dict[str, dict[str, dict[Part, float]]] = {}
    runs = options.turns + UNCOUNTED + (options.parts and PART_RUNS + 2)
    with tempfile.TemporaryDirectory(prefix="eddyline-short-") as folder:
        by_name = prepared(Path(folder))
        with report.progress(len(chosen) * len(by_name) * runs) as advance:
            for number, query in enumerate(chosen):
                advance(query.name)
                measured.append(measure(by_name, query, options.turns, number, advance))
                path = report.write(options, "short", as_dict(measured, parts, options.turns))
            for query in chosen if options.parts else ():
                advance(f"parts of {query.name}")
                parts[query.name] = parts_of(by_name, query, advance)
                path = report.write(options, "short", as_dict(measured, parts, options.turns))
        by_name[PLAIN].stop()
    tables = [parts_table(parts, name) for name in OURS] if parts else []
    report.show(table(measured), *tables, *verdicts(measured), f"written: {path}")
    return 0
