"""Events that are twice there, late, malformed, without a time or a key, and no events at all."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline.errors import NotShareableError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Gathered, run_all

SCHEMA = "symbol string, price double, volume bigint, time timestamp"
LOUD = "symbol COLLATE UTF8_LCASE AS loud"
"""A column of a type that cannot travel to a worker."""


def event(symbol: str | None, price: float | None, volume: int | None, time: str | None) -> str:
    values = {"symbol": symbol, "price": price, "volume": volume, "time": time}
    return json.dumps({name: value for name, value in values.items() if value is not None})


EARLY, LATER = "2026-01-01T12:00:00", "2026-01-01T13:00:00"

TRADES: Sequence[Sequence[str]] = (
    [
        event("A", 1.0, 1, EARLY),
        event("A", 1.0, 1, EARLY),  # the same row again is another row
        event("B", math.nan, 2, EARLY),
        event("B", -0.0, 3, EARLY),
        event(None, 2.0, 4, EARLY),
        event("C", None, None, None),
        '{"symbol": "A", "price": 7.0, "volume": 5, "time": "2026-01-0',
        "no JSON at all",
        '{"symbol": "A", "price": "much", "volume": 6, "time": "2026-01-01T12:00:00"}',
    ],
    [],
    [event("A", 3.0, 7, LATER)],
    [event("A", 1.0, 8, EARLY), event("A", 1.0, 9, LATER), event("C", 1.0, 10, None)],
)
QUOTES: Sequence[Sequence[str]] = (
    [
        event("A", 1.0, 11, EARLY),
        event("A", 1.0, 11, EARLY),
        event("B", math.nan, 12, EARLY),
        event("B", 0.0, 13, EARLY),
        event(None, 2.0, 14, EARLY),
        "{",
    ],
    [],
    [event("A", 1.0, 15, LATER)],
    [event("A", 1.0, 16, EARLY)],
)
LATE = {"trades": {8}, "quotes": {16}}
"""By their volumes: the watermark is at 12:58 when they come."""

SELECTIONS = {
    "all": "SELECT symbol, price, volume FROM trades",
    "loud": "SELECT loud, volume FROM trades WHERE volume > 1",
    "null": "SELECT volume FROM trades WHERE symbol IS NULL OR price IS NULL",
    "nan": "SELECT volume FROM trades WHERE price > 100",  # NaN is greater than all
    "zero": "SELECT volume FROM trades WHERE price = 0",
    "never": "SELECT volume FROM trades WHERE price > 50 AND price < 40",
    "quiet": "SELECT volume FROM trades WHERE loud = 'a'",
    "nobody": "SELECT volume FROM trades WHERE symbol = 'Z'",
}
JOINS = {
    "by symbol": """SELECT t.volume tv, q.volume qv FROM trades t JOIN quotes q
                    ON t.symbol = q.symbol
                    AND q.time BETWEEN t.time - INTERVAL 9 SECONDS AND t.time""",
    "at any time": """SELECT t.volume tv, q.volume qv FROM trades t JOIN quotes q
                      ON t.symbol = q.symbol WHERE t.price < 5""",
    "never joined": """SELECT t.volume tv, q.volume qv FROM trades t JOIN quotes q
                       ON t.symbol = q.symbol WHERE t.symbol = 'Z'""",
}
# NaN is equal to NaN, and -0.0 to 0.0: Spark makes them so.
JOINS["by price"] = """SELECT t.volume tv, q.volume qv FROM trades t JOIN quotes q
                       ON t.price = q.price"""
KEPT = {"at any time": "forever", "never joined": "1 hour", "by price": "forever"}
REFUSED = {
    JOINS["by symbol"].replace("t.volume", "t.loud"): "loud",
}


def written(directory: Path, batches: Sequence[Sequence[str]]) -> str:
    """Write a file for each batch."""
    directory.mkdir()
    for number, lines in enumerate(batches):
        path = directory / f"{number}.json"
        path.write_text("".join(f"{line}\n" for line in lines))
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    return str(directory)


def answers(rows: list[Any]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(str, row)) for row in rows)


def test_odd_events(spark: SparkSession, tmp_path: Path) -> None:
    events = {"trades": TRADES, "quotes": QUOTES}
    paths = {name: written(tmp_path / name, batches) for name, batches in events.items()}

    def stream(name: str) -> DataFrame:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.json(paths[name]).withWatermark("time", "2 minutes").selectExpr("*", LOUD)

    streams = {name: stream(name) for name in events}
    sink = Gathered()
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        for name, sql in (SELECTIONS | JOINS).items():
            queries.add(sql, name=name, keep=KEPT.get(name))
        for sql, why in REFUSED.items():
            with pytest.raises(NotShareableError, match=why):
                queries.add(sql, name="refused")
        run_all(queries, sink)
        done = queries.batches().collect()
    late = Counter[str]()
    for row in done:
        late[row["job"]] += row["late"]
    known = {"select trades": 0, "join quotes.0 trades.0": 2}
    (by_price,) = late.keys() - known
    assert late == known | {by_price: 2}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SELECTIONS | JOINS}
    for result in chain.from_iterable(sink.batches.values()):
        found[result["query"]].append(result)
    for name, path in paths.items():
        # Not cached: Spark passes over what is cached where a NaN is greater than all statistics.
        rows = spark.read.schema(SCHEMA).json(path).collect()
        spark.createDataFrame(rows, SCHEMA).selectExpr("*", LOUD).createOrReplaceTempView(name)
    compare(spark, found, SELECTIONS)
    for name, volumes in LATE.items():
        in_time = spark.table(name).where(~F.coalesce(F.col("volume"), F.lit(0)).isin(volumes))
        in_time.createOrReplaceTempView(name)
    compare(spark, found, JOINS)
    assert len(found["by symbol"]) == 3 * 2 + 2 * 2 + 2 * 1
    assert len(found["all"]) == sum(map(len, TRADES))


def compare(
    spark: SparkSession, found: Mapping[str, list[dict[str, Any]]], queries: Mapping[str, str]
) -> None:
    for name, sql in queries.items():
        wanted = spark.sql(sql)
        rows = [[row[column] for column in wanted.columns] for row in found[name]]
        assert answers(rows) == answers(wanted.collect()), name
