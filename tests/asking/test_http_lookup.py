"""HTTP services as sources: what is asked, what is understood, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pyarrow as pa
import pytest

from eddyline.asking.http_lookup import Cursor, HttpLookup, NextLink, PageNumber
from eddyline.asking.limits import Limits
from eddyline.asking.lookup_source import LookedUpTable, NoAnswerError, TryAgainError
from eddyline.asking.refusals import QuotaRefusedError
from eddyline.errors import MissingSecretError
from tests.asked import answered, called, why
from tests.http_service import HttpService, Reply, Request

TABLE = LookedUpTable(
    "weather",
    ("origin", "hour", "wind"),
    (pa.string(), pa.int64(), pa.float64()),
    (0, 1),
)
ZIPS = LookedUpTable("zips", ("zip", "income"), (pa.string(), pa.float64()), (0,))


def always(body: object, status: int = 200, **headers: str) -> Callable[[Request], Reply]:
    return lambda _: Reply(body, status, headers)


def test_keys_go_into_the_url_and_the_parameters_quoted() -> None:
    with HttpService(always([{"wind": 3}])) as service:
        source = HttpLookup(service.url + "/w/{origin}", params={"at": "h{hour}"})
        rows = called(source, TABLE, [("JF/K ?&ü", 7)])
        assert rows == [{"origin": "JF/K ?&ü", "hour": 7, "wind": 3.0}]
        (request,) = service.log
        assert (request.path, request.query) == ("/w/JF/K ?&ü", {"at": "h7"})


@pytest.mark.parametrize("value", ["..", ".", "../x", "a/../b", "%2e%2e", "{origin}", "${HOME}"])
def test_a_key_leads_to_no_other_part_of_the_service(value: str) -> None:
    with HttpService(always([])) as service:
        called(HttpLookup(service.url + "/z/{zip}/end"), ZIPS, [(value,)])
        assert service.paths == [f"/z/{value}/end"]
        # Whoever passes it on may take out segments of dots, as RFC 3986 has it.
        middle = service.log[0].target.removeprefix("/z/").removesuffix("/end")
        assert "/" not in middle
        assert middle.strip(".")


def test_many_keys_go_in_one_request() -> None:
    rows = [{"zip": "1", "income": 1}, {"zip": "2", "income": 2.5}]
    with HttpService(always(rows)) as service:
        source = HttpLookup(service.url + "/z", params={"zips": "{zip}"}, keys_per_call=10)
        assert called(source, ZIPS, [("1",), ("2",), ("3",)]) == rows
        assert service.log[0].query == {"zips": "1,2,3"}


def test_a_body_takes_values_as_they_are() -> None:
    with HttpService(always([])) as service:
        body = {"where": {"origin": "{origin}", "hour": "{hour}"}, "text": "of {origin}", "n": 5}
        called(HttpLookup(service.url, method="POST", body=body), TABLE, [("JFK", 7)])
        several = HttpLookup(service.url, method="POST", body={"zips": "{zip}"}, keys_per_call=9)
        called(several, ZIPS, [("1",), ("2",)])
        first, second = (json.loads(request.body) for request in service.log)
        assert first == {"where": {"origin": "JFK", "hour": 7}, "text": "of JFK", "n": 5}
        assert second == {"zips": ["1", "2"]}


def test_rows_and_columns_are_found_by_paths() -> None:
    answer = {"data": {"items": [{"z": "1", "stats": {"income": {"mean": 5}}}]}}
    with HttpService(always(answer)) as service:
        source = HttpLookup(
            service.url + "/{zip}",
            rows="data.items",
            columns={"zip": "z", "income": "stats.income.mean"},
        )
        assert called(source, ZIPS, [("1",)]) == [{"zip": "1", "income": 5.0}]


@pytest.mark.parametrize("status", [404, 410])
def test_what_is_not_found_has_no_rows(status: int) -> None:
    with HttpService(always({"error": "none"}, status)) as service:
        assert called(HttpLookup(service.url + "/{zip}"), ZIPS, [("1",)]) == []


def test_that_one_of_many_is_not_found_says_nothing_of_the_others() -> None:
    def answer(request: Request) -> Reply:
        zips = request.query["z"].split(",")
        if "2" in zips:
            return Reply(None, 404)
        return Reply([{"zip": each, "income": 1} for each in zips])

    with HttpService(answer) as service:
        source = HttpLookup(service.url, params={"z": "{zip}"}, keys_per_call=9)
        found, _ = answered(source, ZIPS, [("1",), ("2",), ("3",)])
        assert found == [[("1", 1.0)], [], [("3", 1.0)]]


@pytest.mark.parametrize("body", [b"", b"null", b"[]"])
def test_an_answer_without_anything_has_no_rows(body: bytes) -> None:
    with HttpService(always(body)) as service:
        assert called(HttpLookup(service.url + "/{zip}"), ZIPS, [("1",)]) == []


def test_pages_by_link() -> None:
    def answer(request: Request) -> Reply:
        page = int(request.query.get("page", "0"))
        following = f"/{page}?page={page + 1}" if page < 2 else None
        return Reply({"rows": [{"income": page}], "next": following})

    with HttpService(answer) as service:
        source = HttpLookup(service.url + "/{zip}", rows="rows", pages=NextLink("next"))
        assert [row["income"] for row in called(source, ZIPS, [("1",)])] == [0.0, 1.0, 2.0]


def test_pages_by_number_and_by_cursor() -> None:
    def answer(request: Request) -> Reply:
        if "page" in request.query:
            page = int(request.query["page"])
            return Reply({"rows": [{"income": page}] if page < 4 else []})
        at = int(request.query.get("after", "0"))
        return Reply({"rows": [{"income": at}], "cursor": at + 1 if at < 2 else None})

    with HttpService(answer) as service:
        for pages, found in (
            (PageNumber("page"), [1.0, 2.0, 3.0]),
            (PageNumber("page", first=3), [3.0]),
            (Cursor("cursor", "after"), [0.0, 1.0, 2.0]),
        ):
            source = HttpLookup(service.url + "/{zip}", rows="rows", pages=pages)
            assert [row["income"] for row in called(source, ZIPS, [("1",)])] == found


def test_redirects_go_to_the_same_host_only() -> None:
    def answer(request: Request) -> Reply:
        if request.path.startswith("/old"):
            return Reply(None, 307, {"Location": "/new/1"})
        if request.path.startswith("/away"):
            return Reply(None, 302, {"Location": f"http://localhost:{service.port}/new/1"})
        return Reply([{"income": 1}])

    with HttpService(answer) as service:
        assert called(HttpLookup(service.url + "/old/{zip}"), ZIPS, [("1",)])
        away = HttpLookup(service.url + "/away/{zip}")
        assert re.search(r"zip='1'.* leads to localhost:.*allow_hosts", why(away, ZIPS, ("1",)))
        asked = len(service.log)
        allowed = HttpLookup(service.url + "/away/{zip}", allow_hosts=["localhost"])
        assert called(allowed, ZIPS, [("1",)])
        assert len(service.log) == asked + 2


def test_redirects_in_a_circle_end() -> None:
    with HttpService(lambda _: Reply(None, 302, {"Location": "/again"})) as service:
        source = HttpLookup(service.url + "/{zip}")
        assert why(source, ZIPS, ("1",)).endswith("zips zip='1': more than 5 redirects")
        assert len(service.log) == 6


@pytest.mark.parametrize("status", [429, 503])
def test_a_refusal_for_quota_is_no_failure(status: int) -> None:
    with HttpService(always(None, status, **{"Retry-After": "3"})) as service:
        with pytest.raises(QuotaRefusedError, match=f"HTTP {status}") as raised:
            called(HttpLookup(service.url + "/{zip}"), ZIPS, [("1",)])
        assert raised.value.after == 3.0


@pytest.mark.parametrize("status", [500, 502])
def test_what_may_pass_may_be_tried_again(status: int) -> None:
    with HttpService(always(None, status, **{"Retry-After": "3"})) as service:
        with pytest.raises(TryAgainError, match=f"HTTP {status}") as raised:
            called(HttpLookup(service.url + "/{zip}"), ZIPS, [("1",)])
        assert raised.value.after == 3.0


@pytest.mark.parametrize("status", [400, 401, 403, 422])
def test_what_will_not_pass_fails(status: int) -> None:
    with HttpService(always(None, status)) as service:
        source = HttpLookup(service.url + "/{zip}")
        said = f"{source.label}, asked for zips zip='1': HTTP {status}"
        assert why(source, ZIPS, ("1",), Limits()) == said
        assert len(service.log) == 1


def test_a_connection_that_breaks_may_be_tried_again() -> None:
    with HttpService(lambda _: Reply(status=None)) as service:
        with pytest.raises(TryAgainError):
            called(HttpLookup(service.url + "/{zip}"), ZIPS, [("1",)])
        url = service.url
    with pytest.raises(TryAgainError, match="ConnectError"):
        called(HttpLookup(url + "/{zip}"), ZIPS, [("1",)])


def test_an_answer_that_takes_too_long_may_be_tried_again() -> None:
    with (
        HttpService(lambda _: Reply([], delay=5.0)) as service,
        pytest.raises(TryAgainError, match=r"no answer in 0\.2 s"),
    ):
        called(HttpLookup(service.url + "/{zip}"), ZIPS, [("1",)], Limits(timeout=0.2))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "is no JSON"),
        (b'[{"income": "high"}]', "column income is double"),
        (b'[{"income": {"a": 1}}]', "column income is double"),
        (b'[["1"]]', "a row has 1 values, not 2"),
        (b"[7]", "a row is int"),
        (b'"text"', "the rows are str"),
        (b"[" + b" " * 2_000 + b"]", "more than max_bytes=1,000 bytes"),
    ],
)
def test_what_is_no_rows_fails_with_source_and_key(body: bytes, message: str) -> None:
    with HttpService(always(body)) as service:
        source = HttpLookup(service.url + "/{zip}", max_bytes=1_000)
        said = why(source, ZIPS, ("10001",))
        assert said.startswith(f"{source.label}, asked for zips zip='10001': ")
        assert message in said


def test_rows_of_many_keys_must_say_whose_they_are() -> None:
    with HttpService(always([{"income": 1}])) as service:
        source = HttpLookup(service.url, params={"z": "{zip}"}, keys_per_call=5)
        with pytest.raises(NoAnswerError, match="lacks zip, so that nobody knows"):
            called(source, ZIPS, [("1",), ("2",)])
        found, _ = answered(source, ZIPS, [("1",), ("2",)])
        assert found == [[("1", 1.0)], [("2", 1.0)]]  # alone there is no doubt
        assert [request.query["z"] for request in service.log] == ["1,2", "1,2", "1", "2"]


def test_secrets_come_from_the_environment_and_are_shown_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TINY_TOKEN", "s3cret{zip}")
    with HttpService(always(None, 400)) as service:
        source = HttpLookup(
            service.url + "/${TINY_TOKEN}/{zip}", headers={"X-Key": "Bearer ${TINY_TOKEN}"}
        )
        assert "s3cret" not in repr(source) + source.label
        assert "s3cret" not in why(source, ZIPS, ("1",))
        assert service.log[0].headers["x-key"] == "Bearer s3cret{zip}"
        assert service.log[0].path == "/s3cret{zip}/1"
    monkeypatch.delenv("TINY_TOKEN")
    with pytest.raises(MissingSecretError, match="TINY_TOKEN is not set"):
        source.check(ZIPS)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (HttpLookup("http://x/"), "does not say where {zip} goes"),
        (HttpLookup("http://x/{zip}/{town}"), "names {town}"),
        (HttpLookup("http://x/{zip}", columns={"wage": "w"}), "has no column wage"),
        (HttpLookup("http://x/{zip}", headers={"X-Zip": "{zip}"}), "in no header"),
        (HttpLookup("http://x/{zip}", body={"key": ["${KEY}"]}), "in no body"),
    ],
)
def test_what_cannot_be_a_source_of_a_table_is_refused(source: HttpLookup, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        source.check(ZIPS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HttpLookup("ftp://x/{zip}"), "begins with http"),
        (lambda: HttpLookup("http://x/{zip}", keys_per_call=0), "a whole number from 1 on"),
        (lambda: HttpLookup("http://x/{zip}", rows="a["), "is no JMESPath"),
    ],
)
def test_nonsense_is_refused_at_once(make: Callable[[], HttpLookup], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_key_with_a_comma_is_asked_for_alone() -> None:
    table = LookedUpTable("t", ("a", "b"), (pa.string(), pa.string()), (0,))

    def answer(request: Request) -> Reply:
        keys = (
            [request.query["a"]] if request.query["a"] == "x,y" else request.query["a"].split(",")
        )
        return Reply([{"a": key, "b": "r"} for key in keys])

    with HttpService(answer) as service:
        source = HttpLookup(service.url, params={"a": "{a}"}, keys_per_call=4)
        found, _ = answered(source, table, [("x",), ("x,y",), ("y",)])
        assert found == [[("x", "r")], [("x,y", "r")], [("y", "r")]]
