"""Serves the live page: on this machine only, to those who know its address.

The address holds a token; a request without it is told nothing. Nor is a page of another site
that a browser of this machine shows: the token is nowhere to be found for it, and the name that it
asks by is checked too, so that no foreign name can be made to point here. The page loads nothing
from elsewhere, and a policy has the browser see to that: text that holds HTML stays text.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from eddyline.monitor.live_query import LiveQuery
from eddyline.monitor.query_book import QueryBook
from eddyline.reports.as_dict import as_dict


def summary(query: LiveQuery) -> dict[str, Any]:
    """Return what a list says of an action."""
    return {
        "number": query.number,
        "description": query.description,
        "about": query.about,
        "waiting": query.waiting,
        "waits": query.waits,
        "state": query.state.value,
        "started": query.started,
        "ended": query.ended,
        "tasks": query.tasks,
        "tasks_done": query.tasks_done,
        **asdict(query.totals),
    }


def detail(query: LiveQuery) -> dict[str, Any]:
    """Return all that is known of an action.

    ``blocks`` are as in :meth:`~eddyline.reports.routing_report.RoutingReport.to_dict`, with the
    ``labels`` by which orders call their steps, and the time ``spent`` in each step.
    """
    return summary(query) | {
        "error": query.error,
        "blocks": [
            block
            | {"labels": list(report.labels), "steps": [asdict(step) for step in report.steps()]}
            for report, block in zip(query.blocks, as_dict(query.blocks, ())["blocks"], strict=True)
        ],
    }


FILES: Final = {
    "": ("live.html", "text/html; charset=utf-8"),
    "live.css": ("live.css", "text/css; charset=utf-8"),
    "live.js": ("live.js", "text/javascript; charset=utf-8"),
    "charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

HERE: Final = {"127.0.0.1", "localhost", "[::1]"}
"""Names that a browser may ask by; with any port, which may be that of a tunnel."""

EVERY: Final = 0.25
"""Seconds between two events, at the least."""

HEARTBEAT: Final = 5.0
"""Seconds after which an event is sent though nothing has happened."""

MOST_LISTENERS: Final = 32
"""Pages that may listen at a time."""

MOST_QUERIES: Final = 200
"""Queries in one answer at the most."""


class PageServer:
    """The live page of an account of queries, served from threads of its own."""

    def __init__(self, book: QueryBook, port: int = 0) -> None:
        """Begin to serve, on any free port by default; OSError where that fails."""
        self._token = secrets.token_urlsafe(24)
        self._book = book
        self._closed = threading.Event()
        self._listeners = threading.Semaphore(MOST_LISTENERS)
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self.url: Final = f"http://127.0.0.1:{self._server.server_address[1]}/{self._token}/"
        threading.Thread(
            target=self._server.serve_forever, name="eddyline-page", daemon=True
        ).start()

    def close(self) -> None:
        """Stop serving, and end what is being sent."""
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._server.hang_up()

    def answer(self, path: str) -> Callable[[BaseHTTPRequestHandler], None] | None:
        """Return what answers a request; None where there is nothing."""
        parts = urlsplit(path)
        _, token, *below = parts.path.split("/", 2)
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        if not below:  # the page asks for what it needs from below its address
            return lambda request: _send_to(request, urlsplit(self.url).path)
        rest = below[0]
        if rest in FILES:
            name, kind = FILES[rest]
            content = resources.files("eddyline.monitor").joinpath("static", name).read_bytes()
            return lambda request: _send(request, content, kind)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if rest == "queries":
            return lambda request: _send_json(request, self._queries(query))
        if rest == "events":
            return self._send_events
        what, _, number = rest.partition("/")
        live_query = (
            self._book.query(int(number)) if what == "query" and _is_number(number) else None
        )
        return (
            None if live_query is None else lambda request: _send_json(request, detail(live_query))
        )

    def _queries(self, query: dict[str, str]) -> dict[str, Any]:
        before, most = query.get("before", ""), query.get("most", "")
        queries = self._book.queries(
            before=int(before) if _is_number(before) else None,
            most=min(int(most), MOST_QUERIES) if _is_number(most) else 50,
            find=query.get("find", ""),
        )
        return {
            "count": self._book.count,
            "queries": [summary(live_query) for live_query in queries],
        }

    def _send_events(self, request: BaseHTTPRequestHandler) -> None:
        """Send what runs whenever it has changed, until the page is closed."""
        if not self._listeners.acquire(blocking=False):
            request.send_error(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open")
            return
        try:
            _begin(request, "text/event-stream")
            request.wfile.write(b"retry: 1000\n\n")
            version = -1
            while not self._closed.is_set():
                version = self._book.wait(version, HEARTBEAT)
                numbers = [query.number for query, _ in self._book.running()]
                running = [self._book.query(number) for number in numbers]
                event = {
                    "version": version,
                    "now": time.time(),
                    "count": self._book.count,
                    "running": [
                        summary(live_query) for live_query in running if live_query is not None
                    ],
                }
                request.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                self._closed.wait(EVERY)
        finally:
            self._listeners.release()


class _Server(ThreadingHTTPServer):
    """Threads that end with the process; what is open is known, so that it can be ended."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64  # as many may knock at once

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base's
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - the base's
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base's
        """Say nothing: the browser has gone."""

    def hang_up(self) -> None:
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _handler(server: PageServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "eddyline", ""

        def do_GET(self) -> None:
            answer = server.answer(self.path) if _asked_here(self.headers.get("Host")) else None
            if answer is None:
                self.send_error(HTTPStatus.NOT_FOUND)
            else:
                answer(self)

        def log_message(self, *_: object) -> None:
            """Log nothing: addresses hold the token."""

    return Handler


def _asked_here(host: str | None) -> bool:
    name, _, port = (host or "").rpartition(":")
    return (name or port) in HERE and (not name or _is_number(port))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16  # noqa: PLR2004 - below 2**53


def _begin(request: BaseHTTPRequestHandler, kind: str, length: int | None = None) -> None:
    request.send_response(HTTPStatus.OK)
    request.send_header("Content-Type", kind)
    if length is not None:
        request.send_header("Content-Length", str(length))
    for name, value in HEADERS.items():
        request.send_header(name, value)
    request.end_headers()


def _send(request: BaseHTTPRequestHandler, content: bytes, kind: str) -> None:
    _begin(request, kind, len(content))
    request.wfile.write(content)


def _send_to(request: BaseHTTPRequestHandler, path: str) -> None:
    request.send_response(HTTPStatus.MOVED_PERMANENTLY)
    request.send_header("Location", path)
    request.send_header("Content-Length", "0")
    request.end_headers()


def _send_json(request: BaseHTTPRequestHandler, value: object) -> None:
    _send(request, json.dumps(value, allow_nan=False).encode(), "application/json")
