"""Rules that look for patterns in texts, on Spark: row for row what a batch finds."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from eddyline.errors import NotShareableError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Answers, Feed, Gathered, expected, run_all

SCHEMA = "id int, message string, host string, code int"

USERS = [f"user{n}" for n in range(60)]
WORDS = ["Failed", "accepted", "REFUSED", "kelvin \u212a", "straße", "über", "100%", "a_b", "😀\n"]


def events(count: int, seed: int) -> list[tuple[int, str | None, str | None, int]]:
    chance = random.Random(seed)

    def message() -> str | None:
        if chance.random() < 0.05:
            return None
        word, user = chance.choice(WORDS), chance.choice(USERS)
        if chance.random() < 0.3:
            user = user.upper()
        return f"{word} password for {user} from 10.0.{chance.randrange(9)}.{chance.randrange(99)}"

    return [
        (n, message(), chance.choice([None, "web1", "web2", "DB"]), chance.randrange(5))
        for n in range(count)
    ]


def literal(text: str) -> str:
    """Return a text as SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def conditions(count: int, seed: int) -> dict[str, str]:
    chance = random.Random(seed)

    def rlike() -> str:
        user, word = (
            chance.choice(USERS),
            chance.choice(["failed", "Accept", "über", "\u212a", "k"]),
        )
        pattern = chance.choice(
            [
                f"(?i){word}.*{user}",
                f"for ({user}|{chance.choice(USERS)}) from",
                rf"{user} from \d+\.0\.[0-4]\.",
                f"^{word}",
                rf"\.{chance.randrange(99)}$",
                rf"{user}\b",  # left to Spark
                f"[^a-z]{user}$|{word}",
                r"\d{2}$",  # without a literal
            ]
        )
        return f"message RLIKE {literal(pattern)}"

    def like() -> str:
        text = chance.choice([*USERS, "Failed%", "%😀", "100\\%%", "a\\_b", "%from 10.0.4.%"])
        form = chance.choice(["%{}%", "{}%", "%{}", "%{}_from%"])
        return f"message LIKE {literal(form.format(text))}"

    def test() -> str:
        ilike = f"message ILIKE '%{chance.choice(USERS).title()}%'"
        of_host = f"host RLIKE '^w.b{chance.randrange(4)}'"
        of_function = f"regexp_like(message, {literal(chance.choice(USERS) + ' ')})"
        kinds = [rlike(), rlike(), like(), like(), ilike, of_host, of_function]
        one = chance.choice(kinds)
        return f"NOT {one}" if chance.random() < 0.2 else one

    forms = ["{}"] * 5 + [
        "{} AND {}",
        "{} OR {}",
        "NOT ({} OR {})",
        "({} OR {}) AND code > 1",
        "{} AND ({} OR code = 3)",
        "code IN (1, 2) AND {}",
    ]
    made = {}
    for n in range(count):
        form = chance.choice(forms)
        made[f"rule {n}"] = form.format(*(test() for _ in range(form.count("{}"))))
    return made


SELECT = "SELECT id FROM events WHERE {}"


@pytest.mark.slow(25)
def test_hundreds_of_patterns_find_what_a_batch_finds(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "events", SCHEMA)
    feed.give(events(300, seed=1))
    rules = conditions(250, seed=2)
    first = dict(list(rules.items())[:150])
    sink, state = Gathered(), tmp_path / "state"
    with StandingQueries(spark, streams={"events": feed.stream()}, state=state) as queries:
        for name, condition in first.items():
            queries.add(SELECT.format(condition), name=name)
        run_all(queries, sink)
    dropped = list(first)[::3]
    later = {name: rule for name, rule in rules.items() if name not in first}
    feed.give(events(600, seed=3)[300:])
    with StandingQueries(spark, streams={"events": feed.stream()}, state=state) as queries:
        queries.drop(*dropped)
        for name, condition in later.items():
            queries.add(SELECT.format(condition), name=name)
        run_all(queries, sink)
    columns = [f"{condition} AS `{name}`" for name, condition in rules.items()]
    rows = feed.rows().selectExpr("id", *columns).toArrow().to_pylist()
    wanted: Answers = {}
    for name in rules:
        seen = range(300) if name in dropped else range(600) if name in first else range(300, 600)
        ids = [row["id"] for row in rows if row[name] and row["id"] in seen]
        if ids:
            wanted[name] = Counter((n,) for n in ids)
    assert sink.answers() == wanted
    assert len(wanted) > 150


TEMPLATES = {
    "rlike": "message RLIKE :pattern AND code > :least",
    "not rlike": "NOT message RLIKE :pattern AND host = 'DB'",
    "function": "regexp_like(message, :pattern)",
    "lower": "lower(message) RLIKE :pattern",
    "like": "message LIKE :like AND message NOT LIKE '%10.0.3.%'",
    "not like": "code = :least AND message NOT LIKE :like",
    "both": "message LIKE :like AND host RLIKE :host",
    "either": "message LIKE :like OR message RLIKE :pattern",
    "escaped": "message LIKE :like ESCAPE '!' AND code > 1",
    "several": "message RLIKE :pattern OR code = :least",
}


@pytest.mark.slow(8)
def test_patterns_are_parameters(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "events", SCHEMA)
    feed.give(events(200, seed=4))
    chance = random.Random(5)
    rows: list[tuple[str | None, str | None, str | None, int]] = [
        (
            f"(?i){chance.choice(['failed', 'accepted'])}.*{chance.choice(USERS)}",
            chance.choice(["%{}%", "%{}_from%", "Failed%{}%", "{}"]).format(chance.choice(USERS)),
            chance.choice(["^web", "1$", "b", "x"]),
            chance.randrange(4),
        )
        for _ in range(8)
    ]
    rows += [(r"user1\b", "%user1_ %", "web|DB", 1), (None, None, None, 0)]
    table = pd.DataFrame(rows, columns=["pattern", "like", "host", "least"])
    asked: dict[str, str] = {}
    made: dict[str, int] = {}
    sink = Gathered()
    streams = {"events": feed.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        for kind, condition in TEMPLATES.items():
            used = [name for name in table if f":{name}" in condition]
            named = table[used].assign(name=[f"{kind} {n}" for n in range(len(table))])
            queries.add_many(SELECT.format(condition), named)
            templates = {id(q.template) for q in queries._registry.running()}
            made[kind] = len(templates) - sum(made.values())
            for name, row in zip(named.name, table.itertuples(), strict=True):
                text = condition.replace(":least", str(row.least))
                for marker in ("pattern", "like", "host"):
                    value = getattr(row, marker)
                    written = "CAST(NULL AS STRING)" if value is None else literal(value)
                    text = text.replace(f":{marker}", written)
                asked[name] = SELECT.format(text)
        derived = {row.name: row.derived for row in queries.queries().collect()}
        run_all(queries, sink)
    wanted = expected(spark, {"events": feed.rows()}, asked)
    assert sink.answers() == wanted
    assert len(wanted) > 40
    assert set(made.values()) == {1, 2}  # and one more for what Spark decides
    assert made["like"] == made["both"] == 1
    # Only what Java might decide otherwise is a column.
    assert derived["rlike 0"] == derived["not like 8"] == []
    assert derived["rlike 8"] == derived["either 8"] == [r"RLIKE(message, user1\b)"]
    assert derived["lower 0"] == ["lower(message)"]


JOIN = """SELECT e.id, o.id AS other FROM events e JOIN others o ON e.code = o.code
          WHERE e.message RLIKE :pattern AND NOT o.message LIKE :like
          AND (o.host LIKE :host OR e.id > o.id)"""


@pytest.mark.slow(12)
def test_rows_are_joined_that_patterns_want(spark: SparkSession, tmp_path: Path) -> None:
    feeds = {name: Feed(spark, tmp_path / name, SCHEMA) for name in ("events", "others")}
    for seed, feed in enumerate(feeds.values()):
        feed.give(events(60, seed=7 + seed))
    rows = [
        (f"(?i)(failed|über).*{user}.* from", f"%{word}%", host)
        for user, word, host in zip(
            ["user1", "user[23]", "user4", "user"],
            ["Failed", "REF_SED", "user", "10.0.2"],
            ["web%", "%B", "x", "web1"],
            strict=True,
        )
    ]
    table = pd.DataFrame(rows, columns=["pattern", "like", "host"])
    table.insert(0, "name", [f"rule {n}" for n in range(len(table))])
    sink, state = Gathered(), tmp_path / "state"
    streams = {name: feed.stream() for name, feed in feeds.items()}
    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.add_many(JOIN, table, keep="forever")
        run_all(queries, sink)
    first = {name: feed.rows() for name, feed in feeds.items()}
    for seed, feed in enumerate(feeds.values()):
        feed.give(events(60, seed=9 + seed))
    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.drop("rule 3")
        run_all(queries, sink)
    asked = {}
    for name, *values in table.itertuples(index=False):
        asked[str(name)] = JOIN
        for marker, value in zip(("pattern", "like", "host"), values, strict=True):
            asked[str(name)] = asked[str(name)].replace(f":{marker}", literal(str(value)))
    wanted = expected(spark, {name: feed.rows() for name, feed in feeds.items()}, asked)
    wanted |= expected(spark, first, {"rule 3": asked["rule 3"]})
    assert sink.answers() == wanted
    assert len(wanted) == 4


INVALID = {
    "message RLIKE :pattern": ("(user", r"the query 'bad': \[INVALID_PARAMETER_VALUE.PATTERN\]"),
    "message LIKE :pattern": ("user\\", r"the query 'bad': \[INVALID_FORMAT.ESC_AT_THE_END\]"),
    "message LIKE :pattern ESCAPE '!'": ("!user", r"'bad': \[INVALID_FORMAT.ESC_IN_THE_MIDDLE\]"),
}


def test_a_pattern_that_spark_does_not_take_is_refused_in_its_words(
    spark: SparkSession, tmp_path: Path
) -> None:
    feed = Feed(spark, tmp_path / "events", SCHEMA)
    hosts = spark.createDataFrame([("web1",)], "host string")
    with StandingQueries(
        spark,
        streams={"events": feed.stream()},
        tables={"hosts": hosts},
        state=tmp_path / "state",
    ) as queries:
        for condition, (pattern, refusal) in INVALID.items():
            rows = pd.DataFrame({"name": ["good", "bad"], "pattern": ["user", pattern]})
            with pytest.raises(NotShareableError, match=refusal):
                queries.add_many(SELECT.format(condition), rows)
        # What Spark alone decides of a table is not asked together with a Python function.
        rows = pd.DataFrame({"name": ["even", "odd"], "pattern": ["web", r"web\b"]})
        spark.udf.register("is_known", lambda host: host is not None, "boolean")
        joined = """SELECT id FROM events e JOIN hosts h ON e.host = h.host
                    WHERE h.host RLIKE :pattern OR is_known(e.host)"""
        with pytest.raises(NotShareableError, match=r"the query 'odd' has \\b in a regular"):
            queries.add_many(joined, rows)
        assert queries.queries().count() == 0
