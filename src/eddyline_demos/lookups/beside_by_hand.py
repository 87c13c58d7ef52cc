"""Eddyline beside the hand-written way: the same rows, each from services of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql import DataFrame, SparkSession

import eddyline
from eddyline.wall_clock import WallClock
from eddyline_demos.lookups.by_hand import joined_by_hand
from eddyline_demos.lookups.questions import COUNTED, register_tables
from eddyline_demos.lookups.running import RequestsSeen, Services, running_services
from eddyline_demos.lookups.tables_and_services import Data


class LookupWay(StrEnum):
    """How the rows are joined with the services."""

    WATCHED = "watch"
    ADAPTED = "adapt"
    BY_HAND = "by hand"


@dataclass(frozen=True, slots=True)
class Trial:
    """One run: its rows, the seconds to the first and to the last, and what the services saw."""

    way: LookupWay
    rows: Counter[tuple[object, ...]]
    first: float
    seconds: float
    weather: RequestsSeen
    register: RequestsSeen


def compare(
    spark: SparkSession, data: Data, runs: int, announce: Callable[[LookupWay], None]
) -> Iterator[Trial]:
    """Ask ``runs`` times in each way, in turns; yield each trial when it is done.

    Each has services of its own, which nobody has asked before, and tables of the views of
    ``spark``. ``announce`` is told who comes next.
    """
    for _ in range(runs):
        for way in LookupWay:
            announce(way)
            yield try_out(spark, data, way)


def try_out(spark: SparkSession, data: Data, way: LookupWay) -> Trial:
    """Ask in one way."""
    with running_services(data.weather, data.aircraft) as services:
        register_tables(spark, services)
        clock = WallClock()
        began = clock.now()
        rows, first = _asked(spark, services, way)
        ended = clock.now()
        return Trial(way, Counter(rows), first - began, ended - began, *services.seen())


def differing(trials: Sequence[Trial]) -> bool:
    """Tell whether any two trials have different rows."""
    return any(each.rows != trials[0].rows for each in trials)


def _asked(
    spark: SparkSession, services: Services, way: LookupWay
) -> tuple[list[tuple[object, ...]], float]:
    """Return all rows, and when the first was there."""
    match way:
        case LookupWay.WATCHED:
            return _watched(spark)
        case LookupWay.ADAPTED:
            return _collected(eddyline.adapt(spark.sql(COUNTED)))
        case LookupWay.BY_HAND:
            return _collected(joined_by_hand(spark.table("flights"), services))


def _watched(spark: SparkSession) -> tuple[list[tuple[object, ...]], float]:
    clock = WallClock()
    rows: list[tuple[object, ...]] = []
    first = None
    with eddyline.watch(spark.sql(COUNTED)) as watch:
        for part in watch:
            if first is None and part.total:
                first = clock.now()
            rows += [tuple(row.values()) for row in part.rows.to_pylist()]
    return rows, clock.now() if first is None else first


def _collected(frame: DataFrame) -> tuple[list[tuple[object, ...]], float]:
    """Do so for all rows at once: Spark gives the first of them when it has the last."""
    rows = [tuple(row) for row in frame.collect()]
    return rows, WallClock().now()
