"""Standing queries on Structured Streaming put out what plain Spark finds in the same events."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.accumulators import Accumulator
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline.errors import NotShareableError, StateError, UnknownQueryError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Answers, Feed, Gathered, answers_in, expected, run_all

pytestmark = pytest.mark.slow(50)

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


def trades_in(spark: SparkSession, folder: Path) -> Feed:
    """Return three batches of trades."""
    feed = Feed(spark, folder / "trades", SCHEMA, ("time", "2 minutes"))
    for number in range(3):
        feed.give(events(number, 200, 60 * number))
    return feed


def quotes_in(spark: SparkSession, folder: Path) -> Feed:
    """Return three batches of quotes."""
    feed = Feed(spark, folder / "quotes", SCHEMA, ("time", "2 minutes"))
    for number in range(3):
        feed.give(events(100 + number, 200, 60 * number))
    return feed


@pytest.fixture
def trades(spark: SparkSession, tmp_path: Path) -> Feed:
    return trades_in(spark, tmp_path)


@pytest.fixture
def quotes(spark: SparkSession, tmp_path: Path) -> Feed:
    return quotes_in(spark, tmp_path)


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


SECTORS = [("A", "food", 10), ("B", "cars", 60), ("C", "food", 30), (None, "food", 0)]

WITH_TABLES = {
    "food": """SELECT t.volume, s.sector FROM trades t JOIN sectors s ON t.symbol = s.name
               WHERE s.sector = 'food' AND t.price > 40""",
    "twice": """SELECT t.volume tv, q.volume qv, s.least FROM trades t JOIN quotes q
                ON t.symbol = q.symbol AND q.time BETWEEN t.time AND t.time + INTERVAL 9 SECONDS
                JOIN sectors s ON s.name = q.symbol WHERE s.least < 50 AND t.price > 50""",
    "elsewhere": """SELECT t.volume, s.name FROM trades t JOIN sectors s ON t.volume = s.least""",
}


WEIGHED = "SELECT symbol, price, volume FROM trades WHERE {}"

WAYS = {f"way {n}": WEIGHED.format(f"price * {n} + volume % {n} > {40 * n}") for n in range(2, 14)}
WAYS |= {
    f"both {n}": f"""{JOINS["both"]} AND t.price * {n} + t.volume % {n} > {70 * n}
                     AND q.price * {n} - q.volume % {n} < {50 * n}"""
    for n in range(2, 6)
}
"""Expressions over several columns are asked one by one, of some rows in this order, of others in
that; the rows come out of the eddy as they are done."""

OF_FUNCTIONS = {
    f"scored {n}": f"SELECT symbol, price FROM trades WHERE price > {n} AND scored(price) < 285"  # noqa: S608 - ours
    for n in range(90, 95)
}
OF_FUNCTIONS |= {
    "joined": """SELECT t.volume tv, q.volume qv FROM trades t JOIN quotes q
                 ON t.symbol = q.symbol AND q.time BETWEEN t.time AND t.time + INTERVAL 5 SECONDS
                 WHERE scored(t.price) > 200 AND q.price < 20""",
    "guarded": "SELECT volume FROM trades WHERE picky(volume) AND volume < 500",
}

FAILING = {"fails": "SELECT volume FROM trades WHERE picky(volume)"} | {
    f"fails {n}": WEIGHED.format(f"volume * 9223372036854775807 + price > {n}") for n in range(3)
}

WEIGHTED = """SELECT symbol, price FROM trades
    WHERE weighted(price, 1 + :by) > 150 AND weighted(price, :by) < :most"""
WEIGHTS = pd.DataFrame({"name": ["light", "heavy"], "by": [0.6, 1.5], "most": [58.5, 120.0]})

TEMPLATE = "SELECT symbol, volume FROM trades WHERE symbol = :symbol AND price > :least * 2"
RULES = pd.DataFrame(
    [(f"q{n}", "ABCD"[n % 4], float(n % 50)) for n in range(300)],
    columns=["name", "symbol", "least"],
)


def register(spark: SparkSession) -> Accumulator[int]:
    """Register functions; return how often one of them is called."""
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
    return calls


@dataclass(frozen=True)
class Ran:
    """What queries of all kinds did side by side, and the tables of what they saw."""

    answers: Answers
    tables: Mapping[str, DataFrame]
    calls: int
    warned: Sequence[str]
    queries: Mapping[str, Row]
    batches: Sequence[Row]
    stored: AbstractSet[str]
    operators: AbstractSet[str]

    def named(self, names: Iterable[str]) -> Answers:
        """Return the answers of some queries, as far as they have any."""
        return {name: self.answers[name] for name in names if name in self.answers}


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("ran")
    trades, quotes = trades_in(spark, folder), quotes_in(spark, folder)
    sectors = spark.createDataFrame(SECTORS, "name string, sector string, least bigint")
    calls = register(spark)
    sink = Gathered()
    with StandingQueries(
        spark,
        streams={"trades": trades.stream(), "quotes": quotes.stream()},
        tables={"sectors": sectors},
        state=folder / "state",
    ) as queries:
        for name, sql in (JOINS | WAYS | WITH_TABLES | OF_FUNCTIONS | FAILING).items():
            queries.add(sql, name=name)
        queries.add_many(WEIGHTED, WEIGHTS)
        assert queries.add_many(TEMPLATE, RULES)[:2] == ("q0", "q1")
        queries.add_many(
            "SELECT volume FROM trades WHERE price > :least",
            pd.DataFrame({"least": [10.0, 200.0]}),
            name="over",
        )
        queries.add(SELECTIONS["dear"], name="still")
        queries.pause("still")
        with pytest.raises(NotShareableError, match="reads no stream"):
            queries.add("SELECT name FROM sectors", name="of a table")
        with pytest.warns(UserWarning, match="has failed and is paused") as warned:
            run_all(queries, sink)
        return Ran(
            sink.answers(),
            {"trades": trades.rows(), "quotes": quotes.rows(), "sectors": sectors},
            calls.value,
            [str(one.message) for one in warned],
            {row["name"]: row for row in queries.queries().collect()},
            queries.batches().collect(),
            {row["stream"] for row in queries.stems().collect()},
            {row["operator"] for row in queries.operators().collect()},
        )


@pytest.mark.parametrize("queries", [JOINS, WAYS, WITH_TABLES], ids=["joins", "ways", "tables"])
def test_rows_are_those_of_a_batch(
    spark: SparkSession, ran: Ran, queries: Mapping[str, str]
) -> None:
    assert ran.named(queries) == expected(spark, ran.tables, queries)


def test_many_of_a_template(spark: SparkSession, ran: Ran) -> None:
    spark.createDataFrame(RULES).createOrReplaceTempView("rules")
    ran.tables["trades"].createOrReplaceTempView("trades")
    rows = spark.sql(
        """SELECT rules.name AS query, symbol, volume FROM trades JOIN rules USING (symbol)
           WHERE price > rules.least * 2"""
    )
    wanted = answers_in([row.asDict() for row in rows.collect()])
    assert ran.named(RULES["name"]) == wanted
    assert len(wanted) > 100


def test_functions_are_called_for_few_rows_and_fail_for_one_query(
    spark: SparkSession, ran: Ran
) -> None:
    good = dict(OF_FUNCTIONS)
    for name, by, most in WEIGHTS.itertuples(index=False):
        good[name] = WEIGHTED.replace(":by", f"{by}D").replace(":most", str(most))
    assert ran.named(good) == expected(spark, ran.tables, good)
    assert any(
        "'fails' has failed and is paused" in told and "too much" in told for told in ran.warned
    )
    assert 0 < ran.calls < ran.tables["trades"].count()
    states = {name: row["state"] for name, row in ran.queries.items()}
    assert {name for name, state in states.items() if state == "paused"} == {*FAILING, "still"}


def test_what_was_done_can_be_asked(ran: Ran) -> None:
    results = {name: row["results"] for name, row in ran.queries.items() if name not in FAILING}
    assert results == {name: ran.answers.get(name, Counter()).total() for name in results}
    assert (results["over-1"], results["still"]) == (0, 0)
    assert ran.queries["over-0"]["parameters"] == '{"least": 10.0}'
    assert (ran.queries["over-0"]["rows_in"], ran.queries["both"]["rows_in"]) == (600, 1200)
    assert [row["rows_in"] for row in ran.batches if row["job"] == "select trades"] == [200] * 3
    assert ran.stored == {"trades", "quotes"}
    assert ran.operators >= {"select", "join"}


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
