"""Parameters in SELECT lists come back with each result, as if they stood there as constants."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from eddyline.blocks.filter_block import SessionSettings
from eddyline.errors import NotShareableError
from eddyline.expressions import Argument
from eddyline.standing.engine.shared_query import SharedQuery
from eddyline.standing.log.live_queries import StandingQuery
from eddyline.standing.parameter_tables import as_sent, kinds_of
from eddyline.standing.query_template import QueryGroup, QueryTemplate, ShownParameter
from eddyline.standing.standing_queries import StandingQueries
from eddyline.standing.tasks.shown_values import shown_values
from tests.standing.feeds import Feed, Gathered, expected, run_all

SCHEMA = "symbol string, price double, volume bigint, time timestamp"
START = dt.datetime(2026, 1, 1, 12, 0)  # noqa: DTZ001 - in the session's zone, as Spark takes it


def events(batch: int, shift: int) -> list[tuple[Any, ...]]:
    return [
        (
            "ABC"[n % 3],
            None if n % 11 == 0 else float(n * shift % 50),
            n,
            START + dt.timedelta(seconds=60 * batch + n),
        )
        for n in range(40)
    ]


def feed(spark: SparkSession, directory: Path, shift: int) -> Feed:
    found = Feed(spark, directory, SCHEMA, ("time", "2 minutes"))
    for number in range(2):
        found.give(events(number, shift))
    return found


@pytest.fixture
def trades(spark: SparkSession, tmp_path: Path) -> Feed:
    return feed(spark, tmp_path / "trades", 7)


@pytest.fixture
def quotes(spark: SparkSession, tmp_path: Path) -> Feed:
    return feed(spark, tmp_path / "quotes", 11)


ROWS: list[dict[str, Any]] = [
    {
        "name": f"q{n}",
        "least": 20.5 + n % 20,
        "label": None if n == 3 else f"rule {n}",
        "number": n,
        "other": 1000 + n,
        "day": dt.date(2026, 1, 1 + n % 28),
        "share": Decimal(n) / 4,
        "on": n % 2 == 0,
        "some": [n, None],
    }
    for n in range(30)
]

TEMPLATES = {
    "SELECT symbol, price, :least AS at_least, :label AS label FROM trades WHERE price > :least": (
        "least",
        "label",
    ),
    """SELECT volume, price - :least AS above, concat(:label, symbol, :number) AS said, :day AS day,
       :share AS share, :on AS on_now, element_at(:some, 1) AS one,
       :number + volume AS added FROM trades
       WHERE volume < :number""": ("least", "label", "number", "day", "share", "on", "some"),
    """SELECT :number AS number, :other AS other, :number - :other AS apart FROM trades
       WHERE price > 48""": ("other", "number"),
    "SELECT :label AS label, :other AS other FROM trades WHERE price < 5": ("label", "other"),
}


def written(value: Any) -> str:  # noqa: ANN401, PLR0911 - one a type
    match value:
        case None:
            return "CAST(NULL AS STRING)"
        case bool():
            return str(value)
        case float():
            return f"{value}D"
        case int():
            return f"{value}L"
        case Decimal():
            return f"CAST({value} AS DECIMAL(10, 2))"
        case dt.date():
            return f"DATE '{value}'"
        case list():
            return f"array({', '.join('NULL' if v is None else written(v) for v in value)})"
    return f"'{value}'"


def filled(sql: str, row: Mapping[str, Any]) -> str:
    for name in sorted(row, key=len, reverse=True):
        sql = sql.replace(f":{name}", written(row[name]))
    return sql


def table(*names: str) -> pa.Table:
    types = {"share": pa.decimal128(10, 2), "some": pa.list_(pa.int64()), "label": pa.string()}
    return pa.table(
        {name: pa.array([row[name] for row in ROWS], types.get(name)) for name in ("name", *names)}
    )


def comparable(answers: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: sorted(map(str, rows.elements())) for name, rows in answers.items()}


def test_queries_on_one_stream(spark: SparkSession, tmp_path: Path, trades: Feed) -> None:
    sink = Gathered()
    each: dict[str, str] = {}
    with StandingQueries(
        spark, streams={"trades": trades.stream()}, state=tmp_path / "state"
    ) as queries:
        queries.add("SELECT symbol, price FROM trades WHERE price > 45", name="plain")
        for number, (sql, names) in enumerate(TEMPLATES.items()):
            of_rows = table(*names)
            own = [f"{number}-{row['name']}" for row in ROWS]
            queries.add_many(sql, of_rows.set_column(0, "name", pa.array(own)))
            each |= {name: filled(sql, row) for name, row in list(zip(own, ROWS, strict=True))[::5]}
        run_all(queries, sink)
    each["plain"] = "SELECT symbol, price FROM trades WHERE price > 45"
    found = sink.answers()
    wanted = expected(spark, {"trades": trades.rows()}, each)
    assert comparable({n: found[n] for n in each if n in found}) == comparable(wanted)
    assert {name.partition("-")[0] for name in wanted} == {"plain", "0", "1", "2", "3"}


JOIN = """SELECT t.volume tv, q.volume qv, :factor AS factor, t.price - q.price * :factor AS over,
          :since AS since FROM trades t JOIN quotes q
          ON t.symbol = q.symbol AND q.time BETWEEN t.time AND t.time + INTERVAL 10 SECONDS
          WHERE t.price > q.price * :factor AND t.time >= :since"""


@pytest.fixture
def in_new_york(spark: SparkSession) -> Iterator[None]:
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.usefixtures("in_new_york")
def test_joins_that_come_and_go(
    spark: SparkSession, tmp_path: Path, trades: Feed, quotes: Feed
) -> None:
    second = dt.timedelta(seconds=1)
    new_york = ZoneInfo("America/New_York")
    rows = [(f"q{n}", 1 + n / 10, (START + n * second).astimezone(new_york)) for n in range(20)]
    parameters = pd.DataFrame(rows, columns=["name", "factor", "since"])
    sink = Gathered()
    streams = {"trades": trades.stream(), "quotes": quotes.stream()}
    state = tmp_path / "state"
    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.add_many(JOIN, parameters)
        queries.pause("q3", "q7")
        run_all(queries, sink)
    for source, shift in ((trades, 13), (quotes, 3)):
        source.give(events(2, shift))
    with StandingQueries(spark, streams=streams, state=state) as queries:
        queries.resume("q7", "q3")  # under other numbers, in another order
        queries.drop("q1")
        run_all(queries, sink)

    def asked(number: int) -> str:
        _, factor, since = rows[number]
        time = f"TIMESTAMP '{since:%Y-%m-%d %H:%M:%S}'"
        return JOIN.replace(":factor", f"{factor}D").replace(":since", time)

    every = {"trades": trades.rows(), "quotes": quotes.rows()}
    wanted = expected(spark, every, {f"q{n}": asked(n) for n in (0, 8, 19)})
    for batches, numbers in ((range(2), (1,)), (range(2, 3), (3, 7))):
        some = {"trades": trades.rows(batches), "quotes": quotes.rows(batches)}
        wanted |= expected(spark, some, {f"q{n}": asked(n) for n in numbers})
    found = sink.answers()
    assert {name: found[name] for name in wanted} == wanted
    assert wanted.keys() >= {"q0", "q1", "q3", "q7", "q8"}


def test_what_is_refused_and_how_columns_are_called(
    spark: SparkSession, tmp_path: Path, trades: Feed
) -> None:
    spark.udf.register("twice", lambda x: x and 2 * x, "double")
    with StandingQueries(
        spark, streams={"trades": trades.stream()}, state=tmp_path / "state"
    ) as queries:
        lasting = pa.table({"it": pa.array([dt.timedelta(hours=1)])})
        with pytest.raises(NotShareableError, match="the parameter it of the type interval day"):
            queries.add_many("SELECT :it AS it FROM trades", lasting, name="q")
        one = pa.table({"it": [1.0]})
        with pytest.raises(NotShareableError, match="a Python function of parameters alone"):
            queries.add_many("SELECT twice(:it) AS it FROM trades", one, name="q")
        template = "SELECT symbol FROM trades WHERE price > twice(:it)"
        for argument in (":it", "1 + :it", "twice(:it)"):
            sql = template.replace(":it", argument)
            with pytest.raises(NotShareableError, match="a Python function of parameters alone"):
                queries.add_many(sql, one, name="q")
        queries.add("SELECT symbol AS it FROM trades", name="other")
        with pytest.raises(NotShareableError, match="it is double here and string in"):
            queries.add_many("SELECT :it AS it FROM trades", one, name="q")
        queries.add_many("SELECT :it, price - :it FROM trades", one, name="q")
        sink = Gathered()
        run_all(queries, sink)
    row = next(row for rows in sink.batches.values() for row in rows if row["query"] == "q-0")
    assert row.keys() >= {"query", ":it", "(price - :it)"}


def test_values_stand_by_the_numbers_of_queries() -> None:
    def group(values: list[int], *shown: ShownParameter) -> QueryGroup:
        template = QueryTemplate(
            "",
            ("events",),
            SharedQuery({0: None}),
            (Argument(0, pa.int64()),),
            (("other", '"string"'), ("it", '"long"')),
            (),
            frozenset(),
            (),
            SessionSettings("UTC"),
            frozenset(),
            shown=shown,
        )
        parameters = pa.table({"other": ["x"] * len(values), "it": pa.array(values, pa.int64())})
        return QueryGroup(0, tuple(map(str, values)), template, parameters)

    it = ShownParameter(1, '"long"', 0)
    one, other, none = group([10, 11, 12], it), group([20, 21], it), group([30])
    queries = [
        StandingQuery(7, one, 2),
        StandingQuery(2, other, 1),
        StandingQuery(0, one, 0),
        StandingQuery(5, none, 0),
    ]
    found = shown_values(queries, 9)
    assert {name: values.to_pylist() for name, values in found.items()} == {
        it.column: [10, None, 21, None, None, None, None, 12, None]
    }


def test_parameters_are_as_spark_would_send_them() -> None:
    given = pa.table(
        {
            "local": pa.array([1_999], pa.timestamp("ns")),
            "fine": pa.array([1_999], pa.timestamp("ns", "UTC")),
            "text": pa.array(["a"]).dictionary_encode(),
            "span": pa.array([dt.timedelta(1)]),
        }
    )
    found = as_sent(given, kinds_of(given), "America/New_York")
    assert found["local"].type == pa.timestamp("us")
    assert found["fine"].type == pa.timestamp("us", "America/New_York")
    for name in ("local", "fine"):
        assert found[name].cast(pa.int64()).to_pylist() == [1]
    assert found["text"].type == pa.string()
    assert found["span"].type == given["span"].type
