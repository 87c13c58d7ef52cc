"""Runs the workloads against their opponents and says which targets are met."""

from __future__ import annotations

import dataclasses
import json
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from bench.measure import Ratio, Turns, take_turns
from bench.predicates.contestants import adapted, barriers, plain
from bench.predicates.workload import Course, Workload

CORES = 2
"""Cores of the measurement: as many as the data have partitions."""

AT_MOST_OF_BARRIERS = 1.05
AT_MOST_OF_PLAIN_IF_FREE = 1.10
AT_MOST_OF_CLAIRVOYANT = 1.10
AT_MOST_OF_PLAIN_IF_UNEQUAL = 1 / 2.5
"""The targets, as Eddyline's time over the opponent's."""

PLAIN, BARRIERS, EDDYLINE, TRANSPORT = "plain", "barriers", "eddyline", "transport"


@dataclass(frozen=True, slots=True)
class Result:
    """One workload's turns, and the bound that nobody can beat."""

    workload: Workload
    turns: Turns
    clairvoyant: float
    best_order: tuple[int, ...]
    rows_out: int

    @property
    def to_plain(self) -> Ratio:
        """Eddyline's time over plain Spark's."""
        return self.turns.ratio(EDDYLINE, PLAIN)

    @property
    def to_barriers(self) -> Ratio:
        """Eddyline's time over that of the hand-ordered filters."""
        return self.turns.ratio(EDDYLINE, BARRIERS)

    @property
    def to_clairvoyant(self) -> Ratio:
        """Eddyline's time over the calls of the clairvoyant order plus the transport."""
        return self.turns.ratio(EDDYLINE, TRANSPORT, plus=self.clairvoyant)

    @property
    def has_target(self) -> bool:
        """Whether a target was set: none was for correlated predicates that cost something."""
        return self.workload.course is not Course.CORRELATED or not any(self.workload.costs)

    def missed(self) -> str | None:
        """Return which target is missed, in words; None where all are met."""
        workload = self.workload
        changing = workload.course in (Course.FLIPPING, Course.DRIFTING)
        if len(set(workload.costs)) > 1 and self.to_plain.median > AT_MOST_OF_PLAIN_IF_UNEQUAL:
            return "less than 2.5 times as fast as plain Spark"
        if not any(workload.costs):
            expensive = self.to_plain.median > AT_MOST_OF_PLAIN_IF_FREE
            return f"above {AT_MOST_OF_PLAIN_IF_FREE} of plain Spark" if expensive else None
        if changing and self.to_barriers.median >= 1.0:
            return "not faster than the best static order"
        if changing and self.to_clairvoyant.median > AT_MOST_OF_CLAIRVOYANT:
            return f"above {AT_MOST_OF_CLAIRVOYANT} of the clairvoyant bound"
        if workload.course is Course.STATIONARY and self.to_barriers.median > AT_MOST_OF_BARRIERS:
            return f"above {AT_MOST_OF_BARRIERS} of the hand-ordered filters"
        return None

    def to_dict(self) -> dict[str, object]:
        """Return everything measured, for JSON."""
        return {
            "workload": dataclasses.asdict(self.workload),
            "best_static_order": self.best_order,
            "rows_out": self.rows_out,
            "clairvoyant_seconds": self.clairvoyant,
            "seconds": dict(self.turns.seconds),
            "eddyline_over_plain": dataclasses.asdict(self.to_plain),
            "eddyline_over_barriers": dataclasses.asdict(self.to_barriers),
            "eddyline_over_clairvoyant_and_transport": dataclasses.asdict(self.to_clairvoyant),
            "missed": self.missed(),
        }


def measure(
    spark: SparkSession, workload: Workload, turns: int, tick: Callable[[], None]
) -> Result:
    """Measure one workload; raises AssertionError where the contestants' answers differ."""
    order = workload.best_static_order()
    free = dataclasses.replace(workload, costs=(0.0,) * len(workload.costs))
    contestants = {
        PLAIN: plain(spark, workload),
        BARRIERS: barriers(spark, workload, order),
        EDDYLINE: adapted(spark, workload),
        # What moving the rows costs: the same query with predicates that do no work.
        TRANSPORT: plain(spark, free),
    }
    answers: dict[str, tuple[int, int]] = {}

    def remembering(name: str, run: Callable[[], tuple[int, int]]) -> Callable[[], None]:
        def remember() -> None:
            answers[name] = run()

        return remember

    taken = take_turns(
        {name: remembering(name, run) for name, run in contestants.items()},
        turns=turns,
        progress=tick,
    )
    if len(set(answers.values())) != 1:
        message = f"{workload.name}: the answers differ: {answers}"
        raise AssertionError(message)
    return Result(workload, taken, workload.clairvoyant_seconds(CORES), order, answers[EDDYLINE][0])


def run(spark: SparkSession, workloads: Sequence[Workload], turns: int, out: Path) -> list[Result]:
    """Measure all workloads, write the JSON file after each, print the table at the end."""
    results: list[Result] = []
    out.mkdir(parents=True, exist_ok=True)
    path = out / "predicates.json"
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        task = progress.add_task("", total=len(workloads) * 4 * (turns + 1))
        for number, workload in enumerate(workloads, 1):
            progress.update(task, description=workload.name)
            results.append(measure(spark, workload, turns, lambda: progress.advance(task)))
            path.write_text(json.dumps(as_dict(results, turns), indent=1))
            if not console.is_terminal:  # where a bar would show only at the end
                console.print(f"{number} of {len(workloads)}: {workload.name}")
    Console(width=None if sys.stdout.isatty() else 130).print(table(results))
    print(f"written: {path}")
    return results


def as_dict(results: Sequence[Result], turns: int) -> dict[str, object]:
    """Return all that was measured, for JSON."""
    return {
        "machine": {"python": sys.version.split()[0], "cpu": platform.machine()},
        "cores": CORES,
        "turns": turns,
        "results": [result.to_dict() for result in results],
    }


def table(results: Sequence[Result]) -> Table:
    """Return the ratios as a table: below 1, Eddyline is faster."""
    shown = Table(title="Eddyline's time over the opponent's: median (least-greatest)")
    shown.add_column("workload", no_wrap=True)
    shown.add_column("rows", justify="right")
    shown.add_column("plain, s", justify="right")
    for heading in ("plain Spark", "best hand-ordered", "clairvoyant + transport"):
        shown.add_column(heading, justify="right")
    shown.add_column("target")
    for result in results:
        shown.add_row(
            result.workload.name,
            f"{result.workload.rows:,}",
            f"{result.turns.median(PLAIN):.2f}",
            str(result.to_plain),
            str(result.to_barriers),
            str(result.to_clairvoyant),
            (result.missed() or "met") if result.has_target else "none set",
        )
    return shown
