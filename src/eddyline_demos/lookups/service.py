"""HTTP services on loopback, in a process of their own: ``python -m`` this module.

Its first line of input describes them, as JSON: a list with ``answers`` (what is answered to which
path), ``latency`` in seconds, ``limit`` (requests at a time; it refuses others with 429), and
``rest``: after how many requests it answers nobody for how many seconds. It prints the ports as a
JSON list, answers ``GET /log`` with what it has seen, and ends with its input: so it cannot stay
behind, however the demo ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

LOG: Final = "/log"


async def serve_json(
    answer: Callable[[str], Awaitable[tuple[int, object]]],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Serve one connection: for each path what ``answer`` gives, a status and a body."""
    with contextlib.closing(writer):
        try:
            while line := await reader.readline():
                path = line.split()[1].decode()
                while (await reader.readline()).strip():
                    pass
                status, body = await answer(path)
                text = json.dumps(body)
                writer.write(
                    f"HTTP/1.1 {status} S\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(text)}\r\n\r\n{text}".encode()
                )
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # whoever has asked has gone


class Service:
    """A service, and what it has seen."""

    def __init__(
        self,
        answers: Mapping[str, object],
        latency: float,
        limit: int,
        rest: tuple[int, float] | None = None,
    ) -> None:
        """Answer ``latency`` seconds after a request, ``limit`` requests at a time."""
        self._answers = answers
        self._latency = latency
        self._limit = limit
        self._rest = rest
        self._awake = 0.0  # the loop's time from which on it answers again
        self._paths: list[str] = []
        self._refused = 0
        self._now = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        await serve_json(self._answer, reader, writer)

    def _seen(self) -> dict[str, int]:
        return {
            "requests": len(self._paths),
            "keys": len(set(self._paths)),
            "refused": self._refused,
        }

    async def _answer(self, path: str) -> tuple[int, object]:
        if path == LOG:
            return 200, self._seen()
        if self._now >= self._limit:
            self._refused += 1
            return 429, None
        loop = asyncio.get_running_loop()
        self._paths.append(path)
        if self._rest is not None and len(self._paths) == self._rest[0]:
            self._awake = loop.time() + self._rest[1]
        self._now += 1
        try:
            await asyncio.sleep(max(self._latency, self._awake - loop.time()))
        finally:
            self._now -= 1
        return (200, self._answers[path]) if path in self._answers else (404, None)


async def _serve(descriptions: list[dict[str, Any]]) -> None:
    servers = [
        await asyncio.start_server(Service(**each).serve, "127.0.0.1", 0) for each in descriptions
    ]
    sys.stdout.write(json.dumps([each.sockets[0].getsockname()[1] for each in servers]) + "\n")
    sys.stdout.flush()
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def watch_input() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=watch_input, daemon=True).start()
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(sys.stdin.readline())))
