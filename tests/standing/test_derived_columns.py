"""Rules with any deterministic expression of Spark: what Eddyline does not evaluate Spark does."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from eddyline.errors import NotShareableError
from eddyline.standing.derived_plans import DerivedPlans
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Answers, Feed, Gathered, expected, run_all
from tests.standing.test_dropped_queries import until

SCHEMA = """id int, message string, payload string, code int, tags array<string>,
            user struct<ip:string,age:int>, day date, amount decimal(10,2), level string,
            reading double, labels map<string,string>, time timestamp"""

CONDITIONS = {
    # logs
    "regular expression": r"message RLIKE 'host[12]\\b'",
    "and more": r"message RLIKE 'host[12]\\b' AND code > 500",
    "not like it": "NOT message RLIKE '(?i)ERROR [0-9]*[02468] '",
    "ilike": "message ILIKE '%HOST3%'",
    "not ilike": "message NOT ILIKE '%host3%' AND level = 'WARN'",
    "lower": "lower(message) LIKE '%host4%'",
    "lower in": "lower(level) IN ('warn', 'error')",
    "upper": "upper(level) = 'INFO' AND id % 3 = 1",
    "length": "length(message) > 24",
    "trim": "trim(level) = 'error'",
    "substring": "substring(message, 1, 7) = 'error 1'",
    "concat": "concat(level, ':', code) = 'WARN:500'",
    "bars": "level || message LIKE 'INFOe%'",
    "instr": "instr(message, 'host1') > 0",
    "extract": "regexp_extract(message, 'host([0-9])', 1) = '2'",
    "replace": "regexp_replace(level, '[AEIOU]', '') = 'NF'",
    "split": "split(message, ' ')[0] = 'error'",
    "starts": "startswith(message, 'error 2') OR endswith(message, '9')",
    "like any": "message LIKE ANY ('%host1%', 'error 7%')",
    "translate": "translate(level, 'IN', '12') LIKE '12%'",
    # security
    "json": "get_json_object(payload, '$.a.b') = '2'",
    "json number": "CAST(get_json_object(payload, '$.a.b') AS INT) >= 2",
    "from json": "from_json(payload, 's string').s = 'v1'",
    "struct": "user.ip = '10.0.0.3' OR user.age > 45",
    "address": r"user.ip RLIKE '^10[.]0[.]0[.][0-3]\\b'",
    "contains": "array_contains(tags, 'y')",
    "size": "size(tags) = 2",
    "lambda": "exists(tags, tag -> tag LIKE 'x%')",
    "nested lambda": "size(filter(tags, tag -> exists(tags, other -> other > tag))) > 0",
    "element": "try_element_at(tags, 1) = 'x'",
    "map": "labels['zone'] = 'b'",
    "digest": "md5(level) LIKE 'c%'",
    "checksum": "crc32(message) % 3 = 0",
    "distance": "levenshtein(level, 'error') < 5",
    # sign-ins
    "hour": "hour(time) BETWEEN 8 AND 9",
    "night": "hour(time) < 6 OR hour(time) >= 22",
    "weekday": "dayofweek(day) IN (1, 7)",
    "year": "year(day) = 2024 AND month(day) = 2",
    "truncated": "date_trunc('hour', time) = timestamp'2024-05-01 03:00:00'",
    "difference": "datediff(day, date'2024-01-01') > 90",
    "formatted": "date_format(time, 'HH:mm') = '05:00'",
    # fraud and sensors
    "decimal": "amount % 2 = 0.5",
    "rounded": "round(amount) = 7",
    "greatest": "greatest(code, CAST(amount AS INT), 505) = 505",
    "coalesced": "coalesce(upper(level), 'NONE') = 'NONE'",
    "case": "CASE WHEN code > 500 THEN lower(level) ELSE upper(level) END = 'info'",
    "either": "message RLIKE 'host0' OR code = 509 OR user.age = 7",
    "square": "sqrt(abs(reading)) > 1.2 AND floor(reading) <> 3",
    "hash": "pmod(hash(level, code), 5) = 1",
    # Spark would fail without the guard: what comes before decides.
    "guarded": "code <> 500 AND length(repeat('a', 10 div (code - 500))) > 1",
    "guarded cast": "message RLIKE '^[0-9]+$' AND CAST(message AS INT) > 3",
}


def composed(number: int) -> str:
    """Return a condition made of some of the others, by chance."""
    chance = random.Random(number)
    alone = {"regular expression", "and more", "address"}  # of which the plan's text is asked
    safe = [
        sql
        for name, sql in CONDITIONS.items()
        if name not in alone and not name.startswith(("guarded", "composed"))
    ]
    one, two, three = chance.sample(safe, 3)
    form = chance.choice(["({}) AND NOT ({})", "({}) OR ({})", "NOT (({}) OR ({}))"])
    return f"{form.format(one, two)} AND coalesce(NOT ({three}), TRUE)"


CONDITIONS |= {f"composed {number}": composed(number) for number in range(12)}

SELECT = "SELECT id FROM events WHERE {}"


def row(n: int) -> tuple[Any, ...]:
    return (
        n,
        None
        if n % 7 == 0
        else f"{n}"
        if n % 11 == 0
        else f"error {n} from host{n % 5} on {n % 13}",
        None if n % 9 == 0 else json.dumps({"a": {"b": n % 4}, "s": f"v{n % 3}"}),
        490 + n % 20,
        None if n % 5 == 0 else ["x", "y"][: n % 3],
        None if n % 6 == 0 else (None if n % 10 == 3 else f"10.0.0.{n % 9}", n % 50),
        dt.date(2024, 1, 1) + dt.timedelta(n),
        None if n % 8 == 0 else Decimal(n) / 4,
        [None, "INFO", "WARN", " error "][n % 4],
        (n % 30 - 15) / 3,
        {"zone": "abc"[n % 3]} if n % 4 else None,
        dt.datetime(2024, 5, 1, n % 24, 0, n % 60),  # noqa: DTZ001 - in the session's zone
    )


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "events", SCHEMA)


def found_by(rows: DataFrame) -> dict[str, set[int]]:
    """Return the events for which each condition is TRUE, by plain Spark: in one query."""
    safe = {name: sql for name, sql in CONDITIONS.items() if not name.startswith("guarded")}
    columns = [f"{sql} AS `{name}`" for name, sql in safe.items()]
    table = rows.selectExpr("id", *columns).toArrow().to_pylist()
    found = {name: {row["id"] for row in table if row[name]} for name in safe}
    for name in CONDITIONS.keys() - safe.keys():
        found[name] = {row.id for row in rows.where(CONDITIONS[name]).select("id").collect()}
    return found


def test_rules_come_and_go_and_outlive_a_restart(
    spark: SparkSession,
    tmp_path: Path,
    events: Feed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plans: list[list[str]] = []
    planned = DerivedPlans.over

    def over(*given: Any) -> Any:  # noqa: ANN401 - as it has them
        rows = planned(*given)
        items = rows._jdf.queryExecution().analyzed().projectList()
        plans.append([items.apply(n).toString() for n in range(items.size())])
        return rows

    monkeypatch.setattr(DerivedPlans, "over", over)
    names = list(CONDITIONS)
    sql = {name: SELECT.format(CONDITIONS[name]) for name in names}
    first, later, dropped = names[::2], names[1::2], names[::8]
    sink = Gathered()
    streams = {"events": events.stream()}
    state = tmp_path / "state"
    events.give([row(n) for n in range(80)])
    with StandingQueries(spark, streams=streams, state=state) as queries:
        for name in first:
            queries.add(sql[name], name=name)
        queries.start(sink, processingTime="0 seconds")
        until(lambda: queries.progress().batches == 1, queries)
        queries.drop(*dropped)
        for name in later:
            queries.add(sql[name], name=name)
        events.give([row(n) for n in range(80, 160)])
        until(lambda: queries.progress().batches == 2, queries)
        derived = {r.name: r.derived for r in queries.queries().collect()}
    assert derived["lower in"] == ["lower(level)"]
    assert derived["and more"] == [r"RLIKE(message, host[12]\b)"]
    assert derived["guarded cast"] == ["CAST(message AS INT)"]
    events.give([row(n) for n in range(160, 240)])
    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.drop("and more")
        queries.add(sql["and more"], name="once more")
        run_all(queries, sink)
        assert all(r.state == "running" for r in queries.queries().collect())
    # Rules that say the same share a column, which goes with the last of them.
    assert {"regular expression", "address"} <= {*dropped} <= {*first}
    assert "and more" in later
    for pattern, times in ("host[12]", [1, 1, 1]), ("^10[.]", [1, 0, 0]):
        assert [sum(pattern in item for item in plan) for plan in plans] == times
    found = found_by(events.rows())
    seen = {name: range(240) for name in first} | {name: range(80, 240) for name in later}
    seen |= {name: range(80) for name in dropped} | {"and more": range(80, 160)}
    wanted: Answers = {
        name: Counter((n,) for n in found[name] if n in ids) for name, ids in seen.items()
    }
    wanted["once more"] = Counter((n,) for n in found["and more"] if n >= 160)
    answers = sink.answers()
    assert {name: rows for name, rows in wanted.items() if rows} == answers
    assert len(answers) > 45


def test_a_rule_that_fails_is_paused_and_templates_share_what_spark_computes(
    spark: SparkSession, tmp_path: Path, events: Feed
) -> None:
    events.give([row(n) for n in range(60)])
    spark.udf.register("is_second", lambda text: text is not None and "host2" in text, "boolean")
    rules = {
        "fails": "message RLIKE '^[0-9]+$' AND CAST(message || 'x' AS INT) > 0",
        "fails not": "id < 5 AND CAST(message || 'x' AS INT) > 0 AND level = 'nowhere'",
        "fails in time": "to_date(message, 'yyyy') > date'2000-01-01'",
    }
    values = pd.DataFrame(
        [(f"{n} host{n}", f"{n % 4}", n, f"%host{n % 5}%") for n in range(8)],
        columns=["name", "value", "least", "like"],
    )
    patterns = pd.DataFrame(
        [(f"pattern {n}", f"^error\\s[{n % 2}-5]\\d?\\b f'?", n) for n in range(3)],
        columns=["name", "pattern", "least"],
    )
    template = """SELECT id, :least AS least FROM events WHERE id > :least
                  AND get_json_object(payload, '$.a.b') = :value AND lower(message) LIKE :like"""
    sink = Gathered()
    with StandingQueries(
        spark, streams={"events": events.stream()}, state=tmp_path / "state"
    ) as queries:
        for name, condition in rules.items():
            queries.add(SELECT.format(condition), name=name)
        queries.add_many(template, values)
        # Each pattern that Spark has to decide is a column of its own.
        queries.add_many(SELECT.format("message RLIKE :pattern AND id > :least"), patterns)
        queries.add(SELECT.format(PYTHON), name="python")
        queries.add("SELECT upper(level) AS level FROM events WHERE user.age = 3", name="upper")
        with pytest.warns(UserWarning, match="has failed and is paused"):
            run_all(queries, sink)
        assert {r.sql for r in queries.queries().collect() if r.name.startswith("pattern")} == {
            SELECT.format("message RLIKE :pattern AND id > :least")
        }
        states = {r.name: (r.state, r.reason, r.derived) for r in queries.queries().collect()}
    events.give([row(n) for n in range(60, 120)])
    with StandingQueries(
        spark, streams={"events": events.stream()}, state=tmp_path / "state"
    ) as queries:
        run_all(queries, sink)  # all is read again from the log
    asked = {
        str(row.name): template.replace(":like", f"'{row.like}'")
        .replace(":least", str(row.least))
        .replace(":value", repr(row.value))
        for row in values.itertuples(index=False)
    }
    for name, pattern, least in patterns.itertuples(index=False):
        text = str(pattern).replace("\\", "\\\\").replace("'", "\\'")
        asked[str(name)] = SELECT.format(f"message RLIKE '{text}' AND id > {least}")
    asked["python"] = SELECT.format(PYTHON)
    asked["upper"] = "SELECT upper(level) AS level FROM events WHERE user.age = 3"
    assert sink.answers() == expected(spark, {"events": events.rows()}, asked)
    assert states["fails not"][0] == states["0 host0"][0] == "running"
    assert states["pattern 0"][2] == states["pattern 2"][2] != states["pattern 1"][2]
    assert sorted(states["0 host0"][2]) == ["get_json_object(payload, $.a.b)", "lower(message)"]
    state, reason, _ = states["fails"]
    assert state == "paused"
    assert "CAST_INVALID_INPUT" in reason
    assert re.search(r"It was met with (.*, )?message = (11|22|33|44|55)[.,]", reason), reason
    assert states["fails in time"][1].startswith("ArithmeticFailure: [CANNOT_PARSE_TIMESTAMP]")


PYTHON = "is_second(lower(message)) AND upper(level) <> 'INFO'"

REFUSED = {
    "SELECT id FROM events WHERE rand() > 0.5": "not deterministic",
    "SELECT id, now() AS now FROM events": "let the stream have them",
    "SELECT id, (SELECT max(name) FROM names) AS most FROM events": "join the table",
    "SELECT id FROM events WHERE level > (SELECT max(name) FROM names)": "join the table",
    "SELECT id FROM events WHERE unix_timestamp() > 3": "let the stream have them",
    "SELECT id FROM events WHERE current_date() > '2026-01-01'": "let the stream have them",
    "SELECT id FROM events WHERE substring(message, CAST(:like AS INT)) = ''": "of q make no query",
    "SELECT count(*) FROM events e JOIN other o ON e.id = o.id WHERE (e.level || o.level) > 'x'": (
        "about several streams"
    ),
    r"SELECT count(*) FROM events e JOIN names n ON e.id = n.id WHERE n.name RLIKE 'x\\b'": (
        "make it a column of names"
    ),
}


def test_what_spark_cannot_compute_is_refused_with_a_remedy(
    spark: SparkSession, tmp_path: Path, events: Feed
) -> None:
    names = spark.createDataFrame([(1, "a")], "id int, name string")
    streams = {"events": events.stream(), "other": events.stream()}
    with StandingQueries(
        spark, streams=streams, tables={"names": names}, state=tmp_path / "state"
    ) as queries:
        for sql, reason in REFUSED.items():
            rows = pd.DataFrame({"name": ["q"], "like": ["x"]})
            with pytest.raises(NotShareableError, match=reason):
                queries.add_many(sql, rows, keep="forever" if " JOIN " in sql else None)


AGGREGATES = {
    "by level": """SELECT window.start, lower(level) AS level, count(*) AS n FROM events
                   GROUP BY window(time, '1 hour'), lower(level)""",
    "by host": """SELECT window.start, regexp_extract(message, 'host([0-9])', 1) AS host,
                  sum(CAST(get_json_object(payload, '$.a.b') AS INT)) AS total,
                  count(*) FILTER (WHERE array_contains(tags, 'x')) AS tagged FROM events
                  WHERE message RLIKE 'host'
                  GROUP BY window(time, '1 hour'), regexp_extract(message, 'host([0-9])', 1)
                  HAVING count(*) > 2""",
}
LATER_AGGREGATES = {
    "by weekday": """SELECT window.start, dayofweek(day) AS weekday, count(*) AS n FROM events
                     WHERE message ILIKE '%HOST%' GROUP BY window(time, '1 hour'), dayofweek(day)"""
}
JOIN = """SELECT e.id AS one, o.id AS two FROM events e JOIN others o
          ON lower(e.level) = lower(o.level) AND {}
          AND o.time BETWEEN e.time - INTERVAL 10 MINUTES AND e.time"""
JOINS = {"joined": JOIN.format("e.message RLIKE 'host[12]'")}
DROPPED_JOINS = {"joined, dropped": JOIN.format("upper(e.level) <> 'INFO'")}
LATER_JOINS = {
    "joined later": JOIN.format("length(upper(e.message)) + size(o.tags) > 20 AND hour(o.time) > 0")
}


def test_plans_with_state_are_made_anew_for_further_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    feeds = {
        name: Feed(spark, tmp_path / f"timed {name}", SCHEMA, ("time", "2 hours"))
        for name in ("events", "others")
    }

    def give(hour: int, first: int) -> None:
        for shift, feed in enumerate(feeds.values()):
            rows = [row(n + 7 * shift) for n in range(first, first + 40)]
            at = dt.datetime(2024, 5, 1, hour)  # noqa: DTZ001 - in the session's zone
            feed.give([(*r[:-1], at + dt.timedelta(minutes=n)) for n, r in enumerate(rows)])

    def taken(rows: int) -> None:
        until(lambda: queries.progress().rows_in == rows, queries)

    streams = {name: feed.stream() for name, feed in feeds.items()}
    state, sink = tmp_path / "state", Gathered()
    give(0, 0)
    with StandingQueries(spark, streams=streams, state=state) as queries:
        for name, sql in (AGGREGATES | JOINS | DROPPED_JOINS).items():
            queries.add(sql, name=name)
        queries.start(sink, processingTime="0 seconds")
        taken(120)
        jobs = {name: job.query.id for name, job in queries._jobs.items()}
        for name, sql in (LATER_AGGREGATES | LATER_JOINS).items():
            queries.add(sql, name=name)
        give(1, 40)
        taken(240)
        assert {name: job.query.id for name, job in queries._jobs.items()} == jobs
        assert queries.await_termination(0.1) is False
    give(5, 80)
    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.start(sink, processingTime="0 seconds")
        taken(120)
        queries.drop(*DROPPED_JOINS)
        give(5, 120)
        taken(240)
    give(5, 160)
    with StandingQueries(spark, streams=streams, state=state) as queries:
        run_all(queries, sink)  # some rows are stored with a column that nobody knows
    whole = {name: feed.rows() for name, feed in feeds.items()}
    wanted = expected(spark, whole, JOINS)
    wanted |= expected(
        spark, {name: feed.rows([1, 2, 3, 4]) for name, feed in feeds.items()}, LATER_JOINS
    )
    wanted |= expected(
        spark, {name: feed.rows([0, 1, 2]) for name, feed in feeds.items()}, DROPPED_JOINS
    )
    # The window of the last hour is open.
    wanted |= expected(spark, {"events": feeds["events"].rows([0, 1])}, AGGREGATES)
    wanted |= expected(spark, {"events": feeds["events"].rows([1])}, LATER_AGGREGATES)
    assert sink.answers() == wanted
    assert wanted.keys() == {
        *AGGREGATES,
        *LATER_AGGREGATES,
        *JOINS,
        *DROPPED_JOINS,
        *LATER_JOINS,
    }
