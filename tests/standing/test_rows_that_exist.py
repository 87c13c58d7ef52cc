"""Rules that ask whether a row of a table fits, as plain Spark answers them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from eddyline.errors import NotShareableError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all

pytestmark = pytest.mark.slow(20)

SCHEMA = "id int, ip string, host string, amount double, time timestamp"
START = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
BLOCKED = [("ip1", "bad"), ("ip1", "worse"), ("ip3", "bad"), (None, "bad"), ("ip4", "old")]
ALLOWED = [("host1", 0.0, 10.0), ("host1", 30.0, 50.0), ("host2", 5.0, 90.0)]

QUERIES = {
    "in": "SELECT id FROM events WHERE ip IN (SELECT ip FROM blocked)",
    "in some": """SELECT id, host FROM events WHERE amount > 20
                  AND ip IN (SELECT ip FROM blocked WHERE reason LIKE 'b%')""",
    "not in": "SELECT id FROM events WHERE ip NOT IN (SELECT ip FROM blocked)",
    "not in some": """SELECT id FROM events
                      WHERE ip NOT IN (SELECT ip FROM blocked WHERE ip IS NOT NULL)""",
    "between": """SELECT id FROM events e WHERE EXISTS (SELECT 1 FROM allowed a
                  WHERE a.host = e.host AND e.amount BETWEEN a.lo AND a.hi)""",
    "not exists": """SELECT id FROM events e
                     WHERE NOT EXISTS (SELECT 1 FROM blocked b WHERE b.ip = e.ip)""",
    "semi": "SELECT id FROM events e LEFT SEMI JOIN blocked b ON e.ip = b.ip",
    "anti": "SELECT id FROM events e LEFT ANTI JOIN allowed a ON e.host = a.host WHERE id > 9",
    "or": "SELECT id FROM events WHERE amount > 80 OR ip IN (SELECT ip FROM blocked)",
    "two": """SELECT id FROM events WHERE upper(host) IN (SELECT upper(host) FROM allowed)
              AND ip IN (SELECT DISTINCT ip FROM blocked)""",
    "two columns": """SELECT id FROM events
                      WHERE (ip, host) IN (SELECT ip, host FROM blocked JOIN allowed ON lo > 3)""",
    "literals": "SELECT id FROM events WHERE ip IN (SELECT ip FROM blocked WHERE reason = '#12')",
    "other literals": """SELECT id FROM events
                         WHERE ip IN (SELECT ip FROM blocked WHERE reason <> '#13')""",
}
AGGREGATES = {
    "counted": """SELECT window.start AS s, count_if(host NOT IN (SELECT host FROM allowed)) AS n
                  FROM events WHERE ip IN (SELECT ip FROM blocked)
                  GROUP BY window(time, '10 seconds')""",
}
MARKED = """SELECT id FROM events WHERE amount > :least
            AND ip IN (SELECT ip FROM blocked WHERE reason = :reason)"""


def events(first: int) -> list[tuple[object, ...]]:
    return [
        (
            n,
            None if n % 11 == 0 else f"ip{n % 5}",
            None if n % 7 == 0 else f"host{n % 3}",
            float(n * 37 % 100),
            START + dt.timedelta(seconds=n),
        )
        for n in range(first, first + 60)
    ]


def test_rows_of_tables_are_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "events", SCHEMA, ("time", "1 second"))
    blocked = spark.createDataFrame(BLOCKED, "ip string, reason string")
    allowed = spark.createDataFrame(ALLOWED, "host string, lo double, hi double")
    marked = pd.DataFrame({"name": ["m1", "m2"], "least": [5.0, 50.0], "reason": ["old", "bad"]})

    def opened(blocked: DataFrame) -> StandingQueries:
        return StandingQueries(
            spark,
            streams={"events": feed.stream()},
            tables={"blocked": blocked, "allowed": allowed},
            state=tmp_path / "state",
        )

    sink = Gathered()
    feed.give(events(0))
    with opened(blocked) as queries:
        for name, sql in (QUERIES | AGGREGATES).items():
            queries.add(sql, name=name)
        queries.add_many(MARKED, marked)
        run_all(queries, sink)
        derived = {row.name: row.derived for row in queries.queries().collect()}
        assert derived["semi"] == derived["in"] == derived["not exists"] != derived["between"]
        with pytest.raises(NotShareableError, match="may raise an error"):
            queries.add(
                "SELECT id FROM events WHERE id IN (SELECT CAST(reason AS INT) FROM blocked)",
                name="raising",
            )
        with pytest.raises(NotShareableError, match="in the SELECT list"):
            queries.add("SELECT id, ip IN (SELECT ip FROM blocked) AS b FROM events", name="shown")
    feed.give(events(60))
    feed.give([(999, None, None, 0.0, START + dt.timedelta(hours=1))])
    with opened(blocked.limit(0)) as queries:  # it was read before
        run_all(queries, sink)
    tables = {"events": feed.rows(), "blocked": blocked, "allowed": allowed}
    each = {
        name: MARKED.replace(":least", str(least)).replace(":reason", f"'{reason}'")
        for name, least, reason in marked.itertuples(index=False)
    }
    wanted = expected(spark, tables, QUERIES | each)
    tables["events"] = feed.rows([0, 1])
    wanted |= expected(spark, tables, AGGREGATES)
    assert "literals" not in wanted
    assert sink.answers() == wanted
