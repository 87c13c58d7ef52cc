"""The processes below this one, and how they are ended together."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")

_STEP: Final = 0.02
"""Seconds between two looks at what still runs."""

_GRACE: Final = 10.0
"""Seconds that processes have to end themselves: a JVM that clears up takes less than one."""

_ORPHANS: Final = 2.0
"""Seconds that those below them have afterwards: they notice that nobody listens any more."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process; ``began`` tells it from a later one of the same number."""

    number: int
    began: str


def children() -> frozenset[Process]:
    """Return the processes that this one has started and that run."""
    running = dict(_running())
    return frozenset(process for process, above in running.items() if above == os.getpid())


def end(processes: Iterable[Process]) -> None:
    """End processes and all below them, and return when none runs any more.

    They are asked first, which lets a JVM delete what it has made; those that still run are killed.
    """
    roots = frozenset(processes)
    known = _held(roots)
    _signal(roots, signal.SIGTERM)
    _signal(known, signal.SIGCONT)
    known |= _wait(roots, known, _GRACE)
    _signal(roots, signal.SIGKILL)
    known |= _wait(known, known, _ORPHANS)
    _signal(known, signal.SIGKILL)
    _wait(known, known, _ORPHANS)


def _held(roots: Collection[Process]) -> set[Process]:
    """Stop processes and all below them, and return all these.

    A running one could start another and end at once; nobody would know whose that was.
    """
    held: set[Process] = set()
    while fresh := set(_below(held.union(roots))) - held:
        _signal(fresh, signal.SIGSTOP)
        held |= fresh
    return held


def _wait(awaited: Collection[Process], known: set[Process], seconds: float) -> set[Process]:
    """Wait until processes have ended; return what has been seen below the known ones."""
    seen: set[Process] = set()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        running = dict(_running())
        seen.update(_below(known | seen, running))
        if running.keys().isdisjoint(awaited):
            break
        time.sleep(_STEP)
    return seen


def _signal(processes: Iterable[Process], number: signal.Signals) -> None:
    for process in set(processes).intersection(
        running_process for running_process, _ in _running()
    ):
        with suppress(ProcessLookupError):
            os.kill(process.number, number)


def _below(
    roots: Collection[Process], running: dict[Process, int] | None = None
) -> Iterator[Process]:
    """Yield processes that run, and all that run below them."""
    running = dict(_running()) if running is None else running
    numbers = {process.number for process in roots if process in running}
    yield from (process for process in roots if process in running)
    while numbers:
        below = [process for process, above in running.items() if above in numbers]
        yield from below
        numbers = {process.number for process in below}


def _running() -> Iterator[tuple[Process, int]]:
    """Yield each process that runs, and the number of the one above it."""
    return _in_proc() if _PROC.joinpath("self", "stat").exists() else _listed()


def _in_proc() -> Iterator[tuple[Process, int]]:
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = folder.joinpath("stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        # The name of the program, in parentheses, can hold anything.
        state, above, *others = stat.rpartition(")")[2].split()
        if state not in "ZX":
            yield Process(int(folder.name), others[17]), int(above)


def _listed() -> Iterator[tuple[Process, int]]:
    """Yield the same where there is no /proc, as on macOS."""
    command = ["/bin/ps", "-A", "-o", "pid=,ppid=,stat=,lstart="]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    for line in listing.stdout.splitlines():
        number, above, state, began = line.split(maxsplit=3)
        if not state.startswith("Z"):
            yield Process(int(number), began), int(above)
