"""``python -m bench first``: the first use of Eddyline in a process, beside Spark's own.

Each run is a fresh process that starts a session and runs one query over Parquet files: a filter
with two Python predicates, a join with a predicate over each table and one over both, a filter of
native columns. It runs plainly, by ``eddyline.adapt``, or in an enabled session. What counts is the
time from a session that is ready, in which a tiny query has run, to the rows: imports and
``enable()`` are in it. ``very first`` leaves the tiny query out; ``spark`` is a session not
started by :func:`eddyline.session`, whose workers import what they need one by one. Where Eddyline
was ``just installed``, nothing is compiled, neither its Java nor the loops of its joins. Then the
same process repeats the query.

Contestants take turns, and differences are formed turn by turn: each turn of a case runs in a row.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from bench import report
from bench.first_use.one_process import PARTS, QUERIES, REPETITIONS
from bench.turns import Spread, in_turns

REPOSITORY: Final = Path(__file__).resolve().parents[2]

PLAIN: Final = "plain"
OURS: Final = ("adapt", "enable")

TARGET: Final = 0.3
"""Seconds that the first use may take beyond plain Spark's, in a session of ours that is ready."""

ORDERS: Final = 20_000
CUSTOMERS: Final = 2_000

USE: Final = ("import", "enable", "query")
"""The parts that count."""

JAVA_CACHE: Final = "EDDYLINE_CACHE_DIR"
LOOPS_CACHE: Final = "NUMBA_CACHE_DIR"


@dataclass(frozen=True, slots=True)
class Case:
    """What is the same for all contestants."""

    query: str
    session: str = "eddyline"
    tiny: bool = True
    installed: bool = True

    @property
    def name(self) -> str:
        """What it is called in tables."""
        more = [
            *(() if self.session == "eddyline" else (f"{self.session}'s session",)),
            *(() if self.tiny else ("very first",)),
            *(() if self.installed else ("just installed",)),
        ]
        return ", ".join((self.query, *more))

    @property
    def contestants(self) -> tuple[str, ...]:
        """Who runs it: nobody adapts a query without functions."""
        return (PLAIN, *OURS) if self.query != "native filter" else (PLAIN, "enable")


CASES: Final = (
    *map(Case, QUERIES),
    *(Case(query, tiny=False) for query in ("filter", "join")),
    *(Case(query, session="spark") for query in ("filter", "join")),
    *(Case(query, installed=False) for query in ("filter", "join")),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One process: its seconds by part, the CPU time from then on, and how many rows it had."""

    seconds: Mapping[str, float]
    cpu: float
    rows: int

    @property
    def use(self) -> float:
        """Return the seconds that count."""
        return sum(self.seconds[part] for part in USE)


@dataclass(frozen=True, slots=True)
class Measured:
    """A case, and the runs of each contestant, turn by turn."""

    case: Case
    runs: Mapping[str, Sequence[Run]]

    def more(self, contestant: str) -> Spread:
        """Return by how many seconds a contestant's first use is longer than plain Spark's."""
        return Spread.of(run.use - plain.use for plain, run in self._pairs(contestant))

    def more_cpu(self, contestant: str) -> Spread:
        """Return how many seconds of CPU time it takes more, in all processes together."""
        return Spread.of(run.cpu - plain.cpu for plain, run in self._pairs(contestant))

    def repeated(self, contestant: str) -> Spread:
        """Return the time of its repetitions over plain Spark's."""
        again = "again"
        pairs = self._pairs(contestant)
        return Spread.of(run.seconds[again] / plain.seconds[again] for plain, run in pairs)

    def part(self, contestant: str, part: str) -> float:
        """Return the median seconds of a part."""
        return statistics.median(run.seconds[part] for run in self.runs[contestant])

    def _pairs(self, contestant: str) -> zip[tuple[Run, Run]]:
        return zip(self.runs[PLAIN], self.runs[contestant], strict=True)

    def verdicts(self) -> list[str]:
        """Return what became of the target, where there is one."""
        if self.case not in {Case("filter"), Case("join")}:
            return []
        return [
            f"{self.case.name}, {name}: {self.more(name).median:+.2f} s, target {TARGET:+.1f} s"
            f"{'' if self.more(name).median <= TARGET else ', missed'}"
            for name in self.runs
            if name != PLAIN
        ]


def write_tables(folder: Path) -> None:
    """Write the two tables that the queries read."""
    numbers = range(ORDERS)
    orders = {
        "number": list(numbers),
        "customer": [number * 7919 % CUSTOMERS for number in numbers],
        "text": list(map(str, numbers)),
    }
    customers = {
        "customer": list(range(CUSTOMERS)),
        "name": [f"customer {number}" for number in range(CUSTOMERS)],
    }
    for name, columns in (("orders", orders), ("customers", customers)):
        (folder / name).mkdir()
        pq.write_table(pa.table(columns), folder / name / "0.parquet")


def in_fresh_process(case: Case, contestant: str, folder: Path) -> Run:
    """Run a case in another process."""
    tiny = "tiny" if case.tiny else "very first"
    command = [sys.executable, "-m", "bench.first_use.one_process", contestant, case.session]
    with tempfile.TemporaryDirectory(prefix="eddyline-installed-") as empty:
        new = {} if case.installed else {JAVA_CACHE: f"{empty}/java", LOOPS_CACHE: f"{empty}/loops"}
        done = subprocess.run(  # noqa: S603 - a module of this package
            [*command, case.query, str(folder), tiny],
            cwd=REPOSITORY,
            env=os.environ | new,
            capture_output=True,
            text=True,
            check=True,
        )
    return Run(**json.loads(done.stdout.splitlines()[-1]))


def measure(case: Case, turns: int, folder: Path, advance: partial[None]) -> Measured:
    """Measure a case; raises AssertionError where contestants have other rows."""
    contestants = {name: partial(in_fresh_process, case, name, folder) for name in case.contestants}
    runs = in_turns(contestants, turns, uncounted=0, progress=advance)
    rows = {run.rows for of_one in runs.values() for run in of_one}
    if len(rows) != 1:
        raise AssertionError(f"{case.name}: {rows} rows")
    return Measured(case, runs)


def differences(measured: Sequence[Measured]) -> Table:
    """Return the table of what the first use takes more than plain Spark's."""
    return report.table(
        "First use: seconds from the ready session to the rows, and how many more; median "
        "(least-greatest)",
        ("case", "plain, s", *(f"{n}: {w}" for n in OURS for w in ("s more", "s of CPU more"))),
        (
            [
                each.case.name,
                f"{statistics.median(run.use for run in each.runs[PLAIN]):.2f}",
                *(
                    str(spread(name)) if name in each.runs else ""
                    for name in OURS
                    for spread in (each.more, each.more_cpu)
                ),
            ]
            for each in measured
        ),
    )


def repetitions(measured: Sequence[Measured]) -> Table:
    """Return the table of what the query's repetitions take over plain Spark's."""
    return report.table(
        f"The query again: median of {REPETITIONS} repetitions, over plain Spark's; median "
        "(least-greatest)",
        ("case", "plain, ms", *OURS),
        (
            [
                each.case.name,
                f"{1000 * each.part(PLAIN, 'again'):.0f}",
                *(str(each.repeated(name)) if name in each.runs else "" for name in OURS),
            ]
            for each in measured
        ),
    )


def parts(measured: Sequence[Measured]) -> Table:
    """Return the table of the parts' medians."""
    return report.table(
        "Parts: median seconds",
        ("case", "contestant", *PARTS),
        (
            [each.case.name, name, *(f"{each.part(name, part):.2f}" for part in PARTS)]
            for each in measured
            for name in each.runs
        ),
        words=("contestant",),
    )


def as_dict(measured: Sequence[Measured], turns: int) -> dict[str, object]:
    """Return everything measured, for JSON."""
    return {
        "turns": turns,
        "rows": {"orders": ORDERS, "customers": CUSTOMERS},
        "targets": [line for each in measured for line in each.verdicts()],
        "results": [
            {
                "case": each.case.name,
                "runs": {
                    name: [{"seconds": dict(run.seconds), "cpu": run.cpu} for run in of_one]
                    for name, of_one in each.runs.items()
                },
            }
            for each in measured
        ],
    }


def main(arguments: Sequence[str]) -> int:
    """Measure all cases that the command line asks for."""
    parser = report.argument_parser("bench first", __doc__, turns=5)
    parser.add_argument("--only", default="", help="only cases with this in their names")
    options = parser.parse_args(arguments)
    chosen = [case for case in CASES if options.only in case.name]
    if not chosen:
        parser.error(f"no case has {options.only!r} in its name")
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="eddyline-first-") as name:
        folder = Path(name)
        write_tables(folder)
        for contestant in OURS:  # compiled once, it is there for all that follow
            in_fresh_process(Case("join"), contestant, folder)
        runs = options.turns * sum(len(case.contestants) for case in chosen)
        with report.progress(runs) as advance:
            for case in chosen:
                advance(case.name)
                measured.append(measure(case, options.turns, folder, partial(advance)))
                path = report.write(options, "first", as_dict(measured, options.turns))
    lines = [line for each in measured for line in each.verdicts()]
    tables = [made(measured) for made in (differences, repetitions, parts)]
    report.show(*tables, *lines, f"written: {path}")
    return 0
