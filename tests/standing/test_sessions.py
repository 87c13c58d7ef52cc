"""Standing queries put out sessions as plain Spark has them in a batch, when they have closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline.errors import NotShareableError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all
from tests.standing.test_aggregates import AT_THE_END, DELAY, TOO_LATE, alike, of
from tests.standing.test_standing_queries import SCHEMA, events

pytestmark = pytest.mark.slow(40)

QUERIES = {
    "all": """SELECT session_window.start s, session_window.end e, symbol, count(*) n,
              sum(volume) v, avg(price) a FROM trades
              GROUP BY session_window(time, '4 seconds'), symbol""",
    "few": """SELECT session_window.start s, session_window.end e, symbol, count(*) n,
              min(volume) least FROM trades WHERE price > 60
              GROUP BY session_window(time, '4 seconds'), symbol""",
    "others": """SELECT session_window, symbol, count(price) n FROM trades
                 WHERE volume < 300 OR price < 30
                 GROUP BY symbol, session_window(time, '4 seconds') HAVING count(*) > 1""",
    "long": """SELECT session_window.end e, symbol, max_by(volume % 7, volume) AS greatest,
               count(DISTINCT volume % 5) d, stddev(volume) AS spread FROM trades WHERE price > 80
               GROUP BY session_window(time, '10 seconds'), symbol""",
    "ending": """SELECT symbol, count(*) n, unix_seconds(session_window.end)
                 - unix_seconds(session_window.start) AS took
                 FROM trades WHERE volume % 3 = 1 GROUP BY session_window(time, '4 seconds'), symbol
                 HAVING session_window.end > TIMESTAMP '2026-01-01 12:01:30'
                 AND unix_seconds(session_window.end) - unix_seconds(session_window.start) > 8""",
    "nested": """SELECT upper(symbol) u, n * 2 AS twice FROM (
                     SELECT symbol, count(*) FILTER (WHERE volume > 500) n FROM trades
                     GROUP BY symbol, session_window(time, '6 seconds')) WHERE n > 1""",
    "keyless": """SELECT session_window.start s, session_window.end e, count(*) n,
                  array_sort(collect_set(symbol)) AS symbols FROM trades WHERE volume < 200
                  GROUP BY session_window(time, '1 second')""",
    "computed": """SELECT session_window.start s, volume % 3 AS rest, sum(volume) v FROM trades
                   WHERE price > 50 GROUP BY session_window(time, '2 seconds'), volume % 3""",
    "joined": """SELECT session_window.start s, session_window.end e, t.symbol, count(*) n
                 FROM trades t JOIN quotes q ON t.symbol = q.symbol
                 AND q.time BETWEEN t.time AND t.time + INTERVAL 3 SECONDS
                 WHERE t.price > 70 AND q.volume < 300
                 GROUP BY session_window(t.time, '5 seconds'), t.symbol""",
    "ranked": """SELECT e, symbol, n, sum(n) OVER (PARTITION BY e) AS together FROM (
                     SELECT session_window.end e, symbol, count(*) n FROM trades WHERE price > 30
                     GROUP BY session_window(time, '2 seconds'), symbol)""",
    "sectors": """SELECT session_window.start s, session_window.end e, x.sector,
                  sum(t.volume * x.weight) w FROM trades t JOIN sectors x ON t.symbol = x.symbol
                  WHERE t.price > 50 GROUP BY x.sector, session_window(t.time, '2 seconds')""",
}

LATER = QUERIES["few"].replace("> 60", "> 40")

PER_SYMBOL = """SELECT session_window.start s, session_window.end e, count(*) n,
                sum(volume) + :most AS v FROM trades WHERE symbol = :symbol AND price > :least
                GROUP BY symbol, session_window(time, '4 seconds') HAVING count(*) >= :most"""


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


def test_sessions_close_with_what_plain_spark_has_of_them(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    sectors = spark.createDataFrame(
        [("A", "x", 2), ("B", "x", 3), ("C", "y", 5), (None, "z", 7)],
        "symbol string, sector string, weight int",
    )
    chosen = pd.DataFrame(
        [(f"q{n}", "ABCD"[n % 4], 5.0 * n, n % 4) for n in range(16)],
        columns=["name", "symbol", "least", "most"],
    )

    def opened() -> StandingQueries:
        return StandingQueries(
            spark,
            streams={"trades": trades.stream(), "quotes": quotes.stream()},
            tables={"sectors": sectors},
            state=tmp_path / "state",
        )

    def give(number: int) -> None:  # a third of the events overlaps with those of the batch before
        trades.give(events(number, 150, 45 * number))
        quotes.give(events(100 + number, 150, 45 * number))

    sink = Gathered()
    for number in range(2):
        give(number)
    with opened() as queries:
        for name, sql in QUERIES.items():
            queries.add(sql, name=name)
        with pytest.raises(NotShareableError, match="of a session, its end"):
            queries.add(
                QUERIES["ranked"].replace("session_window.end", "session_window.start"), name="x"
            )
        queries.add(QUERIES["few"].replace("> 60", "> 10"), name="dropped")
        queries.add_many(PER_SYMBOL, chosen)
        run_all(queries, sink)
    for number in range(2, 4):
        give(number)
    trades.give([TOO_LATE, AT_THE_END])
    quotes.give([AT_THE_END])
    with opened() as queries:
        queries.drop("dropped")
        queries.add(LATER, name="later")
        run_all(queries, sink)
        stems = queries.stems().where("stream = 'aggregates' AND job = 'sessions trades.0'")
        kept = [row.rows for row in stems.collect()]
        late = {
            row.job: row.late
            for row in queries.batches().groupBy("job").agg(F.sum("late").alias("late")).collect()
        }
    tables = {"trades": of(trades, *range(5)), "quotes": of(quotes, *range(5)), "sectors": sectors}
    each = {
        name: PER_SYMBOL.replace(":symbol", f"'{symbol}'")
        .replace(":least", str(least))
        .replace(":most", str(most))
        for name, symbol, least, most in chosen.itertuples(index=False)
    }
    wanted = expected(spark, tables, QUERIES | each)
    wanted |= expected(spark, {"trades": of(trades, 2, 3)}, {"later": LATER})
    found = alike(sink.answers())
    assert found.pop("dropped")
    assert found == alike(wanted)
    assert all(len(rows) > 2 for rows in wanted.values())
    # For all groupings of a job together; joins leave out late rows before.
    assert {job: n for job, n in late.items() if "quotes" not in job and "sectors" not in job} == {
        "sessions trades.0": 1,
        "sessions trades": 1,
    }
    # What is left are the sessions of the last event: one row for each grouping that saw it.
    assert 0 < sum(kept) <= 3
    assert len(kept) > 1  # cells


@pytest.mark.parametrize(
    ("gap", "why"),
    [
        ("CASE WHEN volume > 1 THEN '5 minutes' ELSE '1 minute' END", "a query for each gap"),
        ("'1 month'", "not always as long"),
        ("'-5 minutes'", "not always as long, or none"),
    ],
)
def test_what_a_session_cannot_be(
    spark: SparkSession, tmp_path: Path, trades: Feed, gap: str, why: str
) -> None:
    streams = {"trades": trades.stream()}
    with (
        StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries,
        pytest.raises(NotShareableError, match=why),
    ):
        queries.add(
            f"SELECT count(*) n FROM trades GROUP BY session_window(time, {gap})",  # noqa: S608 - ours
            name="refused",
        )


def test_sessions_need_all_events(spark: SparkSession, tmp_path: Path, trades: Feed) -> None:
    def opened(on_overload: str) -> StandingQueries:
        return StandingQueries(
            spark,
            streams={"trades": trades.stream()},
            state=tmp_path / on_overload,
            on_overload=on_overload,
            history="1 day" if on_overload == "block" else None,
        )

    with (
        opened("sample") as queries,
        pytest.raises(NotShareableError, match="need on_overload='block'"),
    ):
        queries.add(QUERIES["all"], name="sampled")
    with opened("block") as queries:
        with pytest.raises(NotShareableError, match="sessions take no backfill"):
            queries.add(QUERIES["all"], name="old", backfill="1 hour")
        queries.add(QUERIES["all"], name="new")
    (tmp_path / "block").rename(tmp_path / "sample again")
    with pytest.raises(NotShareableError, match="need on_overload='block'"):
        StandingQueries(
            spark,
            streams={"trades": trades.stream()},
            state=tmp_path / "sample again",
            on_overload="sample",
            history="1 day",
        )
