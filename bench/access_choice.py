"""``make bench ARGS=access-choice``: a remote table that can be looked up and scanned.

It has 2 million rows. A call for one key takes 20 ms, 16 are under way at a time, and a scan takes
60 s; all of these times are divided by ``--faster``, 3 unless another number is given: what Spark
itself takes is not. Joined with it are 1, 100, 10,000 and all of its keys. Each case runs three
ways, by turns: looked up, scanned by plain Spark, and as ``adapt`` chooses; what it takes is
compared with the better of the other two, turn by turn. All keys are not looked up alone: that
would take 40 times as long as the scan. Nor is it scanned for 1 and 100 keys, in 100 times as long
as these take.

Then a table with two ways to its rows: 2,000 keys, or 200 groups of ten, for which a call takes as
long, or 50 times as long. Each way is measured by itself, and both as they compete.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

import eddyline
from bench.turns import Spread, in_turns

ROWS: Final = 2_000_000
KEYS: Final = (1, 100, 10_000, ROWS)
FEW: Final = 100
"""Keys for which nobody would scan."""
CALL: Final = 0.02
SCAN: Final = 60.0
WIDTH: Final = 16
FASTER: Final = 3.0
BATCH: Final = 10_000
TASKS: Final = 2

BOUND: Final = 1.15
"""How much longer than the better way the choice may take."""

LOOKED_UP, SCANNED, CHOSEN = "looked up", "scanned", "chosen"

SCHEMA: Final = "key long, value double"

GROUPS: Final = 200
"""Groups of keys that are wanted."""
OF_GROUP: Final = 10
"""Keys in each."""
SLOW: Final = 50
"""How many times as long a call for a group takes in the second case."""

BY_KEY, BY_GROUP = "by key", "by group"


class Remote:
    """The table, and for which keys it was asked."""

    def __init__(self, spark: SparkSession, faster: float) -> None:
        """Register it twice: as what can be scanned as well, and as what cannot."""
        self.asked: Counter[int] = Counter()
        self._call = CALL / faster
        self.scan = self._scan(spark, SCAN / faster)
        source = eddyline.PythonLookup(self._look)
        eddyline.lookup_table(spark, "looked_up", SCHEMA, ["key"], source, max_in_flight=WIDTH)
        eddyline.lookup_table(
            spark,
            "chosen",
            SCHEMA,
            ["key"],
            source,
            max_in_flight=WIDTH,
            key=["key"],
            scan=self.scan,
            scan_seconds=SCAN / faster,
        )

    async def _look(self, keys: list[int]) -> list[tuple[int, float]]:
        self.asked.update(keys)
        await asyncio.sleep(self._call)
        return [(key, key / 2) for key in keys]

    @staticmethod
    def _scan(spark: SparkSession, seconds: float) -> DataFrame:
        pause = seconds * TASKS * BATCH / ROWS

        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            due = time.monotonic()
            for batch in batches:
                for start in range(0, batch.num_rows, BATCH):
                    part = batch.slice(start, BATCH)
                    due += pause * part.num_rows / BATCH
                    time.sleep(max(due - time.monotonic(), 0.0))
                    yield part

        numbers = spark.range(0, ROWS, 1, TASKS).selectExpr("id AS key", "id / 2 AS value")
        return numbers.mapInArrow(rows, SCHEMA)


def ways(
    spark: SparkSession, remote: Remote, keys: int, folder: Path
) -> dict[str, Callable[[], tuple[float, int]]]:
    """Return what is compared: each gives its seconds, and the most requests for a key."""
    path = str(folder / f"access-choice-{keys}.parquet")
    every = ROWS // keys
    wanted = spark.range(0, ROWS, every, TASKS).selectExpr("id AS wanted")
    wanted.write.mode("overwrite").parquet(path)
    few = spark.read.parquet(path)

    def run(table: DataFrame, *, adapted: bool) -> tuple[float, int]:
        remote.asked.clear()
        began = time.perf_counter()
        joined = few.join(table, few["wanted"] == table["key"]).selectExpr(
            "count(*) AS rows", "sum(value) AS total"
        )
        (row,) = (eddyline.adapt(joined) if adapted else joined).collect()
        seconds = time.perf_counter() - began
        if (row.rows, row.total) != (keys, sum(range(0, ROWS, every)) / 2):
            raise AssertionError(f"{keys} keys: {row}")
        return seconds, max(remote.asked.values(), default=0)

    compared = {
        LOOKED_UP: lambda: run(spark.table("looked_up"), adapted=True),
        SCANNED: lambda: run(remote.scan, adapted=False),
        CHOSEN: lambda: run(spark.table("chosen"), adapted=True),
    }
    if keys == ROWS:
        del compared[LOOKED_UP]
    if keys <= FEW:
        del compared[SCANNED]
    return compared


class TwoWays:
    """A table whose rows are found by their keys, and by the groups of these."""

    def __init__(self, spark: SparkSession, seconds: Mapping[str, float]) -> None:
        """Register it by each way, and by both; ``seconds`` is what a call takes."""
        self.asked: Counter[str] = Counter()
        schema = "key long, gang long, value double"
        gang = f"id DIV {OF_GROUP} AS gang"
        scan = spark.range(ROWS).selectExpr("id AS key", gang, "id / 2 AS value")
        methods = {
            BY_KEY: eddyline.LookupMethod(["key"], self._source(BY_KEY, seconds, 1)),
            BY_GROUP: eddyline.LookupMethod(["gang"], self._source(BY_GROUP, seconds, OF_GROUP)),
        }
        for name, (first, *also) in {
            BY_KEY: [methods[BY_KEY]],
            BY_GROUP: [methods[BY_GROUP]],
            CHOSEN: list(methods.values()),
        }.items():
            eddyline.lookup_table(
                spark,
                name.replace(" ", "_"),
                schema,
                first.bind,
                first.source,
                also=also,
                key=["key"],
                scan=scan,
                scan_seconds=SCAN,
            )

    def _source(self, way: str, seconds: Mapping[str, float], rows: int) -> eddyline.PythonLookup:
        async def look(values: list[int]) -> list[tuple[int, int, float]]:
            self.asked[way] += 1
            await asyncio.sleep(seconds[way])
            keys = [value * rows + number for value in values for number in range(rows)]
            return [(key, key // OF_GROUP, key / 2) for key in keys]

        return eddyline.PythonLookup(look)


def competing(
    spark: SparkSession, seconds: Mapping[str, float], folder: Path
) -> dict[str, Callable[[], tuple[float, Counter[str]]]]:
    """Return each way by itself, and both: each gives its seconds, and requests by way."""
    table = TwoWays(spark, seconds)
    path = str(folder / "access-choice-groups.parquet")
    numbers = spark.range(0, GROUPS * OF_GROUP, 1, TASKS)
    key = f"id DIV {OF_GROUP} * {ROWS // GROUPS} + id % {OF_GROUP}"
    wanted = numbers.selectExpr(f"{key} AS wanted").selectExpr(
        "wanted", f"wanted DIV {OF_GROUP} AS wanted_gang"
    )
    wanted.write.mode("overwrite").parquet(path)
    few = spark.read.parquet(path)

    def run(name: str) -> tuple[float, Counter[str]]:
        table.asked.clear()
        began = time.perf_counter()
        rows = spark.table(name.replace(" ", "_"))
        on = (few["wanted"] == rows["key"]) & (few["wanted_gang"] == rows["gang"])
        joined = few.join(rows, on).selectExpr("count(*) AS rows", "sum(value - wanted / 2) AS off")
        (row,) = eddyline.adapt(joined).collect()
        taken = time.perf_counter() - began
        if (row.rows, row.off) != (GROUPS * OF_GROUP, 0.0):
            raise AssertionError(f"{name}: {row}")
        return taken, Counter(table.asked)

    return {name: partial(run, name) for name in (BY_KEY, BY_GROUP, CHOSEN)}


def measured_ways(spark: SparkSession, turns: int, folder: Path) -> tuple[Table, dict[str, object]]:
    """Return what ways that compete take, as a table and as data."""
    keys = GROUPS * OF_GROUP
    table = Table(title=f"{keys:,} keys, or {GROUPS} groups: two ways to the same rows")
    for column in ("a call for a group", BY_KEY, BY_GROUP, CHOSEN, "over the better", "requests"):
        table.add_column(column, justify="right")
    results: dict[str, object] = {}
    for longer in (1, SLOW):
        found = in_turns(competing(spark, {BY_KEY: CALL, BY_GROUP: CALL * longer}, folder), turns)
        seconds = {way: [taken for taken, _ in runs] for way, runs in found.items()}
        better = list(map(min, seconds[BY_KEY], seconds[BY_GROUP]))
        ratio = Spread.of(own / best for own, best in zip(seconds[CHOSEN], better, strict=True))
        _, asked = found[CHOSEN][-1]
        requests = f"{asked[BY_KEY]:,} + {asked[BY_GROUP]:,}"
        spreads = [str(Spread.of(seconds[way])) for way in (BY_KEY, BY_GROUP, CHOSEN)]
        table.add_row(f"{CALL * longer:g} s", *spreads, str(ratio), requests)
        results[f"{longer} times"] = {"seconds": seconds, "ratio": ratio.median, "requests": asked}
    return table, results


def main(arguments: Sequence[str]) -> int:
    """Run all cases; print and write what was measured; 1 where one misses its bound."""
    parser = argparse.ArgumentParser(prog="python -m bench access-choice", description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--faster", type=float, default=FASTER)
    parser.add_argument("--keys", type=int, nargs="+", default=KEYS)
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    spark = eddyline.session("eddyline-bench-access-choice", master=f"local[{TASKS}]")
    remote = Remote(spark, given.faster)
    title = f"A source that is looked up or scanned, all times divided by {given.faster:g}"
    table = Table(title=title)
    columns = ("keys", LOOKED_UP, SCANNED, CHOSEN, "over the better", "requests a key", "bound")
    for column in columns:
        table.add_column(column, justify="right")
    results = {}
    missed = 0
    for keys in given.keys:
        found = in_turns(ways(spark, remote, keys, given.out), given.turns)
        seconds = {way: [taken for taken, _ in runs] for way, runs in found.items()}
        others = [taken for way, taken in seconds.items() if way != CHOSEN]
        better = list(map(min, zip(*others, strict=True)))
        ratio = Spread.of(own / best for own, best in zip(seconds[CHOSEN], better, strict=True))
        requests = max(most for _, most in found[CHOSEN])
        kept = ratio.median <= BOUND and requests <= 1
        missed += not kept
        spreads = [
            str(Spread.of(seconds[way])) if way in seconds else "-"
            for way in (LOOKED_UP, SCANNED, CHOSEN)
        ]
        said = "kept" if kept else "missed"
        table.add_row(f"{keys:,}", *spreads, str(ratio), str(requests), said)
        results[keys] = {"seconds": seconds, "ratio": ratio.median, "requests": requests}
    ways_table, ways_results = measured_ways(spark, given.turns, given.out)
    spark.stop()
    console = Console(width=140)
    console.print(table)
    console.print(ways_table)
    written = {
        "faster": given.faster,
        "turns": given.turns,
        "keys": results,
        "ways": ways_results,
    }
    (given.out / "access_choice.json").write_text(json.dumps(written, indent=1))
    return int(missed > 0)
