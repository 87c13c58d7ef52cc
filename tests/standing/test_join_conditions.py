"""Conditions on columns of several streams: what plain Spark finds in the same events."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline.errors import NotShareableError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all

pytestmark = pytest.mark.slow(65)

SCHEMA = "symbol string, price double, volume bigint, sent timestamp, time timestamp"
START = dt.datetime(2026, 1, 1, 12, 0)  # noqa: DTZ001 - in the session's zone, as Spark takes it
PRICES = [None, float("nan"), 0.0, *(float(n) for n in range(1, 60))]


def events(seed: int, number: int, first: int) -> list[tuple[Any, ...]]:
    """Events of a minute from ``first`` seconds on, in no order, some values NULL."""
    chance = random.Random(seed)

    def second() -> dt.datetime:
        return START + dt.timedelta(seconds=first + chance.randrange(60))

    return [
        (
            chance.choice(["A", "B", "C", None]),
            chance.choice(PRICES),
            chance.choice([None, *range(500)]),
            second(),
            second(),
        )
        for _ in range(number)
    ]


def feed(spark: SparkSession, directory: Path, seed: int) -> Feed:
    """Return a feed of three batches."""
    found = Feed(spark, directory, SCHEMA, ("time", "2 minutes"))
    for number in range(3):
        found.give(events(seed + number, 100, 60 * number))
    return found


@pytest.fixture
def trades(spark: SparkSession, tmp_path: Path) -> Feed:
    return feed(spark, tmp_path / "trades", 0)


@pytest.fixture
def quotes(spark: SparkSession, tmp_path: Path) -> Feed:
    return feed(spark, tmp_path / "quotes", 100)


NEAR = "t.symbol = q.symbol AND q.time BETWEEN t.time AND t.time + INTERVAL 10 SECONDS"
BOTH = f"SELECT t.volume tv, q.volume qv FROM trades t JOIN quotes q ON {NEAR} AND "  # noqa: S608 - a constant

CONDITIONS = {
    "dearer": BOTH + "t.price > q.price * 1.1",
    "close": BOTH + "t.volume - q.volume BETWEEN -40 AND 40",
    "either": BOTH + "(t.price > q.price + 30 OR t.volume < q.volume) AND t.volume > 100",
    "neither": BOTH + "NOT (t.price > q.price OR t.volume < q.volume)",
    "unknown": BOTH + "(t.price + q.price IS NULL OR t.price = q.price)",
    "chosen": BOTH + "CASE WHEN t.volume > 250 THEN t.price < q.price ELSE q.volume > 250 END",
    "computed": BOTH + "t.volume % 10 = q.volume % 9",
    "guarded": BOTH + "q.price > 0 AND t.price / q.price > 2",
    "sent": BOTH + "t.sent < q.sent",
    "inverted": """SELECT x.sum, x.tv FROM (
                       SELECT t.price + q.price AS sum, t.volume tv FROM trades t
                       JOIN quotes q ON t.symbol = q.symbol AND t.time < q.time) x
                   WHERE x.sum BETWEEN 50 AND 52""",  # of a window that is open on one side
    "again": """SELECT a.volume av, b.volume bv FROM trades a JOIN trades b
                ON a.symbol = b.symbol AND a.time > b.time
                AND a.time <= b.time + INTERVAL 9 SECONDS AND a.price > b.price + 20""",
    "three": """SELECT t.volume a, q.volume b, u.volume c FROM trades t JOIN quotes q
                ON t.symbol = q.symbol AND q.time BETWEEN t.time AND t.time + INTERVAL 9 SECONDS
                JOIN trades u ON u.symbol = q.symbol
                AND u.time BETWEEN q.time AND q.time + INTERVAL 9 SECONDS
                WHERE t.price < u.price AND t.volume + q.volume > u.volume""",
    "table": """SELECT t.volume, s.sector FROM trades t JOIN sectors s
                ON t.symbol = s.name AND t.volume > s.least""",
}


def test_conditions(spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed) -> None:
    sectors = spark.createDataFrame(
        [("A", "food", 100), ("B", "cars", 300), ("C", "food", None), (None, "food", 0)],
        "name string, sector string, least bigint",
    )
    sink = Gathered()
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    with StandingQueries(
        spark, streams=streams, tables={"sectors": sectors}, state=tmp_path / "state"
    ) as queries:
        for name, sql in CONDITIONS.items():
            queries.add(sql, name=name, keep="forever" if name == "inverted" else None)
        run_all(queries, sink)
    tables = {"trades": trades.rows(), "quotes": quotes.rows(), "sectors": sectors}
    wanted = expected(spark, tables, CONDITIONS)
    assert wanted.keys() == CONDITIONS.keys()
    assert sink.answers() == wanted


TEMPLATES = {
    "pairs": BOTH + "t.price > q.price * :factor AND t.volume > :least",
    "ranges": BOTH + "t.price - q.price > :factor AND t.volume - q.volume < :least",
    "inside": BOTH + "(t.price > q.price + :factor * 10 OR q.volume = t.volume - :least)",
}


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed, template: str
) -> None:
    sql = TEMPLATES[template]
    rows = [(f"q{n}", 1 + (n % 20) / 4, n % 7 * 60) for n in range(200)]
    parameters = pd.DataFrame(rows, columns=["name", "factor", "least"])
    sink = Gathered()
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        queries.add_many(sql, parameters)
        run_all(queries, sink)
    each = {
        name: sql.replace(":factor", f"{factor}D").replace(":least", str(least))
        for name, factor, least in rows[::23]
    }
    tables = {"trades": trades.rows(), "quotes": quotes.rows()}
    found, wanted = sink.answers(), expected(spark, tables, each)
    assert {name: found[name] for name in each if name in found} == wanted
    assert wanted


def test_queries_come_and_go_and_look_back(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    state = tmp_path / "state"
    sink = Gathered()

    def opened() -> StandingQueries:
        streams = {"trades": trades.stream(), "quotes": quotes.stream()}
        return StandingQueries(spark, streams=streams, state=state)

    with opened() as queries:
        queries.add(BOTH + "TRUE", name="all")
        queries.add(CONDITIONS["dearer"], name="dropped")
        queries.add(CONDITIONS["close"], name="kept")
        run_all(queries, sink)
    for each, seed in ((trades, 50), (quotes, 60)):
        each.give(events(seed, 100, 180))
    with opened() as queries:
        queries.drop("dropped")
        queries.add(CONDITIONS["dearer"], name="back", backfill="1 hour")
        queries.add(CONDITIONS["dearer"], name="later")
        run_all(queries, sink)
    tables = {"trades": trades.rows(), "quotes": quotes.rows()}
    found = sink.answers()
    assert found["kept"] == expected(spark, tables, {"kept": CONDITIONS["close"]})["kept"]
    assert found["back"] == expected(spark, tables, {"back": CONDITIONS["dearer"]})["back"]
    for name, batches in (("dropped", range(3)), ("later", range(3, 4))):
        some = {"trades": trades.rows(batches), "quotes": quotes.rows(batches)}
        assert found[name] == expected(spark, some, {name: CONDITIONS["dearer"]})[name]


def test_functions_of_several_streams_and_errors(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    @F.udf("double")
    def apart(one: float | None, other: float | None) -> float | None:
        return None if one is None or other is None else abs(one - other)

    @F.udf("boolean")
    def picky(one: int | None, other: int | None) -> bool:
        if one is not None and one > 400:
            raise ValueError("too much")
        return (one or 0) > (other or 0)

    spark.udf.register("apart", apart)
    spark.udf.register("picky", picky)
    good = {
        "apart": BOTH + "apart(t.price, q.price) < 5",
        "guarded": BOTH + "picky(t.volume, q.volume) AND t.volume < 300",
        "mixed": BOTH + "picky(t.volume, q.volume) AND t.volume + q.volume < 200",
    }
    sink = Gathered()
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        for name, sql in good.items():
            queries.add(sql, name=name)
        queries.add(BOTH + "picky(t.volume, q.volume)", name="fails")
        queries.add(BOTH + "t.price / q.price > 2", name="divides")
        with pytest.warns(UserWarning, match="has failed and is paused") as told:
            run_all(queries, sink)
        states = {row["name"]: row["reason"] for row in queries.queries().collect()}
    # PySpark 4.0 warns of sockets beside it, which are not this test's.
    assert len([each for each in told if "is paused" in str(each.message)]) == 2
    assert "too much" in states["fails"]
    assert "DIVIDE_BY_ZERO" in states["divides"]
    tables = {"trades": trades.rows(), "quotes": quotes.rows()}
    found = sink.answers()
    found = {name: rows for name, rows in found.items() if name not in {"fails", "divides"}}
    assert found == expected(spark, tables, good)


def test_what_is_refused(spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed) -> None:
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        for sql, message in {
            "SELECT t.price FROM trades t, quotes q WHERE t.price > q.price": "by an equality, as",
        }.items():
            with pytest.raises(NotShareableError, match=message):
                queries.add(sql, name="bad")
