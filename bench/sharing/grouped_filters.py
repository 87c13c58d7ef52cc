"""Grouped filters: events a second by the number of queries, beside DuckDB's range joins.

Each query asks for a range in both of two columns; ranges are so wide that an event has one
match for every 1,000 queries. One thread each, and the same pairs of event and query.
Then lineage: numbers of sets beside a bitmap for each tuple.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from bench.turns import Spread, Turns, take_turns
from eddyline.expressions import Argument
from eddyline.standing.engine.grouped_filter import GroupedFilter
from eddyline.standing.engine.lineage import LineageSets
from eddyline.standing.engine.ranges import Box, Range

EDDYLINE, BITMAPS = "Eddyline", "bitmaps"
DUCKDB: Mapping[str, str] = {
    "DuckDB, as written": """
        SELECT count(*), sum(id) FROM events JOIN queries
        ON a BETWEEN a1 AND a2 AND b BETWEEN b1 AND b2""",
    "DuckDB, one range first": """
        WITH halfway AS MATERIALIZED (
            SELECT id, b, b1, b2 FROM events JOIN queries ON a BETWEEN a1 AND a2
        )
        SELECT count(*), sum(id) FROM halfway WHERE b BETWEEN b1 AND b2""",
    "DuckDB, cells by hand": """
        WITH stripes AS (
            SELECT *, unnest(range(a1 // 16000, a2 // 16000 + 1)) AS i FROM queries
        ), cells AS (
            SELECT *, unnest(range(b1 // 16000, b2 // 16000 + 1)) AS j FROM stripes
        )
        SELECT count(*), sum(id) FROM events JOIN cells
        ON a // 16000 = i AND b // 16000 = j AND a BETWEEN a1 AND a2 AND b BETWEEN b1 AND b2""",
}
"""The same join in three ways; the last is no range join any more, but what an expert writes."""

VALUES = 1_000_000
VECTOR = 1 << 16
TARGETS = {1_000: 5.0, 10_000: 1.5, 100_000: 0.5}
"""Millions of events a second by the number of queries."""

DUCK_TARGET = 3.0
COLUMNS = (Argument(0, pa.int64()), Argument(1, pa.int64()))
LINEAGE_TARGET = 16.0
"""Bytes a stored tuple at 10,000 queries."""

Pairs = tuple[int, int]
"""How many pairs of event and query there are, and their checksum."""


@dataclass(frozen=True)
class Workload:
    """Queries and events."""

    least: npt.NDArray[np.int64]
    greatest: npt.NDArray[np.int64]
    events: npt.NDArray[np.int64]

    @classmethod
    def made(cls, queries: int, events: int) -> Workload:
        """Make one, the same for the same sizes."""
        generator = np.random.default_rng(queries)
        width = int(VALUES * 0.001**0.5)
        least = generator.integers(0, VALUES, (queries, 2))
        return cls(least, least + width, generator.integers(0, VALUES, (events, 2)))

    def boxes(self) -> Mapping[int, Sequence[Box]]:
        """Return the queries as boxes."""
        return {
            query: (
                {
                    column: Range((low, 0), (high, 0))
                    for column, low, high in zip(COLUMNS, lows, highs, strict=True)
                },
            )
            for query, (lows, highs) in enumerate(
                zip(self.least.tolist(), self.greatest.tolist(), strict=True)
            )
        }


def by_grouped_filter(filter_: GroupedFilter, events: npt.NDArray[np.int64]) -> Pairs:
    """Return the pairs, vector by vector."""
    pairs, checksum = 0, 0
    for start in range(0, len(events), VECTOR):
        found = filter_.satisfied_by(events[start : start + VECTOR])
        pairs += len(found.queries)
        checksum += int(found.queries.sum(dtype=np.int64))
    return pairs, checksum


def by_duckdb(connection: duckdb.DuckDBPyConnection, sql: str) -> Pairs:
    """Return the pairs, by a join."""
    row = connection.execute(sql).fetchone()
    if row is None:
        raise AssertionError("an aggregate has a row")
    return int(row[0]), int(row[1] or 0)


def measured(queries: int, events: int, turns: int, *, duck: bool) -> Turns:
    """Time the contestants over so many queries and events."""
    work = Workload.made(queries, events)
    filter_ = GroupedFilter(work.boxes())
    filter_.prepare()
    contestants: dict[str, Callable[[], object]] = {
        EDDYLINE: partial(by_grouped_filter, filter_, work.events)
    }
    if duck:
        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        given = {
            "events": pa.table({"a": work.events[:, 0], "b": work.events[:, 1]}),
            "queries": pa.table(
                {
                    "id": np.arange(queries),
                    "a1": work.least[:, 0],
                    "a2": work.greatest[:, 0],
                    "b1": work.least[:, 1],
                    "b2": work.greatest[:, 1],
                }
            ),
        }
        for name, table in given.items():
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {name} AS FROM given")
            connection.unregister("given")
        for name, sql in DUCKDB.items():
            contestants[name] = partial(by_duckdb, connection, sql)
    return take_turns(contestants, turns=turns)


def lineage_bytes(queries: int, tuples: int) -> tuple[float, int]:
    """Return the bytes that lineage takes a stored tuple, and how many distinct sets there are.

    Queries ask for a range of one column and, for nine in ten, of a symbol; a tuple's lineage is
    one number, and the sets are shared.
    """
    generator = np.random.default_rng(1)
    symbols = generator.integers(0, 500, queries)
    lows = generator.integers(0, 100, queries)
    boxes: dict[int, Sequence[Box]] = {
        query: (
            {
                **({COLUMNS[0]: Range.of(int(symbols[query]))} if query % 10 else {}),
                COLUMNS[1]: Range((int(lows[query]) * 1_000, 0), None),
            },
        )
        for query in range(queries)
    }
    filter_, sets = GroupedFilter(boxes), LineageSets()
    events = np.stack(
        [generator.integers(0, 500, tuples), generator.integers(0, 100_000, tuples)], axis=1
    )
    for start in range(0, tuples, VECTOR):
        filter_.lineages_of(events[start : start + VECTOR], sets)
    return 4 + sets.nbytes / tuples, len(sets)


def intersections(queries: int, pairs: int, turns: int) -> Turns:
    """Time intersections of lineages, by number and bit by bit, over the same pairs."""
    generator = np.random.default_rng(2)
    distinct = 500
    members = generator.random((distinct, queries)) < 0.01  # noqa: PLR2004 - a hundredth
    sets = LineageSets()
    numbers = np.array([sets.number(np.flatnonzero(row).tolist()) for row in members], np.int32)
    picked = generator.integers(0, distinct, (2, pairs))
    ones, others = numbers[picked[0]], numbers[picked[1]]
    bits = np.packbits(members, axis=1)

    def by_number() -> int:
        return int(np.count_nonzero(sets.common(ones, others)))

    def by_bits() -> int:
        alive = 0
        for start in range(0, pairs, VECTOR):
            some = slice(start, start + VECTOR)
            alive += int((bits[picked[0, some]] & bits[picked[1, some]]).any(axis=1).sum())
        return alive

    return take_turns({EDDYLINE: by_number, BITMAPS: by_bits}, turns=turns)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and tell whether the targets were met."""
    parser = argparse.ArgumentParser(prog="bench sharing", description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--events", type=int, default=1 << 18, help="for 1,000 queries")
    options = parser.parse_args(arguments)
    console = Console()
    table = Table("queries", "matches an event", "million events/s", "asked")
    opponents = Table("1,000 queries", "seconds", "over Eddyline's")
    met = True
    for queries, target in TARGETS.items():
        events = max(options.events * 1_000 // queries, VECTOR)
        turns = measured(queries, events, options.turns, duck=queries == min(TARGETS))
        speed = Spread.of(events / seconds / 1e6 for seconds in turns.seconds[EDDYLINE])
        met &= speed.median >= target
        matches = f"{turns.answer[0] / events:.2f}"
        table.add_row(f"{queries:,}", matches, str(speed), f"{target}")
        for name in DUCKDB if len(turns.seconds) > 1 else ():
            over = turns.ratio(name, EDDYLINE)
            met &= over.median >= DUCK_TARGET or "by hand" in name
            opponents.add_row(name, str(Spread.of(turns.seconds[name])), str(over))
    console.print(table)
    console.print(opponents)
    bytes_, sets = lineage_bytes(10_000, 1_000_000)
    met &= bytes_ <= LINEAGE_TARGET
    console.print(
        f"Lineage of 1,000,000 tuples at 10,000 queries: {bytes_:.1f} bytes a tuple with "
        f"{sets:,} distinct sets (asked: {LINEAGE_TARGET:.0f}); as bitmaps 1,250."
    )
    for queries in (256, 10_000):
        turns = intersections(queries, 1 << 20, options.turns)
        console.print(
            f"A million intersections at {queries:,} queries: "
            f"{turns.median(EDDYLINE) * 1e3:.0f} ms; as bitmaps "
            f"{turns.ratio(BITMAPS, EDDYLINE)} times that."
        )
    return 0 if met else 1
