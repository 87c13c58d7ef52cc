"""What a driver holds: threads, descriptors, and memory in Python and in the JVM."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from pyspark import SparkContext

_DESCRIPTORS: Final = Path("/proc/self/fd")

_MEMORY: Final = Path("/proc/self/smaps_rollup")

_COLLECTIONS: Final = 4
"""Of Python and the JVM in turn: what the one lets go of, the other may free."""

_SETTLING: Final = 0.3
"""Seconds between them: what the JVM has collected is taken out of Spark's books by a thread."""


def can_be_told() -> bool:
    """Whether this system tells what a process holds, as Linux does."""
    return _DESCRIPTORS.exists() and _MEMORY.exists()


@dataclass(frozen=True, slots=True)
class Handles:
    """Threads and descriptors of this process, and threads of its JVM."""

    threads: int
    descriptors: int
    java_threads: int


@dataclass(frozen=True, slots=True)
class Held:
    """What a driver holds at some time, and its workers, in kilobytes."""

    handles: Handles
    driver: float
    heap: float
    workers: float


def handles() -> Handles:
    """Return what is there now; a thread that is about to end counts."""
    beans = _jvm().java.lang.management.ManagementFactory
    return Handles(
        threading.active_count(),
        len(list(_DESCRIPTORS.iterdir())),
        int(beans.getThreadMXBean().getThreadCount()),
    )


def held() -> Held:
    """Return what is left when all is collected that nobody holds; takes about two seconds."""
    beans = _jvm().java.lang.management.ManagementFactory
    for _ in range(_COLLECTIONS):
        gc.collect()
        _jvm().java.lang.System.gc()
        time.sleep(_SETTLING)
    heap = beans.getMemoryMXBean().getHeapMemoryUsage().getUsed() / 1024
    return Held(handles(), _private_memory(), heap, _workers_memory())


def held_by(process: int) -> tuple[int, int, float]:
    """Return the threads, the descriptors and the private kilobytes of another process."""
    place = Path(f"/proc/{process}")
    threads, descriptors = (len(list((place / what).iterdir())) for what in ("task", "fd"))
    return threads, descriptors, _kilobytes(place / _MEMORY.name, "Private_")


def _private_memory() -> float:
    """Return the kilobytes that only this process has, after what is free was given back."""
    ctypes.CDLL(None).malloc_trim(0)
    return _kilobytes(_MEMORY, "Private_")


def _workers_memory() -> float:
    """Return the kilobytes that processes below the JVM have, shares of what they share."""
    java = cast("Any", SparkContext._gateway).proc.pid  # noqa: SLF001 - nothing public tells it
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # a process that has ended
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    below = {java}
    while found := {child for child, parent in parents.items() if parent in below} - below:
        below |= found
    total = 0.0
    for process in below - {java}:
        with suppress(OSError):
            total += _kilobytes(Path(f"/proc/{process}/smaps_rollup"), "Pss:")
    return total


def _kilobytes(rollup: Path, name: str) -> float:
    fields = (line.split() for line in rollup.read_text().splitlines()[1:])
    return sum(float(size) for what, size, *_ in fields if what.startswith(name))


def _jvm() -> Any:  # noqa: ANN401 - Py4J has no types
    return cast("Any", SparkContext._jvm)  # noqa: SLF001 - nothing public asks the JVM
