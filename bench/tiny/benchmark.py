"""``python -m bench tiny``: statements over a few rows, in sessions that Eddyline is left on for.

Forty statements that call Python functions over tables of 4 to 50 rows: nothing can be saved,
and what is measured is what Eddyline costs. Three sessions of one application, which differ in
nothing else: one is plain, one is enabled, one enabled with ``joins="always"``. A run is
``spark.sql(text).collect()``.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import Row, SparkSession
from rich.table import Table

import eddyline
from bench import report
from bench.against_plain import AUTO, CORES, JOINS, PLAIN, start
from bench.tiny.tables import Statement, prepare, statements, write_numbers
from bench.turns import Turns, take_turns

TARGETS: Final = {AUTO: 1.05, "always": 1.15}
"""Of the geometric mean of time over plain Spark's."""

UNCOUNTED: Final = 3
"""Turns before those that count: a JVM that has just started compiles what it runs."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A statement and its turns."""

    statement: Statement
    turns: Turns

    def over(self, contestant: str) -> float:
        """Return the median ratio of a contestant's time to plain Spark's."""
        return self.turns.ratio(contestant, PLAIN).median

    def row(self) -> list[str]:
        """Return the table's row."""
        plain = f"{1000 * self.turns.median(PLAIN):.0f}"
        ratios = (str(self.turns.ratio(joins, PLAIN)) for joins in JOINS)
        more = (
            f"{1000 * (self.turns.median(joins) - self.turns.median(PLAIN)):+.0f}"
            for joins in JOINS
        )
        return [f"{self.statement.group}: {self.statement.name}", plain, *ratios, *more]


def means(measured: Iterable[Measured], group: str | None = None) -> dict[str, float]:
    """Return the geometric mean of the median ratios, for each contestant."""
    asked = [each for each in measured if group in {None, each.statement.group}]
    return {joins: statistics.geometric_mean(each.over(joins) for each in asked) for joins in JOINS}


def sorted_rows(spark: SparkSession, text: str) -> list[Row]:
    """Run a statement; return its rows in an order that does not depend on how it ran."""
    return sorted(spark.sql(text).collect(), key=repr)


def sessions(folder: Path) -> Mapping[str, SparkSession]:
    """Return the sessions by contestant."""
    first = start(CORES)
    write_numbers(first, folder)
    found = {PLAIN: first, **{joins: first.newSession() for joins in JOINS}}
    for name, spark in found.items():
        prepare(spark, folder)
        if name != PLAIN:
            eddyline.enable(spark, joins=name)
    return found


def main(arguments: Sequence[str]) -> int:
    """Measure all statements that the command line asks for."""
    parser = report.argument_parser("bench tiny", __doc__, turns=7)
    parser.add_argument("--only", default="", help="only statements with this in group and name")
    options = parser.parse_args(arguments)
    chosen = [each for each in statements() if options.only in f"{each.group}: {each.name}"]
    if not chosen:
        parser.error(f"no statement has {options.only!r} in its name")
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="eddyline-tiny-") as folder:
        by_name = sessions(Path(folder))
        runs = len(chosen) * len(by_name) * (options.turns + UNCOUNTED)
        with report.progress(runs) as advance:
            for each in chosen:
                advance(f"{each.group}: {each.name}")
                turns = take_turns(
                    {
                        name: partial(sorted_rows, spark, each.text)
                        for name, spark in by_name.items()
                    },
                    turns=options.turns,
                    uncounted=UNCOUNTED,
                    progress=advance,
                )
                measured.append(Measured(each, turns))
                path = report.write(options, "tiny", as_dict(measured, options.turns))
        by_name[PLAIN].stop()
    report.show(table(measured), *verdicts(measured), f"written: {path}")
    return 0


def as_dict(measured: Sequence[Measured], turns: int) -> dict[str, object]:
    """Return everything measured, for JSON."""
    return {
        "turns": turns,
        "uncounted": UNCOUNTED,
        "cores": CORES,
        "geometric_mean": means(measured),
        "results": [
            {
                "statement": f"{each.statement.group}: {each.statement.name}",
                "rows": len(each.turns.answer),
                "seconds": dict(each.turns.seconds),
                "over": {joins: each.over(joins) for joins in JOINS},
            }
            for each in measured
        ],
    }


def table(measured: Sequence[Measured]) -> Table:
    """Return the table that a person reads."""
    shown = report.table(
        "Statements over a few rows: Eddyline's time over plain Spark's, median (least-greatest)",
        ("statement", "plain, ms", *JOINS, *(f"{joins}, ms more" for joins in JOINS)),
        (each.row() for each in measured),
    )
    shown.add_section()
    groups = dict.fromkeys(each.statement.group for each in measured)
    for group in (*groups, None):
        name = "geometric mean" if group is None else f"geometric mean, {group}"
        shown.add_row(name, "", *(f"{mean:.2f}" for mean in means(measured, group).values()), "")
    return shown


def verdicts(measured: Sequence[Measured]) -> list[str]:
    """Return what became of each target, in words."""
    return [
        f"{joins}: geometric mean {mean:.2f}, target {TARGETS[joins]:.2f}"
        f"{'' if mean <= TARGETS[joins] else ', missed'}"
        for joins, mean in means(measured).items()
    ]
