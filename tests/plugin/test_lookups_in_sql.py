"""Lookup tables that clients make in SQL: the catalog keeps them, and the plug-in asks for rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest

from eddyline.plugin.sql_lookups import read_options
from tests.http_service import HttpService, Reply, Request
from tests.plugin.applications import PLUGIN, ran

pytestmark = [pytest.mark.slow(30)]

SETTINGS: Final = PLUGIN | {"spark.eddyline.environment": "WEATHER_TOKEN"}

JOIN: Final = """
    SELECT s.station, w.wind FROM VALUES ('a', 1), ('b', 2), ('a', 1), ('c', 3) AS s(station, hour)
    JOIN weather w ON s.station = w.station AND s.hour = w.hour WHERE w.wind > 15
"""

STATEMENTS: Final = f"""
    CREATE TABLE weather (station STRING, hour INT, wind DOUBLE) USING eddyline_lookup OPTIONS (
        url 'URL/{{station}}?hour={{hour}}',
        bind 'station, hour',
        headers '{{"X-Token": "$(WEATHER_TOKEN)"}}',
        max_in_flight '4'
    );
    {JOIN} ORDER BY 1;
    SELECT report FROM eddyline_report("{JOIN} ORDER BY 1");
    SELECT one.wind + other.wind AS twice FROM weather one JOIN weather other
        ON one.station = other.station AND one.hour + 1 = other.hour
        WHERE one.station = 'd' AND one.hour = 4;
    DESCRIBE EXTENDED weather;
    CREATE TEMPORARY VIEW aircraft USING eddyline_lookup OPTIONS (
        schema 'tail STRING, seats INT', url 'URL/aircraft/{{tail}}', bind 'tail'
    );
    SELECT 'seats', seats FROM aircraft WHERE tail = 'N1';
    SELECT 'all', * FROM weather;
    CREATE TABLE wrong (k INT) USING eddyline_lookup OPTIONS (url 'URL/{{k}}');
    CREATE TABLE wrong (k INT) USING eddyline_lookup OPTIONS (uri 'URL/{{k}}', bind 'k');
    CREATE TABLE wrong (k INT) USING eddyline_lookup OPTIONS (url 'URL/{{k}}', bind 'j');
    CREATE TABLE wrong USING eddyline_lookup OPTIONS (url 'URL/{{k}}', bind 'k');
    CREATE TABLE wrong USING eddyline_lookup
        OPTIONS (schema 'k nonsense', url 'URL/{{k}}', bind 'k');
    CREATE TABLE wrong (k INT) USING eddyline_lookup OPTIONS (url 'URL/{{k}}/$(NOWHERE)', bind 'k');
    SHOW TABLES;
    SET spark.eddyline.enabled=false;
    {JOIN};
    DROP TABLE weather;
    SELECT 'dropped', * FROM weather;
"""  # noqa: S608 - all of it is ours


def answer(request: Request) -> Reply:
    """Wind of ten times the hour; a seat for each character of a path."""
    if "hour" not in request.query:
        return Reply([{"seats": len(request.path)}])
    return Reply([{"wind": 10.0 * int(request.query["hour"])}])


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, HttpService]]:
    """What the shell has printed and said, and the service with what it was asked."""
    with HttpService(answer) as service:
        run = ran(
            tmp_path_factory.mktemp("shell"),
            "spark-sql",
            "--hiveconf",
            "hive.cli.errors.ignore=true",
            "-e",
            STATEMENTS.replace("URL", service.url),
            settings=SETTINGS,
            WEATHER_TOKEN="hush",  # noqa: S106 - nobody's
        )
        yield run.stdout, run.stderr, service


Shell = tuple[str, str, HttpService]


@pytest.mark.spark
def test_rows_are_looked_up_once_for_each_key(shell: Shell) -> None:
    printed, said, service = shell
    assert printed.splitlines()[:2] == ["b\t20.0", "c\t30.0"], said
    asked = sorted(f"{request.path} {request.query['hour']}" for request in weather(service))
    assert asked == ["/a 1", "/b 2", "/c 3", "/d 4", "/d 5"]
    assert "90.0" in printed.splitlines()
    assert "seats\t12" in printed.splitlines()


@pytest.mark.spark
def test_the_report_counts_the_keys(shell: Shell) -> None:
    assert re.search(r"weather +3 +3 +0", shell[0])


@pytest.mark.spark
def test_the_secret_is_sent_and_stands_nowhere(shell: Shell) -> None:
    printed, said, service = shell
    assert {request.headers["x-token"] for request in weather(service)} == {"hush"}
    assert "hush" not in printed + said


@pytest.mark.spark
@pytest.mark.parametrize(
    "what",
    [
        "Refusal: weather cannot be asked: the query has no values for station and hour",
        "eddyline_lookup: the option bind is missing",
        "eddyline_lookup: there is no option uri; there are allow_hosts, bind,",
        "eddyline_lookup has no column j; it has k",
        "NOWHERE is not set, which the source of a lookup names; spark.eddyline.environment",
        "USING eddyline_lookup needs columns",
        "weather is a lookup table, which answers only for given values of station and hour",
        "The table or view `weather` cannot be found",
        'Unsupported data type "NONSENSE"',
    ],
)
def test_what_cannot_be_is_said(shell: Shell, what: str) -> None:
    assert what in shell[1]


@pytest.mark.spark
def test_nothing_is_left_of_what_was_refused(shell: Shell) -> None:
    printed, _, _ = shell
    lines = printed.splitlines()
    assert lines[-3:-1] == ["weather", "aircraft"]
    assert "wrong" not in lines
    assert not any(line.startswith(("all", "dropped")) for line in lines)


def weather(service: HttpService) -> list[Request]:
    return [request for request in service.log if "hour" in request.query]


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"rate": "quick"}, "the option rate is a number, not 'quick'"),
        ({"keys_per_call": "2.5"}, "the option keys_per_call is a whole number, not '2.5'"),
        ({"verify": "maybe"}, "the option verify is true or false, not 'maybe'"),
        ({"pages": '{"paht": "next"}'}, "the option pages is an object in JSON"),
        ({"headers": "Bearer hush"}, "the option headers is an object in JSON"),
    ],
)
def test_options_are_texts_of_some_kind(option: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why) as raised:
        read_options({"url": "http://127.0.0.1/{k}", "bind": "k"} | option)
    assert "hush" not in str(raised.value)
