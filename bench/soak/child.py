"""A driver of one mode, which runs queries when it is told to and says what it holds."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final

import eddyline
from bench.soak.held import Held, held
from bench.soak.shapes import place, run

SETTINGS: Final = {
    # Tasks over sixty rows: what counts is how many queries there are.
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.log.level": "ERROR",
    # What is only softly held goes with each collection: it would be a matter of chance how much.
    "spark.driver.extraJavaOptions": "-XX:SoftRefLRUPolicyMSPerMB=0",
}

_SPAWNED: Final = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Queries that ran one after the other: how many, how long, and what was held after them.

    ``files`` are the kilobytes of state on disk.
    """

    queries: int
    seconds: float
    held: Held
    files: float = 0.0


class Child:
    """A process with a session of its own."""

    def __init__(self, serve: Callable[[str, Connection], None], mode: str) -> None:
        self.mode: Final = mode
        self._ours, theirs = _SPAWNED.Pipe()
        self._process = _SPAWNED.Process(
            target=serve, args=(mode, theirs), name=f"soak-{mode}", daemon=True
        )
        self._process.start()
        theirs.close()

    def run(self, queries: int) -> Stretch:
        """Have it run so many more queries; RuntimeError where it has ended."""
        self._ours.send(queries)
        try:
            found = self._ours.recv()
        except EOFError:
            raise RuntimeError(f"the driver of {self.mode} has ended") from None
        if not isinstance(found, Stretch):
            raise TypeError(f"{found!r} is no stretch of queries")
        return found

    def end(self) -> None:
        """Have it end."""
        self._ours.send(0)
        self._process.join()


def queries(mode: str, connection: Connection) -> None:
    """Run the twelve shapes in turns, as many as are asked for, until that is none."""
    spark = eddyline.session("soak", master="local[2]", config=SETTINGS)
    turn = 0
    with place(spark, mode) as where:
        while wanted := connection.recv():
            began = time.perf_counter()
            for _ in range(wanted):
                run(where, turn)
                turn += 1
            seconds = time.perf_counter() - began
            connection.send(Stretch(wanted, seconds, held()))
    spark.stop()
