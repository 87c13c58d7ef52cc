"""Columns of all kinds, conditions that are never true, and what is said where nothing can be."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from eddyline.errors import StateError
from eddyline.standing.sinks import Batch
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all

SCHEMA = """id int, time timestamp, cost decimal(10,2), share float,
            pair struct<a:int>, list array<int>, map map<string,int>"""

START = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)

QUERIES = {
    "no pair": "SELECT id FROM events WHERE pair IS NULL",
    "some list": "SELECT id FROM events WHERE list IS NOT NULL AND id > 3",
    "same list": "SELECT id FROM events WHERE list = list",
    "no map": "SELECT id FROM events WHERE map IS NULL OR id = 7",
    "never": "SELECT id FROM events WHERE id NOT IN (5, NULL)",
    "no float": "SELECT id FROM events WHERE share = 0.1",
    "nowhere": "SELECT ID FROM events WHERE 1 = 2",
    "joined never": "SELECT a.id FROM events a JOIN events b ON a.id = b.id WHERE 1 = 2",
    "written otherwise": "SELECT ID, cost AS COST FROM events WHERE id < 9",
    "sums": """SELECT window.start AS began, sum(cost) AS spent, avg(cost) AS mean FROM events
               WHERE id < 40 GROUP BY window(time, '10 seconds') HAVING sum(cost) > 1""",
}

SINCE = "SELECT id FROM events WHERE time >= :since AND (id = :id OR id > 10)"


def row(n: int) -> tuple[object, ...]:
    return (
        n,
        START + dt.timedelta(seconds=n),
        None if n % 5 == 0 else Decimal(n) / 4,
        n / 10,
        None if n % 3 == 0 else (n,),
        None if n % 4 == 0 else [n, None],
        None if n % 2 == 0 else {"a": n},
    )


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> Feed:
    feed = Feed(spark, tmp_path / "events", SCHEMA, ("time", "1 second"))
    feed.give([row(n) for n in range(30)])
    feed.give([row(n) for n in range(30, 60)])
    return feed


def test_columns_of_all_kinds(spark: SparkSession, tmp_path: Path, events: Feed) -> None:
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    local = pd.Timestamp(START).tz_convert(zone).tz_localize(None) + pd.Timedelta("20s")
    since = pd.DataFrame({"name": ["since"], "since": [local], "id": [None]})
    sink = Gathered()
    told: list[pa.Table] = []

    def tell(rows: pa.Table, _: Batch) -> None:
        told.append(rows)

    with StandingQueries(
        spark, streams={"events": events.stream()}, state=tmp_path / "state"
    ) as queries:
        for name, sql in QUERIES.items():
            queries.add(sql, name=name, keep="forever" if " JOIN " in sql else None)
        queries.add_many(SINCE, since)
        queries.subscribe("written otherwise", tell)
        run_all(queries, sink)
    asked = QUERIES | {"since": SINCE.replace(":since", f"'{local}'").replace(":id", "NULL")}
    assert sink.answers() == expected(spark, {"events": events.rows()}, asked)
    assert [table.column_names for table in told] == [["ID", "COST"]]
    assert told[0]["ID"].to_pylist() == list(range(9))


def test_what_is_said_where_nothing_can_be_done(
    spark: SparkSession, tmp_path: Path, events: Feed
) -> None:
    state = tmp_path / "state"

    def opened(frame: DataFrame, name: str = "events") -> StandingQueries:
        return StandingQueries(spark, streams={name: frame}, state=state)

    with pytest.raises(ValueError, match="'my events' is no name for SQL"):
        opened(events.stream(), "my events")
    sql = "SELECT id FROM events"
    with opened(events.stream()) as queries:
        with pytest.raises(ValueError, match="is too long: at most 200"):
            queries.add(sql, name="long" * 60)
        with pytest.raises(TypeError, match="a text or a timedelta, not 5"):
            queries.add(sql, name="q", backfill=5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="not dict"):
            queries.add_many(sql, {"a": [1]}, name="q")
        queries.add(sql, name="q")

        def failing(_: DataFrame, __: Batch) -> None:
            raise OSError("the disk is full")

        with pytest.raises(TypeError, match="often is no trigger of Spark"):
            queries.start(failing, often=True)
        with pytest.raises(Exception, match="now and then"):
            queries.start(failing, processingTime="now and then")
        queries.start(failing, availableNow=True)  # what failed has left nothing running
        with pytest.raises(Exception, match="the disk is full"):
            queries.await_termination()
        with pytest.raises(RuntimeError, match="has failed: stop"):
            queries.start(failing)
    for stopped in (lambda: queries.add(sql, name="r"), lambda: queries.start(failing)):
        with pytest.raises(StateError, match="were stopped: make them anew"):
            stopped()
    with pytest.raises(StateError, match="were stopped: make them anew"):
        queries.drop("q")
    again = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "events"))
    with pytest.raises(StateError, match="events has another watermark"):
        opened(again.withWatermark("time", "9 seconds"))
