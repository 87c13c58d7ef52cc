"""Standing queries that aggregate put out the windows that have closed, as plain Spark has them."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's convention

from eddyline.errors import NotShareableError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Answers, Feed, Gathered, expected, run_all
from tests.standing.test_standing_queries import SCHEMA, START, events

pytestmark = pytest.mark.slow(40)

DELAY = "20 seconds"

AT_THE_END = ("Z", 1.0, 1, START + dt.timedelta(hours=1))
"""An event after which all windows of those before it have closed; its own never do."""

TOO_LATE = ("Y", 1.0, 1, START - dt.timedelta(hours=1))

QUERIES = {
    "tumbling": """SELECT window.start s, symbol, count(*) n, count(price) c, sum(volume) v,
                   avg(price) a, min(symbol) least, max(price) greatest
                   FROM trades WHERE price > 10 OR price IS NULL
                   GROUP BY window(time, '1 minute'), symbol""",
    "sliding": """SELECT window, count(*) n, avg(volume) a FROM trades
                  GROUP BY window(time, '60 seconds', '20 seconds')""",
    "uneven": """SELECT window.end e, volume % 3 AS third, max(volume) - min(volume) r FROM trades
                 GROUP BY window(time, '50 seconds', '20 seconds', '5 seconds'), volume % 3
                 HAVING count(*) > 30 AND sum(volume) / count(volume) > 480""",
    "ending": """SELECT window.start s, symbol, count(*) n FROM trades
                 GROUP BY window(time, '30 seconds'), symbol
                 HAVING window.end > TIMESTAMP '2026-01-01 12:02:00' OR count(*) > 24""",
    "nested": """SELECT upper(symbol) u, n * 2 AS twice FROM (
                     SELECT symbol, count(*) FILTER (WHERE volume > 500) n FROM trades
                     GROUP BY symbol, window(time, '30 seconds')) WHERE n > 5""",
    "called": """SELECT window.start s, count(*) n FROM trades WHERE is_even(volume)
                 GROUP BY window(time, '1 minute')""",
    "joined": """SELECT window.start s, t.symbol, count(*) n, sum(q.volume) v
                 FROM trades t JOIN quotes q ON t.symbol = q.symbol
                 AND q.time BETWEEN t.time AND t.time + INTERVAL 10 SECONDS
                 WHERE t.price > 30 GROUP BY window(t.time, '1 minute'), t.symbol""",
    "sectors": """SELECT s.sector, window.end e, sum(t.volume * s.weight) w
                  FROM trades t JOIN sectors s ON t.symbol = s.symbol
                  GROUP BY s.sector, window(t.time, '1 minute')""",
    "distinct": """SELECT window.start s, symbol, count(DISTINCT volume % 7) n,
                   sum(DISTINCT volume % 5) v, count(*) rows, avg(DISTINCT volume % 3) a,
                   count(DISTINCT price) FILTER (WHERE volume > 500) c FROM trades
                   GROUP BY symbol, window(time, '90 seconds', '45 seconds')
                   HAVING count(DISTINCT volume % 7) > 2""",
    "moments": """SELECT window.end e, stddev(volume) d, var_pop(price) p, var_samp(price) AS q,
                  stddev_pop(volume % 2) h, approx_count_distinct(symbol) n,
                  array_sort(collect_set(symbol)) AS every FROM trades
                  WHERE NOT isnan(price) GROUP BY window(time, '40 seconds')""",
    "chosen": """SELECT window.start s, symbol, max_by(volume % 7, volume) AS latest,
                 min_by(price + 1, price) AS least_of,
                 max_by(-volume, volume) FILTER (WHERE price > 50) AS dear,
                 bit_or(volume) AS bits, bit_and(volume) AS common, bit_xor(volume) AS odd
                 FROM trades GROUP BY symbol, window(time, '1 minute', '30 seconds')""",
    "counted": """SELECT window.start s, median(price) m, percentile(volume, array(0.1, 0.9)) ps,
                  percentile_approx(volume, 0.9) p9, mode(volume % 7, true) AS often,
                  array_sort(collect_list(struct(volume, symbol))) AS each,
                  any_value(symbol) IS NULL AS never, skewness(volume) AS skew,
                  kurtosis(volume) AS kurt, corr(volume, price) AS rho,
                  covar_samp(price, volume) AS cov
                  FROM trades WHERE NOT isnan(price) AND symbol IS NOT NULL
                  GROUP BY window(time, '1 minute')""",
    "several": """SELECT window.start s, count(DISTINCT symbol, volume % 5) n,
                  count(DISTINCT struct(symbol, volume % 5)) AS n2, count(symbol, price) AS n3
                  FROM trades GROUP BY window(time, '50 seconds')""",
    "nested keys": """SELECT window.start s, array(symbol, upper(symbol)) AS both, count(*) n,
                      struct(volume % 2 AS rest, price > 50 AS high) AS kind FROM trades
                      GROUP BY window(time, '1 minute'), array(symbol, upper(symbol)),
                      struct(volume % 2 AS rest, price > 50 AS high)""",
    "by minute": """SELECT date_trunc('minute', time) AS minute, symbol, count(*) n FROM trades
                    GROUP BY date_trunc('minute', time), symbol
                    HAVING date_trunc('minute', time) > TIMESTAMP '2026-01-01 12:01:00'""",
    "by second": """SELECT volume % 2 AS rest, date_trunc('SECOND', time) AS second,
                    min(symbol) AS lowest FROM trades GROUP BY ALL""",
    "share": """SELECT window.start s, symbol FROM trades
                GROUP BY symbol, window(time, '20 seconds')
                HAVING count_if(price > 50) * 100.0 / count(*) > 60 AND count(*) > 2""",
    "extended": """SELECT window.start s, count(*) n FROM trades GROUP BY window(time, '20 seconds')
                   HAVING max(time) - min(time) > INTERVAL 15 SECONDS
                   AND array_contains(collect_set(symbol), 'A')
                   AND size(collect_set(volume)) > 60""",
    "alike pairs": """SELECT t.symbol, q.volume FROM trades t JOIN quotes q ON t.symbol = q.symbol
                      AND q.time BETWEEN t.time AND t.time + INTERVAL 10 SECONDS
                      WHERE levenshtein(CAST(t.volume AS STRING), CAST(q.volume AS STRING)) = 1
                      AND hash(t.volume, q.price) % 3 = 0""",
    "shifted": """SELECT t.symbol, q.volume FROM trades t JOIN quotes q
                  ON CAST(t.volume AS STRING) = CAST(try_add(q.volume, 1) AS STRING)
                  AND q.time BETWEEN t.time AND t.time + INTERVAL 10 SECONDS""",
    "pairs": """SELECT t.symbol, q.volume FROM trades t JOIN quotes q ON t.symbol = q.symbol
                AND q.time BETWEEN t.time AND t.time + INTERVAL 10 SECONDS WHERE t.price > 95""",
}

LATER = QUERIES["tumbling"].replace("10 OR", "40 OR")

PER_SYMBOL = """SELECT symbol, window.start s, count(*) n, sum(volume) + :most v FROM trades
                WHERE symbol = :symbol AND price > :least
                GROUP BY symbol, window(time, '1 minute') HAVING count(*) >= :most
                AND sum(volume) * 1.0 / count(*) > 440 + :least"""


def alike(answers: Answers) -> Answers:
    """Rows whose fractions are rounded: sums of them depend on the order."""

    def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            round(v, 6) if isinstance(v, float) else rounded(v) if type(v) is tuple else v
            for v in row
        )

    return {
        name: Counter({rounded(row): n for row, n in rows.items()})
        for name, rows in answers.items()
    }


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


def of(feed: Feed, *batches: int) -> DataFrame:
    """The rows of some batches that were neither too late nor are still in open windows."""
    rows = feed.rows(batches)
    return rows.where("symbol IS NULL OR symbol NOT IN ('Y', 'Z')")


def test_windows_close_with_what_plain_spark_has_of_them(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    spark.udf.register("is_even", lambda n: n % 2 == 0, "boolean")
    sectors = spark.createDataFrame(
        [("A", "x", 2), ("B", "x", 3), ("C", "y", 5), (None, "z", 7)],
        "symbol string, sector string, weight int",
    )
    chosen = pd.DataFrame(
        [(f"q{n}", "ABCD"[n % 4], float(n), n % 17) for n in range(40)],
        columns=["name", "symbol", "least", "most"],
    )

    def opened() -> StandingQueries:
        return StandingQueries(
            spark,
            streams={"trades": trades.stream(), "quotes": quotes.stream()},
            tables={"sectors": sectors},
            state=tmp_path / "state",
        )

    sink = Gathered()
    for number in range(3):
        trades.give(events(number, 200, 60 * number))
        quotes.give(events(100 + number, 200, 60 * number))
    with opened() as queries:
        for name, sql in QUERIES.items():
            queries.add(sql, name=name)
        queries.add(QUERIES["tumbling"].replace("> 10", "> 20"), name="dropped")
        queries.add_many(PER_SYMBOL, chosen)
        run_all(queries, sink)
    for number in range(3, 5):
        trades.give(events(number, 200, 60 * number))
        quotes.give(events(100 + number, 200, 60 * number))
    trades.give([TOO_LATE, AT_THE_END])
    quotes.give([AT_THE_END])
    with opened() as queries:
        queries.drop("dropped")
        queries.add(LATER, name="later")
        run_all(queries, sink)
        kept = {
            row.job: row.rows for row in queries.stems().where("stream = 'aggregates'").collect()
        }
        late = {
            row.job: row.late
            for row in queries.batches().groupBy("job").agg(F.sum("late").alias("late")).collect()
        }
        sectors_job = next(job for job in late if "sectors" in job)
    tables = {"trades": of(trades, *range(6)), "quotes": of(quotes, *range(6)), "sectors": sectors}
    each = {
        name: PER_SYMBOL.replace(":symbol", f"'{symbol}'")
        .replace(":least", str(least))
        .replace(":most", str(most))
        for name, symbol, least, most in chosen.itertuples(index=False)
    }
    wanted = expected(spark, tables, QUERIES | dict(list(each.items())[::6]))
    wanted |= expected(spark, {"trades": of(trades, 3, 4)}, {"later": LATER})
    found = alike(sink.answers())
    assert found.pop("dropped")
    assert {name: found[name] for name in wanted} == alike(wanted)
    assert set(found) - set(wanted) <= set(each)
    assert late["aggregate trades"] == 1
    assert late[sectors_job] == 0  # it is of no sector
    # What is left are the windows of the last event, one row for each grouping that saw it.
    assert 0 < kept["aggregate trades"] <= 14


def test_an_aggregate_that_fails_stops_one_query(
    spark: SparkSession, tmp_path: Path, trades: Feed
) -> None:
    template = """SELECT window.start s, {} FROM trades WHERE volume < 100
                  GROUP BY window(time, '1 minute') HAVING {}"""
    queries_by_name = {
        "argument": template.format("sum(100 / (volume - 7)) x", "true"),
        "having": template.format("count(*) n", "count(*) / (count(price) - count(price)) > 0"),
        "quotient": template.format("count(*) n", "100.0 / (count(*) - 4) > 1"),
        "no quotient": template.format("count(*) n", "100.0 / (count(*) - 4) > 1 AND count(*) > 9"),
        "sum": template.format("sum(volume + 9223372036854775000) y", "true"),
        "good": template.format("sum(volume) v", "count(*) > 1"),
        "divided": template.format("100 / (count(*) - 4) AS d", "true"),
        "tried": template.format("try_divide(100, count(*) - 4) AS d", "true"),
        "try": template.format("try_sum(volume + 9223372036854775000) y, count(*) n", "true"),
    }
    trades.give([("A", 1.0, n, START + dt.timedelta(seconds=n)) for n in (5, 6, 7, 8)])
    trades.give([AT_THE_END])
    sink = Gathered()
    with StandingQueries(
        spark, streams={"trades": trades.stream()}, state=tmp_path / "state"
    ) as queries:
        for name, sql in queries_by_name.items():
            queries.add(sql, name=name)
        with pytest.warns(UserWarning, match="has failed and is paused") as told:
            run_all(queries, sink)
        states = {row.name: (row.state, row.reason) for row in queries.queries().collect()}
    # PySpark 4.0 warns of sockets beside it, which are not this test's.
    assert len([each for each in told if "is paused" in str(each.message)]) == 5
    fine = {"good", "try", "tried"}  # "no quotient" has no result in either
    assert states["no quotient"][0] == "running"
    good = {name: sql for name, sql in queries_by_name.items() if name in fine}
    assert sink.answers() == expected(spark, {"trades": of(trades, 0)}, good)
    for name, what in (
        ("argument", "DIVIDE_BY_ZERO"),
        ("having", "DIVIDE_BY_ZERO"),
        ("quotient", "It was met with window = "),
        ("sum", "ARITHMETIC_OVERFLOW"),
        ("divided", "DIVIDE_BY_ZERO"),
    ):
        state, reason = states[name]
        assert state == "paused"
        assert what in reason


def test_days_are_those_of_windows_in_utc_alone(
    spark: SparkSession, tmp_path: Path, trades: Feed
) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    streams = {"trades": trades.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        for group in ("to_date(time)", "date_trunc('DAY', time)", "date_format(time, 'HH')"):
            with pytest.raises(NotShareableError, match="never end: write GROUP BY window"):
                queries.add(f"SELECT count(*) n FROM trades GROUP BY {group}", name="refused")  # noqa: S608 - ours


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT count(*) FROM trades", "never ends"),
        ("SELECT symbol, count(*) FROM trades GROUP BY symbol", "never ends"),
        ("SELECT DISTINCT symbol FROM trades", "never ends"),
        (
            "SELECT first(price) FROM trades GROUP BY window(time, '1 minute')",
            "min_by\\(x, time\\) for the earliest",
        ),
        (
            "SELECT median(DISTINCT price) FROM trades GROUP BY window(time, '1 minute')",
            "leave out DISTINCT",
        ),
        (
            """SELECT listagg(symbol, ',') WITHIN GROUP (ORDER BY symbol) FROM trades
               GROUP BY window(time, '1 minute')""",
            "array_sort\\(collect_set",
        ),
        (
            "SELECT max(struct(price)) FROM trades GROUP BY window(time, '1 minute')",
            "max_by\\(x, y\\)",
        ),
        (
            """SELECT symbol, count(*) FROM trades
               GROUP BY window(time, '1 minute'), ROLLUP(symbol)""",
            "ROLLUP, CUBE and GROUPING SETS",
        ),
        ("SELECT stddev(DISTINCT price) FROM trades GROUP BY window(time, '1 minute')", "stddev"),
        (
            """SELECT max(time - TIMESTAMP '2026-01-01') FROM trades
               GROUP BY window(time, '1 minute')""",
            "interval",
        ),
        (
            "SELECT hour(time), count(*) FROM trades GROUP BY hour(time)",
            "window\\(time, '1 hour'\\)",
        ),
        ("SELECT price, count(*) OVER (PARTITION BY symbol) FROM trades", "FOLLOWED BY for the"),
        ("SELECT symbol FROM trades ORDER BY symbol", "sort them in the sink"),
        (
            "SELECT symbol FROM trades WHERE volume > (SELECT max(volume) FROM quotes)",
            "join the table that",
        ),
        (
            "SELECT sum(is_even(volume)::int) FROM trades GROUP BY window(time, '1 minute')",
            "Python function",
        ),
        (
            """SELECT count(*) FROM trades t JOIN quotes q ON t.symbol = q.symbol
               GROUP BY window(t.time, '1 minute')""",
            "no window between the times",
        ),
        (
            "SELECT count(*) n FROM trades GROUP BY window(time + INTERVAL 1 HOUR, '1 minute')",
            "windows of a computed time",
        ),
        (
            """SELECT max(n) FROM (SELECT count(*) n, window w FROM trades
               GROUP BY window(time, '1 minute')) GROUP BY hour(w.start)""",
            "an aggregate of aggregates over the groups of several windows",
        ),
    ],
)
def test_aggregates_that_cannot_stand_are_refused(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed, sql: str, why: str
) -> None:
    spark.udf.register("is_even", lambda n: n % 2 == 0, "boolean")
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    with (
        StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries,
        pytest.raises(NotShareableError, match=why),
    ):
        queries.add(sql, name="refused")
