"""``python -m bench``: Python predicates against their opponents, and which targets are met.

``python -m bench tpch``, ``adversarial``, ``flights``, ``orders`` and ``engine`` measure joins
instead, ``remembering`` functions that are asked the same again, ``realistic`` queries over text
and records, ``short`` queries of less than a second, ``growth`` how time grows with terms and
relations, ``enabling`` what a session's plans take longer, ``waiting`` predicates that wait for an
answer; each has a ``--help`` of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

import eddyline
from bench import report
from bench.against_plain import CORES, PLAIN
from bench.predicates.contestants import adapted, barriers, plain
from bench.predicates.workload import Course, Workload, workloads
from bench.turns import Spread, Turns, take_turns

AT_MOST_OF_BARRIERS = 1.05
AT_MOST_OF_PLAIN_IF_FREE = 1.10
AT_MOST_OF_CLAIRVOYANT = 1.10
AT_MOST_OF_PLAIN_IF_UNEQUAL = 1 / 2.5
"""The targets, as Eddyline's time over the opponent's."""

BARRIERS, EDDYLINE, TRANSPORT = "barriers", "eddyline", "transport"
CONTESTANTS = (PLAIN, BARRIERS, EDDYLINE, TRANSPORT)


@dataclass(frozen=True, slots=True)
class Result:
    """One workload's turns, and the bound that nobody can beat."""

    workload: Workload
    turns: Turns
    clairvoyant: float
    best_order: tuple[int, ...]

    @property
    def to_plain(self) -> Spread:
        """Eddyline's time over plain Spark's."""
        return self.turns.ratio(EDDYLINE, PLAIN)

    @property
    def to_barriers(self) -> Spread:
        """Eddyline's time over that of the hand-ordered filters."""
        return self.turns.ratio(EDDYLINE, BARRIERS)

    @property
    def to_clairvoyant(self) -> Spread:
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
            "rows_out": self.turns.answer[0],
            "clairvoyant_seconds": self.clairvoyant,
            "seconds": dict(self.turns.seconds),
            "eddyline_over_plain": dataclasses.asdict(self.to_plain),
            "eddyline_over_barriers": dataclasses.asdict(self.to_barriers),
            "eddyline_over_clairvoyant_and_transport": dataclasses.asdict(self.to_clairvoyant),
            "missed": self.missed(),
        }

    def row(self) -> list[str]:
        """Return a row of the table."""
        return [
            self.workload.name,
            f"{self.workload.rows:,}",
            f"{self.turns.median(PLAIN):.2f}",
            str(self.to_plain),
            str(self.to_barriers),
            str(self.to_clairvoyant),
            (self.missed() or "met") if self.has_target else "none set",
        ]


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
    taken = take_turns(contestants, turns=turns, progress=tick)
    return Result(workload, taken, workload.clairvoyant_seconds(CORES), order)


def main(arguments: Sequence[str]) -> int:
    """Measure workloads, write the JSON file after each, print the table at the end."""
    parser = report.argument_parser("bench", __doc__)
    parser.add_argument(
        "--seconds",
        type=float,
        default=1.0,
        help="seconds that the best order spends in calls on each core (default: 1.0)",
    )
    parser.add_argument("--only", default="", help="only workloads whose name contains this")
    options = parser.parse_args(arguments)
    chosen = [each for each in workloads(options.seconds) if options.only in each.name]
    if not chosen:
        parser.error(f"no workload has {options.only!r} in its name")
    spark = eddyline.session("eddyline-bench", master=f"local[{CORES}]")
    results: list[Result] = []
    with report.progress(len(chosen) * len(CONTESTANTS) * (options.turns + 1)) as advance:
        for workload in chosen:
            advance(workload.name)
            results.append(measure(spark, workload, options.turns, advance))
            document = {
                "cores": CORES,
                "turns": options.turns,
                "results": [result.to_dict() for result in results],
            }
            path = report.write(options, "predicates", document)
    spark.stop()
    opponents = ("plain Spark", "best hand-ordered", "clairvoyant + transport")
    shown = report.table(
        "Eddyline's time over the opponent's: median (least-greatest)",
        ("workload", "rows", "plain, s", *opponents, "target"),
        (result.row() for result in results),
        words=("target",),
    )
    judged = [result for result in results if result.has_target]
    missed = sum(result.missed() is not None for result in judged)
    report.show(shown, f"written: {path}", f"targets missed: {missed} of {len(judged)}")
    return 0
