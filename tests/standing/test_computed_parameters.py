"""What Spark makes of :markers alone is a parameter like others."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from eddyline.errors import NotShareableError
from eddyline.standing.standing_queries import StandingQueries
from tests.standing.feeds import Feed, Gathered, expected, run_all

pytestmark = pytest.mark.slow(20)

TEMPLATES: dict[str, tuple[str, list[Any]]] = {
    "ilike": ("SELECT id FROM events WHERE said ILIKE :p", ["a%", "%B_", "None", "%1%", None]),
    "within": (
        "SELECT id, :p AS word FROM events WHERE said LIKE concat('%', :p, '%') AND id > 3",
        ["a", "B", "_", "%", None],
    ),
    "upper": ("SELECT id FROM events WHERE upper(said) = upper(trim(:p))", [" ab1 ", "Ab2", "x"]),
    "days": (
        "SELECT id FROM events WHERE day > date_add(:p, id % 1 + 1) OR day = last_day(:p)",
        [dt.date(2026, 1, 3), dt.date(2026, 1, 10), None],
    ),
    "counted": (
        """SELECT day, count(*) AS n FROM events
           WHERE said RLIKE concat('^', lower(:p)) GROUP BY window(time, '1 hour'), day""",
        ["A", "b", "(a|b)1"],
    ),
}


def test_computed_parameters(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(
        spark,
        tmp_path / "events",
        "id int, said string, day date, time timestamp",
        ("time", "1 second"),
    )
    start = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
    feed.give(
        [
            (
                n,
                None if n % 9 == 0 else f"{'aAbB'[n % 4]}{'bx%_'[n % 3]}{n % 3}",
                dt.date(2026, 1, 1 + n % 31),
                start + dt.timedelta(minutes=n),
            )
            for n in range(60)
        ]
    )
    wanted: dict[str, str] = {}
    sink = Gathered()
    streams = {"events": feed.stream()}
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        for name, (sql, values) in TEMPLATES.items():
            table = pd.DataFrame({"name": [f"{name} {n}" for n in range(len(values))], "p": values})
            queries.add_many(sql, table)
            kind = "DATE" if name == "days" else "STRING"
            for n, value in enumerate(values):
                written = f"CAST({'NULL' if value is None else repr(str(value))} AS {kind})"
                wanted[f"{name} {n}"] = sql.replace(":p", written)
        shown = {row.name: row for row in queries.queries().collect()}
        assert shown["ilike 0"].parameters == '{"p": "a%"}'
        assert shown["ilike 0"].derived == ["lower(said)"]  # one for all patterns
        with pytest.raises(NotShareableError, match=r"parameters of bad give no value: .*CAST_INV"):
            queries.add_many(
                "SELECT id FROM events WHERE id > length(repeat('x', :p))",
                pd.DataFrame({"name": ["good", "bad"], "p": ["1", "y"]}),
            )
        run_all(queries, sink)
    feed.give([(999, None, None, start + dt.timedelta(days=9))])
    with StandingQueries(spark, streams=streams, state=tmp_path / "state") as queries:
        run_all(queries, sink)
    assert sink.answers() == expected(spark, {"events": feed.rows([0])}, wanted)
