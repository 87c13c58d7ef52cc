"""Conditions on columns of several streams: what plain Spark finds in the same events."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline.errors import NotShareableError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Answers, Feed, Gathered, answers_in, expected, run_all

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


SEEDS = {"trades": 0, "quotes": 100}


@pytest.fixture
def trades(spark: SparkSession, tmp_path: Path) -> Feed:
    return feed(spark, tmp_path / "trades", SEEDS["trades"])


@pytest.fixture
def quotes(spark: SparkSession, tmp_path: Path) -> Feed:
    return feed(spark, tmp_path / "quotes", SEEDS["quotes"])


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


TEMPLATES = {
    "pairs": "t.price > q.price * :factor AND t.volume > :least",
    "ranges": "t.price - q.price > :factor AND t.volume - q.volume < :least",
    "inside": "(t.price > q.price + :factor * 10 OR q.volume = t.volume - :least)",
}
RULES = pd.DataFrame({"factor": 1 + np.arange(200) % 20 / 4, "least": np.arange(200) % 7 * 60})

OF_FUNCTIONS = {
    "apart": BOTH + "apart(t.price, q.price) < 5",
    "guarded by another": BOTH + "picky(t.volume, q.volume) AND t.volume < 300",
    "mixed": BOTH + "picky(t.volume, q.volume) AND t.volume + q.volume < 200",
}

FAILING = {
    "fails": BOTH + "picky(t.volume, q.volume)",
    "divides": BOTH + "t.price / q.price > 2",
}


@dataclass(frozen=True)
class Ran:
    """What rules of all kinds put out side by side, and the tables that a batch has of it."""

    answers: Answers
    reasons: Mapping[str, str | None]
    warned: Sequence[str]
    tables: Mapping[str, DataFrame]

    def named(self, names: Iterable[str]) -> Answers:
        """Return the answers of some rules, as far as they have any."""
        return {name: self.answers[name] for name in names if name in self.answers}


def register(spark: SparkSession) -> None:
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


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("ran")
    feeds = {name: feed(spark, folder / name, seed) for name, seed in SEEDS.items()}
    sectors = spark.createDataFrame(
        [("A", "food", 100), ("B", "cars", 300), ("C", "food", None), (None, "food", 0)],
        "name string, sector string, least bigint",
    )
    register(spark)
    sink = Gathered()
    with StandingQueries(
        spark,
        streams={name: each.stream() for name, each in feeds.items()},
        tables={"sectors": sectors},
        state=folder / "state",
    ) as queries:
        for name, sql in (CONDITIONS | OF_FUNCTIONS | FAILING).items():
            queries.add(sql, name=name, keep="forever" if name == "inverted" else None)
        for name, condition in TEMPLATES.items():
            queries.add_many(BOTH + condition, RULES, name=name)
        with pytest.warns(UserWarning, match="has failed and is paused") as warned:
            run_all(queries, sink)
        reasons = {row["name"]: row["reason"] for row in queries.queries().collect()}
    tables = {name: each.rows() for name, each in feeds.items()} | {"sectors": sectors}
    return Ran(sink.answers(), reasons, [str(one.message) for one in warned], tables)


def test_conditions(spark: SparkSession, ran: Ran) -> None:
    wanted = expected(spark, ran.tables, CONDITIONS)
    assert wanted.keys() == CONDITIONS.keys()
    assert ran.named(CONDITIONS) == wanted


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates(spark: SparkSession, ran: Ran, name: str) -> None:
    rules = RULES.assign(query=[f"{name}-{number}" for number in range(len(RULES))])
    spark.createDataFrame(rules).createOrReplaceTempView("rules")
    for table, rows in ran.tables.items():
        rows.createOrReplaceTempView(table)
    condition = TEMPLATES[name].replace(":", "rules.")
    pairs = BOTH.replace("SELECT", "SELECT query,").removesuffix(" AND ")
    joined = spark.sql(f"{pairs} CROSS JOIN rules WHERE {condition}")
    wanted = answers_in([row.asDict() for row in joined.collect()])
    assert ran.named(rules["query"]) == wanted
    assert len(wanted) > 20


def test_functions_of_several_streams_and_errors(spark: SparkSession, ran: Ran) -> None:
    # PySpark 4.0 warns of sockets beside it, which are not this test's.
    assert len([told for told in ran.warned if "is paused" in told]) == len(FAILING)
    assert "too much" in str(ran.reasons["fails"])
    assert "DIVIDE_BY_ZERO" in str(ran.reasons["divides"])
    assert ran.named(OF_FUNCTIONS) == expected(spark, ran.tables, OF_FUNCTIONS)
    assert {name for name, reason in ran.reasons.items() if reason} == {*FAILING}


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


def test_what_is_refused(spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed) -> None:
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        for sql, message in {
            "SELECT t.price FROM trades t, quotes q WHERE t.price > q.price": "by an equality, as",
        }.items():
            with pytest.raises(NotShareableError, match=message):
                queries.add(sql, name="bad")
