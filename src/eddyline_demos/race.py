"""Plain Spark against Eddyline, on one query, run after run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from pyspark.sql import DataFrame, Row

import eddyline
from eddyline.reports.records import FunctionRecord
from eddyline.reports.routing_report import RoutingReport
from eddyline.wall_clock import WallClock


class Contestant(StrEnum):
    """Who runs the query."""

    PLAIN = "plain Spark"
    EDDYLINE = "Eddyline"


@dataclass(frozen=True, slots=True)
class Lap:
    """One run of the query: from its text to its rows. Only Eddyline has a report."""

    contestant: Contestant
    seconds: float
    rows: tuple[Row, ...]
    report: RoutingReport | None = None


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Rows that one contestant has more often than the other."""

    contestant: Contestant
    rows: tuple[Row, ...]


def race(
    ask: Callable[[], DataFrame], runs: int, announce: Callable[[Contestant], None]
) -> Iterator[Lap]:
    """Run a query ``runs`` times on each side, in turns, and yield every lap when it is done.

    ``ask`` returns the query as a fresh DataFrame each time: one that was
    collected before would reuse its shuffles. The sides take turns at being
    first in a run. ``announce`` is told who runs next.
    """
    for run in range(runs):
        order = list(Contestant) if run % 2 else list(reversed(Contestant))
        for contestant in order:
            announce(contestant)
            yield _lap(contestant, ask)


def warm_up(ask: Callable[[], DataFrame]) -> None:
    """Run a query once on each side, uncounted.

    The first query of a Spark session pays several seconds for starting its
    workers and compiling, whoever runs it; this is to be a small one.
    """
    for contestant in Contestant:
        _lap(contestant, ask)


def difference(laps: Sequence[Lap]) -> RowDifference | None:
    """Return rows that are not in every lap, as often as in the others; None if there are none."""
    expected = Counter(next(lap.rows for lap in laps if lap.contestant is Contestant.PLAIN))
    for lap in laps:
        rows = Counter(lap.rows)
        if surplus := rows - expected:
            return RowDifference(lap.contestant, tuple(surplus.elements()))
        if missing := expected - rows:
            return RowDifference(Contestant.PLAIN, tuple(missing.elements()))
    return None


def seconds_of(laps: Sequence[Lap], contestant: Contestant) -> list[float]:
    """Return the times of one side, in order."""
    return [lap.seconds for lap in laps if lap.contestant is contestant]


def speed_up(laps: Sequence[Lap]) -> float:
    """Return how many times as fast Eddyline is, by the medians of both sides."""
    plain, eddy = (median(seconds_of(laps, contestant)) for contestant in Contestant)
    return plain / eddy


def functions_of(lap: Lap) -> tuple[FunctionRecord, ...]:
    """Return what the report of a lap says of the calls of each function, in the query's order."""
    blocks = () if lap.report is None else lap.report.blocks
    records = [block.record for block in blocks if block.record is not None]
    return tuple(function for record in records for function in record.functions)


def _lap(contestant: Contestant, ask: Callable[[], DataFrame]) -> Lap:
    clock = WallClock()
    started = clock.now()
    if contestant is Contestant.PLAIN:
        rows = ask().collect()
        return Lap(contestant, clock.now() - started, tuple(rows))
    adapted = eddyline.adapt(ask())
    rows = adapted.collect()
    seconds = clock.now() - started
    return Lap(contestant, seconds, tuple(rows), eddyline.report(adapted))
