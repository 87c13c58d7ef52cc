"""``make bench ARGS=quota``: a service with a quota that nobody has told of.

A query calls it for distinct keys. It refuses what is too much with 429 and whole seconds in
Retry-After, and a call takes 20 to 30 ms. The time of the whole action, Spark's included, is
compared with the least that the calls could take for somebody who knows the quota.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import eddyline
from bench.quota.quotas import Amount, FixedWindows, Quota, SlidingWindow, least_seconds

WIDTH: Final = 16
"""Calls at a time: what a user has who says nothing."""


NEARLY: Final = 1.10
"""How many times as long as the least the calls may take, where a quota stays as it is."""

REFUSED: Final = 0.02
"""The part of all calls that may be refused then."""


@dataclass(frozen=True)
class Case:
    """A quota, the keys that are asked for, and how much longer than the least it may take."""

    name: str
    quota: Callable[[], Quota]
    keys: int
    bound: float = NEARLY


CASES: Final = (
    Case("500 a 15 s", lambda: FixedWindows(Amount(500), 15.0), 2_000),
    Case("500 a 15 s, sliding", lambda: SlidingWindow(Amount(500), 15.0), 2_000),
    Case("500 a 15 s", lambda: FixedWindows(Amount(500), 15.0), 5_000),
    Case("200 a second", lambda: FixedWindows(Amount(200), 1.0), 2_000),
    Case("200 a second, sliding", lambda: SlidingWindow(Amount(200), 1.0), 2_000),
    Case("200 a second", lambda: FixedWindows(Amount(200), 1.0), 5_000),
    Case(
        "200 a second, 100 from 8 to 20 s",
        lambda: FixedWindows(Amount(200, [(8.0, 100), (20.0, 200)]), 1.0),
        5_000,
        1.20,
    ),
    Case(
        "500 a 15 s, 250 from 30 to 75 s",
        lambda: FixedWindows(Amount(500, [(30.0, 250), (75.0, 500)]), 15.0),
        3_000,
        1.20,
    ),
)


class TooManyRequestsError(Exception):
    """What a client of a service raises for status 429."""

    status_code = 429

    def __init__(self, seconds: float) -> None:
        """The service may be asked again after so many seconds."""
        super().__init__("429 Too Many Requests")
        self.headers = {"Retry-After": str(math.ceil(seconds))}


def latency(chance: Random) -> float:
    """Return the seconds of a call."""
    return chance.uniform(0.020, 0.030)


class Service:
    """A service, and what it has seen."""

    def __init__(self, quota: Quota) -> None:
        """Admit what a quota does."""
        self._quota = quota
        self._chance = Random(0)
        self._began: float | None = None
        self.answers = 0
        self.refusals = 0

    async def answer(self, key: int) -> int:
        """Return a value; TooManyRequestsError where it is too much."""
        seconds = latency(self._chance)
        self._began = self._began or time.monotonic()
        await asyncio.sleep(seconds / 2)
        refused = self._quota.ask(time.monotonic() - self._began)
        await asyncio.sleep(seconds / 2)
        if refused is not None:
            self.refusals += 1
            raise TooManyRequestsError(refused)
        self.answers += 1
        return 3 * key


def main(arguments: Sequence[str]) -> int:
    """Run the cases, and say how each fared; 1 where one misses its bound."""
    parser = argparse.ArgumentParser(prog="bench quota", description=__doc__)
    parser.add_argument("--only", default="", help="cases whose names begin so")
    chosen = parser.parse_args(arguments)
    spark = eddyline.session()
    _run(spark, Case("", lambda: FixedWindows(Amount(1_000), 1.0), 100))  # the first is slow
    table = Table("quota", "keys", "least s", "took s", "ratio", "refused", "bound")
    missed = 0
    for case in CASES:
        if not case.name.startswith(chosen.only):
            continue
        least = least_seconds(case.quota(), case.keys, WIDTH, latency, Random(0))
        seconds, service = _run(spark, case)
        share = service.refusals / (service.answers + service.refusals)
        ratio = seconds / least
        within = ratio <= case.bound and (case.bound > NEARLY or share < REFUSED)
        missed += not within
        table.add_row(
            case.name,
            f"{case.keys:,}",
            f"{least:.1f}",
            f"{seconds:.1f}",
            f"{ratio:.3f}",
            f"{share:.2%}",
            f"{case.bound:.2f}{'' if within else ' MISSED'}",
        )
    Console().print(table)
    return 1 if missed else 0


def _run(spark: SparkSession, case: Case) -> tuple[float, Service]:
    service = Service(case.quota())
    ask = eddyline.concurrent(service.answer, returns="bigint", max_in_flight=WIDTH)
    query = eddyline.adapt(spark.range(case.keys).select("id", ask("id").alias("value")))
    began = time.monotonic()
    rows = query.collect()
    seconds = time.monotonic() - began
    if sorted((row.id, row.value) for row in rows) != [(n, 3 * n) for n in range(case.keys)]:
        raise AssertionError(f"{case.name}: wrong rows")
    return seconds, service
