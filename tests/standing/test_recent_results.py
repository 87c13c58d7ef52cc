"""What queries have put out lately is there for those who ask later."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from eddyline.errors import UnknownQueryError
from eddyline.standing.recent_results import RecentResults
from eddyline.standing.sinks import Batch
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, expected, run_all
from tests.standing.test_standing_queries import SCHEMA, SELECTIONS, events

pytestmark = pytest.mark.slow(10)

NAME = "dear {1} a/b 5 %: [x]*"


@pytest.fixture
def trades(spark: SparkSession, tmp_path: Path) -> Feed:
    feed = Feed(spark, tmp_path / "trades", SCHEMA)
    for number in range(3):
        feed.give(events(number, 100, 60 * number))
    return feed


def given(results: DataFrame) -> Counter[tuple[object, ...]]:
    """The rows of results without their batches, by the names of columns."""
    names = sorted(set(results.columns) - {"batch"})
    return Counter(tuple(row[name] for name in names) for row in results.collect())


@pytest.mark.parametrize("by_query", [False, True])
def test_under_a_path_all_are_there(
    spark: SparkSession, tmp_path: Path, trades: Feed, *, by_query: bool
) -> None:
    out = tmp_path / "out [1]"
    with StandingQueries(
        spark, streams={"trades": trades.stream()}, state=tmp_path / "state"
    ) as queries:
        queries.add(SELECTIONS["dear"], name=NAME)
        queries.add(SELECTIONS["none"], name="none")
        with pytest.raises(ValueError, match="recent="):
            queries.results(NAME)
        with pytest.raises(TypeError, match="by_query is about files"):
            queries.start(lambda *_: None, by_query=True)
        queries.start(out, by_query=by_query, availableNow=True)
        queries.await_termination()
        (names,) = {path.name.partition("=")[0] for path in out.iterdir() if path.is_dir()}
        assert names == ("query" if by_query else "batch")
        results = queries.results(NAME)
        assert results.columns == ["symbol", "price", "batch"]
        wanted = expected(spark, {"trades": trades.rows()}, {NAME: SELECTIONS["dear"]})
        assert Counter((row["price"], row["symbol"]) for row in results.collect()) == wanted[NAME]
        batches = {row["batch"] for row in results.collect()}
        assert batches <= {f"select trades {number}" for number in range(3)}
        assert queries.results("none").collect() == []
        with pytest.raises(UnknownQueryError):
            queries.results("nobody")


def test_of_a_function_the_latest_are_kept(
    spark: SparkSession, tmp_path: Path, trades: Feed
) -> None:
    def opened() -> StandingQueries:
        return StandingQueries(
            spark, streams={"trades": trades.stream()}, state=tmp_path / "state", recent=10
        )

    with opened() as queries:
        queries.add(SELECTIONS["dear"], name="dear")
        queries.add("SELECT volume FROM trades WHERE volume = 1", name="rare")
        queries.add(SELECTIONS["none"], name="none")
        run_all(queries, lambda results, _: results.count())
    with opened() as queries:
        results = queries.results("dear")
        assert results.columns == ["symbol", "price", "batch"]
        (last,) = [trades.rows([2])]
        wanted = expected(spark, {"trades": last}, {"dear": SELECTIONS["dear"]})["dear"]
        found = Counter(
            (row["price"], row["symbol"])
            for row in results.collect()
            if row["batch"] == "select trades 2"
        )
        assert found == wanted or (found.total() == 10 and not found - wanted)
        assert results.count() >= 10
        assert queries.results("none").collect() == []
        queries.replace("dear", "SELECT volume, price FROM trades WHERE price > 90")
        again = queries.results("dear").collect()
        assert {row["volume"] for row in again} == {None}
        assert Counter(row["price"] for row in again) == Counter(
            row["price"] for row in results.collect()
        )
        queries.drop("dear")
        queries.add(SELECTIONS["dear"], name="dear")
        assert queries.results("dear").collect() == []


def test_a_batch_again_replaces_itself(spark: SparkSession, tmp_path: Path) -> None:
    kept = RecentResults(tmp_path / "recent.sqlite", 3)
    columns = spark.createDataFrame([], "n int").schema.fields

    def take(number: int, query: str, *values: int) -> None:
        rows = spark.createDataFrame([(query, value) for value in values], "query string, n int")
        kept.take(rows, Batch("job", number), lambda _: ["n"])

    def found(query: str) -> list[tuple[str, int]]:
        return [(row["batch"], row["n"]) for row in kept.of(query, columns).to_pylist()]

    take(0, "a", 1, 2)
    take(1, "a", 3)
    take(1, "a", 4)
    assert found("a") == [("job 0", 1), ("job 0", 2), ("job 1", 4)]
    take(2, "b", 5, 6, 7, 8, 9)
    take(3, "a", 10)
    assert found("a") == [("job 0", 1), ("job 0", 2), ("job 1", 4), ("job 3", 10)]
    assert len(found("b")) == 3
    take(4, "a", 11)
    assert found("a") == [("job 1", 4), ("job 3", 10), ("job 4", 11)]
    kept.forget(["a"])
    assert found("a") == []
    kept.close()
