"""The live page is served to those who know its address, and says what there is."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from eddyline.engine.policies.adaptive_window import ChangedQuantity
from eddyline.monitor import page_server
from eddyline.monitor.page_server import FILES, PageServer
from eddyline.monitor.query_book import QueryBook
from eddyline.reports.records import Change, TaskRecord
from tests.monitor.live_queries import HOSTILE, book_of, filter_record, join_record, run


@pytest.fixture
def book() -> QueryBook:
    return book_of()


@pytest.fixture
def server(book: QueryBook) -> Iterator[PageServer]:
    made = PageServer(book)
    yield made
    made.close()


class Answer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self.body = answer.read()

    def json(self) -> Any:  # noqa: ANN401 - of a test
        return json.loads(self.body)


def asked(server: PageServer, path: str, host: str | None = None, token: str = "") -> Answer:
    where = urlsplit(server.url)
    assert where.hostname is not None
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
    try:
        headers = {} if host is None else {"Host": host}
        connection.request("GET", (token or where.path) + path, headers=headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()


@pytest.mark.parametrize("name", FILES)
def test_the_page_loads_nothing_from_elsewhere(name: str, server: PageServer) -> None:
    answer = asked(server, name)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == FILES[name][1]
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    text = answer.body.decode()
    outside = text.replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in outside
    assert "https:" not in outside
    assert "innerHTML" not in text
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"


def test_an_address_without_its_last_slash_leads_there(server: PageServer) -> None:
    path = urlsplit(server.url).path
    answer = asked(server, "", token=path.removesuffix("/"))
    assert answer.status == 301
    assert answer.headers["Location"] == path


@pytest.mark.parametrize(
    "path", ["/", "/queries", "/wrong-token/", "/wrong-token/queries", "//", "/%2e%2e/"]
)
def test_without_the_token_there_is_nothing(path: str, server: PageServer) -> None:
    answer = asked(server, "", token=path)
    assert answer.status == 404
    assert b"eddyline" not in answer.body.lower()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200),
        ("localhost:8080", 200),
        ("localhost", 200),
        ("[::1]:80", 200),
        ("evil.example", 404),
        ("evil.example:80", 404),
        ("127.0.0.1.evil.example:80", 404),
        ("localhost:evil", 404),
        ("", 404),
    ],
)
def test_only_this_machine_is_asked(host: str, status: int, server: PageServer) -> None:
    assert asked(server, "queries", host=host).status == status


def test_only_this_machine_can_ask(server: PageServer) -> None:
    assert urlsplit(server.url).hostname == "127.0.0.1"
    assert server._server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "path", ["query/", "query/x", "query/99", "query/-1", "query/1/2", "live.py", "../queries", "x"]
)
def test_what_is_not_there(path: str, server: PageServer) -> None:
    assert asked(server, path).status == 404


def test_queries_page_by_page(book: QueryBook, server: PageServer) -> None:
    for action in range(7):
        run(book, action, filter_record(1000), ended=True, description=f"count {action}")
    found = asked(server, "queries?most=3").json()
    assert found["count"] == 7
    assert [query["description"] for query in found["queries"]] == ["count 6", "count 5", "count 4"]
    found = asked(server, "queries?most=3&before=5").json()
    assert [query["number"] for query in found["queries"]] == [4, 3, 2]
    assert len(asked(server, "queries?find=COUNT+2").json()["queries"]) == 1
    for odd in ("most=x", "before=-1", "most=99999999999999999999", "most=1&most=2", "find=%00"):
        assert asked(server, f"queries?{odd}").status == 200


def test_a_query_in_full(book: QueryBook, server: PageServer) -> None:
    number = run(book, 1, filter_record(1000), ended=False)
    query = asked(server, f"query/{number}").json()
    assert (query["state"], query["ended"]) == ("running", None)
    assert (query["rows_in"], query["tasks_done"], query["tasks"]) == (1000, 1, 4)
    (block,) = query["blocks"]
    assert [(step["label"], step["came"], step["went"]) for step in block["steps"]] == [
        ("1", 100, 50),
        ("2", 1000, 100),
    ]
    assert block["run"]["slices"][1]["orders"] == [{"order": [1, 0], "rows": 500}]


def test_a_join_in_full(book: QueryBook, server: PageServer) -> None:
    number = run(book, 1, join_record("slow"), ended=True)
    (block,) = asked(server, f"query/{number}").json()["blocks"]
    assert [(step["label"], step["stem"], step["came"]) for step in block["steps"]] == [
        ("1", False, 30),
        ("flights", True, 0),
        ("slow", True, 90),
    ]


def test_what_json_has_no_words_for(book: QueryBook, server: PageServer) -> None:
    change = Change(1.0, 0, ChangedQuantity.COST, float("inf"), float("nan"))
    record: TaskRecord = replace(filter_record(10), changes=(change,))
    number = run(book, 1, record, ended=True, description=HOSTILE)
    answer = asked(server, f"query/{number}")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"


def events(server: PageServer) -> Iterator[dict[str, Any]]:
    where = urlsplit(server.url)
    assert where.hostname is not None
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=60)
    connection.request("GET", where.path + "events")
    answer = connection.getresponse()
    assert answer.headers["Content-Type"] == "text/event-stream"
    try:
        while line := answer.readline():
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))
    finally:
        connection.close()


def test_events_tell_of_what_runs(book: QueryBook, server: PageServer) -> None:
    heard = events(server)
    assert next(heard)["running"] == []
    number = run(book, 1, filter_record(1000), ended=False)
    seen = next(event for event in heard if event["running"])
    assert seen["running"][0]["number"] == number
    run(book, 1, filter_record(2000), ended=True)
    assert next(event for event in heard if not event["running"])["count"] == 1
    heard.close()  # type: ignore[attr-defined]  # a generator


def test_events_end_with_the_server(server: PageServer) -> None:
    heard = events(server)
    next(heard)
    threading.Timer(0.1, server.close).start()
    list(heard)  # comes to an end
    with pytest.raises(ConnectionError):
        asked(server, "")


def test_no_more_listeners_than_there_are_threads_for(
    book: QueryBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "MOST_LISTENERS", 1)
    server = PageServer(book)
    heard = events(server)
    next(heard)
    assert asked(server, "events").status == 503
    assert asked(server, "queries").status == 200
    server.close()
    list(heard)
