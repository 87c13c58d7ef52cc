"""Standing queries on Structured Streaming put out what plain Spark finds in the same events."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline.errors import NotShareableError, StateError, UnknownQueryError
from eddyline.standing import standing_queries
from eddyline.standing.sinks import Batch, ParquetSink
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, given_shares, run_all

pytestmark = pytest.mark.slow(150)

SCHEMA = "symbol string, price double, volume bigint, time timestamp"
START = dt.datetime(2026, 1, 1, 12, 0)  # noqa: DTZ001 - in the session's zone, as Spark takes it


def events(seed: int, number: int, first: int, span: int = 60) -> list[tuple[Any, ...]]:
    """Events of a minute from ``first`` seconds on, in no order, some values NULL."""
    chance = random.Random(seed)
    return [
        (
            chance.choice(["A", "B", "C", "D", None]),
            chance.choice([None, *(float(n) for n in range(100))]),
            chance.randrange(1000),
            START + dt.timedelta(seconds=first + chance.randrange(span)),
        )
        for _ in range(number)
    ]


@pytest.fixture
def trades(spark: SparkSession, tmp_path: Path) -> Feed:
    feed = Feed(spark, tmp_path / "trades", SCHEMA, ("time", "2 minutes"))
    for number in range(3):
        feed.give(events(number, 200, 60 * number))
    return feed


@pytest.fixture
def quotes(spark: SparkSession, tmp_path: Path) -> Feed:
    feed = Feed(spark, tmp_path / "quotes", SCHEMA, ("time", "2 minutes"))
    for number in range(3):
        feed.give(events(100 + number, 200, 60 * number))
    return feed


SELECTIONS = {
    "all": "SELECT * FROM trades",
    "dear": "SELECT symbol, price FROM trades WHERE price > 90",
    "either": "SELECT symbol FROM trades WHERE price < 5 OR (volume >= 900 AND symbol <> 'A')",
    "computed": "SELECT upper(symbol) s, price * 2 AS twice FROM trades WHERE symbol IN ('A', 'C')",
    "unknown": "SELECT volume FROM trades WHERE price IS NULL",
    "nested": "SELECT x.symbol FROM (SELECT symbol, price + 1 p FROM trades) x WHERE x.p = 50",
    "prefix": """SELECT symbol, volume FROM trades
                 WHERE symbol LIKE 'B%' AND volume BETWEEN 10 AND 300""",
    "none": "SELECT symbol FROM trades WHERE price > 50 AND price < 40",
}


WEIGHED = "SELECT symbol, price, volume FROM trades WHERE {}"


def test_selections(spark: SparkSession, tmp_path: Path, trades: Feed) -> None:
    sink = Gathered()
    with StandingQueries(
        spark, streams={"trades": trades.stream()}, state=tmp_path / "state"
    ) as queries:
        for name, sql in SELECTIONS.items():
            queries.add(sql, name=name)
        run_all(queries, sink)
        trades.give(events(3, 200, 180))
        run_all(queries, sink)  # again, as the jobs have ended by themselves
    assert sink.answers() == expected(spark, {"trades": trades.rows()}, SELECTIONS)


def test_rows_go_different_ways(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    # Expressions over several columns are asked one by one, of some rows in this order, of others
    # in that; the rows come out of the eddy as they are done.
    ways = {
        f"way {n}": WEIGHED.format(f"price * {n} + volume % {n} > {40 * n}") for n in range(2, 14)
    }
    ways |= {
        f"both {n}": f"""{JOINS["both"]} AND t.price * {n} + t.volume % {n} > {70 * n}
                         AND q.price * {n} - q.volume % {n} < {50 * n}"""
        for n in range(2, 6)
    }
    ways |= {
        f"fails {n}": WEIGHED.format(f"volume * 9223372036854775807 + price > {n}")
        for n in range(3)
    }
    ways["all"] = SELECTIONS["all"]
    sink = Gathered()
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        for name, sql in ways.items():
            queries.add(sql, name=name)
        with pytest.warns(UserWarning, match="'fails .' has failed and is paused"):
            run_all(queries, sink)
    good = {name: sql for name, sql in ways.items() if not name.startswith("fails")}
    found = {name: rows for name, rows in sink.answers().items() if name in good}
    tables = {"trades": trades.rows(), "quotes": quotes.rows()}
    assert found == expected(spark, tables, good)


JOINS = {
    "both": """SELECT t.symbol, t.volume tv, q.volume qv FROM trades t JOIN quotes q
               ON t.symbol = q.symbol AND q.time BETWEEN t.time AND t.time + INTERVAL 20 SECONDS
               WHERE t.price > 60""",
    "before": """SELECT q.time, t.price - q.price AS difference FROM quotes q, trades t
                 WHERE q.symbol = t.symbol AND t.time >= q.time - INTERVAL 1 MINUTE
                 AND t.time < q.time AND q.price < t.price + 0 AND q.volume > 500""",
    "again": """SELECT a.volume av, b.volume bv FROM trades a JOIN trades b
                ON a.symbol = b.symbol AND a.time - b.time <= INTERVAL 5 SECONDS
                AND a.time > b.time WHERE a.price > 30""",
    "three": """SELECT t.volume a, q.volume b, u.volume c FROM trades t JOIN quotes q
                ON t.symbol = q.symbol AND q.time BETWEEN t.time AND t.time + INTERVAL 9 SECONDS
                JOIN trades u ON u.symbol = q.symbol
                AND u.time BETWEEN q.time AND q.time + INTERVAL 9 SECONDS
                WHERE t.volume < 300 AND u.volume > 600""",
}


def test_joins(spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed) -> None:
    sink = Gathered()
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        for name, sql in JOINS.items():
            queries.add(sql, name=name)
        run_all(queries, sink)
    tables = {"trades": trades.rows(), "quotes": quotes.rows()}
    assert sink.answers() == expected(spark, tables, JOINS)


def test_many_of_a_template(spark: SparkSession, tmp_path: Path, trades: Feed) -> None:
    template = "SELECT symbol, volume FROM trades WHERE symbol = :symbol AND price > :least * 2"
    rows = [(f"q{n}", "ABCD"[n % 4], float(n % 50)) for n in range(300)]
    parameters = pd.DataFrame(rows, columns=["name", "symbol", "least"])
    sink = Gathered()
    with StandingQueries(
        spark, streams={"trades": trades.stream()}, state=tmp_path / "state"
    ) as queries:
        assert queries.add_many(template, parameters)[:2] == ("q0", "q1")
        run_all(queries, sink)
    each = {
        name: template.replace(":symbol", f"'{symbol}'").replace(":least", str(least))
        for name, symbol, least in rows[::7]
    }
    found = sink.answers()
    wanted = expected(spark, {"trades": trades.rows()}, each)
    assert {name: found[name] for name in each if name in found} == wanted
    assert set(found) <= {name for name, _, _ in rows}


def test_queries_come_and_go(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    state = tmp_path / "state"
    sink = Gathered()

    def opened() -> StandingQueries:
        streams = {"trades": trades.stream(), "quotes": quotes.stream()}
        return StandingQueries(spark, streams=streams, state=state)

    with opened() as queries:
        queries.add(SELECTIONS["dear"], name="dear")
        queries.add(JOINS["both"], name="both")
        queries.add(JOINS["both"].replace("60", "10"), name="dropped")
        queries.add(SELECTIONS["prefix"], name="replaced")
        run_all(queries, sink)
    for feed, seed in ((trades, 50), (quotes, 60)):
        for number in range(3, 5):
            feed.give(events(seed + number, 200, 60 * number))
    with opened() as queries:
        queries.drop("dropped")
        queries.replace("replaced", SELECTIONS["either"])
        queries.add(SELECTIONS["unknown"], name="late")
        queries.add(JOINS["both"].replace("60", "30"), name="later")
        queries.pause("dear")
        run_all(queries, sink)
    for feed, seed in ((trades, 70), (quotes, 80)):
        feed.give(events(seed, 200, 300))
    with opened() as queries:
        queries.resume("dear")
        run_all(queries, sink)
    tables = {"trades": trades.rows(), "quotes": quotes.rows()}
    wanted = expected(spark, tables, {"both": JOINS["both"]})
    for batches, chosen in (
        (range(3), {"dropped": JOINS["both"].replace("60", "10")}),
        (range(3, 6), {"late": SELECTIONS["unknown"], "later": JOINS["both"].replace("60", "30")}),
        ((0, 1, 2, 5), {"dear": SELECTIONS["dear"]}),
    ):
        some = {"trades": trades.rows(batches), "quotes": quotes.rows(batches)}
        wanted |= expected(spark, some, chosen)
    first = expected(spark, {"trades": trades.rows(range(3))}, {"replaced": SELECTIONS["prefix"]})
    second = expected(
        spark, {"trades": trades.rows(range(3, 6))}, {"replaced": SELECTIONS["either"]}
    )
    found = sink.answers()
    replaced = found.pop("replaced")
    assert found == wanted
    assert sum(replaced.values()) == first["replaced"].total() + second["replaced"].total()


def test_a_batch_that_failed_runs_the_same_queries_again(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    state = tmp_path / "state"
    sink = Gathered()
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}

    def failing(results: DataFrame, batch: Batch) -> None:
        sink(results, batch)
        if batch.number == 1:
            raise RuntimeError("no more")

    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.add(JOINS["both"], name="both")
        queries.start(failing, availableNow=True)
        with pytest.raises(Exception, match="no more"):
            queries.await_termination()
    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.add(JOINS["both"].replace("60", "0"), name="more")
        run_all(queries, sink)
    tables = {"trades": trades.rows(), "quotes": quotes.rows()}
    found = sink.answers()
    assert found["both"] == expected(spark, tables, {"both": JOINS["both"]})["both"]
    last = {"trades": trades.rows([2]), "quotes": quotes.rows([2])}
    more = expected(spark, last, {"more": JOINS["both"].replace("60", "0")})
    assert found["more"] == more["more"]  # batch 1 ran without it, again


def test_files_have_each_result_once(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    path = tmp_path / "out"
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    asked = {"both": JOINS["both"], "odd/name 1%": SELECTIONS["dear"]}

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
        queries.subscribe("both", lambda table, batch: told.append((batch, table)))
        queries.start(path, availableNow=True)
        queries.await_termination()
    tables = {"trades": trades.rows(), "quotes": quotes.rows()}
    written = spark.read.option("mergeSchema", "true").parquet(str(path))
    wanted = expected(spark, tables, asked)
    found = written.where(F.col("query") == "both").select("qv", "symbol", "tv").collect()
    assert Counter(map(tuple, found)) == wanted["both"]
    found = written.where(F.col("query") == "odd/name 1%").select("price", "symbol").collect()
    assert Counter(map(tuple, found)) == wanted["odd/name 1%"]
    assert {batch.job for batch, _ in told} == {"join quotes.0 trades.0"}
    assert all(table.column_names == ["symbol", "tv", "qv"] for _, table in told)


def test_what_was_done_can_be_asked(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    sink = Gathered()
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        queries.add(JOINS["both"], name="both")
        queries.add_many(
            "SELECT volume FROM trades WHERE price > :least",
            pd.DataFrame({"least": [10.0, 200.0]}),
            name="over",
        )
        queries.add(SELECTIONS["dear"], name="still")
        queries.pause("still")
        run_all(queries, sink)
        found = {row["name"]: row for row in queries.queries().collect()}
        batches = queries.batches().collect()
        stems = queries.stems().collect()
        operators = {row["operator"] for row in queries.operators().collect()}
    answers = sink.answers()
    assert {name: row["results"] for name, row in found.items()} == {
        "both": answers["both"].total(),
        "over-0": answers["over-0"].total(),
        "over-1": 0,
        "still": 0,
    }
    assert found["over-0"]["parameters"] == '{"least": 10.0}'
    assert (found["over-0"]["rows_in"], found["both"]["rows_in"]) == (600, 1200)
    assert found["still"]["state"] == "paused"
    assert [row["rows_in"] for row in batches if row["job"] == "select trades"] == [200] * 3
    assert {row["stream"] for row in stems} == {"trades", "quotes"}
    assert operators >= {"select", "join"}


def test_rows_that_nobody_wants_any_more_go(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    state = tmp_path / "state"
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    stored = []
    for least in (None, 60, 0):
        with StandingQueries(spark, streams=streams, state=state) as queries:
            if least is None:
                queries.add(JOINS["both"], name="kept")
                queries.add(JOINS["both"].replace("60", "0"), name="dropped")
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


SECTORS = [("A", "food", 10), ("B", "cars", 60), ("C", "food", 30), (None, "food", 0)]

WITH_TABLES = {
    "food": """SELECT t.volume, s.sector FROM trades t JOIN sectors s ON t.symbol = s.name
               WHERE s.sector = 'food' AND t.price > 40""",
    "twice": """SELECT t.volume tv, q.volume qv, s.least FROM trades t JOIN quotes q
                ON t.symbol = q.symbol AND q.time BETWEEN t.time AND t.time + INTERVAL 9 SECONDS
                JOIN sectors s ON s.name = q.symbol WHERE s.least < 50 AND t.price > 50""",
    "elsewhere": """SELECT t.volume, s.name FROM trades t JOIN sectors s ON t.volume = s.least""",
}


def test_tables(spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed) -> None:
    sectors = spark.createDataFrame(SECTORS, "name string, sector string, least bigint")
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    sink = Gathered()
    with StandingQueries(
        spark, streams=streams, tables={"sectors": sectors}, state=tmp_path / "state"
    ) as queries:
        for name, sql in WITH_TABLES.items():
            queries.add(sql, name=name)
        with pytest.raises(NotShareableError, match="reads no stream"):
            queries.add("SELECT name FROM sectors", name="still")
        run_all(queries, sink)
        stored = {row["stream"]: row["rows"] for row in queries.stems().collect()}
    tables = {"trades": trades.rows(), "quotes": quotes.rows(), "sectors": sectors}
    assert sink.answers() == expected(spark, tables, WITH_TABLES)
    assert stored.keys() == {"trades", "quotes"}


def test_backfill(spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed) -> None:
    state = tmp_path / "state"
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    sink = Gathered()
    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.add(JOINS["both"].replace("60", "0"), name="all")
        run_all(queries, sink)
    for feed, seed in ((trades, 11), (quotes, 12)):
        feed.give(events(seed, 200, 180))
    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.add(JOINS["both"], name="both", backfill="1 hour")
        queries.add(JOINS["both"], name="blind")
        with pytest.raises(NotShareableError, match="start with history="):
            queries.add(SELECTIONS["dear"], name="dear", backfill="1 hour")
        with pytest.raises(ValueError, match="no interval"):
            queries.add(JOINS["both"], name="bad", backfill="soon")
        run_all(queries, sink)
    for feed, seed in ((trades, 13), (quotes, 14)):
        feed.give(events(seed, 200, 240))
    with StandingQueries(spark, streams=streams, state=state) as queries:
        run_all(queries, sink)  # in a worker that has not seen the query look back
    tables = {"trades": trades.rows(), "quotes": quotes.rows()}
    found = sink.answers()
    assert found["both"] == expected(spark, tables, {"both": JOINS["both"]})["both"]
    last = {"trades": trades.rows(range(3, 5)), "quotes": quotes.rows(range(3, 5))}
    assert found["blind"] == expected(spark, last, {"blind": JOINS["both"]})["blind"]


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


def test_functions_are_called_for_few_rows_and_fail_for_one_query(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    calls = spark.sparkContext.accumulator(0)

    @F.udf("double")
    def scored(price: float | None) -> float | None:
        calls.add(1)
        return None if price is None else price * 3

    @F.udf("boolean")
    def picky(volume: int) -> bool:
        if volume > 990:
            raise ValueError("too much")
        return volume % 2 == 0

    spark.udf.register("scored", scored)
    spark.udf.register("picky", picky)
    spark.udf.register(
        "weighted", lambda price, by: None if price is None else price * by, "double"
    )
    dear = "SELECT symbol, price FROM trades WHERE price > 90 AND scored(price) < 285"
    good = {f"scored{n}": dear.replace("90", str(n)) for n in range(90, 95)}
    good["joined"] = """SELECT t.volume tv, q.volume qv FROM trades t JOIN quotes q
        ON t.symbol = q.symbol AND q.time BETWEEN t.time AND t.time + INTERVAL 5 SECONDS
        WHERE scored(t.price) > 200 AND q.price < 20"""
    good["guarded"] = "SELECT volume FROM trades WHERE picky(volume) AND volume < 500"
    weighted = """SELECT symbol, price FROM trades
        WHERE weighted(price, 1 + :by) > 150 AND weighted(price, :by) < :most"""
    by = pd.DataFrame({"name": ["light", "heavy"], "by": [0.6, 1.5], "most": [58.5, 120.0]})
    for name, *numbers in by.itertuples(index=False):
        good[name] = weighted.replace(":by", f"{numbers[0]}D").replace(":most", str(numbers[1]))
    sink = Gathered()
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        queries.add_many(weighted, by)
        for name in good.keys() - set(by["name"]):
            queries.add(good[name], name=name)
        queries.add("SELECT volume FROM trades WHERE picky(volume)", name="fails")
        with pytest.warns(UserWarning, match="'fails' has failed and is paused: .*too much"):
            run_all(queries, sink)
    tables = {"trades": trades.rows(), "quotes": quotes.rows()}
    found = sink.answers()
    found.pop("fails")
    assert found == expected(spark, tables, good)


BAD = {
    "SELECT * FROM nowhere": (AnalysisException, "nowhere"),
    "SELEC symbol FROM trades": (ParseException, "SYNTAX"),
    "SELECT missing FROM trades": (AnalysisException, "missing"),
    "DROP TABLE trades": (NotShareableError, "asks for rows"),
    "SELECT symbol FROM trades ORDER BY price": (NotShareableError, "ORDER BY"),
    "SELECT symbol FROM trades LIMIT 3": (NotShareableError, "LIMIT"),
    "SELECT symbol, rand() r FROM trades WHERE rand() > 0.5": (NotShareableError, "determin"),
    "SELECT symbol AS query FROM trades": (NotShareableError, "another name"),
    "SELECT price, price FROM trades": (NotShareableError, "two columns"),
    "SELECT price AS volume FROM trades": (NotShareableError, "volume is double here"),
    "SELECT t.price FROM trades t, quotes q": (NotShareableError, "by an equality, as in"),
    "SELECT t.price FROM trades t LEFT JOIN quotes q ON t.symbol = q.symbol": (
        NotShareableError,
        "stored for ever",
    ),
    "SELECT symbol FROM trades WHERE price > :least": (NotShareableError, "parameter least"),
}


def test_errors(spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed) -> None:
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        queries.add(SELECTIONS["prefix"], name="good")
        for sql, (kind, message) in BAD.items():
            with pytest.raises(kind, match=message):
                queries.add(sql, name="bad")
        with pytest.raises(ValueError, match="already"):
            queries.add(SELECTIONS["dear"], name="good")
        with pytest.raises(UnknownQueryError, match="'bad'"):
            queries.drop("good", "bad")
        with pytest.raises(UnknownQueryError):
            queries.replace("bad", SELECTIONS["dear"])
        with pytest.raises(StateError, match="in use"):
            StandingQueries(spark, streams=streams, state=tmp_path / "state")
    with pytest.raises(StateError, match="quotes is missing"):
        StandingQueries(spark, streams={"trades": trades.stream()}, state=tmp_path / "state")
    with pytest.raises(ValueError, match="streaming"):
        StandingQueries(spark, streams={"trades": trades.rows()}, state=tmp_path / "state")
