"""Events behind the watermark: what joins streams leaves them out, what meets tables does not."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from pyspark.sql import SparkSession

from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all

SCHEMA = "id bigint, symbol string, price double, time timestamp"

START = dt.datetime(2026, 3, 2, 10, tzinfo=dt.UTC)

WITH_TABLES = {
    "joined": "SELECT id, sector FROM trades JOIN sectors USING (symbol)",
    "maybe": "SELECT id, sector FROM trades LEFT JOIN sectors USING (symbol)",
    "counted": """SELECT sector, window.start AS s, count(*) AS n
        FROM trades JOIN sectors USING (symbol) GROUP BY sector, window(time, '1 hour')""",
}

OF_ITSELF = {
    "pairs": """SELECT a.id, b.id AS other, sector FROM trades a
        JOIN trades b ON a.symbol = b.symbol AND b.time BETWEEN a.time AND a.time + INTERVAL 1 HOUR
        JOIN sectors s ON s.symbol = a.symbol WHERE a.price < b.price""",
}


def at(minutes: float) -> dt.datetime:
    return START + dt.timedelta(minutes=minutes)


def test_late_events_meet_tables(spark: SparkSession, tmp_path: Path) -> None:
    """The late ones are of a window that is open, of one that is closed, and without a sector."""
    trades = Feed(spark, tmp_path / "trades", SCHEMA, ("time", "1 minute"))
    trades.give([(number, "AB"[number % 2], float(number), at(2 * number)) for number in range(40)])
    trades.give([(100, "A", 100.0, at(85)), (101, "C", 7.0, at(86))])
    late = [(200, "A", 1.5, at(70)), (201, "B", 3.5, at(5)), (202, "C", 3.5, at(6))]
    trades.give(late)
    trades.give([(300, "A", 1.0, at(600))])
    sectors = spark.createDataFrame([("A", "x"), ("B", "y")], "symbol string, sector string")
    sink = Gathered()
    with StandingQueries(
        spark,
        streams={"trades": trades.stream()},
        tables={"sectors": sectors},
        state=tmp_path / "state",
    ) as queries:
        for name, sql in (WITH_TABLES | OF_ITSELF).items():
            queries.add(sql, name=name)
        run_all(queries, sink)
    rows = trades.rows()
    counted = rows.where("id <> 201 AND id <> 300")  # its window is closed; the last one's is open
    tables = {"trades": rows, "sectors": sectors}
    wanted = expected(spark, tables, {name: WITH_TABLES[name] for name in ("joined", "maybe")})
    wanted |= expected(
        spark, {"trades": counted, "sectors": sectors}, {"counted": WITH_TABLES["counted"]}
    )
    in_time = {"trades": rows.where("id < 200 OR id >= 300"), "sectors": sectors}
    wanted |= expected(spark, in_time, OF_ITSELF)
    assert sink.answers() == wanted
