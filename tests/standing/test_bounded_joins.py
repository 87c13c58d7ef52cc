"""A join says for how long its rows are stored: by windows, or by what it is added with."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from eddyline.errors import NotShareableError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all

pytestmark = pytest.mark.slow(20)

SCHEMA = "symbol string, volume bigint, time timestamp"
START = dt.datetime(2026, 1, 1, 12, 0)  # noqa: DTZ001 - in the session's zone, as Spark takes it


def events(seed: int, first: int) -> list[tuple[Any, ...]]:
    chance = random.Random(seed)
    return [
        (
            chance.choice("AB"),
            chance.randrange(100),
            START + dt.timedelta(seconds=first + chance.randrange(60)),
        )
        for _ in range(40)
    ]


def feed(spark: SparkSession, directory: Path, seed: int, delay: str | None) -> Feed:
    found = Feed(spark, directory, SCHEMA, None if delay is None else ("time", delay))
    for number in range(4):
        found.give(events(seed + number, 60 * number))
    return found


PAIR = "SELECT t.volume tv, q.volume qv FROM trades t JOIN quotes q ON t.symbol = q.symbol"
AGAIN = "SELECT a.volume av, b.volume bv FROM trades a JOIN trades b ON a.symbol = b.symbol"
THREE = f"""{PAIR.replace("SELECT", "SELECT u.volume uv,")} JOIN trades u ON u.symbol = q.symbol
            AND u.time BETWEEN q.time AND q.time + INTERVAL 3 SECONDS"""
COUNTED = """SELECT window.start, count(*) many FROM trades t JOIN quotes q ON t.symbol = q.symbol
             GROUP BY window(t.time, '1 minute')"""
UNTIMED = "SELECT t.volume FROM trades t JOIN timeless n ON t.symbol = n.symbol"
TABLE = "SELECT t.volume, s.sector FROM trades t JOIN sectors s ON t.symbol = s.name"

REFUSED = {
    PAIR: "rows of (trades|quotes) would be stored for ever.*b.time BETWEEN.*keep='1 hour'",
    PAIR + " WHERE t.volume > 5 AND q.volume > t.volume": "for ever",
    PAIR + " AND t.time < q.time": "rows of trades",
    PAIR + " AND q.time <= t.time + INTERVAL 5 SECONDS": "rows of quotes",
    AGAIN + " AND a.time > b.time": "rows of trades",
    THREE: "for ever",
    THREE + " AND t.time >= u.time - INTERVAL 1 SECONDS": "rows of (trades|quotes)",
    UNTIMED: "make timeless with withWatermark",
    COUNTED: "never ends",
}
KEPT: dict[str, str | dt.timedelta] = {
    PAIR: "20 seconds",
    PAIR + " AND t.time < q.time": "15 seconds",
    THREE + " AND t.volume < 20": "4 seconds",
    AGAIN + " AND a.volume > b.volume + 60": dt.timedelta(seconds=2),
}
BOUNDED = (
    PAIR + " AND t.time = q.time",
    PAIR + " AND t.time - q.time BETWEEN INTERVAL -3 SECONDS AND INTERVAL 3 SECONDS",
    THREE + " AND t.time BETWEEN u.time - INTERVAL 2 SECONDS AND u.time",
)


def near(sql: str, seconds: int) -> str:
    """Return the same for plain Spark, with what ``keep`` says."""
    names = ["t", "q", "u"] if "u.volume" in sql else ["a", "b"] if sql.startswith(AGAIN) else "tq"
    terms = [
        f"{one}.time BETWEEN {other}.time - INTERVAL {seconds} SECONDS "
        f"AND {other}.time + INTERVAL {seconds} SECONDS"
        for one in names
        for other in names
        if one < other
    ]
    head, group, tail = sql.partition("GROUP BY")
    glue = "WHERE" if "WHERE" not in sql else "AND"
    return f"{head} {glue} {' AND '.join(terms)} {group}{tail}"


def test_joins_without_a_bound(spark: SparkSession, tmp_path: Path) -> None:
    trades, quotes = (
        feed(spark, tmp_path / name, 10 * seed, "5 seconds")
        for seed, name in enumerate(["trades", "quotes"])
    )
    timeless = feed(spark, tmp_path / "timeless", 20, None)
    sectors = spark.createDataFrame([("A", "food")], "name string, sector string")
    wanted = {f"bounded {n}": sql for n, sql in enumerate(BOUNDED)}
    wanted |= {
        f"kept {n}": near(sql, keep.seconds if isinstance(keep, dt.timedelta) else int(keep[:2]))
        for n, (sql, keep) in enumerate(KEPT.items())
    }
    wanted["many-0"] = near(PAIR + " AND t.volume > 90", 10)
    wanted["counted"] = near(COUNTED, 3)

    def opened() -> StandingQueries:
        return StandingQueries(
            spark,
            streams={name: each.stream() for name, each in streams.items()},
            tables={"sectors": sectors},
            state=tmp_path / "state",
        )

    streams = {"trades": trades, "quotes": quotes, "timeless": timeless}
    sink = Gathered()
    with opened() as queries:
        for sql, why in REFUSED.items():
            with pytest.raises(NotShareableError, match=why):
                queries.add(sql, name="refused")
        with pytest.raises(NotShareableError, match="for ever"):
            queries.add_many(
                PAIR + " AND t.volume > :least", pd.DataFrame({"least": [1]}), name="x"
            )
        for sql, keep, why in (
            ("SELECT symbol FROM trades", "1 hour", "joins no streams"),
            (TABLE, "forever", "joins no streams"),
            (UNTIMED, "1 hour", "timeless has no watermark"),
            (PAIR, "soon", "no interval"),
            (PAIR, "-1 hour", "from 0 on"),
            (COUNTED, "forever", "never ends"),
        ):
            with pytest.raises(ValueError, match=why):
                queries.add(sql, name="refused", keep=keep)
        for n, sql in enumerate(BOUNDED):
            queries.add(sql, name=f"bounded {n}")
        queries.add(PAIR, name="kept 0", keep="forever")
        with pytest.raises(NotShareableError, match="for ever"):
            queries.replace("kept 0", PAIR)
        queries.drop("kept 0")
        for n, (sql, some) in enumerate(KEPT.items()):
            queries.add(sql, name=f"kept {n}", keep=some)
        least = pd.DataFrame({"least": [90]})
        queries.add_many(PAIR + " AND t.volume > :least", least, name="many", keep="10 seconds")
        queries.add(COUNTED, name="counted", keep="3 seconds")
        run_all(queries, sink)
        stored = {row["stream"]: 0 for row in queries.stems().collect()}
        for row in queries.stems().where("job LIKE 'join %'").collect():
            stored[row["stream"]] += row["rows"]
        assert 0 < stored["quotes"] < 80  # of 160
    for each in (trades, quotes):
        each.give(events(77, 240))
    with opened() as queries:
        run_all(queries, sink)
        told = {row["name"]: row["keep"] for row in queries.queries().collect()}
    assert told["kept 0"] == "0:00:20"
    assert told["bounded 0"] is None
    tables = {"trades": trades.rows(), "quotes": quotes.rows(), "sectors": sectors}
    answers, plain = sink.answers(), expected(spark, tables, wanted)
    assert answers.keys() == plain.keys() == wanted.keys()
    windows = answers.pop("counted")
    assert windows <= plain.pop("counted")
    assert windows.total() == 4
    assert answers == plain
