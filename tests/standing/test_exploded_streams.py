"""explode and the like, as plain Spark answers them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from eddyline.errors import NotShareableError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all

pytestmark = pytest.mark.slow(30)

SCHEMA = "id int, tags array<string>, levels map<string, int>, said string, time timestamp"
START = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)

QUERIES = {
    "exploded": "SELECT id, tag FROM events LATERAL VIEW explode(tags) AS tag WHERE tag LIKE 'a%'",
    "others": "SELECT id, explode(tags) AS tag FROM events WHERE id % 3 = 1",
    "all": "SELECT id, tag FROM events LATERAL VIEW OUTER explode(tags) AS tag",
    "placed": """SELECT id, pos, tag FROM events LATERAL VIEW posexplode(tags) AS pos, tag
                 WHERE pos > 0""",
    "mapped": """SELECT id, key, value FROM events LATERAL VIEW explode(levels) AS key, value
                 WHERE value > 2 AND upper(key) <> 'B'""",
    "split": """SELECT id, word, length(word) AS long FROM events
                LATERAL VIEW explode(split(said, ' ')) AS word WHERE length(word) > 1""",
    "json": """SELECT id, user, b.at FROM events
               LATERAL VIEW json_tuple(said, 'user', 'at') b AS user, at""",
    "joined": """SELECT e.id, f.tag, e.tag AS key FROM
                 (SELECT id, time, explode(tags) AS tag FROM events) e JOIN
                 (SELECT id, time, explode(tags) AS tag FROM events) f ON e.tag = f.tag
                 AND f.time BETWEEN e.time AND e.time + INTERVAL 5 SECONDS WHERE e.id < f.id""",
    "with a table": """SELECT id, tag, weight FROM
                       (SELECT id, explode(tags) AS tag FROM events) e
                       LEFT JOIN weights w ON w.name = e.tag""",
}
AGGREGATES = {
    "counted": """SELECT window.start AS s, tag, count(*) AS n, count(DISTINCT id) AS ids
                  FROM events LATERAL VIEW explode(tags) AS tag
                  GROUP BY window(time, '10 seconds'), tag""",
}
MARKED = (
    "SELECT id, tag FROM events LATERAL VIEW explode(tags) AS tag WHERE tag = :tag AND id > :least"
)
REFUSED = {
    "SELECT explode(tags) AS tag, name FROM events JOIN weights ON said = name": "one stream's",
    "SELECT explode(sequence(0, id - 1)) AS value FROM events": "may raise",
    "SELECT explode(array(said, :tag)) AS tag FROM events": "a :marker in it",
    "SELECT name, explode(split(name, ',')) AS tag FROM weights": "explode of a table",
}


def events(first: int) -> list[tuple[object, ...]]:
    some = [["a", "b"], [], None, ["ab", None, "a"], ["c"], ["b", "ab", "c", "a1"]]
    said = ["x yy zzz", '{"user": "u", "at": "1"}', None, ""]
    return [
        (
            n,
            some[n % 6],
            {"a": n % 5, "b": 3} if n % 4 else None,
            said[n % 4],
            START + dt.timedelta(seconds=n),
        )
        for n in range(first, first + 40)
    ]


def test_exploded_rows_are_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "events", SCHEMA, ("time", "1 second"))
    weights = spark.createDataFrame([("a", 1), ("ab", 2), ("ab", 3)], "name string, weight int")
    one = pd.DataFrame({"name": ["refused"], "tag": ["x"]})
    marked = pd.DataFrame({"name": ["m1", "m2"], "tag": ["a", "ab"], "least": [3, 20]})

    def opened() -> StandingQueries:
        streams, tables = {"events": feed.stream()}, {"weights": weights}
        return StandingQueries(
            spark, streams=streams, tables=tables, state=tmp_path / "state", history="1 day"
        )

    sink = Gathered()
    feed.give(events(0))
    with opened() as queries:
        for name, sql in (QUERIES | AGGREGATES).items():
            queries.add(sql, name=name)
        queries.add_many(MARKED, marked)
        for sql, why in REFUSED.items():
            with pytest.raises(NotShareableError, match=why):
                queries.add_many(sql, one if ":tag" in sql else one[["name"]])
        with pytest.raises(NotShareableError, match="leave out backfill"):
            queries.add(QUERIES["others"], name="refused", backfill="1 hour")
        run_all(queries, sink)
        jobs = {row.name: row.job for row in queries.queries().collect()}
        assert jobs["exploded"] == jobs["others"] == jobs["m1"] != jobs["all"]
        queries.drop("others")
    feed.give(events(40))
    feed.give([(999, ["zz"], None, None, START + dt.timedelta(hours=1))])
    with opened() as queries:
        run_all(queries, sink)
    tables = {"events": feed.rows([0, 1]), "weights": weights}
    each = {
        name: MARKED.replace(":tag", f"'{tag}'").replace(":least", str(least))
        for name, tag, least in marked.itertuples(index=False)
    }
    wanted = expected(spark, tables, QUERIES | AGGREGATES | each)
    tables["events"] = feed.rows([0])
    wanted |= expected(spark, tables, {"others": QUERIES["others"]})
    found = {
        query: {row: n for row, n in rows.items() if 999 not in row}
        for query, rows in sink.answers().items()
    }
    assert found == wanted
