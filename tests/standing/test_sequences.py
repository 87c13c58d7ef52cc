"""Sequences of events: what follows what, and what does not, against a batch query."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from eddyline.errors import NotShareableError
from eddyline.standing.sequences import with_joins
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all

pytestmark = pytest.mark.slow(20)

SCHEMA = "user string, result string, ip int, time timestamp"
START = dt.datetime(2026, 1, 1, 12, 0)  # noqa: DTZ001 - in the session's zone, as Spark takes it
DELAY = 20
"""Seconds by which events may be late."""


def events(seed: int, minute: int, many: int = 40) -> list[tuple[Any, ...]]:
    """Return events of a minute, some of them too late; some lack a key or a time."""
    chance = random.Random(seed)
    return [
        (
            chance.choice(["ann", "ben", "cat", None]),
            chance.choice(["ok", "fail"]),
            chance.randrange(10),
            None
            if chance.random() < 0.05
            else START + dt.timedelta(seconds=60 * minute + chance.randrange(-40, 60)),
        )
        for _ in range(many)
    ]


def feeds(spark: SparkSession, directory: Path, minutes: int = 5) -> dict[str, Feed]:
    """Return two streams of events, a file a minute."""
    found = {}
    for seed, name in enumerate(("logins", "payments")):
        feed = found[name] = Feed(spark, directory / name, SCHEMA, ("time", f"{DELAY} seconds"))
        for minute in range(minutes):
            feed.give(events(100 * seed + minute, minute))
    return found


FAIL_THEN_OK = """SELECT a.user, a.time AS at, a.ip AS one, b.ip AS other
    FROM logins a FOLLOWED BY logins b ON a.user = b.user WITHIN 20 SECONDS
    WHERE a.result = 'fail' AND b.result = 'ok' AND a.ip <> b.ip"""
THREE = """SELECT a.user, a.time AS at, b.time AS then, c.time AS last
    FROM logins a FOLLOWED BY logins b ON b.user = a.user
    FOLLOWED BY payments AS c ON c.user = b.user AND c.ip > a.ip WITHIN 15 SECONDS OF a
    WHERE a.result = 'fail' AND b.result = 'fail'"""
UNPAID = """SELECT a.user, a.time AS at, a.ip AS one
    FROM logins a NOT FOLLOWED BY payments b
    ON a.user = b.user AND b.ip > a.ip AND b.result = 'ok' AND a.ip > 1 WITHIN 30 SECONDS
    WHERE a.result = 'ok'"""
SILENT = """SELECT a.user, a.time AS at, a.ip AS one
    FROM logins a NOT FOLLOWED BY logins ON logins.user = a.user WITHIN 0.1 MINUTES"""
CHAIN = """SELECT a.user, a.time AS at, b.time AS then
    FROM logins a FOLLOWED BY logins b ON a.user = b.user AND b.ip <> a.ip WITHIN 10 SECONDS
    NOT FOLLOWED BY payments c ON c.user = a.user AND c.ip >= b.ip WITHIN 25 SECONDS OF a
    WHERE a.result = 'fail'"""
FIRST = """SELECT a.user, a.time AS at, b.time AS then, b.ip AS other
    FROM logins a FOLLOWED BY FIRST payments b ON b.user = a.user AND b.result = 'ok'
    WITHIN 1 MINUTE WHERE a.ip < 3"""
GIVEN = {
    "fail then ok": FAIL_THEN_OK,
    "three": THREE,
    "unpaid": UNPAID,
    "silent": SILENT,
    "chain": CHAIN,
    "first": FIRST,
}


KNOWN = {
    "unpaid": "at + INTERVAL 30 SECONDS",
    "silent": "at + INTERVAL 6 SECONDS",
    "chain": "then + INTERVAL 24.999999 SECONDS",
    "first": "then",
}
"""By what time it is known that something does not follow."""


def opened(spark: SparkSession, streams: dict[str, Feed], state: Path) -> StandingQueries:
    named = {name: feed.stream() for name, feed in streams.items()}
    return StandingQueries(spark, streams=named, state=state)


ALL = range(100)
"""All files of a stream."""


class Oracle:
    """What a batch query says of the events that a job has taken, as far as it can know."""

    def __init__(self, spark: SparkSession, streams: dict[str, Feed]) -> None:
        self.spark, self.streams = spark, streams

    def answers(self, sql: str, known: str | None, files: range = ALL) -> Counter[tuple[Any, ...]]:
        """Return the results of a query that stood while it saw these files.

        ``known`` is the time, in its results, that the watermark has to have passed.
        """
        schemas = {name: feed.stream().schema for name, feed in self.streams.items()}
        plain = with_joins(sql, schemas)
        if known is not None:
            passed = self.watermark(sql, min(files.stop, len(self.streams["logins"].batches)))
            plain = f"SELECT * FROM ({plain}) WHERE {known} < TIMESTAMP '{passed}'"  # noqa: S608
        tables = {name: self.in_time(sql, name, files) for name in self.streams}
        return expected(self.spark, tables, {"it": plain}).get("it", Counter())

    def in_time(self, sql: str, name: str, files: range) -> DataFrame:
        """Return the events of a stream that are not too late for the job of a query."""
        rows = [
            row
            for number, batch in enumerate(self.streams[name].batches)
            if number in files
            for row in batch
            if row[3] is None or row[3] >= self.watermark(sql, number)
        ]
        return self.spark.createDataFrame(rows, SCHEMA)

    def watermark(self, sql: str, files: int) -> dt.datetime:
        """Return the watermark of a job after so many files: that of the slowest stream."""
        read = [feed for name, feed in self.streams.items() if f" {name}" in sql]
        latest = [
            max(row[3] for batch in feed.batches[:files] for row in batch if row[3] is not None)
            for feed in read
            if files
        ]
        return min(latest, default=START - dt.timedelta(days=1)) - dt.timedelta(seconds=DELAY)


def test_sequences_are_those_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    streams = feeds(spark, tmp_path, 3)
    oracle, sink = Oracle(spark, streams), Gathered()
    with opened(spark, streams, tmp_path / "state") as queries:
        for name, sql in GIVEN.items():
            queries.add(sql, name=name)
        for name in ("dropped", "paused", "resumed"):
            queries.add(UNPAID, name=name)
        run_all(queries, sink)
        assert {
            row["name"]: row["sql"] for row in queries.queries().where("name = 'first'").collect()
        } == {"first": FIRST}
    for seed, feed in enumerate(streams.values()):
        feed.give(events(100 * seed + 3, 3))
    with opened(spark, streams, tmp_path / "state") as queries:
        queries.drop("dropped")
        queries.pause("paused", "resumed")
        queries.add(UNPAID, name="later")
        run_all(queries, sink)
    for seed, feed in enumerate(streams.values()):
        feed.give(events(100 * seed + 4, 4))
    with opened(spark, streams, tmp_path / "state") as queries:
        queries.resume("resumed")
        run_all(queries, sink)
        stored = queries.stems().groupBy("stream").sum("rows").collect()
    answers = sink.answers()
    wanted = {name: oracle.answers(sql, KNOWN.get(name)) for name, sql in GIVEN.items()}
    before = oracle.answers(UNPAID, KNOWN["unpaid"], range(3))
    wanted["dropped"] = wanted["paused"] = before
    wanted["resumed"] = before + oracle.answers(UNPAID, KNOWN["unpaid"], range(4, 5))
    wanted["later"] = oracle.answers(UNPAID, KNOWN["unpaid"], range(3, 5))
    assert {name: rows.total() for name, rows in answers.items()} == {
        name: rows.total() for name, rows in wanted.items()
    }
    assert answers == wanted
    assert all(0 < row["sum(rows)"] < 200 for row in stored), stored  # each is of many inputs


REFUSED = {
    "FROM logins a NOT FOLLOWED BY logins b ON a.user = b.user AND both(a.ip, b.ip) "
    "WITHIN 1 HOUR": "call it with columns of one stream",
    "FROM logins a FOLLOWED BY logins b ON a.user = b.user": "WITHIN 10 MINUTES, or the last one",
    "FROM logins a FOLLOWED BY clicks b ON a.user = b.user WITHIN 1 HOUR": "withWatermark",
    "FROM logins a FOLLOWED BY users b ON a.user = b.user WITHIN 1 HOUR": "users is no stream",
    "FROM logins a FOLLOWED BY logins b ON a.user = b.user WITHIN soon": "WITHIN takes an interval",
    "FROM logins a FOLLOWED BY logins b ON WITHIN 1 HOUR": "no condition after ON",
    "FROM logins a FOLLOWED BY logins A ON a.user = b.user WITHIN 1 HOUR": "called A",
    "FROM logins a FOLLOWED BY logins b ON a.user = b.user WITHIN 1 HOUR OF c": "OF names an ear",
    "FROM users u JOIN logins a FOLLOWED BY logins b WITHIN 1 HOUR": "after FROM and a stream",
    "FROM logins a NOT FOLLOWED BY logins b ON a.user = b.user WITHIN 1 HOUR WHERE b.ip > 1": (
        "ask about it in ON"
    ),
    "FROM logins a NOT FOLLOWED BY logins b ON a.user = b.user WITHIN 1 HOUR "
    "FOLLOWED BY logins c WITHIN 1 HOUR": "nothing comes after NOT FOLLOWED BY",
    "FROM logins a NOT FOLLOWED BY FIRST logins b ON a.user = b.user WITHIN 1 HOUR": "FIRST is of",
    "FROM logins a FOLLOWED BY FIRST logins b ON a.user = b.user WITHIN 1 HOUR "
    "FOLLOWED BY logins c WITHIN 1 HOUR": "nothing comes after FOLLOWED BY FIRST",
    "FROM logins a NOT FOLLOWED BY logins b ON a.ip > b.ip WITHIN 1 HOUR": "by an equality",
    "FROM logins a LEFT ANTI JOIN (users u JOIN logins b ON u.user = b.user) ON a.user = u.user": (
        "anything but one stream"
    ),
    "FROM logins a WHERE a.user = 'x' OR a.user IN (SELECT b.user FROM logins b "
    "WHERE b.time = a.time)": "a query for each side of OR",
    "FROM logins a LEFT JOIN logins b ON a.user = b.user AND b.time > a.time": "for ever",
    "FROM logins a LEFT ANTI JOIN logins b ON a.user = b.user AND b.time > a.time": "for ever",
    "FROM logins a LEFT ANTI JOIN logins b ON a.user = b.user AND b.time = a.time "
    "LEFT ANTI JOIN logins c ON a.user = c.user AND c.time = a.time": "more than one thing",
    "FROM logins a FOLLOWED BY": "ends within a sequence",
}
UNPAID_AFTER = """SELECT a.user, a.time AS at, a.ip AS one FROM logins a NOT FOLLOWED BY payments b
    ON a.user = b.user AND b.ip > :most WITHIN :seconds SECONDS WHERE a.ip < :least"""
FAILING = """SELECT a.user, a.time AS at, a.ip AS one FROM logins a NOT FOLLOWED BY payments b
    ON a.user = b.user AND 10 / (a.ip - b.ip) > 3 WITHIN 30 SECONDS"""
EXISTS = """SELECT a.user, a.time AS at, a.ip AS one FROM logins a WHERE a.result = 'ok'
    AND NOT EXISTS (SELECT 1 FROM logins b WHERE a.user = b.user AND b.ip <> a.ip
    AND b.time BETWEEN a.time - INTERVAL 5 SECONDS AND a.time + INTERVAL 5 SECONDS)"""
SEEN = EXISTS.replace("AND NOT EXISTS", "AND EXISTS")
PAID_IN = """SELECT a.user, a.time AS at, a.ip AS one FROM logins a WHERE a.user IN (
    SELECT b.user FROM payments b WHERE b.ip > a.ip
    AND b.time BETWEEN a.time AND a.time + INTERVAL 20 SECONDS)"""


@pytest.mark.filterwarnings("ignore:The standing quer")
def test_templates_errors_and_what_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    streams = feeds(spark, tmp_path, 2)
    clicks = Feed(spark, tmp_path / "clicks", SCHEMA)
    users = spark.createDataFrame([("ann",)], "user string")
    oracle, sink = Oracle(spark, streams), Gathered()
    rules = pd.DataFrame({"seconds": [5, 20, 20], "most": [2, 2, 7], "least": [4, 9, 6]})
    with StandingQueries(
        spark,
        streams={name: feed.stream() for name, feed in (streams | {"clicks": clicks}).items()},
        tables={"users": users},
        state=tmp_path / "state",
    ) as queries:
        spark.udf.register("both", lambda one, other: one == other, "boolean")
        for sql, why in REFUSED.items():
            with pytest.raises(NotShareableError, match=why):
                queries.add(f"SELECT a.user {sql}", name="refused")
        with pytest.raises(NotShareableError, match="no backfill"):
            queries.add(UNPAID, name="refused", backfill="1 minute")
        with pytest.raises(NotShareableError, match="an aggregate of what nothing follows"):
            queries.add(
                "SELECT count(*) n FROM logins a NOT FOLLOWED BY payments b ON a.user = b.user "
                "WITHIN 1 MINUTE GROUP BY window(a.time, '1 minute')",
                name="refused",
            )
        with pytest.raises(AnalysisException, match="nothing_such"):
            queries.add(UNPAID.replace("a.user,", "a.nothing_such,"), name="refused")
        queries.add_many(UNPAID_AFTER, rules, name="unpaid")
        queries.add(FAILING, name="failing")
        queries.add(EXISTS, name="exists")
        queries.add(SEEN, name="seen")
        queries.add(PAID_IN, name="paid")
        run_all(queries, sink)
        told = {row["name"]: row for row in queries.queries().collect()}
    assert told["unpaid-0"]["sql"] == UNPAID_AFTER
    assert told["failing"]["state"] == "paused"
    assert "DIVIDE_BY_ZERO" in told["failing"]["reason"]
    answers = sink.answers()
    failing = answers.pop("failing", Counter())
    wanted = {
        "exists": oracle.answers(EXISTS, "at + INTERVAL 5 SECONDS"),
        "seen": oracle.answers(SEEN, "at + INTERVAL 5 SECONDS"),
        "paid": oracle.answers(PAID_IN, "at + INTERVAL 20 SECONDS"),
    }
    for number, row in enumerate(rules.itertuples()):
        sql = UNPAID_AFTER.replace(":seconds", str(row.seconds)).replace(":most", str(row.most))
        known = f"at + INTERVAL {row.seconds} SECONDS"
        wanted[f"unpaid-{number}"] = oracle.answers(sql.replace(":least", str(row.least)), known)
    assert answers == wanted
    assert all(rows.total() > 2 for rows in wanted.values())
    tried = FAILING.replace(
        "10 / (a.ip - b.ip) > 3", "coalesce(try_divide(10, a.ip - b.ip) > 3, true)"
    )
    batches = {
        batch.number
        for batch, rows in sink.batches.items()
        for r in rows
        if r["query"] == "failing"
    }
    assert len(batches) == 1  # the one in which it fails
    assert failing <= oracle.answers(tried, KNOWN["unpaid"])
    assert failing


def test_sampling_would_make_events_look_absent(spark: SparkSession, tmp_path: Path) -> None:
    streams = {name: feed.stream() for name, feed in feeds(spark, tmp_path, 1).items()}
    state = tmp_path / "state"
    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.add(UNPAID, name="unpaid")
    with pytest.raises(NotShareableError, match="as if it had not come"):
        StandingQueries(spark, streams=streams, state=state, on_overload="sample")
    with StandingQueries(
        spark, streams=streams, state=tmp_path / "other", on_overload="sample"
    ) as queries:
        queries.add(FAIL_THEN_OK, name="fail then ok")
        with pytest.raises(NotShareableError, match="on_overload='block'"):
            queries.add(UNPAID, name="unpaid")


def test_a_clause_is_found_by_tokens(spark: SparkSession, tmp_path: Path) -> None:
    schemas = {name: feed.stream().schema for name, feed in feeds(spark, tmp_path, 0).items()}
    for untouched in (
        "SELECT 'FROM logins a FOLLOWED BY logins b' FROM logins",
        "SELECT user FROM logins /* a FOLLOWED BY logins b */ -- FOLLOWED BY",
        "SELECT `followed by` AS followed FROM logins",
    ):
        assert with_joins(untouched, schemas) == untouched
    assert with_joins(
        "SELECT 1 FROM `logins`\n followed /* by */ by FIRST payments AS b ON b.x = 'b.x; WITHIN'\n"
        "AND `b` . y > (SELECT 2) within 1 hour 30 minutes WHERE logins.ip > 1",
        schemas,
    ) == (
        "SELECT 1 FROM `logins` JOIN payments b ON (b.x = 'b.x; WITHIN'\nAND `b` . y > (SELECT 2)) "
        "AND b.`time` > `logins`.`time` AND b.`time` <= `logins`.`time` + ((1) * INTERVAL 1 HOUR + "
        "(30) * INTERVAL 1 MINUTE) LEFT ANTI JOIN payments eddyline_earlier ON "
        "(eddyline_earlier.x = 'b.x; WITHIN'\nAND eddyline_earlier . y > (SELECT 2)) AND "
        "eddyline_earlier.`time` > `logins`.`time` AND eddyline_earlier.`time` < b.`time` "
        "WHERE logins.ip > 1"
    )
