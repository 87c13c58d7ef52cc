"""A provider of a language model on loopback, which bills, refuses, fails and hangs.

It is for examples and tests: ``POST /complete`` with ``{"prompt": …}`` is answered with a text and
the tokens that it took, as real providers do.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

TOPICS: Final = {"refund": "money", "late": "delivery", "broken": "quality", "love": "praise"}
"""What the model says about a prompt, by the first of these words in it."""

MOODY: Final = 11
"""Of so many prompts one fails at first, and another one is not answered."""

HANGS: Final = 5.0
"""Seconds after which the line of that one is cut."""

USD_PER_TOKEN: Final = 2e-5


class FakeProvider:
    """The provider, within a ``with`` block: its ``url``, and what it has seen.

    It admits ``calls`` in each window of so many ``seconds``, and refuses others with 429 and
    ``Retry-After``. A prompt with the word "nonsense" it answers with 400.

    >>> import httpx
    >>> with FakeProvider(calls=2) as provider:
    ...     answers = [
    ...         httpx.post(provider.url + "/complete", json={"prompt": f"{word} parcel"})
    ...         for word in ("late", "broken", "late")
    ...     ]
    >>> [answer.status_code for answer in answers], answers[0].json()
    ([200, 200, 429], {'text': 'delivery', 'tokens': 2})
    >>> provider.calls, provider.refusals, round(provider.billed, 9)
    (2, 1, 8e-05)
    """

    def __init__(self, calls: int = 40, seconds: float = 1.0) -> None:
        self._quota = calls
        self._seconds = seconds
        self._lock = threading.Lock()
        self._window = 0.0
        self._used = 0
        self._asked: Counter[str] = Counter()
        self.calls = 0
        """Calls that were answered, and billed."""
        self.refusals = 0
        self.billed = 0.0
        """In USD."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url: Final = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        """Serve from now on."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Serve nobody any more."""
        self.close()

    def close(self) -> None:
        """Serve nobody any more."""
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                prompt = str(json.loads(self.rfile.read(length))["prompt"])
                answer = provider.answer(prompt)
                if answer is None:
                    time.sleep(HANGS)
                    self.close_connection = True
                    return
                status, headers, body = answer
                text = json.dumps(body).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                """Say nothing of requests."""

        return Handler

    def answer(self, prompt: str) -> tuple[int, dict[str, str], dict[str, Any]] | None:
        """Return status, headers and body of an answer; None where there is none."""
        with self._lock:
            now = time.monotonic()
            if now >= self._window + self._seconds:
                self._window, self._used = now, 0
            if self._used >= self._quota:
                self.refusals += 1
                after = f"{self._window + self._seconds - now:.3f}"
                return 429, {"Retry-After": after}, {"error": "rate limit"}
            self._used += 1
            first = not self._asked[prompt]
            self._asked[prompt] += 1
        mood = sum(prompt.encode()) % MOODY
        if first and mood == 0:
            return 500, {}, {"error": "overloaded"}
        if first and mood == 1:
            return None
        if "nonsense" in prompt:
            return 400, {}, {"error": "no prompt"}
        words = prompt.split()
        text = next((topic for word, topic in TOPICS.items() if word in words), "other")
        with self._lock:
            self.calls += 1
            self.billed += len(words) * USD_PER_TOKEN
        return 200, {}, {"text": text, "tokens": len(words)}
