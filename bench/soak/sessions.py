"""Twenty sessions of one application, each in a thread, which the plug-in adapts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Final

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from bench.plugged_in import session
from bench.soak.child import SETTINGS, Stretch
from bench.soak.held import Held, held, held_by

SESSIONS: Final = 20

ROWS: Final = 60

LIMIT: Final = 30.0
"""Seconds that a query may take: as long as it waits for the plug-in's process at the most."""

ENDING: Final = 10.0
"""Seconds within which that process is gone after the application's end."""


def sessions(mode: str, connection: Connection) -> None:
    """Have all sessions run queries, as many as are asked for, until that is none.

    ``mode`` is "plug-in", or "plain" without it. AssertionError where a query had other rows or
    took too long, nothing ran in an eddy, or the plug-in's process outlived the application.
    """
    spark = session("soak", SETTINGS, plugged_in=mode == "plug-in")
    even = F.udf(lambda number: number % 2 == 0, "boolean")
    workers = [Asking(spark.newSession(), number, even) for number in range(SESSIONS)]
    process = _process(spark) if mode == "plug-in" else None
    with ThreadPoolExecutor(SESSIONS) as threads:
        while wanted := connection.recv():
            began = time.perf_counter()
            shares = [wanted // SESSIONS + (n < wanted % SESSIONS) for n in range(SESSIONS)]
            list(threads.map(Asking.run, workers, shares))
            seconds = time.perf_counter() - began
            connection.send(Stretch(wanted, seconds, _held(process)))
    if process is not None and not workers[0].adapted():
        raise AssertionError("nothing was adapted")
    spark.stop()
    if process is not None:
        _await_end(process)


class Asking:
    """A session, and what it asks: each query has a function of its own and one of everybody's."""

    def __init__(self, spark: SparkSession, number: int, even: Callable[..., Column]) -> None:
        self._spark: Final = spark
        self._number: Final = number
        self._even: Final = even
        self._asked = 0

    def run(self, queries: int) -> None:
        """Run so many more queries."""
        for _ in range(queries):
            self._asked += 1
            divisor = 2 + (self._number + self._asked) % 9
            new = F.udf(lambda number, by=divisor: number % by == 0, "boolean")
            began = time.perf_counter()
            rows = self._spark.range(ROWS, numPartitions=1)
            found = rows.filter(self._even("id") & new("id")).count()
            taken = time.perf_counter() - began
            expected = sum(n % 2 == 0 and n % divisor == 0 for n in range(ROWS))
            if found != expected:
                raise AssertionError(f"{found} rows instead of {expected}")
            if taken > LIMIT:
                raise AssertionError(f"a query took {taken:.1f} s")

    def adapted(self) -> bool:
        """Whether a query of this session runs in an eddy."""
        frame = self._spark.range(ROWS).filter(self._even("id"))
        frame.createOrReplaceTempView("asked")
        plan = self._spark.sql("EXPLAIN SELECT * FROM asked").collect()[0][0]
        return "eddy[" in plan


def _process(spark: SparkSession) -> int:
    told = spark.sql("SELECT json FROM eddyline_status()").collect()[0][0]
    return int(json.loads(told)["pid"])


def _held(process: int | None) -> Held:
    """Return what the driver holds, and the plug-in's process with it."""
    own = held()
    if process is None:
        return own
    threads, descriptors, memory = held_by(process)
    handles = replace(
        own.handles,
        threads=own.handles.threads + threads,
        descriptors=own.handles.descriptors + descriptors,
    )
    return replace(own, handles=handles, driver=own.driver + memory)


def _await_end(process: int) -> None:
    until = time.monotonic() + ENDING
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("the plug-in's process outlives the application")
