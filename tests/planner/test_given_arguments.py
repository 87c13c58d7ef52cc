"""What arguments cannot be is refused where they are given, by their names; no name escapes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import eddyline
from tests.standing.feeds import Feed

NAMES = ("../../x", "..", ".", "a/../b", "/etc/x", "a\\..\\b", "%2e%2e", "query=a", "ä b\n*?")
SELECTION = "SELECT id FROM events WHERE id > 1"

Asked = Callable[[SparkSession], Any]


def loosely(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - so that no type stands in the way
    return function


watch = loosely(eddyline.watch)
report, adapt = loosely(eddyline.report), loosely(eddyline.adapt)


@pytest.mark.parametrize(
    ("ask", "kind", "message"),
    [
        (lambda s: watch(s.range(3), partial="x"), TypeError, "partial is True or False, not 'x'"),
        (
            lambda s: watch(s.range(3), partial=None),
            TypeError,
            "partial is True or False",
        ),
        (lambda s: watch(s.range(3), partial=1), TypeError, "partial is True or False, not 1"),
        (lambda s: watch(s.range(3)).show(rows="x"), TypeError, "rows is a whole number .* 'x'"),
        (lambda s: watch(s.range(3)).show(rows=-1), ValueError, "rows is a whole number .* -1"),
        (lambda s: watch(s.range(3)).show(rows=None), TypeError, "rows is a whole number .* None"),
        (lambda s: report(s.range(3), all="x"), TypeError, "all is True or False, not 'x'"),
        (lambda s: report(s.range(3), all=None), TypeError, "all is True or False, not None"),
        (
            lambda s: adapt(s.range(3), worth={"USD": True}),
            ValueError,
            "USD is worth a number of seconds from 0 on, not True",
        ),
        (
            lambda _: loosely(eddyline.concurrent)(str, returns="string", unit=None),
            TypeError,
            "unit is a text, as 'USD', not None",
        ),
    ],
)
def test_of_functions(spark: SparkSession, ask: Asked, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        ask(spark)


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Feed:
    feed = Feed(spark, tmp_path_factory.mktemp("feed") / "events", "id int")
    feed.give([(n,) for n in range(4)])
    return feed


@pytest.fixture(scope="module")
def rules(events: Feed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    state = tmp_path_factory.mktemp("state")
    with eddyline.StandingQueries(
        events.spark, streams={"events": events.stream()}, state=state
    ) as rules:
        rules.add(SELECTION, name="a")
        yield rules


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"streams": None}, TypeError, "streams are DataFrames by name"),
        ({"streams": ["events"]}, TypeError, "streams are DataFrames by name"),
        ({"streams": {"events": 3}}, TypeError, "DataFrame"),
        ({"tables": 3}, TypeError, "tables are DataFrames by name"),
        ({"state": None}, TypeError, "state is the path of a directory"),
        ({"state": ""}, ValueError, "state is the path of a directory"),
        ({"remember": "x"}, TypeError, "remember is True or False, not 'x'"),
        ({"remember": None}, TypeError, "remember is True or False, not None"),
    ],
)
def test_of_standing_queries(
    events: Feed, tmp_path: Path, given: dict[str, Any], kind: type[Exception], message: str
) -> None:
    usual: dict[str, Any] = {"streams": {"events": events.stream()}, "state": tmp_path}
    with pytest.raises(kind, match=message):
        eddyline.StandingQueries(events.spark, **(usual | given))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("ask", "kind", "message"),
    [
        (lambda r: r.add(None, name="b"), TypeError, "a query is a text, .* not None"),
        (lambda r: r.replace("a", 3), TypeError, "a query is a text, .* not 3"),
        (lambda r: r.add_many(None, pd.DataFrame({"x": [1]})), TypeError, "a query is a text"),
        (
            lambda r: r.add_many(f"{SELECTION} + :x", pd.DataFrame({"y": [1]})),
            ValueError,
            "there is no parameter x for :x",
        ),
        (
            lambda r: r.add_many(f"{SELECTION} + :x", pd.DataFrame({"x": [1]})),
            ValueError,
            "queries need names",
        ),
        (lambda r: r.subscribe("a", 3), TypeError, "callback is a function .* not 3"),
        (lambda r: r.subscribe("a", None), TypeError, "callback is a function .* not None"),
        (lambda r: r.await_termination(timeout="x"), TypeError, "timeout is a number .* 'x'"),
        (lambda r: r.await_termination(timeout=-1), ValueError, "timeout is a number .* -1"),
        (lambda r: r.drop(), TypeError, "drop takes the names of queries"),
        (lambda r: r.pause(), TypeError, "pause takes the names of queries"),
        (lambda r: r.resume(), TypeError, "resume takes the names of queries"),
        (lambda r: r.drop(["a"]), TypeError, "drop takes the names of queries"),
    ],
)
def test_of_their_methods(
    rules: eddyline.StandingQueries,
    ask: Callable[[Any], Any],
    kind: type[Exception],
    message: str,
) -> None:
    with pytest.raises(kind, match=message):
        ask(rules)
    assert [row.name for row in rules.queries().collect()] == ["a"]


def test_no_name_escapes_the_folder(events: Feed, tmp_path: Path) -> None:
    """Files of queries with odd names lie under the sink's path, and the state under its own."""
    sink, state = tmp_path / "deep" / "sink", tmp_path / "deep" / "state"
    with eddyline.StandingQueries(
        events.spark, streams={"events": events.stream()}, state=state
    ) as queries:
        for name in NAMES:
            queries.add(SELECTION, name=name)
        queries.start(sink, by_query=True, availableNow=True)
        queries.await_termination()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["deep"]
    assert sorted(each.name for each in sink.parent.iterdir()) == ["sink", "state"]
    directories = [each for each in sink.iterdir() if each.is_dir()]
    assert {unquote(each.name).removeprefix("query=") for each in directories} >= set(NAMES) - {
        "%2e%2e"
    }
    assert len(directories) == len(NAMES)
    for directory in directories:
        files = [Path(at) / name for at, _, names in os.walk(directory) for name in names]
        tables = [pq.ParquetFile(each).read() for each in files if each.suffix == ".parquet"]
        assert sorted(row for table in tables for row in table["id"].to_pylist()) == [2, 3]
