"""Drivers that last by what runs in them: a stream, standing queries, a web service."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

import eddyline
from bench.soak.child import SETTINGS, Stretch
from bench.soak.held import held

PAGE: Final = Path(__file__).parents[2] / "docs" / "lasting.md"
"""The page of the documentation with the web service."""

EVENTS: Final = 20
"""Events of a micro-batch."""

STANDING: Final = 20
"""Rules that stand at a time."""

AT_A_TIME: Final = 8
"""Requests to the service at a time."""

Advance = Callable[[int], None]
"""Has so many more micro-batches or requests done."""

Running = tuple[Advance, Path | None]
"""And the folder of its state, where it has one."""


class Counted:
    """Micro-batches that run as fast as they can, and stand still in between."""

    def __init__(self) -> None:
        self._ended = False
        self._allowed = threading.Semaphore(0)
        self._done = threading.Semaphore(0)

    def batch(self) -> None:
        """Wait until one more is allowed, at the end of a micro-batch."""
        self._done.release()
        if not self._ended:
            self._allowed.acquire()

    def end(self) -> None:
        """Let what waits go on, and what comes."""
        self._ended = True
        self._allowed.release()

    def advance(self, batches: int) -> None:
        """Have so many more done."""
        for _ in range(batches):
            self._allowed.release()
            self._done.acquire()


@contextmanager
def stream(spark: SparkSession, mode: str) -> Iterator[Running]:
    """A stream in a session that is adapted: each micro-batch is filtered and written."""
    even = F.udf(lambda number: number % 2 == 0, "boolean")
    some = F.udf(lambda number: number % 3 > 0, "boolean")
    counted = Counted()

    def batch(rows: DataFrame, _: int) -> None:
        rows.write.format("noop").mode("overwrite").save()
        counted.batch()

    with tempfile.TemporaryDirectory() as checkpoint, _adapted(spark, mode):
        events = _events(spark).filter(even("value") & some("value"))
        writer = events.writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint)
        running = writer.start()
        try:
            yield counted.advance, Path(checkpoint)
        finally:
            counted.end()
            running.stop()


@contextmanager
def standing(spark: SparkSession, _: str) -> Iterator[Running]:
    """Standing queries that come and go, one of them after every other micro-batch."""
    counted = Counted()
    come = itertools.count()

    def sink(results: DataFrame, _: object) -> None:
        results.write.format("noop").mode("overwrite").save()
        counted.batch()

    with (
        tempfile.TemporaryDirectory() as state,
        eddyline.StandingQueries(spark, streams={"events": _events(spark)}, state=state) as queries,
    ):

        def add() -> None:
            number = next(come)
            text = f"SELECT value FROM events WHERE value % 10 = {number % 10} AND value > {number}"  # noqa: S608 - numbers
            queries.add(text, name=f"rule-{number}")
            if number >= STANDING:
                queries.drop(f"rule-{number - STANDING}")

        for _rule in range(STANDING):
            add()
        queries.start(sink)

        def advance(batches: int) -> None:
            for batch in range(batches):
                counted.advance(1)
                if batch % 2:
                    add()

        try:
            yield advance, Path(state)
        finally:
            counted.end()


@contextmanager
def service(spark: SparkSession, mode: str) -> Iterator[Running]:
    """The web service of the documentation: a thread a request, a query a request."""
    first = re.search(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    if first is None:
        raise LookupError(f"{PAGE} has no example")
    names: dict[str, Any] = {"__name__": "service"}
    exec(compile(first[1], str(PAGE), "exec"), names)  # noqa: S102 - our own example
    if mode != "enable":
        eddyline.disable(spark)
    server = names["service"]

    def ask(least: int) -> int:
        with urlopen(f"http://127.0.0.1:{server.server_port}/?least={least}") as answer:
            return int(json.load(answer)["found"])

    with ThreadPoolExecutor(AT_A_TIME) as clients:
        try:
            yield lambda requests: deque(clients.map(ask, range(requests)), 0).clear(), None
        finally:
            server.shutdown()
            server.server_close()


PARTS: Final[dict[str, Callable[[SparkSession, str], AbstractContextManager[Running]]]] = {
    "stream": stream,
    "standing": standing,
    "service": service,
}


def part(name: str, mode: str, connection: Connection) -> None:
    """Run a part: as many micro-batches or requests as are asked for, until that is none."""
    spark = eddyline.session("soak", master="local[2]", config=SETTINGS)
    with PARTS[name](spark, mode) as (advance, state):
        while wanted := connection.recv():
            began = time.perf_counter()
            advance(wanted)
            seconds = time.perf_counter() - began
            connection.send(Stretch(wanted, seconds, held(), _kilobytes(state)))
        if mode == "enable" and name != "standing" and not eddyline.status().answered:
            raise AssertionError("nothing was adapted")
    spark.stop()


@contextmanager
def _adapted(spark: SparkSession, mode: str) -> Iterator[None]:
    with eddyline.enable(spark) if mode == "enable" else nullcontext():
        yield


def _kilobytes(folder: Path | None) -> float:
    if folder is None:
        return 0.0
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()) / 1024


def _events(spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", EVENTS)
    return source.option("numPartitions", 1).load()
