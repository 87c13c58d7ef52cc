"""Ranks, shares and further aggregates of the groups of a window are as in a batch."""

from __future__ import annotations

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
from tests.standing.test_standing_queries import SCHEMA, events

pytestmark = pytest.mark.slow(60)

COUNTS = """(SELECT window, symbol, count(*) n, sum(volume) v FROM trades WHERE price > 10
            GROUP BY window(time, '30 seconds'), symbol)"""

_QUERIES = {
    "top": """SELECT symbol, window.start s, n, r FROM (SELECT *, row_number()
               OVER (PARTITION BY window ORDER BY n DESC, symbol) r FROM COUNTS) WHERE r <= 2""",
    "qualified": """SELECT symbol, window.end e, v FROM COUNTS
                     QUALIFY rank() OVER (PARTITION BY window.end ORDER BY n DESC) <= 2""",
    "dense": """SELECT window, upper(symbol) u, d * 2 AS twice FROM (SELECT *, dense_rank()
                 OVER (PARTITION BY window.start, symbol IS NULL ORDER BY n) d FROM COUNTS)
                 WHERE d < 3 AND n + v > 2000""",
    "share": """SELECT window.start s, symbol, count(*) / sum(count(*)) OVER (PARTITION BY window)
                AS share FROM trades GROUP BY window(time, '1 minute'), symbol""",
    "next to": """SELECT window.start s, symbol, n - lag(n) OVER w AS more, ntile(2) OVER w half,
                   first_value(v) OVER w AS first, avg(n) OVER (PARTITION BY window) AS mean
                   FROM COUNTS WINDOW w AS (PARTITION BY window ORDER BY symbol)""",
    "sliding": """SELECT s, symbol, n FROM (SELECT window.start s, symbol, count(*) n FROM trades
                  GROUP BY window(time, '60 seconds', '20 seconds'), symbol HAVING count(*) > 30)
                  QUALIFY row_number() OVER (PARTITION BY s ORDER BY n DESC, symbol) = 1""",
    "aggregates": """SELECT window.start s, max(n) most, count(*) c, max_by(symbol, n * 1000 + v) b
                      FROM COUNTS GROUP BY window HAVING max(n) > 8""",
    "distinct": """SELECT window.end e, count(DISTINCT n) d, avg(v) FILTER (WHERE n > 7) a,
                    sum(DISTINCT n % 3) FILTER (WHERE symbol IS NOT NULL) t, count(symbol) c
                    FROM COUNTS GROUP BY window.end""",
    "without copies": "SELECT DISTINCT window.start s, n % 3 AS rest FROM COUNTS",
    "three": """SELECT s, low, m FROM (SELECT window.start s, symbol < 'C' AS low, max(n) m,
                 sum(v) v FROM COUNTS GROUP BY window, symbol < 'C')
                 QUALIFY rank() OVER (PARTITION BY s ORDER BY v DESC, low) = 1""",
    "by minute": """SELECT minute, symbol, volume FROM (SELECT date_trunc('minute', time) AS minute,
                    symbol, sum(volume) volume FROM trades GROUP BY ALL)
                    QUALIFY row_number() OVER (PARTITION BY minute ORDER BY volume, symbol) <= 2""",
    "decided": """SELECT s, c FROM (SELECT window.start s, symbol, count(*) c FROM trades
                  GROUP BY window(time, '30 seconds'), symbol
                  HAVING array_contains(collect_set(volume % 9), 3L) AND count(*) > 3)
                  QUALIFY c = max(c) OVER (PARTITION BY s)""",
    "joined": """SELECT s, symbol, n FROM (SELECT window.start s, t.symbol, count(*) n
                 FROM trades t JOIN quotes q ON t.symbol = q.symbol
                 AND q.time BETWEEN t.time AND t.time + INTERVAL 10 SECONDS
                 GROUP BY window(t.time, '1 minute'), t.symbol)
                 QUALIFY row_number() OVER (PARTITION BY s ORDER BY n DESC, symbol) <= 2""",
    "plain": """SELECT window.start s, symbol, count(*) n, max(price) AS dearest FROM trades
                GROUP BY window(time, '30 seconds'), symbol""",
}

QUERIES = {name: sql.replace("COUNTS", COUNTS) for name, sql in _QUERIES.items()}

TOP = """SELECT symbol, window.start s, n, :k AS k FROM (SELECT window, symbol, count(*) n
         FROM trades WHERE price > :least GROUP BY window(time, '30 seconds'), symbol)
         QUALIFY row_number() OVER (PARTITION BY window ORDER BY n DESC, symbol) <= :k"""

PER_SYMBOL = """SELECT window.start s, symbol, count(*) n FROM trades WHERE price > 10
                GROUP BY window(time, '30 seconds'), symbol"""

MEAN = """SELECT window.start s, avg(n) AS mean, max(n) + :k AS beyond FROM (SELECT window, symbol,
          count(*) n FROM trades WHERE symbol <> :not GROUP BY window(time, '30 seconds'), symbol)
          WHERE n > :k GROUP BY window"""


@pytest.fixture(autouse=True)
def zone(spark: SparkSession) -> Iterator[None]:
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.fixture
def trades(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "trades", SCHEMA, ("time", DELAY))


@pytest.fixture
def quotes(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "quotes", SCHEMA, ("time", DELAY))


def results_of(queries: StandingQueries) -> Counter[str]:
    """How many results each query has had since the start; all of them run."""
    rows = queries.queries().collect()
    assert {row["state"] for row in rows} == {"running"}
    return Counter({row["name"]: row["results"] for row in rows})


def test_groups_of_a_window_are_compared_as_in_a_batch(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    tops = pd.DataFrame(
        [(f"top {k} above {least}", k, least) for k in (1, 2, 3) for least in (20.0, 50.0)],
        columns=["name", "k", "least"],
    )
    means = pd.DataFrame({"name": ["mean A", "mean B"], "k": [2, 6], "not": ["A", "B"]})

    def opened() -> StandingQueries:
        streams = {"trades": trades.stream(), "quotes": quotes.stream()}
        return StandingQueries(spark, streams=streams, state=tmp_path / "state")

    sink = Gathered()
    for number in range(2):
        trades.give(events(number, 200, 60 * number))
        quotes.give(events(100 + number, 200, 60 * number))
    with opened() as queries:
        for name, sql in QUERIES.items():
            queries.add(sql, name=name)
        queries.add_many(TOP, tops)
        queries.add_many(MEAN, means)
        run_all(queries, sink)
        told = results_of(queries)
    trades.give(events(2, 200, 120))
    trades.give([AT_THE_END])
    quotes.give([*events(102, 200, 120), AT_THE_END])
    with opened() as queries:
        run_all(queries, sink)
        told += results_of(queries)
    each = {
        name: TOP.replace(":k", f"{k}L").replace(":least", str(least))
        for name, k, least in tops.itertuples(index=False)
    }
    each |= {
        name: MEAN.replace(":k", f"{k}L").replace(":not", f"'{symbol}'")
        for name, k, symbol in means.itertuples(index=False)
    }
    tables = {"trades": of(trades, 0, 1, 2), "quotes": of(quotes, 0, 1, 2)}
    wanted = expected(spark, tables, QUERIES | each)
    assert set(wanted) == {*QUERIES, *each}
    assert alike(sink.answers()) == alike(wanted)
    assert told == {name: rows.total() for name, rows in wanted.items()}


def test_a_step_that_raises_pauses_its_query_alone(
    spark: SparkSession, tmp_path: Path, trades: Feed
) -> None:
    def over_counts(sql: str) -> str:
        return sql.replace("COUNTS", f"({PER_SYMBOL})")

    template = over_counts("SELECT s, 100 / (:by - max(n)) AS q FROM COUNTS GROUP BY s")
    many = over_counts("SELECT s, n, rank() OVER (PARTITION BY s ORDER BY n) AS r FROM COUNTS")
    best = over_counts("SELECT s, n FROM COUNTS QUALIFY n = max(n) OVER (PARTITION BY s)")
    trades.give([*events(0, 200, 0), AT_THE_END])
    rows = of(trades, 0)
    rows.createOrReplaceTempView("trades")
    most = [row.n for row in spark.sql(best).collect()]
    by = pd.DataFrame({"by": [999, most[0], 1_000, most[-1], 1_001, 1_002, 1_003]})
    by["name"] = [f"by {number}" for number in by["by"]]
    sink = Gathered()
    streams = {"trades": trades.stream()}
    with StandingQueries(
        spark, streams=streams, state=tmp_path / "state", max_results=8
    ) as queries:
        names = queries.add_many(template, by)
        divided = over_counts("SELECT s, 10 / (max(n) - MOST) AS q FROM COUNTS GROUP BY s")
        divided = divided.replace("MOST", str(most[0]))
        tried = divided.replace("10 / (", "try_divide(10, ")  # which has the same text in Spark
        queries.add(divided, name="divided")
        queries.add(tried, name="tried")
        queries.add(many, name="many")
        queries.add(PER_SYMBOL, name="plain")
        queries.add(best, name="best")
        with pytest.warns(UserWarning, match="has failed and is paused"):
            run_all(queries, sink)
        table = {row["name"]: row for row in queries.queries().collect()}
    wrong = {f"by {number}" for number in most}
    assert {name for name, row in table.items() if row["state"] == "paused"} == {
        *wrong,
        "divided",
        "many",
        "plain",
    }
    assert all("DIVIDE_BY_ZERO" in table[name]["reason"] for name in wrong)
    assert "max_results is 8" in table["many"]["reason"]
    found = sink.answers()
    assert found.pop("plain").total() >= 8
    assert found.pop("many").total() == table["many"]["results"] == 8
    assert found["best"].total() == len(most)
    good = {
        name: template.replace(":by", f"{number}L")
        for name, number in zip(names, by["by"], strict=True)
        if name not in wrong
    }
    wanted = expected(spark, {"trades": rows}, good | {"tried": tried})
    assert alike({name: found[name] for name in wanted}) == alike(wanted)
    assert not found.keys() & {*wrong, "divided"}


def test_steps_are_taken_for_old_windows(spark: SparkSession, tmp_path: Path, trades: Feed) -> None:
    chosen = {name: QUERIES[name] for name in ("top", "sliding", "distinct", "three")}

    def opened() -> StandingQueries:
        streams = {"trades": trades.stream()}
        return StandingQueries(spark, streams=streams, state=tmp_path / "state", history="1 hour")

    sink = Gathered()
    for number in range(2):
        trades.give(events(number, 200, 60 * number))
    with opened() as queries:
        run_all(queries, sink)
    trades.give([*events(2, 200, 120), AT_THE_END])
    with opened() as queries:
        for name, sql in chosen.items():
            queries.add(sql, name=name, backfill="1 hour")
        run_all(queries, sink)
        states = {row["name"]: row["backfill"] for row in queries.queries().collect()}
    assert states == dict.fromkeys(chosen, "done")
    wanted = expected(spark, {"trades": of(trades, 0, 1, 2)}, chosen)
    assert alike(sink.answers()) == alike(wanted)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (
            "SELECT symbol, rank() OVER (PARTITION BY symbol ORDER BY n) r FROM COUNTS",
            "write PARTITION BY window",
        ),
        ("SELECT symbol, max(n) OVER () m FROM COUNTS", "write PARTITION BY window"),
        ("SELECT symbol, max(n) m FROM COUNTS GROUP BY symbol", "write GROUP BY window"),
        (
            "SELECT window(window, '2 minutes') w, max(n) m FROM COUNTS GROUP BY 1",
            "write GROUP BY window",
        ),
        (
            "SELECT window, symbol, max(n) m FROM COUNTS GROUP BY ROLLUP (window, symbol)",
            "ROLLUP, CUBE or GROUPING SETS over the groups",
        ),
        (
            "SELECT window, plus_one(max(n)) m FROM COUNTS GROUP BY window",
            "call it in the sink",
        ),
        (
            "SELECT window, max(n) + rand() m FROM COUNTS GROUP BY window",
            "not deterministic",
        ),
        ("SELECT symbol, n FROM COUNTS ORDER BY n LIMIT 3", "write a top-k per window: QUALIFY"),
        ("SELECT symbol, n FROM COUNTS ORDER BY n", "write a top-k per window: QUALIFY"),
        (
            "SELECT symbol, row_number() OVER (PARTITION BY symbol ORDER BY time) r FROM trades",
            "of events: write an aggregate",
        ),
    ],
)
def test_refusals_say_what_to_write(
    spark: SparkSession, tmp_path: Path, trades: Feed, sql: str, why: str
) -> None:
    spark.udf.register("plus_one", lambda n: n + 1, "bigint")
    streams = {"trades": trades.stream()}
    with (
        StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries,
        pytest.raises(NotShareableError, match=why),
    ):
        queries.add(sql.replace("COUNTS", COUNTS), name="refused")


def test_samples_have_no_ranks(spark: SparkSession, tmp_path: Path, trades: Feed) -> None:
    streams, state = {"trades": trades.stream()}, tmp_path / "state"
    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.add(QUERIES["top"], name="top")
    with pytest.raises(NotShareableError, match="on_overload='block'"):
        StandingQueries(spark, streams=streams, state=state, on_overload="sample")
    with (
        StandingQueries(
            spark, streams=streams, state=tmp_path / "other", on_overload="sample"
        ) as queries,
        pytest.raises(NotShareableError, match="on_overload='block'"),
    ):
        queries.add(QUERIES["top"], name="top")
