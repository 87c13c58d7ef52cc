"""``python -m bench cheap``: functions that cost next to nothing, against Spark's own calls.

Whole tasks as PySpark's worker runs them, in one process and without the JVM: from the pickled
function to its results. The opponent is Spark's Arrow evaluation of plain functions. Ours are
called for one value, for two values of one node, and by a filter block of two predicates, which
both accept all rows but NULL. Arguments are all distinct but where the case says otherwise, so no
memory can help, and each task is the first of its action.

Figures are CPU time, medians of turns: that of long tasks as times of plain Spark's, and what tasks
of few rows take more than plain Spark's, as there shows what a task costs by itself.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BooleanType
from rich.table import Table

from bench import report
from bench.cheap.cases import Case, cases
from bench.cheap.workers import OPPONENTS, Contestant, Run, contestants, first_task, timed
from bench.turns import Spread, in_turns

LONG: Final = 50_000
SHORT: Final = 1_000
"""Rows of a task."""

OURS: Final = tuple(OPPONENTS)


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of CPU time for tasks of some rows, by contestant, turn by turn."""

    case: Case
    rows: int
    seconds: Mapping[Contestant, Sequence[float]]

    def per_row(self, contestant: Contestant) -> float:
        """Return the median of nanoseconds a row."""
        return statistics.median(self.seconds[contestant]) / self.rows * 1e9

    def more(self, contestant: Contestant) -> Spread:
        """Return how many microseconds a task takes more than plain Spark's, turn by turn."""
        both = zip(self.seconds[contestant], self.seconds[OPPONENTS[contestant]], strict=True)
        return Spread.of((own - plain) * 1e6 for own, plain in both)

    def over(self, contestant: Contestant) -> Spread:
        """Return the time of a contestant over plain Spark's, turn by turn."""
        opponent = OPPONENTS[contestant]
        both = zip(self.seconds[contestant], self.seconds[opponent], strict=True)
        return Spread.of(own / plain for own, plain in both)


def measure(case: Case, rows: int, turns: int) -> Measured:
    """Return what tasks of so many rows take; AssertionError where results differ."""
    batches = case.batches(rows)
    runs = contestants(case)
    require_same(case, runs, batches)
    # The benchmark's own objects are none of a worker's: to look through them again and again made
    # lists and tuples take ten times as long.
    gc.collect()
    gc.freeze()
    try:
        taken = in_turns({name: partial(timed, run, batches) for name, run in runs.items()}, turns)
    finally:
        gc.unfreeze()
    return Measured(
        case,
        rows,
        {Contestant(name): seconds for name, seconds in taken.items()},
    )


def require_same(
    case: Case, runs: Mapping[Contestant, Run], batches: Sequence[pa.RecordBatch]
) -> None:
    """Raise AssertionError where somebody gives other results than plain Spark."""
    of = {name: pa.Table.from_batches(first_task(run, batches)) for name, run in runs.items()}
    for ours, plain in OPPONENTS.items():
        expected = of[plain]
        if ours is Contestant.FILTER:
            kept = expected.column(0)
            kept = kept if isinstance(case.result, BooleanType) else kept.is_valid()
            same = pc.struct_field(of[ours].column(0), 0).equals(
                pc.fill_null(kept, fill_value=False)
            )
        else:
            same = of[ours].equals(expected)
        if not same:
            raise AssertionError(f"{case.name}, {ours}: other results than plain Spark's")


def main(arguments: Sequence[str]) -> int:
    """Measure the cases that the command line asks for."""
    parser = report.argument_parser("bench cheap", __doc__, turns=7)
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--rows", type=int, default=LONG, help="of a long task")
    options = parser.parse_args(arguments)
    chosen = [case for case in cases() if options.only in case.name]
    if not chosen:
        parser.error(f"no case has {options.only!r} in its name")
    long, short = list[Measured](), list[Measured]()
    with report.progress(2 * len(chosen)) as advance:
        for case in chosen:
            advance(case.name)
            long.append(measure(case, options.rows, options.turns))
            advance()
            short.append(measure(case, SHORT, 3 * options.turns))
            advance()
    path = report.write(options, "cheap", as_dict([*long, *short]))
    report.show(long_table(long), short_table(short), f"written: {path}")
    return 0


def as_dict(measured: Sequence[Measured]) -> dict[str, object]:
    """Return everything measured, for JSON."""
    results = [
        {"case": each.case.name, "rows": each.rows, "seconds": dict(each.seconds)}
        for each in measured
    ]
    return {"results": results}


def long_table(measured: Sequence[Measured]) -> Table:
    """Return the table of long tasks, for people."""
    rows = measured[0].rows
    shown = report.table(
        f"Tasks of {rows:,} rows: CPU time, times plain Spark's, median (least-greatest)",
        ("function of", "plain, ns a row", *OURS),
        (
            [
                each.case.name,
                f"{each.per_row(Contestant.SPARK):,.0f}",
                *(str(each.over(name)) for name in OURS),
            ]
            for each in measured
        ),
    )
    shown.add_section()
    means = (
        f"{statistics.geometric_mean(each.over(name).median for each in measured):.2f}"
        for name in OURS
    )
    shown.add_row("geometric mean", "", *means)
    return shown


def short_table(measured: Sequence[Measured]) -> Table:
    """Return the table of short tasks, for people."""
    rows = measured[0].rows
    shown = report.table(
        f"Tasks of {rows:,} rows: microseconds of CPU time more than plain Spark's",
        ("function of", "plain, µs", *OURS),
        (
            [
                each.case.name,
                f"{each.per_row(Contestant.SPARK) * rows / 1000:,.0f}",
                *(f"{each.more(name).median:+,.0f}" for name in OURS),
            ]
            for each in measured
        ),
    )
    shown.add_section()
    medians = (
        f"{statistics.median(each.more(name).median for each in measured):+,.0f}" for name in OURS
    )
    shown.add_row("median", "", *medians)
    return shown
