"""``make bench ARGS=access-choice``: a remote table that can be looked up and scanned.

It has 2 million rows. A call for one key takes 20 ms, 16 are under way at a time, and a scan takes
60 s; all of these times are divided by ``--faster``, 3 unless another number is given: what Spark
itself takes is not. Joined with it are 1, 100, 10,000 and all of its keys. Each case runs three
ways, by turns: looked up, scanned by plain Spark, and as ``adapt`` chooses; what it takes is
compared with the better of the other two, turn by turn. All keys are not looked up alone: that
would take 40 times as long as the scan.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
    return compared


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
    spark.stop()
    Console(width=140).print(table)
    written = {"faster": given.faster, "turns": given.turns, "keys": results}
    (given.out / "access_choice.json").write_text(json.dumps(written, indent=1))
    return int(missed > 0)
