"""``python -m bench soak``: thousands of queries in sessions that last, and what they leave behind.

Three drivers run the same queries in turns, while the others wait: plain Spark, each query adapted,
and a session that is adapted as a whole. Exits with 1 where a bound is not met.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.report import WIDTH, argument_parser, progress
from bench.soak.child import Child, Stretch, queries

MODES: Final = ("plain", "adapt", "enable")

FIRST: Final = 100
"""Queries after which everything is there that a session keeps."""

STRETCH: Final = 300
"""Queries of one driver, before it is the next one's turn."""

DRIVER: Final = 1.0
"""Kilobytes that a driver may grow by a query, above plain Spark's."""

HEAP: Final = 1.1
"""The JVM's growth over plain Spark's."""


def main(arguments: Sequence[str]) -> int:
    """Run the soak."""
    parser = argument_parser("bench soak", __doc__, turns=None)
    parser.add_argument("--queries", type=int, default=5_000, help="of each driver")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    options = parser.parse_args(arguments)
    sizes = [FIRST]
    while sum(sizes) < options.queries:
        sizes.append(min(STRETCH, options.queries - sum(sizes)))
    children = [Child(queries, mode) for mode in options.modes]
    found: dict[str, list[Stretch]] = {mode: [] for mode in options.modes}
    with progress(len(children) * len(sizes)) as advance:
        for size in sizes:
            for child in children:
                found[child.mode].append(child.run(size))
                advance()
    for child in children:
        child.end()
    console = Console(width=WIDTH)
    for mode, stretches in found.items():
        console.print(_table(mode, stretches))
    options.out.mkdir(parents=True, exist_ok=True)
    written = {mode: [asdict(each) for each in stretches] for mode, stretches in found.items()}
    (options.out / "soak.json").write_text(json.dumps(written, indent=1))
    failures = _failures(found)
    for failure in failures:
        console.print(failure)
    return 1 if failures else 0


def _table(mode: str, stretches: Sequence[Stretch]) -> Table:
    table = Table(
        "queries",
        "ms a query",
        "threads",
        "descriptors",
        "JVM's threads",
        "driver, MB",
        "KB a query",
        "heap, MB",
        "KB a query",
        title=mode,
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
        )
    return table


def _failures(found: dict[str, list[Stretch]]) -> list[str]:
    failures = []
    plain = found.get("plain")
    for mode, stretches in found.items():
        first, last = stretches[0].held, stretches[-1].held
        grown = last.handles.threads - first.handles.threads
        opened = last.handles.descriptors - first.handles.descriptors
        if grown > 0 or opened > 0:
            failures.append(f"{mode}: {grown} threads and {opened} descriptors more")
        if plain is None or mode == "plain":
            continue
        done = sum(each.queries for each in stretches[1:])
        own = (last.driver - first.driver) - (plain[-1].held.driver - plain[0].held.driver)
        if own / done > DRIVER:
            failures.append(f"{mode}: the driver grew by {own / done:.2f} KB a query above plain")
        heap = (last.heap - first.heap) / (plain[-1].held.heap - plain[0].held.heap)
        if heap > HEAP:
            failures.append(f"{mode}: the heap grew {heap:.2f} times as much as plain")
    return failures
