"""What was stored for queries that are dropped goes with the next batches, in Spark's store too."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eddyline.standing.standing_queries import StandingQueries
from eddyline.standing.tasks.cell_state import _ROWS
from tests.standing.feeds import Feed, Gathered
from tests.standing.test_standing_queries import SCHEMA, START, events

JOIN = """SELECT t.symbol, t.volume tv, q.volume qv FROM trades t JOIN quotes q
          ON t.symbol = q.symbol AND q.time BETWEEN t.time AND t.time + INTERVAL 1 HOUR
          WHERE t.price > {}"""

PATIENCE = 90.0
"""Seconds that a batch is waited for."""


def in_store(spark: SparkSession, state: Path) -> int:
    """The blobs of rows in Spark's state store; read from a copy, as reading locks it."""
    checkpoint = state / "jobs" / "join quotes.0 trades.0" / "checkpoint"
    copied = state.parent / "copied"
    shutil.copytree(checkpoint, copied)
    store = spark.read.format("statestore").option("path", str(copied))
    kept = store.option("stateVarName", "kept").load()
    return kept.where(kept["user_map_key"]["kind"] == _ROWS).count()


def until(done: Callable[[], bool], queries: StandingQueries) -> None:
    waited_until = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < waited_until
        queries.await_termination(0.2)  # raises what ended the job


def test_a_job_whose_queries_all_go_and_that_gets_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    feeds = [Feed(spark, tmp_path / n, SCHEMA, ("time", "2 hours")) for n in ("trades", "quotes")]
    state = tmp_path / "state"

    def give(seed: int, number: int) -> None:
        for place, feed in enumerate(feeds):
            feed.give(events(seed + place, number, 60))

    def ran(version: int, rows: int) -> bool:
        taken = queries.batches().where(f"version = {version}").agg({"rows_in": "sum"})
        return bool(taken.collect()[0][0] == rows)

    give(1, 200)
    streams = {name: feed.stream() for name, feed in zip(("trades", "quotes"), feeds, strict=True)}
    sink = Gathered()
    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.add(JOIN.format(10), name="first")
        queries.start(sink, processingTime="0 seconds")
        with pytest.raises(RuntimeError, match="run already"):
            queries.start(sink)
        until(lambda: ran(1, 400), queries)
        assert queries.stems().agg({"rows": "sum"}).collect()[0][0] > 0
        queries.drop("first")
        for feed in feeds:  # of one key: one cell has rows, and the others are woken
            feed.give([("A", 50.0, 1, START)])
        until(lambda: ran(2, 2), queries)
        stems = queries.stems().collect()
        assert len(stems) == 4
        assert {(row.rows, row.blobs) for row in stems} == {(0, 0)}
        queries.add(JOIN.format(50), name="second")
        give(3, 20)
        until(lambda: ran(3, 40), queries)
        blobs = sum(row.blobs for row in queries.stems().collect())
    assert {row["query"] for batch in sink.batches.values() for row in batch} == {"first", "second"}
    assert in_store(spark, state) == blobs > 0
