"""Aggregates of the same windows are joined, each query's for itself, as in a batch."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from eddyline.errors import NotShareableError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all
from tests.standing.test_aggregates import AT_THE_END, DELAY, alike, of
from tests.standing.test_standing_queries import SCHEMA, START, events

pytestmark = pytest.mark.slow(90)

BY_SYMBOL = """(SELECT window, symbol, count(*) n, sum(volume) v FROM trades WHERE price > 10
                GROUP BY window(time, '30 seconds'), symbol)"""
OF_ALL = """(SELECT window, count(*) n, max(price) p FROM trades
             GROUP BY window(time, '30 seconds'))"""
RARE = """(SELECT window, symbol, count(*) n FROM trades WHERE volume < 40
           GROUP BY window(time, '30 seconds'), symbol HAVING count(*) > 1)"""
DEAR = """(SELECT window, symbol, min(volume) least FROM trades WHERE price > 97
           GROUP BY window(time, '30 seconds'), symbol)"""
SLIDING = """(SELECT window, symbol, count(*) n FROM trades
              GROUP BY window(time, '1 minute', '30 seconds'), symbol)"""

_QUERIES = {
    "share": """SELECT a.symbol, a.window.start s, a.n, b.n AS total FROM BY_SYMBOL a
                JOIN OF_ALL b ON a.window = b.window WHERE a.n * 6 > b.n""",
    "left": """SELECT a.symbol, a.n, b.least, b.window.end e FROM BY_SYMBOL a
               LEFT JOIN DEAR b ON a.window = b.window AND a.symbol <=> b.symbol""",
    "full": """SELECT coalesce(a.window, b.window).start s, a.symbol, b.symbol AS other, a.n,
               b.least FROM RARE a FULL JOIN DEAR b
               ON a.window = b.window AND a.symbol = b.symbol""",
    "itself": """WITH c AS BY_SYMBOL SELECT x.symbol, y.symbol AS other, x.n - y.n AS more
                 FROM c x JOIN c y ON x.window.start = y.window.start AND x.symbol < y.symbol
                 WHERE x.v > y.v""",
    "longer": """SELECT a.symbol, a.window.end e, a.n, b.n AS over FROM BY_SYMBOL a
                 JOIN SLIDING b ON a.window.end = b.window.end AND a.symbol = b.symbol
                 AND a.n * 2 > b.n""",
    "grouped": """SELECT window, max(a.n) m, count(DISTINCT b.symbol) c, max(p) AS dearest
                  FROM RARE a RIGHT JOIN OF_ALL USING (window) LEFT JOIN DEAR b USING (window)
                  GROUP BY window HAVING max(p) > 3""",
    "three": """SELECT window.start s, a.n, b.symbol, c.n AS of_all FROM RARE a
                FULL JOIN DEAR b USING (window) FULL JOIN OF_ALL c USING (window)
                QUALIFY row_number() OVER (PARTITION BY window
                ORDER BY a.n DESC, a.symbol, b.least, b.symbol) <= 3""",
    "sectors": """SELECT a.window.start s, a.symbol, b.n, sector FROM BY_SYMBOL a
                  JOIN OF_ALL b USING (window)
                  LEFT JOIN sectors ON sectors.symbol = a.symbol AND b.n > 20""",
    "table alone": """SELECT a.window.start s, a.symbol, sector FROM RARE a
                      LEFT JOIN sectors k ON k.symbol = a.symbol WHERE a.n < 9""",
    "without": """SELECT a.window.start s, symbol, n FROM BY_SYMBOL a LEFT ANTI JOIN DEAR b
                  ON a.window = b.window AND b.symbol = a.symbol""",
    "twice": """SELECT a.n, b.n AS total FROM BY_SYMBOL a JOIN OF_ALL b USING (window)
                UNION ALL SELECT a.n, b.n AS total FROM BY_SYMBOL a JOIN OF_ALL b USING (window)
                UNION ALL SELECT max(n), count(*) FROM RARE GROUP BY window
                UNION ALL SELECT max(n), count(*) FROM RARE GROUP BY window""",
    "plain": """SELECT window.start s, symbol, count(*) n FROM trades
                GROUP BY window(time, '30 seconds'), symbol""",
}


def _written(sql: str) -> str:
    for name in ("BY_SYMBOL", "OF_ALL", "RARE", "DEAR", "SLIDING"):
        sql = sql.replace(name, globals()[name])
    return sql


QUERIES = {name: _written(sql) for name, sql in _QUERIES.items()}

MARKED = _written(
    """SELECT a.symbol, a.window.start s, a.n, b.n AS total, a.n * :k AS more, :least AS above,
              sector
       FROM (SELECT window, symbol, count(*) n FROM trades WHERE price > :least
             GROUP BY window(time, '30 seconds'), symbol) a
       LEFT JOIN OF_ALL b ON a.window = b.window AND b.n > :k * 5 AND b.n > a.n * :k
       LEFT JOIN sectors ON sectors.symbol = a.symbol AND len(sector) > :k
       WHERE a.n > :k OR a.symbol IS NULL"""
)
MARKS = pd.DataFrame({"name": ["m1", "m3"], "k": [1, 3], "least": [20.0, 50.0]})

INNER = _written(
    """SELECT a.symbol, a.window.start s, a.n - :k AS less FROM BY_SYMBOL a
       JOIN OF_ALL b ON a.window = b.window AND b.n > a.n * :k
       QUALIFY rank() OVER (PARTITION BY b.window ORDER BY a.n * :k) < 3"""
)
INNER_MARKS = pd.DataFrame({"name": ["i2", "i5"], "k": [2, 5]})

_FAILING = {
    "failing": """SELECT a.n / (b.n - b.n) AS x FROM BY_SYMBOL a
                  JOIN OF_ALL b ON a.window = b.window""",
    "failing below": """SELECT a.n, b.n AS total FROM BY_SYMBOL a LEFT JOIN (SELECT window,
                        count(*) n FROM trades GROUP BY window(time, '30 seconds')
                        HAVING 1 / (min(volume) - min(volume)) > 1) b USING (window)""",
}

FAILING = {name: _written(sql) for name, sql in _FAILING.items()}

REFUSED = {
    "SELECT a.n FROM BY_SYMBOL a JOIN OF_ALL b ON a.n = b.n": "write ON a.window = b.window",
    "SELECT a.n FROM BY_SYMBOL a JOIN SLIDING b ON a.window.start = b.window.start": (
        "also for several sizes"
    ),
    "SELECT a.n FROM BY_SYMBOL a JOIN OF_ALL b ON a.window.end = b.window.start": (
        "write ON a.window = b.window"
    ),
    """SELECT b.window, count(*) FROM BY_SYMBOL a LEFT JOIN OF_ALL b ON a.window = b.window
       GROUP BY b.window""": "side that is never missing",
    """SELECT a.n FROM BY_SYMBOL a JOIN (SELECT window, count(*) n FROM quotes
       GROUP BY window(time, '30 seconds')) b ON a.window = b.window""": "make the streams one",
    """SELECT a.n FROM BY_SYMBOL a JOIN trades b ON a.symbol = b.symbol""": "a join of events",
    """SELECT n FROM (SELECT window w, symbol s, count(*) n FROM trades
       GROUP BY window(time, '30 seconds'), symbol) a WHERE s IN (SELECT s FROM (SELECT window w,
       symbol s FROM trades GROUP BY window(time, '30 seconds'), symbol) b WHERE b.w = a.w)""": (
        "LEFT SEMI JOIN"
    ),
    "SELECT sector FROM BY_SYMBOL a RIGHT JOIN sectors b ON a.symbol = b.symbol": (
        "aggregate LEFT JOIN table"
    ),
    """SELECT a.n FROM (SELECT session_window w, count(*) n FROM trades
       GROUP BY session_window(time, '9 seconds'), symbol) a JOIN (SELECT session_window w,
       count(*) n FROM trades GROUP BY session_window(time, '9 seconds'), symbol) b
       ON a.w = b.w""": "sessions are not joined",
    """SELECT n, rank() OVER (PARTITION BY w.start ORDER BY n) r FROM (SELECT session_window w,
       count(*) n FROM trades GROUP BY session_window(time, '9 seconds'), symbol)""": (
        "write PARTITION BY window"
    ),
    """SELECT a.n FROM BY_SYMBOL a LEFT JOIN (SELECT * FROM OF_ALL UNION ALL SELECT * FROM OF_ALL) b
       ON a.window = b.window""": "UNION ALL of the joins",
    " JOIN ".join(["SELECT 1 FROM OF_ALL", *["OF_ALL USING (window)"] * 8]): "more than 8",
}


@pytest.fixture(autouse=True)
def zone(spark: SparkSession) -> Iterator[None]:
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def test_old_windows_are_joined(spark: SparkSession, tmp_path: Path) -> None:
    trades = Feed(spark, tmp_path / "trades", SCHEMA, ("time", DELAY))
    trades.give(events(0, 100, 0))
    trades.give(events(1, 100, 60))
    sink = Gathered()
    streams, state = {"trades": trades.stream()}, tmp_path / "state"
    with StandingQueries(spark, streams=streams, state=state, history="1 day") as queries:
        queries.add(QUERIES["plain"], name="plain")
        run_all(queries, sink)
        queries.add(QUERIES["left"], name="left", backfill="1 hour")
        with pytest.raises(NotShareableError, match="in different windows takes no backfill"):
            queries.add(QUERIES["longer"], name="longer", backfill="1 hour")
        trades.give(events(2, 100, 120))
        trades.give([AT_THE_END])
        run_all(queries, sink)
    wanted = expected(spark, {"trades": of(trades, 0, 1, 2)}, {"left": QUERIES["left"]})
    assert alike({"left": sink.answers()["left"]}) == alike(wanted)


def test_aggregates_are_joined_as_in_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    trades = Feed(spark, tmp_path / "trades", SCHEMA, ("time", DELAY))
    quotes = Feed(spark, tmp_path / "quotes", SCHEMA, ("time", DELAY))
    sectors = spark.createDataFrame(
        [("A", "tech"), ("A", "all"), ("B", None), (None, "none")], "symbol string, sector string"
    )

    def opened() -> StandingQueries:
        streams = {"trades": trades.stream(), "quotes": quotes.stream()}
        tables = {"sectors": sectors}
        return StandingQueries(spark, streams=streams, tables=tables, state=tmp_path / "state")

    sink = Gathered()
    for number in range(2):
        trades.give(events(number, 100, 60 * number))
    with opened() as queries:
        for name, sql in QUERIES.items():
            queries.add(sql, name=name)
        queries.add_many(MARKED, MARKS)
        queries.add_many(INNER, INNER_MARKS)
        queries.add(QUERIES["share"], name="resumed")
        for sql, told in REFUSED.items():
            with pytest.raises(NotShareableError, match=told):
                queries.add(_written(sql), name="refused")
        run_all(queries, sink)
        (share,) = queries.queries().where("name = 'share'").collect()
        assert share["results"] == sink.answers()["share"].total() > 0
        queries.pause("resumed")
        queries.resume("resumed")  # under other numbers
    trades.give(events(2, 100, 120))
    trades.give([AT_THE_END])
    with opened() as queries:
        run_all(queries, sink)
        states = {row["name"]: row["state"] for row in queries.queries().collect()}
    each = {
        name: MARKED.replace(":k", f"{k}L").replace(":least", f"{least}D")
        for name, k, least in MARKS.itertuples(index=False)
    }
    each |= {name: INNER.replace(":k", f"{k}L") for name, k in INNER_MARKS.itertuples(index=False)}
    tables = {"trades": of(trades, 0, 1, 2), "sectors": sectors}
    wanted = expected(spark, tables, QUERIES | each)
    assert set(wanted) == {*QUERIES, *each}
    found = sink.answers()
    late = START + dt.timedelta(minutes=2)
    resumed = Counter({row: n for row, n in found.pop("resumed").items() if row[1] >= late})
    assert resumed == Counter({row: n for row, n in wanted["share"].items() if row[1] >= late})
    assert alike(found) == alike(wanted)
    assert {*states.values()} == {"running"}


def test_a_join_that_raises_pauses_its_query_alone(spark: SparkSession, tmp_path: Path) -> None:
    trades = Feed(spark, tmp_path / "trades", SCHEMA, ("time", DELAY))
    trades.give(events(0, 100, 0))
    trades.give([AT_THE_END])
    good = {name: QUERIES[name] for name in ("share", "left")}
    sink = Gathered()
    streams = {"trades": trades.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        for name, sql in (good | FAILING).items():
            queries.add(sql, name=name)
        with pytest.warns(UserWarning, match="has failed and is paused"):
            run_all(queries, sink)
        reasons = {row["name"]: row["reason"] for row in queries.queries().collect()}
    assert {name for name, reason in reasons.items() if reason} == {*FAILING}
    assert all("DIVI" in reasons[name].upper() for name in FAILING)
    wanted = expected(spark, {"trades": of(trades, 0)}, good)
    assert wanted.keys() == good.keys()
    assert alike(sink.answers()) == alike(wanted)
