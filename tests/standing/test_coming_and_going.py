"""Standing queries come, go, stop and begin again: each has what it stood for, and that once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from eddyline.errors import NotShareableError
from eddyline.standing import standing_queries
from eddyline.standing.sinks import Batch, ParquetSink
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import (
    Answers,
    Feed,
    Gathered,
    answers_in,
    expected,
    given_shares,
    run_all,
)
from tests.standing.test_standing_queries import (
    JOINS,
    SELECTIONS,
    events,
    quotes_in,
    trades_in,
)

pytestmark = pytest.mark.slow(40)

BOTH = JOINS["both"]


@pytest.fixture
def trades(spark: SparkSession, tmp_path: Path) -> Feed:
    return trades_in(spark, tmp_path)


@pytest.fixture
def quotes(spark: SparkSession, tmp_path: Path) -> Feed:
    return quotes_in(spark, tmp_path)


def above(price: int) -> str:
    """Return the join of trades with another least price."""
    return BOTH.replace("60", str(price))


def test_queries_come_and_go(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    sink = Gathered()

    def opened() -> StandingQueries:
        streams = {"trades": trades.stream(), "quotes": quotes.stream()}
        return StandingQueries(spark, streams=streams, state=tmp_path / "state")

    with opened() as queries:
        queries.add(SELECTIONS["dear"], name="dear")
        queries.add(BOTH, name="both")
        queries.add(above(0), name="all")
        queries.add(above(10), name="dropped")
        queries.add(SELECTIONS["prefix"], name="replaced")
        run_all(queries, sink)
    for feed, seed in ((trades, 50), (quotes, 60)):
        for number in range(3, 5):
            feed.give(events(seed + number, 200, 60 * number))
    with opened() as queries:
        queries.drop("dropped")
        queries.replace("replaced", SELECTIONS["either"])
        queries.add(SELECTIONS["unknown"], name="late")
        queries.add(above(30), name="later")
        queries.add(BOTH, name="back", backfill="1 hour")
        queries.add(BOTH, name="blind")
        with pytest.raises(NotShareableError, match="start with history="):
            queries.add(SELECTIONS["dear"], name="bad", backfill="1 hour")
        with pytest.raises(ValueError, match="no interval"):
            queries.add(BOTH, name="bad", backfill="soon")
        queries.pause("dear")
        run_all(queries, sink)
    for feed, seed in ((trades, 70), (quotes, 80)):
        feed.give(events(seed, 200, 300))
    with opened() as queries:  # in a worker that has not seen the query look back
        queries.resume("dear")
        run_all(queries, sink)

    def of(batches: range | tuple[int, ...], asked: dict[str, str]) -> Answers:
        some = {"trades": trades.rows(batches), "quotes": quotes.rows(batches)}
        return expected(spark, some, asked)

    wanted = of(range(6), {"both": BOTH, "back": BOTH, "all": above(0)})
    wanted |= of(range(3), {"dropped": above(10)})
    wanted |= of(range(3, 6), {"late": SELECTIONS["unknown"], "later": above(30), "blind": BOTH})
    wanted |= of((0, 1, 2, 5), {"dear": SELECTIONS["dear"]})
    first = of(range(3), {"replaced": SELECTIONS["prefix"]})["replaced"]
    second = of(range(3, 6), {"replaced": SELECTIONS["either"]})["replaced"]
    found = sink.answers()
    replaced = found.pop("replaced")
    assert found == wanted
    assert replaced.total() == first.total() + second.total()


def test_a_batch_that_failed_runs_the_same_queries_again_and_files_have_each_result_once(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    path = tmp_path / "out"
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    asked = {"both": BOTH, "odd/name 1%": SELECTIONS["dear"]}

    def failing(results: DataFrame, batch: Batch) -> None:
        ParquetSink(str(path))(results, batch)
        if batch.number == 1:
            raise RuntimeError("no more")

    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        for name, sql in asked.items():
            queries.add(sql, name=name)
        queries.start(failing, availableNow=True)
        with pytest.raises(Exception, match="no more"):
            queries.await_termination()
    told = []
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        queries.add(above(0), name="more")
        queries.subscribe("both", lambda table, batch: told.append((batch, table)))
        queries.start(path, availableNow=True)
        queries.await_termination()
    tables = {"trades": trades.rows(), "quotes": quotes.rows()}
    written = spark.read.option("mergeSchema", "true").parquet(str(path)).drop("batch")
    last = {"trades": trades.rows([2]), "quotes": quotes.rows([2])}
    # Batch 1 runs without the query that came since, again.
    wanted = expected(spark, tables, asked) | expected(spark, last, {"more": above(0)})
    assert answers_in([row.asDict() for row in written.collect()]) == wanted
    assert {batch.job for batch, _ in told} == {"join quotes.0 trades.0"}
    assert all(table.column_names == ["symbol", "tv", "qv"] for _, table in told)


def test_rows_that_nobody_wants_any_more_go(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    state = tmp_path / "state"
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    stored = []
    for least in (None, 60, 0):
        with StandingQueries(spark, streams=streams, state=state) as queries:
            if least is None:
                queries.add(BOTH, name="kept")
                queries.add(above(0), name="dropped")
            elif least:
                queries.drop("dropped")
            else:
                for feed, seed in ((trades, 3), (quotes, 4)):
                    feed.give(events(seed, 50, 7200))  # two hours later
                    feed.give(events(seed + 2, 50, 7260))
            if least == 60:
                for feed, seed in ((trades, 1), (quotes, 2)):
                    feed.give(events(seed, 50, 180))
            run_all(queries, Gathered())
            stored.append({r["stream"]: 0 for r in queries.stems().collect()})
            for row in queries.stems().collect():
                stored[-1][row["stream"]] += row["rows"]
    wanted = trades.rows(range(4)).where("symbol IS NOT NULL AND price > 60").count()
    assert stored[0]["trades"] > wanted
    assert stored[1]["trades"] == wanted
    assert stored[2]["trades"] < wanted  # of the last two batches


def test_a_batch_that_is_run_again_takes_the_same_sample(
    spark: SparkSession, tmp_path: Path, trades: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    monkeypatch.setattr(standing_queries, "Overload", given_shares(1.0, 0.1))
    runs = []
    for again in (False, True):
        sink = Gathered()

        def failing(
            results: DataFrame, batch: Batch, *, sink: Gathered = sink, fails: bool = not again
        ) -> None:
            sink(results, batch)
            if batch.number == 1 and fails:
                raise RuntimeError("no more")

        with StandingQueries(
            spark, streams={"trades": trades.stream()}, state=state, on_overload="sample"
        ) as queries:
            if not again:
                queries.add("SELECT volume, symbol, time FROM trades", name="all")
            queries.start(failing, availableNow=True)
            if again:
                queries.await_termination()
            else:
                with pytest.raises(Exception, match="no more"):
                    queries.await_termination()
            runs.append(sink)
            batches = {row["batch"]: row for row in queries.batches().collect()}
    first, second = (Counter(map(str, run.batches[Batch("select trades", 1)])) for run in runs)
    assert first == second  # the same sample
    assert len(runs[0].batches[Batch("select trades", 0)]) == 200
    assert batches[1]["dropped"] == 200 - first.total() > 150
    assert (batches[1]["rows_in"], batches[1]["results"]) == (200, first.total())
    assert (batches[1]["kept"], batches[2]["kept"]) == (0.1, 0.1)
    with pytest.raises(ValueError, match="on_overload is one of block, sample"):
        StandingQueries(
            spark, streams={"trades": trades.stream()}, state=state, on_overload="panic"
        )
