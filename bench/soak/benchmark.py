"""``python -m bench soak``: sessions that last, what they leave behind, and how fast they end.

Queries: three drivers run the same thousands of queries in turns, while the others wait: plain
Spark, each query adapted, and a session that is adapted as a whole. Then a stream, standing
queries that come and go, twenty sessions at once under the plug-in, and the web service of the
documentation; all but the standing queries run beside plain Spark as well. Exits with 1 where a
bound is not met.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.report import WIDTH, argument_parser, progress
from bench.soak.child import Child, Stretch, queries
from bench.soak.sessions import sessions
from bench.soak.streams import part

PLAIN: Final = "plain"

Serve = Callable[[str, Connection], None]

PARTS: Final[Mapping[str, tuple[Serve, tuple[str, ...], int]]] = {
    "queries": (queries, (PLAIN, "adapt", "enable"), 5_000),
    "stream": (partial(part, "stream"), (PLAIN, "enable"), 2_000),
    "standing": (partial(part, "standing"), ("enable",), 2_000),
    "sessions": (sessions, (PLAIN, "plug-in"), 4_000),
    "service": (partial(part, "service"), (PLAIN, "enable"), 2_000),
}
"""What runs, in which modes, and how many times by default."""

LEVEL: Final = frozenset({"stream", "standing", "service", "sessions"})
"""Parts whose queries are all alike, and so must come to a level: see `failures_of`."""

FIRST: Final = 100
"""Runs after which everything is there that a session keeps."""

STRETCH: Final = 500
"""Runs of one driver, before it is the next one's turn."""

DRIVER: Final = 1.0
"""Kilobytes that a driver may grow by a run, above plain Spark's."""

HEAP: Final = 1.1
"""The JVM's growth over plain Spark's."""

NOISE: Final = 0.1
"""Kilobytes a run by which a heap may seem to grow that does not."""

SLOWER: Final = 1.1
"""The time of the last thousand runs over that of the first after the beginning."""


def main(arguments: Sequence[str]) -> int:
    """Run the soak."""
    parser = argument_parser("bench soak", __doc__, turns=None)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--runs", type=int, help="of each driver; by default as many as it takes")
    parser.add_argument("--modes", nargs="+", help="some of the modes alone")
    options = parser.parse_args(arguments)
    failures = []
    for name in options.parts:
        serve, modes, usual = PARTS[name]
        chosen = [mode for mode in modes if not options.modes or mode in options.modes]
        found = _run(serve, chosen, options.runs or usual)
        console = Console(width=WIDTH)
        for mode, stretches in found.items():
            console.print(_table(f"{name}, {mode}", stretches))
        _write(options.out, name, found)
        missed = [f"{name}, {each}" for each in failures_of(found, level=name in LEVEL)]
        for failure in missed:
            console.print(failure)
        failures += missed
    return 1 if failures else 0


def _run(serve: Serve, modes: Sequence[str], runs: int) -> dict[str, list[Stretch]]:
    sizes = [min(FIRST, runs)]
    while sum(sizes) < runs:
        sizes.append(min(STRETCH, runs - sum(sizes)))
    children = [Child(serve, mode) for mode in modes]
    found: dict[str, list[Stretch]] = {mode: [] for mode in modes}
    with progress(len(children) * len(sizes)) as advance:
        for number, size in enumerate(sizes, start=1):
            advance(f"{sum(sizes[:number]):,} of {runs:,}")
            for child in children:
                found[child.mode].append(child.run(size))
                advance()
    for child in children:
        child.end()
    return found


def _write(folder: Path, name: str, found: Mapping[str, Sequence[Stretch]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    written = {mode: [asdict(each) for each in stretches] for mode, stretches in found.items()}
    (folder / f"soak-{name}.json").write_text(json.dumps(written, indent=1))


def _table(title: str, stretches: Sequence[Stretch]) -> Table:
    table = Table(
        "runs",
        "ms a run",
        "threads",
        "descriptors",
        "JVM's threads",
        "driver, MB",
        "KB a run",
        "heap, MB",
        "KB a run",
        "workers, MB",
        "files, kB",
        title=title,
    )
    done = 0
    for before, each in pairwise([None, *stretches]):
        if each is None:
            continue
        done += each.queries
        now = each.held
        driver = heap = ""
        if before is not None:
            driver = f"{(now.driver - before.held.driver) / each.queries:.2f}"
            heap = f"{(now.heap - before.held.heap) / each.queries:.1f}"
        table.add_row(
            f"{done:,}",
            f"{1000 * each.seconds / each.queries:.0f}",
            *(str(value) for value in asdict(now.handles).values()),
            f"{now.driver / 1024:.1f}",
            driver,
            f"{now.heap / 1024:.1f}",
            heap,
            f"{now.workers / 1024:.1f}",
            f"{each.files:,.0f}",
        )
    return table


def failures_of(found: Mapping[str, Sequence[Stretch]], *, level: bool = False) -> list[str]:
    """Return which bounds are not met, in words; without plain Spark it counts as level.

    What must be ``level`` may fill what it keeps in the first half of its runs, and grow in the
    second by no more than DRIVER a run above plain Spark, in the driver as in the heap.
    """
    failures = []
    plain = found.get(PLAIN)
    for mode, stretches in found.items():
        if mode == PLAIN or len(stretches) < 2:  # noqa: PLR2004 - a beginning and an end
            continue
        # What plain Spark leaves behind is its own, as a connection for each stream.
        threads, descriptors = (
            own - max(0, spark) for own, spark in zip(_left(stretches), _left(plain), strict=True)
        )
        if threads > 0 or descriptors > 0:
            failures.append(f"{mode}: {threads} threads and {descriptors} descriptors more")
        start = _half(stretches) if level else 0
        own = _grown(stretches, "driver", start) - _grown(plain, "driver", start)
        if own > DRIVER:
            failures.append(f"{mode}: the driver grew by {own:.2f} KB a run above plain")
        slower = _slower(stretches)
        if slower > SLOWER:
            failures.append(f"{mode}: {slower:.2f} times as slow at the end")
        heap = _grown(stretches, "heap", start)
        spark = _grown(plain, "heap", start)
        if level:
            if heap - max(0.0, spark) > DRIVER:
                failures.append(f"{mode}: the heap grew by {heap:.2f} KB a run")
        elif plain is not None and (times := heap / max(spark, NOISE)) > HEAP:
            failures.append(f"{mode}: the heap grew {times:.2f} times as much as plain")
    return failures


def _left(stretches: Sequence[Stretch] | None) -> tuple[int, int]:
    if not stretches:
        return 0, 0
    first, last = stretches[0].held.handles, stretches[-1].held.handles
    return last.threads - first.threads, last.descriptors - first.descriptors


def _half(stretches: Sequence[Stretch]) -> int:
    """Return the first stretch after which half of all runs are done, but for the last one."""
    runs = [each.queries for each in stretches]
    done = [sum(runs[: number + 1]) for number in range(len(runs))]
    return next(n for n, each in enumerate(done[:-1]) if each >= done[-1] / 2 or n == len(runs) - 2)


def _grown(stretches: Sequence[Stretch] | None, what: str, start: int) -> float:
    """Return the kilobytes a run by which something has grown since the end of a stretch."""
    if not stretches:
        return 0.0
    first, last = (float(getattr(each.held, what)) for each in (stretches[start], stretches[-1]))
    return (last - first) / sum(each.queries for each in stretches[start + 1 :])


def _slower(stretches: Sequence[Stretch]) -> float:
    seconds = [each.seconds / each.queries for each in stretches[1:]]
    thousand = max(1, 1_000 // STRETCH)
    return median(seconds[-thousand:]) / median(seconds[:thousand])
