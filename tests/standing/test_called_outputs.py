"""Python functions in SELECT lists are called for results alone, and come with them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas import functions as vectorized

from eddyline.errors import NotShareableError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Gathered, expected, run_all
from tests.standing.test_rule_functions import Called, feed

VECTORIZED: Any = vectorized  # its overloads take no local function

MET = """events e JOIN others o ON e.text = o.text
    AND e.time BETWEEN o.time - INTERVAL 5 SECONDS AND o.time"""

RULES = {
    "selected": "SELECT number, loud(text) AS text FROM events WHERE number > 3",
    "within": "SELECT loud(text) || number AS text, plus(number) + 1 AS next FROM events",
    "of each other": "SELECT loud(joined(text, loud(other))) AS text FROM events WHERE number < 2",
    "and asked": "SELECT loud(text) AS text FROM events WHERE loud(text) LIKE '%1%'",
    "derived": "SELECT loud(reverse(text)) AS text, reverse(loud(text)) AS back FROM events",
    "nothing": "SELECT number FROM events WHERE number = 2",
    "join": "SELECT joined(e.text, o.other) AS text, e.number AS here FROM MET",
    "itself": """SELECT loud(b.text) AS text, plus(b.number - a.number) AS difference FROM events a
                 JOIN events b ON a.text = b.text AND b.time BETWEEN a.time - INTERVAL 2 SECONDS
                 AND a.time + INTERVAL 2 SECONDS""",
}

ABSENT = """SELECT loud(e.text) AS text, e.number AS alone FROM events e LEFT ANTI JOIN others o
    ON e.text = o.text AND o.time > e.time AND o.time <= e.time + INTERVAL 2 SECONDS"""

RAISING = {
    "selected": "SELECT quarrel(number) AS half FROM events WHERE number > 1",
    "joined": "SELECT quarrel(e.number) AS half FROM MET",
    "guarded": "SELECT quarrel(number) AS half FROM events WHERE number <> 3",
}


@pytest.mark.slow(20)
def test_results_are_those_of_a_batch_and_nothing_else_is_called(
    spark: SparkSession, tmp_path: Path
) -> None:
    events, others = feed(spark, tmp_path / "events", 1), feed(spark, tmp_path / "others", 2)
    calls = Called(tmp_path / "calls")
    note = calls.noting()

    def loud(text: str | None) -> str | None:
        note("loud", text)
        return None if text is None else text.upper()

    def quarrel(number: int) -> float:
        if number == 3:
            raise ValueError("not with a 3")
        return number / 2

    def plus(numbers: pd.Series) -> pd.Series:
        return numbers + 100

    spark.udf.register("loud", loud, "string")
    spark.udf.register("quarrel", quarrel, "double")
    spark.udf.register("joined", lambda one, other: f"{one}-{other}", "string")
    spark.udf.register("plus", VECTORIZED.pandas_udf(plus, "bigint"))
    sink = Gathered()
    streams = {"events": events.stream(), "others": others.stream()}
    tags = pd.DataFrame({"name": ["tag 0", "tag 1"], "tag": ["x", "y"], "least": [1, 3]})
    template = (
        "SELECT joined(text, :tag) AS text, :least AS least FROM events WHERE number = :least"
    )
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        queries.add("SELECT loud(text) AS text FROM events WHERE number = 4", name="alone")
        run_all(queries, sink)
    called = {value.split(" ", 1)[1] for value in calls.take()["loud"]}
    texts = {row.text for row in events.rows().where("number = 4").select("text").collect()}
    assert called == {f"({text!r},)" for text in texts}
    assert len(texts) < events.rows().select("text").distinct().count()
    sink.batches.clear()
    with StandingQueries(spark, streams=streams, state=tmp_path / "more") as queries:
        for name, sql in RULES.items():
            queries.add(sql.replace("MET", MET), name=name)
        queries.add_many(template, tags)
        # Results of some streams only, beside functions of others.
        queries.add(ABSENT, name="absent")
        for name, sql in RAISING.items():
            queries.add(sql.replace("MET", MET), name=f"raising {name}")
        with pytest.raises(NotShareableError, match="call it in the sink"):
            queries.add(
                "SELECT loud(max(text)) AS m FROM events GROUP BY window(time, '1 minute')",
                name="aggregate",
            )
        with pytest.warns(UserWarning, match="not with a 3"):
            run_all(queries, sink)
        states = {row.name: (row.state, row.reason) for row in queries.queries().collect()}
    answers = sink.answers()
    found = {name: rows for name, rows in answers.items() if not name.startswith("raising")}
    absent = found.pop("absent")
    both = {"events": events.rows(), "others": others.rows()}
    asked = {name: sql.replace("MET", MET) for name, sql in RULES.items()}
    for name, tag, least in tags.itertuples(index=False):
        asked[name] = template.replace(":tag", f"'{tag}'").replace(":least", str(least))
    assert found == expected(spark, both, asked)
    # Of the last events it is not known yet.
    assert absent
    assert absent <= expected(spark, both, {"absent": ABSENT})["absent"]
    assert states["raising guarded"] == ("running", None)
    for name, column in ("selected", "number"), ("joined", "events.number"):
        state, reason = states[f"raising {name}"]
        assert state == "paused"
        assert f"It was met with {column} = 3." in reason
    # Its first micro-batch is whole, but for the rows on which it raises; then it is paused.
    before = events.rows([0]).where("number > 1 AND number <> 3").select(F.col("number") / 2)
    assert answers["raising selected"] == Counter(map(tuple, before.collect()))
