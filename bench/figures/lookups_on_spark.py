"""Raman, Deshpande and Hellerstein (2003), Figures 8 and 12, on Spark itself.

Real time, small sizes: sources sleep as those on the virtual clock do, for a part of the time. The
eddy is that of ``watch``, whose rows can be seen as they come.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

import eddyline
from bench.access_methods.sources import DISTINCT, LOOKUP, R_EVERY, ROWS, W_EVERY, Column, source_r
from bench.chart import Points
from bench.figures.figure import Outcome, Setting
from bench.figures.on_spark import session
from bench.turns import in_turns

SCALE: Final = 0.05
"""Seconds for each of the paper's: a lookup takes 50 ms, the scan of W 8.4 s."""

TURNS: Final = 5
EVERY: Final = 0.02
"""Seconds between two looks at what has come."""

POINTS: Final = 40  # of each line

STEMS, INDEX_JOIN = "SteMs", "index join"
HYBRID, HASH_JOIN = "SteMs (hybrid)", "hash join"

NANOSECONDS: Final = 1e9

SCHEMA: Final = "key long, value long"

GIVEN: Final = 1.5
"""So many times the time of the scan an index join is watched."""

BATCH: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
SMALL: Final = "10"
"""Rows that Spark hands on at a time: by default a scan of 1,000 would come all at once."""

LEAST: Final = 20
"""Rows from which on ratios of rows are formed."""


@dataclass(frozen=True, slots=True)
class Came:
    """Rows so far by time, in the paper's seconds since a source began; lookups and keys."""

    rows: Sequence[tuple[float, int]]
    lookups: int = 0
    keys: int = 0

    @property
    def seconds(self) -> float:
        """When the last row came."""
        return self.rows[-1][0]

    @property
    def total(self) -> int:
        """All rows."""
        return self.rows[-1][1]

    def by(self, time: float) -> int:
        """Return the rows that had come by a time."""
        return max((rows for at, rows in self.rows if at <= time), default=0)

    def line(self) -> Points:
        """Return rows over time."""
        return [(t, self.by(t)) for t in np.linspace(0.0, self.seconds, POINTS).tolist()]


class Remote:
    """A table that is asked for one key at a time, and counts."""

    def __init__(self, keys: int, scan: DataFrame | None = None) -> None:
        """Register it, under a name of its own."""
        self.asked: Counter[int] = Counter()
        self.since = float("inf")
        self._keys = keys
        self.name = f"remote_{keys}_{'both' if scan is not None else 'index'}"
        both = {} if scan is None else {"key": ["key"], "scan": scan}
        eddyline.lookup_table(
            session(),
            self.name,
            SCHEMA,
            ["key"],
            eddyline.PythonLookup(self._look),
            max_in_flight=1,
            **both,  # type: ignore[arg-type]
        )

    def forget(self) -> None:
        """Count anew, and note when it is asked first."""
        self.asked.clear()
        self.since = float("inf")

    async def _look(self, keys: list[int]) -> list[tuple[int, int]]:
        self.since = min(self.since, time.monotonic())
        self.asked.update(keys)
        await asyncio.sleep(LOOKUP * SCALE)
        return [(key, 0) for key in keys if key < self._keys]


def scanned(keys: Column, every: float, names: Sequence[str]) -> DataFrame:
    """Return a table of keys, one every so many of the paper's seconds.

    Its other column is the moment, in nanoseconds, at which the scan began.
    """
    key, value = names

    def give(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        due = time.monotonic()
        since = [round(due * NANOSECONDS)]
        for batch in batches:
            for number in batch[key].to_pylist():
                due += every * SCALE
                time.sleep(max(due - time.monotonic(), 0.0))
                yield pa.record_batch({key: [number], value: since})

    table = session().createDataFrame(pa.table({key: keys})).coalesce(1)
    return table.mapInArrow(give, f"{key} long, {value} long")


def relation_r() -> DataFrame:
    """Return R, in one partition: key, and a with 250 distinct values."""
    key, a = source_r()
    return session().createDataFrame(pa.table({"r_key": key, "a": a})).coalesce(1)


def watched(
    frame: DataFrame,
    remote: Remote | None = None,
    until: float = float("inf"),
) -> Came:
    """Watch a query to its end, or until so many of the paper's seconds are over.

    They count from when a source began to be scanned, or was asked first: what Spark takes until
    then is not the sources'.
    """
    if remote is not None:
        remote.forget()
    seen: list[tuple[float, int]] = []
    began = float("inf")
    with eddyline.watch(frame, every=EVERY) as watch:
        for part in watch:
            if not part.total:
                continue
            seen.append((time.monotonic(), part.total))
            for name in {"value", "since"} & set(part.rows.column_names):
                if since := pc.max(part.rows[name]).as_py():
                    began = min(began, since / NANOSECONDS)
            if remote is not None:
                began = min(began, remote.since)
            if seen[-1][0] - began > until * SCALE:
                break
    rows = [((at - began) / SCALE, total) for at, total in seen]
    if remote is None:
        return Came(rows)
    return Came(rows, remote.asked.total(), len(remote.asked))


def by_index_join(frame: DataFrame, keys: int) -> Came:
    """Join with an index in plain Spark: row by row, with a cache, as one partition's function."""

    def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cache: dict[int, bool] = {}
        lookups, since = 0, time.monotonic()
        for batch in batches:
            for key in batch.column("a").to_pylist():
                if key not in cache:
                    lookups += 1
                    time.sleep(LOOKUP * SCALE)
                    cache[key] = key < keys
                if cache[key]:
                    yield pa.record_batch(
                        {
                            "seconds": [time.monotonic() - since],
                            "lookups": [lookups],
                            "keys": [len(cache)],
                        }
                    )

    came = frame.mapInArrow(join, "seconds double, lookups long, keys long").collect()
    rows = [(row.seconds / SCALE, number) for number, row in enumerate(came, 1)]
    return Came(rows, came[-1].lookups, came[-1].keys)


def _median(runs: Sequence[Came], of: Callable[[Came], float]) -> float:
    return statistics.median(map(of, runs))


def spark_index_join(setting: Setting) -> Outcome:
    """Figure 8 (i) and (ii): rows and lookups of Q1, S by index."""
    r = relation_r()
    remote = Remote(DISTINCT)

    def stems() -> Came:
        s = session().table(remote.name)
        return watched(r.join(s, r["a"] == s["key"]), remote)

    runs = in_turns(
        {STEMS: stems, INDEX_JOIN: lambda: by_index_join(r, DISTINCT)},
        1 if setting.quick else TURNS,
        progress=setting.advance,
    )
    if {run.total for of_one in runs.values() for run in of_one} != {ROWS}:
        raise AssertionError("the answers differ")
    distinct = len(set(source_r()[1].tolist()))

    def claimed(stems: Came, join: Came) -> dict[str, object]:
        return {
            "over": stems.seconds / join.seconds,
            "half": stems.by(stems.seconds / 2) / ROWS,
            "half_join": join.by(join.seconds / 2) / ROWS,
            "stems": stems.lookups,
            "join": join.lookups,
            "apart": abs(stems.lookups - join.lookups),
        }

    turns = [claimed(*both) for both in zip(runs[STEMS], runs[INDEX_JOIN], strict=True)]
    return Outcome(
        {
            "rows": ROWS,
            "distinct": distinct,
            "milliseconds": LOOKUP * SCALE * 1e3,
            **medians(turns),
        },
        turns=turns,
        rows={
            name: [
                *(_median(of_one, methodcaller("by", at)) for at in (50.0, 100.0, 150.0)),
                _median(of_one, lambda run: run.seconds),
                _median(of_one, lambda run: run.lookups),
            ]
            for name, of_one in runs.items()
        },
        lines={name: of_one[0].line() for name, of_one in runs.items()},
        data={name: [run.rows for run in of_one] for name, of_one in runs.items()},
    )


def medians(turns: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return the median of each number over turns."""
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}  # type: ignore[type-var]


def spark_hybrid(setting: Setting) -> Outcome:
    """Figure 12: rows of Q4, W by scan, by index or by both."""
    r = scanned(source_r()[0], R_EVERY, ("r_key", "since"))
    scan = scanned(np.random.default_rng(5).permutation(ROWS), W_EVERY, ("key", "value"))
    until = ROWS * W_EVERY * GIVEN
    index, both = Remote(ROWS), Remote(ROWS, scan)

    def joined(w: DataFrame) -> DataFrame:
        return r.join(w, r["r_key"] == w["key"])

    contestants: dict[str, Callable[[], Came]] = {
        INDEX_JOIN: lambda: watched(joined(session().table(index.name)), index, until),
        HASH_JOIN: lambda: watched(joined(scan)),
        HYBRID: lambda: watched(joined(session().table(both.name)), both),
    }
    before = session().conf.get(BATCH)
    session().conf.set(BATCH, SMALL)
    try:
        runs = in_turns(contestants, 1 if setting.quick else TURNS, progress=setting.advance)
    finally:
        session().conf.set(BATCH, before or "10000")
    if {run.total for name in (HASH_JOIN, HYBRID) for run in runs[name]} != {ROWS}:
        raise AssertionError("the answers differ")

    def claimed(by_index: Came, by_hash: Came, hybrid: Came) -> dict[str, object]:
        shares = [
            hybrid.by(at) / best
            for at, _ in by_hash.rows
            if (best := max(by_index.by(at), by_hash.by(at))) >= LEAST
        ]
        return {
            "index_20": by_index.by(20.0),
            "hash_20": by_hash.by(20.0),
            "index_end": by_index.by(by_hash.seconds),
            "hash": by_hash.seconds,
            "hybrid": hybrid.seconds,
            "share": min(shares),
            "over_hash": hybrid.seconds / by_hash.seconds,
            "lookups": hybrid.lookups,
            "keys": hybrid.keys,
        }

    turns = [claimed(*of_turn) for of_turn in zip(*runs.values(), strict=True)]
    return Outcome(
        {
            "rows": ROWS,
            "milliseconds": LOOKUP * SCALE * 1e3,
            "scan": ROWS * W_EVERY * SCALE,
            **medians(turns),
        },
        turns=turns,
        rows={
            name: [
                *(_median(of_one, methodcaller("by", at)) for at in (20.0, 50.0, 100.0, 150.0)),
                _median(of_one, lambda run: run.seconds),
            ]
            for name, of_one in runs.items()
        },
        lines={name: of_one[0].line() for name, of_one in runs.items()},
        data={name: [run.rows for run in of_one] for name, of_one in runs.items()},
    )
