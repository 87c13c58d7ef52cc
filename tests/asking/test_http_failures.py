"""HTTP services that fail: each way has an outcome, the answer or an error that names the key."""

from __future__ import annotations

import asyncio
import email.utils
import gc
import gzip
import json
import ssl
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from eddyline.asking.access_method import AccessMethod
from eddyline.asking.http_lookup import HttpLookup
from eddyline.asking.limits import Limits, OnError
from eddyline.asking.lookup_source import LookedUpTable
from tests.asked import answered, until, why
from tests.http_service import HttpService, Reply, Request

TABLE = LookedUpTable("t", ("a", "b"), (pa.int64(), pa.string()), (0,))
ROWS = [{"b": "x"}]
FOUND = [[(1, "x")]]
MILLION = 1_000_000
PEM = Path(__file__).parents[1] / "tls" / "localhost.pem"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def by(service: HttpService, **options: object) -> HttpLookup:
    return HttpLookup(service.url + "/{a}", **options)  # type: ignore[arg-type]  # whatever it takes


def said(service: HttpService, what: str) -> str:
    return f"{service.url}/{{a}}, asked for t a=1: {what}"


def first(*replies: Callable[[], Reply]) -> Callable[[Request], Reply]:
    """Answer in turn, and with rows in the end."""
    left = list(replies)
    return lambda _: left.pop(0)() if left else Reply(ROWS)


BREAKING: dict[str, Callable[[], Reply]] = {
    "before it answers": lambda: Reply(status=None),
    "in the middle of the body": lambda: Reply(
        parts=[HEAD + b'Content-Length: 100\r\n\r\n[{"b": "', b"x"]
    ),
    "in the middle of a chunk": lambda: Reply(
        parts=[HEAD + b"Transfer-Encoding: chunked\r\n\r\n10\r\n[{"]
    ),
    "in the middle of the head": lambda: Reply(parts=[HEAD]),
    "with something else than HTTP": lambda: Reply(parts=[b"220 mail ready\r\n\r\n"]),
    "with a head without an end": lambda: Reply(parts=[HEAD, b"X: " + b"x" * MILLION]),
    "with two lengths": lambda: Reply(
        parts=[HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n[] "]
    ),
}


@pytest.mark.parametrize("reply", BREAKING.values(), ids=BREAKING.keys())
def test_a_connection_that_breaks_is_replaced(reply: Callable[[], Reply]) -> None:
    with HttpService(first(reply)) as service:
        found, asked = answered(by(service), TABLE, [(1,)], Limits(retries=1))
        assert (found, asked.tries) == (FOUND, 2)
    with HttpService(lambda _: reply()) as service:
        error = why(by(service), TABLE, (1,), Limits(retries=1))
        assert error.startswith(said(service, ""))
        assert error.endswith(", tried 2 times")
        assert len(service.log) == 2


STALLING: dict[str, Callable[[], Reply]] = {
    "before it answers": lambda: Reply(ROWS, delay=10.0),
    "in the middle of the body": lambda: Reply(
        parts=[HEAD + b"Content-Length: 100\r\n\r\n["], delay=10.0
    ),
}


@pytest.mark.parametrize("reply", STALLING.values(), ids=STALLING.keys())
def test_a_service_that_stalls_is_not_waited_for(reply: Callable[[], Reply]) -> None:
    with HttpService(first(reply)) as service:
        found, asked = answered(by(service), TABLE, [(1,)], Limits(retries=9, timeout=0.5))
        assert found == FOUND
        assert asked.tries > 1
    with HttpService(lambda _: reply()) as service:
        error = why(by(service), TABLE, (1,), Limits(retries=0, timeout=0.2))
        assert error == said(service, "no answer in 0.2 s, tried once")
        assert gone(service)


def gone(service: HttpService) -> bool:
    """Tell whether the service has no connection open, in the end."""
    return until(lambda: not service.connections)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
@pytest.mark.parametrize("after", ["", "0", "0.01", "date", "no date", "-3", "nan", "inf"])
def test_a_service_that_is_busy_is_asked_again(status: int, after: str) -> None:
    if after == "date":
        after = email.utils.formatdate(time.time() - 5, usegmt=True)
    headers = {"Retry-After": after} if after else {}
    with HttpService(first(lambda: Reply(None, status, headers))) as service:
        found, _ = answered(by(service), TABLE, [(1,)], Limits(retries=1))
        assert found == FOUND
        assert len(service.log) == 2


def test_a_date_to_wait_for_is_waited_for() -> None:
    """The date has whole seconds, so that the pause is one at least."""

    def busy() -> Reply:
        return Reply(None, 429, {"Retry-After": email.utils.formatdate(time.time() + 2)})

    with HttpService(first(busy)) as service:
        assert answered(by(service), TABLE, [(1,)], Limits(retries=1))[0] == FOUND
        one, two = service.log
        assert two.began - one.ended >= 0.9


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "the answer is no JSON"),
        (b"\xff\xfe\x00", "the answer is no JSON"),
        (b"[" * 100_000, "the answer is no JSON"),
        (b'{"b": "x"', "the answer is no JSON"),
        (b'[{"b": 5}]', "column b is string, which an answer does not fit"),
        (b'[{"a": "one", "b": "x"}]', "column a is int64, which an answer does not fit"),
        (b'[{"a": 99999999999999999999, "b": "x"}]', "column a is int64"),
        (b'[{"b": "\\ud800"}]', "column b is string"),
        (b'[["x"]]', "a row has 1 values, not 2"),
        (b"[null]", "a row is NoneType"),
        (b"5", "the rows are int"),
    ],
)
def test_what_is_no_rows_is_said(body: bytes, message: str) -> None:
    with HttpService(lambda _: Reply(body)) as service:
        error = why(by(service), TABLE, (1,), Limits(retries=3))
        assert error.startswith(said(service, message))
        assert len(service.log) == 1
        for on_error, rows in ((OnError.NULL, [(1, None)]), (OnError.SKIP, [])):
            found, _ = answered(by(service), TABLE, [(1,)], Limits(on_error=on_error))
            assert found == [rows]


def test_rows_come_as_often_as_they_are_sent_and_strange_ones_not_at_all() -> None:
    rows = [{"a": n, "b": b} for n, b in [(2, "y"), (1, "x"), (7, "z"), (1, "x"), (None, "n")]]
    with HttpService(lambda _: Reply(rows)) as service:
        source = HttpLookup(service.url, params={"a": "{a}"}, keys_per_call=5)
        found, _ = answered(source, TABLE, [(1,), (2,), (3,)])
        assert found == [[(1, "x"), (1, "x")], [(2, "y")], []]


def endless(head: bytes, piece: bytes) -> Iterator[bytes]:
    yield head
    for _ in range(100 * MILLION // len(piece)):
        yield piece


SPACES = b" " * MILLION
LARGE: dict[str, Callable[[], Iterator[bytes]]] = {
    "of a length": lambda: endless(HEAD + b"Content-Length: 100000000\r\n\r\n", SPACES),
    "in chunks": lambda: endless(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"%x\r\n%s\r\n" % (MILLION, SPACES)
    ),
    "until it is cut": lambda: endless(HEAD + b"Connection: close\r\n\r\n", SPACES),
}


def peak(work: Callable[[], str]) -> tuple[str, int]:
    """Return what a function returns, and the bytes that it had in memory at the most."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("parts", LARGE.values(), ids=LARGE.keys())
def test_a_body_that_is_too_large_is_not_read_to_its_end(
    parts: Callable[[], Iterator[bytes]],
) -> None:
    with HttpService(lambda _: Reply(parts=parts())) as service:
        error, most = peak(lambda: why(by(service, max_bytes=2 * MILLION), TABLE, (1,)))
        assert error == said(service, "the answer has more than max_bytes=2,000,000 bytes")
        # The service and its piece are in this process, too; a body of 100 MB is not.
        assert most < 16 * MILLION
        assert gone(service)
        assert service.sent < 50 * MILLION


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "x-gzip"])
def test_a_bomb_is_not_unpacked(encoding: str) -> None:
    packed = gzip.compress if "gzip" in encoding else zlib.compress
    bomb = packed(SPACES * 100)
    assert len(bomb) < MILLION
    headers = {"Content-Encoding": encoding}
    with HttpService(lambda _: Reply(bomb, headers=headers)) as service:
        error, most = peak(lambda: why(by(service, max_bytes=MILLION), TABLE, (1,)))
        assert error == said(service, "the answer has more than max_bytes=1,000,000 bytes")
        assert most < 8 * MILLION


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
        ("identity", bytes),
    ],
)
def test_answers_may_be_compressed(encoding: str, packed: Callable[[bytes], bytes]) -> None:
    rows = [{"b": str(n) * 50} for n in range(5_000)]
    body = packed(json.dumps(rows).encode())
    with HttpService(lambda _: Reply(body, headers={"Content-Encoding": encoding})) as service:
        (found,), _ = answered(by(service), TABLE, [(1,)])
        assert found == [(1, row["b"]) for row in rows]
        assert service.log[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(
    ("encoding", "body", "message"),
    [
        ("br", b"x", "the answer is compressed as br, which nobody asked for"),
        ("gzip", b"[]", "the compressed answer is broken"),
        ("gzip", gzip.compress(b"[]", mtime=0)[:-9], "the compressed answer breaks off"),
        (
            "gzip",
            gzip.compress(b"[]", mtime=0)[:-8] + b"xxxxxxxx",
            "the compressed answer is broken",
        ),
    ],
)
def test_what_cannot_be_unpacked_is_said(encoding: str, body: bytes, message: str) -> None:
    with HttpService(lambda _: Reply(body, headers={"Content-Encoding": encoding})) as service:
        assert why(by(service), TABLE, (1,)).startswith(said(service, message))


def test_secrets_are_for_their_own_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_TOKEN", "s3cret")

    def answer(request: Request) -> Reply:
        if request.path == "/1":
            return Reply(None, 302, {"Location": f"http://localhost:{service.port}/there"})
        return Reply(ROWS)

    with HttpService(answer) as service:
        headers = {
            "Authorization": "Bearer literal",
            "X-Key": "${TINY_TOKEN}",
            "X-Version": "3",
            "cookie": "a=b",
        }
        source = by(service, headers=headers, allow_hosts=["localhost"])
        assert answered(source, TABLE, [(1,)])[0] == FOUND
        own, there = (request.headers for request in service.log)
        assert (own["authorization"], own["x-key"]) == ("Bearer literal", "s3cret")
        assert own["host"] == f"127.0.0.1:{service.port}"
        assert there["host"] == f"localhost:{service.port}"
        assert there["x-version"] == "3"
        assert not {"authorization", "x-key", "cookie"} & there.keys()


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("http://127.0.0.1:1/", "it leads to 127.0.0.1:1, which allow_hosts does not name"),
        ("//elsewhere.example/x", "it leads to elsewhere.example:80, which"),
        ("https://127.0.0.1/", "it leads to 127.0.0.1:443, which"),
        ("file:///etc/passwd", "it leads to something that is not HTTP"),
        ("http://[", "it leads to no URL"),
        ("/again", "more than 5 redirects"),
        ("", "more than 5 redirects"),
    ],
)
def test_redirects_lead_nowhere_else(location: str, message: str) -> None:
    with HttpService(lambda _: Reply(None, 302, {"Location": location})) as service:
        error = why(by(service), TABLE, (1,), Limits(retries=3))
        assert error.startswith(said(service, message))
        assert len(service.log) <= 6


@pytest.mark.parametrize(
    ("status", "method"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")]
)
def test_a_redirect_may_make_a_post_a_get(status: int, method: str) -> None:
    def answer(request: Request) -> Reply:
        if request.path == "/1":
            return Reply(None, status, {"Location": "/there"})
        return Reply(ROWS)

    with HttpService(answer) as service:
        source = by(service, method="POST", body={"a": "{a}"})
        assert answered(source, TABLE, [(1,)])[0] == FOUND
        there = service.log[1]
        assert (there.method, bool(there.body)) == (method, method == "POST")
        assert ("content-type" in there.headers) == (method == "POST")


@pytest.fixture
def secure() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    return context


def test_a_server_must_be_who_it_says(
    secure: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HttpService(lambda _: Reply(ROWS), secure) as service:
        error = why(by(service), TABLE, (1,), Limits(retries=3))
        assert error.startswith(said(service, "ConnectError: "))
        assert "CERTIFICATE_VERIFY_FAILED" in error
        assert "tried" not in error  # it would be the same again
        assert service.log == []
        assert answered(by(service, verify=False), TABLE, [(1,), (2,)])[0][0] == FOUND[0]
        monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
        assert answered(by(service), TABLE, [(1,)])[0] == FOUND
        other_name = HttpLookup(f"https://127.0.0.1:{service.port}/{{a}}")
        assert "CERTIFICATE_VERIFY_FAILED" in why(other_name, TABLE, (1,))


def test_large_answers_come_over_tls(secure: ssl.SSLContext) -> None:
    rows = [{"b": str(n) * 50} for n in range(20_000)]
    with HttpService(lambda _: Reply(rows), secure) as service:
        (found,), _ = answered(by(service, verify=False), TABLE, [(1,)])
        assert found == [(1, row["b"]) for row in rows]
        assert gone(service)


def test_one_who_does_not_speak_tls_is_told_apart() -> None:
    with HttpService(lambda _: Reply(ROWS)) as service:
        source = HttpLookup(f"https://127.0.0.1:{service.port}/{{a}}")
        assert "ConnectError" in why(source, TABLE, (1,))


def test_a_host_that_has_no_address_is_said() -> None:
    source = HttpLookup("http://nowhere.invalid/{a}")
    error = why(source, TABLE, (1,))
    assert error.startswith("http://nowhere.invalid/{a}, asked for t a=1: ConnectError: ")


def test_a_value_names_no_server() -> None:
    for url in ("http://{a}/", "http://{a}.example/", "https://x{a}", "http://x:{a}/"):
        with pytest.raises(ValueError, match="where the server is named"):
            HttpLookup(url).check(TABLE)


def test_connections_are_kept_and_replaced() -> None:
    def answer(request: Request) -> Reply:
        number = int(request.path[1:])
        if number % 3 == 1:
            return Reply({"error": "none"}, 404)
        closing = {"Connection": "close"} if number == 15 else {}
        return Reply([{"b": "x"}], headers=closing)

    with HttpService(answer) as service:
        found, asked = answered(
            by(service), TABLE, [(n,) for n in range(30)], Limits(max_in_flight=1, retries=0)
        )
        assert found == [[] if n % 3 == 1 else [(n, "x")] for n in range(30)]
        assert asked.tries == 30
        assert service.opened == 2


def test_a_lookup_that_is_closed_leaves_no_connection() -> None:
    with HttpService(lambda _: Reply(ROWS, delay=30.0)) as service:

        async def work() -> None:
            method = AccessMethod(TABLE, by(service), Limits(max_in_flight=4))
            lookup = method.shared("1", Random(0), time.monotonic)
            futures = lookup.rows([(n,) for n in range(20)])
            assert await asyncio.to_thread(until, lambda: service.connections == 4)
            await lookup.close()
            assert all(future.cancelled() for future in futures)

        asyncio.run(work())
        assert gone(service)


@pytest.mark.parametrize("rounds", range(0, 24, 2))
def test_a_lookup_that_is_closed_at_any_moment_leaves_no_connection(rounds: int) -> None:
    with HttpService(lambda _: Reply(ROWS, delay=30.0)) as service:

        async def work() -> None:
            method = AccessMethod(TABLE, by(service), Limits(max_in_flight=4))
            lookup = method.shared("1", Random(0), time.monotonic)
            lookup.rows([(n,) for n in range(20)])
            for _ in range(rounds):
                await asyncio.sleep(0)
            await lookup.close()

        for _ in range(5):
            asyncio.run(work())
        gc.collect()  # a socket that nobody has closed says so
        assert gone(service)


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with HttpService(lambda _: Reply(ROWS)) as proxy:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, f"http://me:pass%20word@127.0.0.1:{proxy.port}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(name, "direct.invalid")
        source = HttpLookup("http://service.invalid/{a}")
        assert answered(source, TABLE, [(1,)])[0] == FOUND
        (request,) = proxy.log
        assert request.headers["host"] == "service.invalid"
        assert request.headers["proxy-authorization"] == "Basic bWU6cGFzcyB3b3Jk"
        assert "ConnectError" in why(HttpLookup("http://direct.invalid/{a}"), TABLE, (1,))
        assert len(proxy.log) == 1


def test_who_asks_is_in_the_url_or_in_the_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_PASSWORD", "pass word")
    with HttpService(lambda _: Reply(ROWS)) as service:
        source = HttpLookup(
            f"http://me:x@127.0.0.1:{service.port}/a b/{{a}}?c=d e", params={"f": "g h"}
        )
        assert answered(source, TABLE, [(1,)])[0] == FOUND
        (request,) = service.log
        assert request.headers["authorization"] == "Basic bWU6eA=="
        assert request.path == "/a b/1"
        assert request.query == {"c": "d e", "f": "g h"}
